"""Priors on which features an item has: the Indian buffet by its sticks, and its finite relative.

Both answer the same questions about mean field, ``q(pi) q(z)`` with independent Beta laws: what
the Beta parameters become when feature `k` is expected in ``counts[k]`` of `n` items, and how
likely the feature is, as log odds that an item's own evidence is added to.

References
----------
- Griffiths & Ghahramani (2006). Infinite latent feature models and the Indian buffet process. NIPS.
- Teh, Görür & Ghahramani (2007). Stick-breaking construction for the Indian buffet process.
  AISTATS.
- Doshi-Velez, Miller, Van Gael & Teh (2009). Variational inference for the Indian buffet process.
  AISTATS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma

from regbayes.priors._common import Array, check_positive


@dataclass(frozen=True)
class IndianBuffet:
    """Features of probability ``pi_k = prod_{j<=k} v_j`` with ``v_j ~ Beta(concentration, 1)``.

    Probabilities fall with `k`, so that a truncation leaves out the rarest features; an item has
    `concentration` features on average.

    Examples
    --------
    >>> buffet = IndianBuffet(2.0)
    >>> sticks = buffet.start(4)
    >>> for _ in range(20):
    ...     sticks = buffet.posterior([50, 20, 0.1, 0.1], 100, sticks)
    >>> buffet.log_odds(sticks).round(1)
    array([-0. , -1.4, -4.6, -5.2])
    """

    concentration: float

    def __post_init__(self) -> None:
        value = check_positive(self.concentration, "concentration")
        object.__setattr__(self, "concentration", value)

    def start(self, n_features: int) -> Array:
        """Beta parameters of the sticks before any data."""
        return np.tile([self.concentration, 1.0], (n_features, 1))

    def expected(self, n_features: int) -> Array:
        """E[pi_k] before any data."""
        share = self.concentration / (1.0 + self.concentration)
        return np.cumprod(np.full(n_features, share))

    def log_present(self, sticks: Any) -> Array:
        """E[log pi_k], the tau2 of the papers."""
        log_stick, _ = _expected_logs(sticks)
        return np.cumsum(log_stick)

    def log_absent(self, sticks: Any) -> Array:
        """E[log(1 - pi_k)], tau1, from below by the multinomial bound of Doshi-Velez et al.

        ``1 - pi_k = sum_{i<=k} v_1 ... v_{i-1} (1 - v_i)``; the tightest multinomial over these
        terms makes of Jensen's inequality the log-sum-exp of their expected logarithms.
        """
        return np.logaddexp.accumulate(_log_ends(sticks))

    def log_odds(self, sticks: Any) -> Array:
        """tau2 - tau1: what the prior says about a feature of an item."""
        return self.log_present(sticks) - self.log_absent(sticks)

    def posterior(self, counts: Any, n: float, sticks: Any) -> Array:
        """Beta parameters that are best for these counts, the multinomial bound taken at `sticks`.

        The sums over multinomials q_mi = exp(end_i - absent_m) of the paper, all by cumulation.
        """
        counts = np.asarray(counts, dtype=np.float64)
        ends, absent = _log_ends(sticks), self.log_absent(sticks)
        without = np.maximum(n - counts, 0.0)
        from_k = _sums_from(without * np.exp(-absent))
        after_k = np.append(from_k[1:], 0.0)
        kept = np.append(_sums_from(without)[1:], 0.0) - np.exp(absent) * after_k
        first = self.concentration + _sums_from(counts) + np.maximum(kept, 0.0)
        return np.column_stack([first, 1.0 + np.exp(ends) * from_k])


@dataclass(frozen=True)
class BetaBernoulli:
    """Features of probability ``pi_k ~ Beta(concentration / K, 1)``, K of them.

    As K grows this becomes the Indian buffet (Griffiths & Ghahramani 2006).

    Examples
    --------
    >>> prior = BetaBernoulli(2.0)
    >>> prior.posterior([50, 0], 100, prior.start(2))
    array([[ 51.,  51.],
           [  1., 101.]])
    """

    concentration: float

    def __post_init__(self) -> None:
        value = check_positive(self.concentration, "concentration")
        object.__setattr__(self, "concentration", value)

    def start(self, n_features: int) -> Array:
        """Beta parameters before any data."""
        return np.tile([self.concentration / n_features, 1.0], (n_features, 1))

    def expected(self, n_features: int) -> Array:
        """E[pi_k] before any data."""
        return np.full(n_features, self.concentration / (n_features + self.concentration))

    def log_odds(self, sticks: Any) -> Array:
        """E[log pi_k] - E[log(1 - pi_k)]."""
        log_present, log_absent = _expected_logs(sticks)
        return log_present - log_absent

    def posterior(self, counts: Any, n: float, sticks: Any) -> Array:
        """The conjugate update; `sticks` is asked for because a buffet needs it."""
        counts = np.asarray(counts, dtype=np.float64)
        return self.start(len(counts)) + np.column_stack([counts, np.maximum(n - counts, 0.0)])


def _expected_logs(sticks: Any) -> tuple[Array, Array]:
    """E[log v] and E[log(1 - v)] of Beta laws."""
    sticks = np.asarray(sticks, dtype=np.float64)
    both = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - both, digamma(sticks[:, 1]) - both


def _log_ends(sticks: Any) -> Array:
    """E[log(v_1 ... v_{k-1} (1 - v_k))]: the stick is broken off at k."""
    log_stick, log_rest = _expected_logs(sticks)
    return log_rest + np.concatenate([[0.0], np.cumsum(log_stick)[:-1]])


def _sums_from(values: Array) -> Array:
    return np.cumsum(values[::-1])[::-1]
