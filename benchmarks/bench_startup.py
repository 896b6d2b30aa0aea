"""Time until the command line answers, each in a fresh interpreter, against NumPy's import."""

import subprocess
import sys
from collections.abc import Callable

from benchmarks.bench_import import children_cpu_seconds, in_fresh_interpreter
from benchmarks.harness import Comparison, compare

PEER = "import numpy"


def run(quick: bool) -> list[Comparison]:
    return [
        compare(
            f"regbayes {' '.join(arguments)}",
            command(*arguments),
            PEER,
            in_fresh_interpreter(PEER),
            target_ratio=3.0,
            repeats=2 if quick else 9,
            cpu_clock=children_cpu_seconds,
        )
        for arguments in (["--help"], ["fit", "--help"])
    ]


def command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run(
        [sys.executable, "-m", "regbayes", *arguments], check=True, stdout=subprocess.DEVNULL
    )
