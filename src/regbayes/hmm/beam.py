"""Beam sampling for infinite hidden Markov models, with a margin on the labels or without.

    beta ~ GEM(gamma),  pi_k ~ DP(alpha, beta),  z_t ~ pi_{z_t-1},  x_t ~ emission of state z_t

is the infinite HMM (Teh et al. 2006; Van Gael et al. 2008). Times the margin of a linear
classifier in each state, it is the max-margin infinite HMM (000: Zhang, Zhu & Zhang 2014, Section
4.2): M2iHMM-1 with an emission, M2iHMM-2 without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.hmm.emissions import Emission, Parameters
from regbayes.kernels.batch import draw_paths
from regbayes.kernels.chain import count_transitions, draw_slices
from regbayes.kernels.labels import LabelTerm, draw_all_label_weights
from regbayes.kernels.votes import add_log_margins
from regbayes.margin import GibbsClassifier
from regbayes.priors import HierarchicalDirichlet, Transitions


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


def init(model: Model, first_states: Any, rng: np.random.Generator) -> State:
    """Everything else given the first states, an array or a function of `rng`."""
    z = first_states(rng) if callable(first_states) else first_states
    _, z = np.unique(z, return_inverse=True)
    n_states = int(z.max()) + 1
    term = None if model.labels is None else model.labels.classifier.init()
    weights = _prior_weights(model, rng, term, n_states)
    state = State(z.astype(np.int64), model.prior.init(n_states), (), weights, term)
    state = draw_transitions(model, rng, state)
    state = draw_emissions(model, rng, state)
    return draw_weights(model, rng, state)


def step(model: Model, rng: np.random.Generator, state: State) -> State:
    """One sweep; every line is one conditional. Equations and sections are those of 000."""
    cuts, state = draw_cuts(model, rng, state)  # mu of Section 4.2; states that it lets in
    state = draw_states(model, rng, state, cuts)  # Eqs. 24, 25
    state = draw_transitions(model, rng, state)  # pi, beta of Eq. 4, as in Teh et al.
    state = draw_emissions(model, rng, state)  # Eq. 2; not collapsed, since paths are blocks
    state = draw_weights(model, rng, state)  # eta of Section 4.2, by Eqs. 19-23
    return draw_term(model, rng, state)  # ours: the shared weights and the scale


def draw_cuts(model: Model, rng: np.random.Generator, state: State) -> tuple[NDArray, State]:
    """Slices u_t ~ U(0, min(pi_{z_t-1 z_t}, width)), then sticks until what is left is below."""
    now = state.transitions
    cuts = np.empty(len(state.z))
    uniforms = np.maximum(rng.random(len(state.z)), 1e-17)
    least = draw_slices(now.start, now.matrix, model.starts, state.z, uniforms, model.width, cuts)
    transitions = model.prior.extend(rng, now, least)
    n_new = transitions.n_states - now.n_states
    if n_new == 0:
        return cuts, state
    nothing = model.X[:0], state.z[:0]
    new = model.emission.draw(rng, *nothing, n_new)
    parameters = tuple(np.concatenate(pair) for pair in zip(state.parameters, new))
    weights = np.concatenate([state.weights, _prior_weights(model, rng, state.term, n_new)])
    return cuts, replace(state, transitions=transitions, parameters=parameters, weights=weights)


def _prior_weights(
    model: Model, rng: np.random.Generator, term: LabelTerm | None, n: int
) -> NDArray:
    if model.labels is None or term is None:
        return np.empty((n, 0, 0))
    return model.labels.classifier.draw_prior_weights(rng, term, n)


def draw_states(model: Model, rng: np.random.Generator, state: State, cuts: NDArray) -> State:
    """Paths given all else, of all sequences, restricted to transitions above the cuts."""
    now = state.transitions
    z = draw_paths(
        now.start,
        now.matrix,
        log_evidence(model, state),
        model.starts,
        rng.random(len(state.z)),
        cuts,
        model.width,
        model.n_threads,
    )
    if z.min() < 0:
        raise FloatingPointError(
            "an observation has no density under any state; scale the inputs (for example with "
            "sklearn.preprocessing.StandardScaler) or lower C"
        )
    used = np.bincount(z, minlength=now.n_states) > 0
    return replace(
        state,
        z=(np.cumsum(used) - 1)[z],
        transitions=now.keep(used),
        parameters=tuple(array[used] for array in state.parameters),
        weights=state.weights[used],
    )


def log_evidence(model: Model, state: State) -> NDArray:
    """log p(x_t | state k) + log phi(y_t | x_t, state k), of shape (T, K)."""
    out = model.emission.log_likelihoods(model.X, state.parameters)
    if model.labels is not None:
        add_log_margins(model.labels.inputs, model.labels.y, state.weights, state.term, out)
    return out


def draw_transitions(model: Model, rng: np.random.Generator, state: State) -> State:
    """tables, alpha, gamma, beta, pi | z."""
    counts = count_transitions(model.starts, state.z, len(state.weights))
    return replace(state, transitions=model.prior.draw(rng, state.transitions, counts))


def draw_emissions(model: Model, rng: np.random.Generator, state: State) -> State:
    """parameters | z, X."""
    parameters = model.emission.draw(rng, model.X, state.z, len(state.weights))
    return replace(state, parameters=parameters)


def draw_weights(model: Model, rng: np.random.Generator, state: State) -> State:
    """weights | z, X, y, by augmentation."""
    if model.labels is None:
        return state
    weights = state.weights.copy()
    draw_all_label_weights(rng, model.labels.inputs, model.labels.y, state.z, weights, state.term)
    return replace(state, weights=weights)


def draw_term(model: Model, rng: np.random.Generator, state: State) -> State:
    """shared, nu | weights."""
    if model.labels is None or state.term is None:
        return state
    term = model.labels.classifier.draw_term(rng, state.term, state.weights)
    return replace(state, term=term)


def log_joint(model: Model, state: State) -> float:
    """log p(X, z | parameters) + log phi(y): to watch convergence by."""
    counts = count_transitions(model.starts, state.z, len(state.weights))
    own = np.take_along_axis(log_evidence(model, state), state.z[:, None], axis=1)
    log_pi = np.log(state.transitions.rows[:, :-1], where=counts > 0, out=np.zeros(counts.shape))
    return float(np.sum(counts * log_pi) + own.sum())


def record(model: Model, state: State) -> Mapping[str, Any]:
    """What a draw keeps: sizes and states to look at, the rest to predict with."""
    now = state.transitions
    kept = {
        "n_states": now.n_states,
        "alpha": now.alpha,
        "gamma": now.gamma,
        "stickiness": now.stay,
        "log_joint": log_joint(model, state),
        "z": state.z.astype(np.int32),
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
