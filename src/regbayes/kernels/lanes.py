"""Chains of equal length side by side: a vector instruction works on sequences, not on states.

The recursions of :mod:`regbayes.kernels.chain` are short loops over K states that wait for one
another; with few states a processor idles. Here every array has a last axis of `LANES` sequences,
each with matrices of its own, and no lane's arithmetic depends on its neighbours. The fast
recursions only, and only where every transition is possible: other lanes are reported unsafe.
"""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel

# Loops over lanes ask the arrays how many there are: a compiler that knows would unroll them into
# single numbers, where it makes vectors of the others.
LANES = 16
_MOST_STATES = 12  # with more, the loops over states are long enough, and caches too small
_POSSIBLE = 1e-90  # mass comes back from other states at once; see chain.filter_scaled
_MOST_CELLS = 1 << 14  # steps times states of a sequence, so that caches hold all lanes


def group(starts, transitions):
    """Sequences that can go side by side: `members[edges[g]:edges[g + 1]]` is group g.

    It has one sequence, or up to `LANES` of equal length; which, is known from all lengths, so
    that results do not depend on the number of threads.

    Examples
    --------
    >>> group(np.array([0, 3, 6, 7, 10, 13, 16]), np.full((2, 2), 0.5))
    (array([2, 0, 1, 3, 4, 5]), array([0, 1, 6]))
    """
    lengths, n_states = np.diff(starts), len(transitions)
    if n_states > _MOST_STATES or not transitions.min() > _POSSIBLE:
        return np.arange(len(lengths)), np.arange(len(lengths) + 1)
    members = np.argsort(lengths, kind="stable")
    return members, _edges(lengths[members], n_states)


@kernel
def _edges(lengths, n_states):
    """Where groups end, lengths being in order; groups too small to pay fall apart."""
    edges = [0]
    at = 0
    while at < lengths.shape[0]:
        high = at
        while high < lengths.shape[0] and high < at + LANES and lengths[high] == lengths[at]:
            high += 1
        if high - at < max(4, n_states) or lengths[at] * n_states > _MOST_CELLS:
            edges.extend(range(at + 1, high))
        edges.append(high)
        at = high
    return np.array(edges)


@kernel
def _log(value):
    """log, and any number where the product with it is zero."""
    return math.log(value) if 0.0 < value < np.inf else 0.0


@fused_kernel
def _times(weights, matrix, out):
    """`out[j] = sum_i weights[i] matrix[i, j]` in every lane."""
    n_lanes = out.shape[1]
    for j in range(out.shape[0]):
        total, weight, entry = out[j], weights[0], matrix[0, j]
        for lane in range(n_lanes):
            total[lane] = weight[lane] * entry
        for i in range(1, weights.shape[0]):
            weight, entry = weights[i], matrix[i, j]
            for lane in range(n_lanes):
                total[lane] += weight[lane] * entry


@fused_kernel
def _times_own(weights, matrices, transposed, out):
    """The same by the matrices of the lanes, or by what they are transposed."""
    n_lanes = out.shape[1]
    for j in range(out.shape[0]):
        total = out[j]
        total[:] = 0.0
        for i in range(weights.shape[0]):
            weight, entry = weights[i], matrices[j, i] if transposed else matrices[i, j]
            for lane in range(n_lanes):
                total[lane] += weight[lane] * entry[lane]


@fused_kernel
def _to_shares(rows, totals, gains):
    """Divides by the sums over states, which go into `totals`."""
    n_lanes = totals.shape[0]
    for lane in range(n_lanes):
        totals[lane] = 0.0
    for j in range(rows.shape[0]):
        row = rows[j]
        for lane in range(n_lanes):
            totals[lane] += row[lane]
    for lane in range(n_lanes):
        gains[lane] = 1.0 / totals[lane]
    for j in range(rows.shape[0]):
        row = rows[j]
        for lane in range(n_lanes):
            row[lane] *= gains[lane]


