"""The Gamma prior, its conjugate-by-augmentation update, and how users write concentrations."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from regbayes.priors import Fixed, GammaPrior, as_concentration_prior
from tests.helpers import P_VALUE, assert_law, ks_p_value


@pytest.mark.parametrize(("shape", "rate"), [(0.5, 2.0), (1.0, 1.0), (7.0, 1e-6), (3.0, 1e6)])
def test_gamma_prior_is_scipys(shape, rate):
    prior, law = GammaPrior(shape, rate), stats.gamma(shape, scale=1 / rate)
    rng = np.random.default_rng(0)
    draws = np.array([prior.draw(rng) for _ in range(2_000)])
    assert_law(draws, law.cdf)
    np.testing.assert_allclose(prior.log_density(draws), law.logpdf(draws), rtol=1e-9, atol=1e-9)
    assert prior.mean == pytest.approx(law.mean())
    assert prior.log_density(0.0) == prior.log_density(-1.0) == -np.inf


class GridPosterior:
    """p(alpha | data) on a fine grid, exact up to quadrature; in log alpha, to be well spread."""

    def __init__(self, prior, n_components, sizes):
        y = np.linspace(-25, 12, 200_001)
        alpha = np.exp(y)
        log_p = prior.log_density(alpha) + n_components * y + y  # last y: Jacobian
        for n in sizes:
            log_p += gammaln(alpha) - gammaln(alpha + n)
        p = np.exp(log_p - log_p.max())
        cumulative = np.concatenate([[0], np.cumsum((p[1:] + p[:-1]) / 2)])
        self.y, self.cumulative = y, cumulative / cumulative[-1]

    def cdf(self, alpha):
        return np.interp(np.log(alpha), self.y, self.cumulative)

    def draw(self, n, rng):
        keep = np.concatenate([[True], np.diff(self.cumulative) > 0])
        return np.exp(np.interp(rng.random(n), self.cumulative[keep], self.y[keep]))


CASES = [
    ((1.0, 1.0), 1, [1]),
    ((1.0, 1.0), 3, [10]),
    ((2.0, 0.5), 40, [50]),
    ((0.3, 2.0), 1, [1000]),
    ((1.0, 1.0), 12, [30, 0, 5, 8]),  # three non-empty restaurants sharing alpha
]


@pytest.mark.parametrize(("pair", "n_components", "sizes"), CASES)
def test_update_leaves_the_posterior_invariant(pair, n_components, sizes):
    """Exact draws before the update are exact draws after it, and they have moved."""
    prior = GammaPrior(*pair)
    target = GridPosterior(prior, n_components, sizes)
    rng = np.random.default_rng(1)
    before = target.draw(4_000, rng)
    after = [prior.draw_concentration(a, n_components, sizes, rng) for a in before]
    assert_law(after, target.cdf)
    assert abs(np.corrcoef(np.log(before), np.log(after))[0, 1]) < 0.9


@pytest.mark.parametrize("start", [1e-6, 1e6])
def test_update_forgets_its_start(start):
    prior = GammaPrior(1.0, 1.0)
    rng = np.random.default_rng(2)
    draws = []
    for _ in range(1_000):
        alpha = start
        for _ in range(10):
            alpha = prior.draw_concentration(alpha, 4, 30, rng)
        draws.append(alpha)
    assert_law(draws, GridPosterior(prior, 4, [30]).cdf)


def test_the_check_catches_a_forgotten_indicator():
    """Gamma(shape + k) instead of the mixture with Gamma(shape + k - 1) is a common slip."""
    prior, rng = GammaPrior(1.0, 1.0), np.random.default_rng(1)
    target = GridPosterior(prior, 3, [10])
    wrong = [
        rng.gamma(1.0 + 3) / (1.0 - np.log(rng.beta(a + 1, 10))) for a in target.draw(4_000, rng)
    ]
    assert ks_p_value(wrong, target.cdf) < P_VALUE


def test_update_without_points_is_a_prior_draw():
    rng = np.random.default_rng(3)
    draws = [GammaPrior(2.0, 3.0).draw_concentration(5.0, 0, 0, rng) for _ in range(2_000)]
    assert_law(draws, stats.gamma(2.0, scale=1 / 3).cdf)


@pytest.mark.parametrize("alpha", [1e-300, 1e-12, 1e12, 1e300])
def test_update_survives_extremes(alpha):
    rng = np.random.default_rng(4)
    for n_components, n_points in [(1, 1), (1, 10**9), (10**9, 10**9)]:
        assert (
            0 < GammaPrior(1.0, 1.0).draw_concentration(alpha, n_components, n_points, rng) < np.inf
        )


def test_update_refuses_impossible_counts():
    with pytest.raises(ValueError, match="non-empty group"):
        GammaPrior(1.0, 1.0).draw_concentration(1.0, 1, [3, 4], np.random.default_rng(0))


def test_fixed_stays():
    rng = np.random.default_rng(0)
    prior = Fixed(2.5)
    assert prior.draw(rng) == prior.mean == prior.draw_concentration(9.0, 3, 10, rng) == 2.5
    np.testing.assert_array_equal(prior.log_density([2.5, 1.0]), [0.0, -np.inf])


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0)])
def test_a_number_fixes(value):
    assert as_concentration_prior(value, "alpha") == Fixed(2.0)


@pytest.mark.parametrize(
    "value", [(1, 0.5), [1, 0.5], np.array([1, 0.5]), (np.float64(1), np.float32(0.5))]
)
def test_a_pair_is_a_gamma_prior(value):
    assert as_concentration_prior(value, "alpha") == GammaPrior(1.0, 0.5)


@pytest.mark.parametrize(
    "value",
    [
        *[0, -1.0, np.nan, np.inf, 1j, True, None, "1", "ab", {1: 2, 3: 4}],
        *[(1,), (1, 2, 3), (1, -1), (1, np.inf), (1, "2"), (True, True)],
        *[np.ones(3), np.ones((2, 2))],
    ],
)
def test_anything_else_is_refused_by_name_and_with_a_remedy(value):
    with pytest.raises(ValueError, match=r"my_alpha must be .* my_alpha=1\.0"):
        as_concentration_prior(value, "my_alpha")


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (-1, 1), (1, np.nan)])
def test_gamma_prior_refuses_improper_parameters(pair):
    with pytest.raises(ValueError, match="positive finite"):
        GammaPrior(*pair)
