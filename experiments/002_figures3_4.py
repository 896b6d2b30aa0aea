"""Figures 3-4: accuracy and F1 on one view and on both, finite and infinite, binary and real."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments.harmonium_rows import (
    ALPHA,
    MARGIN,
    SCORES,
    TASKS,
    FeaturesSVM,
    OnView,
    load_task,
    tuned_svm,
    views_svm,
)
from experiments.harness import Options, Row, run_table
from regbayes.harmonium import (
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
)

N_SPLITS = 10
N_SPLITS_OF_SIZES = 3  # of finite sizes and real units, three dozen rows on three sets
SIZES = (10, 20, 40, 60, 80)


def makers(size: int | None, units: str, quick: bool) -> dict:
    """EFH + SVM and MMH of a size, or their infinite relatives."""
    options = {"units": units, **({"max_iter": 10} if quick else {})}
    width = 20 if quick else 200

    def efh(seed):
        if size is None:
            return FeaturesSVM(InfiniteHarmonium(width, ALPHA, random_state=seed, **options))
        return FeaturesSVM(Harmonium(size, random_state=seed, **options))

    def mmh(seed):
        if size is None:
            return InfiniteMaxMarginHarmonium(width, ALPHA, random_state=seed, **MARGIN, **options)
        return MaxMarginHarmonium(size, random_state=seed, **MARGIN, **options)

    names = ("iEFH + SVM", "iMMH") if size is None else (f"EFH + SVM, {size}", f"MMH, {size}")
    return dict(zip(names, (efh, mmh)))


def on(view: str | None, make, seed):
    return make(seed) if view is None else OnView(make(seed), view)


def rows(views: list[str], quick: bool) -> list[Row]:
    """SVMs, and the infinite models with binary units, on each view and on both."""
    lines = [Row("linear SVM, both", lambda seed: views_svm())]
    for view in views:
        lines.append(
            Row(f"linear SVM, {view}", lambda s, v=view: OnView(tuned_svm(StandardScaler()), v))
        )
    return lines + of_size(None, ("binary",), views, quick)


def of_size(size: int | None, kinds: tuple[str, ...], views: list[str], quick: bool) -> list[Row]:
    return [
        Row(f"{name}, {units}, {'both' if view is None else view}", partial(on, view, make))
        for units in kinds
        for name, make in makers(size, units, quick).items()
        for view in (None, *views)
    ]


def draw(axes, cells, views):
    for ax, metric in zip(axes, SCORES):

        def mean(row, metric=metric):
            return np.mean([cell.scores[metric] for cell in cells if cell.row == row])

        drawn = {cell.row for cell in cells}
        for i, where in enumerate(["both", *views]):
            for name, style in (("EFH + SVM", "--"), ("MMH", "-")):
                sizes = [k for k in SIZES if f"{name}, {k}, binary, {where}" in drawn]
                values = [mean(f"{name}, {k}, binary, {where}") for k in sizes]
                ax.plot(sizes, values, f"C{i}{style}", marker="o", ms=3, label=f"{name}, {where}")
                ax.axhline(mean(f"i{name}, binary, {where}"), color=f"C{i}", ls=style, lw=0.6)
        ax.set(xlabel="units (thin lines: infinite)", ylabel=metric)
    axes[0].legend(fontsize=7)


def run(options: Options) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(TASKS), 2, figsize=(9, 11), layout="constrained")
    quick = options.quick
    sizes = SIZES[:1] if quick else SIZES
    for line, (name, task) in zip(axes, TASKS.items()):
        X, y, splits = load_task(task, quick, N_SPLITS)
        views = list(X)
        finite = run_table(
            f"002 Figures 3-4, sizes and real units: {task.title}",
            [
                *(row for size in sizes for row in of_size(size, ("binary",), views, quick)),
                *of_size(None, ("real",), views, quick),
            ],
            X,
            y,
            splits[:N_SPLITS_OF_SIZES],
            SCORES,
            options=replace(options, name=f"002_figures3_4_{name}_sizes"),
            notes=f"{task.note} The first {N_SPLITS_OF_SIZES} splits of the infinite models.",
        )
        cells = run_table(
            f"002 Figures 3-4: {task.title}",
            rows(views, quick),
            X,
            y,
            splits,
            SCORES,
            options=replace(options, name=f"002_figures3_4_{name}"),
            notes=f"{task.note} {N_SPLITS} random splits by class. SVMs choose their weight by "
            "three folds of the training part; the margin's C and cost are the same for all sets.",
            compare=[
                ("iMMH, binary, both", row)
                for row in (
                    *(f"iMMH, binary, {view}" for view in views),
                    "iEFH + SVM, binary, both",
                    "linear SVM, both",
                )
            ]
            if len(splits) > 1
            else (),
        )
        draw(line, [*cells, *finite], views)
        line[0].set_title(task.title)
    options.results.mkdir(exist_ok=True, parents=True)
    figure.savefig(options.results / f"{options.page}.png", dpi=120)
