"""Expected topics of documents under known ones, compiled: a fixed point, and how it moves."""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel
from regbayes.kernels.threads import in_threads

_CREEPING = 1e-2  # a round moves less than this share of the tokens


def expect_counts(indptr, indices, counts, alpha, phi, tilt, cells, tol, max_iter, n_threads=1):
    """E[n_k] and bounds on log p of documents, by the fixed point of CVB0.

    q(z_i = k) ∝ (E[n_dk] without token i + alpha_k) phi[w_i, k] exp(tilt_k + tilt_kw)
    (Asuncion, Welling, Smyth & Teh 2009). Rounds over the words go most of the way, and creep at
    the end: there they take turns with steps of Newton's method.

    Parameters
    ----------
    indptr, indices, counts : ndarray
        Documents as the rows of a CSR matrix.
    alpha : ndarray of shape (K,)
    phi : ndarray of shape (V, K)
    tilt : ndarray of shape (n_documents or 1, K + K * V) or (0, 0)
    cells : ndarray of shape (n_cells, K) or (0, K)
        Where q is left, for every cell of the CSR matrix.
    tol, max_iter
        A document is done when a round moves less than this share of its tokens.

    Returns
    -------
    by_topic : ndarray of shape (n_documents, K)
    bounds, entropies : ndarray of shape (n_documents,) and (n_documents, K)
        The bound is E[log of the potentials] plus the sum of the entropies.
    """
    n, n_topics = len(indptr) - 1, len(alpha)
    by_topic = np.zeros((n, n_topics))
    bounds, entropies = np.zeros(n), np.zeros((n, n_topics))

    def work(low, high):
        _expect_counts(
            low, high, indptr, indices, counts, alpha, phi, tilt, tol, max_iter, by_topic, cells,
            bounds, entropies,
        )  # fmt: skip

    in_threads(work, indptr, n_threads)
    return by_topic, bounds, entropies


@fused_kernel
def _expect_counts(
    low, high, indptr, indices, counts, alpha, phi, tilt, tol, max_iter, by_topic, cells,
    bounds, entropies,
):  # fmt: skip
    n_words, n_topics = phi.shape
    longest = 0
    for d in range(low, high):
        longest = max(longest, indptr[d + 1] - indptr[d])
    potential = np.empty((longest, n_topics))
    q = np.empty((longest, n_topics))
    fresh, room = np.empty(n_topics), np.empty((4, longest, n_topics))
    concentration = alpha.sum()
    for d in range(low, high):
        first, size = indptr[d], indptr[d + 1] - indptr[d]
        expected = by_topic[d]
        n_tokens, bound = 0.0, 0.0
        own_tilt = min(d, tilt.shape[0] - 1)
        for i in range(size):
            w = indices[first + i]
            n_tokens += counts[first + i]
            most = 0.0
            if tilt.shape[0] > 0:
                most = -np.inf
                for k in range(n_topics):
                    fresh[k] = tilt[own_tilt, k] + tilt[own_tilt, n_topics + k * n_words + w]
                    most = max(most, fresh[k])
            total = 0.0
            for k in range(n_topics):
                potential[i, k] = phi[w, k]
                if tilt.shape[0] > 0:
                    potential[i, k] *= math.exp(fresh[k] - most)
                q[i, k] = potential[i, k] * alpha[k]
                total += q[i, k]
            bound += counts[first + i] * most
            for k in range(n_topics):
                q[i, k] /= total
                expected[k] += counts[first + i] * q[i, k]
        own = counts[first : first + size]
        creeping = _CREEPING * n_tokens
        for _ in range(max_iter):
            moved = _sweep(potential[:size], own, alpha, q[:size], expected, fresh)
            if moved <= tol * n_tokens:
                break
            if moved <= creeping:
                _leap(potential[:size], own, alpha, q[:size], expected, room)
                creeping = 0.1 * moved  # should the leap have been too far, rounds go on
        expected[:] = 0.0
        for i in range(size):
            for k in range(n_topics):
                share = counts[first + i] * q[i, k]
                expected[k] += share
                if share > 0.0:
                    bound += share * math.log(potential[i, k])
                    entropies[d, k] -= share * math.log(q[i, k])
                if cells.shape[0] > 0:
                    cells[first + i, k] = q[i, k]
        # log p(z) at the expected counts, below its expectation since it is convex.
        rest = math.lgamma(concentration + n_tokens) - math.lgamma(concentration)
        for k in range(n_topics):
            entropies[d, k] += math.lgamma(alpha[k] + expected[k]) - math.lgamma(alpha[k])
            if n_tokens > 0.0:
                entropies[d, k] -= rest * expected[k] / n_tokens
            bound += entropies[d, k]
        bounds[d] = bound


@fused_kernel
def _sweep(potential, counts, alpha, q, expected, fresh):
    """A round over the words of a document; returns how many tokens it moved."""
    n_topics, moved = alpha.shape[0], 0.0
    for i in range(q.shape[0]):
        total = 0.0
        for k in range(n_topics):
            # Rounding may leave less than nothing of a topic.
            fresh[k] = potential[i, k] * (alpha[k] + max(expected[k] - q[i, k], 0.0))
            total += fresh[k]
        inverse = 1.0 / total
        for k in range(n_topics):
            step = fresh[k] * inverse - q[i, k]
            q[i, k] += step
            expected[k] += counts[i] * step
            moved += counts[i] * abs(step)
    return moved


