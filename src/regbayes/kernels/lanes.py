"""Chains side by side: a vector instruction works on sequences, not on states.

The recursions of :mod:`regbayes.kernels.chain` are short loops over K states that wait for one
another; with few states a processor idles. Here every array has a last axis of `LANES` sequences,
and no lane's arithmetic depends on its neighbours. The fast recursions only, and only where every
transition is possible: other lanes are reported unsafe.

Lanes end together. One that is shorter than the longest has likelihoods of one before it begins,
which do no harm and are counted nowhere: `begins[lane]` is its first step.
"""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel
from regbayes.kernels._vectors import LANES, load, spread, store, where_positive
from regbayes.kernels.chain import exp_of_negative

_MOST_STATES = 16  # with more, the loops over states are long enough, and caches too small
_POSSIBLE = 1e-90  # mass comes back from other states at once; see chain.filter_scaled
_MOST_CELLS = 1 << 14  # steps times states of a sequence, so that caches hold all lanes
_NEVER = 1 << 62  # later than any step
_HELD = 4  # steps whose moves are counted at once


def group(starts, transitions):
    """Sequences that can go side by side: `members[edges[g]:edges[g + 1]]` is group g.

    It has one sequence, or up to `LANES` in ascending order of length; which, is known from all
    lengths, so that results do not depend on the number of threads.

    Examples
    --------
    >>> group(np.array([0, 3, 6, 7, 10, 13, 16]), np.full((2, 2), 0.5))
    (array([2, 0, 1, 3, 4, 5]), array([0, 6]))
    """
    lengths, n_states = np.diff(starts), len(transitions)
    if n_states > _MOST_STATES or not transitions.min() > _POSSIBLE:
        return np.arange(len(lengths)), np.arange(len(lengths) + 1)
    members = np.argsort(lengths, kind="stable")
    return members, _edges(lengths[members], n_states)


