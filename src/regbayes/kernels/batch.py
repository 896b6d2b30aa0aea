"""The chain kernels over many sequences of unequal length, in threads.

Sequence `s` is rows `starts[s]:starts[s + 1]`. Every sequence is worked on by itself, with its
own share of the random numbers, so nothing depends on the number of threads.
"""

import math
from typing import NamedTuple

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
from regbayes.kernels.lanes import (
    LANES,
    filter_lanes,
    group,
    log_products,
    scale_lanes,
    smooth_lanes,
)
from regbayes.kernels.threads import in_threads


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
    with np.errstate(divide="ignore"):
        logs = np.log(start), np.log(transitions)
    chain = _Chain(start, transitions, *logs, *tilts)
    if rows is None:
        seen = _Seen(log_likelihoods, np.zeros(0, np.int64), starts, np.zeros((0, 0)), np.zeros(0))
    else:
        table, units = np.empty(log_likelihoods.shape), np.empty(len(log_likelihoods))
        scale_likelihoods(log_likelihoods, table, units)
        seen = _Seen(log_likelihoods, rows, starts, table, units)
    found = _Found(marginals, log_probabilities, counts, terms)
    members, edges = group(starts, transitions)
    in_order = bool((np.diff(members) > 0).all())  # then the rest can be done while caches are warm

    def work(low, high):
        _smooth(chain, seen, members, edges[low : high + 1], causal, found)
        if then is not None and in_order:
            then(edges[low], edges[high], marginals)

    sizes = np.diff(starts)[members]
    in_threads(work, np.concatenate([[0], np.cumsum(sizes)])[edges], n_threads)
    if then is not None and not in_order:
        in_threads(lambda low, high: then(low, high, marginals), starts, n_threads)
    return found


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
def _tilted(chain, s, room):
    """The chain times exp(tilt), rows summing to one at most; returns the units' logarithms."""
    log_start, log_transitions = chain.log_start, chain.log_transitions
    first, moves = chain.first_tilts[s], chain.move_tilts[s]
    start, matrices = room.first, room.matrices
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


class _Chain(NamedTuple):
    """What all sequences have in common, and their tilts, if any."""

    start: np.ndarray
    transitions: np.ndarray
    log_start: np.ndarray
    log_transitions: np.ndarray
    first_tilts: np.ndarray
    move_tilts: np.ndarray


class _Seen(NamedTuple):
    """The likelihoods of all steps, or of the rows that steps share."""

    log_likelihoods: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    table: np.ndarray  # shared rows, scaled, and the logarithms of their units
    units: np.ndarray


class _Found(NamedTuple):
    """Where results go."""

    marginals: np.ndarray
    log_probabilities: np.ndarray
    counts: np.ndarray
    entropies: np.ndarray


class _Room(NamedTuple):
    """Arrays that one sequence after the other is worked on in."""

    likelihoods: np.ndarray
    shifts: np.ndarray
    totals: np.ndarray
    first: np.ndarray
    matrices: np.ndarray
    transposed: np.ndarray


class _Lanes(NamedTuple):
    """The same for sequences side by side; `own` is empty unless each has a tilt of its own."""

    likelihoods: np.ndarray
    marginals: np.ndarray
    totals: np.ndarray
    first: np.ndarray
    own: np.ndarray
    counts: np.ndarray
    entropies: np.ndarray
    begins: np.ndarray
    units: np.ndarray  # logarithms of what likelihoods and matrices were divided by
    safe: np.ndarray


