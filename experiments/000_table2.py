"""Table 2: labels of switching sequences, three transition matrices, against the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC, LinearSVC

from experiments.harness import Options, Row, evaluate, run_table
from experiments.sequences import PerStep, accuracy
from regbayes.datasets import make_switching_labels
from regbayes.hmm import MarkovSwitchingMED, MaxMarginInfiniteHMM
from regbayes.kernels.batch import smooth
from regbayes.mixture import GibbsInfiniteSVM

# Defaults of M2iHMM were settled on data sets of seeds 500 to 519, then frozen.
SEEDS = range(10)
SETTINGS = ("positive", "negative", "vague")


class Optimum(BaseEstimator):
    """The Bayes-optimal smoother, which knows the true parameters."""

    def __init__(self, start, transition, means, orientations):
        self.start = start
        self.transition = transition
        self.means = means
        self.orientations = orientations

    def fit(self, X, y):
        return self

    def predict(self, X):
        return [self._labels(x[:, 0]) for x in X]

    def _labels(self, x):
        gap = x[:, None] - self.means
        states, _, _ = smooth(self.start, self.transition, -0.5 * gap**2, np.array([0, len(x)]))
        above = (gap > 0) == (np.asarray(self.orientations) > 0)
        return ((states * above).sum(axis=1) > 0.5).astype(int)


def rows(sets, quick: bool) -> list[Row]:
    short = {"n_draws": 5, "burn_in": 5} if quick else {}
    blocks = KFold(5)

    def optimum(seed):
        truth = sets[seed]
        return Optimum(truth.start, truth.transition, truth.means, truth.orientations)

    def m2ihmm(**options):
        return lambda seed: MaxMarginInfiniteHMM(random_state=seed, **{**short, **options})

    c_grid = [0.1, 1, 10, 100]
    return [
        Row(
            "linear SVM",
            lambda seed: PerStep(
                GridSearchCV(LinearSVC(random_state=seed), {"C": c_grid}, cv=blocks)
            ),
        ),
        Row(
            "RBF SVM",
            lambda seed: PerStep(
                GridSearchCV(SVC(), {"C": c_grid, "gamma": [0.1, 1, 10]}, cv=blocks)
            ),
        ),
        Row("iM2EDM", lambda seed: MarkovSwitchingMED(random_state=seed)),
        Row(
            "iM2EDM, no likelihood",
            lambda seed: MarkovSwitchingMED(emission=None, random_state=seed),
        ),
        Row("M2iHMM-2", m2ihmm(emission=None)),
        Row("GiSVM", lambda seed: PerStep(GibbsInfiniteSVM(random_state=seed, **short))),
        Row("M2iHMM-1", m2ihmm()),
        Row("M2iHMM-1, iterated vote", m2ihmm(prediction="iterated", thin=5, n_draws=20)),
        Row(
            "M2iHMM-1, the paper's priors",
            m2ihmm(nu=1.0, alpha=2.0, gamma=2.0, init="random"),
        ),
        Row("optimum", optimum),
    ]


def run(options: Options) -> None:
    for setting in SETTINGS:
        sets = [
            make_switching_labels((500, 5000), setting, random_state=seed)
            for seed in SEEDS[: 2 if options.quick else None]
        ]
        X = [x for data in sets for x in data.data]
        y = [labels for data in sets for labels in data.target]
        splits = [(np.array([2 * i]), np.array([2 * i + 1])) for i in range(len(sets))]
        here = replace(options, name=f"000_table2_{setting}")
        table = rows(sets, options.quick)
        cells = evaluate(table, X, y, splits, {"accuracy": accuracy}, options=here)
        run_table(
            f"000 Table 2: switching labels, {setting} transitions",
            table,
            X,
            y,
            splits,
            {"accuracy": accuracy},
            options=replace(here, fresh=False),
            notes=shares(cells),
        )


def shares(cells) -> str:
    """Every row as a share of the optimum on the same data sets."""
    by_row: dict[str, list[float]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, []).append(cell.scores["accuracy"])
    best = np.array(by_row.pop("optimum"))
    lines = [f"- {row}: {np.mean(np.array(values) / best):.3f}" for row, values in by_row.items()]
    return (
        "Accuracy as a share of that of the Bayes-optimal smoother with the true parameters, mean "
        "over data sets:\n\n" + "\n".join(lines) + "\n\nOne training chain of 500 steps, one test "
        "chain of 5,000, for each of the data sets, whose means are drawn anew; the standard "
        "deviation is over data sets. Defaults of M2iHMM were settled on data sets of other seeds "
        "and frozen, but for the burn-in, raised from 300 to 500 sweeps after those other sets had "
        "asked for it (with 300: 0.990, 0.987 and 0.987 of the optimum here); SVMs choose their "
        "hyper-parameters by blocks of the training chain. The paper "
        "reports 91.2, 85.0 and 84.8 for M2iHMM-1 on its own ten data sets (positive, negative, "
        "vague) and 53 s for a fit."
    )
