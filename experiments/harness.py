"""Every row of a table on the same splits, resumable, written with the machine it ran on.

An experiment is a file with a function `run`; its name starts with three digits::

    # experiments/000_table1.py
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.svm import SVC

    from experiments.harness import Options, Row, run_table
    from regbayes.datasets import fetch_parkinsons

    def run(options: Options) -> None:
        data = fetch_parkinsons()
        splits = list(GroupKFold(2 if options.quick else 5).split(data.data, groups=data.groups))
        rows = [
            Row("linear SVM", lambda seed: SVC(kernel="linear", random_state=seed)),
            Row(
                "RBF SVM",
                lambda seed: GridSearchCV(SVC(), {"C": [1, 10]}, cv=GroupKFold(3)),
                pass_groups=True,
            ),
        ]
        run_table(
            "Table 1: Parkinsons", rows, data.data, data.target, splits,
            {"accuracy": accuracy_score}, options=options, groups=data.groups,
        )
"""

import contextlib
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take
from threadpoolctl import threadpool_limits

from experiments import environment, markdown
from regbayes.datasets._remote import write_atomically

RESULTS = Path(__file__).resolve().parent / "results"
_UNFINISHED = "_unfinished"

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Metric = Callable[[Any, Any], float]  # metric(y_true, y_pred), a share between 0 and 1


@dataclass(frozen=True)
class Options:
    """How an experiment was asked for on the command line."""

    name: str
    quick: bool = False
    fresh: bool = False
    n_jobs: int = 1
    command: str = ""
    results: Path = RESULTS

    @property
    def page(self) -> str:
        """File name of the result, without its ending; a quick run never replaces a full one."""
        return self.name + ("_quick" if self.quick else "")


@dataclass(frozen=True)
class Row:
    """A line of the table: `make(seed)` gives a fresh estimator for a split.

    A GridSearchCV sees training data only; with `pass_groups` its `fit` also gets ``groups=``.
    A `version` belongs to the key of its cells: a new one, if the code behind it has changed and no
    parameter tells.
    """

    name: str
    make: Callable[[int], Any]
    pass_groups: bool = False
    version: str = ""


@dataclass(frozen=True)
class Cell:
    """One row on one split."""

    row: str
    split: int
    scores: dict[str, float]
    fit_seconds: float
    predict_seconds: float
    best_params: dict[str, str] = field(default_factory=dict)
    size: float | None = None  # of a model that finds it
    # A resumed table may mix these, so every cell remembers its own.
    n_jobs: int = 1
    commit: str = ""
    key: str = ""  # of what was asked: a cell that a page has already is not filled again


@dataclass(frozen=True)
class _Task:
    """What a worker needs to fill one cell, and the file in which it leaves the result."""

    row: str
    split: int
    estimator: Any
    pass_groups: bool
    n_jobs: int
    commit: str
    file: Path


def run_table(
    title: str,
    rows: Sequence[Row],
    X: Any,
    y: Any,
    splits: Sequence[Split],
    metrics: Mapping[str, Metric],
    *,
    options: Options,
    groups: Any = None,
    seed: int = 0,
    code_version: str = "1",
    pages: Sequence[str] = (),
    notes: str = "",
    compare: Sequence[tuple[str, str]] = (),
    splits_per_repeat: int = 1,
) -> list[Cell]:
    """Fill the table and write ``<name>.md`` and ``<name>.json`` into the results folder.

    Parameters as in `evaluate`; `notes` (Markdown: what fell short, and why) goes under the table,
    and so do the differences of the pairs of rows in `compare`, see `paired_differences`.
    """
    cells = evaluate(
        rows, X, y, splits, metrics,
        options=options, groups=groups, seed=seed, code_version=code_version, pages=pages,
    )  # fmt: skip
    machine = environment.describe(options.command)
    page = [f"# {title}", as_table(cells), _legend(cells, len(splits), machine["commit"])]
    if compare:
        page.append(as_differences(cells, compare, splits_per_repeat))
    if options.quick:
        page.insert(1, "Quick run: a check that it works, not a result.")
    if notes:
        page.append(f"## Notes\n\n{notes.strip()}")
    page.append(environment.as_markdown(machine))
    raw = {
        "title": title,
        "quick": options.quick,
        "environment": machine,
        "notes": notes,
        "cells": [asdict(cell) for cell in cells],
    }
    write_atomically(options.results / f"{options.page}.json", json.dumps(raw, indent=1) + "\n")
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page))
    (options.results / f"{options.page}{_UNFINISHED}.json").unlink(missing_ok=True)
    print(f"\n{as_table(cells)}\n{options.page}.md and .json written")
    return cells


