"""Series of one number at a time, one label for each: profiles of a terrain, outlines of leaves."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from regbayes.datasets._remote import (
    Arrays,
    NamedArrays,
    RemoteDataset,
    RemoteFile,
    as_text,
    read_columns,
    unzip,
)


def _both(
    train: tuple[NDArray[Any], NDArray[Any]], test: tuple[NDArray[Any], NDArray[Any]]
) -> NamedArrays:
    """Arrays from (series, classes) of either side."""
    return {
        "X": np.concatenate([train[0], test[0]]),
        "y": np.concatenate([train[1], test[1]]),
        "split": np.repeat(["train", "test"], [len(train[1]), len(test[1])]),
    }


# ------------------------------------------------------------------------------------ Hill-Valley

_HILL_VALLEY_DESCR = """\
Hill-Valley (UCI)
-----------------
Each sequence is a terrain seen from the side, the height at 100 points: somewhere along it is a
hill (1) or a valley (0). 606 sequences to train and 606 to test, in a version with noise and one
without; the two are different terrains.

The heights of one sequence are of another order of magnitude than those of the next: 0.5 to 160000.
Divide each sequence by its own height, and the problem is easy; as it stands, it is hard to fit.

Source: UCI Machine Learning Repository, "Hill-Valley", listed there under CC BY 4.0. The checksum
is that of PMLB's copy, one table of 1212 rows of which the first 606 are taken to be the training
file. That is certain: written as UCI's files are, they have the SHA-256 that another project
(JackDunnNZ/UCIData.jl) recorded for UCI's two training files. For the testing files no such record
is known; that the other rows are these, in this order, is assumed.
Reference: L. Graham, F. Oppacher, "Hill-Valley", UCI Machine Learning Repository (2008).
"""

_HEIGHTS = [f"X{i}" for i in range(1, 101)]


class _TenDigits(Arrays):
    """Arrays whose X is as printed, in up to ten digits.

    The copy at hand was parsed by a program that gets the last bit of a float64 wrong at times.
    """

    def _typed(self, arrays: Mapping[str, NDArray[Any]]) -> NamedArrays:
        typed = super()._typed(arrays)
        return typed | {"X": np.char.mod("%.10g", typed["X"]).astype(np.float64)}


def _read_heights(text: str) -> tuple[NDArray[Any], NDArray[Any]]:
    columns = read_columns(text, dict.fromkeys(_HEIGHTS, float) | {"class": int})
    return np.column_stack([columns[name] for name in _HEIGHTS]), np.array(columns["class"])


def _parse_hill_valley(file: str, training: str, testing: str) -> dict[str, NamedArrays]:
    return {file: _both(_read_heights(training), _read_heights(testing))}


def _hill_valley(kind: str, sha256: str) -> RemoteDataset:
    file = f"hill_valley_{kind}_noise.npz"
    address = (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/hill-valley/"
        f"Hill_Valley_{kind}_noise_"
    )
    return RemoteDataset(
        folder="hill_valley",
        tables={file: _TenDigits(types={"X": "<f8", "y": "|i1", "split": "<U5"}, sha256=sha256)},
        sources=(RemoteFile(address + "Training.data"), RemoteFile(address + "Testing.data")),
        parse=partial(_parse_hill_valley, file),
    )


_HILL_VALLEY_WITH_NOISE = _hill_valley(
    "with", "b5edd78d162fa85b807e94ca62f3e0084da429eb03bbf927a4c5f540c2ce2665"
)

_HILL_VALLEY_WITHOUT_NOISE = _hill_valley(
    "without", "5f7ae2280dafcde607aca67ef3ff020e4441fa4adf0f802d46601188cca64b9f"
)


def fetch_hill_valley(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    noise: bool = True,
) -> Any:
    """Load hills and valleys (binary, one label for each), downloading them if necessary.

    Profiles of a terrain in which there is a hill or a valley [1]_.

    =================   =================================
    Classes                                             2
    Sequences           1212 (606 to train, 606 to test)
    Steps                                 100 points each
    Features                                      1, real
    =================   =================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    noise : bool, default=True
        If True, the version with a rough terrain; if False, that with a smooth one.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 1212 arrays (100, 1); ``target`` (1212,) of 0 (valley) and 1 (hill);
        ``split`` (1212,) of "train" and "test", ``target_names``, ``feature_names``, ``DESCR``.

    References
    ----------
    .. [1] Graham & Oppacher (2008). Hill-Valley. UCI Machine Learning Repository.

    Examples
    --------
    >>> from regbayes.datasets import fetch_hill_valley
    >>> terrains = fetch_hill_valley(noise=False)  # doctest: +SKIP
    >>> len(terrains.data), terrains.data[0].shape  # doctest: +SKIP
    (1212, (100, 1))
    """
    dataset = _HILL_VALLEY_WITH_NOISE if noise else _HILL_VALLEY_WITHOUT_NOISE
    (arrays,) = dataset.load(data_home, download_if_missing).values()
    data, target = list(arrays["X"][:, :, None]), arrays["y"].astype(int)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        split=arrays["split"],
        target_names=["valley", "hill"],
        feature_names=["height"],
        DESCR=_HILL_VALLEY_DESCR,
    )


# --------------------------------------------------------------------------------------- OSU Leaf

_N_OUTLINE = 427

_N_SPECIES = 6

_OSULEAF_DESCR = """\
OSU Leaf (UCR archive)
----------------------
Outlines of leaves of six species as series of 427 numbers, read from photographs along the edge,
anti-clockwise: 200 to train and 242 to test, as published. A series is closed: its end meets its
beginning, and where it begins means little.

