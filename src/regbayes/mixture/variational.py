"""Truncated mean field for the infinite SVM: a DP mixture of large-margin classifiers.

    min_q  KL(q(v, z, gamma, w, alpha) || p(v, z, gamma, w, alpha | X)) + 2 C sum_d hinge_d
    hinge_d = max_y cost [y != y_d] + F(y, x_d) - F(y_d, x_d),   F(y, x) = E_q[w_{z, y}] . x

up to the constant log p(X) (Zhu, Chen & Xing 2011). Sticks, Gaussians and the concentration are
updated as in any DP mixture (Blei & Jordan 2006); the margin enters by the weights and by z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln, log_softmax, multigammaln
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from regbayes.margin import crammer_singer
from regbayes.priors import (
    Fixed,
    GammaPrior,
    NormalInverseGamma,
    NormalInverseWishart,
    StickBreaking,
)

Array = NDArray[np.float64]


class Gaussians(NamedTuple):
    """Normal-inverse-Wishart laws of K components, the coordinates in B independent blocks of m.

    A full covariance is one block of all coordinates, a diagonal one as many blocks of one.
    """

    mean: Array  # (K, B, m)
    strength: Array  # (K,)
    df: Array  # (K,)
    scale: Array  # (K, B, m, m)


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
    if isinstance(model.concentration, Fixed):
        return state
    _, log_rest = expected_log_sticks(state.sticks)
    shape = model.concentration.shape + len(log_rest)
    return replace(state, alpha=GammaPrior(shape, model.concentration.rate - log_rest.sum()))


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
    scores = np.einsum("dm,kym->dky", model.X1, state.weights, optimize=True)
    target = fit + np.einsum("dy,dky->dk", state.multipliers, scores)
    before = local_objective(fit, state.log_r, state.margin)
    rate = min(1.0, 2.0 * state.rate)
    while rate > 1e-3:
        log_r = log_softmax((1 - rate) * state.log_r + rate * target, axis=1)
        weights, multipliers, margin = fit_weights(model, rng, log_r, state.multipliers)
        if local_objective(fit, log_r, margin) < before:
            return replace(
                state,
                log_r=log_r,
                weights=weights,
                multipliers=multipliers,
                margin=margin,
                rate=rate,
            )
        rate /= 2
    return replace(state, rate=1.0)


def finish(model: Model, rng: np.random.Generator, state: State) -> State:
    """The SVM solved to the end, for the last r."""
    model = replace(model, sweeps=20 * model.sweeps)
    weights, multipliers, margin = fit_weights(model, rng, state.log_r, state.multipliers)
    if margin >= state.margin:
        return state
    return replace(state, weights=weights, multipliers=multipliers, margin=margin)


def fit_weights(
    model: Model, rng: np.random.Generator, log_r: Array, multipliers: Array
) -> tuple[Array, Array, float]:
    """q(w) given r: one SVM on the inputs repeated for every component, r_dk x_d.

    KL(q(w) || p(w)) = |w|^2 / 2 nu^2. Times nu^2, the objective is Crammer and Singer's with
    C' = 2 C nu^2, whose multipliers are nu^2 times ours.
    """
    r, (n, n_inputs) = np.exp(log_r), model.X1.shape
    features = (r[:, :, None] * model.X1[:, None, :]).reshape(n, -1)
    square = model.nu**2
    svm = crammer_singer(
        features,
        model.y,
        model.n_classes,
        rng=rng,
        C=2 * model.C * square,
        cost=model.cost,
        gram=(r @ r.T) * (model.X1 @ model.X1.T) if n <= features.shape[1] else None,
        warm_start=multipliers * square,
        max_iter=model.sweeps,
    )
    weights = svm.weights.reshape(model.n_classes, -1, n_inputs).swapaxes(0, 1)
    return weights, svm.multipliers / square, svm.objective / square


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


def scores(X1: Array, log_r: Array, weights: Array) -> Array:
    """F(y, x) = sum_k r_k(x) w_ky . x, shape (n, n_classes)."""
    return np.einsum("dk,dm,kym->dy", np.exp(log_r), X1, weights, optimize=True)


def expected_log_sticks(sticks: Array) -> tuple[Array, Array]:
    """E[log v_k] and E[log (1 - v_k)] for k < K; the last stick takes all that is left."""
    a, b = sticks[:-1].T
    return digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)


def expected_log(alpha: Fixed | GammaPrior) -> float:
    if isinstance(alpha, Fixed):
        return float(np.log(alpha.value))
    return float(digamma(alpha.shape) - np.log(alpha.rate))


def kl_sticks(sticks: Array, alpha: Fixed | GammaPrior) -> float:
    """E[log q(v) - log p(v | alpha)], p = Beta(1, alpha)."""
    (a, b), (log_v, log_rest) = sticks[:-1].T, expected_log_sticks(sticks)
    entropy = betaln(a, b) - (a - 1) * log_v - (b - 1) * log_rest
    return float(-np.sum(entropy + expected_log(alpha) + (alpha.mean - 1) * log_rest))


def kl_gamma(q: Fixed | GammaPrior, p: Fixed | GammaPrior) -> float:
    if isinstance(q, Fixed) or isinstance(p, Fixed):
        return 0.0
    return float(
        (q.shape - p.shape) * digamma(q.shape)
        - gammaln(q.shape)
        + gammaln(p.shape)
        + p.shape * np.log(q.rate / p.rate)
        + q.shape * (p.rate / q.rate - 1)
    )


def posterior(prior: Gaussians, blocks: Array, r: Array) -> Gaussians:
    """The conjugate update by points that count r_dk (Murphy 2007, Section 9)."""
    counts = r.sum(axis=0)
    strength = prior.strength + counts
    tiny = np.finfo(np.float64).tiny  # an empty component has no average and needs none
    shares = r / np.maximum(counts, tiny)
    average = np.einsum("dk,bdi->kbi", shares, blocks, optimize=True)
    shift = average - prior.mean
    spread = np.empty((len(counts), *prior.scale.shape[1:]))
    for k, weight in enumerate(r.T):  # about the average: no cancellation
        centred = blocks - average[k, :, None]
        spread[k] = centred.swapaxes(1, 2) @ (weight[:, None] * centred)
    pull = (prior.strength * counts / strength)[:, None, None, None]
    return Gaussians(
        prior.mean + (counts / strength)[:, None, None] * shift,
        strength,
        prior.df + counts,
        prior.scale + spread + pull * shift[..., :, None] * shift[..., None, :],
    )


def log_density(blocks: Array, q: Gaussians) -> Array:
    """E_q[log N(x_d | mu_k, Sigma_k)], shape (n, K)."""
    n_blocks, n, size = blocks.shape
    distance = np.empty((n, len(q.df)))
    for k, root in enumerate(np.linalg.cholesky(q.scale)):
        white = np.linalg.solve(root, (blocks - q.mean[k, :, None]).swapaxes(1, 2))
        distance[:, k] = np.square(white).sum(axis=(0, 1))
    log_precision = n_blocks * (multidigamma(q.df, size) + size * np.log(2)) - log_det(q.scale)
    constant = log_precision - n_blocks * size * (np.log(2 * np.pi) + 1 / q.strength)
    return 0.5 * (constant - q.df * distance)


def kl_gaussians(q: Gaussians, p: Gaussians) -> float:
    """KL(q || p), summed over components; `p` is one law for all."""
    n_blocks, size = q.mean.shape[1:]
    shift = q.mean - p.mean
    precision = np.linalg.inv(q.scale)
    trace = np.einsum("kbij,xbji->k", precision, p.scale)
    distance = np.einsum("kbi,kbij,kbj->k", shift, precision, shift, optimize=True)
    ratio = p.strength / q.strength
    means = n_blocks * size * (ratio - 1 - np.log(ratio)) + p.strength * q.df * distance
    covariances = (
        2 * n_blocks * (multigammaln_each(p.df, size) - multigammaln_each(q.df, size))
        + n_blocks * (q.df - p.df) * multidigamma(q.df, size)
        + p.df * (log_det(q.scale) - log_det(p.scale))
        + q.df * (trace - n_blocks * size)
    )
    return float(0.5 * np.sum(means + covariances))


def multigammaln_each(df: Array, size: int) -> Array:
    return np.array([multigammaln(value / 2, size) for value in df])


def multidigamma(df: Array, size: int) -> Array:
    """The derivative of the log of the multivariate gamma function at df / 2."""
    return digamma((df[:, None] - np.arange(size)) / 2).sum(axis=1)


def log_det(scale: Array) -> Array:
    """Log determinant of each component's blocks together."""
    return np.linalg.slogdet(scale)[1].sum(axis=1)


