"""Table III: what the features of iMMH on 20 Newsgroups are about."""

from __future__ import annotations

import importlib

import numpy as np

from experiments import environment, markdown
from experiments.harmonium_rows import load_news
from experiments.harness import Options
from regbayes.datasets._remote import write_atomically

table2 = importlib.import_module("experiments.002_table2")


def words_of(feature: np.ndarray, X, words: np.ndarray) -> str:
    """Words whose documents have most of the feature, by correlation.

    Its strongest documents would not do: hundreds have all of it.
    """
    often = np.asarray(X.mean(axis=0)).ravel()
    together = X.T @ (feature - feature.mean()) / X.shape[0]
    spread = np.sqrt(often * (1.0 - often))
    return ", ".join(words[np.argsort(-together / np.where(spread > 0, spread, np.inf))[:8]])


def run(options: Options) -> None:
    news = load_news(300, per_class=10) if options.quick else load_news()
    X, y = news.X[news.train], news.y[news.train]
    model = table2.immh(0, options.quick).fit(X, y)
    features, by_class = model.transform(X), model.class_activations_
    # How much more active a feature is in a class than in the next: most speak for several.
    top = np.sort(by_class, axis=0)
    lead = by_class - np.where(by_class == top[-1], top[-2], top[-1])
    weights = model.top_inputs(8, news.words)
    lines = [
        [str(name), f"F{k}", words_of(features[:, k], X, news.words), ", ".join(weights[k])]
        for name, row in zip(model.classes_, lead)
        for k in np.argsort(-row)[:2]
    ]
    titles = ["group", "feature", "words it goes with", "words of largest weight"]
    page = [
        "# 002 Table III: features of iMMH and the groups they speak for",
        f"{model.n_features_} of {model.max_features} features are in use. For each group the two "
        "features whose mean is highest above that of the next group. Learning took the objective, "
        "contrastive divergence and margin of some of the documents, from "
        f"{model.objective_[0]:.4g} to {model.objective_[-1]:.4g}.",
        markdown.table(titles, lines),
        environment.as_markdown(environment.describe(options.command)),
    ]
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page))
    print(f"{options.page}.md written")
