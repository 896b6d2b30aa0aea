"""Compiled work in threads, which are kept."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

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
    n_steps = int(starts[-1])  # plain numbers: some calls have a thousandth of a second for all
    inner = np.searchsorted(starts, [n_steps * run // n_runs for run in range(1, n_runs)])
    edges = sorted({0, *inner.tolist(), n_sequences})
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
