"""Where learning with a margin has something to do: rounds of MSS, and errors it did not train on.

On the training part of the first half of each set of Table 2, with the models of its score rows.
Rounds are those that were kept; errors are the samples that were misjudged by classifiers that did
not see them, nor did its tilts and laws, before the first round and at the round that was kept, on
average over five weights of the classifier.
"""

from __future__ import annotations

import importlib
import time

import numpy as np

from experiments import environment, markdown
from experiments.harness import Options
from regbayes.datasets._remote import write_atomically
from regbayes.scores import MarginClassifier, MaxMarginScore, SufficientStatisticsScore

table2 = importlib.import_module("experiments.001_table2")
TITLES = [
    "set", "classes", "training sequences", "SS is right about its own", "rounds",
    "unseen errors before", "after", "fit s",
]  # fmt: skip


def line(task, quick: bool) -> list[str]:
    X, y, ((train, _),) = table2.load_halves(task, 1, quick)
    X, y = [X[i] for i in train], y[train]
    plain = SufficientStatisticsScore(table2.base_model(task, 0)).fit_transform(X, y)
    own = MarginClassifier(C=10.0).fit(plain, y).score(plain, y)
    begun = time.perf_counter()
    found = MaxMarginScore(table2.base_model(task, 0), random_state=0).fit(X, y)
    seconds = time.perf_counter() - begun
    (rounds,), (checks,) = found.n_rounds_, found.unseen_errors_
    errors = checks[:, 1:].mean(axis=1)
    return [
        task.title,
        str(len(np.unique(y))),
        str(len(y)),
        f"{own:.1%}",
        str(rounds),
        f"{errors[0]:.1f}",
        f"{errors[checks[:, 0] == rounds][0]:.1f}",
        f"{seconds:.3g}",
    ]


def run(options: Options) -> None:
    tasks = list(table2.TASKS.values())
    lines = [line(task, options.quick) for task in (tasks[:2] if options.quick else tasks)]
    page = [
        "# 001 Where a margin has something to learn",
        (__doc__ or "").partition("\n\n")[2].strip(),
        markdown.table(TITLES, lines),
        environment.as_markdown(environment.describe(options.command)),
    ]
    options.results.mkdir(exist_ok=True, parents=True)
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page) + "\n")
    print(f"{options.page}.md written")
