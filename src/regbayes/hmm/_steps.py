"""What all HMMs do with the steps of sequences before and after inference."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from regbayes.data import Frame, Sequences


def observed_steps(sequences: Sequences) -> NDArray:
    """The steps of real sequences that are not missing."""
    return sequences.values[~np.isnan(sequences.values[:, 0])]


def clusters(
    points: NDArray, steps: NDArray, n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A cluster for each of the `steps`, by k-means on `points`: first states of a chain."""
    return cluster(points, n_clusters, rng).predict(steps).astype(np.int64)


def cluster(points: NDArray, n_clusters: int, rng: np.random.Generator) -> KMeans:
    """K-means on `points`, or on some of them: more would find the same places."""
    some = points[rng.permutation(len(points))[: 1000 * n_clusters]]
    n_clusters = min(n_clusters, len(np.unique(some, axis=0)))
    kmeans = KMeans(n_clusters, n_init=1, random_state=int(rng.integers(2**31)))
    # Chains have threads of their own. Points that differ by rounding only are one to k-means,
    # which says so; a first guess may have fewer clusters.
    with threadpool_limits(limits=1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kmeans.fit(some)


def log_units(sequences: Sequences, frame: Frame) -> NDArray:
    """What log densities lose on the way from the units of a frame to those of X."""
    observed = ~np.isnan(sequences.values[:, 0])
    per_sequence = np.add.reduceat(observed, sequences.starts[:-1], dtype=np.int64)
    return per_sequence * sequences.values.shape[1] * np.log(frame.unit)
