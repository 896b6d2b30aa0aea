"""The one solver of the multi-class SVM of Crammer & Singer; its sweeps are in `kernels.svm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.svm import sequential_dual

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrammerSingerSolution:
    """What :func:`crammer_singer` returns.

    Attributes
    ----------
    weights : array of shape (n_classes, n_features)
    multipliers : array of shape (n, n_classes)
        ``weights == multipliers.T @ X``. A row sums to zero; its label's entry lies in
        ``[0, C]``, the others are at most zero.
    objective : float
        The primal objective at `weights`; the optimum is within `dual_gap` below it.
    dual_gap : float
    n_iter : int
        Sweeps over the rows.
    converged : bool
        Whether ``dual_gap <= tol * objective``.
    """

    weights: Array
    multipliers: Array
    objective: float
    dual_gap: float
    n_iter: int
    converged: bool


def crammer_singer(
    X: Any,
    y: Any,
    n_classes: int,
    *,
    rng: np.random.Generator,
    C: float = 1.0,
    cost: float = 1.0,
    sample_weight: Any = None,
    gram: Any = None,
    warm_start: Any = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> CrammerSingerSolution:
    r"""Fit a multi-class linear SVM and its dual multipliers.

    Minimises the objective of Crammer & Singer [1]_,

    .. math:: \tfrac12 \|W\|^2 + C \sum_d \max_y
              \bigl(\mathrm{cost}\,[y \ne y_d] + w_y \cdot x_d - w_{y_d} \cdot x_d\bigr),

    by the sequential dual method [2]_, one row's multipliers at a time and each exactly.

    The multipliers :math:`a` are signed: :math:`w_y = \sum_d a_{dy} x_d`, with
    :math:`a_{dy} \le C\,[y = y_d]` and :math:`\sum_y a_{dy} = 0`. The non-negative form, a mass
    :math:`C` that each row spreads over the classes, is :math:`\omega_{dy} = C\,[y = y_d] -
    a_{dy}`.

    Parameters
    ----------
    X : array of shape (n, n_features)
        There is no intercept: append a constant column for one.
    y : array of shape (n,)
        Integers from 0 to ``n_classes - 1``. A class may have no rows.
    n_classes : int
    rng : numpy.random.Generator
        Orders the rows of each sweep.
    C, cost : float
        Weight of the margin, and the margin asked for.
    sample_weight : array of shape (n,), optional
        Multiplies `C` row by row.
    gram : array of shape (n, n), optional
        ``X @ X.T``, if the caller has it cheaper than by that product.
    warm_start : array of shape (n, n_classes), optional
        Multipliers to start from, by default zero. They need not be feasible: those of another
        `C` will do.
    tol : float
        Stop when the duality gap is this fraction of the objective.
    max_iter : int
        At most this many sweeps; `converged` tells whether they were enough.

    Returns
    -------
    CrammerSingerSolution

    References
    ----------
    .. [1] Crammer & Singer (2001). On the algorithmic implementation of multiclass kernel-based
           vector machines. Journal of Machine Learning Research 2.
    .. [2] Keerthi, Sundararajan, Chang, Hsieh & Lin (2008). A sequential dual method for large
           scale multi-class linear SVMs. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]]), np.array([0, 1, 2])
    >>> svm = crammer_singer(X, y, 3, rng=np.random.default_rng(0))
    >>> svm.converged, (X @ svm.weights.T).argmax(axis=1)
    (True, array([0, 1, 2]))
    >>> bool(np.allclose(svm.multipliers.T @ X, svm.weights))
    True
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, n_features), got {X.shape}.")
    n = len(X)
    squares = np.einsum("dm,dm->d", X, X)
    if not np.isfinite(squares).all():
        raise ValueError("X has missing, infinite or overflowing values: impute or scale them.")
    y = _check_labels(y, n, n_classes)
    for name, value in (("C", C), ("cost", cost), ("tol", tol), ("max_iter", max_iter)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive finite number, got {value!r}.")
    weight = np.ones(n) if sample_weight is None else _check(sample_weight, "sample_weight", (n,))
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative; zero leaves a row out.")
    row_C = C * weight

    if gram is not None:
        gram = _check(gram, "gram", (n, n))
    elif n <= X.shape[1]:  # no bigger than X, and about twice as fast
        gram = X @ X.T
    else:
        gram = np.empty((0, 0))

    own = np.arange(n), y
    multipliers = np.zeros((n, n_classes))
    if warm_start is not None:  # feasible or not: the first sweep projects every row
        multipliers += _check(warm_start, "warm_start", (n, n_classes))

    state = np.ascontiguousarray(multipliers.T @ (gram if gram.size else X))
    n_iter = sequential_dual(
        rng, X, gram, state, y, row_C, float(cost), squares, multipliers, float(tol), max_iter
    )

    # Afresh from the multipliers: `state` has gathered the rounding of every update.
    weights = multipliers.T @ X
    scores = X @ weights.T
    losses = scores - scores[own][:, None] + cost
    losses[own] = 0.0
    worst = losses.max(axis=1)
    mass = -multipliers
    mass[own] += row_C
    objective = 0.5 * np.sum(weights**2) + row_C @ worst
    dual_gap = np.sum(mass * (worst[:, None] - losses))
    return CrammerSingerSolution(
        weights=weights,
        multipliers=multipliers,
        objective=float(objective),
        dual_gap=float(dual_gap),
        n_iter=n_iter,
        converged=bool(dual_gap <= tol * objective),
    )


def _check(value: Any, name: str, shape: tuple[int, ...]) -> Array:
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite and of shape {shape}, got shape {array.shape}.")
    return array


def _check_labels(y: Any, n: int, n_classes: int) -> NDArray[np.int64]:
    labels = np.asarray(y)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise ValueError(f"y must hold one integer for each of the {n} rows of X.")
    if n_classes < 2 or (n and not (labels.min() >= 0 and labels.max() < n_classes)):
        raise ValueError(f"y must lie in [0, n_classes) and n_classes be >= 2, got {n_classes}.")
    return np.ascontiguousarray(labels, dtype=np.int64)
