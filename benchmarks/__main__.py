"""Command line: ``python -m benchmarks [import ...] [--quick]``; fails when a target is missed."""

import argparse
import importlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import as_table
from experiments import environment
from regbayes.datasets._remote import write_atomically

FOLDER = Path(__file__).resolve().parent


def available() -> list[str]:
    """Benchmarks by name: what follows ``bench_`` in the file's name."""
    return sorted(file.stem.removeprefix("bench_") for file in FOLDER.glob("bench_*.py"))


def main(arguments: Sequence[str], results: Path = FOLDER / "results") -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="few repeats: does it work?")
    asked = parser.parse_args(arguments)
    known = available()
    names = [name.removeprefix("bench_") for name in asked.names] or known
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}. There are: {', '.join(known)}")

    command = shlex.join(["python", "-m", "benchmarks", *arguments])
    all_met = True
    for name in names:
        print(f"== {name}", flush=True)
        benchmark = importlib.import_module(f"benchmarks.bench_{name}")
        comparisons = benchmark.run(asked.quick)
        page = [
            f"# Benchmark: {name}",
            (benchmark.__doc__ or "").strip(),
            as_table(comparisons),
            f"Medians of {comparisons[0].repeats} repeats, ours and the peer in turn. "
            "Ratio: ours over the peer's CPU seconds.",
            environment.as_markdown(environment.describe(command)),
        ]
        print(page[2], flush=True)
        file = results / f"{name}{'_quick' if asked.quick else ''}.md"
        write_atomically(file, "\n\n".join(page))
        all_met = all_met and all(comparison.met for comparison in comparisons)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
