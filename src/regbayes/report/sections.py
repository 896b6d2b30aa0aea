"""The sections of a report: functions of the subject, None where there is nothing to say.

They ask what a model has (`trace_`, `decode`, `top_words`, ...), not what it is: a new family has
its report by naming things as the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.chains import Trace, diagnose, r_hat
from regbayes.report import figures
from regbayes.report.figures import Figure
from regbayes.report.subject import Subject

_MOST = {
    "sequences": 6,  # in the signal
    "steps": 4000,  # of each
    "lines": 6,
    "states": 12,  # in the graph
    "columns": 12,  # of a matrix of inputs
    "classes": 30,  # of a confusion matrix
    "items": 10,  # in a list of items
    "points": 400,  # of a trace
}


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    id : str
        Its place in the page's address.
    short, title : str
        In the menu, and above it.
    text : sequence of str
        Paragraphs.
    figures : sequence of Figure
    """

    id: str
    short: str
    title: str
    text: Sequence[str]
    figures: Sequence[Figure] = field(default=())


def make_sections(subject: Subject) -> list[Section]:
    """All sections that have something to say about the subject."""
    makers: list[Callable[[Subject], Section | None]] = [
        overview,
        along_the_sequences,
        moves,
        meaning,
        features,
        strongest_scores,
        how_many,
        convergence,
        right_and_wrong,
        calibration,
        least_sure,
        settings,
    ]
    return [section for make in makers if (section := make(subject)) is not None]


# In words.


def overview(subject: Subject) -> Section:
    """What was learned, in plain words."""
    text = [
        " ".join(filter(None, [_data_in_words(subject), _size_in_words(subject)])),
        _accuracy_in_words(subject),
        _chains_in_words(subject),
    ]
    if subject.truth is not None and subject.is_classifier:
        text.append(
            "Figures about right and wrong are of the data given to this report. If the model was "
            "trained on them, expect less on new data."
        )
    return Section("overview", "Overview", "What was learned", [t for t in text if t])


def _data_in_words(subject: Subject) -> str:
    name = type(subject.model).__name__
    if subject.sequences is not None:
        batch = subject.sequences
        what = f"{_count(len(batch), 'sequence')} with {_count(batch.n_steps, 'step')} in all"
        if subject.symbols is not None:
            what += f", of {_count(len(subject.symbols), 'symbol')}"
    else:
        what = _count(subject.n_items, "row")
    if subject.values is not None:
        what += f" and {_count(subject.values.shape[1], 'input')}"
    return f"{name} looked at {what}."


def _size_in_words(subject: Subject) -> str:
    n = subject.n_parts
    if n is None:
        return ""
    text = f"It describes them by {_count(n, subject.part)}"
    sizes = _sizes(subject)
    if sizes is None:
        return text + "."
    share = float(np.mean(sizes == n))
    low, high = (int(q) for q in np.quantile(sizes, (0.025, 0.975), method="inverted_cdf"))
    spread = f"always {low}" if low == high else f"between {low} and {high}"
    return (
        f"{text}, a number that it found by itself: {share:.0%} of the draws have as many, and "
        f"95% of them {spread}."
    )


def _accuracy_in_words(subject: Subject) -> str:
    pairs = _known_pairs(subject)
    if pairs is None:
        return ""
    truth, answers = pairs
    commonest = np.bincount(truth).max() / len(truth)
    text = (
        f"{np.mean(truth == answers):.1%} of {_count(len(truth), 'label')} are predicted right; "
        f"always answering the commonest label would get {commonest:.1%}."
    )
    wrong = truth != answers
    if wrong.any():
        both = np.stack([truth[wrong], answers[wrong]])
        (label, answer), n = _commonest_column(both)
        text += (
            f" The commonest mistake is “{subject.classes[answer]}” for “{subject.classes[label]}”"
            f", {_count(n, 'time')}."
        )
    return text


def _chains_in_words(subject: Subject) -> str:
    diagnosis = _diagnosis(subject)
    if diagnosis is not None:
        return diagnosis[1]
    if hasattr(subject.model, "converged_"):
        done = "settled" if subject.model.converged_ else "stopped before it settled"
        return f"The optimisation {done} after {_count(int(subject.model.n_iter_), 'round')}."
    return ""


# Sequences.


