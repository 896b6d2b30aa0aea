"""From `python -m regbayes.demo` to its picture, packages being installed, against 30 seconds.

"First" compiles every kernel: its cache is a new folder. "Again" finds them there. The peer is no
program but the limit, 30 seconds for a newcomer's first result.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench_import import children_cpu_seconds
from benchmarks.harness import Comparison, compare

LIMIT = 30.0


def draw(cache: str) -> None:
    """One run in a folder of its own."""
    with TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "regbayes.demo"],
            check=True,
            cwd=folder,
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            stdout=subprocess.DEVNULL,
        )
        assert (Path(folder) / "demo.png").exists()


def first() -> None:
    with TemporaryDirectory() as cache:
        draw(cache)


def run(quick: bool) -> list[Comparison]:
    results = []
    with TemporaryDirectory() as cache:
        for name, task in (("first picture", first), ("again", lambda: draw(cache))):
            found = compare(
                name,
                task,
                "the limit, 30 s",
                lambda: None,
                target_ratio=1.0,
                repeats=1 if quick else 3,
                cpu_clock=children_cpu_seconds,
            )
            results.append(replace(found, peer_seconds=LIMIT, peer_wall=LIMIT))
    return results
