"""The numbers behind pictures, for matplotlib here and for the report's own charts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def size_shares(sizes: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every number from the smallest size to the largest, and the share of draws that have it.

    Examples
    --------
    >>> numbers, shares = size_shares([3, 3, 5, 3])
    >>> numbers.tolist(), shares.tolist()
    ([3, 4, 5], [0.75, 0.0, 0.25])
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    times = np.bincount(sizes - sizes.min())
    return sizes.min() + np.arange(len(times)), times / len(sizes)


def confusion(
    truth: NDArray[np.intp], answers: NDArray[np.intp], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How often class i is answered by class j, and the shares of that in each row.

    Examples
    --------
    >>> counts, shares = confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), 3)
    >>> counts.tolist(), shares.tolist()
    ([[1, 1, 0], [0, 1, 0], [0, 0, 0]], [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    """
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(counts, (truth, answers), 1)
    return counts, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