def along_the_sequences(subject: Subject) -> Section | None:
    """Signals, with states, labels and answers under them."""
    batch = subject.sequences
    if batch is None:
        return None
    chosen = range(min(len(batch), _MOST["sequences"]))
    strips = _strips(subject)
    values = subject.values
    kept = _widest(values, _MOST["lines"]) if values is not None else np.arange(0)
    if not strips and not len(kept):
        return None
    parts, runs = [], []
    for i in chosen:
        start, end = int(batch.starts[i]), int(batch.starts[i + 1])
        here = slice(start, min(end, start + _MOST["steps"]))
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
            runs += [[name, *run] for run in _runs(subject.parts[here])]
        else:
            runs.append([name, end - start, ", ".join(labels) or "–"])
    data = {
        "sequences": parts,
        "lines": _line_scales(values, kept, subject.names),
        "strips": [{key: strip[key] for key in ("name", "names", "colors")} for strip in strips],
    }
    text = [_shown(len(batch), len(chosen), "sequence")]
    if values is not None:
        text.append(_shown(values.shape[1], len(kept), "input", ", those that vary most"))
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
    deviations = _deviations(values)[kept]
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
    used = np.sort(used[np.argsort(-steps[used], kind="stable")][: _MOST["states"]])
    if not len(used):
        return None
    lengths: dict[int, list[int]] = {int(k): [] for k in used}
    for start, end in zip(batch.starts[:-1], batch.starts[1:]):
        for state, first, last in _runs(subject.parts[start:end]):
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
        + _shown(int(np.sum(steps > 0)), len(used), "state", ", the most used"),
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


# What the parts mean.


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
        table = _crossed(parts, subject.sequences.values, used, len(subject.symbols))
        kept = np.sort(np.argsort(-np.ptp(table, axis=0), kind="stable")[: _MOST["columns"]])
        symbols = [str(subject.symbols[j]) for j in kept]
        caption = f"How often symbols occur in each {subject.part}."
        of = (subject.part, "symbol", "share")
        return figures.matrix(caption, names, symbols, table[:, kept], of, None, 1.0)
    far = _distances(subject, used)
    if far is None:
        return None
    kept = np.sort(np.argsort(-np.abs(far).max(axis=0), kind="stable")[: _MOST["columns"]])
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
    means = np.array([_means(values[parts == k]) for k in used])
    return np.nan_to_num((means - _means(values)) / _deviations(values))


def _labels_of_parts(subject: Subject, used: NDArray, names: list[str]) -> Figure | None:
    parts, codes = subject.parts, subject.truth
    whose = "labels"
    if codes is None or parts is None or len(codes) != len(parts):
        codes, whose = subject.answers, "answers"
    if codes is None or parts is None or len(codes) != len(parts):
        return None
    table = _crossed(parts, codes, used, len(subject.classes))
    common = np.bincount(codes[codes >= 0], minlength=len(subject.classes))
    kept = np.sort(np.argsort(-common, kind="stable")[: _MOST["columns"]])
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
            for state, first, last in _runs(parts[start:end])
            if state == part
        ]
        return "; ".join(name for _, name in sorted(found, key=lambda run: -run[0])[:2])
    members = np.flatnonzero(parts == part)
    if subject.values is not None:
        own = subject.values[members]
        far = np.square((own - _means(own)) / _deviations(subject.values)).sum(axis=1)
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
    effects = weights[:, :, :n_inputs] * _deviations(seen)
    effects = effects - effects.mean(axis=1, keepdims=True)
    rows = []
    labels = list(enumerate(subject.classes))[: _MOST["columns"]]
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
        words = "Words" if hasattr(model, "top_words") else "Inputs"
        drawn.append(figures.table(f"{words} of each {part}.", columns, rows))
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
        found = subject.model.top_words(10, names)
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


def _transformed(subject: Subject) -> NDArray | None:
    if not hasattr(subject.model, "transform"):
        return None
    return np.asarray(subject.model.transform(subject.inputs))


def _strongest_items(subject: Subject, weights: NDArray) -> str:
    return ", ".join(subject.item_name(int(i)) for i in np.argsort(-weights, kind="stable")[:3])


