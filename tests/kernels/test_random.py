"""Each draw against the exact law, over the decades where naive formulas break."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy import special, stats

from regbayes.kernels import random as kr
from tests.helpers import (
    P_VALUE,
    assert_law,
    assert_pmf,
    inverse_gaussian_cdf,
    ks_p_value,
    log_gamma_cdf,
    random_covariance,
)

SIZES = [
    pytest.param(20_000, id="fast"),
    pytest.param(300_000, marks=pytest.mark.slow, id="slow"),
]
exponents = st.floats(-300, 300)
seeds = st.integers(0, 2**32 - 1)
contract = settings(max_examples=200, deadline=None, derandomize=True)


@cache
def loop(draw):
    """A compiled loop: to pass a Generator from Python costs 10 us, a hundred times the draw."""

    @njit
    def fill(rng, out, args):
        for i in range(len(out)):
            out[i] = draw(rng, *args)

    return fill


@cache
def loop_rows(draw):
    @njit
    def fill(rng, out, args):
        for i in range(len(out)):
            draw(rng, *(args + (out[i],)))  # noqa: RUF005 - numba knows only this form

    return fill


def many(draw, n, seed, *args, dtype=float):
    """n scalar draws from one stream."""
    out = np.empty(n, dtype)
    loop(draw)(np.random.default_rng(seed), out, args)
    return out


def many_rows(draw, n, seed, shape, *args):
    """n array draws from one stream; `draw` fills its last argument."""
    out = np.empty((n, *shape))
    loop_rows(draw)(np.random.default_rng(seed), out, args)
    return out


# ------------------------------------------------------------------------------ inverse Gaussian


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("decade", [-8, -4, -2, -1, 0, 1, 2, 4, 7, 9, 12, 16, 20])
def test_inverse_gaussian_follows_its_law(decade, shape, n):
    mean = shape * 10.0**decade
    draws = many(kr.draw_inverse_gaussian, n, 100 + decade, mean, shape)
    assert_law(draws, lambda x: inverse_gaussian_cdf(x, mean, shape))


@pytest.mark.parametrize("mean", [1e-2, 1.0, 1e2])
def test_inverse_gaussian_agrees_with_scipy(mean):
    """The distribution function used above is SciPy's where SciPy's is right."""
    draws = many(kr.draw_inverse_gaussian, 2_000, 7, mean, 3.0)
    law = stats.invgauss(mu=mean / 3.0, scale=3.0)
    np.testing.assert_allclose(
        inverse_gaussian_cdf(draws, mean, 3.0), law.cdf(draws), rtol=1e-9, atol=1e-12
    )
    assert_law(draws, law.cdf)


@pytest.mark.parametrize("mean", [1e20, 1e100, 1e200, 1e300])
def test_inverse_gaussian_becomes_levy(mean):
    assert_law(many(kr.draw_inverse_gaussian, 2_000, 8, mean, 1.0), stats.levy.cdf)


@pytest.mark.parametrize(("mean", "shape"), [(1e-300, 1e-290), (1e300, 1e306), (1e-9, 1.0)])
def test_inverse_gaussian_becomes_normal(mean, shape):
    """mean << shape: the relative deviation is normal with variance mean / shape."""
    draws = many(kr.draw_inverse_gaussian, 2_000, 9, mean, shape)
    assert_law((draws / mean - 1) / np.sqrt(mean / shape), stats.norm.cdf)


@given(seeds, exponents, exponents)
@contract
def test_inverse_gaussian_is_positive_and_finite(seed, log_mean, log_shape):
    draws = many(kr.draw_inverse_gaussian, 20, seed, 10.0**log_mean, 10.0**log_shape)
    assert np.all(draws > 0)
    assert np.all(np.isfinite(draws))


@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_inverse_gaussian_upper_tail(mean):
    """Draws above the mean are rare and carry most of the expectation: a law of their own."""
    draws = many(kr.draw_inverse_gaussian, 2_000_000, 10, mean, 1.0)
    above = draws[draws > mean]
    below = inverse_gaussian_cdf(mean, mean, 1.0)
    count = stats.binomtest(len(above), len(draws), 1 - below)
    assert count.pvalue > P_VALUE
    assert_law(above, lambda x: (inverse_gaussian_cdf(x, mean, 1.0) - below) / (1 - below))


class Dice:
    """A generator that throws what it is told, to reach events of probability 2**-53."""

    def __init__(self, uniform, normal=0.0):
        self.random, self.standard_normal = lambda: uniform, lambda: normal


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
@pytest.mark.parametrize("normal", [0.0, 1e-20, 9.0])
@pytest.mark.parametrize(("mean", "shape"), [(1e300, 1e-300), (1e-300, 1e300), (1e300, 1.0)])
def test_inverse_gaussian_survives_the_rarest_throws(mean, shape, normal, uniform):
    x = kr.draw_inverse_gaussian.py_func(Dice(uniform, normal), mean, shape)
    assert 0 < x <= mean * (1 + 1e-12)  # the large root is never due here


@njit
def textbook_inverse_gaussian(rng, mean, shape):
    """What not to do: the small root by subtraction, as in Michael, Schucany & Haas (1976)."""
    y = mean * rng.standard_normal() ** 2
    x = mean + mean / (2 * shape) * (y - np.sqrt(4 * shape * y + y * y))
    return x if rng.random() <= mean / (mean + x) else mean * mean / x


@njit
def library_wald(rng, mean, shape):
    return rng.wald(mean, shape)


def test_the_checks_catch_the_textbook_root():
    bad = many(textbook_inverse_gaussian, 2_000, 108, 1e8, 1.0)
    assert np.any(bad <= 0)
    # Throwing the zeros away, as some samplers do, does not mend the law.
    assert ks_p_value(bad[bad > 0], lambda x: inverse_gaussian_cdf(x, 1e8, 1.0)) < P_VALUE
    # ... while the same check accepts it where it is right.
    good = many(textbook_inverse_gaussian, 2_000, 100, 1.0, 1.0)
    assert_law(good, lambda x: inverse_gaussian_cdf(x, 1.0, 1.0))


def test_the_checks_catch_numba_wald():
    bad = many(library_wald, 2_000, 109, 1e9, 1.0)
    assert not np.all(bad > 0)


# ------------------------------------------------------------------------------------------ gamma


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("decade", [-300, -100, -20, -12, -9, -6, -3, -1, 0, 1, 3, 6, 9])
def test_log_gamma_follows_its_law(decade, n):
    shape = 2.0 * 10.0**decade
    draws = many(kr.draw_log_gamma, n, 300 + decade, shape)
    assert np.all(np.isfinite(draws))
    assert_law(draws, lambda y: log_gamma_cdf(y, shape))


def test_log_gamma_becomes_normal():
    draws = many(kr.draw_log_gamma, 2_000, 12, 1e12)
    assert_law((draws - np.log(1e12)) * 1e6, stats.norm.cdf)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 7.5, 1e3, 1e6, 1e9])
def test_gamma_follows_its_law(shape, n):
    draws = many(kr.draw_gamma, n, 13, shape)
    law, floor = stats.gamma(shape), np.finfo(float).tiny
    assert draws.min() >= floor
    # Shape 0.01 has a mass of exp(-7) below the floor; above it the law is the truncated one.
    below = law.cdf(floor)
    assert_law(draws[draws > floor], lambda x: (law.cdf(x) - below) / (1 - below))


@given(seeds, exponents)
@contract
def test_gamma_is_positive_and_finite(seed, log_shape):
    draws = many(kr.draw_gamma, 20, seed, 10.0**log_shape)
    assert np.all(draws > 0)
    assert np.all(np.isfinite(draws))
    assert np.all(np.isfinite(many(kr.draw_log_gamma, 20, seed, 10.0**log_shape)))


# -------------------------------------------------------------------------------------- Dirichlet


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [1e-1, 1.0, 1e2, 1e4, 1e6])
def test_dirichlet_marginals_are_beta(scale, n):
    concentration = scale * np.array([0.5, 1.0, 3.0])
    draws = many_rows(kr.draw_dirichlet, n, 20, (3,), concentration)
    for k in range(3):
        a, b = concentration[k], np.delete(concentration, k).sum()
        p, rest = draws[:, k], np.delete(draws, k, axis=1).sum(axis=1)
        # From the side of zero: near one a sparse law has more mass than floats can resolve.
        u = np.where(p < 0.5, stats.beta(a, b).cdf(p), stats.beta(b, a).sf(rest))
        assert_law(u, stats.uniform.cdf)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [1e-3, 1e-12, 1e-100, 1e-300])
def test_sparse_log_dirichlet_follows_its_law(scale, n):
    """Entry k takes all with probability a_k / sum(a) up to terms of order a; and for Beta(a, 1)
    -a log p is a standard exponential, exactly."""
    concentration = scale * np.array([1.0, 2.0, 5.0])
    draws = many_rows(kr.draw_log_dirichlet, n, 21, (3,), concentration)
    assert_pmf(draws.argmax(axis=1), concentration / concentration.sum())
    pairs = many_rows(kr.draw_log_dirichlet, n, 22, (2,), np.array([scale, 1.0]))
    assert_law(-scale * pairs[:, 0], stats.expon.cdf)


def test_dirichlet_with_a_zero_entry_is_the_smaller_dirichlet():
    concentration = np.array([0.0, 2.0, 3.0])
    logs = many_rows(kr.draw_log_dirichlet, 2_000, 23, (3,), concentration)
    assert np.all(logs[:, 0] == -np.inf)
    assert_law(np.exp(logs[:, 1]), stats.beta(2, 3).cdf)


@given(seeds, st.lists(st.one_of(exponents, st.just(-np.inf)), min_size=1, max_size=8), exponents)
@contract
def test_dirichlet_is_on_the_simplex(seed, logs, one_positive):
    concentration = 10.0 ** np.array([*logs, one_positive])
    rng = np.random.default_rng(seed)
    out = np.empty(len(concentration))
    kr.draw_dirichlet(rng, concentration, out)
    assert np.all(out >= 0)
    assert out.sum() == pytest.approx(1, abs=1e-14)
    kr.draw_log_dirichlet(rng, concentration, out)
    assert special.logsumexp(out) == pytest.approx(0, abs=1e-13)
    np.testing.assert_array_equal(np.isneginf(out), concentration == 0)


# ------------------------------------------------------------------------------------ categorical


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("offset", [0.0, -1e9, 1e9, 700.0, -1e5])
def test_categorical_follows_its_law(offset, n):
    p = np.array([0.4, 0.0, 0.1, 0.25, 0.0, 0.25])
    log_weights = np.full(6, -np.inf)
    log_weights[p > 0] = np.log(p[p > 0]) + offset
    # At 1e9 the weights themselves keep seven decimals.
    draws = many(kr.draw_categorical, n, 30, log_weights, dtype=int)
    assert_pmf(draws, p)


@given(seeds, st.lists(st.one_of(st.floats(-1e300, 1e300), st.just(-np.inf)), max_size=6))
@contract
def test_categorical_never_draws_the_impossible(seed, weights):
    log_weights = np.array(weights, dtype=float)
    k = kr.draw_categorical(np.random.default_rng(seed), log_weights)
    if np.all(np.isneginf(log_weights)):
        assert k == -1
    else:
        assert 0 <= k < len(weights)
        assert log_weights[k] > -np.inf


def test_categorical_never_draws_the_impossible_even_by_rounding():
    """u * total may round up to total; the last possible index is the answer, not the last."""
    log_weights = np.array([-np.inf, 0.0, 0.0, -np.inf])
    assert kr.draw_categorical.py_func(Dice(1.0), log_weights) == 2
    assert kr.draw_categorical.py_func(Dice(0.0), log_weights) == 1


def test_table_count_survives_a_zero_uniform():
    assert kr.draw_table_count.py_func(Dice(0.0), 10, 1e-300) == 1


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_categorical_reports_a_broken_weight(broken, place):
    log_weights = np.zeros(3)
    log_weights[place] = broken
    assert kr.draw_categorical(np.random.default_rng(0), log_weights) == -1


# ------------------------------------------------------------------------------------ table counts


def antoniak_pmf(n, concentration):
    """P(m tables), m = 0..n, by convolving the Bernoullis: |s(n, m)| a^m / (a)_n."""
    pmf = np.ones(1)
    for i in range(n):
        p = concentration / (concentration + i)
        pmf = np.convolve(pmf, [1 - p, p])
    return pmf


def test_antoniak_pmf_is_stirling():
    unsigned_stirling = np.array([0, 24, 50, 35, 10, 1])
    expected = unsigned_stirling * 0.7 ** np.arange(6)
    np.testing.assert_allclose(antoniak_pmf(5, 0.7), expected / expected.sum())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("concentration", [1e-3, 0.1, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("n", [2, 5, 20])
def test_table_count_follows_its_law(n, concentration, size):
    draws = many(kr.draw_table_count, size, 40 + n, n, concentration, dtype=int)
    assert_pmf(draws, antoniak_pmf(n, concentration))


@pytest.mark.parametrize("concentration", [1.0, 100.0])
def test_table_count_of_many_customers(concentration):
    draws = many(kr.draw_table_count, 2_000, 41, 20_000, concentration, dtype=int)
    p = concentration / (concentration + np.arange(20_000))
    mean, variance = p.sum(), (p * (1 - p)).sum()
    z = (draws.mean() - mean) / np.sqrt(variance / len(draws))
    assert abs(z) < 4
    ratio = draws.var(ddof=1) / variance  # sd of a sample variance is about sqrt(2 / n)
    assert abs(ratio - 1) < 4 * np.sqrt(2 / len(draws))


@given(seeds, st.integers(0, 50), exponents)
@contract
def test_table_count_is_possible(seed, n, log_concentration):
    m = kr.draw_table_count(np.random.default_rng(seed), n, 10.0**log_concentration)
    assert min(n, 1) <= m <= n
    if log_concentration < -20:
        assert m == min(n, 1)
    if log_concentration > 20:
        assert m == n


# --------------------------------------------------------------------- normal and inverse Wishart


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_normal_precision_projections_are_normal(m, scale, n):
    rng = np.random.default_rng(50 + m)
    precision = scale * random_covariance(rng, m)
    linear = np.sqrt(scale) * rng.standard_normal(m)
    chol = np.linalg.cholesky(precision)
    draws = many_rows(kr.draw_normal_precision, n, 51, (m,), linear, chol)
    covariance = np.linalg.inv(precision)
    for direction in [np.eye(m)[0], np.ones(m), rng.standard_normal(m)]:
        mean = direction @ covariance @ linear
        sd = np.sqrt(direction @ covariance @ direction)
        assert_law(draws @ direction, stats.norm(mean, sd).cdf)


def test_normal_precision_whitened_is_standard_normal():
    """The whole vector, not only its projections: squared length is chi-squared."""
    rng = np.random.default_rng(52)
    chol = np.linalg.cholesky(random_covariance(rng, 4))
    draws = many_rows(kr.draw_normal_precision, 2_000, 53, (4,), np.zeros(4), chol)
    assert_law(((draws @ chol) ** 2).sum(axis=1), stats.chi2(4).cdf)


def test_normal_precision_may_write_over_its_input():
    chol = np.linalg.cholesky(random_covariance(np.random.default_rng(1), 3))
    linear, out = np.array([1.0, -2.0, 0.5]), np.empty(3)
    kr.draw_normal_precision(np.random.default_rng(2), linear, chol, out)
    kr.draw_normal_precision(np.random.default_rng(2), linear, chol, linear)
    np.testing.assert_array_equal(linear, out)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("excess", [0.2, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_inverse_wishart_projections(m, excess, n):
    """v'Σv is inverse gamma and v'Σ^-1 v / v'S^-1 v is chi-squared, for every v."""
    df = m - 1 + excess
    rng = np.random.default_rng(60 + m)
    scale = random_covariance(rng, m)
    chol = np.linalg.cholesky(scale)
    factors = many_rows(kr.draw_inverse_wishart, n, 61, (m, m), df, chol)
    np.testing.assert_array_equal(factors, np.tril(factors))
    assert np.all(np.diagonal(factors, axis1=1, axis2=2) > 0)
    for v in [np.eye(m)[0], np.eye(m)[-1], rng.standard_normal(m)]:
        quadratic = ((v @ factors) ** 2).sum(axis=-1)
        assert_law(quadratic, stats.invgamma((df - m + 1) / 2, scale=v @ scale @ v / 2).cdf)
        whitened = np.linalg.solve(factors, np.broadcast_to(v, (n, m))[..., None])[..., 0]
        ratio = (whitened**2).sum(axis=-1) / (v @ np.linalg.solve(scale, v))
        assert_law(ratio, stats.chi2(df).cdf)


def test_inverse_wishart_mean():
    """E[Σ] = S / (df - M - 1), off the diagonal too."""
    m, df, n = 3, 30.0, 4_000
    scale = random_covariance(np.random.default_rng(62), m)
    factors = many_rows(kr.draw_inverse_wishart, n, 63, (m, m), df, np.linalg.cholesky(scale))
    draws = factors @ factors.swapaxes(1, 2)
    z = (draws.mean(axis=0) - scale / (df - m - 1)) / (draws.std(axis=0) / np.sqrt(n))
    assert np.abs(z).max() < 4


def test_draws_depend_on_the_generator_alone():
    first = many(kr.draw_inverse_gaussian, 10, 5, 2.0, 1.0)
    np.random.seed(0)  # noqa: NPY002 - the global state must not matter
    np.testing.assert_array_equal(first, many(kr.draw_inverse_gaussian, 10, 5, 2.0, 1.0))
