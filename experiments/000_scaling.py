"""Sweeps of an infinite HMM over shards: measured on 1 and 2 workers, predicted for 4 to 1,000."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psutil
from dask import delayed
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from sklearn.base import clone

from experiments import environment, markdown
from experiments.harness import Options
from regbayes import distributed
from regbayes.datasets._remote import write_atomically
from regbayes.distributed import _hmm
from regbayes.hmm import InfiniteHMM

N_SEQUENCES, N_STEPS, N_FEATURES, N_REGIMES = 200, 2_000, 4, 6
WORKERS = (4, 16, 64, 256, 1000)
BANDWIDTH = 1e9  # bytes a second: a usual network, not measured here


def sequences(n: int, n_steps: int, seed: int) -> list[NDArray]:
    """Gaussian regimes that last 20 steps on average; made where they are needed."""
    rng = np.random.default_rng([1, seed])
    places = 3.0 * np.random.default_rng(0).normal(size=(N_REGIMES, N_FEATURES))
    found = []
    for _ in range(n):
        regime = np.cumsum(rng.random(n_steps) < 0.05) * rng.integers(1, N_REGIMES)
        found.append(places[regime % N_REGIMES] + rng.normal(size=(n_steps, N_FEATURES)))
    return found


def partitions(n_shards: int, n_sequences: int, n_steps: int) -> list[Any]:
    each = n_sequences // n_shards
    return [delayed(sequences)(each, n_steps, seed) for seed in range(n_shards)]


class Clock:
    """A callback: when every sweep ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **more: Any) -> None:
        if context.task_name == "sweep":
            self.times.append(time.perf_counter())


@dataclass(frozen=True)
class Timing:
    """A run: seconds of a sweep by the clock, and of processors."""

    n_workers: int
    n_shards: int
    n_steps: int
    wall: float  # the median sweep
    busiest: float  # CPU seconds of the busiest worker, a sweep
    workers: float  # of all workers
    client: float  # of the process with client and scheduler
    n_states: int


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as there,
        Client(there, direct_to_workers=True) as client,
    ):
        yield client


def cpu_seconds() -> float:
    used = psutil.Process().cpu_times()
    return used.user + used.system


def measure(n_workers: int, n_shards: int, n_sequences: int, n_steps: int, n: int) -> Timing:
    """`n` sweeps after three; the same chain whatever the number of workers."""
    model = InfiniteHMM(n_chains=1, burn_in=2, n_draws=1, n_init_states=N_REGIMES, random_state=0)
    with cluster(n_workers) as client:
        parts = client.persist(partitions(n_shards, n_sequences, n_steps))
        distributed.fit(clone(model), parts, client=client)  # compiles
        spent = []
        for burn_in in (2, 2 + n):
            before, own = client.run(cpu_seconds), cpu_seconds()
            clock = Clock()
            again = clone(model).set_params(burn_in=burn_in, callbacks=[clock])
            distributed.fit(again, parts, client=client)
            after = client.run(cpu_seconds)
            used = np.array([after[worker] - before[worker] for worker in after])
            spent.append((used, cpu_seconds() - own))
    sweep = (spent[1][0] - spent[0][0]) / n  # what n sweeps more have cost
    return Timing(
        n_workers, n_shards, n_sequences * n_steps,
        float(np.median(np.diff(clock.times)[2:-1])), float(sweep.max()), float(sweep.sum()),
        (spent[1][1] - spent[0][1]) / n, int(again.n_states_),
    )  # fmt: skip


class Scale:
    """A client that is this process, and weighs what would travel."""

    def __init__(self) -> None:
        self.out, self.back = 0, 0

    def submit(self, function: Any, *arguments: Any, pure: bool = False) -> Any:
        return function(*arguments)

    def map(self, function: Any, *columns: Any, pure: bool = False, **options: Any) -> list[Any]:
        self.out += len(columns[0]) * len(pickle.dumps(options, 5))
        return [function(*arguments, **options) for arguments in zip(*columns)]

    def compute(self, parts: Any) -> Any:
        return parts.compute()

    def gather(self, found: Any) -> Any:
        self.back += sum(len(pickle.dumps(each, 5)) for each in found)
        return found


def weigh(n_sequences: int, n_steps: int, n: int) -> dict[str, float]:
    """Bytes to and from a worker in a sweep; two shards in this process."""
    scale, seen = Scale(), []
    model = InfiniteHMM(n_chains=1, burn_in=n, n_draws=1, n_init_states=N_REGIMES, random_state=0)
    step = _hmm.step

    def weighed(*arguments: Any) -> Any:
        before = scale.out, scale.back
        state = step(*arguments)
        extended = len(state.names)  # states that were let in, among them
        seen.append((scale.out - before[0], scale.back - before[1], extended))
        return state

    _hmm.step = weighed
    try:
        distributed.fit(model, partitions(2, n_sequences, n_steps), client=scale)
    finally:
        _hmm.step = step
    out, back, states = np.median(seen[3:], axis=0)
    return {"steps": n_sequences * n_steps, "out": out / 2, "back": back / 2, "states": states}


@dataclass(frozen=True)
class Cost:
    """Seconds of a sweep: work / W + fixed + tasks * W + messages, for W workers, a shard each.

    `work` is what all workers do together; `fixed` the client's draws and two rounds of messages;
    `task` what client and scheduler do for a task, of which a shard has three and a sixteenth.
    """

    work: float
    fixed: float
    task: float
    bytes_: float

    def seconds(self, n_workers: int) -> float:
        hops = np.ceil(np.log2(n_workers)) if n_workers > 1 else 0.0
        messages = self.bytes_ * hops / BANDWIDTH
        return self.work / n_workers + self.fixed + 3.06 * self.task * n_workers + messages

    @property
    def best(self) -> float:
        """Beyond this many workers, a sweep takes longer."""
        return float(np.sqrt(self.work / (3.06 * self.task)))


