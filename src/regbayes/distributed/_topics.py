"""Latent Dirichlet allocation over shards: the sweep of :mod:`regbayes.topics.gibbs`, with the
topics of tokens elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import _fit_context, clone
from sklearn.callback import with_callbacks

from regbayes import _files, chains
from regbayes.data import Documents, check_documents
from regbayes.distributed._shards import (
    Latents,
    Place,
    Shards,
    copy_of,
    skip,
    skip_integers,
    without_callbacks,
)
from regbayes.kernels.topics import (
    Corpus,
    Topics,
    WordTopics,
    as_pairs,
    count_word_topics,
    draw_topics_given,
    empty_topics,
    make_corpus,
    merge_word_topics,
    settle_given,
    topic_seats,
    topic_totals,
    without_gaps,
    word_seats,
)
from regbayes.topics import LatentDirichlet, gibbs


@dataclass(frozen=True)
class Shard:
    """What a worker holds: some of the documents."""

    model: gibbs.Model
    place: Place


class Counts(NamedTuple):
    """What the tokens of some documents say about all else."""

    seats: NDArray[np.int64]  # by topic, see `kernels.topics.topic_seats`
    words: WordTopics


@dataclass(frozen=True)
class State:
    """What a sweep changes: on the client, but for the topics of tokens."""

    known: gibbs.State  # without those
    counts: Counts
    tokens: Latents

    def put_down(self, folder: Path, name: str) -> None:
        """Before a checkpoint is written."""
        self.tokens.put_down(folder, name)


class Message(NamedTuple):
    """What a worker needs to know for a sweep: topics that were drawn, or counts to settle by."""

    known: gibbs.State
    words: WordTopics | None
    rng: np.random.Generator


def init(shards: Shards, model: gibbs.Model, rng: np.random.Generator) -> State:
    """Random topics of tokens, then topics."""
    tokens, counts = shards.move(start, copy_of(rng), partial(merge, model.n_topics))
    skip_integers(rng, model.n_topics, shards.n_items)
    known = gibbs.blank(model, np.empty(0, dtype=np.int32))
    draw_topics_given(rng, counts.words, known.beta, model.base, known.topics)
    return State(known, counts, tokens)


def step(shards: Shards, model: gibbs.Model, rng: np.random.Generator, state: State) -> State:
    """One sweep, the lines of :func:`regbayes.topics.gibbs.step`."""
    known = state.known
    settling = known.n_sweeps < model.n_settle
    message = Message(
        replace(known, topics=empty_topics(0, 0) if settling else pack(known.topics)),
        state.counts.words if settling else None,
        copy_of(rng),
    )
    tokens, counts = shards.move(sweep, message, partial(merge, model.n_topics), state.tokens)
    skip(rng, shards.n_items)
    if not gibbs.has_fixed_concentrations(model):
        known = gibbs.draw_hyperparameters(model, rng, known, find(model, counts))
    known = replace(known, n_sweeps=known.n_sweeps + 1)
    if known.n_sweeps >= model.n_settle:
        draw_topics_given(rng, counts.words, known.beta, model.base, known.topics)
    return State(known, counts, tokens)


def record(model: gibbs.Model, state: State) -> dict[str, Any]:
    """What a draw keeps."""
    joint = gibbs.log_prior(model, state.known, find(model, state.counts))
    return gibbs.describe(state.known, joint, *as_pairs(state.counts.words, model.n_topics))


def find(model: gibbs.Model, counts: Counts) -> gibbs.Found:
    totals = topic_totals(counts.words, model.n_topics)
    return gibbs.Found(counts.seats, word_seats(counts.words), totals)


def merge(n_topics: int, one: Counts, other: Counts) -> Counts:
    """What the tokens of both say."""
    width = max(one.seats.shape[1], other.seats.shape[1])
    seats = sum(np.pad(s, [(0, 0), (0, width - s.shape[1])]) for s in (one.seats, other.seats))
    return Counts(np.asarray(seats), merge_word_topics(one.words, other.words, n_topics))


def pack(topics: Topics) -> Topics:
    """Without the room that words do not need, to travel."""
    used = np.arange(topics.cells.shape[1]) < topics.sizes[:, None]
    return Topics(topics.cells[used], topics.shares[used], topics.sizes)


def unpack(packed: Topics, n_topics: int) -> Topics:
    """The other way."""
    topics = empty_topics(len(packed.sizes), n_topics)._replace(sizes=packed.sizes)
    used = np.arange(n_topics) < packed.sizes[:, None]
    topics.cells[used], topics.shares[used] = packed.cells, packed.shares
    return topics


# On the workers.


def start(shard: Shard, _: None, rng: np.random.Generator) -> tuple[NDArray, Counts]:
    n_topics, n_tokens = shard.model.n_topics, len(shard.model.corpus.words)
    z = shard.place.stream(rng).integers(n_topics, n_tokens).astype(np.int32)
    return z, count(shard, z)


def sweep(shard: Shard, z: NDArray, message: Message) -> tuple[NDArray, Counts]:
    known, model = replace(message.known, z=z.copy()), shard.model
    stream: Any = shard.place.stream(message.rng)
    if message.words is None:
        known = replace(known, topics=unpack(known.topics, model.n_topics))
        known = gibbs.draw_z(model, stream, known)
    else:
        nobody = gibbs.margins(model, known)
        alpha = known.proportions.alpha
        settle_given(stream, model.corpus, known.z, alpha, known.beta, nobody, message.words)
    return known.z, count(shard, known.z)


def count(shard: Shard, z: NDArray) -> Counts:
    corpus, n_topics = shard.model.corpus, shard.model.n_topics
    words = without_gaps(count_word_topics(corpus, z, n_topics))
    return Counts(topic_seats(corpus, z, n_topics), words)


# scikit-learn's side.


class Summary(NamedTuple):
    """What the client has to know of the documents of a shard."""

    n_words: int
    names: NDArray | None
    sizes: NDArray[np.int64]
    digest: str


def read(part: Any, estimator: LatentDirichlet) -> tuple[Documents, Any]:
    """The documents of a partition."""
    own = clone(estimator)
    documents = check_documents(own, part)
    return documents, getattr(own, "feature_names_in_", None)


def summarize(found: tuple[Documents, Any]) -> Summary:
    table = found[0].counts
    sizes = np.asarray(table.sum(axis=1)).ravel()
    return Summary(table.shape[1], found[1], sizes, _files.digest(table))


def hold(found: tuple[Documents, Any], model: gibbs.Model, place: Place) -> Shard:
    table = found[0].counts
    corpus = make_corpus(table.indptr, table.indices, table.data, table.shape[1])
    return Shard(replace(model, corpus=corpus), place)


@with_callbacks
@_fit_context(prefer_skip_nested_validation=True)
def fit(
    estimator: LatentDirichlet, client: Any, parts: list[Any], targets: list[Any]
) -> LatentDirichlet:
    """Sample, with the documents where they are."""
    own = without_callbacks(estimator)
    documents = [client.submit(read, part, own, pure=False) for part in parts]
    summaries = client.gather([client.submit(summarize, each, pure=False) for each in documents])
    if len({(summary.n_words, str(summary.names)) for summary in summaries}) > 1:
        raise ValueError(
            "the partitions of X have different words.\nTo mend it: give all of them the same "
            "columns, in the same order."
        )
    n_words = estimator.n_features_in_ = summaries[0].n_words
    if summaries[0].names is not None:
        estimator.feature_names_in_ = summaries[0].names
    lengths = np.concatenate([summary.sizes for summary in summaries])
    nothing = Documents(csr_array((len(lengths), n_words), dtype=np.int64))
    model = estimator._model(nothing, estimator.n_topics, estimator._proportions)
    sizes = np.array([summary.sizes.sum() for summary in summaries])
    places = [Place(int(n), int(sizes.sum())) for n in np.cumsum(sizes) - sizes]
    data = [
        client.submit(hold, each, model, place, pure=False)
        for each, place in zip(documents, places)
    ]
    del documents
    # The client knows the lengths of documents, and none of their words.
    starts = np.concatenate([[0], np.cumsum(lengths)])
    none = np.empty(0, dtype=np.int32)
    empty = Corpus(none, starts, none.astype(np.int64), np.zeros(n_words + 1, dtype=np.int64))
    model = replace(model, corpus=empty)
    shards = Shards([summary.digest for summary in summaries], sizes, client, data)
    trace = chains.run_for(
        estimator,
        partial(init, shards, model),
        partial(step, shards, model),
        partial(record, model),
        chains.draw_seed(estimator.random_state, estimator.checkpoint),
    )
    return estimator._learn_anew(trace, nothing)
