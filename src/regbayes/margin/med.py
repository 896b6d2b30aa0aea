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
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from regbayes.kernels.med import ascend

_MOST_DENSE = 1500  # weights whose Hessian is written out


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
    max_iter: int = 5000,
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
    start : ndarray of shape (n_samples, n_classes), optional
        Multipliers to start from, perhaps of another C or of other features.
    tol : float
        How far the loss may be above its minimum, as a share of it; certified by the dual.
    max_iter : int
        Sweeps over the samples at most; Newton's method does what is left then.

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
    features = np.ascontiguousarray(features)
    rank = min(n_samples, n_features)
    if n_classes * rank <= _MOST_DENSE:
        # Where classes overlap, sweeps creep for a large C; Newton's steps are few and cheap here.
        max_iter = min(max_iter, 50 + rank // 2)
    multipliers = np.zeros((n_samples, n_classes))
    if start is not None:
        np.clip(start, 0.0, C * (1 - 1e-12), out=multipliers)
    gram = features @ features.T if n_features > n_samples else np.empty((0, 0))
    state = pull(multipliers, codes).T @ (gram if len(gram) else features)
    n_sweeps = ascend(
        np.random.default_rng(0),  # of the order of visits, not of the result
        features,
        gram,
        np.ascontiguousarray(state),
        codes,
        float(C),
        float(margin),
        np.einsum("sm,sm->s", features, features),
        multipliers,
        tol,
        max_iter,
    )
    weights = pull(multipliers, codes).T @ features
    if n_sweeps == max_iter:
        weights = _finish(features, codes, weights, C, margin, tol)
        multipliers = margin_terms(features @ weights.T, codes, C, margin)[1]
    losses = margin_terms(features @ weights.T, codes, C, margin)[0]
    return Discriminant(weights, multipliers, _half_square(weights) + float(losses.sum()))


def _finish(
    features: NDArray, codes: NDArray, weights: NDArray, C: float, margin: float, tol: float
) -> NDArray:
    """Newton's method on the primal, for what is left where the dual's sweeps creep.

    r has a second derivative but at one point, so near the minimum a few steps are exact.
    """
    n_samples, n_features = features.shape
    if n_features > n_samples:
        # The weights lie in the span of the samples: turn, and leave the rest at zero.
        squares, left = np.linalg.eigh(features @ features.T)
        used = squares > 1e-12 * squares[-1]
        sizes = np.sqrt(squares[used])
        basis = (left[:, used] / sizes).T @ features
        turned = _finish(left[:, used] * sizes, codes, weights @ basis.T, C, margin, tol)
        return turned @ basis
    scores = features @ weights.T
    losses, multipliers = margin_terms(scores, codes, C, margin)
    loss = _half_square(weights) + losses.sum()
    for _ in range(100):
        pulled = pull(multipliers, codes).T @ features
        dual = np.sum(margin * multipliers + np.log1p(-multipliers / C)) - _half_square(pulled)
        if loss - dual <= tol * loss:
            break
        step = _newton_step(
            features, codes, (C - multipliers) ** 2 * (multipliers > 0), pulled - weights
        )
        slope, along, size = np.sum((weights - pulled) * step), features @ step.T, 1.0
        while size > 1e-10:
            losses, multipliers = margin_terms(scores + size * along, codes, C, margin)
            lower = _half_square(weights + size * step) + losses.sum()
            if lower <= loss + 1e-4 * size * slope:
                break
            size /= 2
        else:  # rounding is all that is left
            break
        weights, scores, loss = weights + size * step, scores + size * along, lower
    return weights


def _newton_step(
    features: NDArray, codes: NDArray, curvatures: NDArray, downhill: NDArray
) -> NDArray:
    """The solution of Hessian x = downhill: exact, or of many weights by conjugate gradients.

    `curvatures` are the second derivatives of r(c u) by u: c^2 / v^2 = (c - lam)^2 where lam > 0.
    """
    shape = downhill.shape
    if downhill.size <= _MOST_DENSE:
        factor = cho_factor(_hessian(features, codes, curvatures), lower=True, overwrite_a=True)
        return cho_solve(factor, downhill.ravel()).reshape(shape)

    def hessian(flat: NDArray) -> NDArray:
        along = features @ flat.reshape(shape).T
        along -= np.take_along_axis(along, codes[:, None], axis=1)
        return flat + (pull(-curvatures * along, codes).T @ features).ravel()

    n = downhill.size
    operator = LinearOperator((n, n), matvec=hessian, dtype=float)
    return cg(operator, downhill.ravel(), rtol=1e-8, maxiter=min(10 * n, 5000))[0].reshape(shape)


def _hessian(features: NDArray, codes: NDArray, curvatures: NDArray) -> NDArray:
    """1 + sum_sk curvature (e_k - e_y)(e_k - e_y)' ⊗ phi phi', its lower half."""
    n_classes, n_features = curvatures.shape[1], features.shape[1]
    out = np.eye(n_classes * n_features).reshape(n_classes, n_features, n_classes, n_features)
    diagonal = curvatures.copy()  # zero against the own class, whose scores are in all margins
    np.put_along_axis(diagonal, codes[:, None], curvatures.sum(axis=1, keepdims=True), axis=1)
    for k in range(n_classes):
        out[k, :, k] += (features * diagonal[:, [k]]).T @ features
        own = features[codes == k]
        for other in range(n_classes):
            if other != k and len(own):
                block = (own * curvatures[codes == k, other][:, None]).T @ own  # symmetric
                out[max(k, other), :, min(k, other)] -= block
    return out.reshape(n_classes * n_features, -1)


def _half_square(weights: NDArray) -> float:
    return float(0.5 * np.sum(weights**2))
