"""The sections of a report: functions of the subject, None where there is nothing to say.

They ask what a model has (`trace_`, `decode`, `top_words`, ...), not what it is: a new family has
its report by naming things as the others do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from regbayes.report import figures
from regbayes.report.along import along_the_sequences, moves
from regbayes.report.answers import accuracy_in_words, calibration, least_sure, right_and_wrong
from regbayes.report.draws import chains_in_words, convergence, how_many
from regbayes.report.features import features, strongest_scores
from regbayes.report.parts import meaning
from regbayes.report.section import Section, counted, sizes_of
from regbayes.report.subject import Subject


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


def overview(subject: Subject) -> Section:
    """What was learned, in plain words."""
    text = [
        " ".join(filter(None, [_data_in_words(subject), _size_in_words(subject)])),
        accuracy_in_words(subject),
        chains_in_words(subject),
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
        what = f"{counted(len(batch), 'sequence')} with {counted(batch.n_steps, 'step')} in all"
        if subject.symbols is not None:
            what += f", of {counted(len(subject.symbols), 'symbol')}"
    else:
        what = counted(subject.n_items, "row")
    if subject.values is not None:
        what += f" and {counted(subject.values.shape[1], 'input')}"
    return f"{name} looked at {what}."


def _size_in_words(subject: Subject) -> str:
    n = subject.n_parts
    if n is None:
        return ""
    text = f"It describes them by {counted(n, subject.part)}"
    sizes = sizes_of(subject)
    if sizes is None:
        return text + "."
    share = float(np.mean(sizes == n))
    low, high = (int(q) for q in np.quantile(sizes, (0.025, 0.975), method="inverted_cdf"))
    spread = "" if low == high else f", and 95% of them between {low} and {high}"
    return (
        f"{text}, a number that it found by itself: {share:.0%} of the draws have as many{spread}."
    )


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
