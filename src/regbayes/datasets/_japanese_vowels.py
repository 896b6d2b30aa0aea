"""Two vowels, spoken by nine men."""

import os
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, NamedArrays, RemoteDataset, RemoteFile
from regbayes.datasets._sequences import ragged

_N_FEATURES = 12

# Utterances of the speakers 1 to 9, which follow each other in the files.
_UTTERANCES = {"train": [30] * 9, "test": [31, 35, 88, 44, 29, 24, 40, 50, 29]}

_DESCR = """\
Japanese vowels (UCI)
---------------------
Nine men said the Japanese vowels /ae/ one after the other, each many times; who is it? A sequence
is one utterance, 7 to 29 frames of 12 LPC cepstrum coefficients. The published split has 270
utterances to train (30 of each speaker) and 370 to test.

Source: UCI Machine Learning Repository, "Japanese Vowels", listed there under CC BY 4.0 (for the
copy at hand not checked). The checksum is that of a copy in github.com/littleowen/Conceptor, in
which a line of ones stands for UCI's blank line between two utterances; either is understood.
Reference: M. Kudo, J. Toyama, M. Shimbo, "Multidimensional curve classification using
passing-through regions", Pattern Recognition Letters 20 (1999).
"""


def _utterances(text: str) -> list[list[list[float]]]:
    """Frames of each utterance; a blank line or a line of ones ends it."""
    found: list[list[list[float]]] = [[]]
    for number, line in enumerate(text.splitlines(), start=1):
        frame = [float(field) for field in line.split()]
        if set(frame) <= {1.0}:
            found.append([])
        elif len(frame) != _N_FEATURES:
            raise ValueError(f"line {number} has {len(frame)} numbers, not {_N_FEATURES}")
        else:
            found[-1].append(frame)
    return [utterance for utterance in found if utterance]


def _parse(train: str, test: str) -> dict[str, NamedArrays]:
    frames, lengths, speakers, split = [], [], [], []
    for (side, counts), text in zip(_UTTERANCES.items(), (train, test), strict=True):
        utterances = _utterances(text)
        if len(utterances) != sum(counts):
            raise ValueError(f"{len(utterances)} utterances to {side}, not {sum(counts)}")
        frames += [frame for utterance in utterances for frame in utterance]
        lengths += [len(utterance) for utterance in utterances]
        speakers += np.repeat(np.arange(1, 10), counts).tolist()
        split += [side] * len(utterances)
    arrays = {"X": frames, "lengths": lengths, "y": speakers, "split": split}
    return {"japanese_vowels.npz": {name: np.array(values) for name, values in arrays.items()}}


_ADDRESS = "https://archive.ics.uci.edu/ml/machine-learning-databases/JapaneseVowels-mld/"

_DATASET = RemoteDataset(
    folder="japanese_vowels",
    tables={
        # Decimals of at most seven digits: every careful parser makes the same float64 of them.
        "japanese_vowels.npz": Arrays(
            types={"X": "<f8", "lengths": "<i8", "y": "<i8", "split": "<U5"},
            sha256="6e716e58da477e4eb6a51eb27e19d753853483df79a70c53056e456ad2cb1b5c",
        )
    },
    sources=(RemoteFile(_ADDRESS + "ae.train"), RemoteFile(_ADDRESS + "ae.test")),
    parse=_parse,
)


def fetch_japanese_vowels(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load vowels of nine speakers (one label for each), downloading them if necessary.

    Nine men uttered /ae/, and the class is the speaker [1]_.

    =================   ===============================
    Classes                                           9
    Sequences           640 (270 to train, 370 to test)
    Steps                           7 to 29 frames each
    Features                                   12, real
    =================   ===============================

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
        ``data``: list of 640 arrays (n_frames, 12); ``target`` (640,) speakers 1 to 9; ``split``
        (640,) of "train" and "test", ``target_names``, ``feature_names``, ``DESCR``.

    References
    ----------
    .. [1] Kudo, Toyama & Shimbo (1999). Multidimensional curve classification using
       passing-through regions. Pattern Recognition Letters.

    Examples
    --------
    >>> from regbayes.datasets import fetch_japanese_vowels
    >>> vowels = fetch_japanese_vowels()  # doctest: +SKIP
    >>> vowels.target[0], vowels.data[0].shape  # doctest: +SKIP
    (np.int64(1), (20, 12))
    """
    arrays = _DATASET.load(data_home, download_if_missing)["japanese_vowels.npz"]
    data, target = ragged(arrays["X"], arrays["lengths"]), arrays["y"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        split=arrays["split"],
        target_names=[f"speaker {number}" for number in range(1, 10)],
        feature_names=[f"lpc_{number}" for number in range(1, _N_FEATURES + 1)],
        DESCR=_DESCR,
    )
