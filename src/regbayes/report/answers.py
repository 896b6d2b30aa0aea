"""Sections about labels: right and wrong, probabilities, doubts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.plot.prepare import confusion
from regbayes.report import figures
from regbayes.report.section import MOST, Section, counted, known_pairs, part_shown
from regbayes.report.subject import Subject


def right_and_wrong(subject: Subject) -> Section | None:
    """Confusion, and each class by itself."""
    pairs = known_pairs(subject)
    if pairs is None:
        return None
    truth, answers = pairs
    n_classes = len(subject.classes)
    counts, shares = confusion(truth, answers, n_classes)
    asked, answered, right = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    kept = np.sort(np.argsort(-(asked + answered), kind="stable")[: MOST["classes"]])
    shown = counts[np.ix_(kept, kept)]
    names = [subject.classes[k] for k in kept]
    caption = "Confusion: the rows are labels, the columns answers; shares are of the row."
    figure = figures.matrix(
        caption,
        names,
        names,
        shares[np.ix_(kept, kept)],
        ("label", "answer", "items"),
        [[str(n) for n in row] for row in shown],
        1.0,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = right / asked, right / answered
    rows = [
        [subject.classes[k], int(asked[k]), int(answered[k]), float(recall[k]), float(precision[k])]
        for k in kept
    ]
    columns = ["class", "labels", "answers", "found (recall)", "right if answered (precision)"]
    text = [
        accuracy_in_words(subject),
        part_shown(n_classes, len(kept), "class", ", the commonest"),
    ]
    unknown = 0 if subject.truth is None else int(np.sum(subject.truth < 0))
    if unknown:
        text.append(f"{counted(unknown, 'item')} without a known label are left out.")
    drawn = [figure, figures.table("Each class by itself.", columns, rows)]
    return Section("answers", "Answers", "Right and wrong", [t for t in text if t], drawn)


def calibration(subject: Subject) -> Section | None:
    """Whether probabilities can be taken at their word."""
    if subject.shares is None or subject.truth is None:
        return None
    known = subject.truth >= 0
    if not known.any():
        return None
    shares, truth = subject.shares[known], subject.truth[known]
    sure, right = shares.max(axis=1), shares.argmax(axis=1) == truth
    bins = np.clip((sure * 10).astype(int), 0, 9)
    filled = np.unique(bins)
    said = np.array([sure[bins == b].mean() for b in filled])
    was = np.array([right[bins == b].mean() for b in filled])
    many = np.array([np.sum(bins == b) for b in filled])
    gap = float(np.sum(many * np.abs(said - was)) / many.sum())
    figure = figures.lines(
        "How sure the model said it was, and how often it was right. On the dashed line the two "
        "agree; below it the model is too sure.",
        {"answers": (said, was)},
        "probability of the answer",
        "share right",
        xrange=[0, 1],
        yrange=[0, 1],
        diagonal=True,
        dots=True,
        square=True,
    )
    figure["data"]["series"][0]["tips"] = [
        f"{counted(int(n), 'answer')}\nsaid {s:.0%}, right {w:.0%}"
        for n, s, w in zip(many, said, was)
    ]
    figure["table"] = figures.table(
        figure["caption"],
        ["probability of the answer", "share right", "answers"],
        [[float(s), float(w), int(n)] for s, w, n in zip(said, was, many)],
    )
    lean = "too sure" if np.sum(many * (said - was)) > 0 else "too careful"
    text = [f"On average probability and share of right answers differ by {gap:.1%}"]
    text[0] += "." if gap < 0.02 else f"; the model is mostly {lean}."
    return Section("calibration", "Calibration", "Can probabilities be trusted?", text, [figure])


def least_sure(subject: Subject) -> Section | None:
    """Items on the fence, and mistakes that the model was sure of."""
    scores = subject.scores
    if scores is None or scores.shape[1] < 2:
        return None
    first_two = np.sort(scores, axis=1)[:, -2:]
    sure = first_two[:, 1] if subject.shares is not None else first_two[:, 1] - first_two[:, 0]
    what = "probability" if subject.shares is not None else "lead over the next"
    order = np.argsort(-scores, axis=1, kind="stable")
    columns = ["item", "answer", what, "next best", "label"]

    def row(i: int) -> list[Any]:
        label = -1 if subject.truth is None else int(subject.truth[i])
        name = subject.classes[label] if label >= 0 else "–"
        first, second = (subject.classes[k] for k in order[i, :2])
        return [subject.item_name(i), first, float(sure[i]), second, name]

    doubtful = np.argsort(sure, kind="stable")[: MOST["items"]]
    drawn = [figures.table("Least sure first.", columns, [row(int(i)) for i in doubtful])]
    if subject.truth is not None:
        wrong = np.flatnonzero((order[:, 0] != subject.truth) & (subject.truth >= 0))
        wrong = wrong[np.argsort(-sure[wrong], kind="stable")][: MOST["items"]]
        if len(wrong):
            drawn.append(
                figures.table(
                    "Sure and wrong, the surest first.", columns, [row(int(i)) for i in wrong]
                )
            )
    text = [
        "Labels here are worth a second look: these items are on the fence between two classes, "
        "or their label contradicts all that the model knows."
    ]
    return Section("unsure", "Least sure", "What the model is least sure of", text, drawn)


def accuracy_in_words(subject: Subject) -> str:
    pairs = known_pairs(subject)
    if pairs is None:
        return ""
    truth, answers = pairs
    commonest = np.bincount(truth).max() / len(truth)
    text = (
        f"{np.mean(truth == answers):.1%} of {counted(len(truth), 'label')} are predicted right; "
        f"always answering the commonest label would get {commonest:.1%}."
    )
    wrong = truth != answers
    if wrong.any():
        both = np.stack([truth[wrong], answers[wrong]])
        (label, answer), n = _commonest_column(both)
        text += (
            f" The commonest mistake is “{subject.classes[answer]}” for “{subject.classes[label]}”"
            f", {counted(n, 'time')}."
        )
    return text


def _commonest_column(table: NDArray) -> tuple[NDArray, int]:
    columns, times = np.unique(table, axis=1, return_counts=True)
    return columns[:, times.argmax()], int(times.max())