@kernel
def _edges(lengths, n_states):
    """Where groups end so that all cost least, lengths being in order.

    A group costs what its longest sequence does, times what a step of all lanes costs more than
    that of one sequence alone.
    """
    n = lengths.shape[0]
    costs, ends = np.zeros(n + 1), np.arange(1, n + 2)  # of sequences `low` and later
    for low in range(n - 1, -1, -1):
        costs[low] = lengths[low] + costs[low + 1]
        for high in range(low + 2, min(low + LANES, n) + 1):
            longest = lengths[high - 1]
            cost = max(4, n_states // 2) * longest + costs[high]
            if cost <= costs[low] and longest * n_states <= _MOST_CELLS:
                costs[low], ends[low] = cost, high
    edges = [0]
    while edges[-1] < n:
        edges.append(ends[edges[-1]])
    return np.array(edges)


@kernel
def _log(value):
    """log, and any number where the product with it is zero."""
    return math.log(value) if 0.0 < value < np.inf else 0.0


@fused_kernel
def scale_lanes(likelihoods, units):
    """As :func:`regbayes.kernels.chain.scale_likelihoods`, in place; adds up the units."""
    n_steps, n_states, n_lanes = likelihoods.shape
    best = np.empty(n_lanes)
    for t in range(n_steps):
        best[:] = -np.inf
        for k in range(n_states):
            for lane in range(n_lanes):
                best[lane] = max(best[lane], likelihoods[t, k, lane])
        for lane in range(n_lanes):
            best[lane] = best[lane] if best[lane] > -np.inf else 0.0
            units[lane] += best[lane]
        for k in range(n_states):
            for lane in range(n_lanes):
                likelihoods[t, k, lane] = exp_of_negative(likelihoods[t, k, lane] - best[lane])


@fused_kernel
def log_products(factors, out):
    """Adds the logarithm of the product over steps, in every lane; a logarithm is for many."""
    n_steps, n_lanes = factors.shape
    products = np.ones(n_lanes)
    for t in range(n_steps):
        n_small = 0
        for lane in range(n_lanes):
            products[lane] *= factors[t, lane]
            n_small += products[lane] < 1e-100
        if n_small > 0 or t == n_steps - 1:
            for lane in range(n_lanes):
                if products[lane] < 1e-100 or t == n_steps - 1:
                    out[lane] += math.log(products[lane])
                    products[lane] = 1.0


@kernel
def _times(weights, at, matrix, out, to):
    """`out[to, j] = sum_i weights[at, i] matrix[i, j]` in every lane."""
    n_states = matrix.shape[0]
    for j in range(0, n_states, 2):  # for two at once, a weight is read once
        k = min(j + 1, n_states - 1)
        one, other = spread(0.0), spread(0.0)
        for i in range(n_states):
            weight = load(weights, at * n_states + i)
            one = one + weight * spread(matrix[i, j])
            other = other + weight * spread(matrix[i, k])
        store(out, to * n_states + j, one)
        store(out, to * n_states + k, other)


@kernel
def _times_own(weights, at, matrices, out, to):
    """The same by the matrices of the lanes."""
    n_states = matrices.shape[0]
    for j in range(0, n_states, 2):
        k = min(j + 1, n_states - 1)
        one, other = spread(0.0), spread(0.0)
        for i in range(n_states):
            weight = load(weights, at * n_states + i)
            one = one + weight * load(matrices, i * n_states + j)
            other = other + weight * load(matrices, i * n_states + k)
        store(out, to * n_states + j, one)
        store(out, to * n_states + k, other)


@kernel
def _to_shares(rows, at, factors, of, totals, to):
    """Multiplies by the factors and divides by the sums over states, which go into `totals`."""
    n_states = rows.shape[1]
    total = spread(0.0)
    for j in range(n_states):
        product = load(rows, at * n_states + j) * load(factors, of * n_states + j)
        store(rows, at * n_states + j, product)
        total = total + product
    store(totals, to, total)
    gain = spread(1.0) / total
    for j in range(n_states):
        store(rows, at * n_states + j, load(rows, at * n_states + j) * gain)


@kernel
def _first_step(segment, n_segments, n_steps):
    """Of those that belong to the segment: steps t with t * n_segments // n_steps == segment."""
    return (segment * n_steps + n_segments - 1) // n_segments


@kernel
def _begin(t, begins, start, filtered):
    """Lanes whose first step is t have no past; returns when the next lanes begin."""
    later = _NEVER
    for lane in range(begins.shape[0]):
        if begins[lane] == t:
            for k in range(start.shape[0]):
                filtered[t, k, lane] = start[k, lane]
        elif begins[lane] > t:
            later = min(later, begins[lane])
    return later


@kernel
def _take(lane, own, segment, transposed, matrices):
    """A lane's matrix of the segment."""
    n_states = matrices.shape[0]
    for i in range(n_states):
        for j in range(n_states):
            p = own[segment, j, i, lane] if transposed else own[segment, i, j, lane]
            matrices[i, j, lane] = p


@kernel
def _copy(rows, first, out, to, n):
    """Rows `first` to `first + n`, to row `to` and those that follow."""
    for r in range(n):
        store(out, to + r, load(rows, first + r))


@kernel
def _turn_ahead(t, n_steps, own, begins, turns, matrices):
    """Takes the matrices of lanes that enter a segment at step t; returns when the next do."""
    n_segments = own.shape[0]
    for lane in range(begins.shape[0]):
        if turns[lane] == t:
            length = n_steps - begins[lane]
            segment = (t - begins[lane]) * n_segments // length
            _take(lane, own, segment, False, matrices)
            turns[lane] = begins[lane] + _first_step(segment + 1, n_segments, length)
    return turns.min()  # n_steps, if none


@kernel
def _are_safe(transitions, own, safe):
    """Lanes where every transition is possible."""
    n_matrices, n_states = own.shape[:2]
    for lane in range(safe.shape[0]):
        least = 1.0
        for i in range(n_states):
            for j in range(n_states):
                if own.shape[3] == 0:
                    least = min(least, transitions[i, j])
                for m in range(n_matrices if own.shape[3] > 0 else 0):
                    least = min(least, own[m, i, j, lane])
        safe[lane] = least > _POSSIBLE


@fused_kernel
def filter_lanes(start, transitions, own, begins, likelihoods, filtered, totals, safe):
    """As :func:`regbayes.kernels.chain.filter_scaled`, of `start[K, L]` and `likelihoods[T, K, L]`.

    Lanes share `transitions[K, K]` unless there is `own[G, K, K, L]`. `safe[L]` says whose results
    hold. Totals are one where a lane has not begun.
    """
    n_steps, n_states, n_lanes = likelihoods.shape
    tilted = own.shape[3] > 0
    matrices = np.empty((n_states, n_states, own.shape[3]))
    if tilted:
        _copy(own, 0, matrices, 0, n_states * n_states)
    turns, turn, begin = begins.copy(), begins.min(), 0
    _are_safe(transitions, own, safe)
    for t in range(n_steps):
        if t == 0:
            _copy(start, 0, filtered, 0, n_states)
        elif tilted:
            if t - 1 == turn:
                turn = _turn_ahead(turn, n_steps, own, begins, turns, matrices)
            _times_own(filtered, t - 1, matrices, filtered, t)
        else:
            _times(filtered, t - 1, transitions, filtered, t)
        if t == begin:
            begin = _begin(t, begins, start, filtered)
        _to_shares(filtered, t, likelihoods, t, totals, t)
    for lane in range(n_lanes):
        totals[: begins[lane], lane] = 1.0
    for t in range(n_steps):
        for lane in range(n_lanes):
            if not totals[t, lane] > 1e-180:
                safe[lane] = False


@kernel
def _go_back(t, held, likelihoods, totals, filtered, transposed, matrices, aheads, backs):
    """Steps t, t - 1, ...: `aheads[h]` is what follows a move from step t - h.

    `backs[h + 1]` is p(x_t+1..T | z_t) / p(x_t+1..T | x_1..t) of that step, at most 1 / filtered.
    """
    n_states = filtered.shape[1]
    for h in range(held):
        gain = spread(1.0) / load(totals, t - h + 1)
        for j in range(n_states):
            likelihood = load(likelihoods, (t - h + 1) * n_states + j)
            store(aheads, h * n_states + j, load(backs, h * n_states + j) * likelihood * gain)
        if matrices.shape[2] > 0:
            _times_own(aheads, h, matrices, backs, h + 1)
        else:
            _times(aheads, h, transposed, backs, h + 1)
        for i in range(n_states):
            # Where no path comes, `back` may be infinite.
            here, back = load(filtered, (t - h) * n_states + i), load(backs, (h + 1) * n_states + i)
            store(backs, (h + 1) * n_states + i, where_positive(here, back))


@kernel
def _add_moves(filtered, t, aheads, h, counts):
    """Adds the products of `filtered[t]` and `aheads[h]`."""
    n_states = filtered.shape[1]
    for i in range(n_states):
        here = load(filtered, t * n_states + i)
        for j in range(n_states):
            count = load(counts, i * n_states + j)
            store(counts, i * n_states + j, count + here * load(aheads, h * n_states + j))


@kernel
def _add_held_moves(filtered, t, aheads, counts):
    """The same of four steps, the last being t: counts are read and written once."""
    n_states = filtered.shape[1]
    for i in range(n_states):
        a = load(filtered, t * n_states + i)
        b = load(filtered, (t - 1) * n_states + i)
        c = load(filtered, (t - 2) * n_states + i)
        d = load(filtered, (t - 3) * n_states + i)
        for j in range(n_states):
            count = load(counts, i * n_states + j) + a * load(aheads, j)
            count = count + b * load(aheads, n_states + j)
            count = count + c * load(aheads, 2 * n_states + j)
            count = count + d * load(aheads, 3 * n_states + j)
            store(counts, i * n_states + j, count)


@fused_kernel
def _add_entropies(filtered, t, aheads, backs, h, log_ahead, log_back, terms):
    """Of a step; p(j | i) = transitions[i, j] ahead[j] / back[i]: logarithms of states will do."""
    n_states, n_lanes = filtered.shape[1:]
    for j in range(n_states):
        for lane in range(n_lanes):
            log_ahead[j, lane] = _log(aheads[h, j, lane])
            log_back[j, lane] = _log(backs[h + 1, j, lane])
    for i in range(n_states):
        for j in range(n_states):
            p = load(filtered, t * n_states + i) * load(aheads, h * n_states + j)
            change = p * (load(log_ahead, j) - load(log_back, i))
            store(terms, i * n_states + j, load(terms, i * n_states + j) - change)


@kernel
def _turn_back(t, n_steps, own, begins, turns, matrices, counts, terms, moves, entropies):
    """Lanes that leave a segment keep its counts and take up that of step t; returns when next."""
    n_segments = max(moves.shape[0], 1)
    for lane in range(begins.shape[0]):
        if turns[lane] != t:
            continue
        length, step = n_steps - begins[lane], t - begins[lane]
        if step < length - 2:
            _keep(lane, (step + 1) * n_segments // length, counts, terms, moves, entropies)
        if step < 0:
            turns[lane] = -_NEVER
            continue
        segment = step * n_segments // length
        turns[lane] = begins[lane] + _first_step(segment, n_segments, length) - 1
        if own.shape[3] > 0:
            _take(lane, own, segment, True, matrices)
    return turns.max()


@kernel
def _keep(lane, segment, counts, terms, moves, entropies):
    """What a lane has counted in the segment that it leaves; it counts afresh."""
    n_states = counts.shape[0]
    for i in range(n_states):
        for j in range(n_states):
            if moves.shape[0] > 0:
                moves[segment, i, j, lane] = counts[i, j, lane]
                counts[i, j, lane] = 0.0
            if entropies.shape[0] > 0:
                entropies[segment, i, j, lane] = terms[i, j, lane]
                terms[i, j, lane] = 0.0


@fused_kernel
def smooth_lanes(
    transitions, transposed, own, begins, likelihoods, totals, filtered, moves, entropies
):
    """As :func:`regbayes.kernels.chain.smooth_scaled`, of arrays whose last axis is the lane."""
    n_steps, n_states, n_lanes = filtered.shape
    n_segments, with_entropies = moves.shape[0], entropies.shape[0] > 0
    backs = np.ones((_HELD + 1, n_states, n_lanes))
    aheads = np.empty((_HELD, n_states, n_lanes))
    log_back, log_ahead = np.empty((n_states, n_lanes)), np.empty((n_states, n_lanes))
    # Of the segments that lanes are in.
    counts, terms = np.zeros((n_states, n_states, n_lanes)), np.zeros((n_states, n_states, n_lanes))
    matrices = np.empty((n_states, n_states, own.shape[3]))
    if own.shape[3] > 0:
        _copy(own, 0, matrices, 0, n_states * n_states)
    sums = np.empty((1, n_lanes))
    turns = np.full(n_lanes, n_steps - 2)
    for lane in range(n_lanes):
        if begins[lane] >= n_steps - 1:  # a single step has no moves
            turns[lane] = -_NEVER
    turn, t = n_steps - 2, n_steps - 2
    while t >= 0:
        if t == turn:
            turn = _turn_back(
                t, n_steps, own, begins, turns, matrices, counts, terms, moves, entropies
            )
        held = min(_HELD, t - max(turn, -1))
        _go_back(t, held, likelihoods, totals, filtered, transposed, matrices, aheads, backs)
        if n_segments > 0 and held == _HELD:
            _add_held_moves(filtered, t, aheads, counts)
        for h in range(held):
            if n_segments > 0 and held < _HELD:
                _add_moves(filtered, t - h, aheads, h, counts)
            if with_entropies:
                _add_entropies(filtered, t - h, aheads, backs, h, log_ahead, log_back, terms)
            _to_shares(filtered, t - h, backs, h + 1, sums, 0)
        _copy(backs, held * n_states, backs, 0, n_states)
        t -= held
    _turn_back(-1, n_steps, own, begins, turns, matrices, counts, terms, moves, entropies)
    for s in range(n_segments):
        for i in range(n_states):
            for j in range(n_states):
                for lane in range(n_lanes):
                    p = own[s, i, j, lane] if own.shape[3] > 0 else transitions[i, j]
                    moves[s, i, j, lane] *= p
                    if with_entropies and p > 0.0:
                        own_part = moves[s, i, j, lane] * math.log(p)
                        entropies[s, i, j, lane] = p * entropies[s, i, j, lane] - own_part
