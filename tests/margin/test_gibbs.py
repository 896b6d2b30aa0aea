"""The conjugate updates of the shared classifier, against quadrature of prior x likelihood."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from regbayes.kernels._jit import kernel
from regbayes.kernels.margin import draw_shared_weights
from regbayes.margin import GibbsClassifier, check_scale
from tests.helpers import assert_law

WEIGHTS = np.random.default_rng(0).normal(0.5, 1.5, (4, 3, 2))


def grid_cdf(grid, log_density):
    density = np.exp(log_density - log_density.max())
    total = integrate.cumulative_trapezoid(density, grid, initial=0)
    return lambda x: np.interp(x, grid, total / total[-1])


@kernel
def many_shared(rng, weights, nu, top_nu, out):
    for i in range(out.shape[0]):
        draw_shared_weights(rng, weights, nu, top_nu, out[i])


@pytest.mark.parametrize(("nu", "top_nu"), [(0.7, 2.0), (3.0, 0.4)])
def test_shared_weights_follow_their_posterior(nu, top_nu):
    out = np.empty((20_000, 3, 2))
    many_shared(np.random.default_rng(1), WEIGHTS, nu, top_nu, out)
    grid = np.linspace(-8, 8, 20_001)
    for j in range(3):
        for m in range(2):
            log_p = stats.norm.logpdf(grid, 0, top_nu)
            log_p += stats.norm.logpdf(WEIGHTS[:, j, m, None], grid, nu).sum(axis=0)
            assert_law(out[:, j, m], grid_cdf(grid, log_p))
    assert abs(np.corrcoef(out.reshape(-1, 6).T) - np.eye(6)).max() < 0.03


def test_scale_of_the_weights_follows_its_posterior():
    """A Gamma prior on 1 / nu^2, and no shared weights: a plain conjugate update."""
    rng = np.random.default_rng(2)
    classifier = GibbsClassifier(3, 2, nu=(3.0, 2.0))
    term = classifier.init()
    draws = [classifier.draw_term(rng, term, WEIGHTS).nu for _ in range(5_000)]
    grid = np.linspace(0.3, 6, 20_001)  # of nu: the density of 1 / nu^2 times its derivative
    log_p = stats.gamma.logpdf(grid**-2, 3.0, scale=1 / 2.0) + np.log(2 * grid**-3)
    log_p += stats.norm.logpdf(WEIGHTS[..., None], 0, grid).sum(axis=(0, 1, 2))
    assert_law(draws, grid_cdf(grid, log_p))


def test_shared_scale_and_scale_follow_their_posteriors_given_the_shared_weights():
    rng = np.random.default_rng(3)
    classifier = GibbsClassifier(3, 2, nu=(3.0, 2.0), shared_nu=(2.0, 1.5))
    term = classifier.init()
    # The mean changes from draw to draw, so each precision goes through its own law: uniform.
    places = []
    for _ in range(3_000):
        drawn = classifier.draw_term(rng, term, WEIGHTS)
        rates = 1.5 + np.sum(drawn.mean**2) / 2, 2.0 + np.sum((WEIGHTS - drawn.mean) ** 2) / 2
        about_zero = special.gammainc(2.0 + 6 / 2, rates[0] / drawn.mean_nu**2)
        places.append([about_zero, special.gammainc(3.0 + 24 / 2, rates[1] / drawn.nu**2)])
    for column in np.transpose(places):
        assert_law(column, stats.uniform.cdf)


def test_term_stays_what_is_fixed():
    rng = np.random.default_rng(0)
    papers = GibbsClassifier(3, 2, C=2.0, cost=0.5, nu=1.3)
    drawn = papers.draw_term(rng, papers.init(), WEIGHTS)
    assert (drawn.c, drawn.ell, drawn.nu) == (2.0, 0.5, 1.3)
    assert not drawn.mean.any()
    pooled = GibbsClassifier(3, 2, nu=1.3, shared_nu=7.0)
    start = pooled.init()
    drawn = pooled.draw_term(rng, start, WEIGHTS)
    assert (drawn.nu, drawn.mean_nu) == (1.3, 7.0)
    assert drawn.mean.all()
    assert not start.mean.any(), "the old term is left as it was: records may hold it"


def test_a_chain_starts_at_the_prior_precision():
    term = GibbsClassifier(3, 2, nu=(4.0, 9.0), shared_nu=(1.0, 25.0)).init()
    assert (term.nu, term.mean_nu) == (1.5, 5.0)


def test_prior_weights_scatter_about_the_shared():
    classifier = GibbsClassifier(2, 2)
    term = classifier.term(0.5, np.array([[1.0, -2.0], [0.0, 3.0]]), 1.0)
    weights = classifier.draw_prior_weights(np.random.default_rng(0), term, 20_000)
    assert_law(weights[:, 0, 1], stats.norm(-2.0, 0.5).cdf)
    assert_law(weights[:, 1, 1], stats.norm(3.0, 0.5).cdf)


@pytest.mark.parametrize("shared_nu", [None, 2.0])
def test_log_prior_is_the_normal_density(shared_nu):
    classifier = GibbsClassifier(3, 2, shared_nu=shared_nu)
    term = classifier.term(0.8, np.arange(6.0).reshape(3, 2), 2.0)
    expected = stats.norm.logpdf(WEIGHTS, term.mean, 0.8).sum()
    if shared_nu:
        expected += stats.norm.logpdf(term.mean, 0, 2.0).sum()
    assert classifier.log_prior(term, WEIGHTS) == pytest.approx(expected)


def test_check_scale_reads_a_number_or_a_pair():
    assert check_scale(2, "nu") == 2.0
    assert check_scale([1, 3], "nu") == (1.0, 3.0)
    for wrong in [0.0, -1.0, math.nan, (1.0,), "wide"]:
        with pytest.raises(ValueError, match="nu must be"):
            check_scale(wrong, "nu")


def test_more_inputs_than_there_is_time_for_are_refused():
    with pytest.raises(ValueError, match=r"10001 inputs.*\nTo mend it: .*merge rare symbols"):
        GibbsClassifier(2, 10_001)
    GibbsClassifier(2, 2000)
    GibbsClassifier(2, 10_001, softmax=True)  # no matrices
