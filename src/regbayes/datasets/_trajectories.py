"""Movements of a pen and of a hand, one label for each: letters and words of a sign language."""

import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, NamedArrays, RemoteDataset, RemoteFile
from regbayes.datasets._sequences import first_occurrences, ragged

# ---------------------------------------------------------------------------------------- letters

# Those a pen writes in one go; class 1 is "a".
_LETTERS = list("abcdeghlmnopqrsuvwyz")

_PEN = ["x_velocity", "y_velocity", "force"]

_LETTERS_DESCR = """\
Character trajectories (UCI), half of it labelled
-------------------------------------------------
Letters that one person wrote on a tablet, at 200 Hz: velocity of the pen's tip along x and y, and
its force. 20 letters, those written without lifting the pen.

This copy has all 2858 letters of UCI's set, split at random into halves of 1429 by a course that
handed it out; for the second half (`unlabelled`) it gave no labels, and none were guessed. So the
1422/1436 split of the UEA archive cannot be had from it.

The published sequences begin and end with frames of zeros only, 109 to 205 frames in all. These
are left out unless `trim=False`; 60 to 182 frames remain, as in the UEA archive.

There is no published split of the labelled half.

Source: trajectories_train.mat and trajectories_xtest.mat in
github.com/ShuningZhao/Character-Trajectories; the original is UCI's "Character Trajectories",
listed there under CC BY 4.0 (for this copy not checked). The names of the variables in these files
were taken from the program beside them.
Reference: B. H. Williams, M. Toussaint, A. J. Storkey, "Extracting motion primitives from natural
handwriting data", ICANN 2006.
"""


def _read_mat(content: bytes) -> dict[str, NDArray[Any]]:
    """Variables of a MATLAB file."""
    try:
        return loadmat(io.BytesIO(content))
    except Exception as error:  # of any kind: scipy does not check what it reads
        raise ValueError(f"not a whole MATLAB file ({error!r})") from error


def _variable(mat: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in mat:
        raise ValueError(f"the variable {name} is missing")
    return mat[name].ravel()


def _stack_cells(cells: NDArray[Any]) -> NamedArrays:
    """Frames and lengths from a cell array of matrices, one row for each channel."""
    for number, cell in enumerate(cells, start=1):
        if np.ndim(cell) != 2 or len(cell) != len(_PEN):
            raise ValueError(f"cell {number} has shape {np.shape(cell)}, not (3, n_frames)")
    return {
        "X": np.concatenate([np.transpose(cell) for cell in cells]),
        "lengths": np.array([cell.shape[1] for cell in cells]),
    }


def _parse_letters(
    train: dict[str, NDArray[Any]], test: dict[str, NDArray[Any]]
) -> dict[str, NamedArrays]:
    labelled = _stack_cells(_variable(train, "xtrain")) | {"y": _variable(train, "ytrain")}
    if len(labelled["y"]) != len(labelled["lengths"]):
        raise ValueError(f"{len(labelled['lengths'])} letters have {len(labelled['y'])} labels")
    return {
        "character_trajectories_labelled.npz": labelled,
        "character_trajectories_unlabelled.npz": _stack_cells(_variable(test, "xtest")),
    }


_LETTERS_REPOSITORY = (
    "https://raw.githubusercontent.com/ShuningZhao/Character-Trajectories/"
    "0c9bfa477542c4f885370a6af05a99b45764f3af/"
)

_CHARACTER_TRAJECTORIES = RemoteDataset(
    folder="character_trajectories",
    tables={
        "character_trajectories_labelled.npz": Arrays(
            types={"X": "<f4", "lengths": "<i8", "y": "|u1"},
            sha256="b00b283ae7615c2d8146289311beb03cdc3d51ee7095fc59ee3a0d3c619b017a",
        ),
        "character_trajectories_unlabelled.npz": Arrays(
            types={"X": "<f4", "lengths": "<i8"},
            sha256="3a52dbc6266fdb25eb375ff800805cce3ebccfa96b5730d9793de4e6c0753387",
        ),
    },
    sources=(
        RemoteFile(_LETTERS_REPOSITORY + "trajectories_train.mat", unpack=_read_mat),
        RemoteFile(_LETTERS_REPOSITORY + "trajectories_xtest.mat", unpack=_read_mat),
    ),
    parse=_parse_letters,
)


def _pen(arrays: NamedArrays, trim: bool) -> list[NDArray[np.float64]]:
    """The letters, without the zeros at both ends if these are to be trimmed."""
    sequences = ragged(arrays["X"].astype(np.float64), arrays["lengths"])
    if not trim:
        return sequences
    moving = [np.flatnonzero(frames.any(axis=1)) for frames in sequences]
    return [frames[at[0] : at[-1] + 1] for frames, at in zip(sequences, moving)]


def fetch_character_trajectories(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    trim: bool = True,
) -> Any:
    """Load letters written by a pen (one label for each), downloading them if necessary.

    This is UCI's set [1]_ in a copy that has lost the labels of half of the letters.

    =================   ==============================================
    Classes                                                 20 letters
    Sequences           1429 with a label, 1429 without (`unlabelled`)
    Steps               60 to 182 frames each (109 to 205 untrimmed)
    Features                                                   3, real
    =================   ==============================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    trim : bool, default=True
        If True, leave out the frames of zeros with which every sequence begins and ends.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 1429 arrays (n_frames, 3); ``target`` (1429,) of "a" to "z";
        ``unlabelled``: list of 1429 further arrays (n_frames, 3), ``target_names``,
        ``feature_names``, ``DESCR``.

    References
    ----------
    .. [1] Williams, Toussaint & Storkey (2006). Extracting motion primitives from natural
       handwriting data. ICANN.

    Examples
    --------
    >>> from regbayes.datasets import fetch_character_trajectories
    >>> letters = fetch_character_trajectories()  # doctest: +SKIP
    >>> letters.target[0], letters.data[0].shape  # doctest: +SKIP
    (np.str_('b'), (134, 3))
    """
    labelled, unlabelled = _CHARACTER_TRAJECTORIES.load(data_home, download_if_missing).values()
    data = _pen(labelled, trim)
    target = np.array(_LETTERS)[labelled["y"] - 1]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        unlabelled=_pen(unlabelled, trim),
        target_names=list(_LETTERS),
        feature_names=list(_PEN),
        DESCR=_LETTERS_DESCR,
    )