def _by_class(subject: Subject, table: NDArray, caption: str, value: str) -> Figure:
    if len(table) == 1 and len(subject.classes) == 2:  # one score: the second class's
        table = np.concatenate([-table, table])
    kept = np.sort(np.argsort(-np.ptp(table, axis=0), kind="stable")[: 2 * _MOST["columns"]])
    caption = " ".join([caption, _shown(table.shape[1], len(kept), subject.part)]).strip()
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
        : 2 * _MOST["columns"]
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
        f"Each sequence is described by {_count(len(names), 'number')}, counted by a model of its "
        "steps; a linear classifier reads them."
    ]
    return Section("scores", "Scores", "What tells the classes apart", text, drawn)


# The posterior.


def how_many(subject: Subject) -> Section | None:
    """Posterior of the number of parts."""
    sizes = _sizes(subject)
    if sizes is None:
        return None
    numbers, times = np.unique(sizes, return_counts=True)
    every = np.arange(numbers[0], numbers[-1] + 1)
    shares = np.zeros(len(every))
    shares[numbers - numbers[0]] = times / len(sizes)
    figure = figures.bars(
        f"Posterior of the number of {subject.part}s.",
        [str(n) for n in every],
        shares.tolist(),
        f"{subject.part}s",
        "posterior probability",
    )
    text = [
        "Nobody told the model this number. Bars close to each other mean that the data leave it "
        "open; the page describes a typical draw."
    ]
    title = f"How many {subject.part}s there are"
    return Section("sizes", "How many", title, text, [figure])


def convergence(subject: Subject) -> Section | None:
    """Traces and R-hat of chains, or the objective of an optimisation."""
    diagnosis = _diagnosis(subject)
    if diagnosis is not None:
        quantities, verdict = diagnosis
        trace = subject.model.trace_
        main = [q for q in quantities if q.startswith("n_") or q == "log_joint"]
        drawn = [_trace_lines(trace, name) for name in main or list(quantities)[:2]]
        columns = ["quantity", "R-hat", "effective draws, middle", "effective draws, tails"]
        rows = [[name, *values] for name, values in quantities.items()]
        if rows:
            drawn.append(figures.table("R-hat is 1 when the chains agree.", columns, rows))
        what = "Chains that have settled overlap and do not drift."
        if trace.n_chains == 1:
            what = "One chain by itself cannot show that it has settled; several can."
        of = f"{_count(trace.n_chains, 'chain')} of {_count(trace.n_draws, 'draw')}"
        text = [f"{of}. {what}", verdict]
        return Section("chains", "Chains", "Whether the chains agree", text, drawn)
    objective = np.atleast_1d(getattr(subject.model, "objective_", []))
    if len(objective) < 2:
        return None
    series = {"objective": (np.arange(len(objective)), objective.astype(float))}
    figure = figures.lines("The objective, round by round.", series, "round", "objective")
    text = [_chains_in_words(subject)]
    return Section("chains", "Rounds", "How the fit went", [t for t in text if t], [figure])


def _trace_lines(trace: Trace, name: str) -> Figure:
    values = trace[name].astype(float)
    some = np.unique(np.linspace(0, values.shape[1] - 1, _MOST["points"]).astype(int))
    series = {f"chain {i}": (some, chain[some]) for i, chain in enumerate(values)}
    return figures.lines(f"{name}, draw by draw.", series, "draw", name)


def _diagnosis(subject: Subject) -> tuple[dict[str, tuple], str] | None:
    """R-hat and effective draws by quantity, and a verdict; without ArviZ only R-hat."""
    trace = getattr(subject.model, "trace_", None)
    if not isinstance(trace, Trace):
        return None
    try:
        found = diagnose(trace)
    except ImportError:
        numbers = {
            name: trace[name].astype(float)
            for name, value in trace.chains[0][0].items()
            if np.ndim(value) == 0
        }
        known = {n: (r_hat(v), None, None) for n, v in numbers.items() if np.ptp(v) > 0}
        return known, 'Effective draws need ArviZ: pip install "regbayes[arviz]".'
    quantities = {n: (q.r_hat, q.ess_bulk, q.ess_tail) for n, q in found.quantities.items()}
    return quantities, found.verdict


# Labels.