@kernel
def _smooth(chain, seen, members, edges, causal, found):
    n_states, n_lanes = chain.start.shape[0], 0
    longest, longest_lane = 0, 0
    for g in range(edges.shape[0] - 1):
        s = members[edges[g + 1] - 1]  # the longest
        n_steps = seen.starts[s + 1] - seen.starts[s]
        longest = max(longest, n_steps)
        if edges[g + 1] - edges[g] > 1:
            longest_lane, n_lanes = max(longest_lane, n_steps), LANES
    matrices = np.empty((chain.move_tilts.shape[1], n_states, n_states))
    room = _Room(
        np.empty((longest, n_states)), np.empty(longest), np.empty(longest),
        chain.start.copy(), matrices, np.empty_like(matrices),
    )  # fmt: skip
    tilted = chain.first_tilts.shape[0] > 0
    if not tilted:
        room.matrices[0] = chain.transitions
        room.transposed[0] = chain.transitions.T
    n_segments, n_terms = found.counts.shape[1], found.entropies.shape[1]
    n_own = n_lanes if tilted else 0
    lanes = _Lanes(
        np.empty((longest_lane, n_states, n_lanes)),
        np.empty((longest_lane, n_states, n_lanes)),
        np.empty((longest_lane, n_lanes)),
        np.empty((n_states, n_lanes)),
        np.empty((*matrices.shape, n_own)),
        np.empty((n_segments, n_states, n_states, n_lanes)),
        np.empty((n_terms, n_states, n_states, n_lanes)),
        np.zeros(LANES, dtype=np.int64),
        np.zeros(LANES),
        np.zeros(LANES, dtype=np.bool_),
    )
    for g in range(edges.shape[0] - 1):
        together = members[edges[g] : edges[g + 1]]
        side_by_side = together.shape[0] > 1
        if side_by_side:
            _smooth_together(chain, seen, together, causal, room, lanes, found)
        for lane in range(together.shape[0]):
            if not (side_by_side and lanes.safe[lane]):
                _smooth_alone(chain, seen, together[lane], causal, room, found)


@kernel
def _smooth_together(chain, seen, together, causal, room, lanes, found):
    """Sequences side by side, as far as the fast recursions hold: `lanes.safe` says for whom."""
    n_together, tilted = together.shape[0], lanes.own.shape[3] > 0
    n_steps = seen.starts[together[-1] + 1] - seen.starts[together[-1]]  # of the longest
    begins, units = lanes.begins, lanes.units
    begins[:], units[:] = n_steps, 0.0
    for lane in range(LANES):
        if lane < n_together:
            s = together[lane]
            length = seen.starts[s + 1] - seen.starts[s]
            begins[lane] = n_steps - length
            if tilted:
                first_unit, unit = _tilted(chain, s, room)
                units[lane] = first_unit + (length - 1) * unit
        lanes.first[:, lane] = room.first  # lanes left over have that of the last one
        if tilted:
            lanes.own[:, :, :, lane] = room.matrices
    likelihoods, totals = lanes.likelihoods[:n_steps], lanes.totals[:n_steps]
    marginals = lanes.marginals[:n_steps]
    _fill_lanes(seen, together, begins, likelihoods, units)
    filter_lanes(
        lanes.first, chain.transitions, lanes.own, begins, likelihoods, marginals, totals,
        lanes.safe,
    )  # fmt: skip
    log_products(totals, units)
    if not causal:
        lanes.counts[:] = 0.0
        lanes.entropies[:] = 0.0
        smooth_lanes(
            chain.transitions, room.transposed[0], lanes.own, begins, likelihoods, totals,
            marginals, lanes.counts, lanes.entropies,
        )  # fmt: skip
    _empty_lanes(seen, together, begins, marginals, found.marginals)
    for lane in range(n_together):
        s = together[lane]
        if lanes.safe[lane]:
            found.log_probabilities[s] = units[lane]
            if not causal:
                found.counts[s] = lanes.counts[:, :, :, lane]
                if found.entropies.shape[1] > 0:
                    found.entropies[s] = lanes.entropies[:, :, :, lane]