# ----------------------------------------------------------------------------------------- Libras

# Of the classes 1 to 15, as in movement_libras.names.
_MOVEMENTS = (
    "curved swing",
    "horizontal swing",
    "vertical swing",
    "anti-clockwise arc",
    "clockwise arc",
    "circle",
    "horizontal straight-line",
    "vertical straight-line",
    "horizontal zigzag",
    "vertical zigzag",
    "horizontal wavy",
    "vertical wavy",
    "face-up curve",
    "face-down curve",
    "tremble",
)

_N_POINTS = 45

_LIBRAS_DESCR = """\
Libras movement (UCI)
---------------------
Movements of a hand in the Brazilian sign language, filmed: 15 classes of 24, each the position
(x, y) of the hand in 45 frames, scaled to [0, 1].

30 of the 360 rows repeat an earlier row exactly, with the same label (classes 4, 5, 6 and 9 to 15);
so it is in UCI's file. With random folds a repeated row is in training and test at once:
`duplicates=False` leaves these rows out.

There is no published split of the whole file, and no row says who moved.

Source: UCI Machine Learning Repository, "Libras Movement", listed there under CC BY 4.0. The
checksum is that of KEEL's copy; written as UCI's file is, it has the SHA-256 that another
project (JackDunnNZ/UCIData.jl) recorded for UCI's movement_libras.data.
Reference: D. B. Dias, R. C. B. Madeo, T. Rocha, H. H. Biscaro, S. M. Peres, "Hand movement
recognition for Brazilian Sign Language: a study using distance-based neural networks", IJCNN 2009.
"""


def _parse_libras(text: str) -> dict[str, NamedArrays]:
    """Arrays from lines of x1, y1, ..., x45, y45 and the class."""
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    for number, fields in enumerate(rows, start=1):
        if len(fields) != 2 * _N_POINTS + 1:
            raise ValueError(f"row {number} has {len(fields)} fields, not {2 * _N_POINTS + 1}")
    points = np.array([fields[:-1] for fields in rows], dtype=np.float64)
    labels = np.array([int(fields[-1]) for fields in rows])
    return {"libras.npz": {"X": points.reshape(-1, _N_POINTS, 2), "y": labels}}


_LIBRAS = RemoteDataset(
    folder="libras",
    tables={
        # Decimals of at most six digits: every careful parser makes the same float64 of them.
        "libras.npz": Arrays(
            types={"X": "<f8", "y": "<i8"},
            sha256="4407cd87164900d588cc987cc31ada66b1b32c9b16767ab7c955a18b078ab5ad",
        )
    },
    sources=(
        RemoteFile(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/libras/movement_libras.data"
        ),
    ),
    parse=_parse_libras,
)


def fetch_libras(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    duplicates: bool = True,
) -> Any:
    """Load movements of a sign language (one label for each), downloading them if necessary.

    Movements of a hand in the Brazilian sign language, Libras [1]_.

    =================   ======================================
    Classes                                                 15
    Sequences           360, or 330 without the repeated rows
    Steps                                      45 frames each
    Features                                      2, in [0, 1]
    =================   ======================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    duplicates : bool, default=True
        If False, leave out the 30 rows that repeat an earlier one.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 360 (or 330) arrays (45, 2); ``target`` (360,) classes 1 to 15,
        ``target_names`` (names of the classes 1 to 15, in order), ``feature_names``, ``DESCR``.

    References
    ----------
    .. [1] Dias, Madeo, Rocha, Biscaro & Peres (2009). Hand movement recognition for Brazilian
       Sign Language: a study using distance-based neural networks. IJCNN.

    Examples
    --------
    >>> from regbayes.datasets import fetch_libras
    >>> movements = fetch_libras(duplicates=False)  # doctest: +SKIP
    >>> len(movements.data), movements.data[0].shape  # doctest: +SKIP
    (330, (45, 2))
    """
    arrays = _LIBRAS.load(data_home, download_if_missing)["libras.npz"]
    kept = np.arange(len(arrays["X"])) if duplicates else first_occurrences(arrays["X"])
    data, target = list(arrays["X"][kept]), arrays["y"][kept]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=list(_MOVEMENTS),
        feature_names=["x", "y"],
        DESCR=_LIBRAS_DESCR,
    )
