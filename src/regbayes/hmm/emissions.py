"""Emissions: what a state says about an observation, and what observations say about a state.

An emission is a prior with four methods; its parameters are a tuple of arrays whose first axis
are the states. Samplers know nothing else about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.emissions import (
    categorical_log_likelihoods,
    diagonal_log_likelihoods,
    draw_diagonal,
    draw_full,
    draw_poisson_rates,
    full_log_likelihoods,
    poisson_log_likelihoods,
)
from regbayes.kernels.random import draw_log_dirichlet
from regbayes.priors import NormalInverseGamma, NormalInverseWishart

Parameters = tuple[NDArray, ...]
COVARIANCES = {"gaussian": "full", "diag": "diag"}  # of the Gaussian emissions, by name


class Emission(Protocol):
    """What the samplers ask of an emission."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the arrays of the parameters are called in a trace; none if they say nothing."""

    def draw(
        self, rng: np.random.Generator, X: NDArray, z: NDArray[np.int64], n_states: int
    ) -> Parameters:
        """Parameters of all states given their observations; from the prior where none are."""

    def log_likelihoods(self, X: NDArray, parameters: Parameters) -> NDArray:
        """log p(x_t | state k), of shape (T, K); zero where x_t is unobserved."""

    def sample(
        self, rng: np.random.Generator, parameters: Parameters, z: NDArray[np.int64]
    ) -> NDArray:
        """An observation for every state of a path."""


@dataclass(frozen=True)
class GaussianEmission:
    """Full covariances under a normal-inverse-Wishart prior."""

    prior: NormalInverseWishart
    names = ("means", "factors")

    def draw(self, rng, X, z, n_states):
        n_features = len(self.prior.mean)
        means = np.empty((n_states, n_features))
        factors = np.empty((n_states, n_features, n_features))
        prior = self.prior
        draw_full(
            rng, X, z, np.array(prior.mean), prior.strength, prior.df, np.array(prior.scale),
            means, factors,
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


@dataclass(frozen=True)
class DiagonalEmission:
    """Independent Gaussian features under a normal-inverse-gamma prior."""

    prior: NormalInverseGamma
    names = ("means", "deviations")

    def draw(self, rng, X, z, n_states):
        prior = self.prior
        means = np.empty((n_states, len(prior.mean)))
        deviations = np.empty_like(means)
        draw_diagonal(
            rng, X, z, np.array(prior.mean), prior.strength, prior.df, np.array(prior.scale),
            means, deviations,
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


@dataclass(frozen=True)
class CategoricalEmission:
    """Symbols 0, 1, ... under a symmetric Dirichlet prior; -1 is unobserved."""

    n_symbols: int
    concentration: float
    names = ("log_probabilities",)

    def draw(self, rng, X, z, n_states):
        seen = X >= 0
        counts = np.bincount(
            z[seen] * self.n_symbols + X[seen], minlength=n_states * self.n_symbols
        )
        posterior = counts.reshape(n_states, self.n_symbols) + self.concentration
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


@dataclass(frozen=True)
class PoissonEmission:
    """Independent counts; the rate of feature i has a Gamma(shape[i], rate[i]) prior."""

    shape: NDArray
    rate: NDArray
    names = ("rates",)

    def draw(self, rng, X, z, n_states):
        rates = np.empty((n_states, len(self.shape)))
        draw_poisson_rates(rng, X, z, self.shape, self.rate, rates)
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

    def draw(self, rng, X, z, n_states):
        return (np.zeros(n_states),)

    def log_likelihoods(self, X, parameters):
        return np.zeros((len(X), len(parameters[0])))

    def sample(self, rng, parameters, z):
        raise TypeError("observations without a law cannot be drawn")