def right_and_wrong(subject: Subject) -> Section | None:
    """Confusion, and each class by itself."""
    pairs = _known_pairs(subject)
    if pairs is None:
        return None
    truth, answers = pairs
    n_classes = len(subject.classes)
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (truth, answers), 1)
    asked, answered, right = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    kept = np.sort(np.argsort(-(asked + answered), kind="stable")[: _MOST["classes"]])
    shown = counts[np.ix_(kept, kept)]
    names = [subject.classes[k] for k in kept]
    caption = "Confusion: the rows are labels, the columns answers; shares are of the row."
    figure = figures.matrix(
        caption,
        names,
        names,
        shown / np.maximum(asked[kept], 1)[:, None],
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
    text = [_accuracy_in_words(subject), _shown(n_classes, len(kept), "class", ", the commonest")]
    unknown = 0 if subject.truth is None else int(np.sum(subject.truth < 0))
    if unknown:
        text.append(f"{_count(unknown, 'item')} without a known label are left out.")
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
        f"{_count(int(n), 'answer')}\nsaid {s:.0%}, right {w:.0%}"
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

    doubtful = np.argsort(sure, kind="stable")[: _MOST["items"]]
    drawn = [figures.table("Least sure first.", columns, [row(int(i)) for i in doubtful])]
    if subject.truth is not None:
        wrong = np.flatnonzero((order[:, 0] != subject.truth) & (subject.truth >= 0))
        wrong = wrong[np.argsort(-sure[wrong], kind="stable")][: _MOST["items"]]
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


def settings(subject: Subject) -> Section:
    """Parameters of the model."""
    rows = [
        [name, repr(value)]
        for name, value in subject.model.get_params(deep=False).items()
        if name not in ("callbacks", "checkpoint", "verbose")
    ]
    rows += [[name, repr(value)] for name, value in getattr(subject.model, "chosen_", {}).items()]
    drawn = [figures.table("Parameters.", ["name", "value"], rows)]
    return Section("settings", "Settings", "How the model was set", [], drawn)


# Numbers.


def _count(n: int, thing: str) -> str:
    """As in “1 row”, “2,000 rows”, “3 classes”."""
    return f"{n:,} {thing}{'' if n == 1 else 'es' if thing.endswith('s') else 's'}"


def _shown(n: int, shown: int, thing: str, which: str = "") -> str:
    return "" if shown == n else f"Shown are {shown} of {_count(n, thing)}{which}."


def _sizes(subject: Subject) -> NDArray | None:
    """The number of parts in every draw, if it is not given."""
    trace, name = getattr(subject.model, "trace_", None), f"n_{subject.part}s"
    if not isinstance(trace, Trace) or name not in trace.names:
        return None
    if name in subject.model.get_params(deep=False):
        return None
    return np.array([draw[name] for draw in trace], dtype=int)


def _known_pairs(subject: Subject) -> tuple[NDArray, NDArray] | None:
    """Labels and answers, where there is a label that the model knows."""
    if subject.truth is None or subject.answers is None or not (subject.truth >= 0).any():
        return None
    known = subject.truth >= 0
    return subject.truth[known], subject.answers[known]


def _commonest_column(table: NDArray) -> tuple[NDArray, int]:
    columns, times = np.unique(table, axis=1, return_counts=True)
    return columns[:, times.argmax()], int(times.max())


def _runs(states: NDArray) -> list[tuple[int, int, int]]:
    """State, first and last step of every run of one state."""
    edges = np.flatnonzero(np.diff(states)) + 1
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [len(states)]])
    return [(int(states[a]), int(a), int(b) - 1) for a, b in zip(starts, ends)]


def _means(values: NDArray) -> NDArray:
    """Means of columns without the missing values; zero where there is nothing else."""
    seen = ~np.isnan(values)
    return np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


def _deviations(values: NDArray) -> NDArray:
    """Standard deviations of columns, one for those that do not vary."""
    variances = _means(np.square(values - _means(values)))
    return np.where(variances > 0, np.sqrt(variances), 1.0)


def _widest(values: NDArray, most: int) -> NDArray:
    """The columns that vary most, in their order."""
    return np.sort(np.argsort(-_deviations(values), kind="stable")[:most])


def _crossed(parts: NDArray | None, codes: NDArray, used: NDArray, n_codes: int) -> NDArray:
    """Shares of codes in every part; those below zero are left out."""
    table = np.zeros((len(used), n_codes))
    for i, k in enumerate(used):
        own = codes[(parts == k) & (codes >= 0)]
        table[i] = np.bincount(own, minlength=n_codes) / max(len(own), 1)
    return table
