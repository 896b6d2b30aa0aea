"""Shared checks: the contract of sequences; a draw against the law it claims."""

import numpy as np
import pytest
from scipy import special, stats

from regbayes.testing import sequence_checks

# What of the contract of sequences looks at odd values. The rest looks at layouts, parameters and
# company, whose code all variants of an estimator share.
_ODD = ("constant", "units", "far", "missing", "unlike", "one_step", "unobserved")


def contract(models, besides=()):
    """The checks of sequence estimators by name; of those in `besides`, most of them are slow."""
    return [
        pytest.param(
            check,
            id=f"{name}-{label}",
            marks=pytest.mark.slow
            if name in besides and not any(word in label for word in _ODD)
            else (),
        )
        for name, model in models.items()
        for label, check in sequence_checks(model)
    ]


# Seeds are fixed, so this is a threshold and not a rate of false alarms.
P_VALUE = 1e-4


def ks_p_value(draws, cdf):
    """p-value of Kolmogorov-Smirnov; `cdf` is any vectorised distribution function."""
    return stats.kstest(np.asarray(draws), cdf).pvalue


def assert_law(draws, cdf):
    p_value = ks_p_value(draws, cdf)
    assert p_value > P_VALUE, f"the draws do not follow the law: p = {p_value:.2g}"


def assert_pmf(draws, pmf):
    """Chi-squared test of integer draws against probabilities of 0, 1, ..., rare ones pooled."""
    observed = np.bincount(draws, minlength=len(pmf))
    assert len(observed) == len(pmf), "a draw lies outside the support"
    assert not observed[np.asarray(pmf) == 0].any(), "a draw has probability zero"
    expected = np.asarray(pmf) / np.sum(pmf) * len(draws)
    # The chi-squared law needs some ten expected in each bin: pool the rare ones, and add the
    # pool to the smallest of the others if it is still too small.
    rare = expected < 10
    counts = np.column_stack([observed, expected])
    pool, counts = counts[rare].sum(axis=0), counts[~rare]
    if pool[1] < 10:
        counts[counts[:, 1].argmin()] += pool
    else:
        counts = np.vstack([counts, pool])
    assert len(counts) > 1, "one bin tests nothing: draw more"
    observed, expected = counts.T
    p_value = stats.chisquare(observed, expected).pvalue
    assert p_value > P_VALUE, f"the draws do not follow the law: p = {p_value:.2g}"


def inverse_gaussian_cdf(x, mean, shape):
    """Distribution function of IG(mean, shape) for any ratio mean / shape.

    The textbook's second term exp(2 shape / mean) ndtr(-b) overflows; with b^2 = a^2 + 4 shape/mean
    it is exp(-a^2 / 2) erfcx(b / sqrt 2) / 2.
    """
    x = np.asarray(x, dtype=float)
    root = np.sqrt(shape / x)
    a = root * ((x - mean) / mean)
    b = root * (x / mean + 1)
    return special.ndtr(a) + 0.5 * np.exp(-0.5 * a * a) * special.erfcx(b * np.sqrt(0.5))


def log_gamma_cdf(y, shape):
    """Distribution function of log Gamma(shape, 1), also where exp(y) underflows.

    For small x, P(a, x) = x^a / Gamma(a + 1) to first order in x.
    """
    y = np.asarray(y, dtype=float)
    tail = np.exp(shape * np.minimum(y, -40) - special.gammaln(shape + 1))
    return np.where(y < -40, tail, special.gammainc(shape, np.exp(np.maximum(y, -40))))


def random_covariance(rng, m):
    root = rng.standard_normal((m, m + 2))
    return root @ root.T / m
