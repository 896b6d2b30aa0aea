"""The section about components and states: what sets them apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regbayes.report import figures
from regbayes.report.figures import Figure
from regbayes.report.section import (
    MOST,
    Section,
    column_deviations,
    column_means,
    runs_of,
    shares_in_parts,
)
from regbayes.report.subject import Subject


def meaning(subject: Subject) -> Section | None:
    """What sets components or states apart: inputs, labels, rules, examples."""
    parts = subject.parts
    if parts is None or not (parts >= 0).any():
        return None
    used, counts = np.unique(parts[parts >= 0], return_counts=True)
    names = [f"{subject.part} {k}" for k in used]
    drawn = [_inputs_of_parts(subject, used, names), _labels_of_parts(subject, used, names)]
    rows = [
        [name, int(n), f"{n / counts.sum():.1%}", _in_words(subject, k), _examples(subject, k)]
        for name, k, n in zip(names, used, counts)
    ]
    one = "step" if subject.sequences is not None else "row"
    drawn.append(
        figures.table(
            f"Each {subject.part} in short.",
            [subject.part, f"{one}s", "share", "unusual", "examples"],
            rows,
        )
    )
    drawn.append(_rules(subject, used))
    text = [
        f"Every {one} is counted in the {subject.part} that it most likely belongs to, whatever "
        f"its label. Numbers of {subject.part}s are names, nothing more."
    ]
    title = f"What each {subject.part} means"
    return Section("parts", f"{subject.part}s".capitalize(), title, text, [f for f in drawn if f])


def _inputs_of_parts(subject: Subject, used: NDArray, names: list[str]) -> Figure | None:
    parts = subject.parts
    if subject.symbols is not None and subject.sequences is not None:
        table = shares_in_parts(parts, subject.sequences.values, used, len(subject.symbols))
        kept = np.sort(np.argsort(-np.ptp(table, axis=0), kind="stable")[: MOST["columns"]])
        symbols = [str(subject.symbols[j]) for j in kept]
        caption = f"How often symbols occur in each {subject.part}."
        of = (subject.part, "symbol", "share")
        return figures.matrix(caption, names, symbols, table[:, kept], of, None, 1.0)
    far = _distances(subject, used)
    if far is None:
        return None
    kept = np.sort(np.argsort(-np.abs(far).max(axis=0), kind="stable")[: MOST["columns"]])
    caption = (
        f"Mean inputs of each {subject.part}, in standard deviations above (blue) or below (orange)"
        " the mean of all."
    )
    if len(kept) < far.shape[1]:
        caption += f" The {len(kept)} of {far.shape[1]} inputs that differ most."
    texts = [[f"{v:+.1f}" for v in row] for row in far[:, kept]]
    of = (subject.part, "input", "standard deviations")
    return figures.matrix(caption, names, [subject.names[j] for j in kept], far[:, kept], of, texts)


def _distances(subject: Subject, used: NDArray) -> NDArray | None:
    """Means of parts, in standard deviations of all from the mean of all."""
    values, parts = subject.values, subject.parts
    if values is None or parts is None or len(values) != len(parts):
        return None
    means = np.array([column_means(values[parts == k]) for k in used])
    return np.nan_to_num((means - column_means(values)) / column_deviations(values))


def _labels_of_parts(subject: Subject, used: NDArray, names: list[str]) -> Figure | None:
    parts, codes = subject.parts, subject.truth
    whose = "labels"
    if codes is None or parts is None or len(codes) != len(parts):
        codes, whose = subject.answers, "answers"
    if codes is None or parts is None or len(codes) != len(parts):
        return None
    table = shares_in_parts(parts, codes, used, len(subject.classes))
    common = np.bincount(codes[codes >= 0], minlength=len(subject.classes))
    kept = np.sort(np.argsort(-common, kind="stable")[: MOST["columns"]])
    classes = [subject.classes[j] for j in kept]
    caption = f"Shares of the {whose} in each {subject.part}."
    texts = [[f"{v:.0%}" for v in row] for row in table[:, kept]]
    of = (subject.part, whose.removesuffix("s"), "share")
    return figures.matrix(caption, names, classes, table[:, kept], of, texts, 1.0)


def _in_words(subject: Subject, part: int) -> str:
    far = _distances(subject, np.array([part]))
    if far is None:
        return "–"
    order = np.argsort(-np.abs(far[0]), kind="stable")[:3]
    words = [
        f"{'high' if far[0, j] > 0 else 'low'} {subject.names[j]}"
        for j in order
        if abs(far[0, j]) >= 0.3
    ]
    return ", ".join(words) or "close to the mean"


def _examples(subject: Subject, part: int) -> str:
    """The longest runs of a state, or the rows in the middle of a component."""
    parts, batch = subject.parts, subject.sequences
    assert parts is not None
    if batch is not None:
        found = [
            (last - first, f"{subject.sequence_name(i)}, steps {first}–{last}")
            for i, (start, end) in enumerate(zip(batch.starts[:-1], batch.starts[1:]))
            for state, first, last in runs_of(parts[start:end])
            if state == part
        ]
        return "; ".join(name for _, name in sorted(found, key=lambda run: -run[0])[:2])
    members = np.flatnonzero(parts == part)
    if subject.values is not None:
        own = subject.values[members]
        far = np.square((own - column_means(own)) / column_deviations(subject.values)).sum(axis=1)
        members = members[np.argsort(far, kind="stable")]
    return ", ".join(subject.item_name(int(i)) for i in members[:3])


def _rules(subject: Subject, used: NDArray) -> Figure | None:
    """Which inputs speak for and against the classes in each part."""
    weights = getattr(subject.model, "weights_", None)
    if weights is None:
        weights = getattr(subject.model, "best_draw_", {}).get("weights")
    seen = subject.seen
    if weights is None or seen is None or not subject.is_classifier:
        return None
    n_inputs = seen.shape[1]
    if weights.ndim != 3 or weights.shape[2] not in (n_inputs, n_inputs + 1):
        return None
    names = subject.names
    if len(names) != n_inputs:
        names = [f"input {i}" for i in range(n_inputs)]
    # A weight counts by how much its input varies; classes compete, so only differences count.
    effects = weights[:, :, :n_inputs] * column_deviations(seen)
    effects = effects - effects.mean(axis=1, keepdims=True)
    rows = []
    labels = list(enumerate(subject.classes))[: MOST["columns"]]
    for k in used:
        for label, name in labels[-1:] if len(labels) == 2 else labels:  # two mirror each other
            effect = effects[k, label]
            order = np.argsort(-effect, kind="stable")
            favour = [names[j] for j in order[:3] if effect[j] > 0]
            against = [names[j] for j in order[::-1][:3] if effect[j] < 0]
            rows.append(
                [f"{subject.part} {k}", name, ", ".join(favour) or "–", ", ".join(against) or "–"]
            )
    return figures.table(
        f"The rule of each {subject.part}: inputs whose high values speak for or against a label, "
        "the strongest first.",
        [subject.part, "label", "for", "against"],
        rows,
    )
