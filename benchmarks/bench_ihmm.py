"""Infinite HMMs: beam sweeps against a weak limit in NumPy, their cost in long chains, Table 2.

- A sweep at T = 5,000, D = 2, four states, against `weak_limit.py` (L = 20) after the same burn-in
  from a single state, with the same priors; "held-out" is log p of a new sequence of 2,000 steps.
- A sweep of one sequence from T = 1e4 to 1e6: the slope of log CPU seconds on log T.
- The most memory that a sweep at T = 1e6 takes on top of data and state, in bytes, against one
  array of T x K numbers. K are all states while the path is drawn, those that the slices let in
  too. It is resident memory in a process of its own, since compiled code allocates unseen by
  tracemalloc; read from Linux's /proc.
- The fit of Table 2 (MaxMarginInfiniteHMM, T = 500, 200 sweeps) against 53 s in the paper, on the
  machine of its authors.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from benchmarks.harness import Comparison, compare
from benchmarks.weak_limit import WeakLimitHDPHMM, log_normals
from regbayes.datasets import make_switching_labels
from regbayes.hmm import MaxMarginInfiniteHMM, beam
from regbayes.hmm.emissions import GaussianEmission
from regbayes.kernels.batch import draw_paths, smooth
from regbayes.priors import Fixed, HierarchicalDirichlet, NormalInverseWishart

MEANS = np.array([[3.0, 3.0], [3.0, -3.0], [-3.0, 3.0], [-3.0, -3.0]])
START = np.full(4, 0.25)
TRANSITIONS = np.full((4, 4), 0.025) + 0.9 * np.eye(4)


def sequence(n_steps: int, seed: int) -> tuple[NDArray, NDArray[np.int64]]:
    """Observations around four corners, and the states."""
    rng = np.random.default_rng(seed)
    unseen, bounds = np.zeros((n_steps, 4)), np.array([0, n_steps])
    z = draw_paths(START, TRANSITIONS, unseen, bounds, rng.random(n_steps))
    return MEANS[z] + rng.standard_normal((n_steps, 2)), z


def make_model(X: NDArray) -> beam.Model:
    emission = GaussianEmission(NormalInverseWishart.from_data(X, 0.1, None, 0.5))
    prior = HierarchicalDirichlet(Fixed(1.0), Fixed(1.0))
    return beam.Model(X, np.array([0, len(X)]), emission, prior)


class Chain:
    """A sampler at work: `sweep(rng, state)`, and `finite(state)`, the HMM of a draw."""

    def __init__(self, sweep: Callable, finite: Callable, state):
        self.sweep, self.finite, self.state = sweep, finite, state
        self.rng = np.random.default_rng(0)

    def run(self, n_sweeps: int) -> None:
        for _ in range(n_sweeps):
            self.state = self.sweep(self.rng, self.state)

    def describe(self, new: NDArray, n_draws: int) -> str:
        """States in use in most draws, and what the draws together say about a new sequence."""
        sizes, scores = [], []
        for _ in range(n_draws):
            self.run(1)
            sizes.append(len(np.unique(self.state.z)))
            scores.append(log_likelihood(new, *self.finite(self.state)))
        score = logsumexp(scores) - np.log(n_draws)
        return f"{statistics.mode(sizes)} states, held-out {score / len(new):.3f} a step"


def log_likelihood(
    X: NDArray, start: NDArray, transitions: NDArray, means: NDArray, factors: NDArray
) -> float:
    evidence, bounds = log_normals(X, means, factors), np.array([0, len(X)])
    return smooth(start, transitions, evidence, bounds, causal=True)[1][0]


def beam_chain(X: NDArray, z: NDArray[np.int64]) -> Chain:
    model = make_model(X)

    def finite(state):
        rows = state.transitions.rows[:, :-1]
        rows = rows / rows.sum(axis=1, keepdims=True)
        return rows[0], rows[1:].copy(), *state.parameters

    state = beam.init(model, z, np.random.default_rng(0))
    return Chain(partial(beam.step, model), finite, state)


def weak_limit_chain(X: NDArray, z: NDArray[np.int64]) -> Chain:
    model = WeakLimitHDPHMM(X, make_model(X).emission.prior)
    state = model.init(np.random.default_rng(0), z)
    return Chain(model.sweep, lambda draw: draw[2:], state)


def compare_sweeps(quick: bool) -> Comparison:
    n_steps, burn_in, n_draws = (500, 20, 10) if quick else (5000, 300, 100)
    (X, _), (new, _) = sequence(n_steps, 0), sequence(2000, 1)
    first = np.zeros(n_steps, dtype=np.int64)
    ours, peer = beam_chain(X, first), weak_limit_chain(X, first)
    ours.run(burn_in)
    peer.run(burn_in)
    result = compare(
        f"10 sweeps, T={n_steps}, D=2",
        lambda: ours.run(10),
        "weak limit in NumPy, L=20",
        lambda: peer.run(10),
        target_ratio=0.1,
        repeats=2 if quick else 9,
    )
    truth = log_likelihood(new, START, TRANSITIONS, MEANS, np.array([np.eye(2)] * 4)) / len(new)
    return replace(
        result,
        name=f"{result.name} ({ours.describe(new, n_draws)}; the truth 4 and {truth:.3f})",
        peer_name=f"{result.peer_name} ({peer.describe(new, n_draws)})",
    )


def slope(quick: bool) -> Comparison:
    lengths = (1_000, 10_000) if quick else (10_000, 30_000, 100_000, 300_000, 1_000_000)
    n_sweeps = 3 if quick else 9
    chains = [beam_chain(*sequence(n_steps, 0)) for n_steps in lengths]
    for chain in chains:
        chain.run(3)
    # The lengths in turn, for the same reason as ours and the peer.
    rounds = np.array([[clocked_sweep(chain) for chain in chains] for _ in range(n_sweeps)])
    cpu, wall = np.median(rounds, axis=0).T
    per_step = [f"T={n:,}: {1e9 * seconds / n:.0f} ns a step" for n, seconds in zip(lengths, cpu)]
    print(*per_step, sep="\n", flush=True)
    cpu_slope, wall_slope = np.polyfit(np.log(lengths), np.log(np.array([cpu, wall]).T), 1)[0]
    name = f"slope of log CPU s of a sweep on log T ({per_step[0]}; {per_step[-1]})"
    return Comparison(name, cpu_slope, "linear", 1.0, 1.05, wall_slope, 1.0, n_sweeps)


def clocked_sweep(chain: Chain) -> tuple[float, float]:
    """CPU and wall-clock seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    chain.run(1)
    return time.process_time() - cpu, time.perf_counter() - wall