@fused_kernel
def filter_lanes(start, transitions, own, likelihoods, filtered, totals, safe):
    """As :func:`regbayes.kernels.chain.filter_scaled`, of `start[K, L]` and `likelihoods[T, K, L]`.

    Lanes share `transitions[G, K, K]` unless there is `own[G, K, K, L]`. `safe[L]` says whose
    results hold.
    """
    n_steps, n_states, n_lanes = likelihoods.shape
    n_matrices, gains = transitions.shape[0], np.empty(n_lanes)
    for lane in range(n_lanes):
        least = own[:, :, :, lane].min() if own.shape[3] > 0 else transitions.min()
        safe[lane] = least > _POSSIBLE
    for t in range(n_steps):
        rows = filtered[t]
        if t == 0:
            rows[:] = start
        else:
            m = (t - 1) * n_matrices // n_steps
            if own.shape[3] > 0:
                _times_own(filtered[t - 1], own[m], False, rows)
            else:
                _times(filtered[t - 1], transitions[m], rows)
        for j in range(n_states):
            row, likelihood = rows[j], likelihoods[t, j]
            for lane in range(n_lanes):
                row[lane] *= likelihood[lane]
        _to_shares(rows, totals[t], gains)
    for t in range(n_steps):
        for lane in range(n_lanes):
            if not totals[t, lane] > 1e-180:
                safe[lane] = False


@fused_kernel
def smooth_lanes(transitions, transposed, own, likelihoods, totals, filtered, moves, entropies):
    """As :func:`regbayes.kernels.chain.smooth_scaled`, of arrays whose last axis is the lane."""
    n_steps, n_states, n_lanes = filtered.shape
    n_matrices, n_segments = transitions.shape[0], moves.shape[0]
    with_entropies = entropies.shape[0] > 0
    back, ahead = np.ones((n_states, n_lanes)), np.empty((n_states, n_lanes))
    log_back, log_ahead = np.empty((n_states, n_lanes)), np.empty((n_states, n_lanes))
    sums, gains = np.empty(n_lanes), np.empty(n_lanes)
    for t in range(n_steps - 2, -1, -1):
        for lane in range(n_lanes):
            gains[lane] = 1.0 / totals[t + 1, lane]
        for j in range(n_states):
            here, after, likelihood = ahead[j], back[j], likelihoods[t + 1, j]
            for lane in range(n_lanes):
                here[lane] = after[lane] * likelihood[lane] * gains[lane]
        m = t * n_matrices // n_steps
        if own.shape[3] > 0:
            _times_own(ahead, own[m], True, back)
        else:
            _times(ahead, transposed[m], back)
        rows = filtered[t]
        segment = t * n_segments // n_steps
        for i in range(n_states if n_segments > 0 else 0):
            row = rows[i]
            for j in range(n_states):
                count, here = moves[segment, i, j], ahead[j]
                for lane in range(n_lanes):
                    count[lane] += row[lane] * here[lane]
        if with_entropies:
            # p(j | i) = transitions[i, j] ahead[j] / back[i]: logarithms of states will do.
            for j in range(n_states):
                for lane in range(n_lanes):
                    log_ahead[j, lane] = _log(ahead[j, lane])
                    log_back[j, lane] = _log(back[j, lane])
            for i in range(n_states):
                row, log_after = rows[i], log_back[i]
                for j in range(n_states):
                    term, here, log_here = entropies[segment, i, j], ahead[j], log_ahead[j]
                    for lane in range(n_lanes):
                        term[lane] -= row[lane] * here[lane] * (log_here[lane] - log_after[lane])
        for i in range(n_states):
            row, after = rows[i], back[i]
            for lane in range(n_lanes):
                # Where no path comes, `back` may be infinite.
                after[lane] = after[lane] if row[lane] > 0.0 else 0.0
                row[lane] *= after[lane]
        _to_shares(rows, sums, gains)
    for s in range(n_segments):
        m = s * n_matrices // n_segments
        for i in range(n_states):
            for j in range(n_states):
                for lane in range(n_lanes):
                    p = own[m, i, j, lane] if own.shape[3] > 0 else transitions[m, i, j]
                    moves[s, i, j, lane] *= p
                    if with_entropies and p > 0.0:
                        own_part = moves[s, i, j, lane] * math.log(p)
                        entropies[s, i, j, lane] = p * entropies[s, i, j, lane] - own_part
