"""Phases of gestures in seven videos, frame by frame."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from regbayes.datasets._remote import (
    Arrays,
    NamedArrays,
    RemoteDataset,
    RemoteFile,
    read_columns,
    unzip,
)

# A letter for the user, a digit for the story told.
_VIDEOS = ("a1", "a2", "a3", "b1", "b3", "c1", "c3")

# The processed files have letters: D is the Portuguese "descanso".
_PHASES = {"D": "Rest", "P": "Preparation", "S": "Stroke", "H": "Hold", "R": "Retraction"}

_PARTS = ("left_hand", "right_hand", "left_wrist", "right_wrist")

_RAW = [f"{part}{axis}" for part in ("lh", "rh", "h", "s", "lw", "rw") for axis in "xyz"]

_PROCESSED = [
    f"{part}_{measure}_{axis}"
    for measure in ("velocity", "acceleration")
    for part in _PARTS
    for axis in "xyz"
] + [f"{part}_{measure}" for measure in ("speed", "scalar_acceleration") for part in _PARTS]

_DESCR = """\
Gesture phase segmentation (UCI)
--------------------------------
Seven videos of three people who tell three stories before a Kinect (users a, b, c; stories 1, 2,
3; not every pair), each frame labelled with its phase: Rest, Preparation, Stroke, Hold or
Retraction.

`features="raw"`: 9901 frames; positions of the left and right hand (lh, rh), head (h), spine (s)
and the left and right wrist (lw, rw). `features="processed"`: 9873 frames; velocity and
acceleration of hands and wrists, as vectors and as scalars. The first four frames of a video have
none; the labels of the others are those of the raw frames.

There is no standard split; leave one video (`videos`) or one user (`subjects`) out. Frames of one
video resemble each other, so folds across frames overstate the accuracy. One raw label, spelt in
Portuguese, is translated.

Source: UCI Machine Learning Repository, "Gesture Phase Segmentation", listed there under CC BY 4.0.
Reference: R. C. B. Madeo, C. A. M. Lima, S. M. Peres, "Gesture unit segmentation using support
vector machines: segmenting gestures from rest positions", SAC 2013.
"""


def _read(
    files: dict[str, bytes], name: str, features: list[str], phase: str
) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Features and phases of one CSV file of the archive."""
    if name not in files:
        raise ValueError(f"{name} is not in the archive")
    # One label is Portuguese ("Preparação"), in an encoding nobody promises: its beginning will do.
    text = files[name].decode(errors="replace")
    columns = read_columns(text, dict.fromkeys(features, float) | {phase: str})
    phases = np.array(columns[phase])
    translated = np.where(np.char.startswith(phases, "Prepara"), "Preparation", phases)
    return np.column_stack([columns[feature] for feature in features]), translated


def _parse(files: dict[str, bytes]) -> dict[str, NamedArrays]:
    """Arrays from a1_raw.csv, a1_va3.csv and so on."""
    numbers = [str(i + 1) for i in range(len(_PROCESSED))]
    arrays: NamedArrays = {}
    for kind, end, features, phase in (
        ("raw", "_raw.csv", _RAW, "phase"),
        ("processed", "_va3.csv", numbers, "Phase"),
    ):
        videos = [_read(files, video + end, features, phase) for video in _VIDEOS]
        arrays[kind] = np.concatenate([data for data, _ in videos])
        arrays[f"{kind}_y"] = np.concatenate([phases for _, phases in videos])
        arrays[f"{kind}_lengths"] = np.array([len(phases) for _, phases in videos])
    return {"gesture_phase.npz": arrays}


_ARRAYS = Arrays(
    types={
        "raw": "<f4",
        "raw_y": "<U11",
        "raw_lengths": "<i8",
        "processed": "<f4",
        "processed_y": "<U1",
        "processed_lengths": "<i8",
    },
    sha256="8654715ff5e7b3bde7627fddbb12c79ad41fa8ace00d73f36579888ecc793409",
)

_DATASET = RemoteDataset(
    folder="gesture_phase",
    tables={"gesture_phase.npz": _ARRAYS},
    sources=(
        RemoteFile(
            "https://archive.ics.uci.edu/static/public/302/gesture+phase+segmentation.zip",
            unpack=unzip,
        ),
    ),
    parse=_parse,
)


def fetch_gesture_phase(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    features: str = "processed",
) -> Any:
    """Load the phases of gestures (a label for each frame), downloading them if necessary.

    =================   ======================================
    Classes                                                  5
    Sequences                    7 videos of 3 users (subjects)
    Steps               9873 frames ("processed"), 9901 ("raw")
    Features                     32 ("processed") or 18 ("raw")
    =================   ======================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    features : {"processed", "raw"}, default="processed"
        "processed": velocity and acceleration of hands and wrists. "raw": positions of hands,
        wrists, head and spine.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 7 arrays (n_frames, 32 or 18); ``target``: list of 7 arrays (n_frames,)
        of names of phases; ``videos`` (7,) such as "a1", ``subjects`` (7,) of "a", "b" and "c",
        ``target_names``, ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_gesture_phase
    >>> gestures = fetch_gesture_phase()  # doctest: +SKIP
    >>> gestures.data[0].shape  # doctest: +SKIP
    (1743, 32)
    """
    if features not in ("processed", "raw"):
        raise ValueError(f"features must be 'processed' or 'raw', got {features!r}")
    arrays = _DATASET.load(data_home, download_if_missing)["gesture_phase.npz"]
    phases = arrays[f"{features}_y"]
    if features == "processed":
        phases = np.array([_PHASES[letter] for letter in phases])
    ends = np.cumsum(arrays[f"{features}_lengths"])[:-1]
    data, target = np.split(arrays[features].astype(np.float64), ends), np.split(phases, ends)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        videos=np.array(_VIDEOS),
        subjects=np.array([video[0] for video in _VIDEOS]),
        target_names=list(_PHASES.values()),
        feature_names=list(_PROCESSED if features == "processed" else _RAW),
        DESCR=_DESCR,
    )