def evaluate(
    rows: Sequence[Row],
    X: Any,
    y: Any,
    splits: Sequence[Split],
    metrics: Mapping[str, Metric],
    *,
    options: Options,
    groups: Any = None,
    seed: int = 0,
    code_version: str = "1",
    pages: Sequence[str] = (),
) -> list[Cell]:
    """Every row on every split, in order. A figure draws from these; `run_table` tabulates them.

    Parameters
    ----------
    rows : sequence of Row
    X, y : array-like or list
    splits : sequence of (train, test) index arrays
    metrics : mapping of name to ``metric(y_true, y_pred)``
    options : Options
    groups : array-like, default=None
        One group for each sample; its training part goes to rows with `pass_groups`.
    seed : int, default=0
        Split ``i`` makes every row's estimator with ``seed + i``.
    code_version : str, default="1"
        Part of the key of a finished cell. Change it when the code behind a row has changed, or
        run with ``--fresh``; otherwise a cell that was finished before is not run again.
    pages : sequence of str
        Results other than the experiment's own in which finished cells may be, by name.
    """
    _check(rows, splits, groups)
    work = options.results / ".work" / options.page
    fingerprint = joblib.hash((X, y, groups))
    commit = environment.git_commit(environment.ROOT)
    tasks = []
    for row in rows:
        for number, (train, test) in enumerate(splits):
            estimator = row.make(seed + number)
            key = _digest(
                *(options.name, row.name, row.pass_groups, _params(estimator), seed + number),
                *(joblib.hash((train, test)), fingerprint, code_version, sorted(metrics)),
                *([row.version] if row.version else []),
            )
            file = work / f"{key}.json"
            tasks.append(
                _Task(row.name, number, estimator, row.pass_groups, options.n_jobs, commit, file)
            )

    done = (
        {}
        if options.fresh
        else _finished(
            tasks,
            [
                options.results / f"{name}.json"
                for name in (options.page, options.page + _UNFINISHED, *pages)
            ],
        )
    )
    if done:
        print(f"{len(done)} of {len(tasks)} cells were finished before; --fresh runs them again")
    todo = [task for task in tasks if task.file not in done]
    parallel = joblib.Parallel(options.n_jobs, return_as="generator_unordered")
    finished = parallel(
        joblib.delayed(_fill)(task, X, y, groups, splits[task.split], metrics) for task in todo
    )
    with _progress(len(todo)) as advance:
        for file, cell in finished:
            done[file] = cell
            advance(cell)
    return [done[task.file] for task in tasks]


def as_table(cells: Sequence[Cell]) -> str:
    """Markdown table of cells: one line for each row, in order of appearance.

    Examples
    --------
    >>> cells = [Cell("SVM", i, {"accuracy": a}, 1.0, 0.5) for i, a in enumerate([0.8, 0.9])]
    >>> print(as_table(cells))
    |  | accuracy | fit s | predict s |
    | --- | --- | --- | --- |
    | SVM | 85.0 ± 7.1 | 1 | 0.5 |
    """
    metrics = list(cells[0].scores)
    searched = any(cell.best_params for cell in cells)
    sized = any(cell.size is not None for cell in cells)
    titles = ["", *metrics, "fit s", "predict s"]
    titles += ["size found"] * sized + ["most often chosen"] * searched
    lines = []
    for name in dict.fromkeys(cell.row for cell in cells):
        mine = [cell for cell in cells if cell.row == name]
        scores = [_mean_and_std([100 * cell.scores[metric] for cell in mine]) for metric in metrics]
        fit = f"{np.mean([cell.fit_seconds for cell in mine]):.3g}"
        predict = f"{np.mean([cell.predict_seconds for cell in mine]):.3g}"
        found = [cell.size for cell in mine if cell.size is not None]
        size = f"{np.mean(found):.4g}" if found else ""
        lines.append(
            [name, *scores, fit, predict] + [size] * sized + [_most_chosen(mine)] * searched
        )
    return markdown.table(titles, lines)


