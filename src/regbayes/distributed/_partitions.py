"""From what a user has to futures of its partitions, without passing through the client."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from regbayes.data import check_classes


def partitions(client: Any, X: Any, n_shards: int) -> list[Any]:
    """Futures of the partitions of a Dask collection; or of parts of what is in memory here."""
    if hasattr(X, "to_delayed"):
        if hasattr(X, "rechunk"):  # an array: rows are whole
            X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
        return client.compute(list(np.ravel(X.to_delayed())))
    if isinstance(X, (list, tuple)) and X and all(hasattr(part, "key") for part in X):
        from distributed import Future

        return [part if isinstance(part, Future) else client.compute(part) for part in X]
    if hasattr(X, "columns"):
        raise TypeError(
            "X is a DataFrame in the memory of this process.\nTo mend it: pass a list of sequences "
            "or an array, or make partitions of it with dask.dataframe.from_pandas."
        )
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    parts = [rows for rows in np.array_split(np.arange(n), min(n_shards, n)) if len(rows)]
    # Inside a task, and not scattered: the scheduler can give it to another worker.
    return [client.submit(_same, _safe_indexing(X, rows), pure=False) for rows in parts]


def all_classes(of_parts: list[Any], most_labels: int) -> NDArray:
    """The classes of all partitions together; `most_labels` are those of the largest."""
    known = [classes for classes in of_parts if classes is not None and len(classes)]
    if not known:
        raise ValueError(
            "y has no labels at all.\nTo mend it: give some labels, of two classes or more."
        )
    if len({classes.dtype.kind for classes in known}) > 1:
        raise ValueError(
            "the partitions of y have labels of different types.\nTo mend it: make all of them "
            "numbers, or all of them text."
        )
    classes = np.unique(np.concatenate(known))
    check_classes(classes, most_labels)
    return classes


def _same(part: Any) -> Any:
    return part