@kernel
def _fill_lanes(seen, together, begins, likelihoods, units):
    """Scaled likelihoods of the lanes' sequences, one before they begin; adds up their units.

    Step by step, so that what is written stays in the nearest cache.
    """
    n_steps, n_states, n_lanes = likelihoods.shape
    in_table = seen.rows.shape[0] > 0
    shifts = _shifts(seen, together, begins)
    for t in range(n_steps):
        for lane in range(n_lanes):
            if t < begins[lane]:
                for k in range(n_states):
                    likelihoods[t, k, lane] = 1.0 if in_table else 0.0
            elif in_table:
                row = seen.rows[shifts[lane] + t]
                units[lane] += seen.units[row]
                for k in range(n_states):
                    likelihoods[t, k, lane] = seen.table[row, k]
            else:
                row = shifts[lane] + t
                for k in range(n_states):
                    likelihoods[t, k, lane] = seen.log_likelihoods[row, k]
    if not in_table:
        scale_lanes(likelihoods, units)


@kernel
def _empty_lanes(seen, together, begins, marginals, out):
    """Marginals of the lanes to where their sequences are."""
    n_steps, n_states = marginals.shape[:2]
    shifts = _shifts(seen, together, begins)
    for t in range(n_steps):
        for lane in range(together.shape[0]):
            if t >= begins[lane]:
                row = shifts[lane] + t
                for k in range(n_states):
                    out[row, k] = marginals[t, k, lane]


@kernel
def _shifts(seen, together, begins):
    """Where step t of a lane is among all steps, less t."""
    out = np.zeros(begins.shape[0], dtype=np.int64)
    for lane in range(together.shape[0]):
        out[lane] = seen.starts[together[lane]] - begins[lane]
    return out


@kernel
def _smooth_alone(chain, seen, s, causal, room, found):
    """Sequence `s`, by the fast recursions or, where they would lose something, by logarithms."""
    low, high = seen.starts[s], seen.starts[s + 1]
    n_steps, n_states, tilted = high - low, chain.start.shape[0], chain.first_tilts.shape[0] > 0
    out, counts, entropies = found.marginals[low:high], found.counts[s], found.entropies[s]
    likelihoods = room.likelihoods[:n_steps]
    first_unit, unit = 0.0, 0.0
    if tilted:
        first_unit, unit = _tilted(chain, s, room)
        for m in range(room.matrices.shape[0]):
            room.transposed[m] = room.matrices[m].T
    _scaled(seen, s, likelihoods, room.shifts)
    if filter_scaled(room.first, room.matrices, likelihoods, out, room.totals):
        total = first_unit + (n_steps - 1) * unit + room.shifts[:n_steps].sum()
        found.log_probabilities[s] = total + _log_product(room.totals[:n_steps])
        if not causal:
            smooth_scaled(
                room.matrices, room.transposed, likelihoods, room.totals, out, counts, entropies
            )
        return
    given = seen.log_likelihoods[low:high]
    if seen.rows.shape[0] > 0:
        given = seen.log_likelihoods[seen.rows[low:high]]
    log_first = chain.log_start
    logs = chain.log_transitions.reshape((1, n_states, n_states))
    if tilted:
        log_first = chain.log_start + chain.first_tilts[s]
        logs = chain.log_transitions + chain.move_tilts[s]
    found.log_probabilities[s] = filter_all_log(log_first, logs, given, out)
    if found.log_probabilities[s] == -np.inf:
        out[:] = 0.0
    elif causal:
        for t in range(n_steps):
            to_shares(out[t])
    else:
        smooth_log(logs, given, out, counts, entropies)


@kernel
def _scaled(seen, s, likelihoods, shifts):
    """Likelihoods of sequence `s` and the logarithms of their units."""
    low, n_steps = seen.starts[s], likelihoods.shape[0]
    if seen.rows.shape[0] == 0:
        scale_likelihoods(seen.log_likelihoods[low : low + n_steps], likelihoods, shifts)
        return
    for t in range(n_steps):
        row = seen.rows[low + t]
        shifts[t] = seen.units[row]
        for k in range(likelihoods.shape[1]):
            likelihoods[t, k] = seen.table[row, k]


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