def paired_differences(
    cells: Sequence[Cell], first: str, second: str, *, splits_per_repeat: int = 1
) -> dict[str, tuple[float, float]]:
    """By how much row `first` is ahead of `second` on the same splits: mean and standard error.

    Parameters
    ----------
    cells : sequence of Cell
    first, second : str
        Names of rows.
    splits_per_repeat : int, default=1
        The folds of a repeated cross-validation: their training parts overlap, so that only whole
        repeats, the means of so many successive splits, count for the standard error.

    Returns
    -------
    dict of metric to (mean, standard error)
        Shares, as the scores; the error of a single repeat is NaN.

    Examples
    --------
    >>> cells = [
    ...     Cell(row, split, {"accuracy": score}, 1.0, 1.0)
    ...     for row, scores in [("a", [0.8, 0.9, 0.7, 0.6]), ("b", [0.7, 0.8, 0.7, 0.6])]
    ...     for split, score in enumerate(scores)]
    >>> mean, error = paired_differences(cells, "a", "b", splits_per_repeat=2)["accuracy"]
    >>> round(mean, 4), round(error, 4)
    (0.05, 0.05)
    """
    scores = {(cell.row, cell.split): cell.scores for cell in cells}
    splits = sorted({cell.split for cell in cells})
    differences = {}
    for metric in cells[0].scores:
        gaps = [scores[first, i][metric] - scores[second, i][metric] for i in splits]
        repeats = np.reshape(gaps, (-1, splits_per_repeat)).mean(axis=1)
        n = len(repeats)
        error = float(repeats.std(ddof=1) / n**0.5) if n > 1 else np.nan
        differences[metric] = float(repeats.mean()), error
    return differences


def as_differences(
    cells: Sequence[Cell], pairs: Sequence[tuple[str, str]], splits_per_repeat: int = 1
) -> str:
    """Markdown table of paired differences in points of %, and what its numbers are."""
    lines = []
    for first, second in pairs:
        found = paired_differences(cells, first, second, splits_per_repeat=splits_per_repeat)
        gaps = [
            f"{100 * mean:+.1f}" + ("" if np.isnan(error) else f" ± {100 * error:.1f}")
            for mean, error in found.values()
        ]
        lines.append([f"{first} − {second}", *gaps])
    n_repeats = len({cell.split for cell in cells}) // splits_per_repeat
    over = f"{n_repeats} split(s)."
    if splits_per_repeat > 1:
        over = (
            f"{n_repeats} repeat(s) of {splits_per_repeat} splits. Repeats share the data, so the "
            "error is that of the splits alone."
        )
    table = markdown.table(["", *cells[0].scores], lines)
    return (
        f"{table}\n\nDifferences on the same splits, in points: mean ± standard error over {over}"
    )


def _legend(cells: Sequence[Cell], n_splits: int, commit: str) -> str:
    jobs = " and ".join(map(str, sorted({cell.n_jobs for cell in cells})))
    older = sorted({cell.commit for cell in cells} - {commit})
    return (
        f"{n_splits} split(s), the same for every row. Scores in %: mean ± standard deviation "
        "(n - 1) over splits. Seconds: mean wall-clock time of one fit, and of predicting one test "
        f"set, with one BLAS thread, measured under n_jobs={jobs}."
        + (f" Some cells were filled earlier, at commit {', '.join(older)}." if older else "")
    )


def _mean_and_std(values: Sequence[float]) -> str:
    mean = f"{np.mean(values):.1f}"
    return f"{mean} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else mean


def _most_chosen(cells: Sequence[Cell]) -> str:
    """The inner search's most frequent choice, and how often it was made."""
    choices = Counter(", ".join(f"{k}={v}" for k, v in c.best_params.items()) for c in cells)
    (choice, times), *_ = choices.most_common(1)
    return f"{choice} ({times}/{len(cells)})" if choice else ""


def _check(rows: Sequence[Row], splits: Sequence[Split], groups: Any) -> None:
    repeated = [name for name, times in Counter(row.name for row in rows).items() if times > 1]
    if repeated:
        raise ValueError(f"rows need different names; {repeated} occur more than once")
    for number, (train, test) in enumerate(splits):
        if len(np.intersect1d(train, test)):
            raise ValueError(f"split {number} has samples in both train and test")
    if groups is None and any(row.pass_groups for row in rows):
        raise ValueError("a row has pass_groups=True; give groups= as well")


