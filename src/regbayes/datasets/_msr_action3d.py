"""MSR Action3D: twenty actions by ten people."""

import os
import re
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from regbayes.datasets._remote import Arrays, NamedArrays, RemoteDataset, RemoteFile, unzip
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
    "high arm wave",
    "horizontal arm wave",
    "hammer",
    "hand catch",
    "forward punch",
    "high throw",
    "draw X",
    "draw tick",
    "draw circle",
    "hand clap",
    "two hand wave",
    "side boxing",
    "bend",
    "forward kick",
    "side kick",
    "jogging",
    "tennis swing",
    "tennis serve",
    "golf swing",
    "pickup and throw",
)

# Numbers, from 1, of the actions of the three subsets in which results are often given.
_SUBSETS = {
    "AS1": (2, 3, 5, 6, 10, 13, 18, 20),
    "AS2": (1, 4, 7, 8, 9, 11, 12, 14),
    "AS3": (6, 14, 15, 16, 17, 18, 19, 20),
}

# (action, subject, episode), from 1, of the files that are not in files_used_in_cvpr12_paper.txt.
_UNUSED = {
    (2, 3, 2),
    (4, 3, 1),
    (7, 4, 1),
    (13, 9, 1),
    (13, 9, 2),
    (13, 9, 3),
    (14, 3, 1),
    (20, 7, 1),
    (20, 7, 3),
    (20, 10, 3),
}

_DESCR = """\
MSR Action3D, skeletons
-----------------------
567 sequences of 23478 frames: ten people did twenty actions two or three times before a depth
camera (some are missing). A frame has the positions of 20 joints in space ("Real3D"), numbered as
in the files.

In ten sequences the skeletons are missing or wrong; papers use the other 557, and so does this
function unless `usable_only=False`. The published split is by subject: 1, 3, 5, 7 and 9 to train
(284 sequences), the others to test (273). `subsets` names the actions of AS1, AS2 and AS3.

Source: the copy in github.com/yavuzKomecoglu/MSR-Action-Recognition. For research.
References: W. Li, Z. Zhang, Z. Liu, "Action recognition based on a bag of 3D points", CVPR4HB 2010.
J. Wang, Z. Liu, Y. Wu, J. Yuan, "Mining actionlet ensemble for action recognition with depth
cameras", CVPR 2012 (the 557).
"""


def _parse(files: dict[str, bytes]) -> dict[str, NamedArrays]:
    """Arrays from files such as a01_s02_e03_skeleton3D.txt: x, y, z, confidence of each joint."""
    sequences = []
    for name in sorted(files):
        if found := re.fullmatch(r"a(\d\d)_s(\d\d)_e(\d\d)_skeleton3D\.txt", name):
            action, subject, episode = map(int, found.groups())
            try:
                frames = numbers(files[name], 4 * N_JOINTS).reshape(-1, N_JOINTS, 4)[:, :, :3]
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            sequences.append((frames, action - 1, subject, episode))
    if not sequences:
        raise ValueError("the archive holds no skeletons")
    return {"data.npz": stack(sequences)}


_ARRAYS = Arrays(
    types=TYPES, sha256="42df6216c1605113336bc153dafb780dc36ffd934448e7a806982215f97b6192"
)

_DATASET = RemoteDataset(
    folder="msr_action3d",
    tables={"data.npz": _ARRAYS},
    # One archive of the repository rather than its 567 files one by one.
    sources=(
        RemoteFile(
            "https://github.com/yavuzKomecoglu/MSR-Action-Recognition/archive/"
            "46d870ff14f157f87ce431def3c12af350bdc87f.zip",
            unpack=unzip,
        ),
    ),
    parse=_parse,
)


def fetch_msr_action3d(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    usable_only: bool = True,
) -> Any:
    """Load skeletons of people in action (MSR Action3D), downloading them if necessary.

    =================   ==========================
    Classes                                     20
    Sequences           557 (567 with unusable ones)
    Subjects                                    10
    Features                              60, real
    =================   ==========================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    usable_only : bool, default=True
        If True, leave out ten sequences without proper skeletons, as papers do.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: list of 557 or 567 arrays (n_frames, 60); ``target``: names of actions, one for
        each sequence; ``frame_target``: list of arrays (n_frames,) that repeat it; ``subjects``
        1 to 10, ``episodes`` 1 to 3, ``split`` of "train" and "test" (by subject, as published),
        ``subsets`` (names of the actions of "AS1", "AS2" and "AS3"), ``target_names``,
        ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_msr_action3d
    >>> actions = fetch_msr_action3d()  # doctest: +SKIP
    >>> sum(actions.split == "train"), sum(actions.split == "test")  # doctest: +SKIP
    (284, 273)
    """
    arrays = _DATASET.load(data_home, download_if_missing)["data.npz"]
    keys = np.column_stack([arrays["y"] + 1, arrays["subject"], arrays["episode"]]).astype(int)
    kept = [i for i, key in enumerate(keys) if not (usable_only and tuple(key) in _UNUSED)]
    actions, subjects, episodes = keys[kept].T
    sequences = split(arrays)
    data, target = [sequences[i] for i in kept], np.array(_ACTIONS)[actions - 1]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame_target=at_each_frame(data, target),
        subjects=subjects,
        episodes=episodes,
        split=np.where(subjects % 2, "train", "test"),
        subsets={name: [_ACTIONS[a - 1] for a in actions] for name, actions in _SUBSETS.items()},
        target_names=list(_ACTIONS),
        feature_names=list(FEATURES),
        DESCR=_DESCR,
    )
