"""The infinite HMM over shards: the sweep of :mod:`regbayes.hmm.beam`, with paths elsewhere."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.callback import with_callbacks

from regbayes import _files
from regbayes.data import Frame, Sequences
from regbayes.distributed._shards import (
    Latents,
    Place,
    Shards,
    skip,
    skip_integers,
    without_callbacks,
)
from regbayes.hmm import InfiniteHMM, beam
from regbayes.hmm._steps import cluster


@dataclass(frozen=True)
class Shard:
    """What a worker holds: some of the sequences."""

    model: beam.Model
    place: Place


@dataclass(frozen=True)
class State:
    """What a sweep changes: on the client, but for the paths."""

    known: beam.State  # without paths
    names: NDArray[np.int64]  # what the states in the paths are called now
    moves: NDArray[np.int64]  # transitions in the paths
    paths: Latents

    def put_down(self, folder: Path, name: str) -> None:
        """Before a checkpoint is written."""
        self.paths.put_down(folder, name)


class Message(NamedTuple):
    """What a worker needs to know for its part of a sweep."""

    known: beam.State
    names: NDArray[np.int64]
    rng: np.random.Generator  # for the cuts
    then: np.random.Generator | None = None  # for the paths


def init(
    shards: Shards, model: beam.Model, kind: str, n_states: int, rng: np.random.Generator
) -> State:
    """First states at random or by clusters of some of the steps, then everything given them."""
    n_states = min(n_states, shards.n_items)
    if kind == "random":
        start: Any = copy.deepcopy(rng), n_states
        skip_integers(rng, n_states, shards.n_items)
    else:
        share = min(1.0, 1000 * n_states / shards.n_items)
        some = shards.ask(pick, (int(rng.integers(2**63)), share), _concatenate)
        start = cluster(some, n_states, rng), n_states
    paths, found = shards.move(start_paths, start, partial(beam.merge, model))
    used = found.used
    found = found.keep(used)
    return State(beam.begin(model, rng, found), np.cumsum(used) - 1, found.moves, paths)


def step(shards: Shards, model: beam.Model, rng: np.random.Generator, state: State) -> State:
    """One sweep, the lines of :func:`regbayes.hmm.beam.step`: those about paths on the workers."""
    message = Message(state.known, state.names, copy.deepcopy(rng))
    least = shards.ask(least_cut, message, min, state.paths)
    skip(rng, shards.n_items)
    known = beam.let_in(model, rng, state.known, least)
    message = message._replace(known=known, then=copy.deepcopy(rng))
    paths, found = shards.move(draw_paths, message, partial(beam.merge, model), state.paths)
    skip(rng, shards.n_items)
    names = np.cumsum(found.used) - 1
    known, found = beam.drop_unused(known, found)
    known = beam.draw_transitions(model, rng, known, found)
    known = beam.draw_emissions(model, rng, known, found)
    return State(known, names, found.moves, paths)


def record(shards: Shards, model: beam.Model, state: State) -> dict[str, Any]:
    """What a draw keeps: all but the paths."""
    own = shards.ask(own_evidence, (state.known, state.names), _add, state.paths)
    joint = beam.log_prior(state.moves, state.known.transitions) + own
    return beam.describe(model, state.known, joint)


# On the workers.


def pick(shard: Shard, _: None, message: tuple[int, float]) -> NDArray:
    """Some of the steps, to find clusters by."""
    seed, share = message
    rng = np.random.default_rng([seed, shard.place.before])
    return inputs(shard)[rng.random(len(shard.model.X)) < share]


def start_paths(shard: Shard, _: None, message: Any) -> tuple[NDArray, beam.Found]:
    how, n_states = message
    if isinstance(how, np.random.Generator):
        z = shard.place.stream(how).integers(n_states, len(shard.model.X))
    else:
        z = how.predict(inputs(shard)).astype(np.int64)
    return z, beam.find(shard.model, z, n_states)


def least_cut(shard: Shard, z: NDArray, message: Message) -> float:
    now, stream = message.known.transitions, shard.place.stream(message.rng)
    return beam.draw_cuts(shard.model, stream, now, message.names[z])[1]


def draw_paths(shard: Shard, z: NDArray, message: Message) -> tuple[NDArray, beam.Found]:
    """The cuts are drawn anew, by the same numbers; states that were let in do not change them."""
    assert message.then is not None
    now, model, place = message.known.transitions, shard.model, shard.place
    cuts, _ = beam.draw_cuts(model, place.stream(message.rng), now, message.names[z])
    z = beam.draw_states(model, place.stream(message.then), message.known, cuts)
    return z, beam.find(model, z, now.n_states)


def own_evidence(shard: Shard, z: NDArray, message: tuple[beam.State, NDArray]) -> float:
    known, names = message
    return beam.own_evidence(shard.model, replace(known, z=names[z]))


def inputs(shard: Shard) -> NDArray:
    """Steps as k-means takes them: unobserved ones at the centre, symbols as indicators."""
    X = shard.model.X
    if X.ndim == 1:
        return np.eye(shard.model.emission.n_symbols)[X] * (X >= 0)[:, None]  # type: ignore[attr-defined]
    return np.nan_to_num(X)


def _add(one: float, other: float) -> float:
    return one + other


def _concatenate(one: NDArray, other: NDArray) -> NDArray:
    return np.concatenate([one, other])


# scikit-learn's side.


class Summary(NamedTuple):
    """What the client has to know of the sequences of a shard."""

    n_steps: int
    n_features: int
    names: NDArray | None
    categories: NDArray | None
    ids: NDArray | None
    n_observed: int
    largest: float
    mean: NDArray  # of the observed steps, in units of the largest
    squares: NDArray  # about that mean
    digest: str


def read(part: Any, estimator: InfiniteHMM) -> tuple[Sequences, Any]:
    """The sequences of a partition."""
    own = clone(estimator)
    sequences = own._check_training(list(part) if isinstance(part, (list, tuple)) else part, None)
    return sequences, getattr(own, "feature_names_in_", None)


def summarize(found: tuple[Sequences, Any]) -> Summary:
    sequences, names = found
    digest = _files.digest([sequences.values, sequences.starts, sequences.categories])
    values = sequences.values
    if sequences.categories is not None:
        nothing = 0, 1.0, np.zeros(1), np.zeros(1)
        return Summary(len(values), 1, names, sequences.categories, sequences.ids, *nothing, digest)
    seen = values[~np.isnan(values[:, 0])]
    largest = np.abs(seen).max() or 1.0
    small = seen / largest
    mean = small.mean(axis=0)
    squares = np.sum((small - mean) ** 2, axis=0)
    return Summary(
        len(values), values.shape[1], names, None, sequences.ids, len(seen), largest, mean,
        squares, digest,
    )  # fmt: skip


def frame(
    found: tuple[Sequences, Any],
    model: beam.Model,
    categories: NDArray | None,
    units: Frame | None,
    place: Place,
) -> Shard:
    """The sequences in the coordinates, or the symbols, of all."""
    sequences, _ = found
    X = sequences.values
    if categories is not None and sequences.categories is not None:
        codes = np.append(np.searchsorted(categories, sequences.categories), -1)
        X = codes[X]
    elif units is not None:
        X = units.enter(X)
    return Shard(replace(model, X=X, starts=sequences.starts), place)


@with_callbacks
@_fit_context(prefer_skip_nested_validation=True)
def fit(estimator: InfiniteHMM, client: Any, parts: list[Any]) -> InfiniteHMM:
    """Sample, with the sequences where they are."""
    own = without_callbacks(estimator)
    sequences = [client.submit(read, part, own, pure=False) for part in parts]
    summaries = client.gather([client.submit(summarize, each, pure=False) for each in sequences])
    _check(summaries)
    estimator.n_features_in_ = summaries[0].n_features
    if summaries[0].names is not None:
        estimator.feature_names_in_ = summaries[0].names
    model, units = _model(estimator, summaries)
    sizes = np.array([summary.n_steps for summary in summaries])
    places = [Place(int(n), int(sizes.sum())) for n in np.cumsum(sizes) - sizes]
    categories = getattr(estimator, "categories_", None)
    data = [
        client.submit(frame, each, model, categories, units, place, pure=False)
        for each, place in zip(sequences, places)
    ]
    del sequences  # the framed ones are enough; Dask reads again what it loses
    shards = Shards([summary.digest for summary in summaries], sizes, client, data)
    estimator._run(
        partial(init, shards, model, estimator.init, estimator.n_init_states),
        partial(step, shards, model),
        partial(record, shards, model),
    )
    return estimator


def _check(summaries: list[Summary]) -> None:
    for name in ("n_features", "names"):
        if len({str(getattr(summary, name)) for summary in summaries}) > 1:
            raise ValueError(
                "the partitions of X have different features.\nTo mend it: give all of them the "
                "same columns, in the same order."
            )
    known = [summary.ids for summary in summaries if summary.ids is not None]
    if known and len(np.unique(np.concatenate(known))) < sum(map(len, known)):
        raise ValueError(
            "a sequence_id is in two partitions of X, and a sequence stays with one worker.\nTo "
            "mend it: set_index('sequence_id') before, so that its rows are together."
        )


def _model(estimator: InfiniteHMM, summaries: list[Summary]) -> tuple[beam.Model, Frame | None]:
    """The model without data, and the coordinates of the data."""
    prior, width = estimator._make_prior(), estimator.beam_width
    nowhere = np.zeros(1, dtype=np.int64)
    if estimator.emission == "categorical":
        estimator.categories_ = np.unique(np.concatenate([s.categories for s in summaries]))
        estimator._frame = Frame(np.zeros(1), 1.0)
        estimator._emission = estimator._make_emission(np.empty((0, 1)), 0)
        none = np.empty(0, dtype=np.int64)
        return beam.Model(none, nowhere, estimator._emission, prior, None, width), None
    two = _two_rows(summaries)
    estimator._frame = Frame.of(two)
    n_observed = sum(summary.n_observed for summary in summaries)
    estimator._emission = estimator._make_emission(two, n_observed)
    units = None if estimator.emission == "poisson" else estimator._frame
    X = np.empty((0, two.shape[1]))
    return beam.Model(X, nowhere, estimator._emission, prior, None, width), units


def _two_rows(summaries: list[Summary]) -> NDArray:
    """Two rows with the means and the variances of all observed steps: priors ask no more."""
    largest = max(summary.largest for summary in summaries)
    scales = np.array([summary.largest / largest for summary in summaries])[:, None]
    n = np.array([summary.n_observed for summary in summaries], dtype=float)[:, None]
    means = np.array([summary.mean for summary in summaries]) * scales
    squares = np.array([summary.squares for summary in summaries]) * scales**2
    mean = np.sum(n * means, axis=0) / n.sum()
    variance = np.sum(squares + n * (means - mean) ** 2, axis=0) / n.sum()
    return np.stack([mean - np.sqrt(variance), mean + np.sqrt(variance)]) * largest
