"""What the data sets of labelled sequences share: ragged arrays, letters, repeated rows."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def ragged(steps: NDArray[Any], lengths: ArrayLike) -> list[NDArray[Any]]:
    """The sequences whose steps are stacked one after the other.

    Examples
    --------
    >>> ragged(np.arange(3), [2, 1])
    [array([0, 1]), array([2])]
    """
    return np.split(steps, np.cumsum(lengths)[:-1])


def letters(codes: NDArray[np.uint8], lengths: ArrayLike) -> list[NDArray[np.str_]]:
    """Sequences of single letters from their stacked ASCII codes.

    Examples
    --------
    >>> letters(np.array([65, 67, 71], np.uint8), [2, 1])
    [array(['A', 'C'], dtype='<U1'), array(['G'], dtype='<U1')]
    """
    return ragged(codes.view("S1").astype("<U1"), lengths)


def letters_of(words: Iterable[str]) -> list[NDArray[np.str_]]:
    """Sequences of single letters from strings.

    Examples
    --------
    >>> letters_of(["AC", "G"])
    [array(['A', 'C'], dtype='<U1'), array(['G'], dtype='<U1')]
    """
    listed = list(words)
    codes = np.frombuffer("".join(listed).encode("ascii"), np.uint8)
    return letters(codes, [len(word) for word in listed])


def first_occurrences(rows: ArrayLike) -> NDArray[np.intp]:
    """Where each distinct row stands for the first time, in order.

    Examples
    --------
    >>> first_occurrences(["b", "a", "b", "c"])
    array([0, 1, 3])
    """
    return np.sort(np.unique(np.asarray(rows), axis=0, return_index=True)[1])


def fasta(text: str) -> Iterator[tuple[str, str]]:
    """(header, sequence) of each entry of a FASTA text.

    Examples
    --------
    >>> list(fasta(">one a.1\\nACD\\nEF\\n>two\\n"))
    [('one a.1', 'ACDEF'), ('two', '')]
    """
    before, *entries = ("\n" + text).split("\n>")
    if before.strip():
        raise ValueError(f"cannot read {before.strip()[:40]!r} as the header of a sequence")
    for entry in entries:
        header, *lines = entry.splitlines()
        yield header.strip(), "".join(map(str.strip, lines))