@fused_kernel
def _leap(potential, counts, alpha, q, expected, room):
    """A step of Newton's method for all q of a document.

    Where a round would take q_i by r_i, and with a_i and M_i of :func:`pull_counts` at q_i + r_i,

        dq_i = r_i + M_i a_i (dn - r_i),
        (1 - sum_i c_i M_i a_i) dn = sum_i c_i (1 - M_i a_i) r_i.

    No q loses more than nine tenths.
    """
    size, n_topics = q.shape
    rest, e, e_a, scaled = room[0][:size], room[1][:size], room[2][:size], room[3][:size]
    right, diagonal = np.zeros(n_topics), np.ones(n_topics)
    for i in range(size):
        total = 0.0
        for k in range(n_topics):
            others = alpha[k] + max(expected[k] - q[i, k], 0.0)
            e_a[i, k] = 1.0 / others
            rest[i, k] = potential[i, k] * others
            total += rest[i, k]
        inverse, total, along = 1.0 / total, 0.0, 0.0
        for k in range(n_topics):
            there = rest[i, k] * inverse
            rest[i, k] = there - q[i, k]
            e[i, k] = there / (1.0 + e_a[i, k] * there)
            e_a[i, k] *= e[i, k]
            total += e[i, k]
            along += e_a[i, k] * rest[i, k]
        for k in range(n_topics):
            scaled[i, k] = counts[i] * e[i, k] / total
            right[k] += counts[i] * (1.0 - e_a[i, k]) * rest[i, k] + scaled[i, k] * along
            diagonal[k] -= counts[i] * e_a[i, k]
    matrix = scaled.T @ e_a
    for k in range(n_topics):
        matrix[k, k] += diagonal[k]
    shared = np.linalg.solve(matrix, right)
    if not np.isfinite(shared).all():
        return
    expected[:] = 0.0
    for i in range(size):
        total, along = 0.0, 0.0
        for k in range(n_topics):
            total += e[i, k]
            along += e_a[i, k] * (shared[k] - rest[i, k])
        along /= total
        total = 0.0
        for k in range(n_topics):
            step = rest[i, k] + e_a[i, k] * (shared[k] - rest[i, k]) - e[i, k] * along
            q[i, k] = max(q[i, k] + step, 0.1 * q[i, k])
            total += q[i, k]
        inverse = 1.0 / total
        for k in range(n_topics):
            q[i, k] *= inverse
            expected[k] += counts[i] * q[i, k]


def pull_counts(indptr, counts, alpha, cells, directions, n_threads=1):
    """How the fixed point of :func:`expect_counts` moves, exactly.

    Write c for the counts of the cells of a document, n = sum_i c_i q_i, and u for the logarithms
    of the potentials. Differentiated, with a_i = 1 / (alpha + n - q_i), e_i = q_i / (1 + a_i q_i),

        dq_i = M_i (du_i + a_i dn),    M_i = diag(e_i) - e_i e_i' / sum(e_i),

    so that the derivative of sum_i c_i v_i . q_i by u_i is c_i M_i (v_i + g), where
    (1 - sum_i c_i a_i M_i) g = sum_i c_i a_i M_i v_i.

    Parameters
    ----------
    indptr, counts, alpha, cells
        Of :func:`expect_counts`, with q in `cells`.
    directions : ndarray of shape (n_cells, K)
        v.

    Returns
    -------
    ndarray of shape (n_cells, K)
    """
    out = np.empty_like(cells)

    def work(low, high):
        _pull_counts(low, high, indptr, counts, alpha, cells, directions, out)

    in_threads(work, indptr, n_threads)
    return out


@kernel
def _pull_counts(low, high, indptr, counts, alpha, cells, directions, out):
    n_topics = alpha.shape[0]
    longest = 0
    for d in range(low, high):
        longest = max(longest, indptr[d + 1] - indptr[d])
    a, e = np.empty((longest, n_topics)), np.empty((longest, n_topics))
    scaled = np.empty((longest, n_topics))
    expected, right = np.empty(n_topics), np.empty(n_topics)
    for d in range(low, high):
        first, size = indptr[d], indptr[d + 1] - indptr[d]
        expected[:] = 0.0
        for i in range(size):
            for k in range(n_topics):
                expected[k] += counts[first + i] * cells[first + i, k]
        right[:] = 0.0
        diagonal = np.ones(n_topics)
        for i in range(size):
            c, total, along = counts[first + i], 0.0, 0.0
            for k in range(n_topics):
                q = cells[first + i, k]
                a[i, k] = 1.0 / (alpha[k] + max(expected[k] - q, 0.0))
                e[i, k] = q / (1.0 + a[i, k] * q)
                total += e[i, k]
                along += e[i, k] * directions[first + i, k]
            for k in range(n_topics):
                c_a_e = c * a[i, k] * e[i, k]
                right[k] += c_a_e * (directions[first + i, k] - along / total)
                diagonal[k] -= c_a_e
                scaled[i, k] = c_a_e / total
        moved = scaled[:size].T @ e[:size]  # 1 - sum_i c_i a_i M_i
        for k in range(n_topics):
            moved[k, k] += diagonal[k]
        shared = np.linalg.solve(moved, right)
        for i in range(size):
            total, along = 0.0, 0.0
            for k in range(n_topics):
                shift = directions[first + i, k] + shared[k]
                total += e[i, k]
                along += e[i, k] * shift
            for k in range(n_topics):
                shift = directions[first + i, k] + shared[k]
                out[first + i, k] = counts[first + i] * e[i, k] * (shift - along / total)
