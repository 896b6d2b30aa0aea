"""Maximum entropy discrimination with exponential margins, by its dual, one sample at a time.

With u_sk = a - (w_y - w_k)·phi_s, lam_sk in [0, C) and w = sum_s lam_sk phi_s (e_y - e_k), primal
minus dual is sum_sk r(C u_sk) - lam_sk u_sk - log(1 - lam_sk / C): no term is negative (r and
-log(1 - lam/C) are conjugate), and all vanish where lam_sk = max(0, C - 1 / u_sk).
"""

import math

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.random import shuffle

_N_ROUNDS = 4  # over the classes of a sample, whose multipliers share the score of its own class
_VISIT = 10.0  # what a visit costs for each class, if nothing is changed, in multiplications


@kernel
def best_multiplier(u, multiplier, C, square):
    """The dual's maximum along one multiplier, all others held.

    With g = C - lam, u falls by `square` for each unit of lam, and u = 1 / g at the maximum:
    square g^2 + (u - square (C - multiplier)) g - 1 = 0.

    Examples
    --------
    >>> lam = best_multiplier(0.5, 1.0, 10.0, 0.2)
    >>> bool(abs(0.5 - 0.2 * (lam - 1.0) - 1 / (10.0 - lam)) < 1e-12)
    True
    """
    b = u - square * (C - multiplier)
    root = math.sqrt(b * b + 4.0 * square)
    if b > 0.0:
        g = 2.0 / (b + root)  # without the difference of two like numbers
    elif square > 0.0:
        g = (root - b) / (2.0 * square)
    else:
        return 0.0
    return max(0.0, C - g)


@kernel
def _sweep(order, X, gram, state, codes, C, margin, squares, multipliers, update):
    """Visit every sample once; returns primal minus dual, the primal, and multiplications done.

    Each sample's share is taken just before its own update, so that with `update` the first two
    numbers are only an estimate.
    """
    n_classes = state.shape[0]
    by_gram = gram.shape[0] > 0
    scores = np.empty(n_classes)
    changes = np.empty(n_classes)
    gap = 0.0
    primal = 0.0
    work = order.shape[0] * n_classes * (_VISIT if by_gram else 1.0 * X.shape[1])
    for i in range(order.shape[0]):
        s = order[i]
        own = codes[s]
        lam = multipliers[s]
        if by_gram:
            for k in range(n_classes):
                scores[k] = state[k, s]
        else:
            np.dot(state, X[s], scores)

        for k in range(n_classes):
            if k == own:
                continue
            u = margin - scores[own] + scores[k]
            loss = C * u - 1.0 - math.log(C * u) if C * u > 1.0 else 0.0
            primal += loss + 0.5 * lam[k] * (margin - u)  # the last: this sample's share of |w|^2/2
            gap += loss
            if lam[k] > 0.0:
                gap -= lam[k] * u + math.log1p(-lam[k] / C)
        if not update:
            continue

        for k in range(n_classes):
            changes[k] = 0.0
        for _ in range(_N_ROUNDS):
            for k in range(n_classes):
                if k == own:
                    continue
                u = margin - scores[own] + scores[k]
                if lam[k] == 0.0 and C * u <= 1.0:
                    continue
                new = best_multiplier(u, lam[k], C, 2.0 * squares[s])
                change = new - lam[k]
                lam[k] = new
                changes[k] -= change
                changes[own] += change
                scores[k] -= change * squares[s]
                scores[own] += change * squares[s]
        row = gram[s] if by_gram else X[s]
        for k in range(n_classes):
            change = changes[k]
            if change != 0.0:
                work += row.shape[0]
                for m in range(row.shape[0]):
                    state[k, m] += change * row[m]
    return gap, primal, work


@kernel
def ascend(rng, samples, X, gram, state, codes, C, margin, squares, multipliers, tol, max_sweeps):
    """Sweep over samples in random order until primal minus dual is `tol` of the primal.

    Parameters
    ----------
    rng : numpy.random.Generator
    samples : ndarray of int
        Those that the problem is about, of the `n` there are; shuffled in place.
    X : ndarray of shape (n, M)
    gram : ndarray of shape (n, n) or (0, 0)
        ``X @ X.T``, or empty. With it a visit reads the scores instead of taking products of
        length `M`, and a change costs `n` instead of `M`.
    state : ndarray of shape (L, n) with `gram`, (L, M) without
        The scores, or the weights, that belong to `multipliers`. Updated in place.
    codes : ndarray of shape (n,), integers in [0, L)
    C, margin : float
    squares : ndarray of shape (n,)
        Squared norms of the rows.
    multipliers : ndarray of shape (n, L)
        The start, in [0, C), zero for a sample's own class and for samples that are not in the
        problem; updated in place.
    tol : float
    max_sweeps : float
        Of the work of sweeps that change every multiplier: most change few, and count for less.

    Returns
    -------
    bool
        Whether `tol` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[1.0], [-1.0]]), np.array([0, 1])
    >>> weights, multipliers = np.zeros((2, 1)), np.zeros((2, 2))
    >>> rng, both, squares = np.random.default_rng(0), np.arange(2), np.ones(2)
    >>> no_gram = np.empty((0, 0))
    >>> ascend(
    ...     rng, both, X, no_gram, weights, codes, 10.0, 1.0, squares, multipliers, 1e-9, 1000)
    True
    >>> u = 1 - (weights[0, 0] - weights[1, 0])
    >>> bool(abs(1 / (10.0 - multipliers[0, 1]) - u) < 1e-4)
    True
    """
    gap, primal, visits = _sweep(
        samples, X, gram, state, codes, C, margin, squares, multipliers, False
    )
    most = max_sweeps * (visits + float(samples.shape[0]) * state.shape[0] * state.shape[1])
    done = 0.0
    while gap > tol * primal and done < most:
        shuffle(rng, samples)
        gap, primal, work = _sweep(
            samples, X, gram, state, codes, C, margin, squares, multipliers, True
        )
        done += work
        if gap <= tol * primal:  # the estimate; now the truth
            gap, primal, work = _sweep(
                samples, X, gram, state, codes, C, margin, squares, multipliers, False
            )
    return gap <= tol * primal
