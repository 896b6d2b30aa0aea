"""What sections are made of: text, figures, and the numbers that several of them need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regbayes.chains import Trace
from regbayes.report.figures import Figure
from regbayes.report.subject import Subject

MOST = {
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


def counted(n: int, thing: str) -> str:
    """As in “1 row”, “2,000 rows”, “3 classes”."""
    return f"{n:,} {thing}{'' if n == 1 else 'es' if thing.endswith('s') else 's'}"


def part_shown(n: int, shown: int, thing: str, which: str = "") -> str:
    return "" if shown == n else f"Shown are {shown} of {counted(n, thing)}{which}."


def sizes_of(subject: Subject) -> NDArray | None:
    """The number of parts in every draw, if it is not given."""
    trace, name = getattr(subject.model, "trace_", None), f"n_{subject.part}s"
    if not isinstance(trace, Trace) or name not in trace.names:
        return None
    if name in subject.model.get_params(deep=False):
        return None
    return np.array([draw[name] for draw in trace], dtype=int)


def known_pairs(subject: Subject) -> tuple[NDArray, NDArray] | None:
    """Labels and answers, where there is a label that the model knows."""
    if subject.truth is None or subject.answers is None or not (subject.truth >= 0).any():
        return None
    known = subject.truth >= 0
    return subject.truth[known], subject.answers[known]


def runs_of(states: NDArray) -> list[tuple[int, int, int]]:
    """State, first and last step of every run of one state."""
    edges = np.flatnonzero(np.diff(states)) + 1
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [len(states)]])
    return [(int(states[a]), int(a), int(b) - 1) for a, b in zip(starts, ends)]


def column_means(values: NDArray) -> NDArray:
    """Means of columns without the missing values; zero where there is nothing else."""
    seen = ~np.isnan(values)
    return np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


def column_deviations(values: NDArray) -> NDArray:
    """Standard deviations of columns, one for those that do not vary."""
    variances = column_means(np.square(values - column_means(values)))
    return np.where(variances > 0, np.sqrt(variances), 1.0)


def widest_columns(values: NDArray, most: int) -> NDArray:
    """The columns that vary most, in their order."""
    return np.sort(np.argsort(-column_deviations(values), kind="stable")[:most])


def shares_in_parts(parts: NDArray | None, codes: NDArray, used: NDArray, n_codes: int) -> NDArray:
    """Shares of codes in every part; those below zero are left out."""
    table = np.zeros((len(used), n_codes))
    for i, k in enumerate(used):
        own = codes[(parts == k) & (codes >= 0)]
        table[i] = np.bincount(own, minlength=n_codes) / max(len(own), 1)
    return table
