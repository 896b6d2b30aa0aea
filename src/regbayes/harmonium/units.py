"""Hidden units and visible views: exponential families, each a few formulas.

A hidden unit is the pair (z_k, h_k) of switch and value, and its effective feature is z_k h_k.
Given the inputs the pairs are independent, so ``q(z_k, h_k | x)`` is exact: with the activation
``a_k = beta_k + sum_n x_n W_nk`` and the prior's log odds (tau2 - tau1 of 002, Section III-C) it
is a sigmoid and a Gaussian, no inner loop.

Views answer for x given the units: their natural parameter is ``bias + W E[z h]``. `variance` is
read by Gaussian views, `total` by count views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from regbayes.data import VIEW_BOUND

Array = NDArray[np.floating]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), by NumPy's vectorised exponential: twice as fast as SciPy's `expit`."""
    out = np.negative(x)
    np.minimum(out, 80.0, out=out)  # exp(88) is the largest float32
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


class Units(NamedTuple):
    """What q(z, h | x) says about rows of activations."""

    present: Array  # nu = q(z_k = 1)
    mean: Array  # E[z_k h_k]


@dataclass(frozen=True)
class BinaryUnits:
    """``h = 1``: the feature is there or not. Without a prior on z, an RBM's hidden layer."""

    def expect(self, a: Array, log_odds: Array | None, variance: Any = None) -> Units:
        nu = sigmoid(a if log_odds is None else a + log_odds)
        return Units(nu, nu)

    def slope(self, a: Array, units: Units, variance: Any = None) -> Array:
        """Derivative of E[z h] by the activation, the kappa of 002, Section V-C."""
        return units.mean * (1 - units.mean)

    def log_partition(self, a: Array, log_odds: Array | None, variance: Any = None) -> Array:
        """Log of the sum over z, up to what does not depend on the activation."""
        return np.logaddexp(0, a if log_odds is None else a + log_odds)

    def log_partition_by_variance(self, a: Array, units: Units, variance: Any) -> Any:
        return 0.0

    def mean_by_variance(self, a: Array, units: Units, variance: Any) -> Any:
        return 0.0

    def draw(
        self, a: Array, log_odds: Array | None, variance: Any, rng: np.random.Generator
    ) -> Array:
        return _flip(self.expect(a, log_odds).mean, rng)


@dataclass(frozen=True)
class RealUnits:
    """``h ~ N(0, variance)`` before it sees the inputs. Without a prior, z is always 1.

    The printed kappa of 002, Section V-C, lacks a square and the variance; `slope` is the
    derivative indeed.
    """

    def expect(self, a: Array, log_odds: Array | None, variance: Any = 1.0) -> Units:
        shift = variance * a
        if log_odds is None:
            return Units(np.ones_like(a), shift)
        nu = sigmoid(log_odds + 0.5 * shift * a)
        return Units(nu, nu * shift)

    def slope(self, a: Array, units: Units, variance: Any = 1.0) -> Array:
        """Derivative of E[z h] by the activation."""
        nu = units.present
        return nu * variance * (1 + (1 - nu) * variance * a**2)

    def log_partition(self, a: Array, log_odds: Array | None, variance: Any = 1.0) -> Array:
        energy = 0.5 * variance * a**2
        return energy if log_odds is None else np.logaddexp(0, log_odds + energy)

    def log_partition_by_variance(self, a: Array, units: Units, variance: Any) -> Any:
        """Summed derivative by the logarithm of the variance."""
        return 0.5 * np.sum(units.mean * a)

    def mean_by_variance(self, a: Array, units: Units, variance: Any) -> Array:
        """Derivative of E[z h] by the logarithm of the variance."""
        return units.mean * (1 + 0.5 * (1 - units.present) * variance * a**2)

    def draw(
        self, a: Array, log_odds: Array | None, variance: Any, rng: np.random.Generator
    ) -> Array:
        there = _flip(self.expect(a, log_odds, variance).present, rng)
        noise = rng.standard_normal(a.shape, dtype=a.dtype.type)
        return there * (variance * a + np.sqrt(variance) * noise)


