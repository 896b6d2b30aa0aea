"""The page "how it compares" and README's tables, made of the results that lie in the repository.

``python -m experiments.comparison`` writes README's part anew; the documentation writes its page
whenever it is built. Quick runs are no results, and what has not been run is listed as such.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import markdown
from experiments.papers import BOUNDS, OUTDATED, OWN, PAPERS, PEER_PREFIXES, PEERS, Result
from regbayes.datasets._remote import write_atomically

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- results: written by `make readme` -->", "<!-- end of results -->"
SECONDS = "fit s"

# Lines of benchmarks that README quotes: benchmark, how task and peer begin.
QUOTED = (
    ("chain", "forward-backward, diag, K=10", "hmmlearn, scaling"),
    ("chain", "forward-backward, diag, K=50", "hmmlearn, scaling"),
    ("scores", "Baum-Welch, 30 rounds", "hmmlearn, scaling"),
    ("ihmm", "10 sweeps", "weak limit"),
    ("mixture", "assignment sweep, full", "NumPy"),
    ("topics", "", ""),
    ("harmonium", "an epoch, batches of 100", "BernoulliRBM"),
    ("svm", "Crammer-Singer, 311", "LinearSVC"),
    ("startup", "regbayes --help", "import numpy"),
)


@dataclass(frozen=True)
class Measured:
    """A result as it was written: means and deviations in % by row and metric, or a page."""

    scores: dict[str, dict[str, list[float]]]
    notes: str
    environment: dict[str, str]
    page: str = ""


def read(result: Result, folder: Path) -> Measured | None:
    """What was measured, or None if it was not, or only by code that has changed since."""
    raw, page = folder / f"{result.page}.json", folder / f"{result.page}.md"
    if not result.page or not page.exists():
        return None
    found: Any = json.loads(raw.read_text(encoding="utf-8")) if raw.exists() else {}
    if "cells" not in found:
        text, _, machine = page.read_text(encoding="utf-8").partition("## Environment")
        lines = dict(line[2:].split(": ", 1) for line in machine.splitlines() if ": " in line)
        return Measured({}, "", lines, text.partition("\n")[2].strip())
    if found["quick"] or found["environment"]["commit"] == OUTDATED.get(result.page):
        return None
    scores: dict[str, dict[str, list[float]]] = {}
    for cell in found["cells"]:
        row = scores.setdefault(cell["row"], {})
        for metric, score in cell["scores"].items():
            row.setdefault(metric, []).append(100 * score)
        row.setdefault(SECONDS, []).append(cell["fit_seconds"])
    return Measured(scores, found["notes"].strip(), found["environment"])


# The page.


def page(folder: Path = ROOT) -> str:
    """The page of the documentation, in Markdown."""
    results = folder / "experiments" / "results"
    return "\n\n".join([*_papers(results), *_own(results), *_benchmarks(folder)]) + "\n"


def _papers(results: Path) -> Iterator[str]:
    yield "# How it compares"
    yield (
        "Every table and figure of the three papers, with what was measured here, what a user "
        "would try instead, and what the paper reports. This page is made from "
        "`experiments/results` and `benchmarks/results` when the documentation is built; no figure "
        "was copied by hand. Scores are means ± standard deviations over splits, in %; “fit s” are "
        "seconds of one fit on one thread, grid search included. Where data are the same or drawn "
        "by the same recipe, Δ is what was measured here less what the paper reports, and negative "
        "where the paper's figure is missed (for errors: positive)."
    )
    yield (
        "“Here” says whose a row is: *ours* is an estimator of this library, whoever thought of it "
        "first; *peer* is other software or a simple method."
    )
    for paper in PAPERS:
        yield f"## {paper.title}"
        for table in paper.tables:
            yield f"### {paper.short}, {table.name}"
            yield f"`make reproduce WHAT={table.experiment}`"
            for result in table.results:
                yield from _result(result, results)


def _own(results: Path) -> Iterator[str]:
    yield "## Of no paper"
    for result in OWN:
        yield from _result(result, results)


def _result(result: Result, results: Path) -> Iterator[str]:
    yield f"**{result.title[0].upper()}{result.title[1:]}.** {result.why}".rstrip()
    measured = read(result, results)
    if measured is None and result.page:
        old = (results / f"{result.page}.json").exists()
        yield (
            "*Not run again since the code behind it changed.*" if old else "*Not run in full yet.*"
        )
    if measured is not None and measured.page:
        yield _embedded(measured.page, results)
    elif measured is not None or result.reported:
        yield _table(result, measured)
    if measured is not None:
        if measured.notes:
            yield " ".join(measured.notes.split())
        yield _when(measured.environment)


def _table(result: Result, measured: Measured | None) -> str:
    """Rows in the order of the result, then those of the paper that were not run."""
    scores = {} if measured is None else measured.scores
    columns = list(dict.fromkeys(c for row in scores.values() for c in row))
    columns = list(dict.fromkeys([*columns, *(c for row in result.reported.values() for c in row)]))
    titles = ["", "here"] if scores else [""]
    for column in columns:
        titles += [column] * bool(scores)
        if any(column in row for row in result.reported.values()):
            titles += [f"paper, {column}"]
            titles += ["Δ"] * (result.alike and column != SECONDS and bool(scores))
    lines = []
    for row in [*scores, *(row for row in result.reported if row not in scores)]:
        line = [row, _whose(row) if row in scores else "not run"] if scores else [row]
        for column in columns:
            own, theirs = scores.get(row, {}).get(column), result.reported.get(row, {}).get(column)
            line += [_figure(own, column)] * bool(scores)
            if any(column in other for other in result.reported.values()):
                line.append(theirs or "")
                if result.alike and column != SECONDS and scores:
                    line.append(_difference(own, theirs))
        lines.append(line)
    return markdown.table(titles, lines)


def _whose(row: str) -> str:
    if row in BOUNDS:
        return "bound"
    return "peer" if row in PEERS or row.startswith(PEER_PREFIXES) else "ours"


def _figure(values: Sequence[float] | None, column: str) -> str:
    if values is None:
        return ""
    mean = float(np.mean(values))
    if column == SECONDS:
        return f"{mean:.3g}" if mean < 1000 else f"{mean:.0f}"
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{mean:.1f}{spread}"


def _difference(own: Sequence[float] | None, theirs: str | None) -> str:
    if own is None or theirs is None:
        return ""
    return f"{np.mean(own) - float(theirs.split()[0]):+.1f}"


def _when(environment: dict[str, str]) -> str:
    commit, *dirty = environment.get("commit", "unknown").split(" ", 1)
    changed = ", with changes" if dirty else ""
    return f"*Run {environment.get('date', '')}, commit {commit[:8]}{changed}.*"


def _embedded(text: str, results: Path) -> str:
    """A page of results inside another, with its pictures."""
    text = re.sub(r"^#+ +(.*)$", r"**\1**", text, flags=re.MULTILINE)
    return re.sub(r"\]\((\S+\.png)\)", r"](../experiments/results/\1)", text)


def _benchmarks(folder: Path) -> Iterator[str]:
    yield "## Speed"
    yield (
        "Ours and a named peer in turn, in one process, so that a busy machine slows both alike: "
        "ratios below one are faster than the peer. `make bench` runs all of them."
    )
    files = sorted((folder / "benchmarks").glob("bench_*.py"))
    for name in (file.stem.removeprefix("bench_") for file in files):
        file = folder / "benchmarks" / "results" / f"{name}.md"
        yield f"### {name.capitalize()}"
        if not file.exists():
            yield "*Not run in full yet.*"
            continue
        text, _, machine = file.read_text(encoding="utf-8").partition("## Environment")
        yield text.partition("\n")[2].strip()
        yield _when(dict(line[2:].split(": ", 1) for line in machine.splitlines() if ": " in line))


# README.


def readme_part(folder: Path = ROOT) -> str:
    """README's tables: a line for each data set, and a line for each quoted benchmark."""
    results = folder / "experiments" / "results"
    lines: list[list[str]] = []
    waiting: dict[str, list[str]] = {}
    for source, result in _summarised():
        measured = read(result, results)
        if measured is None:
            waiting.setdefault(source, []).append(result.title)
        else:
            lines.append([result.title, source, *_summary(result, measured)])
    titles = ["data", "paper", "its method", "here", "in the paper", "best of ours", "best peer"]
    parts = [markdown.table(titles, lines)]
    if waiting:
        listed = "; ".join(f"{source}: {', '.join(names)}" for source, names in waiting.items())
        parts.append(f"Not run in full with the present code yet: {listed}.")
    parts.append(markdown.table(["task", "peer", "ours / peer"], _quoted(folder)))
    return "\n\n".join(parts)


