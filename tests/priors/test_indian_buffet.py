"""The Indian buffet by its sticks: bounds and updates against brute force."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import betaln, digamma
from scipy.stats import beta

from regbayes.priors import BetaBernoulli, IndianBuffet

STICKS = np.array([[3.0, 1.5], [2.0, 0.8], [5.0, 2.5]])


def expected_logs(sticks):
    both = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - both, digamma(sticks[:, 1]) - both


def log_terms(sticks):
    """E log v_1 ... v_{i-1} (1 - v_i), in a loop."""
    log_v, log_rest = expected_logs(sticks)
    return np.array([log_v[:i].sum() + log_rest[i] for i in range(len(sticks))])


def evidence(q, prior_first, counts, n, sticks):
    """What q(v) is chosen by, with multinomials q[k] over the first k terms held fixed."""
    log_v, log_rest = expected_logs(sticks)
    a, b = sticks.T
    kl = np.sum((a - prior_first) * log_v + (b - 1) * log_rest - betaln(a, b))
    terms = log_terms(sticks)
    absent = np.array([row @ terms for row in q])
    return counts @ np.cumsum(log_v) + (n - counts) @ absent - kl


def test_features_that_are_there_by_quadrature():
    laws = [beta(*row) for row in STICKS]
    singles = [quad(lambda v, f=f: np.log(v) * f.pdf(v), 0, 1)[0] for f in laws]
    found = IndianBuffet(2.0).log_present(STICKS)
    np.testing.assert_allclose(found, np.cumsum(singles), rtol=1e-7)


def test_bound_on_absent_features_is_below_the_truth_and_close_for_sure_sticks():
    for sureness, gap in ((1.0, 0.35), (50.0, 0.01)):
        sticks, buffet = sureness * STICKS, IndianBuffet(2.0)
        first, second = (beta(*row) for row in sticks[:2])
        one = quad(lambda v: np.log1p(-v) * first.pdf(v), 0, 1)[0]  # noqa: B023
        nodes, weights = np.polynomial.legendre.leggauss(200)
        v = (nodes + 1) / 2
        two = np.log1p(-np.outer(v, v)) * np.outer(
            weights * first.pdf(v) / 2, weights * second.pdf(v) / 2
        )
        draws = beta.rvs(*sticks.T, size=(200_000, 3), random_state=0)
        three = np.log1p(-draws.prod(axis=1)).mean()
        found = buffet.log_absent(sticks)
        assert found[0] == pytest.approx(one, rel=1e-6)  # one term: no inequality
        for bound, truth in zip(found[1:], (two.sum(), three)):
            assert truth - gap < bound < truth


def test_bound_is_the_best_over_multinomials():
    terms = log_terms(STICKS)

    def minus_bound(logits):
        q = np.exp(logits - logits.max())
        q /= q.sum()
        return q @ (np.log(q) - terms)

    best = -minimize(minus_bound, np.zeros(3), tol=1e-12).fun
    assert IndianBuffet(2.0).log_absent(STICKS)[2] == pytest.approx(best, rel=1e-6)


def test_posterior_is_the_paper_s_sum_and_the_maximiser():
    alpha, n, counts = 1.7, 20, np.array([14.0, 9.5, 2.2])
    terms = log_terms(STICKS)
    q = np.zeros((3, 3))
    for k in range(3):
        q[k, : k + 1] = np.exp(terms[: k + 1]) / np.exp(terms[: k + 1]).sum()
    expected = np.empty((3, 2))
    for k in range(3):  # the sums of Doshi-Velez et al., term by term
        expected[k, 0] = alpha + counts[k:].sum()
        expected[k, 0] += sum((n - counts[m]) * q[m, k + 1 : m + 1].sum() for m in range(k + 1, 3))
        expected[k, 1] = 1 + sum((n - counts[m]) * q[m, k] for m in range(k, 3))
    found = IndianBuffet(alpha).posterior(counts, n, STICKS)
    np.testing.assert_allclose(found, expected, rtol=1e-12)

    best = minimize(
        lambda log_sticks: -evidence(q, alpha, counts, n, np.exp(log_sticks).reshape(3, 2)),
        np.zeros(6),
        tol=1e-10,
    )
    np.testing.assert_allclose(np.exp(best.x).reshape(3, 2), expected, rtol=1e-3)


def test_many_features_and_items_stay_finite():
    buffet, sticks = IndianBuffet(5.0), IndianBuffet(5.0).start(1000)
    counts = np.where(np.arange(1000) < 30, 9e5, 0.0)
    for _ in range(50):
        sticks = buffet.posterior(counts, 1e6, sticks)
        assert np.isfinite(sticks).all()
        assert (sticks > 0).all()
    odds = buffet.log_odds(sticks)
    assert np.isfinite(odds).all()
    assert (np.diff(odds) <= 1e-9).all()
    assert odds[20] > 0
    assert odds[40] < -3
    assert odds[-1] < -8


def test_beta_bernoulli_by_quadrature():
    prior, counts, n = BetaBernoulli(1.2), np.array([3.0, 0.4]), 8
    sticks = prior.posterior(counts, n, prior.start(2))
    for (a, b), count, odds in zip(sticks, counts, prior.log_odds(sticks)):

        def density(p, count=count):
            return p ** (0.6 - 1 + count) * (1 - p) ** (n - count)

        mass = quad(density, 0, 1)[0]
        expected = quad(lambda p: np.log(p / (1 - p)) * density(p), 0, 1)[0] / mass
        assert odds == pytest.approx(expected, rel=1e-5)
        assert (a, b) == (0.6 + count, 1 + n - count)


@pytest.mark.parametrize("prior", [IndianBuffet, BetaBernoulli])
@pytest.mark.parametrize("bad", [0, -1.0, np.inf, "many", True])
def test_concentrations_must_be_positive_numbers(prior, bad):
    with pytest.raises(ValueError, match="concentration must be a positive"):
        prior(bad)
