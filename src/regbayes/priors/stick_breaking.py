"""Stick-breaking representation of the Dirichlet process.

References
----------
- Sethuraman (1994). A constructive definition of Dirichlet priors. Statistica Sinica 4.
- Blei & Jordan (2006). Variational inference for Dirichlet process mixtures. Bayesian
  Analysis 1(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma

from regbayes.priors._common import Array, check_positive


@dataclass(frozen=True)
class StickBreaking:
    """Weights ``w_k = v_k prod_{j<k} (1 - v_j)`` with ``v_k ~ Beta(1, concentration)``.

    Examples
    --------
    >>> import numpy as np
    >>> weights, leftover = StickBreaking(1.0).draw_weights(4, np.random.default_rng(0))
    >>> bool(np.isclose(weights.sum() + leftover, 1.0))
    True
    >>> StickBreaking(1.0).posterior([5, 2, 0])
    array([[6., 3.],
           [3., 1.],
           [1., 1.]])
    """

    concentration: float

    def __post_init__(self) -> None:
        value = check_positive(self.concentration, "concentration")
        object.__setattr__(self, "concentration", value)

    def draw_weights(self, n_sticks: int, rng: np.random.Generator) -> tuple[Array, float]:
        """The first weights and the leftover of the stick; together they sum to one."""
        # -log(1 - v) is exponential with rate alpha: nothing underflows before the weight does.
        steps = rng.standard_exponential(n_sticks) / self.concentration
        left = np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))
        return -left[:-1] * np.expm1(-steps), float(left[-1])

    def posterior(self, counts: Any) -> Array:
        """Beta parameters of the sticks given (expected) counts of K components.

        Row k is ``(1 + counts[k], concentration + counts[k + 1:].sum())`` (Blei & Jordan 2006).
        Counts of shape (..., K) are those of many sticks, whose parameters are (..., K, 2).
        """
        counts = np.asarray(counts, dtype=np.float64)
        after = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1] - counts
        # The difference above may round below zero for fractional counts.
        return np.stack([1.0 + counts, self.concentration + np.maximum(after, 0.0)], axis=-1)

    def expected_weights(self, beta_parameters: Any) -> Array:
        """E[w_k] under independent Beta sticks, the last of which takes all that is left.

        Examples
        --------
        >>> StickBreaking(1.0).expected_weights([[1, 1], [1, 1], [1, 1]])
        array([0.5 , 0.25, 0.25])
        """
        beta_parameters = np.asarray(beta_parameters, dtype=np.float64)
        sticks = beta_parameters[..., 0] / beta_parameters.sum(axis=-1)
        sticks[..., -1] = 1.0
        left = np.cumprod(1.0 - sticks, axis=-1)
        sticks[..., 1:] *= left[..., :-1]
        return sticks

    def expected_log_weights(self, beta_parameters: Any, truncated: bool = True) -> Array:
        """E[log w_k] under independent Beta sticks.

        Parameters
        ----------
        beta_parameters : array of shape (..., K, 2)
        truncated : bool, default=True
            The last stick takes all that is left, ``v_K = 1``; its row is then not used.
            With False the stick goes on after K.

        Returns
        -------
        array of shape (..., K)
        """
        beta_parameters = np.asarray(beta_parameters, dtype=np.float64)
        both = digamma(beta_parameters.sum(axis=-1))
        log_weights = digamma(beta_parameters[..., 0]) - both
        log_rest = digamma(beta_parameters[..., 1]) - both
        if truncated:
            log_weights[..., -1] = 0.0
        log_weights[..., 1:] += np.cumsum(log_rest[..., :-1], axis=-1)
        return log_weights
