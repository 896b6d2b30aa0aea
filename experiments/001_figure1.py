"""Figure 1: accuracy of SS, MSS and FS against the number of states and the share of training."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit

from experiments.harness import Options, Row, run_table
from experiments.score_rows import SEARCH, Scored
from regbayes.scores import FisherScore, MaxMarginScore, SufficientStatisticsScore

table2 = importlib.import_module("experiments.001_table2")
STATES = (2, 3, 5, 8)
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8)
SETS = {"promoters": 10, "osuleaf": 5}  # splits
MAPS = {"SS": SufficientStatisticsScore, "MSS": MaxMarginScore, "FS": FisherScore}


def row(task, name, n_states):
    def make(seed):
        model = table2.base_model(task, seed, n_states)
        options = {"random_state": seed} if name == "MSS" else {}
        return Scored(MAPS[name](model, **options), n_folds=2)

    version = SEARCH if name == "MSS" else ""
    return Row(f"{name}, {n_states} states", make, version=version)


def curve(options, name, part, title, rows, X, y, share):
    splits = StratifiedShuffleSplit(
        1 if options.quick else SETS[name], train_size=share, random_state=0
    )
    return run_table(
        f"001 Figure 1: {title}",
        rows,
        X,
        y,
        list(splits.split(X, y)),
        {"accuracy": accuracy_score},
        options=replace(options, name=f"001_figure1_{name}_{part}"),
        notes="One discrete HMM for each class; the weight of the classifier is chosen by two "
        "folds of the training share, that on MSS by the parts that tell its rounds.",
    )


def draw(ax, xs, curves, xlabel, title):
    for name, cells in curves.items():
        mean, std = np.array([(np.mean(c), np.std(c)) for c in cells]).T * 100
        ax.errorbar(xs, mean, std, marker="o", ms=3, capsize=2, label=name)
    ax.set(xlabel=xlabel, ylabel="accuracy, %", title=title)


def of_row(cells, name):
    return [cell.scores["accuracy"] for cell in cells if cell.row == name]


def run(options: Options) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(SETS), 2, figsize=(10, 7), constrained_layout=True)
    states, shares = (STATES[:2], SHARES[2:4]) if options.quick else (STATES, SHARES)
    for line, name in zip(axes, SETS):
        task = table2.TASKS[name]
        X, y = task.load()
        y = np.asarray(y)
        lines = [row(task, m, k) for m in MAPS for k in states]
        cells = curve(options, name, "states", f"{task.title}, states", lines, X, y, 0.5)
        curves = {m: [of_row(cells, f"{m}, {k} states") for k in states] for m in MAPS}
        draw(line[0], states, curves, "states", task.title)
        curves = {m: [] for m in MAPS}
        for share in shares:
            part = f"share{round(100 * share)}"
            lines = [row(task, m, 3) for m in MAPS]
            cells = curve(
                options, name, part, f"{task.title}, {share:.0%} training", lines, X, y, share
            )
            for m in MAPS:
                curves[m].append(of_row(cells, f"{m}, 3 states"))
        draw(line[1], shares, curves, "share of training, 3 states", task.title)
    axes[0, 0].legend()
    options.results.mkdir(exist_ok=True)
    figure.savefig(options.results / f"{options.page}.png", dpi=110)
    plt.close(figure)
