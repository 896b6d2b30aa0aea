"""Sections about sequences: signals with their states, and which state follows which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regbayes.report import figures
from regbayes.report.section import (
    MOST,
    Section,
    column_deviations,
    part_shown,
    runs_of,
    widest_columns,
)
from regbayes.report.subject import Subject


def along_the_sequences(subject: Subject) -> Section | None:
    """Signals, with states, labels and answers under them."""
    batch = subject.sequences
    if batch is None:
        return None
    chosen = range(min(len(batch), MOST["sequences"]))
    strips = _strips(subject)
    values = subject.values
    kept = widest_columns(values, MOST["lines"]) if values is not None else np.arange(0)
    if not strips and not len(kept):
        return None
    parts, runs = [], []
    for i in chosen:
        start, end = int(batch.starts[i]), int(batch.starts[i + 1])
        here = slice(start, min(end, start + MOST["steps"]))
        name = subject.sequence_name(i)
        labels = _labels_of_sequence(subject, i)
        parts.append(
            {
                "name": ", ".join([name, *labels, *["its beginning"] * (here.stop < end)]),
                "n": here.stop - here.start,
                "lines": [] if values is None else values[here, kept].T,
                "strips": [strip["codes"][here] for strip in strips],
            }
        )
        if subject.parts is not None:
            runs += [[name, *run] for run in runs_of(subject.parts[here])]
        else:
            runs.append([name, end - start, ", ".join(labels) or "–"])
    data = {
        "sequences": parts,
        "lines": _line_scales(values, kept, subject.names),
        "strips": [{key: strip[key] for key in ("name", "names", "colors")} for strip in strips],
    }
    text = [part_shown(len(batch), len(chosen), "sequence")]
    if values is not None:
        text.append(part_shown(values.shape[1], len(kept), "input", ", those that vary most"))
    if any(line["unit"] != 1 for line in data["lines"]):
        text.append("Inputs have unlike units: each is drawn in its standard deviations.")
    text.append(
        "Zoom with the wheel or the buttons, drag to move, point to read off. With the keyboard: "
        "arrows read the steps, plus and minus zoom, Home shows all."
    )
    caption = "The signal, and under it what was found."
    columns = ["sequence", "steps", "label"]
    if subject.parts is not None:
        columns = ["sequence", subject.part, "first step", "last step"]
    figure = figures.signal(caption, data, figures.table(caption, columns, runs[:300]))
    return Section("signal", "Signal", "Along the sequences", [t for t in text if t], [figure])


def _labels_of_sequence(subject: Subject, i: int) -> list[str]:
    """Label and answer of a whole sequence, where it has them."""
    if subject.labels_are_of != "sequence":
        return []
    named = {"label": subject.truth, "answer": subject.answers}
    return [
        f"{name} {subject.classes[codes[i]]}"
        for name, codes in named.items()
        if codes is not None and codes[i] >= 0
    ]


def _strips(subject: Subject) -> list[dict]:
    assert subject.sequences is not None
    strips = []
    if subject.parts is not None:
        names = [str(k) for k in range(int(subject.parts.max()) + 1)]
        strips.append(_strip(subject.part, subject.parts, names, 0))
    if subject.symbols is not None:
        symbols = [str(symbol) for symbol in subject.symbols]
        strips.append(_strip("symbol", subject.sequences.values, symbols, 5))
    if subject.labels_are_of == "step":
        if subject.truth is not None:
            strips.append(_strip("label", subject.truth, subject.classes, 4))
        if subject.answers is not None:
            strips.append(_strip("answer", subject.answers, subject.classes, 4))
    return strips


def _strip(name: str, codes: NDArray, names: Sequence[str], first_color: int) -> dict:
    colors = [first_color + i for i in range(len(names))]
    return {"name": name, "codes": codes, "names": names, "colors": colors}


def _line_scales(values: NDArray | None, kept: NDArray, names: Sequence[str]) -> list[dict]:
    if values is None:
        return []
    deviations = column_deviations(values)[kept]
    alike = deviations.max() < 10 * deviations.min()
    centers = np.nanmean(values[:, kept], axis=0)
    far = np.ptp(centers) > 10 * deviations.max()
    if alike and not far:
        return [{"name": names[j], "center": 0.0, "unit": 1.0} for j in kept]
    return [
        {"name": names[j], "center": center, "unit": unit}
        for j, center, unit in zip(kept, centers, deviations)
    ]


def moves(subject: Subject) -> Section | None:
    """Which state follows which, and how long they last."""
    model, batch = subject.model, subject.sequences
    if batch is None or subject.parts is None or not hasattr(model, "transitions_"):
        return None
    matrix = np.asarray(model.transitions_)
    n_states = min(len(matrix), matrix.shape[1])
    steps = np.bincount(subject.parts[subject.parts >= 0], minlength=n_states)
    used = np.flatnonzero(steps[:n_states])
    used = np.sort(used[np.argsort(-steps[used], kind="stable")][: MOST["states"]])
    if not len(used):
        return None
    lengths: dict[int, list[int]] = {int(k): [] for k in used}
    for start, end in zip(batch.starts[:-1], batch.starts[1:]):
        for state, first, last in runs_of(subject.parts[start:end]):
            lengths.setdefault(state, []).append(last - first + 1)
    means = [float(np.mean(lengths[int(k)])) for k in used]
    nodes = [
        {
            "name": str(k),
            "share": steps[k] / steps.sum(),
            "stay": matrix[k, k],
            "color": k,
            "tip": f"state {k}\n{steps[k] / steps.sum():.0%} of the steps\n"
            f"stays with probability {matrix[k, k]:.3g}\nlasts {mean:.3g} steps on average",
        }
        for k, mean in zip(used, means)
    ]
    arrows = [
        (i, j, float(matrix[a, b]))
        for i, a in enumerate(used)
        for j, b in enumerate(used)
        if a != b and matrix[a, b] >= 0.02
    ]
    longest = int(np.argmax(means))
    text = [
        f"State {used[longest]} lasts longest, {means[longest]:.3g} steps on average. "
        + part_shown(int(np.sum(steps > 0)), len(used), "state", ", the most used"),
    ]
    drawn = [
        figures.graph(
            "Moves between states. A circle is as large as the state is common; beside it, the "
            "probability of staying. Arrows below 2 % are left out.",
            nodes,
            arrows,
        ),
        figures.bars(
            "How long states last in these sequences, from the most likely paths.",
            [str(k) for k in used],
            means,
            "state",
            "mean duration in steps",
            [int(k) for k in used],
        ),
    ]
    return Section("moves", "Moves", "Which state follows which", text, drawn)
