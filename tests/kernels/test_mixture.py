"""The mixture's kernels against the priors that they unroll, and the bookkeeping of a sweep."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax

from regbayes.kernels import mixture as km
from regbayes.kernels.labels import LabelTerm
from regbayes.margin import GibbsClassifier
from regbayes.mixture import gibbs
from regbayes.priors import Fixed, NormalInverseGamma, NormalInverseWishart
from tests.helpers import random_covariance

SHAPES = [("full", 1), ("full", 2), ("full", 5), ("diag", 1), ("diag", 2), ("diag", 5)]
COUNTS = np.array([1, 2, 5, 30])
N_CLASSES = 3


def make_prior(covariance, m):
    rng = np.random.default_rng(m)
    mean = rng.standard_normal(m)
    if covariance == "full":
        return NormalInverseWishart(mean, 0.4, m + 1.7, random_covariance(rng, m))
    return NormalInverseGamma(mean, 0.4, 2.3, rng.uniform(0.5, 2.0, m))


def make_points(m, z, far=0.0):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((len(z), m)) + 2.0 * z[:, None]
    X[0] += far
    return X


def room(base, n):
    """Space for n components."""
    m = len(base.mean)
    return km.Components(
        counts=np.zeros(n, dtype=np.int64),
        mean=np.zeros((m, n)),
        factor=np.zeros((*base.factor.shape, n)),
        constant=np.zeros(n),
        log_size=np.zeros(n),
        weights=np.zeros((n, N_CLASSES, m + 1)),
    )


def collected(X, z, base):
    components = room(base, z.max() + 1)
    km.collect_all(X, z, z.max() + 1, components, base)
    return components


def gates(x, components, base):
    n, m = len(components.counts), len(base.mean)
    out, distance, parts = np.empty(n), np.empty(n), np.empty((m, n))
    km.log_gates(x, n, components, base, out, distance, parts)
    return out, distance, parts


def assert_same_components(found, expected, n=None, rtol=1e-9):
    for name in ["counts", "mean", "factor", "constant", "log_size"]:
        a, b = (getattr(c, name)[..., :n] for c in (found, expected))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-10, err_msg=name)


@pytest.mark.parametrize(("covariance", "m"), SHAPES)
def test_gates_are_size_times_the_priors_predictive(covariance, m):
    z = np.repeat(np.arange(len(COUNTS)), COUNTS)
    prior, X = make_prior(covariance, m), make_points(m, z)
    base = gibbs.make_base(prior)
    components = collected(X, z, base)
    for x in np.concatenate([X[::7], 1e3 * X[:2], prior.mean[None]]):
        found, _, _ = gates(x, components, base)
        expected = [
            np.log(n) + prior.posterior(X[z == k]).log_predictive(x) for k, n in enumerate(COUNTS)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(("covariance", "m"), SHAPES)
def test_base_density_is_the_priors_predictive(covariance, m):
    prior, X = make_prior(covariance, m), make_points(m, np.arange(6))
    X[-1] = prior.mean
    found = km.log_base_density(X, gibbs.make_base(prior))
    np.testing.assert_allclose(found, prior.log_predictive(X), rtol=1e-11)
    base = gibbs.make_base(prior)
    constant = km.predictive_constant(0, base.factor, base)
    assert constant == pytest.approx(prior.log_predictive(prior.mean), rel=1e-11)


@pytest.mark.parametrize(("covariance", "m"), SHAPES)
@pytest.mark.parametrize("far", [0.0, 30.0, 1e3])
def test_left_out_density_is_that_of_the_posterior_without_the_member(covariance, m, far):
    z = np.repeat(np.arange(3), COUNTS[1:])
    prior, X = make_prior(covariance, m), make_points(m, z, far)
    base = gibbs.make_base(prior)
    components = collected(X, z, base)
    for d in [0, 1, 3, 9]:
        _, distance, parts = gates(X[d], components, base)
        others = (z == z[d]) & (np.arange(len(z)) != d)
        expected = prior.posterior(X[others]).log_predictive(X[d])
        found = km.log_left_out(z[d], distance, parts, components, base)
        if np.isnan(found):
            assert far > 0, "the short way must serve an ordinary member"
            table = gibbs.make_table(X, np.zeros_like(z), base, fit_intercept=True)
            found = km._log_left_out_afresh(d, table, z, components, base)
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("covariance", ["full", "diag"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_left_out_density_of_a_far_outlier_is_collected_afresh(covariance, m):
    z = np.repeat(np.arange(2), 6)
    prior, X = make_prior(covariance, m), make_points(m, z, far=1e8)
    base = gibbs.make_base(prior)
    components = collected(X, z, base)
    _, distance, parts = gates(X[0], components, base)
    assert np.isnan(km.log_left_out(0, distance, parts, components, base))
    table = gibbs.make_table(X, np.zeros(12, dtype=np.int64), base, fit_intercept=True)
    expected = prior.posterior(X[1:6]).log_predictive(X[0])
    found = km._log_left_out_afresh(0, table, z, components, base)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("covariance", "m"), SHAPES)
def test_collecting_is_adding_one_by_one(covariance, m):
    z = np.random.default_rng(0).permutation(np.repeat(np.arange(len(COUNTS)), COUNTS))
    prior, X = make_prior(covariance, m), make_points(m, z)
    base = gibbs.make_base(prior)
    slow = room(base, len(COUNTS))
    for k in range(len(COUNTS)):
        km.collect(X, z, k, slow, base, np.empty(m))
    assert_same_components(collected(X, z, base), slow)
    np.testing.assert_array_equal(slow.counts, COUNTS)


@pytest.mark.parametrize(("covariance", "m"), SHAPES)
def test_removing_undoes_adding(covariance, m):
    z = np.repeat(np.arange(len(COUNTS)), COUNTS)
    prior, X = make_prior(covariance, m), make_points(m, z)
    base, x = gibbs.make_base(prior), np.full(m, 5.0)
    before, after = collected(X, z, base), collected(X, z, base)
    for k in range(len(COUNTS)):
        km.add_member(x, k, after, base, np.empty(m))
        posterior = gibbs.make_base(prior.posterior(np.vstack([X[z == k], x])))
        np.testing.assert_allclose(after.mean[:, k], posterior.mean)
        np.testing.assert_allclose(after.factor[:, :, k], posterior.factor, atol=1e-12)
        assert km.remove_member(x, k, after, base, np.empty(m))
    assert_same_components(after, before)


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_removing_says_when_rounding_spoiled_it(covariance):
    prior = make_prior(covariance, 2)
    base, z = gibbs.make_base(prior), np.zeros(4, dtype=np.int64)
    X = make_points(2, z, far=1e9)
    assert not km.remove_member(X[0], 0, collected(X, z, base), base, np.empty(2))


@pytest.mark.parametrize(("covariance", "m"), SHAPES)
@pytest.mark.parametrize("softmax", [False, True])
def test_log_joint_is_marginals_and_label_factors(covariance, m, softmax):
    rng = np.random.default_rng(3)
    z = rng.permutation(np.repeat(np.arange(len(COUNTS)), COUNTS))
    y = rng.integers(-1, N_CLASSES, len(z))
    prior, X = make_prior(covariance, m), make_points(m, z)
    base = gibbs.make_base(prior)
    table = gibbs.make_table(X, y, base, fit_intercept=True)
    components = collected(X, z, base)
    components.weights[:] = rng.standard_normal(components.weights.shape)
    term = LabelTerm(softmax, 0.7, 1.2, 1.0, np.zeros((N_CLASSES, m + 1)), 1.0)
    expected = sum(prior.log_marginal(X[z == k]) for k in range(len(COUNTS)))
    for d in np.flatnonzero(y >= 0):
        scores = components.weights[z[d]] @ table.X1[d]
        if softmax:
            expected += log_softmax(scores)[y[d]]
        else:
            expected -= 1.4 * max(0, 1.2 + np.delete(scores, y[d]).max() - scores[y[d]])
    found = km.log_joint_data(table, z, len(COUNTS), components, base, term)
    assert found == pytest.approx(expected, rel=1e-10)


def make_model(covariance="full", m=2, n=60, most=None, alpha=3.0, far=0.0, **options):
    rng = np.random.default_rng(11)
    X = make_points(m, rng.integers(4, size=n), far)
    y = rng.integers(-1, N_CLASSES, n)
    prior = make_prior(covariance, m)
    base = gibbs.make_base(prior)
    table = gibbs.make_table(X, y, base, fit_intercept=True)
    classifier = GibbsClassifier(N_CLASSES, m + 1, **options)
    return gibbs.Model(table, base, classifier, Fixed(alpha), n if most is None else most)


@pytest.mark.parametrize("covariance", ["full", "diag"])
@pytest.mark.parametrize("most", [1, 3, None])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_sweeps_keep_the_books(covariance, most, far):
    """Sizes and statistics stay those of the assignments, and the limit is kept."""
    model = make_model(covariance, most=most, far=far, alpha=20.0)
    rng = np.random.default_rng(0)
    state, sizes = gibbs.init(model, rng), []
    # One datum moves at a time, in place: the rounding of many sweeps without collecting.
    components = gibbs._resized(state.components, model.max_components + 1)
    z, n = state.z.copy(), state.n_components
    km.collect_all(model.table.X, z, n, components, model.base)
    for _ in range(50):
        done, n = km.assign(
            rng, 0, model.table, z, n, components, model.base, state.term, 20.0,
            model.max_components,
        )  # fmt: skip
        assert done == len(z)
        assert n <= model.max_components
        assert set(z) == set(range(n)), "every component has members"
        afresh = collected(model.table.X, z, model.base)
        np.testing.assert_array_equal(components.counts[:n], afresh.counts)
        np.testing.assert_allclose(components.mean[:, :n], afresh.mean, rtol=1e-7, atol=far * 1e-13)
        if not far:  # else the scale of the outlier's company is lost to rounding, here and there
            assert_same_components(components, afresh, n, rtol=1e-8)
        sizes.append(n)
    assert np.isfinite(components.weights[:n]).all()
    if most is None:
        assert np.ptp(sizes) > 3, "components come and go"
        if far:
            assert np.sum(z == z[0]) == 1, "nobody lives with the outlier"


def test_assignments_go_on_when_room_runs_out():
    """The kernel stops when full and continues where it stopped, as if there had been room."""
    model = make_model(most=None, alpha=50.0)
    state = gibbs.init(replace(model, n_init=1), np.random.default_rng(0))
    assert len(state.components.counts) == 1
    spacious = replace(state, components=gibbs._resized(state.components, len(state.z) + 1))
    grown = gibbs.draw_assignments(model, np.random.default_rng(1), state)
    whole = gibbs.draw_assignments(model, np.random.default_rng(1), spacious)
    assert grown.n_components > 8
    np.testing.assert_array_equal(grown.z, whole.z)
    assert_same_components(grown.components, whole.components, grown.n_components, rtol=0)
    np.testing.assert_array_equal(
        grown.components.weights[: grown.n_components],
        whole.components.weights[: whole.n_components],
    )


def test_a_full_house_stops_before_the_next_datum():
    model = make_model(alpha=1e6)
    state = gibbs.init(replace(model, n_init=1), np.random.default_rng(0))
    components = gibbs._resized(state.components, 3)
    z = state.z.copy()
    km.collect_all(model.table.X, z, 1, components, model.base)
    done, n = km.assign(
        np.random.default_rng(0), 0, model.table, z, 1, components, model.base, state.term, 1e6,
        len(z),
    )  # fmt: skip
    assert n == 3
    assert 2 <= done < 10
    assert not z[done:].any(), "those after the stop have not moved"


def test_the_old_state_survives_a_sweep_of_assignments():
    model = make_model()
    state = gibbs.init(model, np.random.default_rng(0))
    before = state.z.copy()
    after = gibbs.draw_assignments(model, np.random.default_rng(1), state)
    np.testing.assert_array_equal(state.z, before)
    assert (after.z != before).any()


def test_densities_that_are_not_numbers_raise_with_a_remedy():
    model = make_model()
    model.table.X[3] = np.nan
    state = gibbs.init(model, np.random.default_rng(0))
    with pytest.raises(FloatingPointError, match="StandardScaler"):
        gibbs.draw_assignments(model, np.random.default_rng(0), state)