def _summarised() -> Iterator[tuple[str, Result]]:
    for paper in PAPERS:
        for table in paper.tables:
            for result in table.results:
                if result.ours:
                    yield f"{paper.short}, {table.name}", result
    for result in OWN:
        if result.ours:
            yield "–", result


def _summary(result: Result, measured: Measured) -> list[str]:
    metric = next(iter(next(iter(measured.scores.values()))))
    sign = -1 if metric == "error" else 1

    def best(whose: str) -> str:
        rows = {
            row: float(np.mean(scores[metric]))
            for row, scores in measured.scores.items()
            if _whose(row) == whose
        }
        row = max(rows, key=lambda name: sign * rows[name], default="")
        return f"{row} {rows[row]:.1f}" if row else "–"

    named = {"our best pipeline": "MSS"}.get(result.ours, result.ours)
    theirs = result.reported.get(named, {}).get(metric, "–")
    if theirs != "–" and not result.alike:
        theirs += " (other data)"
    here = _figure(measured.scores[named][metric], metric) + (" error" if sign < 0 else "")
    return [named, here, theirs, best("ours"), best("peer")]


def _quoted(folder: Path) -> list[list[str]]:
    lines = []
    for name, task, peer in QUOTED:
        file = folder / "benchmarks" / "results" / f"{name}.md"
        if not file.exists():
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            numbers = len(cells) == 8 and cells[4].replace(".", "").isdigit()
            if numbers and cells[0].startswith(task) and cells[2].startswith(peer):
                brief = (re.sub(r" \(.*\)", "", cell) for cell in (cells[0], cells[2]))
                lines.append([*brief, cells[4]])
    return lines


def write_readme(file: Path = ROOT / "README.md") -> None:
    text = file.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    write_atomically(file, f"{before}{BEGIN}\n\n{readme_part()}\n\n{END}{after}")


if __name__ == "__main__":
    write_readme()
