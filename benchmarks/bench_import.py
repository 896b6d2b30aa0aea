"""Time to import, each in a fresh interpreter, against scikit-learn's SVMs."""

import importlib
import resource
import subprocess
import sys
from collections.abc import Callable

from benchmarks.harness import Comparison, compare

PEER = "import sklearn.svm"


def run(quick: bool) -> list[Comparison]:
    statements = ["import regbayes"]
    if hasattr(importlib.import_module("regbayes.mixture"), "GibbsInfiniteSVM"):
        statements.append("from regbayes.mixture import GibbsInfiniteSVM")
    else:
        print("regbayes.mixture has no GibbsInfiniteSVM; its import is not measured")
    return [
        compare(
            statement,
            in_fresh_interpreter(statement),
            PEER,
            in_fresh_interpreter(PEER),
            target_ratio=2.0,
            repeats=2 if quick else 9,
            cpu_clock=children_cpu_seconds,
        )
        for statement in statements
    ]


def in_fresh_interpreter(statement: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


def children_cpu_seconds() -> float:
    """CPU seconds of finished child processes, which this process's own clock leaves out."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
