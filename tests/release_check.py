"""Wheel and sdist: built, installed where nothing else is, and used as a new user would.

``make release-check``, or ``python tests/release_check.py [--python python3.13] [--oldest]
[--tests tests/mixture ...]``. `--oldest` installs the lowest versions that pyproject.toml allows;
`--tests` runs tests of this checkout against what was installed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "cli,plot,report"
USE = """
regbayes --help
regbayes demo --quick -o demo.png
regbayes datasets switching_labels -o steps.csv
regbayes fit steps.csv --label label --sequence-id sequence_id -o m.model --n-draws 5 --burn-in 5
regbayes report m.model steps.csv -o report.html
"""
MADE = ("demo.png", "steps.csv", "m.model", "report.html")


def run(*command, **options) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def lowest() -> list[str]:
    """The lower bound of every requirement, as pip's constraints.

    >>> "scipy==1.14" in " ".join(lowest())
    True
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = project["dependencies"] + extras["cli"] + extras["plot"] + extras["arviz"]
    bounds = (re.match(r"([\w-]+)>=([\d.]+)", requirement) for requirement in asked)
    return [f"{found[1]}=={found[2]}" for found in bounds if found]


def use(folder: Path, bin_: Path) -> None:
    """The commands of a newcomer, in an empty folder, with nothing of this checkout in sight."""
    with tempfile.TemporaryDirectory(dir=folder) as here:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment["PATH"] = f"{bin_}{os.pathsep}{environment['PATH']}"
        for command in USE.strip().splitlines():
            run(*command.split(), cwd=here, env=environment, stdout=subprocess.DEVNULL)
        for name in MADE:
            assert (Path(here) / name).stat().st_size > 0, f"{name} was not made"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--tests", nargs="+", default=[])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="regbayes-release-") as name:
        folder = Path(name)
        # The wheel is built from the sdist, which so is known to be whole.
        run(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT)
        (wheel,), (sdist,) = (list((folder / "dist").glob(kind)) for kind in ("*.whl", "*.tar.gz"))
        run(asked.python, "-m", "venv", folder / "venv")
        bin_ = folder / "venv" / "bin"
        limits = folder / "limits.txt"
        limits.write_text("\n".join(lowest() if asked.oldest else []), encoding="utf-8")
        pip = (bin_ / "python", "-m", "pip", "install", "--quiet", "--constraint", limits)
        run(*pip, f"{wheel}[{EXTRAS}]")
        use(folder, bin_)
        run(*pip, "--force-reinstall", "--no-deps", sdist)
        use(folder, bin_)
        if asked.tests:
            run(*pip, "pytest", "hypothesis")
            options = ("-q", "-p", "no:cacheprovider", "-m", "not slow")
            run(bin_ / "python", "-m", "pytest", *options, *asked.tests, cwd=ROOT)
        run(bin_ / "python", "--version")
        run(bin_ / "python", "-m", "pip", "freeze", "--exclude", "regbayes")


if __name__ == "__main__":
    main()
