"""Truncated mean field for the infinite SVM: a DP mixture of large-margin classifiers.

    min_q  KL(q(v, z, gamma, w, alpha) || p(v, z, gamma, w, alpha | X)) + 2 C sum_d hinge_d
    hinge_d = max_y cost [y != y_d] + F(y, x_d) - F(y_d, x_d),   F(y, x) = E_q[w_{z, y}] . x

up to the constant log p(X) (Zhu, Chen & Xing 2011). Sticks, Gaussians and the concentration are
updated as in any DP mixture (Blei & Jordan 2006); the margin enters by the weights and by z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from regbayes.chains import backtrack
from regbayes.margin import AveragedFit, fit_averaged, label_evidence
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


@dataclass(frozen=True)
class Model:
    """What stays fixed."""

    blocks: Array  # (B, n, m): the inputs, cut as the Gaussians are
    X1: Array  # (n, M1): the inputs of the classifiers
    y: NDArray[np.int64]
    n_classes: int
    prior: Gaussians
    concentration: Fixed | GammaPrior
    max_components: int
    C: float = 1.0
    cost: float = 1.0
    nu: float = 1.0
    sweeps: int = 50  # of the SVM in a round: warm starts go on where the last round left off


@dataclass(frozen=True)
class State:
    """The parameters of q."""

    log_r: Array  # (n, K): log q(z_d = k)
    alpha: Fixed | GammaPrior
    sticks: Array  # (K, 2): Beta parameters
    gaussians: Gaussians
    weights: Array  # (K, n_classes, M1): means of q(w), whose covariance is nu^2 I
    multipliers: Array  # (n, n_classes): of the margin constraints, in [-2C, 2C]
    margin: float  # KL of q(w) plus the hinge
    rate: float = 1.0  # the last step of `update_assignments`


def init(model: Model, rng: np.random.Generator) -> State:
    """Rows about k-means++ seeds, the largest part first; labels come in by the weights."""
    n, K = len(model.y), model.max_components
    X = np.concatenate(list(model.blocks), axis=1)
    seeds, _ = kmeans_plusplus(X, min(n, K), random_state=int(rng.integers(2**31)))
    nearest = pairwise_distances_argmin(X, seeds)
    sizes = np.bincount(nearest, minlength=K)
    r = np.eye(K)[np.argsort(np.argsort(-sizes, kind="stable"))[nearest]]
    sticks = StickBreaking(model.concentration.mean).posterior(r.sum(axis=0))
    gaussians = posterior(model.prior, model.blocks, r)
    log_r = log_softmax(log_fit(model.blocks, sticks, gaussians), axis=1)
    start = np.zeros((n, model.n_classes))
    return State(
        log_r, model.concentration, sticks, gaussians, *fit_weights(model, rng, log_r, start)
    )


def step(model: Model, rng: np.random.Generator, state: State) -> State:
    """One round; no line raises the objective, and all but the last are exact minimisers."""
    state = sort_components(state)
    state = update_sticks(state)  # Blei & Jordan, Eqs. 18-19
    state = update_alpha(model, state)  # their appendix
    state = update_gaussians(model, state)  # their Eqs. 20-21
    return update_assignments(model, rng, state)  # r, and with it the weights


def sort_components(state: State) -> State:
    """Sticks fit best when sizes fall; the last, which has no stick, stays (Kurihara 2007)."""
    sizes = np.exp(state.log_r).sum(axis=0)
    order = np.append(np.argsort(-sizes[:-1], kind="stable"), len(sizes) - 1)
    return replace(
        state,
        log_r=state.log_r[:, order],
        sticks=state.sticks[order],
        gaussians=Gaussians(*(a[order] for a in state.gaussians)),
        weights=state.weights[order],
    )


def update_sticks(state: State) -> State:
    counts = np.exp(state.log_r).sum(axis=0)
    return replace(state, sticks=StickBreaking(state.alpha.mean).posterior(counts))


def update_alpha(model: Model, state: State) -> State:
    return replace(state, alpha=posterior_concentration(model.concentration, state.sticks))


def update_gaussians(model: Model, state: State) -> State:
    return replace(state, gaussians=posterior(model.prior, model.blocks, np.exp(state.log_r)))


def update_assignments(model: Model, rng: np.random.Generator, state: State) -> State:
    """r by a natural-gradient step on the objective minimised over the weights.

    At the multipliers a of the best weights, the Lagrangian is least at
    r_dk ∝ exp(E[log pi_k] + E[log p(x_d | gamma_k)] + sum_y a_dy w_ky . x_d), the paper's update.
    The multipliers move with r, so that the whole way there may lead uphill. But by the envelope
    theorem it is the way of the natural gradient: a short enough part of it leads down.
    """
    fit = log_fit(model.blocks, state.sticks, state.gaussians)
    target = fit + label_evidence(model.X1, state.weights, state.multipliers)

    def attempt(rate: float) -> State:
        log_r = log_softmax((1 - rate) * state.log_r + rate * target, axis=1)
        weights = fit_weights(model, rng, log_r, state.multipliers)
        return replace(state, log_r=log_r, **weights._asdict())

    new, rate = backtrack(
        attempt, lambda s: local_objective(fit, s.log_r, s.margin), state, state.rate
    )
    return replace(new, rate=rate)


def finish(model: Model, rng: np.random.Generator, state: State) -> State:
    """The SVM solved to the end, for the last r."""
    model = replace(model, sweeps=20 * model.sweeps)
    fit = fit_weights(model, rng, state.log_r, state.multipliers)
    return replace(state, **fit._asdict()) if fit.margin < state.margin else state


def fit_weights(
    model: Model, rng: np.random.Generator, log_r: Array, multipliers: Array
) -> AveragedFit:
    """q(w) given r."""
    return fit_averaged(
        model.X1,
        model.y,
        np.exp(log_r),
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
    fit = log_fit(model.blocks, state.sticks, state.gaussians)
    return (
        local_objective(fit, state.log_r, state.margin)
        + kl_gaussians(state.gaussians, model.prior)
        + kl_sticks(state.sticks, state.alpha)
        + kl_gamma(state.alpha, model.concentration)
    )


def local_objective(fit: Array, log_r: Array, margin: float) -> float:
    """The part of the objective that r and the weights take part in."""
    return float(np.sum(np.exp(log_r) * (log_r - fit)) + margin)


def log_fit(blocks: Array, sticks: Array, gaussians: Gaussians) -> Array:
    """E[log pi_k] + E[log p(x_d | gamma_k)], shape (n, K)."""
    # Given the sticks, the expectation does not depend on the concentration.
    return StickBreaking(1.0).expected_log_weights(sticks) + log_density(blocks, gaussians)


def make_inputs(X: Array, prior: Gaussians, fit_intercept: bool) -> tuple[Array, Array]:
    """The inputs as the Gaussians and as the classifiers read them."""
    blocks = make_blocks(X, prior)
    return blocks, np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