@dataclass(frozen=True)
class GaussianView:
    """Real inputs of unit order. They and their reconstructions stay within `bound`: real units on
    real inputs have no normaliser otherwise (002, Section III-A)."""

    bound: float = VIEW_BOUND
    has_variance = True

    def mean(self, natural: Array, variance: Any, total: Any) -> Array:
        return np.clip(variance * natural, -self.bound, self.bound)

    def covary(self, mean: Array, pull: Array, variance: Any, total: Any) -> Array:
        """`pull`, a derivative by the mean, as one by the natural parameter."""
        return pull * variance * (np.abs(mean) < self.bound)

    def log_base(self, x: Any, variance: Any) -> Any:
        squares = x.multiply(x).sum(axis=1) if hasattr(x, "multiply") else (x * x).sum(axis=1)
        return np.asarray(squares).ravel() / (2 * variance)

    def log_partition(self, natural: Array, variance: Any, total: Any) -> Array:
        mean = self.mean(natural, variance, total)
        inside = mean * natural - mean**2 / (2 * variance)
        return inside.sum(axis=1) + 0.5 * natural.shape[1] * np.log(variance)

    def draw(self, natural: Array, variance: Any, total: Any, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal(natural.shape, dtype=natural.dtype.type)
        noisy = variance * natural + np.sqrt(variance) * noise
        return np.clip(noisy, -self.bound, self.bound)

    def first_bias(self, means: Array) -> Array:
        return means


@dataclass(frozen=True)
class BernoulliView:
    """Inputs of 0 and 1."""

    has_variance = False

    def mean(self, natural: Array, variance: Any, total: Any) -> Array:
        return sigmoid(natural)

    def covary(self, mean: Array, pull: Array, variance: Any, total: Any) -> Array:
        return pull * mean * (1 - mean)

    def log_base(self, x: Any, variance: Any) -> Any:
        return 0.0

    def log_partition(self, natural: Array, variance: Any, total: Any) -> Array:
        return np.logaddexp(0, natural).sum(axis=1)

    def draw(self, natural: Array, variance: Any, total: Any, rng: np.random.Generator) -> Array:
        return _flip(sigmoid(natural), rng)

    def first_bias(self, means: Array) -> Array:
        rare = np.clip(means, 1e-4, 1 - 1e-4)
        return np.log(rare) - np.log1p(-rare)


@dataclass(frozen=True)
class CountView:
    """Counts whose total is given: Poissons under a constraint, one softmax for all tokens of a row
    (Salakhutdinov & Hinton 2009)."""

    has_variance = False

    def mean(self, natural: Array, variance: Any, total: Any) -> Array:
        return total[:, None] * softmax(natural, axis=1)

    def covary(self, mean: Array, pull: Array, variance: Any, total: Any) -> Array:
        average = np.einsum("dn,dn->d", pull, mean) / np.maximum(total, 1e-30)
        return mean * (pull - average[:, None])

    def log_base(self, x: Any, variance: Any) -> Any:
        return 0.0

    def log_partition(self, natural: Array, variance: Any, total: Any) -> Array:
        return total * logsumexp(natural, axis=1)

    def draw(self, natural: Array, variance: Any, total: Any, rng: np.random.Generator) -> Array:
        p = softmax(natural.astype(np.float64), axis=1)
        return rng.multinomial(np.rint(total).astype(np.int64), p).astype(natural.dtype)

    def first_bias(self, means: Array) -> Array:
        return np.log(np.maximum(means, 1e-4 * means.mean() + 1e-8))


def _flip(p: Array, rng: np.random.Generator) -> Array:
    return (rng.random(p.shape, dtype=p.dtype.type) < p).astype(p.dtype)


View = GaussianView | BernoulliView | CountView
VIEWS: dict[str, View] = {
    "gaussian": GaussianView(),
    "bernoulli": BernoulliView(),
    "count": CountView(),
}
UNITS: dict[str, BinaryUnits | RealUnits] = {"binary": BinaryUnits(), "real": RealUnits()}
