"""What max-margin harmoniums ask for, chosen inside the training parts (decision 016).

20 Newsgroups: the last 15 % of each group's training documents are held out, which come later in
time, as the test documents do. Views: three folds of the training part of the first split of
Figures 3-4. No test item is looked at. Each setting differs in one thing from the first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.harmonium_rows import SCORES, TASKS, error, load_news, load_task
from experiments.harness import Options, Row, run_table
from regbayes.harmonium import InfiniteMaxMarginHarmonium

# First guesses; what the tables have is by what came out (decision 016).
OF_NEWS = {"C": 100.0, "cost": 10.0, "dropout": 0.5, "input_dropout": 0.5}
OF_VIEWS = {"C": 100.0, "cost": 5.0, "input_dropout": 0.3}
VARIED = {
    "C": (10.0, 1000.0),
    "cost": (1.0, 30.0),
    "input_dropout": (0.0, 0.7),
    "dropout": (0.0,),
    "alpha": (2.0, 5.0, 50.0),
    "learning_rate": (0.001, 0.01),
}


def rows(first: dict, quick: bool, **fixed) -> list[Row]:
    options = {"alpha": 20.0, **first, **fixed, **({"max_iter": 5} if quick else {})}
    width = 20 if quick else 200

    def row(name, changed):
        return Row(
            name,
            lambda seed: InfiniteMaxMarginHarmonium(
                width, **{**options, **changed}, random_state=100 + seed
            ),
        )

    varied = {key: values[:1] for key, values in VARIED.items()} if quick else VARIED
    lines = [row("first guess", {})]
    for key, values in varied.items():
        lines += [row(f"{key} = {value:g}", {key: value}) for value in values]
    return lines


def later(y: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Training documents, and the last 15 % of each class of them."""
    by_class = [train[y[train] == c] for c in np.unique(y)]
    cuts = [round(0.85 * len(rows)) for rows in by_class]
    return tuple(
        np.concatenate(parts)
        for parts in zip(*((rows[:cut], rows[cut:]) for rows, cut in zip(by_class, cuts)))
    )


def run(options: Options) -> None:
    news = load_news(300, per_class=20) if options.quick else load_news()
    run_table(
        "002 choices: 20 Newsgroups, inside the training documents",
        rows(OF_NEWS, options.quick, visible="bernoulli"),
        news.X,
        news.y,
        [later(news.y, news.train)] * (1 if options.quick else 2),
        {"error": error},
        options=replace(options, name="002_choices_news"),
        notes=__doc__ or "",
    )
    for name, task in TASKS.items():
        X, y, splits = load_task(task, options.quick, 1)
        train = splits[0][0]
        folds = StratifiedKFold(3).split(train, y[train])
        run_table(
            f"002 choices: {task.title}, inside a training part",
            rows(OF_VIEWS, options.quick),
            X,
            y,
            [(train[rest], train[fold]) for rest, fold in folds],
            SCORES,
            options=replace(options, name=f"002_choices_{name}"),
            notes=__doc__ or "",
        )
