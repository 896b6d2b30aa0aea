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

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from sklearn.exceptions import ConvergenceWarning

from regbayes.kernels.med import ascend

_MOST_CELLS = 100_000_000  # of the blocks of a Hessian that is written out
_STEPS = 15  # of the interior point method, about
_PRODUCTS = 50  # with the Hessian in a step, about
_EXACT = 1e-7  # of a step of it; the gap is measured, so that it need not be more


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
    gram: NDArray | None = None,
    samples: NDArray | None = None,
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
        Sweeps over the samples at most, those that change few multipliers counted in part. Where
        they creep, and samples are not too many, an interior point method takes over long before.
    gram : ndarray of shape (n_samples, n_samples), optional
        Products of the features with each other, if there are more features than samples: several
        problems about the same samples may share them. See :func:`products`.
    samples : ndarray of int, optional
        Those that the classifier is fitted to, each once; all if None. The others have no
        multipliers, and cost less than a copy of these would.

    Returns
    -------
    Discriminant

    Examples
    --------
    >>> found = solve(np.array([[1.0], [-1.0]]), np.array([0, 1]), 2, C=10.0)
    >>> bool((found.weights @ [1.0] > 0)[0]), bool((found.weights @ [1.0] > 0)[1])
    (True, False)
    """
    samples = np.arange(len(features)) if samples is None else np.array(samples)
    n_samples, n_features = len(samples), features.shape[1]
    features = np.ascontiguousarray(features)
    multipliers = np.zeros((len(features), n_classes))
    if start is not None:
        np.clip(start, 0.0, C * (1 - 1e-12), out=multipliers)
    if gram is None:
        gram = products(features)
    squares = gram.diagonal() if len(gram) else np.einsum("sm,sm->s", features, features)

    def sweep(tol: float, most: int) -> bool:
        state = pull(multipliers, codes).T @ (gram if len(gram) else features)
        return ascend(
            np.random.default_rng(0),  # of the order of visits, not of the result
            samples,
            features,
            gram,
            np.ascontiguousarray(state),
            codes,
            float(C),
            float(margin),
            np.ascontiguousarray(squares),
            multipliers,
            tol,
            most,
        )

    most = min(max_iter, _worth_trying(n_samples, min(n_samples, n_features), n_classes))
    open_gap = not sweep(tol, most)
    if open_gap and most == max_iter:
        warnings.warn(
            f"The margin problem is not solved to {tol:g} of its loss after {max_iter} sweeps; "
            "ask for less: a smaller C, or fewer features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    elif open_gap:
        inside = _interior(
            features[samples], codes[samples], n_classes, float(C), float(margin), 0.5 * tol
        )
        multipliers[samples] = np.where(inside > 1e-8 * C, inside, 0.0)
        sweep(tol, most)  # what the zeros changed, if anything
    pulls = pull(multipliers, codes)
    weights = pulls.T @ features
    scores = gram @ pulls if len(gram) else features @ weights.T
    losses = margin_terms(scores[samples], codes[samples], C, margin)[0]
    loss = _half_square(weights) + float(losses.sum())
    nothing = losses.size - n_samples  # margins, if the weights were zero
    v = max(C * margin, 1.0)
    if loss > (1 + max(tol, 0.0)) * nothing * (v - 1 - np.log(v)):
        warnings.warn(
            "Features lie so far from zero that rounding hides what tells classes apart; centre "
            "them, for example with sklearn.preprocessing.StandardScaler.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Discriminant(weights, multipliers, loss)


def products(features: NDArray) -> NDArray:
    """Products of the features of samples with each other, where these are the smaller matrix."""
    n_samples, n_features = features.shape
    return features @ features.T if n_features > n_samples else np.empty((0, 0))


def _worth_trying(n_samples: int, rank: int, n_classes: int) -> int:
    """How many sweeps cost a third of what :func:`_interior` would."""
    n_blocks = n_classes if n_classes > 2 else 1
    if n_blocks * rank**2 > _MOST_CELLS:
        return np.iinfo(np.int64).max
    blocks = n_blocks * (rank**3 / 3 + n_samples * rank**2)
    products = _PRODUCTS * n_blocks * rank * (4 * n_samples + 2 * rank) if n_blocks > 1 else 0
    sweep = 8 * n_samples * n_blocks * rank  # one sample at a time is slower than all together
    return 30 + int(_STEPS * (blocks + products) / sweep / 3)


def _interior(
    features: NDArray, codes: NDArray, n_classes: int, C: float, margin: float, tol: float
) -> NDArray:
    """The multipliers by a primal-dual interior point method (Mehrotra 1992), for a few weights.

    With slacks: x - s = u, lam s = 0, (C - lam) x = 1, where x = max(u, 1 / C). Its steps number
    ten or twenty whatever C, where those along single multipliers creep and those of Newton's
    method on the primal, for which a violated margin has hardly a curvature, go astray.
    """
    n_samples, n_features = features.shape
    if n_features > n_samples:
        # The weights lie in the span of the samples: turned, they are few.
        squares, left = np.linalg.eigh(features @ features.T)
        used = squares > 1e-14 * squares[-1]
        features = left[:, used] * np.sqrt(squares[used])
    counts = np.ones((n_samples, n_classes), dtype=bool)
    np.put_along_axis(counts, codes[:, None], False, axis=1)
    half, zeros = np.where(counts, 0.5 * C, 1.0), np.zeros((n_classes, features.shape[1]))
    ones = np.full_like(half, margin)
    at, best, least, stalled = _Point(half, half, ones, 2 * ones, ones, zeros), half, np.inf, 0
    while stalled < 3:  # then rounding is all that is left
        pulled = pull(at.lam * counts, codes).T @ features
        loss = _half_square(pulled) + margin_terms(features @ pulled.T, codes, C, margin)[0].sum()
        dual = np.sum((margin * at.lam + np.log(at.room / C))[counts]) - _half_square(pulled)
        if loss - dual < least:
            best, least, stalled = at.lam, loss - dual, 0
        else:
            stalled += 1
        if least <= tol * loss:
            break
        curvatures = counts / (at.x / at.room + at.s / at.lam)
        system = _System(
            features, codes, counts, curvatures, pulled - at.weights,
            _factors(features, codes, curvatures),
        )  # fmt: skip
        # How far one could go at once says how much of the way to aim at.
        straight = system.move(at, 0.0, 1.0)
        there = at.after(straight)
        slack, excess = at.distance(counts)
        share = min(1.0, sum(there.distance(counts)) / (slack + excess)) ** 3
        at = at.after(
            system.move(
                at,
                share * slack - straight.lam * straight.s,
                1.0 + share * excess + straight.lam * straight.x,
            )
        )
    return best * counts


class _Point(NamedTuple):
    """Where the interior point method is, or a move from there; `room` is C - lam.

    Own classes have a part in nothing: numbers above zero there keep divisions quiet.
    """

    lam: NDArray
    room: NDArray
    s: NDArray
    x: NDArray
    u: NDArray
    weights: NDArray

    def after(self, move: _Point) -> _Point:
        """As far as multipliers and slacks stay above zero, if not all the way."""
        shares = [-np.min(by / at) for at, by in zip(self[:4], move[:4])]
        size = min(1.0, 0.995 / max(*shares, 1e-300))
        return _Point(*(at + size * by for at, by in zip(self, move)))

    def distance(self, counts: NDArray) -> tuple[float, float]:
        """How far, on average, lam s is from 0 and room x from 1."""
        slack, product = self.lam[counts] * self.s[counts], self.room[counts] * self.x[counts]
        return float(slack.mean()), max(float(product.mean()) - 1.0, 0.0)


class _System(NamedTuple):
    """The linear equations of a step, once they are down to the weights."""

    features: NDArray
    codes: NDArray
    counts: NDArray
    curvatures: NDArray
    short: NDArray  # of the weights, for those that belong to the multipliers
    factors: list[NDArray]  # of the Hessian's blocks; see :func:`_factors`

    def move(self, at: _Point, slack: Any, product: Any) -> _Point:
        """To where lam s is `slack` and room x is `product`."""
        slack, product = slack - at.lam * at.s, product - at.room * at.x
        offset = at.u - at.x + at.s - product / at.room + slack / at.lam
        downhill = pull(self.curvatures * offset, self.codes).T @ self.features + self.short
        weights = self.solve(downhill)
        u = self.features @ weights.T
        u -= np.take_along_axis(u, self.codes[:, None], axis=1)
        lam = self.curvatures * (u + offset)
        s = self.counts * (slack - at.s * lam) / at.lam
        x = self.counts * (product + at.x * lam) / at.room
        return _Point(lam, -lam, s, x, u, weights)

    def solve(self, right: NDArray) -> NDArray:
        """What the Hessian takes to `right`, whose rows, like those of the weights, sum to zero.

        By conjugate gradients. Blocks off the diagonal say little more than that classes have no
        common part: with those on it as preconditioner, and that part taken out, a few products
        are enough.
        """
        found, rest = np.zeros_like(right), right
        direction, size, first = rest, 0.0, None
        for _ in range(20 * _PRODUCTS):
            # Of LAPACK by itself: SciPy's name for it takes longer to ask than a small one does.
            ahead = np.array([dpotrs(f, row, lower=1)[0] for f, row in zip(self.factors, rest)])
            ahead -= ahead.mean(axis=0)
            last, size = size, float(np.sum(rest * ahead))
            first = size if first is None else first
            if size <= _EXACT**2 * first:
                break
            direction = ahead + size / last * direction if last else ahead
            turned = self._hessian(direction)
            stride = size / np.sum(direction * turned)
            found = found + stride * direction
            rest = rest - stride * turned
        return found

    def _hessian(self, weights: NDArray) -> NDArray:
        """Its product: 1 + sum_sk curvature (e_k - e_y)(e_k - e_y)' ⊗ phi phi'."""
        u = self.features @ weights.T
        u -= np.take_along_axis(u, self.codes[:, None], axis=1)
        return weights - pull(self.curvatures * u, self.codes).T @ self.features


def _factors(features: NDArray, codes: NDArray, curvatures: NDArray) -> list[NDArray]:
    """Cholesky factors of the Hessian's blocks, a class each.

    Two classes are each other's mirror image, and one block, for both, is all of it.
    """
    if curvatures.shape[1] == 2:
        return 2 * [_factor(features, 2.0 * curvatures.sum(axis=1))]
    own = curvatures.copy()  # zero against the own class, whose scores are in all margins
    np.put_along_axis(own, codes[:, None], curvatures.sum(axis=1, keepdims=True), axis=1)
    return [_factor(features, column) for column in own.T]


def _factor(features: NDArray, curvatures: NDArray) -> NDArray:
    """Of 1 + sum_s curvature phi phi'.

    Of features that lie far from zero it may not be positive to rounding. A little more on its
    diagonal makes the step a shorter one, and the gap is measured anyway.
    """
    rooted = features * np.sqrt(curvatures)[:, None]
    matrix = rooted.T @ rooted
    diagonal = np.diagonal(matrix) + 1.0
    ridge = 0.0
    while True:
        np.fill_diagonal(matrix, diagonal + ridge * diagonal.max())
        factor, failed = dpotrf(matrix, lower=1)
        if not failed:
            return factor
        if not np.isfinite(diagonal).all() or ridge > 1e-3:
            raise np.linalg.LinAlgError("the Hessian of the margin problem is not positive")
        ridge = max(1e-14, 10 * ridge)


def _half_square(weights: NDArray) -> float:
    return float(0.5 * np.sum(weights**2))
