"""Gibbs sampling for topic models, with a margin on the labels of documents or without.

    theta_d ~ Dirichlet(alpha),  phi_k ~ Dirichlet(beta),  z_i ~ theta_d,  w_i ~ phi_{z_i}

is latent Dirichlet allocation (Blei, Ng & Jordan 2003; Griffiths & Steyvers 2004), times the margin
of a linear classifier of the shares of topics in a document: Gibbs MedLDA (Zhu, Chen, Perkins &
Zhang 2014), here with the multi-class margin of :mod:`regbayes.kernels.margin`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from regbayes.data import Documents
from regbayes.kernels.documents import expect_counts
from regbayes.kernels.labels import LabelTerm, draw_label_weights
from regbayes.kernels.random import draw_gamma
from regbayes.kernels.topics import (
    Corpus,
    Margins,
    Topics,
    count_seats,
    count_topics,
    count_words,
    draw_assignments,
    draw_topics,
    empty_topics,
    make_corpus,
    settle,
    sum_log_rests,
)
from regbayes.margin import GibbsClassifier
from regbayes.priors import (
    AsymmetricDirichlet,
    Fixed,
    GammaPrior,
    HierarchicalProportions,
    Proportions,
)
from regbayes.priors._common import log_rising
from regbayes.priors.proportions import draw_tables

_NO_COUNTS = np.empty((0, 0))


@dataclass(frozen=True)
class Labels:
    """The labelled half of a model: labels (-1: none), and the law of the classifier."""

    y: NDArray[np.int64]
    classifier: GibbsClassifier


@dataclass(frozen=True)
class Model:
    """What stays fixed over a chain."""

    corpus: Corpus
    n_topics: int
    proportions: AsymmetricDirichlet | HierarchicalProportions
    beta: Fixed | GammaPrior
    labels: Labels | None = None
    base: NDArray = field(
        default_factory=lambda: _NO_COUNTS
    )  # counts [V, K] of documents seen before
    n_settle: int = 0  # sweeps of the fast kind, to begin with
    n_threads: int = 1


@dataclass(frozen=True)
class State:
    """What a sweep changes."""

    z: NDArray[np.int32]
    topics: Topics
    proportions: Proportions
    beta: float
    weights: NDArray  # [L, K + 1], with the intercepts; L = 0 without labels
    term: LabelTerm | None
    n_sweeps: int


def init(model: Model, rng: np.random.Generator) -> State:
    """Random topics, or those that counts from before suggest."""
    corpus = model.corpus
    state = blank(model, rng.integers(model.n_topics, size=len(corpus.words)).astype(np.int32))
    if len(model.base):  # topics as they were, before the first tokens are given to them
        nothing = make_corpus(np.zeros(1, int), np.zeros(0, int), np.zeros(0, int), corpus.n_words)
        draw_topics(rng, nothing, state.z[:0], state.beta, model.base, state.topics)
        return draw_phi(model, rng, draw_z(model, rng, state))
    return draw_phi(model, rng, state)


def blank(model: Model, z: NDArray[np.int32]) -> State:
    """Concentrations at their prior means, and room for the topics."""
    K, term, weights = model.n_topics, None, np.zeros((0, model.n_topics + 1))
    if model.labels is not None:
        term = model.labels.classifier.init()
        weights = np.zeros((model.labels.classifier.n_classes, K + 1))
    topics = empty_topics(model.corpus.n_words, K)
    return State(z, topics, model.proportions.init(K), model.beta.mean, weights, term, 0)


def step(model: Model, rng: np.random.Generator, state: State) -> State:
    """One sweep; every line is one conditional, with theta integrated out."""
    settling = state.n_sweeps < model.n_settle
    state = (settle_z if settling else draw_z)(model, rng, state)  # z | phi, alpha, weights
    if not has_fixed_concentrations(model):
        state = draw_hyperparameters(model, rng, state, find(model, state.z))  # without phi
    state = draw_weights(model, rng, state)  # weights, nu | z, y
    state = replace(state, n_sweeps=state.n_sweeps + 1)
    if state.n_sweeps < model.n_settle:
        return state  # the next sweep asks for no phi
    return draw_phi(model, rng, state)  # phi | z, beta


def draw_z(model: Model, rng: np.random.Generator, state: State) -> State:
    """z_i = k ∝ (n_dk + alpha_k) phi_k(w_i) exp(-2 C hinge), token by token."""
    draw_assignments(
        rng,
        model.corpus,
        state.z,
        state.proportions.alpha,
        state.topics,
        margins(model, state),
        model.n_threads,
    )
    return state


def settle_z(model: Model, rng: np.random.Generator, state: State) -> State:
    """The same with phi at its mean given the last sweep: fast, and not exact (decision 013)."""
    settle(
        rng,
        model.corpus,
        state.z,
        state.proportions.alpha,
        state.beta,
        margins(model, state),
        model.n_threads,
    )
    return state


def margins(model: Model, state: State) -> Margins:
    """Labels and classifier in the form the kernels read."""
    weights = np.ascontiguousarray(state.weights.T)
    if model.labels is None:
        return Margins(np.empty(0, dtype=np.int64), weights, 0.0, 0.0)
    law = model.labels.classifier
    return Margins(model.labels.y, weights, float(law.C), float(law.cost))


class Found(NamedTuple):
    """What the topics of tokens say about the concentrations, see `kernels.topics.count_seats`."""

    by_topic: NDArray[np.int64]
    by_word: NDArray[np.int64]
    totals: NDArray  # tokens of the topics


def find(model: Model, z: NDArray) -> Found:
    """What these say."""
    seats = count_seats(model.corpus, z, model.n_topics, model.n_threads)
    return Found(seats[0], seats[1], np.bincount(z, minlength=model.n_topics))


def has_fixed_concentrations(model: Model) -> bool:
    return model.proportions.is_fixed and isinstance(model.beta, Fixed)


def draw_hyperparameters(
    model: Model, rng: np.random.Generator, state: State, found: Found
) -> State:
    """alpha | z and beta | z by counts of tables (Teh et al. 2006, appendix A)."""
    corpus = model.corpus
    sizes = np.diff(corpus.starts).astype(np.float64)
    proportions = model.proportions.draw(rng, state.proportions, found.by_topic, sizes)
    beta = state.beta
    if isinstance(model.beta, GammaPrior):
        # beta ~ Gamma(shape + tables, rate - V sum_k log q_k), q_k ~ Beta(V beta, n_k)
        n_words = corpus.n_words
        tables = draw_tables(rng, found.by_word[None], np.array([beta])).sum()
        totals = found.totals.astype(np.float64)
        rate = model.beta.rate + n_words * sum_log_rests(rng, n_words * beta, totals)
        beta = max(draw_gamma(rng, model.beta.shape + tables) / rate, 1e-100)
    return replace(state, proportions=proportions, beta=beta)


def draw_weights(model: Model, rng: np.random.Generator, state: State) -> State:
    """weights | z, y by augmentation (000, Eqs. 19-23), then their scale."""
    if model.labels is None or state.term is None:
        return state
    weights, everyone = state.weights.copy(), np.arange(model.corpus.n_documents)
    inputs = with_constant(shares(model, state.z))
    draw_label_weights(rng, inputs, model.labels.y, everyone, weights, state.term)
    term = model.labels.classifier.draw_term(rng, state.term, weights[None])
    return replace(state, weights=weights, term=term)


def draw_phi(model: Model, rng: np.random.Generator, state: State) -> State:
    """phi_k ~ Dirichlet(beta + n_k), anew in the same memory."""
    draw_topics(rng, model.corpus, state.z, state.beta, model.base, state.topics, model.n_threads)
    return state


def shares(model: Model, z: NDArray) -> NDArray:
    """z-bar: shares of the topics among the tokens of every document; zero in empty ones."""
    out = np.zeros((model.corpus.n_documents, model.n_topics))
    count_topics(model.corpus.starts, z, out)
    return out / np.maximum(np.diff(model.corpus.starts), 1)[:, None]


def with_constant(table: NDArray) -> NDArray:
    """The inputs of the classifier."""
    return np.column_stack([table, np.ones(len(table))])


def log_joint(model: Model, state: State) -> float:
    """log p(w, z | alpha, beta) + log phi(y), with theta and phi integrated out: to watch."""
    value = log_prior(model, state, find(model, state.z))
    if model.labels is not None:
        scores = with_constant(shares(model, state.z)) @ state.weights.T
        value -= (
            2
            * model.labels.classifier.C
            * hinge_losses(scores, model.labels.y, model.labels.classifier.cost).sum()
        )
    return float(value)


def log_prior(model: Model, state: State, found: Found) -> float:
    """log p(w, z | alpha, beta)."""
    corpus, alpha, n_words = model.corpus, state.proportions.alpha, model.corpus.n_words
    by_topic, by_word, totals = found
    customers = np.arange(by_topic.shape[1])
    value = np.sum(by_topic * np.log(alpha[:, None] + customers))
    value -= log_rising(alpha.sum(), np.diff(corpus.starts)).sum()
    value += np.sum(by_word * np.log(state.beta + np.arange(len(by_word))))
    value -= log_rising(n_words * state.beta, totals).sum()
    return float(value)


def hinge_losses(scores: NDArray, y: NDArray, cost: float) -> NDArray:
    """max(0, cost + best other score - own score) of every labelled document."""
    known = np.flatnonzero(y >= 0)
    scores, own = scores[known] + cost, scores[known, y[known]]
    scores[np.arange(len(known)), y[known]] = -np.inf
    return np.maximum(0.0, scores.max(axis=1) - own)


def record(model: Model, state: State) -> Mapping[str, Any]:
    """What a draw keeps: sizes to look at, and counts of words in topics to predict with."""
    cells, counts = count_words(model.corpus, state.z, model.n_topics, model.n_threads)
    kept = describe(state, log_joint(model, state), cells, counts)
    if state.term is not None:
        kept |= {"weights": state.weights, "nu": state.term.nu}
    return kept


def describe(state: State, joint: float, cells: NDArray, counts: NDArray) -> dict[str, Any]:
    """A draw without labels."""
    n_topics = len(state.proportions.alpha)
    return {
        "n_topics": len(np.unique(cells % n_topics)),
        "alpha": state.proportions.alpha.copy(),
        "beta": state.beta,
        "log_joint": joint,
        "cells": cells,  # word * K + topic
        "counts": counts,
    }


def mean_topics(
    draws: Sequence[Mapping[str, Any]], n_words: int, base: NDArray = _NO_COUNTS
) -> NDArray:
    """E[phi | z] = (n_kw + base_kw + beta) / (sum of that over w), the mean over draws, (V, K)."""
    n_topics = len(draws[0]["alpha"])
    known = base if len(base) else np.zeros((n_words, n_topics))
    total, from_base, from_beta = np.zeros((n_words, n_topics)), 0.0, 0.0
    for draw in draws:
        sums = np.bincount(draw["cells"] % n_topics, draw["counts"], minlength=n_topics)
        scales = 1.0 / (sums + known.sum(axis=0) + n_words * draw["beta"])
        total.ravel()[draw["cells"]] += draw["counts"] * scales[draw["cells"] % n_topics]
        from_base, from_beta = from_base + scales, from_beta + draw["beta"] * scales
    return (total + known * from_base + from_beta) / len(draws)


def mean_counts(draws: Sequence[Mapping[str, Any]], n_words: int) -> NDArray:
    """Counts of words in topics, the mean over draws, of shape (V, K)."""
    total = np.zeros((n_words, len(draws[0]["alpha"])))
    for draw in draws:
        total.ravel()[draw["cells"]] += draw["counts"]
    return total / len(draws)


class Summary(NamedTuple):
    """Posterior means over the draws of one chain: topics of one chain keep their names."""

    alpha: NDArray  # [K]
    phi: NDArray  # [V, K]
    weights: NDArray  # [L, K + 1]


def summarize(draws: Sequence[Mapping[str, Any]], n_words: int, only_used: bool) -> Summary:
    """The means, of all topics or of those that have words in half of the draws."""
    n_topics = len(draws[0]["alpha"])
    used = np.mean([np.isin(range(n_topics), d["cells"] % n_topics) for d in draws], axis=0) >= 0.5
    kept = used if only_used and used.any() else np.ones(len(used), dtype=bool)
    phi = np.ascontiguousarray(mean_topics(draws, n_words)[:, kept])
    alpha = np.mean([draw["alpha"][kept] for draw in draws], axis=0)
    weights = np.mean([draw["weights"] for draw in draws], axis=0)
    return Summary(alpha, phi, weights[:, np.append(kept, True)])


def expected_counts(
    documents: Documents, alpha: NDArray, phi: NDArray, n_threads: int = 1
) -> NDArray:
    """E[n_dk | w_d], the tokens of every topic in new documents, by CVB0."""
    table = documents.counts
    by_topic, *_ = expect_counts(
        table.indptr, table.indices, table.data, alpha, phi, _NO_COUNTS, np.empty((0, len(alpha))),
        1e-3, 100, n_threads,
    )  # fmt: skip
    return by_topic


def proportions_of(
    documents: Documents, alpha: NDArray, phi: NDArray, n_threads: int = 1
) -> NDArray:
    """E[theta_d | w_d] of new documents."""
    total = alpha + expected_counts(documents, alpha, phi, n_threads)
    return total / total.sum(axis=1, keepdims=True)


def completion(
    documents: Documents, alpha: NDArray, phi: NDArray, n_threads: int = 1
) -> tuple[float, int]:
    """log p of every second token of the documents given the others, and how many they are.

    Document completion (Wallach et al. 2009): theta is found from the first half.
    """
    table = documents.counts
    ends = np.cumsum(table.data)
    before = ends - table.data  # tokens in front of a cell; parity runs through all documents
    second = ends // 2 - before // 2
    halves = []
    for data in (table.data - second, second):
        half = table.copy()
        half.data = data
        half.eliminate_zeros()
        halves.append(half)
    theta = proportions_of(Documents(halves[0]), alpha, phi, n_threads)
    asked = halves[1].tocoo()
    p = np.einsum("ik,ik->i", theta[asked.row], phi[asked.col])
    return float(np.sum(asked.data * np.log(p))), int(asked.data.sum())


def average_scores(
    documents: Documents, draws: Sequence[Mapping[str, Any]], n_threads: int = 1
) -> NDArray:
    """Mean scores of the classes over draws; topics without tokens have no say."""
    total = np.zeros((len(documents), len(draws[0]["weights"])))
    for draw in draws:
        phi = mean_topics([draw], documents.n_words)
        used = np.isin(range(phi.shape[1]), draw["cells"] % phi.shape[1])
        phi = np.ascontiguousarray(phi[:, used])
        found = expected_counts(documents, draw["alpha"][used], phi, n_threads)
        weights = draw["weights"][:, np.append(used, True)]
        total += with_constant(found / documents.sizes[:, None]) @ weights.T
    return total / len(draws)


def log_label_shares(scores: NDArray, C: float, cost: float) -> NDArray:
    """log of phi(y | scores), normalised over the labels."""
    losses = [hinge_losses(scores, np.full(len(scores), y), cost) for y in range(scores.shape[1])]
    return log_softmax(-2 * C * np.column_stack(losses), axis=1)
