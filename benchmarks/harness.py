"""Ours and the peer in turn (A, B, A, B, ...), so that a busy machine slows both alike.

A benchmark is a file ``benchmarks/bench_*.py`` with ``run(quick) -> list[Comparison]``.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments import markdown


@dataclass(frozen=True)
class Comparison:
    """Median CPU seconds of ours and of a peer at the same task; wall-clock seconds beside them."""

    name: str
    ours_seconds: float
    peer_name: str
    peer_seconds: float
    target_ratio: float | None
    ours_wall: float
    peer_wall: float
    repeats: int

    @property
    def ratio(self) -> float:
        """Ours over the peer's, in CPU seconds: below 1 is faster."""
        return self.ours_seconds / self.peer_seconds

    @property
    def wall_ratio(self) -> float:
        return self.ours_wall / self.peer_wall

    @property
    def met(self) -> bool:
        return self.target_ratio is None or self.ratio < self.target_ratio


def compare(
    name: str,
    ours: Callable[[], Any],
    peer_name: str,
    peer: Callable[[], Any],
    *,
    target_ratio: float | None,
    repeats: int = 7,
    cpu_clock: Callable[[], float] = time.process_time,
) -> Comparison:
    """Measure both in turn, after one call of each that does not count (compilation, caches).

    Parameters
    ----------
    name, peer_name : str
    ours, peer : callable
        The task, without arguments.
    target_ratio : float or None
        The median of ours should stay below this many times the peer's.
    repeats : int, default=7
    cpu_clock : callable, default=time.process_time
        CPU seconds so far; `time.thread_time` leaves out other threads of this process.

    Examples
    --------
    >>> result = compare("sum", lambda: sum(range(1000)), "a longer sum",
    ...                  lambda: sum(range(100_000)), target_ratio=1.0)
    >>> result.met
    True
    """
    ours()
    peer()
    measured = [(_measure(ours, cpu_clock), _measure(peer, cpu_clock)) for _ in range(repeats)]
    (ours_cpu, ours_wall), (peer_cpu, peer_wall) = (
        [statistics.median(seconds) for seconds in zip(*times)] for times in zip(*measured)
    )
    return Comparison(
        name, ours_cpu, peer_name, peer_cpu, target_ratio, ours_wall, peer_wall, repeats
    )


def two_cores(task: Callable[[], Any], repeats: int = 7) -> Comparison:
    """What a second core is worth here: two processes that share nothing, the same task each.

    No number of threads can do better than this; on virtual machines it may be far from 0.5.
    """

    def together() -> None:
        other = multiprocessing.get_context("fork").Process(target=task)
        other.start()
        task()
        other.join()

    def in_turn() -> None:
        task()
        task()

    return compare(
        "this machine: two processes at once, wall s",
        together,
        "one after the other, wall s",
        in_turn,
        target_ratio=None,
        repeats=repeats,
        cpu_clock=time.perf_counter,
    )


def _measure(task: Callable[[], Any], cpu_clock: Callable[[], float]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), cpu_clock()
    task()
    return cpu_clock() - cpu, time.perf_counter() - wall


def as_table(comparisons: Sequence[Comparison]) -> str:
    """Markdown table of comparisons."""
    titles = ["task", "ours, CPU s", "peer", "peer, CPU s", "ratio", "target", "", "wall ratio"]
    rows = [
        [
            c.name,
            f"{c.ours_seconds:.3g}",
            c.peer_name,
            f"{c.peer_seconds:.3g}",
            f"{c.ratio:.2f}",
            "" if c.target_ratio is None else f"< {c.target_ratio:g}",
            "" if c.target_ratio is None else "met" if c.met else "missed",
            f"{c.wall_ratio:.2f}",
        ]
        for c in comparisons
    ]
    return markdown.table(titles, rows)
