"""Figure 2: accuracy against the number of topics and the share of training, city against rest."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit

from experiments.document_rows import LEARNING, lda
from experiments.harness import Options, Row, run_table
from experiments.score_rows import SEARCH, Scored
from regbayes import datasets
from regbayes.scores import FisherScore, MaxMarginScore, SufficientStatisticsScore

figure1 = importlib.import_module("experiments.001_figure1")
TOPICS = (2, 5, 10, 20, 40)
SHARES = (0.05, 0.1, 0.2, 0.4, 0.6)
N_SPLITS = 5
MAPS = {"SS": SufficientStatisticsScore, "MSS": MaxMarginScore, "FS": FisherScore}


def row(name, n_topics, quick):
    def make(seed):
        options = {"random_state": seed, **LEARNING} if name == "MSS" else {}
        if name == "MSS" and quick:
            options["n_iter"] = 2
        model = lda(n_topics, seed, quick)
        return Scored(MAPS[name](model, scaling="standard", **options), n_folds=2)

    version = SEARCH if name == "MSS" else ""
    return Row(f"{name}, {n_topics} topics", make, version=version)


def curve(options, part, title, rows, X, y, share):
    splits = StratifiedShuffleSplit(
        1 if options.quick else N_SPLITS, train_size=share, random_state=0
    )
    return run_table(
        f"001 Figure 2: {title}",
        rows,
        X,
        y,
        list(splits.split(y, y)),
        {"accuracy": accuracy_score},
        options=replace(options, name=f"001_figure2_{part}"),
        notes="Oliva and Torralba's scenes, inside of cities against all others; 240 visual words, "
        "one LDA for each class, scores rooted and of unit variance; the weight of the "
        "classifier is chosen by two folds of the training share.",
    )


def run(options: Options) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = datasets.fetch_scene15(scenes="ot8", return_X_y=True)
    y = np.where(y == "InsideCity", "city", "rest")
    if options.quick:
        X, y = X[::20], y[::20]
    topics, shares = (TOPICS[:2], SHARES[-2:]) if options.quick else (TOPICS, SHARES)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), constrained_layout=True)
    lines = [row(m, k, options.quick) for m in MAPS for k in topics]
    cells = curve(options, "topics", "numbers of topics", lines, X, y, 0.2)
    curves = {m: [figure1.of_row(cells, f"{m}, {k} topics") for k in topics] for m in MAPS}
    figure1.draw(axes[0], topics, curves, "topics, 20 % training", "city against rest")
    curves = {m: [] for m in MAPS}
    for share in shares:
        lines = [row(m, 10, options.quick) for m in MAPS]
        part = f"share{round(100 * share)}"
        cells = curve(options, part, f"{share:.0%} training", lines, X, y, share)
        for m in MAPS:
            curves[m].append(figure1.of_row(cells, f"{m}, 10 topics"))
    figure1.draw(axes[1], shares, curves, "share of training, 10 topics", "city against rest")
    axes[0].legend()
    options.results.mkdir(exist_ok=True)
    figure.savefig(options.results / f"{options.page}.png", dpi=110)
    plt.close(figure)
