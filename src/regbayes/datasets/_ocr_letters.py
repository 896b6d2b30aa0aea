"""Handwritten words, letter by letter."""

import os
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, NamedArrays, RemoteDataset, RemoteFile, gunzip

_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# Row, column of each pixel.
_FEATURES = [f"p_{i}_{j}" for i in range(16) for j in range(8)]

_DESCR = """\
OCR letters (Kassel, Taskar)
----------------------------
6877 handwritten words, 52152 letters; each letter is a binary image of 16 rows and 8 columns and
has its label. The first letter of each word, a capital, was left out by Taskar: "ommanding".

There are only 55 different words, so a model of the letter sequence learns the words by heart.
`folds` holds the ten published folds. Two protocols are in use: train on one fold and test on
the other nine ("small"), or the other way round ("large").

Source: http://ai.stanford.edu/~btaskar/ocr/. No licence is stated.
References: R. Kassel, "A comparison of approaches to on-line handwritten character recognition",
PhD thesis, MIT (1995). B. Taskar, C. Guestrin, D. Koller, "Max-margin Markov networks", NIPS 2003.
"""


def _parse(text: str) -> dict[str, NamedArrays]:
    """Words from lines of id, letter, next id, word, position, fold and 128 pixels."""
    pixels, letters, folds, lengths = [], [], [], [0]
    expected = None
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if len(fields) != 6 + len(_FEATURES):
            raise ValueError(f"line {number} has {len(fields)} fields, not {6 + len(_FEATURES)}")
        if expected not in (None, fields[0]):
            raise ValueError(f"line {number} has the id {fields[0]}, not {expected}")
        pixels.append([int(pixel) for pixel in fields[6:]])
        letters.append(_LETTERS.index(fields[1]))
        lengths[-1] += 1
        expected = fields[2]
        if expected == "-1":
            folds.append(int(fields[5]))
            lengths.append(0)
            expected = None
    if lengths.pop():
        raise ValueError("the last word has no end")
    arrays = {"X": pixels, "y": letters, "lengths": lengths, "fold": folds}
    return {"ocr_letters.npz": {name: np.array(values) for name, values in arrays.items()}}


_ARRAYS = Arrays(
    types={"X": "|u1", "y": "|u1", "lengths": "<i8", "fold": "<i8"},
    sha256="c683bfe45033c7b3c373b5fa446e99f074f5a7cdd72887907cd0f8d92c0aab7e",
)

_DATASET = RemoteDataset(
    folder="ocr_letters",
    tables={"ocr_letters.npz": _ARRAYS},
    sources=(RemoteFile("http://ai.stanford.edu/~btaskar/ocr/letter.data.gz", unpack=gunzip),),
    parse=_parse,
)


def fetch_ocr_letters(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load handwritten words (a label for each letter), downloading them if necessary.

    =================   ====================
    Classes                               26
    Sequences                     6877 words
    Steps                      52152 letters
    Features                128, of 0 and 1
    =================   ====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 6877 arrays (n_letters, 128); ``target``: list of 6877 arrays
        (n_letters,) of "a" to "z"; ``folds`` (6877,) of 0 to 9, ``target_names``,
        ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_ocr_letters
    >>> words = fetch_ocr_letters()  # doctest: +SKIP
    >>> "".join(words.target[0])  # doctest: +SKIP
    'ommanding'
    """
    arrays = _DATASET.load(data_home, download_if_missing)["ocr_letters.npz"]
    ends = np.cumsum(arrays["lengths"])[:-1]
    data = np.split(arrays["X"].astype(np.float64), ends)
    target = np.split(np.array(list(_LETTERS))[arrays["y"]], ends)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        folds=arrays["fold"],
        target_names=list(_LETTERS),
        feature_names=list(_FEATURES),
        DESCR=_DESCR,
    )
