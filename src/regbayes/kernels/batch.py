"""The chain kernels over many sequences of unequal length, in threads.

Sequence `s` is rows `starts[s]:starts[s + 1]`. Every sequence is worked on by itself, with its
own share of the random numbers, so nothing depends on the number of threads.
"""

import itertools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.chain import (
    draw_path,
    draw_path_log,
    filter_all_log,
    filter_log,
    filter_scaled,
    most_likely_path,
    scale_likelihoods,
    smooth_log,
    smooth_scaled,
    to_shares,
)
from regbayes.kernels.lanes import LANES, filter_lanes, group, smooth_lanes


def smooth(start, transitions, log_likelihoods, starts, n_threads=1, causal=False, moves=False):
    """State marginals of all steps, log-likelihoods of the sequences and expected transitions.

    Parameters
    ----------
    start : ndarray of shape (K,)
    transitions : ndarray of shape (K, K)
    log_likelihoods : ndarray of shape (T, K)
    starts : ndarray of int of shape (n_sequences + 1,)
    n_threads : int
    causal : bool
        p(z_t | x_1..t) in place of p(z_t | x_1..T).
    moves : bool
        Whether to count transitions; otherwise the last result is empty.

    Returns
    -------
    marginals : ndarray of shape (T, K)
    log_probabilities : ndarray of shape (n_sequences,)
    transitions : ndarray of shape (n_sequences, K, K) or (n_sequences, 0, 0)

    Examples
    --------
    >>> chain = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> seen = np.log([[0.9, 0.1], [0.5, 0.5], [0.9, 0.1]])
    >>> marginals, log_probabilities, _ = smooth(*chain, seen, np.array([0, 3]))
    >>> marginals.round(2)
    array([[0.97, 0.03],
           [0.95, 0.05],
           [0.97, 0.03]])
    """
    segments = 1 if moves else 0
    found = _smooth_all(start, transitions, log_likelihoods, starts, n_threads, segments, causal)
    marginals, log_probabilities, counts, _ = found
    return marginals, log_probabilities, counts[:, 0] if moves else np.zeros((len(counts), 0, 0))


def expect(
    start, transitions, log_likelihoods, starts,
    n_threads=1, segments=1, tilts=None, entropies=False, rows=None, then=None,
):  # fmt: skip
    """State marginals, and transitions by position in the sequence, of chains that may be tilted.

    Parameters
    ----------
    start, transitions, log_likelihoods, starts, n_threads
        As for :func:`smooth`.
    segments : int
        Parts of equal length that every sequence is cut into.
    tilts : (ndarray of shape (n_sequences, K), ndarray of shape (n_sequences, segments, K, K))
        Added to the logarithms of `start` and, in each segment, of `transitions`.
    entropies : bool
        Whether to find the entropy terms; otherwise the last result is empty.
    rows : ndarray of int of shape (T,), optional
        The row of `log_likelihoods` that a step has, where many steps have the same; -1 is the
        last one.
    then : callable(low, high, marginals), optional
        Called when sequences `low` to `high` are done, in their thread.

    Returns
    -------
    marginals : ndarray of shape (T, K)
    log_normalizers : ndarray of shape (n_sequences,)
        Without a tilt, the log-likelihoods.
    transitions : ndarray of shape (n_sequences, segments, K, K)
    entropies : ndarray of the same shape, or empty
        As in :func:`regbayes.kernels.chain.smooth_scaled`.
    """
    return _smooth_all(
        start, transitions, log_likelihoods, starts, n_threads, segments, False,
        tilts, entropies, rows, then,
    )  # fmt: skip


def _smooth_all(
    start, transitions, log_likelihoods, starts, n_threads, segments, causal,
    tilts=None, entropies=False, rows=None, then=None,
):  # fmt: skip
    n_sequences, n_states = len(starts) - 1, len(start)
    transitions = np.ascontiguousarray(transitions)
    marginals = np.empty((starts[-1], n_states))
    log_probabilities = np.empty(n_sequences)
    shape = n_sequences, segments, n_states, n_states
    counts, terms = np.zeros(shape), np.zeros(shape if entropies else (n_sequences, 0, 0, 0))
    if tilts is None:
        tilts = np.zeros((0, n_states)), np.zeros((0, 1, n_states, n_states))
    first_tilts, move_tilts = tilts
    with np.errstate(divide="ignore"):
        log_start, log_transitions = np.log(start), np.log(transitions)

    members, edges = group(starts, transitions)
    in_order = bool((np.diff(members) > 0).all())  # then the rest can be done while caches are warm

    def work(low, high):
        _smooth(
            start,
            transitions,
            log_start,
            log_transitions,
            first_tilts,
            move_tilts,
            log_likelihoods,
            np.zeros(0, np.int64) if rows is None else rows,
            starts,
            members,
            edges[low : high + 1],
            causal,
            marginals,
            log_probabilities,
            counts,
            terms,
        )
        if then is not None and in_order:
            then(edges[low], edges[high], marginals)

    sizes = np.diff(starts)[members]
    in_threads(work, np.concatenate([[0], np.cumsum(sizes)])[edges], n_threads)
    if then is not None and not in_order:
        in_threads(lambda low, high: then(low, high, marginals), starts, n_threads)
    return marginals, log_probabilities, counts, terms