def peak_memory(quick: bool) -> Comparison:
    n_steps = 100_000 if quick else 1_000_000
    code = f"from benchmarks import bench_ihmm; bench_ihmm.print_memory_of_sweeps({n_steps}, 3)"
    root = Path(__file__).resolve().parent.parent
    # Freed arrays go back to the system at once, so that the next sweep takes them anew.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True, capture_output=True, text=True, cwd=root, env=environment,
    )  # fmt: skip
    taken, unit = zip(*(map(int, line.split()) for line in done.stdout.splitlines()))
    most = max(range(len(unit)), key=lambda i: taken[i] / unit[i])
    name = f"peak memory of a sweep, T={n_steps}, K={unit[most] // (8 * n_steps)}, bytes"
    return Comparison(name, taken[most], "8 T K", unit[most], 3.0, taken[most], unit[most], 3)


def print_memory_of_sweeps(n_steps: int, n_sweeps: int) -> None:
    """For each sweep, the bytes that it took at most, and 8 T K."""
    rng = np.random.default_rng(0)
    for steps, sweeps in ((1000, 1), (n_steps, n_sweeps)):  # the first loads the compiled code
        X, z = sequence(steps, 0)
        model = make_model(X)
        state = beam.init(model, z, rng)
        for _ in range(sweeps):
            unit = 8 * steps * states_in_sweep(model, rng, state)
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
            before = resident("VmRSS")
            state = beam.step(model, rng, state)
            if steps == n_steps:
                print(resident("VmHWM") - before, unit)


def states_in_sweep(model: beam.Model, rng: np.random.Generator, state: beam.State) -> int:
    """How many states the next sweep draws its path from: its slices, drawn ahead."""
    return beam.draw_cuts(model, deepcopy(rng), state)[1].transitions.n_states


def resident(field: str) -> int:
    """Bytes of this process in memory: now (VmRSS) or at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def table_2_fit(quick: bool) -> Comparison:
    data = make_switching_labels((500,), random_state=0)
    n = 10 if quick else 100
    model = MaxMarginInfiniteHMM(n_draws=n, burn_in=n, n_chains=1, random_state=0)
    ours = compare(
        f"Table 2 fit, T=500, {2 * n} sweeps",
        lambda: model.fit(data.data, data.target),
        "1/100 of the paper's 53 s",
        lambda: None,
        target_ratio=1.0,
        repeats=2 if quick else 9,
    )
    return replace(ours, peer_seconds=0.53, peer_wall=0.53)


def run(quick: bool) -> list[Comparison]:
    with threadpool_limits(limits=1):
        return [compare_sweeps(quick), slope(quick), peak_memory(quick), table_2_fit(quick)]
