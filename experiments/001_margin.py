"""The heart of 001: is MSS ahead of SS? Both rows of Table 2, and a control.

MSS and SS have the same HMMs; MSS has their scores twice, as they are and learnt with a margin. So
has "two SS": scores of two HMMs of each class, from different starts, as many as MSS has and
without a margin. Halves, and cells that are filled, are those of Table 2.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, replace

import numpy as np
from sklearn.metrics import accuracy_score

from experiments import environment, markdown
from experiments.harness import Cell, Options, Row, evaluate, paired_differences
from experiments.score_rows import Scored
from regbayes.datasets._remote import write_atomically
from regbayes.scores import Preprocessed, SideBySide, SufficientStatisticsScore

table2 = importlib.import_module("experiments.001_table2")
N_HALVES = {
    "promoters": 20, "libras": 20, "japanese_vowels": 20, "hill_valley": 20,
    "hill_valley_raw": 20, "osuleaf": 20,
    "splice_junction": 20, "kinases": 20, "scope40": 20, "characters": 20,
}  # fmt: skip
TITLES = [
    "set", "halves", "SS", "MSS", "two SS", "MSS − SS", "better", "alike", "worse", "MSS − two SS",
]  # fmt: skip


def rows_of_table(task) -> list[Row]:
    def twice(seed):
        first, second = (table2.base_model(task, seed) for _ in range(2))
        (second.model if isinstance(second, Preprocessed) else second).random_state = seed + 1000
        return Scored(SufficientStatisticsScore(SideBySide([first, second])))

    found = {row.name: row for row in table2.rows(task)}
    return [found["SS"], found["MSS"], Row("two SS", twice)]


def line(
    name: str, rows: list[Row], n_halves: int, options: Options
) -> tuple[list[str], list[Cell]]:
    """SS, the first row, against MSS, the second; the third stands beside them."""
    task = table2.TASKS[name]
    X, y, halves = table2.load_halves(task, n_halves, options.quick)
    cells = evaluate(
        rows, X, y, halves, {"accuracy": accuracy_score},
        options=replace(options, name=f"001_table2_{name}"), pages=(table2.CELLS,),
    )  # fmt: skip
    plain, learnt, twice = (
        100 * np.array([cell.scores["accuracy"] for cell in cells if cell.row == row.name])
        for row in rows
    )
    gap = learnt - plain

    def ahead_of(row: Row) -> str:
        mean, error = paired_differences(cells, rows[1].name, row.name)["accuracy"]
        return f"{100 * mean:+.2f}" + (f" ± {100 * error:.2f}" if len(halves) > 1 else "")

    columns = [
        task.title,
        str(len(halves)),
        f"{plain.mean():.1f}",
        f"{learnt.mean():.1f}",
        f"{twice.mean():.1f}",
        ahead_of(rows[0]),
        *(str(np.sum(which)) for which in (gap > 0, gap == 0, gap < 0)),
        ahead_of(rows[2]),
    ]
    return columns, cells


def run(options: Options) -> None:
    few = slice(2 if options.quick else None)
    found = [
        line(name, rows_of_table(table2.TASKS[name]), n_halves, options)
        for name, n_halves in list(N_HALVES.items())[few]
    ]
    page = [
        "# 001 MSS against SS",
        (__doc__ or "").partition("\n\n")[2].strip(),
        markdown.table(TITLES, [columns for columns, _ in found]),
        "Accuracy in %; differences on the same halves, in points: mean ± standard error. Better, "
        "alike, worse: halves. Where and why there is little to learn: `001_rounds`.",
        environment.as_markdown(environment.describe(options.command)),
    ]
    options.results.mkdir(exist_ok=True, parents=True)
    if not options.quick:
        raw = {"cells": [asdict(cell) for _, cells in found for cell in cells]}
        write_atomically(options.results / f"{table2.CELLS}.json", json.dumps(raw, indent=1) + "\n")
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page) + "\n")
    print(f"{options.page}.md written")
