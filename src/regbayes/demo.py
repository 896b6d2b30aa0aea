"""Three hidden sub-populations, another rule in each: ``python -m regbayes.demo``.

No straight line separates the classes of the whole table, but in every sub-population one does.
The demo makes such a table, hides the sub-populations, and looks whether they are found.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC, LinearSVC

from regbayes.datasets import make_subpopulations
from regbayes.mixture import GibbsInfiniteSVM
from regbayes.plot import plot_component_counts, plot_decision_regions


def choose(model: Any, grid: dict[str, Any], X: NDArray, y: NDArray) -> Any:
    """The model with parameters chosen by cross-validation inside the training part."""
    with warnings.catch_warnings():
        # Chains are short here, and may disagree: good enough to choose by.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GridSearchCV(model, grid, cv=3).fit(X, y).best_estimator_


def recovery(z: NDArray, group: NDArray) -> NDArray:
    """For every sub-population, its overlap (Jaccard) with the component that fits it best.

    Examples
    --------
    >>> recovery(np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1]))
    array([1.        , 0.66666667])
    """
    mine = group == np.unique(group)[:, None]
    found = z == np.unique(z)[:, None]
    both = (mine[:, None] & found).sum(axis=2)
    either = (mine[:, None] | found).sum(axis=2)
    return (both / either).max(axis=1)


def main(path: str | os.PathLike[str] = "demo.png", quick: bool = False) -> None:
    """Fit, compare, and draw a picture.

    Parameters
    ----------
    path : str or path-like, default="demo.png"
        Where the picture goes.
    quick : bool, default=False
        Fewer rows and draws.
    """
    console = Console()
    whole = make_subpopulations(300 if quick else 600, random_state=0)
    X, X_new, y, y_new, group, group_new = train_test_split(
        whole.data, whole.target, whole.groups, test_size=0.5, random_state=0
    )
    console.print(
        f"[bold]{len(X)} rows to train on, {len(X_new)} held out[/], two features, two classes; "
        f"{len(whole.group_names)} hidden sub-populations, each with a rule of its own.\n"
        "The first run compiles, once and for all.\n"
    )

    results, fitted = Table("held out", "accuracy", "seconds", box=None), {}
    penalties = {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}
    sweeps = 100 if quick else 200
    contestants: dict[str, tuple[Any, dict[str, Any]]] = {
        "mixture of max-margin classifiers": (
            GibbsInfiniteSVM(n_draws=30, burn_in=30, random_state=0),
            {"C": [0.1, 1.0], "nu": [1.0, 5.0]},
        ),
        "linear SVM": (LinearSVC(random_state=0), penalties),
        "RBF SVM": (SVC(), {**penalties, "gamma": ["scale", 0.03, 0.3]}),
    }
    for name, (model, grid) in contestants.items():
        start = time.perf_counter()
        model = choose(model, grid, X, y)
        if isinstance(model, GibbsInfiniteSVM):
            model.set_params(n_draws=sweeps, burn_in=sweeps, verbose=True).fit(X, y)
        accuracy = model.score(X_new, y_new)
        seconds = time.perf_counter() - start
        results.add_row(name, f"{accuracy:.3f}", f"{seconds:.1f}")
        fitted[name] = model

    mixture, linear, _ = fitted.values()
    report_components(console, mixture, X_new, group, group_new, whole.group_names)
    console.print(results)
    console.print(
        "Every row chose its parameters by cross-validation in the training part; seconds include "
        "that, and compilation.\n"
    )
    draw_picture(path, mixture, linear, X, y)
    console.print(f"Picture: {path}")


def report_components(
    console: Console,
    model: GibbsInfiniteSVM,
    X_new: NDArray,
    group: NDArray,
    group_new: NDArray,
    names: list[str],
) -> None:
    """What was found, against the truth."""
    numbers, times = np.unique(model.trace_["n_components"], return_counts=True)
    shares = ", ".join(f"{k}: {t / times.sum():.0%}" for k, t in zip(numbers, times))
    sizes = np.sort(model.best_draw_["counts"])[::-1]
    console.print(f"[bold]Components found[/]  {shares}")
    console.print(f"Sizes in the best draw: {', '.join(map(str, sizes))}\n")

    overlaps = np.array([recovery(draw["z"], group) for draw in model.trace_])
    table = Table("sub-population", "rows", "overlap", "recovered", box=None)
    for i, name in enumerate(names):
        often = np.mean(overlaps[:, i] > 0.9)
        table.add_row(name, str(np.sum(group == i)), f"{overlaps[:, i].mean():.2f}", f"{often:.0%}")
    console.print(table)
    together = np.mean([adjusted_rand_score(group, draw["z"]) for draw in model.trace_])
    held_out = adjusted_rand_score(group_new, model.predict_component(X_new))
    console.print(
        "Overlap: shared rows over all rows of a sub-population and its component, mean over "
        "draws. Recovered: draws with more than 0.9 of it.\n"
        f"Adjusted Rand index: {together:.2f} over draws, {held_out:.2f} on the held-out rows.\n"
    )


def draw_picture(
    path: str | os.PathLike[str],
    mixture: GibbsInfiniteSVM,
    linear: Any,
    X: NDArray,
    y: NDArray,
) -> None:
    """One line, three lines, and how many components the posterior believes in."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 0.7))
    plot_decision_regions(linear, X, y, left).set_title("linear SVM")
    plot_decision_regions(mixture, X, y, middle).set_title("mixture of max-margin classifiers")
    plot_component_counts(mixture.trace_, right).set_title("how many components?")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
