"""Dirichlet prior of a categorical law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma

from regbayes.kernels.random import draw_dirichlet
from regbayes.priors._common import Array, check_vector, log_rising


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Dirichlet prior over K categories.

    Parameters
    ----------
    concentration : array of shape (K,)
        Positive.

    Examples
    --------
    >>> prior = Dirichlet([1.0, 1.0])
    >>> prior.posterior([3, 0]).mean
    array([0.8, 0.2])
    """

    concentration: Array

    def __post_init__(self) -> None:
        concentration = check_vector(self.concentration, "concentration")
        if not (concentration > 0).all():
            raise ValueError("every concentration must be positive; drop impossible categories.")
        object.__setattr__(self, "concentration", concentration)

    @property
    def mean(self) -> Array:
        return self.concentration / self.concentration.sum()

    def posterior(self, counts: Any) -> Dirichlet:
        return Dirichlet(self.concentration + np.asarray(counts))

    def draw(self, rng: np.random.Generator) -> Array:
        out = np.empty_like(self.concentration)
        draw_dirichlet(rng, self.concentration, out)
        return out

    def expected_log(self) -> Array:
        """E[log p_k], what variational updates need."""
        return digamma(self.concentration) - digamma(self.concentration.sum())

    def log_predictive(self, x: Any) -> Any:
        """Log probability of category `x`, elementwise."""
        return np.log(self.mean)[np.asarray(x)]

    def log_marginal(self, counts: Any) -> Any:
        """Log probability of a sequence of categories with these counts (last axis K).

        The Dirichlet-multinomial without the multinomial coefficient: sequences, not histograms.
        """
        counts = np.asarray(counts, dtype=np.float64)
        total = log_rising(self.concentration.sum(), counts.sum(axis=-1))
        return (log_rising(self.concentration, counts).sum(axis=-1) - total)[()]
