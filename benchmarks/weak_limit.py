"""A Gaussian HDP-HMM by the weak-limit Gibbs sampler, in plain NumPy: the usual way before beams.

    beta ~ Dir(gamma / L, ..., gamma / L),   pi_j ~ Dir(alpha beta),   z_t ~ pi_{z_t-1}

with a normal-inverse-Wishart prior of each state's Gaussian (Fox et al. 2011, Algorithm 3, without
stickiness). It stands in for pyhsmm, which no longer installs. All that can be is done for all
states or all steps at once; what remains is the recursion over time, a Python loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.priors import NormalInverseWishart


class Draw(NamedTuple):
    """A finite HMM and the path that it was drawn for; `factors` are Cholesky factors."""

    z: NDArray[np.int64]
    beta: NDArray
    start: NDArray
    transitions: NDArray
    means: NDArray
    factors: NDArray


class WeakLimitHDPHMM:
    """The sampler for one sequence; `sweep` makes a draw from another."""

    def __init__(
        self,
        X: NDArray,
        prior: NormalInverseWishart,
        alpha: float = 1.0,
        gamma: float = 1.0,
        n_states: int = 20,
    ):
        self.X, self.prior, self.alpha, self.gamma, self.n_states = X, prior, alpha, gamma, n_states

    def init(self, rng: np.random.Generator, z: NDArray[np.int64]) -> Draw:
        beta = np.full(self.n_states, 1 / self.n_states)
        return self._parameters(rng, z, beta)

    def sweep(self, rng: np.random.Generator, now: Draw) -> Draw:
        log_likelihoods = log_normals(self.X, now.means, now.factors)
        z = draw_path(rng, now.start, now.transitions, log_likelihoods)
        return self._parameters(rng, z, now.beta)

    def _parameters(self, rng: np.random.Generator, z: NDArray[np.int64], beta: NDArray) -> Draw:
        """Everything given the path."""
        counts = np.zeros((self.n_states + 1, self.n_states), dtype=np.int64)  # first states, moves
        counts[0, z[0]] = 1
        np.add.at(counts[1:], (z[:-1], z[1:]), 1)
        tables = draw_tables(rng, counts, self.alpha * beta)
        beta = rng.dirichlet(self.gamma / self.n_states + tables.sum(axis=0))
        start, *rows = (rng.dirichlet(self.alpha * beta + row) for row in counts)
        return Draw(z, beta, start, np.array(rows), *self._draw_gaussians(rng, z))

    def _draw_gaussians(
        self, rng: np.random.Generator, z: NDArray[np.int64]
    ) -> tuple[NDArray, NDArray]:
        """Means and Cholesky factors of covariances, of all states at once."""
        prior, n_features = self.prior, self.X.shape[1]
        member = (z == np.arange(self.n_states)[:, None]).astype(float)  # [L, T]
        n = member.sum(axis=1)[:, None]
        average = member @ self.X / np.maximum(n, 1)
        centred = self.X - average[z]
        outer = (centred[:, :, None] * centred[:, None, :]).reshape(len(z), -1)
        scatter = (member @ outer).reshape(-1, n_features, n_features)

        strength, gap = prior.strength + n, average - prior.mean
        shrunk = (prior.strength * n / strength)[:, :, None] * gap[:, :, None] * gap[:, None, :]
        root = np.linalg.cholesky(prior.scale + scatter + shrunk)
        # Inverse-Wishart by Bartlett's decomposition.
        bartlett = np.tril(rng.standard_normal(root.shape), -1)
        diagonal = np.arange(n_features)
        bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(prior.df + n - diagonal))
        spread = root @ np.linalg.inv(bartlett).mT
        noise = (spread @ rng.standard_normal((*n.shape, n_features)).mT)[:, :, 0]
        means = prior.mean + n / strength * gap + noise / np.sqrt(strength)
        return means, np.linalg.cholesky(spread @ spread.mT)


def log_normals(X: NDArray, means: NDArray, factors: NDArray) -> NDArray:
    """log N(x_t; state k), of shape (T, L)."""
    whitener = np.linalg.inv(factors)
    white = X @ whitener.mT - means[:, None, :] @ whitener.mT  # [L, T, D]
    log_roots = np.log(np.diagonal(whitener, axis1=1, axis2=2)).sum(axis=1)
    constant = log_roots - 0.5 * means.shape[1] * np.log(2 * np.pi)
    return constant - 0.5 * np.square(white).sum(axis=2).T


def draw_tables(
    rng: np.random.Generator, counts: NDArray[np.int64], concentration: NDArray
) -> NDArray[np.int64]:
    """Tables of the restaurant franchise: customer i opens one with probability a / (a + i)."""
    tables = np.zeros_like(counts)
    for j, k in zip(*np.nonzero(counts)):
        a = concentration[k]
        tables[j, k] = np.sum(rng.random(counts[j, k]) * (a + np.arange(counts[j, k])) < a)
    return tables


def draw_path(
    rng: np.random.Generator, start: NDArray, transitions: NDArray, log_likelihoods: NDArray
) -> NDArray[np.int64]:
    """A path from its posterior: filtered forwards, drawn backwards."""
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    filtered = np.empty_like(likelihoods)
    law = start
    for row, likelihood in zip(filtered, likelihoods):
        np.multiply(law, likelihood, out=row)
        row /= row.sum()
        law = row @ transitions
    path = np.empty(len(filtered), dtype=np.int64)
    uniforms, into = rng.random(len(filtered)), np.ascontiguousarray(transitions.T)
    weights = filtered[-1]
    for t in range(len(filtered) - 1, -1, -1):
        running = weights.cumsum()
        path[t] = state = running.searchsorted(uniforms[t] * running[-1], side="right")
        weights = filtered[t - 1] * into[state]
    return path
