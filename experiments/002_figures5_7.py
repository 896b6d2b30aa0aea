"""Figures 5-7: how active the features are, and which classes they speak for."""

from __future__ import annotations

import numpy as np

from experiments import environment
from experiments.harmonium_rows import TASKS, load_task
from experiments.harness import Options
from regbayes import datasets
from regbayes.datasets._remote import write_atomically
from regbayes.harmonium import InfiniteHarmonium, InfiniteMaxMarginHarmonium


def fit(name: str, options: Options):
    X, y, splits = load_task(TASKS[name], options.quick, 1)
    train, _ = splits[0]
    width, rounds = (20, 10) if options.quick else (200, None)
    model = InfiniteMaxMarginHarmonium(width, 1.0, max_iter=rounds, random_state=0)
    return model.fit(X[train], y[train]), X, y, train


def fall(model) -> str:
    """What learning did to the objective of some of the training items."""
    return f"from {model.objective_[0]:.4g} to {model.objective_[-1]:.4g}"


def draw_activations(ax, model, title: str) -> None:
    """Mean of every feature, its bar as long as the classes' means spread."""
    order = np.argsort(-model.activations_)[:65]
    spread = model.class_activations_.std(axis=0)[order]
    ax.bar(np.arange(len(order)), model.activations_[order], yerr=spread, ecolor="C1")
    ax.set(title=f"{title}: {model.n_features_} of {model.max_features} in use")
    ax.set(xlabel="feature", ylabel="mean, and its spread over classes")


def run(options: Options) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    options.results.mkdir(exist_ok=True, parents=True)
    lines = []
    figure, axes = plt.subplots(len(TASKS), 1, figsize=(9, 9), layout="constrained")
    fitted = {}
    for ax, (name, task) in zip(axes, TASKS.items()):
        fitted[name] = fit(name, options)
        draw_activations(ax, fitted[name][0], task.title)
        model, X, _, train = fitted[name]
        plain = InfiniteHarmonium(model.max_features, 1.0, max_iter=model.max_iter, random_state=0)
        lines.append(
            f"- {task.title}: {model.n_features_} features in use; the objective of iMMH, "
            f"contrastive divergence and margin, {fall(model)}; that of iEFH, contrastive "
            f"divergence alone, {fall(plain.fit(X[train]))}"
        )
    figure.savefig(options.results / f"{options.page}.png", dpi=120)

    model, X, _, train = fitted["scenes"]
    images = datasets.fetch_scene15("images", scenes="ot8").data
    if options.quick:
        kept = datasets.fetch_scene15("real", scenes="ot8").target
        images = images[np.concatenate([np.flatnonzero(kept == c)[:30] for c in np.unique(kept)])]
    features = model.transform(X[train])
    best = np.argsort(-model.class_activations_.std(axis=0))[:5]
    figure, axes = plt.subplots(
        5, 9, figsize=(13, 8), layout="constrained", width_ratios=[1] * 8 + [3]
    )
    for line, k in zip(axes, best):
        for ax, i in zip(line, np.argsort(-features[:, k])[:8]):
            ax.imshow(images[train[i]], cmap="gray")
            ax.set_axis_off()
        line[-1].barh([str(c) for c in model.classes_], model.class_activations_[:, k])
        line[-1].tick_params(labelsize=6)
        line[0].set_title(f"F{k}")
    figure.savefig(options.results / f"{options.page}_features.png", dpi=120)
    page = [
        "# 002 Figures 5-7: features of iMMH, their activations and their classes",
        "\n".join(lines),
        f"![activations]({options.page}.png)",
        "The five features whose means differ most between the scenes: the eight training images "
        "in which each is strongest, and its mean in every class.",
        f"![features]({options.page}_features.png)",
        environment.as_markdown(environment.describe(options.command)),
    ]
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page))
    print(f"{options.page}.md written")
