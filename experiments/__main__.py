"""Command line: ``python -m experiments 000_table1 [--quick] [--fresh] [--jobs 2] [--list]``.

A run that was stopped goes on where it was; with ``--keep`` on another machine too.
"""

import argparse
import importlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.harness import Options, keep_unfinished

FOLDER = Path(__file__).resolve().parent


def available() -> dict[str, Path]:
    """Experiments by name: the files whose names start with three digits."""
    return {file.stem: file for file in sorted(FOLDER.glob("[0-9][0-9][0-9]_*.py"))}


def summary(file: Path) -> str:
    """First line of the file's docstring, without running it."""
    first = file.read_text(encoding="utf-8").lstrip().partition("\n")[0]
    return first.strip('"')


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", help='experiments to run, or "all"')
    parser.add_argument("--quick", action="store_true", help="small: does it work?")
    parser.add_argument("--fresh", action="store_true", help="run finished cells again")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--list", action="store_true", help="say what there is, and stop")
    parser.add_argument(
        "--keep", action="store_true", help="write the cells of stopped runs to files, and stop"
    )
    asked = parser.parse_args(arguments)
    if asked.keep:
        print("\n".join(map(str, keep_unfinished())) or "nothing is unfinished")
        return

    known = available()
    listing = "\n".join(f"  {name}  {summary(file)}" for name, file in known.items()) or "  none"
    if asked.list:
        print(listing)
        return
    if not asked.names:
        parser.error(f"name an experiment, or all. There are:\n{listing}")
    names = list(known) if "all" in asked.names else asked.names
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}. There are:\n{listing}")

    command = f"python -m experiments {shlex.join(arguments)}"
    for name in names:
        print(f"== {name}", flush=True)
        # import_module takes names that an import statement would not.
        experiment = importlib.import_module(f"experiments.{name}")
        experiment.run(Options(name, asked.quick, asked.fresh, asked.jobs, command))


if __name__ == "__main__":
    main(sys.argv[1:])
