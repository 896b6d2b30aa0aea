"""A fit that writes a checkpoint every 50 sweeps, against the same fit less its writes.

Two runs would differ by more than 3 % on a busy machine, so the writes of one run are timed: its
seconds, over its seconds without them. Two chains, sweeps of 10 to 20 ms, and draws that are kept;
the checkpoint is where temporary files are. Waiting for the disk is in the wall ratio alone.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.harness import Comparison
from regbayes.chains import Checkpoint
from regbayes.chains._checkpoint import Page
from regbayes.datasets import make_switching_labels
from regbayes.hmm import MaxMarginInfiniteHMM
from regbayes.mixture import GibbsInfiniteSVM

EVERY = 50


def run(quick: bool) -> list[Comparison]:
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((20, 10))
    X = centers[rng.integers(20, size=5000)] + rng.standard_normal((5000, 10))
    chains = make_switching_labels((5000, 5000), means=[-3, 0, 3], random_state=0)
    length = {"n_draws": 50, "burn_in": 50} if quick else {"n_draws": 100, "burn_in": 100}
    tasks = [
        ("GiSVM, n = 5,000", GibbsInfiniteSVM(random_state=0, **length), X, X[:, 0] * X[:, 1] > 0),
        (
            "M2iHMM-1, T = 10,000",
            MaxMarginInfiniteHMM(random_state=0, **length),
            chains.data,
            chains.target,
        ),
    ]
    repeats = 2 if quick else 3
    found = []
    for name, model, *data in tasks:
        clone(model).set_params(n_draws=1, burn_in=1).fit(*data)  # compiles
        times = [fit_with_checkpoint(model, data) for _ in range(repeats)]
        cpu, wall, cpu_of_writes, wall_of_writes = map(statistics.median, zip(*times))
        found.append(
            Comparison(
                f"{name}, a checkpoint every {EVERY} sweeps",
                cpu,
                "less its writes",
                cpu - cpu_of_writes,
                1.03,
                wall,
                wall - wall_of_writes,
                repeats,
            )
        )
    return found


def fit_with_checkpoint(model: Any, data: Any) -> tuple[float, float, float, float]:
    """CPU and wall-clock seconds of a fit, and of the writes in it."""
    cpu_of_writes = wall_of_writes = 0.0
    keep = Page.keep

    def timed_keep(*arguments: Any, **options: Any) -> None:
        nonlocal cpu_of_writes, wall_of_writes
        cpu, wall = time.process_time(), time.perf_counter()
        keep(*arguments, **options)
        cpu_of_writes += time.process_time() - cpu
        wall_of_writes += time.perf_counter() - wall

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder, "run.ckpt"), every=EVERY, seconds=None)
        Page.keep = timed_keep  # type: ignore[method-assign]
        try:
            cpu, wall = time.process_time(), time.perf_counter()
            clone(model).set_params(checkpoint=checkpoint).fit(*data)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        finally:
            Page.keep = keep  # type: ignore[method-assign]
    return cpu, wall, cpu_of_writes, wall_of_writes
