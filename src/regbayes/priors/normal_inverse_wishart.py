"""Conjugate prior of a Gaussian with full covariance.

References
----------
- Murphy (2007). Conjugate Bayesian analysis of the Gaussian distribution, section 9.
- Gelman et al. (2013). Bayesian Data Analysis, 3rd ed., section 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import multigammaln

from regbayes.kernels.linalg import cholesky, log_det_cholesky, log_student_t_rows
from regbayes.kernels.random import draw_inverse_wishart
from regbayes.priors._common import Array, check_points, check_positive, check_vector, spread


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """``Sigma ~ IW(df, scale)`` and ``mu | Sigma ~ N(mean, Sigma / strength)``.

    ``E[Sigma] = scale / (df - M - 1)`` for ``df > M + 1``.

    Parameters
    ----------
    mean : array of shape (M,)
    strength : float
        The number of points the prior mean is worth.
    df : float
        Greater than M - 1.
    scale : array of shape (M, M)
        Symmetric positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> prior = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    >>> prior.posterior([[2.0, 4.0]]).mean
    array([1., 2.])
    >>> mu, Sigma = prior.draw(np.random.default_rng(0))
    """

    mean: Array
    strength: float
    df: float
    scale: Array

    def __post_init__(self) -> None:
        mean = check_vector(self.mean, "mean")
        m = len(mean)
        scale = np.array(self.scale, dtype=np.float64)
        if scale.shape != (m, m) or not np.allclose(scale, scale.T, rtol=1e-8, atol=0.0):
            raise ValueError(f"scale must be a symmetric ({m}, {m}) matrix, got {self.scale!r}.")
        chol = np.empty_like(scale)
        if not cholesky(scale, chol):
            raise ValueError("scale must be positive definite; add a small number to its diagonal.")
        if not m - 1 < self.df < np.inf:
            raise ValueError(f"df must be greater than n_features - 1 = {m - 1}, got {self.df!r}.")
        scale.flags.writeable = False
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "strength", check_positive(self.strength, "strength"))
        object.__setattr__(self, "df", float(self.df))
        object.__setattr__(self, "scale", scale)

    @classmethod
    def from_data(
        cls, X: Any, strength: float = 0.25, df: float | None = None, scale_fraction: float = 0.25
    ) -> NormalInverseWishart:
        """Weakly informative prior centred on the data, for components of a mixture.

        A component's covariance is expected to be ``scale_fraction`` of the variances of `X`, with
        no correlation. With ``strength`` equal to it, as by default, the components' means
        spread a priori as widely as the data. A constant column, and so every column when there
        is a single point, counts as having variance one.

        Parameters
        ----------
        X : array of shape (n, M)
        strength : float, default=0.25
        df : float, default=None
            ``M + 2`` when None: the least integer for which the covariance has an expectation.
        scale_fraction : float, default=0.25
        """
        mean, variance = spread(X)
        m = len(mean)
        df = m + 2.0 if df is None else df
        fraction = check_positive(scale_fraction, "scale_fraction")
        # E[Sigma] exists for df > m + 1 only; below, keep the scale itself.
        expectation = df - m - 1 if df > m + 1 else 1.0
        return cls(mean, strength, df, np.diag(fraction * expectation * variance))

    @cached_property
    def chol_scale(self) -> Array:
        """Lower Cholesky factor of `scale`."""
        chol = np.empty_like(self.scale)
        cholesky(self.scale, chol)
        return chol

    def posterior(self, X: Any) -> NormalInverseWishart:
        """The prior updated by rows of points (Murphy 2007)."""
        X = check_points(X, len(self.mean))
        n = len(X)
        if n == 0:
            return self
        average = X.mean(axis=0)
        centred, shift = X - average, average - self.mean
        strength = self.strength + n
        return NormalInverseWishart(
            self.mean + n / strength * shift,
            strength,
            self.df + n,
            self.scale
            + centred.T @ centred
            + (self.strength * n / strength) * np.outer(shift, shift),
        )

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """A mean and a covariance."""
        chol = np.empty_like(self.scale)
        draw_inverse_wishart(rng, self.df, self.chol_scale, chol)
        mu = self.mean + chol @ rng.standard_normal(len(self.mean)) / np.sqrt(self.strength)
        return mu, chol @ chol.T

    def log_predictive(self, x: Any) -> Any:
        """Log density of new points, each by itself: Student-t with ``df - M + 1`` degrees.

        A vector gives a number, rows of points give a vector.
        """
        points = check_points(x, len(self.mean))
        df = self.df - len(self.mean) + 1
        factor = self.chol_scale * np.sqrt((self.strength + 1) / (self.strength * df))
        out = np.empty(len(points))
        log_student_t_rows(points, self.mean, factor, df, out)
        return out if np.ndim(x) == 2 else float(out[0])

    def log_marginal(self, X: Any) -> float:
        """Log density of all rows of `X` together, parameters integrated out (Murphy 2007)."""
        X = check_points(X, len(self.mean))
        (n, m), after = X.shape, self.posterior(X)
        return float(
            multigammaln(after.df / 2, m)
            - multigammaln(self.df / 2, m)
            + self.df / 2 * log_det_cholesky(self.chol_scale)
            - after.df / 2 * log_det_cholesky(after.chol_scale)
            + m / 2 * np.log(self.strength / after.strength)
            - n * m / 2 * np.log(np.pi)
        )
