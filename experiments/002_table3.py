"""Table III: what the features of iMMH on 20 Newsgroups are about."""

from __future__ import annotations

import importlib

import numpy as np

from experiments import environment, markdown
from experiments.harmonium_rows import load_news
from experiments.harness import Options
from regbayes.datasets._remote import write_atomically

table2 = importlib.import_module("experiments.002_table2")


def words_of(features: np.ndarray, X, words: np.ndarray, k: int, n_documents: int = 15) -> str:
    """Words of the documents in which feature `k` is strongest, against their usual rate."""
    top = np.argsort(-features[:, k])[:n_documents]
    usual = np.asarray(X.mean(axis=0)).ravel()
    often = np.asarray(X[top].mean(axis=0)).ravel()
    return ", ".join(words[np.argsort(-(often - usual))[:8]])


def run(options: Options) -> None:
    news = load_news(300, per_class=10) if options.quick else load_news()
    X, y = news.X[news.train], news.y[news.train]
    model = table2.immh(0, options.quick).fit(X, y)
    features, by_class = model.transform(X), model.class_activations_
    # How much more active a feature is in a class than in the others.
    lead = by_class - (by_class.sum(axis=0) - by_class) / (len(by_class) - 1)
    weights = model.top_inputs(8, news.words)
    lines = [
        [str(name), f"F{k}", words_of(features, X, news.words, k), ", ".join(weights[k])]
        for name, row in zip(model.classes_, lead)
        for k in np.argsort(-row)[:2]
    ]
    titles = ["group", "feature", "words of its 15 strongest documents", "words of largest weight"]
    page = [
        "# 002 Table III: features of iMMH and the groups they speak for",
        f"{model.n_features_} of {model.max_features} features are in use. For each group the two "
        "features whose mean is highest above that of the other groups.",
        markdown.table(titles, lines),
        environment.as_markdown(environment.describe(options.command)),
    ]
    write_atomically(options.results / f"{options.page}.md", "\n\n".join(page))
    print(f"{options.page}.md written")
