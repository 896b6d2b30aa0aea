"""Emissions: what a state says about an observation, and what observations say about a state.

An emission is a prior with a few methods; its parameters are a tuple of arrays whose first axis
are the states, and so is what it has to know about observations to draw them. Samplers know nothing
else about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.emissions import (
    add_scatter,
    add_squares,
    average,
    categorical_log_likelihoods,
    diagonal_log_likelihoods,
    draw_diagonal,
    draw_full,
    draw_poisson_rates,
    full_log_likelihoods,
    poisson_log_likelihoods,
)
from regbayes.kernels.random import draw_log_dirichlet
from regbayes.kernels.statistics import add_moments, add_symbols, tilt_moments, tilt_symbols
from regbayes.priors import NormalInverseGamma, NormalInverseWishart, gaussian_prior
from regbayes.priors.exponential import log_shares, share_gradient

Parameters = tuple[NDArray, ...]
Statistics = tuple[NDArray, ...]
COVARIANCES = {"gaussian": "full", "diag": "diag"}  # of the Gaussian emissions, by name


class Emission(Protocol):
    """What the samplers ask of an emission."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the arrays of the parameters are called in a trace; none if they say nothing."""

    def observe(self, X: NDArray, z: NDArray[np.int64], n_states: int) -> Statistics:
        """What the observations of each state say about its parameters."""

    def merge(self, one: Statistics, other: Statistics) -> Statistics:
        """The same of the observations of both."""

    def draw(self, rng: np.random.Generator, seen: Statistics) -> Parameters:
        """Parameters of all states given their observations; from the prior where none are."""

    def log_likelihoods(self, X: NDArray, parameters: Parameters) -> NDArray:
        """log p(x_t | state k), of shape (T, K); zero where x_t is unobserved."""

    def sample(
        self, rng: np.random.Generator, parameters: Parameters, z: NDArray[np.int64]
    ) -> NDArray:
        """An observation for every state of a path."""


class ExponentialEmission(Emission, Protocol):
    """What Baum-Welch and the score spaces ask besides: log p(x | state k) = alpha_k . f(x)."""

    @property
    def n_statistics(self) -> int:
        """Length of f(x)."""

    def statistic_names(self, state: str) -> list[str]:
        """What the entries of f(x) in a state are called."""

    def evidence(self, X: NDArray, parameters: Parameters) -> tuple[NDArray, NDArray | None]:
        """log p(x | state k) in a table, and the row of it that a step has; None: one for each."""

    def expect(self, X: NDArray, marginals: NDArray, cells: NDArray, out: NDArray) -> None:
        """out[cell, k] += p(z_t = k) f(x_t), over the steps of every cell."""

    def tilt(self, X: NDArray, weights: NDArray, cells: NDArray, out: NDArray) -> None:
        """out[t, k] += weights[cell, k] . f(x_t)."""

    def natural(self, parameters: Parameters) -> NDArray:
        """alpha, of shape (K, n_statistics); zero where the statistic cannot occur."""

    def maximize(self, statistics: NDArray) -> Parameters:
        """The parameters of highest posterior density given sums of f(x), (K, n_statistics)."""

    def log_prior(self, parameters: Parameters) -> float:
        """What `maximize` adds to the likelihood, up to a constant."""

    def gradient(self, statistics: NDArray, parameters: Parameters) -> NDArray:
        """d log p / d parameters from sums of f(x), (..., K, n_statistics), of the same shape."""

    def pull_gradient(self, directions: NDArray, parameters: Parameters) -> NDArray:
        """The transpose of `gradient`, which is linear: d (v . gradient(sums)) / d sums."""


