"""Conjugate Gaussian priors: chain rule, order, SciPy's densities, and laws of the draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regbayes.priors import NormalInverseGamma, NormalInverseWishart
from tests.helpers import assert_law, random_covariance


def make(kind, m, seed=0):
    rng = np.random.default_rng(seed)
    scale = random_covariance(rng, m)
    if kind is NormalInverseGamma:
        scale = np.diag(scale)
    return kind(rng.standard_normal(m), 0.7, m + 2.5, scale)


both = pytest.mark.parametrize("kind", [NormalInverseWishart, NormalInverseGamma])
sizes = pytest.mark.parametrize("m", [1, 2, 5])


def assert_same(a, b, rtol=1e-9):
    for field in ["mean", "strength", "df", "scale"]:
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=rtol, atol=1e-12)


@both
@sizes
def test_marginal_is_the_product_of_predictives(kind, m):
    prior = make(kind, m)
    X = 2 * np.random.default_rng(1).standard_normal((7, m))
    total, now = 0.0, prior
    for x in X:
        total += now.log_predictive(x)
        now = now.posterior(x)
    assert prior.log_marginal(X) == pytest.approx(total)
    assert_same(now, prior.posterior(X))


@both
def test_no_points_change_nothing(kind):
    prior = make(kind, 3)
    assert prior.posterior(np.empty((0, 3))) is prior
    assert prior.log_marginal(np.empty((0, 3))) == pytest.approx(0)


@sizes
def test_wishart_predictive_is_scipys_student_t(m):
    prior = make(NormalInverseWishart, m)
    df = prior.df - m + 1
    shape = prior.scale * (prior.strength + 1) / (prior.strength * df)
    X = 3 * np.random.default_rng(2).standard_normal((5, m))
    law = stats.multivariate_t(prior.mean, shape, df=df)
    np.testing.assert_allclose(prior.log_predictive(X), np.atleast_1d(law.logpdf(X)))
    assert prior.log_predictive(X[0]) == prior.log_predictive(X)[0]


def test_gamma_predictive_is_a_product_of_student_ts():
    prior = make(NormalInverseGamma, 3)
    width = np.sqrt(prior.scale * (prior.strength + 1) / (prior.strength * prior.df))
    X = 3 * np.random.default_rng(2).standard_normal((5, 3))
    expected = stats.t(prior.df, prior.mean, width).logpdf(X).sum(axis=1)
    np.testing.assert_allclose(prior.log_predictive(X), expected)


def test_in_one_dimension_they_are_the_same_prior():
    wishart = make(NormalInverseWishart, 1)
    gamma = NormalInverseGamma(wishart.mean, wishart.strength, wishart.df, wishart.scale[0])
    X = np.random.default_rng(3).standard_normal((6, 1))
    np.testing.assert_allclose(gamma.log_predictive(X), wishart.log_predictive(X))
    assert gamma.log_marginal(X) == pytest.approx(wishart.log_marginal(X))
    np.testing.assert_allclose(gamma.posterior(X).scale, wishart.posterior(X).scale[0])
    default, default_wishart = (k.from_data(X) for k in (NormalInverseGamma, NormalInverseWishart))
    assert default.df == default_wishart.df
    np.testing.assert_allclose(default.scale, default_wishart.scale[0])


@both
@pytest.mark.parametrize("m", [1, 3])
def test_draws_follow_the_prior(kind, m):
    prior = make(kind, m)
    wishart = kind is NormalInverseWishart
    rng = np.random.default_rng(4)
    pairs = [prior.draw(rng) for _ in range(2_000)]
    mu = np.array([p[0] for p in pairs])
    covariance = np.array([p[1] for p in pairs])
    assert covariance.shape == ((2_000, m, m) if wishart else (2_000, m))
    variances = np.diagonal(covariance, axis1=1, axis2=2) if wishart else covariance
    scale = np.diag(prior.scale) if wishart else prior.scale
    df = prior.df - m + 1 if wishart else prior.df
    for j in range(m):
        assert_law(variances[:, j], stats.invgamma(df / 2, scale=scale[j] / 2).cdf)
        # Given its variance a mean is normal; on its own it is Student-t.
        z = (mu[:, j] - prior.mean[j]) / np.sqrt(variances[:, j] / prior.strength)
        assert_law(z, stats.norm.cdf)
        width = np.sqrt(scale[j] / (df * prior.strength))
        assert_law(mu[:, j], stats.t(df, prior.mean[j], width).cdf)


@both
def test_draws_and_predictive_tell_the_same_story(kind):
    """A point drawn through (mu, Sigma) follows the predictive: its log density, on both sides."""
    prior = make(kind, 2)
    rng = np.random.default_rng(5)
    points = []
    for _ in range(2_000):
        mu, covariance = prior.draw(rng)
        covariance = covariance if covariance.ndim == 2 else np.diag(covariance)
        points.append(rng.multivariate_normal(mu, covariance))
    other = np.random.default_rng(6)
    if kind is NormalInverseWishart:
        df = prior.df - 1
        shape = prior.scale * (prior.strength + 1) / (prior.strength * df)
        exact = stats.multivariate_t(prior.mean, shape, df=df).rvs(2_000, random_state=other)
    else:
        width = np.sqrt(prior.scale * (prior.strength + 1) / (prior.strength * prior.df))
        exact = stats.t(prior.df, prior.mean, width).rvs((2_000, 2), random_state=other)
    result = stats.ks_2samp(prior.log_predictive(np.array(points)), prior.log_predictive(exact))
    assert result.pvalue > 1e-4


@both
def test_posterior_finds_the_truth(kind):
    rng = np.random.default_rng(7)
    covariance = np.diag([1.0, 4.0])
    X = rng.multivariate_normal([3.0, -2.0], covariance, size=20_000)
    after = make(kind, 2).posterior(X)
    np.testing.assert_allclose(after.mean, [3.0, -2.0], atol=0.1)
    expected = covariance if kind is NormalInverseWishart else np.diag(covariance)
    np.testing.assert_allclose(after.scale / after.df, expected, atol=0.15)


@both
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_prior_from_any_data_is_proper(kind, data):
    """Constant columns, one point, wild units: always a prior that draws and predicts."""
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, m)) * 10.0 ** rng.uniform(-8, 8, m) + rng.choice([0, 1e3], m)
    X[:, rng.random(m) < 0.3] = rng.choice([0.0, 0.1, 1e6])
    prior = kind.from_data(X)
    assert prior.df == (m + 2 if kind is NormalInverseWishart else 3)
    mu, covariance = prior.draw(rng)
    assert np.isfinite(mu).all()
    assert np.isfinite(covariance).all()
    assert np.isfinite(prior.log_predictive(X)).all()
    assert np.isfinite(prior.posterior(X).log_marginal(X))


@both
def test_prior_from_data_means_what_it_says(kind):
    X = np.column_stack([np.arange(10.0), np.full(10, 0.1), 1e4 * np.arange(10.0)])
    for df in [None, 9.0]:
        prior = kind.from_data(X, strength=2.0, df=df, scale_fraction=0.5)
        scale = np.diag(prior.scale) if kind is NormalInverseWishart else prior.scale
        excess = prior.df - (4 if kind is NormalInverseWishart else 2)
        expectation = scale / excess
        np.testing.assert_allclose(expectation, 0.5 * np.array([8.25, 1.0, 8.25e8]))
        np.testing.assert_allclose(prior.mean, X.mean(axis=0))
        assert prior.strength == 2.0


@both
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strength": 0.0}, "strength"),
        ({"df": 0.0}, "df"),
        ({"df": np.nan}, "df"),
        ({"mean": [np.nan, 0.0]}, "mean"),
        ({"scale": -1.0}, "scale"),
        ({"scale": 0.0}, "scale"),
        ({"scale": np.nan}, "scale"),
    ],
)
def test_improper_parameters_are_refused(kind, change, message):
    good = make(kind, 2)
    fields = {name: getattr(good, name) for name in ["mean", "strength", "df", "scale"]}
    if "scale" in change:
        change = {"scale": change["scale"] * np.asarray(good.scale)}
    with pytest.raises(ValueError, match=message):
        kind(**{**fields, **change})


@both
def test_wrong_width_is_refused(kind):
    with pytest.raises(ValueError, match=r"\(n, 2\)"):
        make(kind, 2).posterior(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="non-empty"):
        kind.from_data(np.empty((0, 2)))


def test_wishart_refuses_an_asymmetric_scale():
    with pytest.raises(ValueError, match="symmetric"):
        NormalInverseWishart(np.zeros(2), 1.0, 4.0, [[1.0, 0.5], [0.0, 1.0]])
