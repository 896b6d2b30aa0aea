"""What the data sets of Kinect skeletons have in common: stacked frames of 20 joints."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.datasets._remote import NamedArrays

N_JOINTS = 20

# Numbered as in the files; the data sets have their joints in different orders.
FEATURES = [f"joint{joint}_{axis}" for joint in range(1, N_JOINTS + 1) for axis in "xyz"]

TYPES = {"frames": "<f4", "ptr": "<i4", "y": "|u1", "subject": "|u1", "episode": "|u1"}


def numbers(text: str | bytes, n_columns: int) -> NDArray[np.float64]:
    """Rows of numbers that are separated by any white space.

    Examples
    --------
    >>> numbers("1 2\\n3 4", 2)
    array([[1., 2.],
           [3., 4.]])
    """
    values = np.array(text.split(), dtype=np.float64)
    if len(values) % n_columns:
        raise ValueError(f"{len(values)} numbers are no whole rows of {n_columns}")
    return values.reshape(-1, n_columns)


def stack(sequences: Iterable[tuple[NDArray[np.float64], int, int, int]]) -> NamedArrays:
    """Arrays from (frames, class, subject, episode) of each sequence."""
    frames, y, subject, episode = zip(*sequences, strict=True)
    return {
        "frames": np.concatenate(frames).reshape(-1, N_JOINTS, 3),
        "ptr": np.cumsum([0, *map(len, frames)]),
        "y": np.array(y),
        "subject": np.array(subject),
        "episode": np.array(episode),
    }


def split(arrays: NamedArrays) -> list[NDArray[np.float64]]:
    """The sequences, (n_frames, 60) each."""
    frames = arrays["frames"].reshape(-1, 3 * N_JOINTS).astype(np.float64)
    return np.split(frames, arrays["ptr"][1:-1])


def at_each_frame(data: list[NDArray[np.float64]], target: NDArray[Any]) -> list[NDArray[Any]]:
    """The label of each sequence, repeated for its frames."""
    return [np.full(len(frames), label) for frames, label in zip(data, target, strict=True)]