def _fill(
    task: _Task, X: Any, y: Any, groups: Any, split: Split, metrics: Mapping[str, Metric]
) -> tuple[Path, Cell]:
    """Fit, predict, score; the result is on disk before it is reported."""
    train, test = split
    # A copy, so that the list of tasks does not keep every fitted model alive.
    estimator = clone(task.estimator)
    given = {"groups": take(groups, train)} if task.pass_groups else {}
    X_train, y_train, X_test, y_test = take(X, train), take(y, train), take(X, test), take(y, test)
    try:
        with threadpool_limits(1):
            start = time.perf_counter()
            estimator.fit(X_train, y_train, **given)
            fitted = time.perf_counter()
            predicted = estimator.predict(X_test)
            end = time.perf_counter()
        scores = {name: float(metric(y_test, predicted)) for name, metric in metrics.items()}
    except Exception as error:
        error.add_note(f"in row {task.row!r}, split {task.split}")
        raise
    cell = Cell(
        row=task.row,
        split=task.split,
        scores=scores,
        fit_seconds=fitted - start,
        predict_seconds=end - fitted,
        best_params={k: str(v) for k, v in getattr(estimator, "best_params_", {}).items()},
        size=size_found(estimator),
        n_jobs=task.n_jobs,
        commit=task.commit,
        key=task.file.stem,
    )
    write_atomically(task.file, json.dumps(asdict(cell)))
    return task.file, cell


def size_found(estimator: Any) -> float | None:
    """Features in use, of a harmonium with as many as it likes; nothing for other estimators."""
    if not hasattr(estimator, "max_features") or not hasattr(estimator, "n_features_"):
        return None
    return float(estimator.n_features_)


def _finished(tasks: Sequence[_Task], pages: Sequence[Path]) -> dict[Path, Cell]:
    """Cells on disk: of a run that was stopped here, and of pages from whatever machine."""
    published = {}
    for page in pages:
        published.update({cell["key"]: Cell(**cell) for cell in _cells(page) if cell.get("key")})
    found = {}
    for task in tasks:
        if task.file.exists():
            found[task.file] = Cell(**json.loads(task.file.read_text(encoding="utf-8")))
        elif task.file.stem in published:
            found[task.file] = published[task.file.stem]
    return found


def keep_unfinished(results: Path = RESULTS) -> list[Path]:
    """Write what stopped runs have finished into files that another machine can go on from.

    A table that is finished removes its own.
    """
    written = []
    for folder in sorted((results / ".work").glob("*")):
        page, kept = results / f"{folder.name}.json", results / f"{folder.name}{_UNFINISHED}.json"
        cells = {cell["key"]: cell for cell in _cells(kept)}  # of other machines
        for file in sorted(folder.glob("*.json")):
            cells[file.stem] = json.loads(file.read_text(encoding="utf-8"))
        for cell in _cells(page):
            cells.pop(cell.get("key"), None)
        if cells:
            write_atomically(kept, json.dumps({"cells": list(cells.values())}, indent=1) + "\n")
            written.append(kept)
    return written


def _cells(page: Path) -> list[dict[str, Any]]:
    """Those of a file, if there is one."""
    return json.loads(page.read_text(encoding="utf-8"))["cells"] if page.exists() else []


def _params(estimator: Any) -> str:
    """All parameters, nested ones too, without the addresses some representations contain."""
    params = sorted(estimator.get_params(deep=True).items())
    return re.sub(r" at 0x[0-9a-f]+", "", f"{type(estimator).__qualname__} {params!r}")


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[Cell], None]]:
    """A bar on a terminal, a line for each cell elsewhere (logs)."""
    console = Console()
    if console.is_terminal:
        columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.fields[last]}"), console=console) as bar:
            task = bar.add_task("cells", total=total, last="")
            yield lambda cell: bar.update(task, advance=1, last=_one_line(cell))
        return
    count = 0

    def report(cell: Cell) -> None:
        nonlocal count
        count += 1
        print(f"[{count}/{total}] {_one_line(cell)}", flush=True)

    yield report


def _one_line(cell: Cell) -> str:
    scores = ", ".join(f"{name} {100 * score:.1f}" for name, score in cell.scores.items())
    return f"{cell.row}, split {cell.split}: {scores}, fit {cell.fit_seconds:.3g} s"