def make_prior(prior: NormalInverseWishart | NormalInverseGamma) -> Gaussians:
    """The prior of a component in blocks, as one law that broadcasts over components."""
    if isinstance(prior, NormalInverseWishart):
        mean, scale = prior.mean[None, None], prior.scale[None, None]
    else:
        mean, scale = prior.mean[None, :, None], prior.scale[None, :, None, None]
    return Gaussians(mean, np.array([prior.strength]), np.array([prior.df]), scale)


def make_inputs(X: Array, prior: Gaussians, fit_intercept: bool) -> tuple[Array, Array]:
    """The inputs as the Gaussians and as the classifiers read them."""
    blocks = X.reshape(len(X), *prior.mean.shape[1:]).swapaxes(0, 1)
    return blocks, np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def optimise(
    model: Model,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    tell: Callable[[], bool] = lambda: False,
) -> tuple[State, list[float], bool]:
    """Rounds until the objective changes by less than `tol` of itself.

    Returns the last state, the objective at the start and after every round, and False if
    `max_iter` came first.
    """
    state = init(model, rng)
    trace = [objective(model, state)]
    done = False
    while not done and len(trace) <= max_iter:
        state = step(model, rng, state)
        trace.append(objective(model, state))
        done = tell() or trace[-2] - trace[-1] <= tol * abs(trace[-1])
    state = finish(model, rng, state)
    trace[-1] = objective(model, state)
    return state, trace, done
