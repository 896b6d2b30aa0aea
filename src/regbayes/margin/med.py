"""Maximum entropy discrimination with exponential margin priors, in its smooth primal (001, Eq. 8).

w ~ N(0, I), margins with the prior c exp(-c (a - g)), g <= a. With multipliers lam_s the dual
is  max sum_s a lam_s + log(1 - lam_s / c) - |sum_s lam_s y_s phi_s|^2 / 2,  0 <= lam < c
(001, Eq. 19, whose printed form lacks the barrier), and the primal
    min |w|^2 / 2 + sum_s r(c u_s),  u_s = a - y_s w . phi_s,  r(v) = v - 1 - log v for v > 1,
and 0 below. It is smooth and convex; lam_s = max(0, c - 1 / u_s) and w = sum_s lam_s y_s phi_s.
With many classes, each has its weights, and every sample a margin against each of the other
classes: u_sk = a - (w_y - w_k) . phi_s. Two classes then have w_1 = -w_0 = sum_s lam_s y_s phi_s,
with the multipliers of the above for features sqrt(2) phi_s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


class Discriminant(NamedTuple):
    """What :func:`solve` finds.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features)
    multipliers : ndarray of shape (n_samples, n_classes)
        Of every margin constraint; zero in the column of the sample's own class.
    loss : float
    """

    weights: NDArray
    multipliers: NDArray
    loss: float


def margin_terms(
    scores: NDArray, codes: NDArray, C: float, margin: float = 1.0
) -> tuple[NDArray, NDArray]:
    """r(c u) and the multipliers, of every sample against every class; zero against its own."""
    own = np.take_along_axis(scores, codes[:, None], axis=1)
    v = C * (margin - own + scores)
    np.put_along_axis(v, codes[:, None], 0.0, axis=1)
    v = np.maximum(v, 1.0)
    return v - 1 - np.log(v), C * (1 - 1 / v)


def pull(multipliers: NDArray, codes: NDArray) -> NDArray:
    """Minus the derivative of the loss by the scores: towards the own class, away from others."""
    out = -multipliers
    np.put_along_axis(out, codes[:, None], multipliers.sum(axis=1, keepdims=True), axis=1)
    return out


def solve(
    features: NDArray,
    codes: NDArray,
    n_classes: int,
    C: float,
    margin: float = 1.0,
    start: NDArray | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Discriminant:
    """The classifier of largest (expected) margin.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        With a constant column, if there is to be an intercept.
    codes : ndarray of int of shape (n_samples,)
    n_classes : int
    C : float
        The rate of the margins' prior: no multiplier exceeds it.
    margin : float
        The largest margin that counts.
    start : ndarray of shape (n_classes, n_features), optional
        Weights to start from.

    Returns
    -------
    Discriminant

    Examples
    --------
    >>> found = solve(np.array([[1.0], [-1.0]]), np.array([0, 1]), 2, C=10.0)
    >>> bool((found.weights @ [1.0] > 0)[0]), bool((found.weights @ [1.0] > 0)[1])
    (True, False)
    """
    n_samples, n_features = features.shape
    if n_features > n_samples:
        # The weights lie in the span of the samples: turn, and leave the rest at zero.
        squares, left = np.linalg.eigh(features @ features.T)
        used = squares > 1e-12 * squares[-1]
        sizes = np.sqrt(squares[used])
        basis = (left[:, used] / sizes).T @ features
        first = None if start is None else start @ basis.T
        found = solve(left[:, used] * sizes, codes, n_classes, C, margin, first, tol, max_iter)
        return found._replace(weights=found.weights @ basis)
    shape = n_classes, n_features

    def objective(flat: NDArray) -> tuple[float, NDArray]:
        weights = flat.reshape(shape)
        losses, multipliers = margin_terms(features @ weights.T, codes, C, margin)
        gradient = weights - pull(multipliers, codes).T @ features
        return float(0.5 * flat @ flat + losses.sum()), gradient.ravel()

    first = np.zeros(shape) if start is None else start
    found = minimize(
        objective,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "ftol": tol * 1e-3,
            "gtol": tol * C,
            "maxcor": 20,
            # The way down to |w|^2 ends at walls of slope C, where a search takes long to stop.
            "maxls": 100,
        },
    )
    weights = found.x.reshape(shape)
    multipliers = margin_terms(features @ weights.T, codes, C, margin)[1]
    return Discriminant(weights, multipliers, float(found.fun))