def fit_cost(one: Timing, few: Timing, many: Timing, n_bytes: float) -> Cost:
    """`few` and `many` shards of next to no data tell the cost of a task and of a round.

    The former in processor time of client and scheduler, which are what there is one of.
    """
    task = max(many.client - few.client, 1e-4) / (3.06 * (many.n_shards - few.n_shards))
    fixed = max(few.wall - 3.06 * few.n_shards * task, 0.0)
    return Cost(one.workers, fixed, task, n_bytes)


def run(options: Options) -> None:
    n_steps, n = (200, 5) if options.quick else (N_STEPS, 30)
    # By turns, as the machine is not always as fast.
    turns = [
        [measure(w, 2, N_SEQUENCES, n_steps, n) for w in (1, 2)]
        for _ in range(1 if options.quick else 5)
    ]
    turns.sort(key=lambda turn: turn[0].wall / turn[1].wall)
    one, two = turns[len(turns) // 2]
    ratios = ", ".join(f"{a.wall / b.wall:.2f}" for a, b in turns)
    long_one, long_two = (measure(w, 2, N_SEQUENCES, 4 * n_steps, n) for w in (1, 2))
    few, many = (measure(2, shards, 2 * shards, 10, 20) for shards in (2, 32))
    weights = [weigh(N_SEQUENCES // 4, steps, 8) for steps in (n_steps // 4, n_steps)]
    cost = fit_cost(one, few, many, weights[-1]["out"] + weights[-1]["back"])
    timings = markdown.table(
        ["workers", "shards", "steps", "s a sweep", "CPU s, busiest worker", "CPU s, all workers",
         "CPU s, client and scheduler", "states"],
        [
            [str(t.n_workers), str(t.n_shards), f"{t.n_steps:,}", f"{t.wall:.4f}",
             f"{t.busiest:.4f}", f"{t.workers:.4f}", f"{t.client:.4f}", str(t.n_states)]
            for t in (one, two, long_one, long_two, few, many)
        ],
    )  # fmt: skip
    moved = markdown.table(
        ["steps", "states in a sweep", "bytes to a worker", "bytes back"],
        [
            [f"{w['steps']:,}", f"{w['states']:.0f}", f"{w['out']:,.0f}", f"{w['back']:,.0f}"]
            for w in weights
        ],
    )
    larger = Cost(1000 * cost.work, cost.fixed, cost.task, cost.bytes_)
    predicted = markdown.table(
        ["workers", "s a sweep", "times one worker", "a thousand times the data: times one worker"],
        [
            [str(w), f"{cost.seconds(w):.4f}", f"{cost.seconds(1) / cost.seconds(w):.1f}",
             f"{larger.seconds(1) / larger.seconds(w):.1f}"]
            for w in (1, 2, *WORKERS)
        ],
    )  # fmt: skip
    page = [
        "# Sweeps of InfiniteHMM over shards",
        f"{N_SEQUENCES} sequences of {n_steps:,} steps, {N_FEATURES} features, full covariances, "
        "on LocalCluster with single-threaded processes; medians of sweeps.",
        f"By the clock two workers are **{one.wall / two.wall:.2f}** times as fast as one, the "
        f"median of {len(turns)} turns ({ratios}); by the "
        f"processor time of the busiest worker {one.busiest / two.busiest:.2f} times. With four "
        f"times the steps, {long_one.wall / long_two.wall:.2f} and "
        f"{long_one.busiest / long_two.busiest:.2f} times: what is not shared out is the client's "
        "and the scheduler's part of a sweep, and that there are two cores for three processes.",
        timings,
        "## What travels",
        moved,
        "Pickled: the two messages of a sweep to a worker, and its statistics. They depend "
        "on the number of states, those among them that a sweep lets in and drops, not on that of "
        "steps.",
        "## The model of cost",
        f"seconds(W) = {cost.work:.4f} / W + {cost.fixed:.4f} + 3.06 x {1e3 * cost.task:.2f} ms x "
        f"W + {cost.bytes_:,.0f} bytes x log2(W) / 1 GB/s, for W workers with a shard each.",
        predicted,
        ASSUMPTIONS.format(best=cost.best, larger=larger.best),
        environment.as_markdown(environment.describe(options.command)),
    ]
    raw = {
        "timings": [asdict(t) for t in (one, two, long_one, long_two, few, many)],
        "bytes": weights,
        "cost": asdict(cost),
    }
    write_atomically(options.results / f"{options.page}.json", json.dumps(raw, indent=1) + "\n")
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page))
    print(timings, moved, predicted, sep="\n\n")


ASSUMPTIONS = """\
Assumed: shards of equal work; workers as fast as this one, that do nothing else; the network's
1 GB/s and Dask's way of handing a message from worker to worker (log2 W hops); the client's draws
as here, which grow with the square of the number of states. Measured: the work, the cost of a task
(32 shards of next to no data against 2) and that of a round.

It breaks where the scheduler is busier than the workers, since its work grows with their number:
for these data beyond {best:.0f} workers a sweep takes longer with more of them, for a thousand
times as many beyond {larger:.0f}. Before that, stragglers: a sweep waits for the slowest shard,
twice. And with thousands of states, parameters and statistics (squares of their number) are no
longer small beside the data of a shard."""
