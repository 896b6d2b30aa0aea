"""Truncated variational inference for Markov-switching large-margin classifiers (iM2EDM).

    min_q  KL(q(v, z, gamma, w, alpha) || p(v, z, gamma, w, alpha | X)) + 2 C sum_t hinge_t
    hinge_t = max_y cost [y != y_t] + F(y, x_t) - F(y_t, x_t),   F(y, x_t) = E_q[w_{z_t, y}] . x_t

up to the constant log p(X) (Chatzis 2013). It is the infinite SVM (:mod:`regbayes.mixture`) with a
Markov chain in the place of the mixture: every row of its transition matrix, and the law of its
first state, breaks a stick of its own over the same states (Paisley & Carin 2009), and q(z) is a
chain again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from regbayes.chains import backtrack
from regbayes.kernels.batch import most_likely_paths, smooth
from regbayes.kernels.chain import count_transitions
from regbayes.margin import AveragedFit, average_scores, fit_averaged, label_evidence
from regbayes.priors import Fixed, GammaPrior, StickBreaking
from regbayes.priors.mean_field import (
    Gaussians,
    kl_gamma,
    kl_gaussians,
    kl_sticks,
    log_density,
    make_blocks,
    posterior,
    posterior_concentration,
)

Array = NDArray[np.float64]


class Steps(NamedTuple):
    """Sequences, as the parts of the model read them; s is steps starts[s] to starts[s + 1]."""

    starts: NDArray[np.int64]
    inputs: Array  # (T, M1): of the classifiers, which see the centre where nothing is observed
    observed: NDArray[np.bool_]  # (T,)
    blocks: Array  # (B, n_observed, m): the observed steps, cut as the Gaussians are


class Paths(NamedTuple):
    """q(z): a Markov chain for every sequence, by its log potentials, and what it expects."""

    log_rows: Array  # (K + 1, K): of the first state, then of the moves out of each state
    evidence: Array  # (T, K): of the states of the steps
    r: Array  # (T, K): q(z_t = k)
    counts: Array  # (K + 1, K): expected first states, then expected moves
    log_total: float  # log of the sum over all paths of all potentials


@dataclass(frozen=True)
class Model:
    """What stays fixed."""

    steps: Steps
    y: NDArray[np.int64]  # -1 for no label
    n_classes: int
    prior: Gaussians
    concentration: Fixed | GammaPrior
    max_states: int
    C: float = 1.0
    cost: float = 1.0
    nu: float = 1.0
    sweeps: int = 50  # of the SVM in a round: warm starts go on where the last round left off

    @property
    def labelled(self) -> NDArray[np.bool_]:
        return self.y >= 0


@dataclass(frozen=True)
class State:
    """The parameters of q."""

    paths: Paths
    alpha: Fixed | GammaPrior
    sticks: Array  # (K + 1, K, 2): Beta parameters, the first state's row first
    gaussians: Gaussians
    weights: Array  # (K, n_classes, M1): means of q(w), whose covariance is nu^2 I
    multipliers: Array  # (n_labelled, n_classes): of the margin constraints, in [-2C, 2C]
    margin: float  # KL of q(w) plus the hinge
    rate: float = 1.0  # the last step of `update_paths`


def init(model: Model, rng: np.random.Generator) -> State:
    """Steps about k-means++ seeds, the largest part first; labels come in by the weights."""
    steps, K = model.steps, model.max_states
    n = len(steps.inputs)
    seeds, _ = kmeans_plusplus(steps.inputs, min(n, K), random_state=int(rng.integers(2**31)))
    nearest = pairwise_distances_argmin(steps.inputs, seeds)
    sizes = np.bincount(nearest, minlength=K)
    z = np.argsort(np.argsort(-sizes, kind="stable"))[nearest]
    counts = count_transitions(steps.starts, z, K)
    sticks = StickBreaking(model.concentration.mean).posterior(counts)
    gaussians = posterior(model.prior, steps.blocks, np.eye(K)[z[steps.observed]])
    paths = smooth_paths(expected_log_rows(sticks), log_likelihoods(steps, gaussians), steps.starts)
    start = np.zeros((n, model.n_classes))[model.labelled]
    fit = fit_weights(model, rng, paths.r, start)
    return State(paths, model.concentration, sticks, gaussians, *fit)


def step(model: Model, rng: np.random.Generator, state: State) -> State:
    """One round; no line raises the objective, and all but the last are exact minimisers."""
    state = update_sticks(state)  # a stick for every row: Paisley & Carin 2009
    state = update_alpha(model, state)  # Blei & Jordan 2006, appendix
    state = update_gaussians(model, state)
    return update_paths(model, rng, state)  # q(z), and with it the weights


def update_sticks(state: State) -> State:
    """Sticks fit best when sizes fall; not all rows fall alike, so sort only where it helps."""
    order = np.argsort(-state.paths.r.sum(axis=0), kind="stable")
    ways = [fit_sticks(state), fit_sticks(reorder(state, order))]
    return min(ways, key=sticks_objective)


def fit_sticks(state: State) -> State:
    sticks = StickBreaking(state.alpha.mean).posterior(state.paths.counts)
    return replace(state, sticks=sticks)


def reorder(state: State, order: NDArray[np.int64]) -> State:
    """Other numbers for the same states."""
    rows, paths = np.append(0, order + 1), state.paths
    return replace(
        state,
        paths=Paths(
            paths.log_rows[rows][:, order],
            paths.evidence[:, order],
            paths.r[:, order],
            paths.counts[rows][:, order],
            paths.log_total,
        ),
        sticks=state.sticks[rows][:, order],
        gaussians=Gaussians(*(array[order] for array in state.gaussians)),
        weights=state.weights[order],
    )


def update_alpha(model: Model, state: State) -> State:
    return replace(state, alpha=posterior_concentration(model.concentration, state.sticks))


def update_gaussians(model: Model, state: State) -> State:
    steps = model.steps
    gaussians = posterior(model.prior, steps.blocks, state.paths.r[steps.observed])
    return replace(state, gaussians=gaussians)


def update_paths(model: Model, rng: np.random.Generator, state: State) -> State:
    """q(z) by a natural-gradient step on the objective minimised over the weights.

    At the multipliers a of the best weights, the Lagrangian is least at the chain with potentials
    exp(E[log pi]) and evidence E[log p(x_t | gamma_k)] + sum_y a_ty w_ky . x_t: forward-backward.
    The multipliers move with q(z), so that the whole way there may lead uphill. But log potentials
    are natural parameters, and by the envelope theorem the way is that of the natural gradient: a
    short enough part of it leads down.
    """
    steps, old = model.steps, state.paths
    rows = expected_log_rows(state.sticks)
    likelihoods = log_likelihoods(steps, state.gaussians)
    labels = label_evidence(steps.inputs[model.labelled], state.weights, state.multipliers)
    target = likelihoods.copy()
    target[model.labelled] += labels

    def attempt(rate: float) -> State:
        paths = smooth_paths(
            (1 - rate) * old.log_rows + rate * rows,
            (1 - rate) * old.evidence + rate * target,
            steps.starts,
        )
        weights = fit_weights(model, rng, paths.r, state.multipliers)
        return replace(state, paths=paths, **weights._asdict())

    new, rate = backtrack(
        attempt,
        lambda s: paths_objective(rows, likelihoods, s.paths) + s.margin,
        state,
        state.rate,
    )
    return replace(new, rate=rate)


def finish(model: Model, rng: np.random.Generator, state: State) -> State:
    """The SVM solved to the end, for the last q(z)."""
    model = replace(model, sweeps=20 * model.sweeps)
    fit = fit_weights(model, rng, state.paths.r, state.multipliers)
    return replace(state, **fit._asdict()) if fit.margin < state.margin else state


def fit_weights(
    model: Model, rng: np.random.Generator, r: Array, multipliers: Array
) -> AveragedFit:
    """q(w) given q(z), of the labelled steps."""
    return fit_averaged(
        model.steps.inputs[model.labelled],
        model.y[model.labelled],
        r[model.labelled],
        model.n_classes,
        rng=rng,
        C=model.C,
        cost=model.cost,
        nu=model.nu,
        warm_start=multipliers,
        max_iter=model.sweeps,
    )


def objective(model: Model, state: State) -> float:
    """KL(q || p) + 2 C sum of hinges - log p(X): what the rounds lower."""
    rows = expected_log_rows(state.sticks)
    return (
        paths_objective(rows, log_likelihoods(model.steps, state.gaussians), state.paths)
        + state.margin
        + kl_gaussians(state.gaussians, model.prior)
        + kl_sticks(state.sticks, state.alpha)
        + kl_gamma(state.alpha, model.concentration)
    )


def paths_objective(rows: Array, likelihoods: Array, paths: Paths) -> float:
    """E[log q(z) - log p(z | v) - log p(X | z, gamma)].

    log q(z) is the potentials on the path z, less the logarithm of their sum over all paths.
    """
    moves = np.sum(paths.counts * (paths.log_rows - rows))
    return float(moves + np.sum(paths.r * (paths.evidence - likelihoods)) - paths.log_total)


def sticks_objective(state: State) -> float:
    """The part of the objective that the sticks take part in."""
    fit = np.sum(state.paths.counts * expected_log_rows(state.sticks))
    return kl_sticks(state.sticks, state.alpha) - float(fit)


def smooth_paths(log_rows: Array, evidence: Array, starts: NDArray[np.int64]) -> Paths:
    """The chains with these potentials, by forward-backward."""
    rows = np.exp(log_rows)
    r, log_totals, moves = smooth(rows[0], rows[1:], evidence, starts, moves=True)
    counts = np.concatenate([r[starts[:-1]].sum(axis=0, keepdims=True), moves.sum(axis=0)])
    return Paths(log_rows, evidence, r, counts, float(log_totals.sum()))


def expected_log_rows(sticks: Array) -> Array:
    """E[log pi_jk], of the first state and of the moves, shape (K + 1, K)."""
    # Given the sticks, the expectation does not depend on the concentration.
    return StickBreaking(1.0).expected_log_weights(sticks)


def log_likelihoods(steps: Steps, gaussians: Gaussians) -> Array:
    """E[log p(x_t | gamma_k)], shape (T, K); zero where nothing is observed."""
    out = np.zeros((len(steps.observed), len(gaussians.df)))
    out[steps.observed] = log_density(steps.blocks, gaussians)
    return out


def make_steps(X: Array, starts: NDArray[np.int64], prior: Gaussians) -> Steps:
    """Steps from rows of `X`, which are NaN where nothing is observed."""
    observed = ~np.isnan(X[:, 0])
    inputs = np.column_stack([np.nan_to_num(X), np.ones(len(X))])
    return Steps(starts, inputs, observed, make_blocks(X[observed], prior))


# New sequences: the same chains, without labels.


def predict_paths(steps: Steps, sticks: Array, gaussians: Gaussians) -> Paths:
    return smooth_paths(expected_log_rows(sticks), log_likelihoods(steps, gaussians), steps.starts)


def predict_scores(steps: Steps, sticks: Array, gaussians: Gaussians, weights: Array) -> Array:
    """F(y, x_t) = sum_k q(z_t = k) w_ky . x_t, shape (T, n_classes)."""
    return average_scores(steps.inputs, predict_paths(steps, sticks, gaussians).r, weights)


def predict_states(steps: Steps, sticks: Array, gaussians: Gaussians) -> NDArray[np.int64]:
    """The most likely path of every sequence."""
    rows = np.exp(expected_log_rows(sticks))
    likelihoods = log_likelihoods(steps, gaussians)
    return most_likely_paths(rows[0], rows[1:], likelihoods, steps.starts)[0]
