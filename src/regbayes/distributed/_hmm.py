"""Infinite HMMs over shards: the sweep of :mod:`regbayes.hmm.beam`, with paths elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.callback import with_callbacks

from regbayes import _files
from regbayes.data import Frame, Sequences, check_step_labels
from regbayes.distributed._partitions import all_classes
from regbayes.distributed._shards import (
    Latents,
    Place,
    Shards,
    copy_of,
    skip,
    skip_integers,
    without_callbacks,
)
from regbayes.hmm import MaxMarginInfiniteHMM, beam
from regbayes.hmm._chain import Start
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


def init(shards: Shards, model: beam.Model, start: Start, rng: np.random.Generator) -> State:
    """First states as `start` says, by some of the steps; then everything given them."""
    n_states = min(start.n_states, shards.n_items)
    how: Any
    if start.init == "random":
        how = copy_of(rng)
        skip_integers(rng, n_states, shards.n_items)
    elif start.init == "labels":
        how = _by_label(shards, start.n_label_states, rng)
        n_states = len(how.shares) * start.n_label_states
    else:
        share = min(1.0, 1000 * n_states / shards.n_items)
        some, _ = shards.ask(pick, (int(rng.integers(2**63)), share), _concatenate)
        how = cluster(some, n_states, rng)
    paths, found = shards.move(start_paths, (how, n_states), partial(beam.merge, model))
    used = found.used
    found = found.keep(used)
    names = np.cumsum(used) - 1
    known = draw_weights(shards, model, rng, beam.begin(model, rng, found), names, paths)
    return State(known, names, found.moves, paths)


class ByLabel(NamedTuple):
    """First states by the labels of steps, or by guesses: a state each, or clusters of them."""

    shares: NDArray  # of the classes
    n_parts: int  # states of a class
    clusters: list[Any]  # for each class, if it has several; None if none of its steps was picked
    rng: np.random.Generator  # of the guesses


def _by_label(shards: Shards, n_parts: int, rng: np.random.Generator) -> ByLabel:
    counts = shards.ask(count_labels, None, np.add)
    clusters = []
    if n_parts > 1:
        share = min(1.0, 1000 * n_parts * len(counts) / shards.n_items)
        some, y = shards.ask(pick, (int(rng.integers(2**63)), share), _concatenate)
        for label in range(len(counts)):
            own = some[y == label]
            clusters.append(cluster(own, n_parts, rng) if len(own) else None)
    how = ByLabel(counts / counts.sum(), n_parts, clusters, copy_of(rng))
    skip(rng, shards.n_items)
    return how


def step(shards: Shards, model: beam.Model, rng: np.random.Generator, state: State) -> State:
    """One sweep, the lines of :func:`regbayes.hmm.beam.step`: those about paths on the workers."""
    message = Message(state.known, state.names, copy_of(rng))
    least = shards.ask(least_cut, message, min, state.paths)
    skip(rng, shards.n_items)
    known = beam.let_in(model, rng, state.known, least)
    message = message._replace(known=known, then=copy_of(rng))
    paths, found = shards.move(draw_paths, message, partial(beam.merge, model), state.paths)
    skip(rng, shards.n_items)
    names = np.cumsum(found.used) - 1
    known, found = beam.drop_unused(known, found)
    known = beam.draw_transitions(model, rng, known, found)
    known = beam.draw_emissions(model, rng, known, found)
    known = draw_weights(shards, model, rng, known, names, paths)
    known = beam.draw_term(model, rng, known)
    return State(known, names, found.moves, paths)


def draw_weights(
    shards: Shards,
    model: beam.Model,
    rng: np.random.Generator,
    known: beam.State,
    names: NDArray,
    paths: Latents,
) -> beam.State:
    """weights | z, X, y: a round for each class, given the others. States know nothing of each
    other, so that all of them are drawn at once."""
    if model.labels is None:
        return known
    for label in range(model.labels.classifier.n_classes):
        message = known, names, label, int(rng.integers(2**63))
        found = shards.ask(pull, message, beam.merge_pulls, paths)
        known = beam.draw_pulled(rng, known, label, found)
    return known


def record(shards: Shards, model: beam.Model, state: State) -> dict[str, Any]:
    """What a draw keeps: all but the paths."""
    own = shards.ask(own_evidence, (state.known, state.names), _add, state.paths)
    joint = beam.log_prior(state.moves, state.known.transitions) + own
    return beam.describe(model, state.known, joint)


# On the workers.


def pick(shard: Shard, _: None, message: tuple[int, float]) -> tuple[NDArray, NDArray]:
    """Some of the steps, to find clusters by, and their labels."""
    seed, share = message
    rng = np.random.default_rng([seed, shard.place.before])
    some = rng.random(len(shard.model.X)) < share
    labels = shard.model.labels
    return inputs(shard)[some], np.empty(0) if labels is None else labels.y[some]


def count_labels(shard: Shard, _: None, message: None) -> NDArray:
    assert shard.model.labels is not None
    y, n_classes = shard.model.labels.y, shard.model.labels.classifier.n_classes
    return np.bincount(y[y >= 0], minlength=n_classes)


def start_paths(shard: Shard, _: None, message: Any) -> tuple[NDArray, beam.Found]:
    how, n_states = message
    if isinstance(how, np.random.Generator):
        z = shard.place.stream(how).integers(n_states, len(shard.model.X))
    elif isinstance(how, ByLabel):
        z = _states_by_label(shard, how)
    else:
        z = how.predict(inputs(shard)).astype(np.int64)
    return z, beam.find(shard.model, z, n_states)


def _states_by_label(shard: Shard, how: ByLabel) -> NDArray[np.int64]:
    assert shard.model.labels is not None
    y = shard.model.labels.y
    steps = np.cumsum(how.shares)[:-1]
    guesses = np.searchsorted(steps, shard.place.stream(how.rng).random(len(y)), side="right")
    labels = np.where(y >= 0, y, guesses)
    points, parts = inputs(shard), np.zeros_like(labels)
    for label, kmeans in enumerate(how.clusters):
        own = labels == label
        if kmeans is not None and own.any():
            parts[own] = kmeans.predict(points[own])
    return labels * how.n_parts + parts


def pull(shard: Shard, z: NDArray, message: tuple[beam.State, NDArray, int, int]) -> beam.Pull:
    """By random numbers of its own: how many a label takes is not known before."""
    known, names, label, seed = message
    rng = np.random.default_rng([seed, shard.place.before])
    return beam.pull(shard.model, rng, replace(known, z=names[z]), label)


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


def _concatenate(one: tuple, other: tuple) -> tuple:
    return tuple(np.concatenate(pair) for pair in zip(one, other))


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
    classes: NDArray | None


class Read(NamedTuple):
    """The sequences of a partition, names of their features, and labels, if any."""

    sequences: Sequences
    names: Any
    classes: NDArray | None
    codes: NDArray | None


def read(part: Any, target: Any, estimator: Any) -> Read:
    own = clone(estimator)
    sequences = own._check_training(list(part) if isinstance(part, (list, tuple)) else part, None)
    labels: Any = (None, None)
    if isinstance(own, MaxMarginInfiniteHMM):
        labels = check_step_labels(sequences, target, part=True)
    return Read(sequences, getattr(own, "feature_names_in_", None), *labels)


def summarize(found: Read) -> Summary:
    sequences, names, classes, codes = found
    digest = _files.digest(
        [sequences.values, sequences.starts, sequences.categories]
        + ([] if codes is None else [classes, codes])
    )
    values = sequences.values
    if sequences.categories is not None:
        nothing = 0, 1.0, np.zeros(1), np.zeros(1)
        return Summary(
            len(values), 1, names, sequences.categories, sequences.ids, *nothing, digest, classes
        )
    seen = values[~np.isnan(values[:, 0])]
    largest = np.abs(seen).max() or 1.0
    small = seen / largest
    mean = small.mean(axis=0)
    squares = np.sum((small - mean) ** 2, axis=0)
    return Summary(
        len(values), values.shape[1], names, None, sequences.ids, len(seen), largest, mean,
        squares, digest, classes,
    )  # fmt: skip


def frame(found: Read, estimator: Any, model: beam.Model, place: Place) -> Shard:
    """The sequences in the coordinates, or the symbols, of all; `estimator` knows them."""
    sequences, labels = found.sequences, None
    if sequences.categories is not None:
        codes = np.append(np.searchsorted(estimator.categories_, sequences.categories), -1)
        sequences = replace(sequences, values=codes[sequences.values])
    new = estimator._questions(sequences)
    if model.labels is not None:
        assert found.classes is not None
        own = found.classes.astype(estimator.classes_.dtype)
        y = np.append(np.searchsorted(estimator.classes_, own), -1)[found.codes]
        labels = replace(model.labels, inputs=new.inputs, y=y)
    return Shard(replace(model, X=new.X, starts=new.starts, labels=labels), place)


@with_callbacks
@_fit_context(prefer_skip_nested_validation=True)
def fit(estimator: Any, client: Any, parts: list[Any], targets: list[Any]) -> Any:
    """Sample, with the sequences where they are."""
    own = without_callbacks(estimator)
    sequences = [
        client.submit(read, part, target, own, pure=False) for part, target in zip(parts, targets)
    ]
    summaries = client.gather([client.submit(summarize, each, pure=False) for each in sequences])
    _check(summaries)
    estimator.n_features_in_ = summaries[0].n_features
    if summaries[0].names is not None:
        estimator.feature_names_in_ = summaries[0].names
    sizes = np.array([summary.n_steps for summary in summaries])
    model = _model(estimator, summaries, int(sizes.max()))
    for name in ("_frame", "categories_", "classes_"):
        if hasattr(estimator, name):
            setattr(own, name, getattr(estimator, name))
    places = [Place(int(n), int(sizes.sum())) for n in np.cumsum(sizes) - sizes]
    data = [
        client.submit(frame, each, own, model, place, pure=False)
        for each, place in zip(sequences, places)
    ]
    del sequences  # the framed ones are enough; Dask reads again what it loses
    shards = Shards([summary.digest for summary in summaries], sizes, client, data)
    estimator._run(
        partial(init, shards, model, estimator._start),
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


def _model(estimator: Any, summaries: list[Summary], most_steps: int) -> beam.Model:
    """The model without data; the estimator learns the coordinates of the data, and the classes."""
    if estimator.emission == "categorical":
        estimator.categories_ = np.unique(np.concatenate([s.categories for s in summaries]))
        estimator._frame = Frame(np.zeros(1), 1.0)
        estimator._emission = estimator._make_emission(np.empty((0, 1)), 0)
        X: NDArray = np.empty(0, dtype=np.int64)
        n_inputs = len(estimator.categories_) + 1
    else:
        two = _two_rows(summaries)
        estimator._frame = Frame.of(two)
        n_observed = sum(summary.n_observed for summary in summaries)
        estimator._emission = estimator._make_emission(two, n_observed)
        X, n_inputs = np.empty((0, two.shape[1])), two.shape[1] + 1
    labels = None
    if isinstance(estimator, MaxMarginInfiniteHMM):
        estimator.classes_ = all_classes([s.classes for s in summaries], most_steps)
        estimator._classifier = estimator._make_classifier(n_inputs)
        nobody = np.empty((0, n_inputs)), np.empty(0, dtype=np.int64)
        labels = beam.Labels(*nobody, estimator._classifier)
    nowhere = np.zeros(1, dtype=np.int64)
    prior, width = estimator._make_prior(), estimator.beam_width
    return beam.Model(X, nowhere, estimator._emission, prior, labels, width)


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
