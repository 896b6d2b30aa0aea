"""The public side: one function."""

from __future__ import annotations

from typing import Any

import joblib

from regbayes.distributed import _harmonium, _hmm, _topics
from regbayes.distributed._partitions import partitions
from regbayes.harmonium import (
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
)
from regbayes.hmm import InfiniteHMM, MaxMarginInfiniteHMM
from regbayes.topics import LatentDirichlet

_FITS: dict[type, Any] = {
    InfiniteHMM: _hmm.fit,
    MaxMarginInfiniteHMM: _hmm.fit,
    LatentDirichlet: _topics.fit,
    Harmonium: _harmonium.fit,
    InfiniteHarmonium: _harmonium.fit,
    MaxMarginHarmonium: _harmonium.fit,
    InfiniteMaxMarginHarmonium: _harmonium.fit,
}


def fit(model: Any, X: Any, y: Any = None, *, client: Any = None, n_shards: int = 8) -> Any:
    """Fit a model to data that are spread over the workers of a Dask cluster.

    Sequences, documents or rows stay in the memory of the workers, with their latent variables;
    parameters go out, and sums of statistics come back. The sweep is the one that ``model.fit``
    does.

    Parameters
    ----------
    model : InfiniteHMM, MaxMarginInfiniteHMM, LatentDirichlet, or a harmonium but the regressor
        All its parameters mean what they mean for ``fit``. With a `checkpoint`, in a folder that
        all workers see, a worker that dies costs the sweeps since the last one, done again on
        another; without, all of its sweeps. Either way the result is the same, bit by bit.
        `warm_start` is not possible.
    X : dask collection, list of futures or of delayed objects, or data in memory
        A ``dask.bag`` of sequences, a ``dask.array`` of documents, a ``dask.dataframe`` of either
        (from Parquet files, for example), or partitions as they are. Every partition is a shard, in
        the layout that ``fit`` takes. What is in memory is cut into `n_shards`.
    y : the same, of labels
        In partitions as those of X. Models without labels do not look at it.
    client : dask.distributed.Client, default=None
        By default the current one.
    n_shards : int, default=8
        For data in memory. The result depends on the partitions as it does on the order of the
        rows, by rounding; not on the number of workers.

    Returns
    -------
    model
        Fitted, as if by ``model.fit(X)``; the states of the training steps (`states_`) stay with
        the workers, and are forgotten.
    """
    if client is None:
        client = _current_client()
    learn = _FITS.get(type(model))
    if learn is None:
        names = ", ".join(kind.__name__ for kind in _FITS)
        raise TypeError(
            f"{type(model).__name__} cannot be fitted to data on many machines.\nTo mend it: use "
            f"one of {names}; or fit it to what fits one machine, with its chains, folds or "
            'classes on the cluster by joblib.parallel_config("dask").'
        )
    if getattr(model, "warm_start", False):
        raise ValueError(
            "warm_start=True goes on with chains that are in memory here, and these are on the "
            "cluster.\nTo mend it: use checkpoint, and a larger n_draws."
        )
    parts = partitions(client, X, n_shards)
    targets = [None] * len(parts) if y is None else partitions(client, y, n_shards)
    if len(targets) != len(parts):
        raise ValueError(
            f"X has {len(parts)} partitions, and y {len(targets)}.\nTo mend it: give every "
            "partition of X its labels, in a partition of y."
        )
    # Chains in threads of this process, which wait for the cluster most of the time.
    with joblib.parallel_config("threading", n_jobs=getattr(model, "n_chains", 1)):
        return learn(model, client, parts, targets)


def _current_client() -> Any:
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError(
            'training on many machines needs Dask.\nTo mend it: pip install "regbayes[dask]".'
        ) from error
    return get_client()
