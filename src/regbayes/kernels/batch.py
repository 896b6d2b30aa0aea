"""The chain kernels over many sequences of unequal length, in threads.

Sequence `s` is rows `starts[s]:starts[s + 1]`. Every sequence is worked on by itself, with its
own share of the random numbers, so nothing depends on the number of threads.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.chain import (
    draw_path,
    draw_path_log,
    filter_log,
    filter_scaled,
    most_likely_path,
    scale_likelihoods,
    smooth_log,
    smooth_scaled,
    to_shares,
)

_NO_MOVES = np.zeros((0, 0))


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
    n_sequences, n_states = len(starts) - 1, len(start)
    marginals = np.empty_like(log_likelihoods)
    log_probabilities = np.empty(n_sequences)
    counts = np.zeros((n_sequences, n_states, n_states) if moves else (n_sequences, 0, 0))
    ranked, order = ranked_rows(transitions)
    transposed = np.ascontiguousarray(transitions.T)

    def work(low, high):
        steps = slice(starts[low], starts[high])
        _smooth(
            start,
            transitions,
            transposed,
            ranked,
            order,
            log_likelihoods[steps],
            starts[low : high + 1] - starts[low],
            causal,
            marginals[steps],
            log_probabilities[low:high],
            counts[low:high],
        )

    _in_threads(work, starts, n_threads)
    return marginals, log_probabilities, counts


def ranked_rows(transitions):
    """Every row in descending order, and the states that the entries belong to."""
    order = np.argsort(-transitions, axis=1, kind="stable")
    return np.take_along_axis(transitions, order, axis=1), order


@kernel
def _longest(starts):
    longest = 0
    for s in range(starts.shape[0] - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    return longest


@kernel
def _smooth(
    start, transitions, transposed, ranked, order, log_likelihoods, starts, causal, marginals,
    log_probabilities, counts,
):  # fmt: skip
    room = np.empty((_longest(starts), start.shape[0]))
    shifts, totals, cuts = np.empty(len(room)), np.empty(len(room)), np.zeros(len(room))
    log_transitions = np.log(transitions)
    for s in range(starts.shape[0] - 1):
        low, high = starts[s], starts[s + 1]
        n_steps = high - low
        given, out, moves = log_likelihoods[low:high], marginals[low:high], counts[s]
        likelihoods = room[:n_steps]
        scale_likelihoods(given, likelihoods, shifts)
        if filter_scaled(start, transitions, likelihoods, out, totals):
            log_probabilities[s] = 0.0
            for t in range(n_steps):
                log_probabilities[s] += math.log(totals[t]) + shifts[t]
            if not causal:
                smooth_scaled(transposed, likelihoods, totals, out, moves)
                if moves.shape[0] > 0:
                    moves *= transitions
            continue
        log_probabilities[s] = filter_log(start, transitions, ranked, order, cuts, 0.0, given, out)
        if log_probabilities[s] == -np.inf:
            out[:] = 0.0
        elif causal:
            for t in range(n_steps):
                to_shares(out[t])
        else:
            smooth_log(log_transitions, given, out, moves)


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
    ranked, order = ranked_rows(transitions)

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

    _in_threads(work, starts, n_threads)
    return paths


@kernel
def _draw_paths(
    start, transitions, ranked, order, log_likelihoods, starts, uniforms, cuts, width, paths
):  # fmt: skip
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
            if filter_scaled(start, transitions, likelihoods[: high - low], filtered, totals):
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

    _in_threads(work, starts, n_threads)
    return paths, log_probabilities


@kernel
def _most_likely_paths(log_start, log_transitions, log_likelihoods, starts, paths, log_p):
    for s in range(starts.shape[0] - 1):
        low, high = starts[s], starts[s + 1]
        pointers = np.empty((high - low, log_start.shape[0]), dtype=np.int32)
        log_p[s] = most_likely_path(
            log_start, log_transitions, log_likelihoods[low:high], pointers, paths[low:high]
        )


def _in_threads(work: Callable[[int, int], None], starts, n_threads: int) -> None:
    """`work(low, high)` on runs of sequences with about as many steps each."""
    n_sequences = len(starts) - 1
    if n_threads == 1 or n_sequences < 2:
        work(0, n_sequences)
        return
    targets = np.linspace(0, starts[-1], min(n_threads, n_sequences) + 1)
    edges = np.unique(np.searchsorted(starts, targets))
    edges[-1] = n_sequences
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))
