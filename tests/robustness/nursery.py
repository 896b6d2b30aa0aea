"""Bring up fits in child processes, kill -9 them, and see whether they come to the same end.

``python -m tests.robustness.nursery GibbsInfiniteSVM 100 0 folder`` prints the number of kills by
kind, after every finished run was compared with an undisturbed one. A process of its own, since
children are forked: they start in no time, and after numba has compiled.
"""

import hashlib
import json
import os
import signal
import stat
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.base import clone

from regbayes.chains import Checkpoint
from regbayes.harmonium import InfiniteMaxMarginHarmonium
from regbayes.hmm import (
    CategoricalHMM,
    GaussianHMM,
    LargeMarginHMM,
    MarkovSwitchingMED,
    MaxMarginInfiniteHMM,
)
from regbayes.mixture import GibbsInfiniteSVM, InfiniteSVM
from regbayes.scores import MaxMarginScore
from regbayes.topics import MaxMarginTopics
from tests.robustness.runs import DATA, SEQUENCES, flat

few = {"n_draws": 12, "burn_in": 10, "n_chains": 2, "random_state": 0}
SYMBOLS = CategoricalHMM(2, n_iter=3, random_state=0)
MODELS = [
    GibbsInfiniteSVM(**few),
    MaxMarginInfiniteHMM(**few),
    MarkovSwitchingMED(3, n_init=2, max_iter=15, tol=0, random_state=0),
    InfiniteSVM(max_components=3, n_init=2, max_iter=15, tol=0, random_state=0),
    GaussianHMM(3, n_init=2, n_iter=20, tol=0, random_state=0),
    MaxMarginTopics(3, **few),
    InfiniteMaxMarginHarmonium(5, max_iter=20, early_stopping=True, random_state=0),
    MaxMarginScore(SYMBOLS, multi_class="ovr", n_iter=10, random_state=0),
    LargeMarginHMM(SYMBOLS, max_iter=15, tol=0),
]


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(event, seed):
    """Die at the n-th thing that a write consists of: half a file, or before or after a rename."""
    rng = np.random.default_rng(seed)
    left = event
    fsync, replace = os.fsync, os.replace

    def due():
        nonlocal left
        left -= 1
        return left < 0

    def dying_fsync(descriptor):
        status = os.fstat(descriptor)
        if due():
            if stat.S_ISREG(status.st_mode):
                os.ftruncate(descriptor, int(rng.integers(status.st_size + 1)))
            die()
        fsync(descriptor)

    def dying_replace(source, target):
        if due():
            die()
        replace(source, target)
        if due():
            die()

    os.fsync, os.replace = dying_fsync, dying_replace


def digest(model):
    idle = {"checkpoint"}
    found = sorted((k, flat(v)) for k, v in vars(model).items() if k not in idle)
    return hashlib.sha256(repr(found).encode()).hexdigest()


def live(model, data, event, seed, result):
    """The life of a child; returns its process id."""
    child = os.fork()
    if child:
        return child
    try:
        if event is not None:
            arm(event, seed)
        result.write_text(digest(clone(model).fit(*data)))
        os._exit(0)
    finally:
        os._exit(1)


def main(name, n_kills, seed, folder):
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    (plain,) = (each for each in MODELS if type(each).__name__ == name)
    data = SEQUENCES.get(name, DATA)
    clone(plain).fit(*data)  # compiles
    begin = time.monotonic()
    expected = digest(clone(plain).fit(*data))
    duration = time.monotonic() - begin
    counts, n_runs, result = Counter(write=0, clock=0), 0, folder / "result"
    least = max(1, n_kills // 5)  # of either kind: a short fit is often over before its n-th write
    while counts.total() < n_kills or min(counts.values()) < least:
        checkpoint = Checkpoint(folder / f"run-{n_runs}", every=int(rng.integers(1, 4)))
        model = clone(plain).set_params(checkpoint=checkpoint)
        while True:
            by_clock = rng.random() < 0.5
            event = None if by_clock else int(rng.integers(60))
            child = live(model, data, event, int(rng.integers(2**31)), result)
            if by_clock:
                time.sleep(rng.uniform(0, duration))
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0, "a fit failed"
                break
            counts["clock" if by_clock else "write"] += 1
        assert result.read_text() == expected, "a resumed fit came to another end"
        n_runs += 1
    print(json.dumps(counts | {"runs": n_runs}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