The species are Acer circinatum, A. glabrum, A. macrophyllum, A. negundo, Quercus garryana and
Q. kelloggii; the archive does not say which number is which, so `target_names` does not either.

Source: timeseriesclassification.com, the UCR archive; for research. The checksum is that of the
copy in the Python package aeon 1.6.0, in float32. That the archive's zip file holds the same
numbers is expected, but could not be verified.
References: A. Gandhi, "Content-based image retrieval: plant species identification", MSc thesis,
Oregon State University (2002). H. A. Dau and others, "The UCR time series archive", IEEE/CAA
Journal of Automatica Sinica 6 (2019).
"""


def _read_ts(text: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Series and classes from a .ts file: after ``@data``, lines of numbers, a colon, the class."""
    lines = [line.strip() for line in text.splitlines()]
    heads = [number for number, line in enumerate(lines) if line.lower() == "@data"]
    if not heads:
        raise ValueError("there is no line @data")
    series, labels = [], []
    for number, line in enumerate(lines[heads[0] + 1 :], start=heads[0] + 2):
        if not line:
            continue
        numbers, _, label = line.partition(":")
        series.append([float(value) for value in numbers.split(",")])
        if len(series[-1]) != _N_OUTLINE or not label:
            raise ValueError(
                f"line {number} has {len(series[-1])} numbers and the class {label!r}, "
                f"not {_N_OUTLINE} and one of 1 to {_N_SPECIES}"
            )
        labels.append(int(float(label)))
    return np.array(series).reshape(-1, _N_OUTLINE), np.array(labels, dtype=int)


def _parse_osuleaf(files: dict[str, bytes]) -> dict[str, NamedArrays]:
    sides = []
    for name in ("OSULeaf_TRAIN.ts", "OSULeaf_TEST.ts"):
        if name not in files:
            raise ValueError(f"{name} is not in the archive")
        sides.append(_read_ts(as_text(files[name])))
    return {"osuleaf.npz": _both(*sides)}


_OSULEAF = RemoteDataset(
    folder="osuleaf_contours",
    tables={
        "osuleaf.npz": Arrays(
            types={"X": "<f4", "y": "|i1", "split": "<U5"},
            sha256="afdee4745ff509e6c2b0e569983693a41bceb20ae59c5a288f4e6f52294708e6",
        )
    },
    sources=(
        RemoteFile("https://timeseriesclassification.com/aeon-toolkit/OSULeaf.zip", unpack=unzip),
    ),
    parse=_parse_osuleaf,
)


def fetch_osuleaf(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load outlines of leaves (one label for each), downloading them if necessary.

    Leaves photographed at the Oregon State University [1]_, from the UCR archive [2]_.

    =================   ===============================
    Classes                                           6
    Sequences           442 (200 to train, 242 to test)
    Steps                               427 points each
    Features                                    1, real
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
        ``data``: list of 442 arrays (427, 1); ``target`` (442,) species 1 to 6; ``split`` (442,)
        of "train" and "test", ``target_names``, ``feature_names``, ``DESCR``.

    References
    ----------
    .. [1] Gandhi (2002). Content-based image retrieval: plant species identification. MSc thesis,
       Oregon State University.
    .. [2] Dau et al. (2019). The UCR time series archive. IEEE/CAA Journal of Automatica Sinica.

    Examples
    --------
    >>> from regbayes.datasets import fetch_osuleaf
    >>> leaves = fetch_osuleaf()  # doctest: +SKIP
    >>> len(leaves.data), leaves.data[0].shape  # doctest: +SKIP
    (442, (427, 1))
    """
    arrays = _OSULEAF.load(data_home, download_if_missing)["osuleaf.npz"]
    data, target = list(arrays["X"].astype(np.float64)[:, :, None]), arrays["y"].astype(int)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        split=arrays["split"],
        target_names=[f"species {number}" for number in range(1, _N_SPECIES + 1)],
        feature_names=["outline"],
        DESCR=_OSULEAF_DESCR,
    )
