"""The margin of an average: each component has a linear classifier, and q(z) weighs them.

    F(y, x_d) = sum_k r_dk w_ky . x_d,   r_dk = q(z_d = k),   w ~ N(0, nu^2 I)
    min_w  |w|^2 / 2 nu^2 + 2 C sum_d max_y cost [y != y_d] + F(y, x_d) - F(y_d, x_d)

is what maximum entropy discrimination asks of the weights (Zhu, Chen & Xing 2011): one SVM on the
inputs repeated for every component.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.margin.crammer_singer import crammer_singer

Array = NDArray[np.float64]


class AveragedFit(NamedTuple):
    """What :func:`fit_averaged` returns."""

    weights: Array  # (K, n_classes, M): means of q(w), whose covariance is nu^2 I
    multipliers: Array  # (n, n_classes): of the margin constraints, in [-2 C, 2 C]
    margin: float  # the objective above: KL of q(w) plus the hinge


def fit_averaged(
    X: Array,
    y: NDArray[np.int64],
    r: Array,
    n_classes: int,
    *,
    rng: np.random.Generator,
    C: float,
    cost: float,
    nu: float,
    warm_start: Array,
    max_iter: int,
) -> AveragedFit:
    """q(w) given q(z).

    Times nu^2, the objective is Crammer and Singer's with C' = 2 C nu^2 and features r_dk x_d,
    whose multipliers are nu^2 times ours.

    Parameters
    ----------
    X : array of shape (n, M)
    y : array of shape (n,)
    r : array of shape (n, K)
    n_classes : int
    rng, C, cost, max_iter
        As in :func:`crammer_singer`.
    nu : float
        Scale of the weights a priori.
    warm_start : array of shape (n, n_classes)
        Multipliers to start from.

    Returns
    -------
    AveragedFit

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([0, 0, 1])
    >>> fit = fit_averaged(
    ...     X, y, np.ones((3, 1)), 2, rng=np.random.default_rng(0), C=5.0, cost=1.0, nu=1.0,
    ...     warm_start=np.zeros((3, 2)), max_iter=100)
    >>> average_scores(X, np.ones((3, 1)), fit.weights).argmax(axis=1)
    array([0, 0, 1])
    """
    n, n_inputs = X.shape
    features = (r[:, :, None] * X[:, None, :]).reshape(n, -1)
    square = nu**2
    svm = crammer_singer(
        features,
        y,
        n_classes,
        rng=rng,
        C=2 * C * square,
        cost=cost,
        gram=(r @ r.T) * (X @ X.T) if n <= features.shape[1] else None,
        warm_start=warm_start * square,
        max_iter=max_iter,
    )
    weights = svm.weights.reshape(n_classes, -1, n_inputs).swapaxes(0, 1)
    return AveragedFit(
        np.ascontiguousarray(weights), svm.multipliers / square, svm.objective / square
    )


def average_scores(X: Array, r: Array, weights: Array) -> Array:
    """F(y, x) = sum_k r_k(x) w_ky . x, shape (n, n_classes)."""
    return np.einsum("dk,dm,kym->dy", r, X, weights, optimize=True)


def label_evidence(X: Array, weights: Array, multipliers: Array) -> Array:
    """What the labels say about the components, sum_y a_dy w_ky . x_d, shape (n, K).

    By the envelope theorem it is the slope of minus the least objective in r_dk.
    """
    scores = np.einsum("dm,kym->dky", X, weights, optimize=True)
    return np.einsum("dy,dky->dk", multipliers, scores)
