"""The multi-class linear SVM of Crammer & Singer [1]_, by the sequential dual method [2]_.

In the dual every row `d` spreads a mass `C[d]` over the classes: `omega_dy >= 0`, and with the
multipliers `a_dy = C[d] 1[y = y_d] - omega_dy` the weights are `w_y = sum_d a_dy x_d`. With
`g_y = cost 1[y != y_d] + w_y·x_d` the row's share of the duality gap is
`sum_y omega_dy (max g - g_y)`: never negative, and zero when the mass lies where `g` is largest.

References
----------
.. [1] Crammer & Singer (2001). On the algorithmic implementation of multiclass kernel-based
       vector machines. Journal of Machine Learning Research 2.
.. [2] Keerthi, Sundararajan, Chang, Hsieh & Lin (2008). A sequential dual method for large scale
       multi-class linear SVMs. KDD.
.. [3] Michelot (1986). A finite algorithm for finding the projection of a point onto the
       canonical simplex of R^n. Journal of Optimization Theory and Applications 50(1).
"""

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.random import shuffle

_TINY = float(np.finfo(np.float64).tiny)


@kernel
def project_simplex(point, mass):
    """Project `point` in place onto the vectors that are >= 0 and sum to `mass` [3]_.

    Examples
    --------
    >>> import numpy as np
    >>> point = np.array([2.0, 1.5, -np.inf])
    >>> project_simplex(point, 1.0)
    >>> point
    array([0.75, 0.25, 0.  ])
    """
    top = np.max(point)
    # The largest entry keeps at most `mass`, so what lies `mass` below it keeps nothing. Starting
    # there keeps entries of -1e300 out of the sums.
    threshold = -mass
    n_active = point.shape[0] + 1
    while True:
        total = 0.0
        count = 0
        for k in range(point.shape[0]):
            if point[k] - top > threshold:
                total += point[k] - top
                count += 1
        if count >= n_active or count == 0:  # >: a tie undone by rounding; 0: no mass
            break
        n_active = count
        threshold = (total - mass) / count
    for k in range(point.shape[0]):
        point[k] = max(0.0, (point[k] - top) - threshold)


@kernel
def _sweep(order, X, gram, state, y, C, cost, squares, multipliers, update):
    """Visit every row once; returns the duality gap and the primal objective.

    Each row's share is taken just before its own update, so that with `update` the two numbers
    are only an estimate: the weights have moved during the sweep.
    """
    n_classes = state.shape[0]
    by_gram = gram.shape[0] > 0
    g = np.empty(n_classes)
    mass = np.empty(n_classes)
    gap = 0.0
    objective = 0.0
    for i in range(order.shape[0]):
        d = order[i]
        label = y[d]
        a = multipliers[d]
        if by_gram:
            for k in range(n_classes):
                g[k] = state[k, d]
        else:
            np.dot(state, X[d], g)
        best = g[label]
        for k in range(n_classes):
            if k != label:
                g[k] += cost
                best = max(best, g[k])

        square = cost * a[label]  # will be the sum of a_y w_y·x_d, this row's share of |W|^2
        for k in range(n_classes):
            mass[k] = (C[d] if k == label else 0.0) - a[k]
            gap += mass[k] * (best - g[k])
            square += a[k] * g[k]
        objective += C[d] * (best - g[label]) + 0.5 * square
        if not update:
            continue

        # The dual in omega_d alone is a sphere about omega_d + g / |x_d|^2, so its maximum is a
        # projection. Only differences of g matter: taken first, a row of zeros gives 0 or -inf.
        for k in range(n_classes):
            mass[k] += (g[k] - best) / max(squares[d], _TINY)
        project_simplex(mass, C[d])
        rest = 0.0  # the label's multiplier: it balances its rivals'
        for k in range(n_classes):
            if k != label:
                rest += mass[k]
        rest = min(rest, C[d])
        row = gram[d] if by_gram else X[d]
        for k in range(n_classes):
            new = rest if k == label else -mass[k]
            change = new - a[k]
            if change != 0.0:
                a[k] = new
                for m in range(row.shape[0]):
                    state[k, m] += change * row[m]
    return gap, objective


@kernel
def sequential_dual(rng, X, gram, state, y, C, cost, squares, multipliers, tol, max_iter):
    """Sweep over the rows in random order until the duality gap is `tol` of the objective.

    Parameters
    ----------
    rng : numpy.random.Generator
    X : ndarray of shape (n, M)
    gram : ndarray of shape (n, n) or (0, 0)
        ``X @ X.T``, or empty. With it a visit reads `L` numbers instead of taking `L` products
        of length `M`, and a change costs `n` instead of `M`.
    state : ndarray of shape (L, n) with `gram`, (L, M) without
        What the multipliers say of the scores, ``multipliers.T @ gram``, or of the weights,
        ``multipliers.T @ X``. Updated in place.
    y : ndarray of shape (n,), integers in [0, L)
    C : ndarray of shape (n,)
    cost : float
    squares : ndarray of shape (n,)
        Squared norms of the rows.
    multipliers : ndarray of shape (n, L)
        The start, feasible or not; updated in place.
    tol : float
    max_iter : int

    Returns
    -------
    int
        The number of sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    >>> weights, multipliers = np.zeros((2, 1)), np.zeros((2, 2))
    >>> rng, C, squares = np.random.default_rng(0), np.ones(2), np.ones(2)
    >>> n_iter = sequential_dual(
    ...     rng, X, np.empty((0, 0)), weights, y, C, 1.0, squares, multipliers, 1e-9, 100)
    >>> weights
    array([[ 0.5],
           [-0.5]])
    """
    order = np.arange(X.shape[0])
    for n_iter in range(1, max_iter + 1):
        shuffle(rng, order)
        gap, objective = _sweep(order, X, gram, state, y, C, cost, squares, multipliers, True)
        if gap <= tol * objective:  # the estimate; now the truth
            gap, objective = _sweep(order, X, gram, state, y, C, cost, squares, multipliers, False)
            if gap <= tol * objective:
                return n_iter
    return max_iter