@dataclass(frozen=True)
class GaussianEmission:
    """Full covariances under a normal-inverse-Wishart prior; f(x) = (1, x, x_i x_j for j <= i)."""

    prior: NormalInverseWishart
    names = ("means", "factors")

    def observe(self, X, z, n_states):
        counts, averages = _averages(X, z, n_states, len(self.prior.mean))
        scatter = np.zeros((*averages.shape, averages.shape[1]))
        add_scatter(X, z, averages, scatter)
        return counts, averages, scatter

    def merge(self, one, other):
        counts, averages, gap, weight = _merged(one, other)
        apart = np.tril(np.einsum("ki,kj->kij", gap, gap)) * weight[:, None, None]
        return counts, averages, one[2] + other[2] + apart

    def draw(self, rng, seen):
        prior, (counts, averages, scatter) = self.prior, seen
        means, factors = np.empty_like(averages), np.empty_like(scatter)
        draw_full(
            rng, counts, averages, scatter, np.array(prior.mean), prior.strength, prior.df,
            np.array(prior.scale), means, factors,
        )  # fmt: skip
        return means, factors

    def log_likelihoods(self, X, parameters):
        means, factors = parameters
        whitener = np.linalg.inv(factors)
        center = np.einsum("kij,kj->ki", whitener, means)
        log_roots = np.log(np.diagonal(whitener, axis1=1, axis2=2)).sum(axis=1)
        constant = log_roots - 0.5 * means.shape[1] * np.log(2 * np.pi)
        out = np.empty((len(X), len(means)))
        full_log_likelihoods(X, whitener, center, constant, out)
        return out

    def sample(self, rng, parameters, z):
        means, factors = parameters
        noise = rng.standard_normal((len(z), means.shape[1]))
        return means[z] + np.einsum("tij,tj->ti", factors[z], noise)

    @property
    def n_statistics(self):
        n_features = len(self.prior.mean)
        return 1 + n_features + len(self._pairs[0])

    @property
    def _pairs(self):
        return np.tril_indices(len(self.prior.mean))

    def statistic_names(self, state):
        pairs = [f"{state}:x{i}*x{j}" for i, j in zip(*self._pairs)]
        return _gaussian_names(state, len(self.prior.mean), pairs)

    def evidence(self, X, parameters):
        return self.log_likelihoods(X, parameters), None

    def expect(self, X, marginals, cells, out):
        add_moments(X, marginals, cells, True, out)

    def tilt(self, X, weights, cells, out):
        tilt_moments(X, weights, cells, True, out)

    def natural(self, parameters):
        means, factors = parameters
        whitener = np.linalg.inv(factors)
        precisions = whitener.transpose(0, 2, 1) @ whitener
        rows, columns = self._pairs
        # x' P x has every pair twice, but the diagonal.
        squares = -0.5 * precisions[:, rows, columns] * np.where(rows == columns, 1, 2)
        linear = np.einsum("kij,kj->ki", precisions, means)
        log_roots = np.log(np.diagonal(whitener, axis1=1, axis2=2)).sum(axis=1)
        return np.column_stack([_constant(means, linear, log_roots), linear, squares])

    def maximize(self, statistics):
        prior, (n, sums, scatter) = self.prior, self._unpack(statistics)
        total = prior.strength + n
        means = (prior.strength * prior.mean + sums) / total[:, None]
        around = prior.strength * np.outer(prior.mean, prior.mean)
        outer = np.einsum("ki,kj->kij", means, means)
        scatter = around + scatter - total[:, None, None] * outer
        # The mode of the joint density of mean and covariance.
        weight = (prior.df + n + len(prior.mean) + 2)[:, None, None]
        try:
            return means, np.linalg.cholesky((prior.scale + scatter) / weight)
        except np.linalg.LinAlgError:  # far from the centre, squares lose the digits of a spread
            root = np.linalg.cholesky(prior.scale)
            whitener = np.linalg.inv(root)
            values, vectors = np.linalg.eigh(whitener @ scatter @ whitener.T)
            half = root @ (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
            scatter = half @ half.transpose(0, 2, 1)
            return means, np.linalg.cholesky((prior.scale + scatter) / weight)

    def log_prior(self, parameters):
        prior, (means, factors) = self.prior, parameters
        whitener = np.linalg.inv(factors)
        log_roots = np.log(np.diagonal(whitener, axis1=1, axis2=2)).sum()
        shift = np.einsum("kij,kj->ki", whitener, means - prior.mean)
        spread = np.sum((whitener @ prior.scale) * whitener)
        weight = prior.df + len(prior.mean) + 2
        return weight * log_roots - 0.5 * (spread + prior.strength * np.sum(shift**2))

    def gradient(self, statistics, parameters):
        """By means, then by the lower triangles of the covariances."""
        means, factors = parameters
        n, sums, scatter = self._unpack(statistics)
        whitener = np.linalg.inv(factors)
        precisions = whitener.transpose(0, 2, 1) @ whitener
        gap = sums - n[..., None] * means
        by_mean = np.einsum("kij,...kj->...ki", precisions, gap)
        outer = np.einsum("ki,...kj->...kij", means, gap)
        centred = scatter - outer - np.swapaxes(outer, -1, -2)
        centred -= n[..., None, None] * np.einsum("ki,kj->kij", means, means)
        by_covariance = 0.5 * (precisions @ centred @ precisions - n[..., None, None] * precisions)
        rows, columns = self._pairs
        pairs = by_covariance[..., rows, columns] * np.where(rows == columns, 1, 2)
        return np.concatenate([np.zeros_like(n)[..., None], by_mean, pairs], axis=-1)

    def pull_gradient(self, directions, parameters):
        return _transposed(self.gradient, directions, parameters)

    def _unpack(self, statistics):
        """Numbers, sums and matrices of squares."""
        n_features, (rows, columns) = len(self.prior.mean), self._pairs
        scatter = np.empty((*statistics.shape[:-1], n_features, n_features))
        scatter[..., rows, columns] = scatter[..., columns, rows] = statistics[
            ..., 1 + n_features :
        ]
        return statistics[..., 0], statistics[..., 1 : 1 + n_features], scatter


@dataclass(frozen=True)
class DiagonalEmission:
    """Independent Gaussian features, normal-inverse-gamma prior; f(x) = (1, x, x**2)."""

    prior: NormalInverseGamma
    names = ("means", "deviations")

    def observe(self, X, z, n_states):
        counts, averages = _averages(X, z, n_states, len(self.prior.mean))
        squares = np.zeros_like(averages)
        add_squares(X, z, averages, squares)
        return counts, averages, squares

    def merge(self, one, other):
        counts, averages, gap, weight = _merged(one, other)
        return counts, averages, one[2] + other[2] + gap**2 * weight[:, None]

    def draw(self, rng, seen):
        prior, (counts, averages, squares) = self.prior, seen
        means, deviations = np.empty_like(averages), np.empty_like(averages)
        draw_diagonal(
            rng, counts, averages, squares, np.array(prior.mean), prior.strength, prior.df,
            np.array(prior.scale), means, deviations,
        )  # fmt: skip
        return means, deviations

    def log_likelihoods(self, X, parameters):
        means, deviations = parameters
        constant = -np.log(deviations).sum(axis=1) - 0.5 * means.shape[1] * np.log(2 * np.pi)
        out = np.empty((len(X), len(means)))
        diagonal_log_likelihoods(
            X, np.ascontiguousarray(1 / deviations.T), np.ascontiguousarray((means / deviations).T),
            constant, out,
        )  # fmt: skip
        return out

    def sample(self, rng, parameters, z):
        means, deviations = parameters
        return means[z] + deviations[z] * rng.standard_normal((len(z), means.shape[1]))

    @property
    def n_statistics(self):
        return 1 + 2 * len(self.prior.mean)

    def statistic_names(self, state):
        n_features = len(self.prior.mean)
        return _gaussian_names(state, n_features, [f"{state}:x{i}^2" for i in range(n_features)])

    def evidence(self, X, parameters):
        return self.log_likelihoods(X, parameters), None

    def expect(self, X, marginals, cells, out):
        add_moments(X, marginals, cells, False, out)

    def tilt(self, X, weights, cells, out):
        tilt_moments(X, weights, cells, False, out)

    def natural(self, parameters):
        means, deviations = parameters
        linear = means / deviations**2
        constant = _constant(means, linear, -np.log(deviations).sum(axis=1))
        return np.column_stack([constant, linear, -0.5 / deviations**2])

    def maximize(self, statistics):
        prior, (n, sums, squares) = self.prior, self._unpack(statistics)
        total = (prior.strength + n)[:, None]
        means = (prior.strength * prior.mean + sums) / total
        scatter = prior.strength * prior.mean**2 + squares - total * means**2
        # Far from the centre, squares lose the digits of a spread.
        scatter = prior.scale + np.maximum(scatter, 0.0)
        return means, np.sqrt(scatter / (prior.df + n + 3)[:, None])

    def log_prior(self, parameters):
        prior, (means, deviations) = self.prior, parameters
        spread = prior.scale + prior.strength * (means - prior.mean) ** 2
        return -np.sum((prior.df + 3) * np.log(deviations) + 0.5 * spread / deviations**2)

    def gradient(self, statistics, parameters):
        """By means, then by variances."""
        means, deviations = parameters
        n, sums, squares = self._unpack(statistics)
        n, precision = n[..., None], 1 / deviations**2
        centred = squares - 2 * means * sums + n * means**2
        by_variance = 0.5 * precision * (centred * precision - n)
        by_mean = (sums - n * means) * precision
        return np.concatenate([np.zeros_like(n), by_mean, by_variance], axis=-1)

    def pull_gradient(self, directions, parameters):
        return _transposed(self.gradient, directions, parameters)

    def _unpack(self, statistics):
        n_features = len(self.prior.mean)
        squares = statistics[..., 1 + n_features :]
        return statistics[..., 0], statistics[..., 1 : 1 + n_features], squares


def gaussian_emission(
    X: NDArray, covariance: str, strength: float, df: float | None, scale: float
) -> GaussianEmission | DiagonalEmission:
    """Full or diagonal, under a prior centred on observed steps: `priors.gaussian_prior`."""
    prior = gaussian_prior(X, covariance, strength, df, scale)
    if isinstance(prior, NormalInverseWishart):
        return GaussianEmission(prior)
    return DiagonalEmission(prior)


def _transposed(gradient: Callable, directions: NDArray, parameters: Parameters) -> NDArray:
    """The transpose of a linear function of each state's sums, by what it makes of units."""
    n_states, n = directions.shape[-2:]
    units = np.broadcast_to(np.eye(n)[:, None], (n, n_states, n))
    return np.einsum("...ki,jki->...kj", directions, gradient(units, parameters))


def _averages(X: NDArray, z: NDArray, n_states: int, n_features: int) -> tuple[NDArray, NDArray]:
    counts, averages = np.zeros(n_states, dtype=np.int64), np.zeros((n_states, n_features))
    average(X, z, counts, averages)
    return counts, averages


def _merged(one: Statistics, other: Statistics) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Counts and averages of both, the gap between their averages and its weight in squares.

    Chan, Golub & LeVeque (1983): nothing is lost far from the origin.
    """
    counts, gap = one[0] + other[0], other[1] - one[1]
    share = other[0] / np.maximum(counts, 1)
    return counts, one[1] + share[:, None] * gap, gap, one[0] * share


def _gaussian_names(state: str, n_features: int, squares: list[str]) -> list[str]:
    return [f"{state}:steps", *(f"{state}:x{i}" for i in range(n_features)), *squares]


def _constant(means: NDArray, linear: NDArray, log_roots: NDArray) -> NDArray:
    """What a Gaussian's density has that no x is in."""
    log_root = log_roots - 0.5 * means.shape[1] * np.log(2 * np.pi)
    return log_root - 0.5 * np.sum(means * linear, axis=1)


@dataclass(frozen=True)
class CategoricalEmission:
    """Symbols 0, 1, ... under a symmetric Dirichlet prior; -1 is unobserved; f(x) is one-hot."""

    n_symbols: int
    concentration: float
    symbols: tuple[str, ...] = ()  # what they are called
    names = ("log_probabilities",)

    def observe(self, X, z, n_states):
        seen = X >= 0
        counts = np.bincount(
            z[seen] * self.n_symbols + X[seen], minlength=n_states * self.n_symbols
        )
        return (counts.reshape(n_states, self.n_symbols),)

    def merge(self, one, other):
        return (one[0] + other[0],)

    def draw(self, rng, seen):
        posterior = seen[0] + self.concentration
        out = np.empty_like(posterior)
        for concentration, row in zip(posterior, out):
            draw_log_dirichlet(rng, concentration, row)
        return (out,)

    def log_likelihoods(self, X, parameters):
        (log_probabilities,) = parameters
        out = np.empty((len(X), len(log_probabilities)))
        categorical_log_likelihoods(X, np.ascontiguousarray(log_probabilities.T), out)
        return out

    def sample(self, rng, parameters, z):
        (log_probabilities,) = parameters
        noise = rng.gumbel(size=(len(z), self.n_symbols))
        return (log_probabilities[z] + noise).argmax(axis=1)

    @property
    def n_statistics(self):
        return self.n_symbols

    def statistic_names(self, state):
        return [f"{state}:{symbol}" for symbol in self.symbols or range(self.n_symbols)]

    def evidence(self, X, parameters):
        (log_probabilities,) = parameters
        unobserved = np.zeros(len(log_probabilities))  # the last row, that of -1
        return np.vstack([log_probabilities.T, unobserved]), X

    def expect(self, X, marginals, cells, out):
        add_symbols(X, marginals, cells, out)

    def tilt(self, X, weights, cells, out):
        tilt_symbols(X, weights, cells, out)

    def natural(self, parameters):
        (log_probabilities,) = parameters
        return np.where(np.isneginf(log_probabilities), 0.0, log_probabilities)

    def maximize(self, statistics):
        """The mode under Dirichlet(1 + concentration): the concentration counts as symbols seen."""
        return (log_shares(statistics, np.ones_like(statistics, dtype=bool), self.concentration),)

    def log_prior(self, parameters):
        return self.concentration * float(np.sum(parameters[0])) if self.concentration else 0.0

    def gradient(self, statistics, parameters):
        return share_gradient(statistics, np.exp(parameters[0]))

    def pull_gradient(self, directions, parameters):
        return share_gradient(directions, np.exp(parameters[0]))  # it is symmetric


@dataclass(frozen=True)
class PoissonEmission:
    """Independent counts; the rate of feature i has a Gamma(shape[i], rate[i]) prior."""

    shape: NDArray
    rate: NDArray
    names = ("rates",)

    def observe(self, X, z, n_states):
        return _averages(X, z, n_states, len(self.shape))

    def merge(self, one, other):
        return _merged(one, other)[:2]

    def draw(self, rng, seen):
        counts, averages = seen
        rates = np.empty_like(averages)
        draw_poisson_rates(rng, counts, averages, self.shape, self.rate, rates)
        return (rates,)

    def log_likelihoods(self, X, parameters):
        (rates,) = parameters
        out = np.empty((len(X), len(rates)))
        poisson_log_likelihoods(X, np.ascontiguousarray(np.log(rates.T)), -rates.sum(axis=1), out)
        return out

    def sample(self, rng, parameters, z):
        (rates,) = parameters
        return rng.poisson(rates[z]).astype(np.float64)


@dataclass(frozen=True)
class NoEmission:
    """Says nothing: the states follow the labels alone (M2iHMM-2).

    An array with a number for each state stands for its parameters, and says how many there are.
    """

    names = ()

    def observe(self, X, z, n_states):
        return (np.zeros(n_states),)

    def merge(self, one, other):
        return one

    def draw(self, rng, seen):
        return (np.zeros(len(seen[0])),)

    def log_likelihoods(self, X, parameters):
        return np.zeros((len(X), len(parameters[0])))

    def sample(self, rng, parameters, z):
        raise TypeError("observations without a law cannot be drawn")
