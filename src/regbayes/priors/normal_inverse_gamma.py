"""Conjugate prior of a Gaussian with diagonal covariance: the coordinates are independent.

References
----------
- Murphy (2007). Conjugate Bayesian analysis of the Gaussian distribution, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from regbayes.kernels.random import draw_gamma
from regbayes.priors._common import Array, check_points, check_positive, check_vector, spread


@dataclass(frozen=True, eq=False)
class NormalInverseGamma:
    """``variance_j ~ IW(df, scale_j)`` and ``mu_j ~ N(mean_j, variance_j / strength)`` for each j.

    In one dimension IW(df, scale) is the inverse gamma with shape ``df / 2`` and scale
    ``scale / 2``, so that for M = 1 this is :class:`NormalInverseWishart`.
    ``E[variance_j] = scale_j / (df - 2)`` for ``df > 2``.

    Parameters
    ----------
    mean : array of shape (M,)
    strength : float
        The number of points the prior mean is worth.
    df : float
        Positive.
    scale : array of shape (M,)
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> prior = NormalInverseGamma(np.zeros(2), 1.0, 3.0, np.ones(2))
    >>> prior.posterior([[2.0, 4.0]]).mean
    array([1., 2.])
    >>> mu, variance = prior.draw(np.random.default_rng(0))
    """

    mean: Array
    strength: float
    df: float
    scale: Array

    def __post_init__(self) -> None:
        mean, scale = check_vector(self.mean, "mean"), check_vector(self.scale, "scale")
        if scale.shape != mean.shape or not (scale > 0).all():
            raise ValueError(f"scale must be {len(mean)} positive numbers, got {self.scale!r}.")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "strength", check_positive(self.strength, "strength"))
        object.__setattr__(self, "df", check_positive(self.df, "df"))
        object.__setattr__(self, "scale", scale)

    @classmethod
    def from_data(
        cls, X: Any, strength: float = 0.25, df: float | None = None, scale_fraction: float = 0.25
    ) -> NormalInverseGamma:
        """Weakly informative prior centred on the data, for components of a mixture.

        As :meth:`NormalInverseWishart.from_data`, with ``df = 3`` by default.
        """
        mean, variance = spread(X)
        df = 3.0 if df is None else df
        fraction = check_positive(scale_fraction, "scale_fraction")
        expectation = df - 2 if df > 2 else 1.0
        return cls(mean, strength, df, fraction * expectation * variance)

    def posterior(self, X: Any) -> NormalInverseGamma:
        """The prior updated by rows of points (Murphy 2007)."""
        X = check_points(X, len(self.mean))
        n = len(X)
        if n == 0:
            return self
        average = X.mean(axis=0)
        shift = average - self.mean
        strength = self.strength + n
        return NormalInverseGamma(
            self.mean + n / strength * shift,
            strength,
            self.df + n,
            self.scale
            + ((X - average) ** 2).sum(axis=0)
            + (self.strength * n / strength) * shift**2,
        )

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Means and variances."""
        gamma = np.array([draw_gamma(rng, self.df / 2) for _ in self.scale])
        variance = self.scale / (2 * gamma)
        sd = np.sqrt(variance / self.strength)
        return self.mean + sd * rng.standard_normal(len(sd)), variance

    def log_predictive(self, x: Any) -> Any:
        """Log density of new points, each by itself: independent Student-t with `df` degrees.

        A vector gives a number, rows of points give a vector.
        """
        points = check_points(x, len(self.mean))
        df, m = self.df, len(self.mean)
        squared_width = self.scale * (self.strength + 1) / self.strength  # df times the t's scale^2
        constant = m * (gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(np.pi) / 2)
        out = (
            constant
            - np.log(squared_width).sum() / 2
            - (df + 1) / 2 * np.log1p((points - self.mean) ** 2 / squared_width).sum(axis=1)
        )
        return out if np.ndim(x) == 2 else float(out[0])

    def log_marginal(self, X: Any) -> float:
        """Log density of all rows of `X` together, parameters integrated out (Murphy 2007)."""
        X = check_points(X, len(self.mean))
        (n, m), after = X.shape, self.posterior(X)
        return float(
            m * (gammaln(after.df / 2) - gammaln(self.df / 2))
            + self.df / 2 * np.log(self.scale).sum()
            - after.df / 2 * np.log(after.scale).sum()
            + m / 2 * np.log(self.strength / after.strength)
            - n * m / 2 * np.log(np.pi)
        )