@kernel
def rank_rows(transitions, ranked, order):
    """Every row in descending order, and the states that the entries belong to."""
    for i in range(transitions.shape[0]):
        order[i] = np.argsort(-transitions[i], kind="mergesort")
        for r in range(transitions.shape[1]):
            ranked[i, r] = transitions[i, order[i, r]]


@kernel
def _longest(starts):
    longest = 0
    for s in range(starts.shape[0] - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    return longest


@kernel
def _exp(value):
    """exp, but what is possible stays so: the fast filter then knows what it might have lost."""
    return math.exp(max(value, -690.0)) if value > -np.inf else 0.0


@kernel
def _tilted(log_start, log_transitions, first, moves, start, matrices):
    """The chain times exp(tilt), rows summing to one at most; returns the units' logarithms."""
    n_states = log_start.shape[0]
    high = (log_start + first).max()
    total = 0.0
    for i in range(n_states):
        start[i] = _exp(log_start[i] + first[i] - high)
        total += start[i]
    start /= total
    best = -np.inf
    for g in range(moves.shape[0]):
        best = max(best, (log_transitions + moves[g]).max())
    most = 0.0
    for g in range(moves.shape[0]):
        for i in range(n_states):
            row = 0.0
            for j in range(n_states):
                matrices[g, i, j] = _exp(log_transitions[i, j] + moves[g, i, j] - best)
                row += matrices[g, i, j]
            most = max(most, row)
    matrices /= most
    return high + math.log(total), best + math.log(most)


@kernel
def _smooth(
    start, transitions, log_start, log_transitions, first_tilts, move_tilts, log_likelihoods,
    rows, starts, members, edges, causal, marginals, log_probabilities, counts, entropies,
):  # fmt: skip
    n_states, n_lanes = start.shape[0], 0
    tilted = first_tilts.shape[0] > 0
    longest, longest_lane = 0, 0
    for g in range(edges.shape[0] - 1):
        s = members[edges[g]]
        longest = max(longest, starts[s + 1] - starts[s])
        if edges[g + 1] - edges[g] > 1:
            longest_lane, n_lanes = max(longest_lane, starts[s + 1] - starts[s]), LANES
    room = np.empty((longest, n_states))
    shifts, totals = np.empty(longest), np.empty(longest)
    shared = rows.shape[0] > 0
    table, units = np.empty_like(log_likelihoods), np.empty(len(log_likelihoods))
    if shared:
        scale_likelihoods(log_likelihoods, table, units)
    first = start.copy()
    matrices = np.empty((move_tilts.shape[1], n_states, n_states))
    transposed = np.empty_like(matrices)
    if not tilted:
        matrices[0] = transitions
        transposed[0] = transitions.T
    n_segments, n_terms = counts.shape[1], entropies.shape[1]
    lane_first = np.empty((n_states, n_lanes))
    n_own = n_lanes if tilted else 0
    lane_matrices = np.empty((*matrices.shape, n_own))
    lane_room = np.empty((longest_lane, n_states, n_lanes))
    lane_marginals, lane_totals = np.empty_like(lane_room), np.empty((longest_lane, n_lanes))
    lane_counts = np.empty((n_segments, n_states, n_states, n_lanes))
    lane_terms = np.empty((n_terms, n_states, n_states, n_lanes))
    safe = np.zeros(LANES, dtype=np.bool_)
    for g in range(edges.shape[0] - 1):
        together = members[edges[g] : edges[g + 1]]
        n_steps = starts[together[0] + 1] - starts[together[0]]
        likelihoods = room[:n_steps]
        side_by_side = together.shape[0] > 1
        for lane in range(LANES if side_by_side else 0):
            s = together[min(lane, together.shape[0] - 1)]  # lanes left over repeat the last one
            if lane < together.shape[0]:
                _scaled(log_likelihoods, rows, table, units, starts[s], likelihoods, shifts)
                log_probabilities[s] = shifts[:n_steps].sum()
            lane_room[:n_steps, :, lane] = likelihoods
            if tilted:
                first_unit, unit = _tilted(
                    log_start, log_transitions, first_tilts[s], move_tilts[s], first, matrices
                )
                lane_matrices[:, :, :, lane] = matrices
                if lane < together.shape[0]:
                    log_probabilities[s] += first_unit + (n_steps - 1) * unit
            lane_first[:, lane] = first
        if side_by_side:
            filter_lanes(
                lane_first, matrices, lane_matrices, lane_room[:n_steps], lane_marginals,
                lane_totals, safe,
            )  # fmt: skip
            if not causal:
                lane_counts[:] = 0.0
                lane_terms[:] = 0.0
                smooth_lanes(
                    matrices, transposed, lane_matrices, lane_room, lane_totals,
                    lane_marginals[:n_steps], lane_counts, lane_terms,
                )  # fmt: skip
        for lane in range(together.shape[0]):
            s = together[lane]
            low, high = starts[s], starts[s + 1]
            out = marginals[low:high]
            if side_by_side and safe[lane]:
                log_probabilities[s] += _log_product(lane_totals[:n_steps, lane])
                out[:] = lane_marginals[:n_steps, :, lane]
                if not causal:
                    counts[s] = lane_counts[:, :, :, lane]
                    if n_terms > 0:
                        entropies[s] = lane_terms[:, :, :, lane]
                continue
            first_unit, unit = 0.0, 0.0
            if tilted:
                first_unit, unit = _tilted(
                    log_start, log_transitions, first_tilts[s], move_tilts[s], first, matrices
                )
                for m in range(matrices.shape[0]):
                    transposed[m] = matrices[m].T
            _scaled(log_likelihoods, rows, table, units, low, likelihoods, shifts)
            if filter_scaled(first, matrices, likelihoods, out, totals):
                log_probabilities[s] = first_unit + (n_steps - 1) * unit + shifts[:n_steps].sum()
                log_probabilities[s] += _log_product(totals[:n_steps])
                if not causal:
                    smooth_scaled(
                        matrices, transposed, likelihoods, totals, out, counts[s], entropies[s]
                    )
                continue
            given = log_likelihoods[rows[low:high]] if shared else log_likelihoods[low:high]
            log_first, logs = log_start, log_transitions.reshape((1, n_states, n_states))
            if tilted:
                log_first, logs = log_start + first_tilts[s], log_transitions + move_tilts[s]
            log_probabilities[s] = filter_all_log(log_first, logs, given, out)
            if log_probabilities[s] == -np.inf:
                out[:] = 0.0
            elif causal:
                for t in range(n_steps):
                    to_shares(out[t])
            else:
                smooth_log(logs, given, out, counts[s], entropies[s])


@kernel
def _scaled(log_likelihoods, rows, table, units, low, likelihoods, shifts):
    """Likelihoods of the sequence that starts at `low` and the logarithms of their units."""
    n_steps = likelihoods.shape[0]
    if rows.shape[0] == 0:
        scale_likelihoods(log_likelihoods[low : low + n_steps], likelihoods, shifts)
        return
    for t in range(n_steps):
        shifts[t] = units[rows[low + t]]
        for k in range(likelihoods.shape[1]):
            likelihoods[t, k] = table[rows[low + t], k]


@kernel
def _log_product(factors):
    """Factors are between 1e-280 and one: a logarithm is for many of them."""
    total, product = 0.0, 1.0
    for factor in factors:
        product *= factor
        if product < 1e-20:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


def draw_paths(
    start, transitions, log_likelihoods, starts, uniforms, cuts=None, width=1.0, n_threads=1
):
    """A path for every sequence from its posterior (forward filtering, backward sampling).

    With `cuts`, the slices of the beam sampler, only transitions above them may be taken; `width`
    as in :func:`regbayes.kernels.chain.draw_slices`. `log_likelihoods` are then overwritten, which
    saves the largest array of a sweep. `uniforms[T]` are all the randomness.

    Returns
    -------
    paths : ndarray of int of shape (T,)
        -1 throughout an impossible sequence.
    """
    paths = np.empty(len(log_likelihoods), dtype=np.int64)
    if cuts is None:
        cuts, width = np.zeros(len(log_likelihoods)), 0.0
    transitions = np.ascontiguousarray(transitions)
    ranked, order = np.empty_like(transitions), np.empty(transitions.shape, dtype=np.int64)
    rank_rows(transitions, ranked, order)

    def work(low, high):
        steps = slice(starts[low], starts[high])
        _draw_paths(
            start,
            transitions,
            ranked,
            order,
            log_likelihoods[steps],
            starts[low : high + 1] - starts[low],
            uniforms[steps],
            cuts[steps],
            width,
            paths[steps],
        )

    in_threads(work, starts, n_threads)
    return paths


@kernel
def _draw_paths(
    start, transitions, ranked, order, log_likelihoods, starts, uniforms, cuts, width, paths
):  # fmt: skip
    matrices = transitions.reshape((1, *transitions.shape))
    longest = _longest(starts) if width == 0.0 else 0
    room, likelihoods = np.empty((longest, start.shape[0])), np.empty((longest, start.shape[0]))
    shifts, totals = np.empty(longest), np.empty(longest)
    for s in range(starts.shape[0] - 1):
        low, high = starts[s], starts[s + 1]
        given, path, quantiles = log_likelihoods[low:high], paths[low:high], uniforms[low:high]
        filtered = given
        if width == 0.0:
            filtered = room[: high - low]
            scale_likelihoods(given, likelihoods, shifts)
            if filter_scaled(start, matrices, likelihoods[: high - low], filtered, totals):
                draw_path(transitions, filtered, quantiles, path)
                continue
        slices = cuts[low:high]
        total = filter_log(start, transitions, ranked, order, slices, width, given, filtered)
        if total == -np.inf:
            path[:] = -1
        else:
            draw_path_log(transitions, slices, width, filtered, quantiles, path)


def most_likely_paths(start, transitions, log_likelihoods, starts, n_threads=1):
    """The most likely path of every sequence and log p(path, x) (Viterbi).

    Examples
    --------
    >>> chain = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> seen = np.log([[0.9, 0.1], [0.4, 0.6], [0.9, 0.1]])
    >>> most_likely_paths(*chain, seen, np.array([0, 3]))[0]
    array([0, 0, 0])
    """
    paths = np.empty(len(log_likelihoods), dtype=np.int64)
    log_probabilities = np.empty(len(starts) - 1)
    with np.errstate(divide="ignore"):
        chain = np.log(start), np.log(transitions)

    def work(low, high):
        steps = slice(starts[low], starts[high])
        bounds = starts[low : high + 1] - starts[low]
        _most_likely_paths(
            *chain, log_likelihoods[steps], bounds, paths[steps], log_probabilities[low:high]
        )

    in_threads(work, starts, n_threads)
    return paths, log_probabilities


@kernel
def _most_likely_paths(log_start, log_transitions, log_likelihoods, starts, paths, log_p):
    for s in range(starts.shape[0] - 1):
        low, high = starts[s], starts[s + 1]
        pointers = np.empty((high - low, log_start.shape[0]), dtype=np.int32)
        log_p[s] = most_likely_path(
            log_start, log_transitions, log_likelihoods[low:high], pointers, paths[low:high]
        )


_POOLS: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOLS.clear)  # threads do not follow into the child


def in_threads(work: Callable[[int, int], None], starts, n_threads: int) -> None:
    """`work(low, high)` on runs of sequences with about as many steps each.

    Threads are kept for the next call, the caller is one of them, and who is early takes over from
    who is late: runs are many more than threads.
    """
    n_sequences = len(starts) - 1
    if n_threads == 1 or n_sequences < 2:
        work(0, n_sequences)
        return
    n_runs = min(4 * n_threads, n_sequences)
    inner = np.searchsorted(starts, np.linspace(0, starts[-1], n_runs + 1)[1:-1])
    edges = np.unique([0, *inner, n_sequences])
    runs = iter(list(itertools.pairwise(edges)))

    def take() -> None:
        for low, high in runs:
            work(low, high)

    if n_threads not in _POOLS:
        _POOLS[n_threads] = ThreadPoolExecutor(n_threads - 1, "regbayes")
    others = [_POOLS[n_threads].submit(take) for _ in range(n_threads - 1)]
    try:
        take()
    finally:
        for other in others:
            if not other.cancel():  # it has begun; else there is nothing left to take
                other.result()
