"""Figures 9-10: sensitivity of iMMH to C, alpha and the cost of a wrong label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.metrics import accuracy_score

from experiments.harmonium_rows import ALPHA, MARGIN, TASKS, load_task
from experiments.harness import Options, Row, run_table
from regbayes.harmonium import InfiniteMaxMarginHarmonium

N_SPLITS = 3
GRIDS = {
    "C": (1.0, 10.0, 100.0, 1000.0),
    "alpha": (0.5, 1.0, 5.0, 20.0, 50.0),
    "cost": (1.0, 2.0, 5.0, 10.0, 30.0),
}
MIDDLE = {"alpha": ALPHA, **MARGIN}


def name_of(word: str, value: float) -> str:
    """All curves meet in one row."""
    return "as in Figures 3-4" if value == MIDDLE[word] else f"{word} = {value:g}"


def row(word: str, value: float, quick: bool) -> Row:
    def make(seed):
        options = {**MIDDLE, word: value}
        size = {"max_features": 20, "max_iter": 10} if quick else {}
        return InfiniteMaxMarginHarmonium(random_state=seed, **options, **size)

    return Row(name_of(word, value), make)


def run(options: Options) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(GRIDS), figsize=(11, 3.5), layout="constrained", sharey=True)
    for name, task in TASKS.items():
        X, y, splits = load_task(task, options.quick, N_SPLITS)
        grids = {word: values[:2] if options.quick else values for word, values in GRIDS.items()}
        lines = {
            name_of(word, value): row(word, value, options.quick)
            for word, values in grids.items()
            for value in values
        }
        cells = run_table(
            f"002 Figures 9-10: {task.title}",
            list(lines.values()),
            X,
            y,
            splits,
            {"accuracy": accuracy_score},
            options=replace(options, name=f"002_figures9_10_{name}"),
            notes=f"{task.note} iMMH on both views; what a row does not name is at {MIDDLE}.",
        )
        for ax, (word, values) in zip(axes, grids.items()):
            means = [
                np.mean([c.scores["accuracy"] for c in cells if c.row == name_of(word, value)])
                for value in values
            ]
            ax.semilogx(values, means, marker="o", ms=3, label=name)
            ax.set(xlabel=word, ylabel="accuracy")
    axes[0].legend()
    options.results.mkdir(exist_ok=True, parents=True)
    figure.savefig(options.results / f"{options.page}.png", dpi=120)
