"""What a fitted infinite HMM says about new sequences, one posterior draw after another.

A draw is a finite HMM over the states that were in use; the little mass that it leaves for others
is shared out among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.hmm.emissions import Emission, NoEmission, Parameters
from regbayes.kernels.batch import draw_paths, most_likely_paths, smooth
from regbayes.kernels.chain import advance
from regbayes.kernels.labels import LabelTerm
from regbayes.kernels.votes import (
    add_log_free_labels,
    add_log_margins,
    add_votes,
    answers,
    each_answer,
)
from regbayes.margin import GibbsClassifier

Draw = Mapping[str, Any]


@dataclass(frozen=True)
class Recalled:
    """A draw, in the form that the kernels read."""

    start: NDArray
    matrix: NDArray
    parameters: Parameters
    weights: NDArray | None = None
    term: LabelTerm | None = None


@dataclass(frozen=True)
class Questions:
    """New sequences: what emissions read, where they start, and what classifiers read."""

    X: NDArray
    starts: NDArray[np.int64]
    inputs: NDArray


def recall(draw: Draw, emission: Emission, classifier: GibbsClassifier | None = None) -> Recalled:
    # Arrays of a memory-mapped model are read-only, another type to numba: it would compile anew.
    arrays = {key: np.require(value, requirements=["C", "W"]) for key, value in draw.items()}
    rows = arrays["rows"][:, :-1] / arrays["rows"][:, :-1].sum(axis=1, keepdims=True)
    # Without an emission any array with a number for each state will do.
    parameters = tuple(arrays[name] for name in emission.names) or (rows[0],)
    if classifier is None:
        return Recalled(rows[0].copy(), rows[1:].copy(), parameters)
    term = classifier.term(draw["nu"], arrays["shared_weights"], draw["shared_nu"])
    return Recalled(rows[0].copy(), rows[1:].copy(), parameters, arrays["weights"], term)


def log_evidence(new: Questions, emission: Emission, draw: Recalled) -> NDArray:
    """log p(x_t | state k); without an emission, how sure the state's classifier is of x_t.

    That is the margin term summed over the unknown label: all that the joint law of states and
    labels has to say about a state when the observations have no law of their own (M2iHMM-2).
    Among more than exp(2 C cost) labels an undecided classifier weighs more than a sure one.
    """
    out = emission.log_likelihoods(new.X, draw.parameters)
    if isinstance(emission, NoEmission):
        add_log_free_labels(new.inputs, draw.weights, draw.term, out)
    return out


def vote(
    new: Questions,
    emission: Emission,
    classifier: GibbsClassifier,
    draws: Sequence[Draw],
    causal: bool,
) -> NDArray:
    """Votes for the labels of all steps, every state weighed by its exact probability."""
    votes = np.zeros((len(new.X), classifier.n_classes))
    for one in draws:
        draw = recall(one, emission, classifier)
        evidence = log_evidence(new, emission, draw)
        marginals, _, _ = smooth(draw.start, draw.matrix, evidence, new.starts, causal=causal)
        add_votes(new.inputs, draw.weights, marginals, votes)
    return votes


def vote_iterated(
    new: Questions,
    emission: Emission,
    classifier: GibbsClassifier,
    draws: Sequence[Draw],
    n_rounds: int,
    seed: int,
) -> NDArray:
    """The paper's prediction: states, answers, states given the answers, ... (000, Section 4.3).

    Every round has a stream of its own, and all sequences share its numbers step by step, so that
    the answer to one does not depend on the others.
    """
    votes = np.zeros((len(new.X), classifier.n_classes))
    lengths = np.diff(new.starts)
    step = np.arange(len(new.X)) - np.repeat(new.starts[:-1], lengths)
    for number, one in enumerate(draws):
        draw = recall(one, emission, classifier)
        evidence = log_evidence(new, emission, draw)
        for turn in range(n_rounds):
            stream = np.random.default_rng([seed, number, turn])
            uniforms = stream.random(lengths.max())[step]
            path = draw_paths(draw.start, draw.matrix, evidence, new.starts, uniforms)
            answer = answers(new.inputs, draw.weights, path)
            evidence = emission.log_likelihoods(new.X, draw.parameters)
            add_log_margins(new.inputs, answer, draw.weights, draw.term, evidence)
        votes[np.arange(len(answer)), answer] += 1.0
    return votes


def vote_stream(
    steps: Iterable[tuple[NDArray, NDArray]],
    emission: Emission,
    classifier: GibbsClassifier,
    draws: Sequence[Draw],
) -> Iterator[NDArray]:
    """The causal votes, a step at a time; all draws stand side by side as one large chain."""
    recalled = [recall(one, emission, classifier) for one in draws]
    ends = np.cumsum([0] + [len(draw.start) for draw in recalled])
    start = np.concatenate([draw.start for draw in recalled])
    matrices = np.concatenate([draw.matrix.ravel() for draw in recalled])
    log_filtered, filtered = np.zeros(len(start)), np.zeros(len(start))
    together = Recalled(
        start,
        matrices,
        tuple(np.concatenate(arrays) for arrays in zip(*(draw.parameters for draw in recalled))),
        np.concatenate([draw.weights for draw in recalled if draw.weights is not None]),
        recalled[0].term,
    )
    for t, (x, inputs) in enumerate(steps):
        new = Questions(x, np.array([0, 1]), inputs)
        evidence = log_evidence(new, emission, together)[0]
        advance(t == 0, start, matrices, ends, evidence, log_filtered, filtered)
        answer = each_answer(inputs, together.weights)
        yield np.bincount(answer, weights=filtered, minlength=classifier.n_classes)


def most_likely_states(new: Questions, emission: Emission, draw: Recalled) -> NDArray:
    """The path of every sequence under one draw."""
    evidence = log_evidence(new, emission, draw)
    return most_likely_paths(draw.start, draw.matrix, evidence, new.starts)[0]


def state_marginals(new: Questions, emission: Emission, draw: Recalled, causal: bool) -> NDArray:
    """p(z_t | x) under one draw."""
    evidence = log_evidence(new, emission, draw)
    return smooth(draw.start, draw.matrix, evidence, new.starts, causal=causal)[0]


def log_predictive(new: Questions, emission: Emission, draws: Sequence[Draw]) -> NDArray:
    """log p(x | draw), of shape (n_draws, n_sequences)."""
    total = []
    for one in draws:
        draw = recall(one, emission)
        evidence = emission.log_likelihoods(new.X, draw.parameters)
        total.append(smooth(draw.start, draw.matrix, evidence, new.starts, causal=True)[1])
    return np.array(total)


def sample(
    n_steps: int, emission: Emission, draw: Recalled, rng: np.random.Generator
) -> tuple[NDArray, NDArray[np.int64]]:
    """A new sequence, and its states."""
    unseen = np.zeros((n_steps, len(draw.start)))
    bounds = np.array([0, n_steps])
    z = draw_paths(draw.start, draw.matrix, unseen, bounds, rng.random(n_steps))
    return emission.sample(rng, draw.parameters, z), z
