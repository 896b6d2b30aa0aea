"""Sections about topics, features and scores: what they are made of, and whom they speak for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.report import figures
from regbayes.report.figures import Figure
from regbayes.report.section import MOST, Section, counted, part_shown
from regbayes.report.subject import Subject


def features(subject: Subject) -> Section | None:
    """Words of topics, inputs of features, and what they say about the classes."""
    model = subject.model
    rows = _top_inputs(subject)
    drawn: list[Figure] = []
    if rows is not None:
        weights = _transformed(subject)
        part, columns = subject.part, [subject.part, "strongest first"]
        if weights is not None and weights.shape[1] == len(rows):
            columns += ["mean", "examples"]
            rows = [
                [*row, float(weights[:, k].mean()), _strongest_items(subject, weights[:, k])]
                for k, row in enumerate(rows)
            ]
        caption = f"Inputs of each {part}."
        if hasattr(model, "top_words"):
            caption = f"Words that set each {part} apart from the others."
        drawn.append(figures.table(caption, columns, rows))
    for attribute, caption, value in (
        ("topic_weights_", "What each topic adds to the score of a class.", "weight"),
        ("class_activations_", "Mean of each feature in each class.", "activation"),
    ):
        table = getattr(model, attribute, None)
        if table is not None and subject.classes:
            drawn.append(_by_class(subject, np.atleast_2d(table), caption, value))
    if not drawn:
        return None
    title = f"What each {subject.part} means"
    return Section("features", f"{subject.part}s".capitalize(), title, [], drawn)


def _top_inputs(subject: Subject) -> list[list[Any]] | None:
    names = subject.names or None
    if hasattr(subject.model, "top_words"):
        found = typical_words(subject.model, names)
    elif hasattr(subject.model, "top_inputs"):
        found = subject.model.top_inputs(10, names)
    else:
        return None
    views = found if isinstance(found, dict) else {"": found}
    n = min(len(view) for view in views.values())
    return [
        [
            f"{subject.part} {k}",
            "; ".join(
                (f"{view}: " if view else "") + ", ".join(map(str, words[k]))
                for view, words in views.items()
            ),
        ]
        for k in range(n)
    ]


def typical_words(model: Any, names: Any) -> NDArray:
    """Ten words of each topic, those that set it apart most from the mean of all topics.

    The commonest words of a topic are often those of every topic: “the”, “and”. A word counts by
    its share times the logarithm of how much larger that is than usual.
    """
    topics = getattr(model, "components_", None)
    if topics is None or len(topics) < 2:
        return model.top_words(10, names)
    shares = np.maximum(topics, 1e-300)
    apart = shares * np.log(shares / shares.mean(axis=0))
    known = getattr(model, "feature_names_in_", np.arange(shares.shape[1]))
    words = np.asarray(known if names is None else names)
    return words[np.argsort(-apart, axis=1, kind="stable")[:, :10]]


def _transformed(subject: Subject) -> NDArray | None:
    if not hasattr(subject.model, "transform"):
        return None
    return np.asarray(subject.model.transform(subject.inputs))


def _strongest_items(subject: Subject, weights: NDArray) -> str:
    return ", ".join(subject.item_name(int(i)) for i in np.argsort(-weights, kind="stable")[:3])


def _by_class(subject: Subject, table: NDArray, caption: str, value: str) -> Figure:
    if len(table) == 1 and len(subject.classes) == 2:  # one score: the second class's
        table = np.concatenate([-table, table])
    kept = np.sort(np.argsort(-np.ptp(table, axis=0), kind="stable")[: 2 * MOST["columns"]])
    caption = " ".join([caption, part_shown(table.shape[1], len(kept), subject.part)]).strip()
    of = ("class", subject.part, value)
    columns = [str(k) for k in kept]
    return figures.matrix(caption, subject.classes, columns, table[:, kept], of)


def strongest_scores(subject: Subject) -> Section | None:
    """The statistics of sequences that decide."""
    head = getattr(subject.model, "classifier_", None)
    if not hasattr(head, "coef_") or not hasattr(subject.model, "get_feature_names_out"):
        return None
    assert head is not None
    weights = np.asarray(head.coef_)
    if len(weights) == 1:
        weights = np.concatenate([-weights, weights])
    names = [str(name) for name in subject.model.get_feature_names_out()]
    # A weight counts by how much its score varies.
    effects = weights * subject._ask("transform").std(axis=0)
    tops = [np.argsort(-np.abs(row), kind="stable")[:5] for row in effects]
    rows = [
        [name, names[j], "for" if row[j] > 0 else "against", float(row[j])]
        for name, row, top in zip(subject.classes, effects, tops)
        for j in top
    ]
    kept = np.unique(np.concatenate(tops))
    kept = kept[np.argsort(-np.abs(effects[:, kept]).max(axis=0), kind="stable")][
        : 2 * MOST["columns"]
    ]
    drawn = [
        figures.matrix(
            "The scores that decide most, and the class that they speak for (blue) or against "
            "(orange). A name tells whose model counts, and what.",
            [names[j] for j in kept],
            subject.classes,
            effects[:, kept].T,
            ("score", "class", "effect of one standard deviation"),
        ),
        figures.table(
            "Strongest scores of each class.", ["class", "score", "speaks", "effect"], rows
        ),
    ]
    text = [
        f"Each sequence is described by {counted(len(names), 'number')}, counted by a model of its "
        "steps; a linear classifier reads them."
    ]
    return Section("scores", "Scores", "What tells the classes apart", text, drawn)
