"""What exponential families with hidden variables share: expectations, and shares of counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Expected(NamedTuple):
    """Posterior expectations of samples: all that is learnt from them, and all that scores show.

    Attributes
    ----------
    statistics : ndarray of shape (n_samples, n_segments, n_statistics)
    log_likelihoods : ndarray of shape (n_samples,)
        Logarithms of the normalisers: log p(x) without a tilt.
    entropies : ndarray of shape (n_samples, n_segments, n_hidden)
        -E[log q], in the terms of the hidden part of the statistics; empty if not asked for.
    """

    statistics: NDArray
    log_likelihoods: NDArray
    entropies: NDArray


def log_shares(counts: NDArray, allowed: NDArray, pseudocount: float) -> NDArray:
    """Logarithms of the shares of (..., n) counts, each with a pseudocount where it is allowed.

    A row that saw nothing is even: no NaN comes out of an empty state.
    """
    total = np.where(allowed, counts + pseudocount, 0.0)
    sums = total.sum(axis=-1, keepdims=True)
    total = np.where(sums > 0, total, allowed)
    with np.errstate(divide="ignore"):
        return np.log(total / total.sum(axis=-1, keepdims=True))


def share_gradient(counts: NDArray, shares: NDArray) -> NDArray:
    """d/d theta of sum counts log(theta / sum theta) at theta = shares; zero where shares are."""
    possible = shares > 0
    ratio = np.divide(counts, shares, out=np.zeros_like(counts), where=possible)
    return np.where(possible, ratio - counts.sum(axis=-1, keepdims=True), 0.0)
