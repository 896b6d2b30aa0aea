"""UTKinect-Action3D: ten actions, one after the other, by ten people."""

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, NamedArrays, RemoteDataset, RemoteFile
from regbayes.datasets._skeletons import (
    FEATURES,
    N_JOINTS,
    TYPES,
    at_each_frame,
    numbers,
    split,
    stack,
)

_ACTIONS = (
    "walk",
    "sitDown",
    "standUp",
    "pickUp",
    "carry",
    "throw",
    "push",
    "pull",
    "waveHands",
    "clapHands",
)

_RECORDINGS = [f"s{subject:02d}_e{episode:02d}" for subject in range(1, 11) for episode in (1, 2)]

# By the frame numbers of the label file; elsewhere the actions follow the order of their names.
_PULL_BEFORE_PUSH = ("s01_e01", "s05_e02")

_DESCR = """\
UTKinect-Action3D, skeletons
----------------------------
Ten people did ten actions one after the other, twice, before a Kinect: 20 recordings, cut into
199 sequences (one "carry" is missing) of 5829 frames in all. A frame has the positions of 20
joints, numbered as in the files.

`whole=True` joins the segments of each recording in time and labels every frame. The order in
time is that of the label file: that of `target_names`, but for s01_e01 and s05_e02, where "pull"
comes before "push". Frames between two actions are not labelled and not here, so the joined
sequence jumps; where one action ends as the next begins (7 times) that frame is there twice, once
with each label.

No split is fixed. By subject is the honest one: `GroupKFold` and its kin with `subjects`.

Source: the copy in github.com/JeslieHCI/UTKinect_3, whose actionLabel_modified.txt corrects some
bounds of the original label file; of frames with the same number the first is kept. For research.
Reference: L. Xia, C.-C. Chen, J. K. Aggarwal, "View invariant human action recognition using
histograms of 3D joints", CVPR Workshops 2012.
"""


def _segments(labels: str) -> Iterator[tuple[str, int, int, int]]:
    """(recording, action, first frame, last frame) of each segment, as listed."""
    recording = None
    for line in filter(None, map(str.strip, labels.splitlines())):
        found = re.fullmatch(r"(\w+):\s+(\d+|NaN)\s+(\d+|NaN)", line)
        if line in _RECORDINGS:
            recording = line
        elif found is None or recording is None or found[1] not in _ACTIONS:
            raise ValueError(f"cannot read {line[:40]!r} as a recording or a segment of one")
        elif found[2] != "NaN":
            yield recording, _ACTIONS.index(found[1]), int(found[2]), int(found[3])


def _parse(labels: str, *joints: str) -> dict[str, NamedArrays]:
    tables = {}
    for recording, text in zip(_RECORDINGS, joints, strict=True):
        try:
            table = numbers(text, 1 + 3 * N_JOINTS)
        except ValueError as error:
            raise ValueError(f"joints_{recording}.txt: {error}") from error
        # Some frames were written twice; `unique` points to the first of them.
        tables[recording] = table[np.unique(table[:, 0], return_index=True)[1]]
    sequences = []
    for recording, action, first, last in _segments(labels):
        table = tables[recording]
        inside = (table[:, 0] >= first) & (table[:, 0] <= last)
        subject, episode = int(recording[1:3]), int(recording[5:7])
        sequences.append((table[inside, 1:], action, subject, episode))
    return {"data.npz": stack(sequences)}


_ARRAYS = Arrays(
    types=TYPES, sha256="e7403bfca3de9240c6870fcb73a635ed2068cd9e6959c681e098f26d53771f94"
)

_REPOSITORY = (
    "https://raw.githubusercontent.com/JeslieHCI/UTKinect_3/"
    "590aede4d94d2f2f90b633bb4cefb5a50bb2996d/data/UTKinect/joints/"
)

_DATASET = RemoteDataset(
    folder="utkinect",
    tables={"data.npz": _ARRAYS},
    sources=(
        RemoteFile(_REPOSITORY + "actionLabel_modified.txt"),
        *(RemoteFile(f"{_REPOSITORY}joints_{recording}.txt") for recording in _RECORDINGS),
    ),
    parse=_parse,
)


def fetch_utkinect(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    whole: bool = False,
) -> Any:
    """Load skeletons of people in action (UTKinect), downloading them if necessary.

    =================   ==========================================
    Classes                                                     10
    Sequences           199 actions, or 20 recordings (whole=True)
    Steps                                              5829 frames
    Subjects                                                    10
    Features                                              60, real
    =================   ==========================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    whole : bool, default=False
        If False, a sequence is one action and has one label. If True, it is a recording: its
        actions are joined in time, and every frame has a label.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of arrays (n_frames, 60); ``target``: (199,) names of actions, or for
        `whole` a list of 20 arrays (n_frames,); ``frame_target``: a name for each frame in either
        case; ``subjects`` 1 to 10, ``recordings`` such as "s01_e01", ``target_names``,
        ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_utkinect
    >>> recordings = fetch_utkinect(whole=True)  # doctest: +SKIP
    >>> len(recordings.data), recordings.target[0][:2]  # doctest: +SKIP
    (20, array(['walk', 'walk'], dtype='<U9'))
    """
    arrays = _DATASET.load(data_home, download_if_missing)["data.npz"]
    data, subjects = split(arrays), arrays["subject"].astype(int)
    target: Any = np.array(_ACTIONS)[arrays["y"]]
    recordings = np.array([f"s{s:02d}_e{e:02d}" for s, e in zip(subjects, arrays["episode"])])
    frame_target = at_each_frame(data, target)
    if whole:
        pull_first = (target == "pull") & np.isin(recordings, _PULL_BEFORE_PUSH)
        in_time = np.lexsort((arrays["y"] - 1.5 * pull_first, recordings))
        joined = np.unique(recordings)
        parts = [in_time[recordings[in_time] == recording] for recording in joined]
        data = [np.concatenate([data[i] for i in part]) for part in parts]
        target = frame_target = [np.concatenate([frame_target[i] for i in p]) for p in parts]
        subjects, recordings = subjects[[part[0] for part in parts]], joined
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame_target=frame_target,
        subjects=subjects,
        recordings=recordings,
        target_names=list(_ACTIONS),
        feature_names=list(FEATURES),
        DESCR=_DESCR,
    )
