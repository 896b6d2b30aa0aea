"""What a result was measured on: written under every table of experiments and benchmarks."""

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "regbayes")

# Results of a run must not make the code that the next run names look changed.
NOT_CODE = (":!experiments/results", ":!benchmarks/results")


def describe(command: str) -> dict[str, str]:
    """Date, code, versions, machine and command line, in the order to print them."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": git_commit(ROOT),
        "python": platform.python_version(),
        **{package: package_version(package) for package in PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": f"{os.cpu_count()} x {cpu_model()}",
        "command": command,
    }


def as_markdown(environment: dict[str, str]) -> str:
    """The block that closes a results page."""
    lines = [f"- {name}: {value}" for name, value in environment.items()]
    return "\n".join(["## Environment", "", *lines, ""])


def git_commit(folder: Path) -> str:
    """Commit of `folder`, with "dirty" when files other than results differ from it."""

    def git(*arguments: str) -> str | None:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    try:
        changes = git("status", "--porcelain", "--", ".", *NOT_CODE)
        commit = git("rev-parse", "--verify", "--quiet", "HEAD")
    except FileNotFoundError:
        return "unknown (git is not installed)"
    if changes is None:
        return "unknown (not a git checkout)"
    return (commit or "none yet") + (" (dirty)" if changes else "")


def package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def cpu_model() -> str:
    """Name of the processor; Linux tells it in /proc only."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"
