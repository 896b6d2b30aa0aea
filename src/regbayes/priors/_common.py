"""What several priors share: checks with a remedy, and two small formulas."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

Array = NDArray[np.float64]


def is_positive(value: Any) -> bool:
    """True for a positive finite real number; booleans are not numbers here."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def check_positive(value: Any, name: str) -> float:
    if not is_positive(value):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}.")
    return float(value)


def check_vector(value: Any, name: str) -> Array:
    """A read-only float copy, so that a frozen prior cannot be changed through its arrays."""
    vector = np.array(value, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise ValueError(f"{name} must be a non-empty vector of finite numbers, got {value!r}.")
    vector.flags.writeable = False
    return vector


def check_points(X: Any, n_features: int) -> Array:
    """Rows of points; a single point is one row."""
    points = np.ascontiguousarray(np.atleast_2d(X), dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != n_features:
        raise ValueError(
            f"X must have shape (n, {n_features}) or ({n_features},), got {np.shape(X)}; "
            "the prior's mean sets the number of features."
        )
    return points


def log_rising(a: Any, n: Any) -> Any:
    """Log of the rising factorial a (a + 1) ... (a + n - 1), elementwise.

    Through the Beta function: gammaln(a + n) - gammaln(a) cancels when a is large.
    """
    n = np.asarray(n, dtype=np.float64)
    some = np.maximum(n, 1.0)
    return np.where(n > 0, gammaln(some) - betaln(a, some), 0.0)


def spread(X: Any) -> tuple[Array, Array]:
    """Column means and variances, a constant column counting as variance one.

    The same convention and the same rounding bound as scikit-learn's StandardScaler, so that a
    prior made from constant columns, or from a single point, is still proper.
    """
    points = np.atleast_2d(np.asarray(X, dtype=np.float64))
    if points.ndim != 2 or points.size == 0 or not np.isfinite(points).all():
        raise ValueError("X must be a non-empty (n, n_features) array of finite numbers.")
    n, mean, variance = len(points), points.mean(axis=0), points.var(axis=0)
    eps = np.finfo(np.float64).eps
    constant = variance <= n * eps * variance + (n * mean * eps) ** 2
    return mean, np.where(constant, 1.0, variance)
