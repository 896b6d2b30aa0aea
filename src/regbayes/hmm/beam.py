"""Beam sampling for infinite hidden Markov models, with a margin on the labels or without.

    beta ~ GEM(gamma),  pi_k ~ DP(alpha, beta),  z_t ~ pi_{z_t-1},  x_t ~ emission of state z_t

is the infinite HMM (Teh et al. 2006; Van Gael et al. 2008). Times the margin of a linear
classifier in each state, it is the max-margin infinite HMM (000: Zhang, Zhu & Zhang 2014, Section
4.2): M2iHMM-1 with an emission, M2iHMM-2 without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from regbayes.hmm.emissions import Emission, Parameters, Statistics
from regbayes.kernels.batch import draw_paths
from regbayes.kernels.chain import count_transitions, draw_slices
from regbayes.kernels.labels import (
    LabelTerm,
    add_all_pulls,
    draw_all_label_weights,
    draw_pulled_weights,
)
from regbayes.kernels.votes import add_log_margins
from regbayes.margin import GibbsClassifier
from regbayes.priors import HierarchicalDirichlet, Transitions


class Uniforms(Protocol):
    """What the parts of a sweep that look at sequences ask of a generator."""

    def random(self, size: int) -> NDArray[np.float64]:
        """Numbers in [0, 1)."""


@dataclass(frozen=True)
class Labels:
    """The labelled half of a model: inputs of the classifiers, labels (-1: none), their law."""

    inputs: NDArray
    y: NDArray[np.int64]
    classifier: GibbsClassifier


@dataclass(frozen=True)
class Model:
    """What stays fixed over a chain. Sequence s is `X[starts[s]:starts[s + 1]]`."""

    X: NDArray
    starts: NDArray[np.int64]
    emission: Emission
    prior: HierarchicalDirichlet
    labels: Labels | None = None
    width: float = 0.01  # of the beam, see kernels.chain.draw_slices
    n_threads: int = 1


@dataclass(frozen=True)
class State:
    """What a sweep changes; the states in use are 0, 1, ..., K - 1."""

    z: NDArray[np.int64]
    transitions: Transitions
    parameters: Parameters
    weights: NDArray  # [K, L, M]
    term: LabelTerm | None


class Found(NamedTuple):
    """What the paths of some sequences say about all parameters; states are the last axes."""

    moves: NDArray[np.int64]  # [K + 1, K]: first states, then transitions
    seen: Statistics  # of the emission

    @property
    def used(self) -> NDArray[np.bool_]:
        """States that have steps: each was entered."""
        return self.moves.sum(axis=0) > 0

    def keep(self, used: NDArray[np.bool_]) -> Found:
        """Without the states that are not `used`."""
        rows = np.append(True, used)
        return Found(self.moves[np.ix_(rows, used)], tuple(each[used] for each in self.seen))


def init(model: Model, first_states: Any, rng: np.random.Generator) -> State:
    """Everything else given the first states, an array or a function of `rng`."""
    z = first_states(rng) if callable(first_states) else first_states
    _, z = np.unique(z, return_inverse=True)
    z = z.astype(np.int64)
    state = begin(model, rng, find(model, z, int(z.max()) + 1))
    return draw_weights(model, rng, replace(state, z=z))


def begin(model: Model, rng: np.random.Generator, found: Found) -> State:
    """All but the paths, given what they say, and the weights from their prior."""
    n_states = found.moves.shape[1]
    term = None if model.labels is None else model.labels.classifier.init()
    weights = _prior_weights(model, rng, term, n_states)
    nowhere = np.empty(0, dtype=np.int64)
    state = State(nowhere, model.prior.init(n_states), (), weights, term)
    state = draw_transitions(model, rng, state, found)
    return draw_emissions(model, rng, state, found)


def step(model: Model, rng: np.random.Generator, state: State) -> State:
    """One sweep; every line is one conditional. Equations and sections are those of 000.

    `draw_cuts`, `draw_states` and `find` look at sequences one by one, so that any part of them
    may be elsewhere (:mod:`regbayes.distributed`). The others look at what they found.
    """
    cuts, least = draw_cuts(model, rng, state.transitions, state.z)  # mu of Section 4.2
    state = let_in(model, rng, state, least)  # states that the cuts let in
    state = replace(state, z=draw_states(model, rng, state, cuts))  # Eqs. 24, 25
    found = find(model, state.z, state.transitions.n_states)
    state, found = drop_unused(state, found)
    state = draw_transitions(model, rng, state, found)  # pi, beta of Eq. 4, as in Teh et al.
    state = draw_emissions(model, rng, state, found)  # Eq. 2; not collapsed, as paths are blocks
    state = draw_weights(model, rng, state)  # eta of Section 4.2, by Eqs. 19-23
    return draw_term(model, rng, state)  # ours: the shared weights and the scale


def draw_cuts(model: Model, rng: Uniforms, now: Transitions, z: NDArray) -> tuple[NDArray, float]:
    """Slices u_t ~ U(0, min(pi_{z_t-1 z_t}, width)), and the least of them."""
    cuts = np.empty(len(z))
    uniforms = np.maximum(rng.random(len(z)), 1e-17)
    least = draw_slices(now.start, now.matrix, model.starts, z, uniforms, model.width, cuts)
    return cuts, least


def let_in(model: Model, rng: np.random.Generator, state: State, least: float) -> State:
    """Break sticks until what is left is below the least slice: new states, from the prior."""
    now = state.transitions
    transitions = model.prior.extend(rng, now, least)
    n_new = transitions.n_states - now.n_states
    if n_new == 0:
        return state
    nothing = model.emission.observe(model.X[:0], state.z[:0], n_new)
    new = model.emission.draw(rng, nothing)
    parameters = tuple(np.concatenate(pair) for pair in zip(state.parameters, new))
    weights = np.concatenate([state.weights, _prior_weights(model, rng, state.term, n_new)])
    return replace(state, transitions=transitions, parameters=parameters, weights=weights)


def _prior_weights(
    model: Model, rng: np.random.Generator, term: LabelTerm | None, n: int
) -> NDArray:
    if model.labels is None or term is None:
        return np.empty((n, 0, 0))
    return model.labels.classifier.draw_prior_weights(rng, term, n)


def draw_states(model: Model, rng: Uniforms, state: State, cuts: NDArray) -> NDArray[np.int64]:
    """Paths given all else, of all sequences, restricted to transitions above the cuts."""
    now = state.transitions
    z = draw_paths(
        now.start,
        now.matrix,
        log_evidence(model, state),
        model.starts,
        rng.random(len(cuts)),
        cuts,
        model.width,
        model.n_threads,
    )
    if z.min() < 0:
        raise FloatingPointError(
            "an observation has no density under any state; scale the inputs (for example with "
            "sklearn.preprocessing.StandardScaler) or lower C"
        )
    return z


def find(model: Model, z: NDArray, n_states: int) -> Found:
    """What the paths say about the parameters."""
    moves = count_transitions(model.starts, z, n_states)
    return Found(moves, model.emission.observe(model.X, z, n_states))


def merge(model: Model, one: Found, other: Found) -> Found:
    """What the paths of both say."""
    return Found(one.moves + other.moves, model.emission.merge(one.seen, other.seen))


def drop_unused(state: State, found: Found) -> tuple[State, Found]:
    """Forget the states without steps; the others move up."""
    used = found.used
    kept = replace(
        state,
        z=(np.cumsum(used) - 1)[state.z],
        transitions=state.transitions.keep(used),
        parameters=tuple(array[used] for array in state.parameters),
        weights=state.weights[used],
    )
    return kept, found.keep(used)


def log_evidence(model: Model, state: State) -> NDArray:
    """log p(x_t | state k) + log phi(y_t | x_t, state k), of shape (T, K)."""
    out = model.emission.log_likelihoods(model.X, state.parameters)
    if model.labels is not None:
        add_log_margins(model.labels.inputs, model.labels.y, state.weights, state.term, out)
    return out


def draw_transitions(model: Model, rng: np.random.Generator, state: State, found: Found) -> State:
    """tables, alpha, gamma, beta, pi | z."""
    return replace(state, transitions=model.prior.draw(rng, state.transitions, found.moves))


def draw_emissions(model: Model, rng: np.random.Generator, state: State, found: Found) -> State:
    """parameters | z, X."""
    return replace(state, parameters=model.emission.draw(rng, found.seen))


def draw_weights(model: Model, rng: np.random.Generator, state: State) -> State:
    """weights | z, X, y, by augmentation."""
    if model.labels is None:
        return state
    weights = state.weights.copy()
    draw_all_label_weights(rng, model.labels.inputs, model.labels.y, state.z, weights, state.term)
    return replace(state, weights=weights)


class Pull(NamedTuple):
    """What labels say about the weights of one class, in every state; adds up over sequences."""

    linear: NDArray  # [K, M]
    precision: NDArray  # [K, M, M]


def pull(model: Model, rng: np.random.Generator, state: State, label: int) -> Pull:
    """The part of :func:`draw_weights` that looks at the labels, for one class."""
    assert model.labels is not None
    n_states, _, n_inputs = state.weights.shape
    found = Pull(np.zeros((n_states, n_inputs)), np.zeros((n_states, n_inputs, n_inputs)))
    inputs, y = model.labels.inputs, model.labels.y
    add_all_pulls(rng, inputs, y, state.z, state.weights, label, state.term, *found)
    return found


def merge_pulls(one: Pull, other: Pull) -> Pull:
    """What the labels of both say."""
    return Pull(one.linear + other.linear, one.precision + other.precision)


def draw_pulled(rng: np.random.Generator, state: State, label: int, found: Pull) -> State:
    """The rest of it."""
    weights = state.weights.copy()
    draw_pulled_weights(rng, label, state.term, found.linear, found.precision, weights)
    return replace(state, weights=weights)


def draw_term(model: Model, rng: np.random.Generator, state: State) -> State:
    """shared, nu | weights."""
    if model.labels is None or state.term is None:
        return state
    term = model.labels.classifier.draw_term(rng, state.term, state.weights)
    return replace(state, term=term)


def log_joint(model: Model, state: State) -> float:
    """log p(X, z | parameters) + log phi(y): to watch convergence by."""
    moves = count_transitions(model.starts, state.z, len(state.weights))
    return log_prior(moves, state.transitions) + own_evidence(model, state)


def log_prior(moves: NDArray, now: Transitions) -> float:
    """log p(z | pi)."""
    log_pi = np.log(now.rows[:, :-1], where=moves > 0, out=np.zeros(moves.shape))
    return float(np.sum(moves * log_pi))


def own_evidence(model: Model, state: State) -> float:
    """log p(X | z, parameters) + log phi(y)."""
    own = np.take_along_axis(log_evidence(model, state), state.z[:, None], axis=1)
    return float(own.sum())


def record(model: Model, state: State) -> Mapping[str, Any]:
    """What a draw keeps: sizes and states to look at, the rest to predict with."""
    return describe(model, state, log_joint(model, state)) | {"z": state.z.astype(np.int32)}


def describe(model: Model, state: State, joint: float) -> dict[str, Any]:
    """All of a draw but the paths."""
    now = state.transitions
    kept = {
        "n_states": now.n_states,
        "alpha": now.alpha,
        "gamma": now.gamma,
        "stickiness": now.stay,
        "log_joint": joint,
        "beta": now.beta,
        "rows": now.rows,
        **dict(zip(model.emission.names, state.parameters)),
    }
    if state.term is not None:
        kept |= {
            "nu": state.term.nu,
            "weights": state.weights,
            "shared_weights": state.term.mean,
            "shared_nu": state.term.mean_nu,
        }
    return kept
