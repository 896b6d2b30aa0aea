"""Harmoniums on arrays: energies, what they say about units and views, and every gradient.

One energy for all models of 002 (its Eqs. 4 and 8, any number of views)::

    log p(x, z, h) = sum_v [bias_v . x_v - |x_v|^2 / 2 s_v] + beta . (z h) - |h|^2 / 2 s
                     + sum_v x_v . W_v (z h) + log p(z | v) + const

Integrated over the exact q(z, h | x) it is minus the free energy

    F(x) = sum_v [|x_v|^2 / 2 s_v - bias_v . x_v] - sum_k logZ_k(a_k),   a = beta + sum_v x_v . W_v

and the contrastive divergence compares the data x0 with a reconstruction, whose law q1 has natural
parameters ``i = bias + W E[z h | x0]`` and means x1 (Section III-C):

    CF = F(x0) - [F(x1) - H(q1)]

`gradient` holds q1 fixed, as contrastive divergence does. With ``exact`` the reconstruction moves
with the parameters, for methods that search along a line. The sticks are shared by both phases, so
their own divergence cancels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from regbayes.harmonium.margins import Margin
from regbayes.harmonium.units import BinaryUnits, RealUnits, Units, View
from regbayes.kernels.sparse import add_transposed_product

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Model:
    """What stays fixed: which parts the harmonium is made of."""

    views: tuple[View, ...]
    units: BinaryUnits | RealUnits
    margin: Margin | None = None
    learn_variance: bool = False


@dataclass(frozen=True)
class Parameters:
    """What is learnt, or its gradient. `mu` and `intercept` are there with a margin only."""

    weights: tuple[Array, ...]  # W_v, (N_v, K)
    biases: tuple[Array, ...]  # (N_v,)
    beta: Array  # (K,)
    log_variances: Array  # of the Gaussian views, (n_views,)
    log_unit_variance: Array  # of real units, (1,)
    mu: Array  # (K, n_outputs)
    intercept: Array  # (n_outputs,)

    def __iter__(self) -> Iterator[Array]:
        """All arrays, in a fixed order."""
        yield from self.weights
        yield from self.biases
        yield from (self.beta, self.log_variances, self.log_unit_variance, self.mu, self.intercept)

    def like(self, arrays: Any) -> Parameters:
        """The same shape of model with other arrays, in the order of iteration."""
        arrays = list(arrays)
        n = len(self.weights)
        return Parameters(tuple(arrays[:n]), tuple(arrays[n : 2 * n]), *arrays[2 * n :])

    def take(self, features: Any) -> Parameters:
        """Some of the features, or all in another order."""
        return Parameters(
            tuple(np.ascontiguousarray(W[:, features]) for W in self.weights),
            self.biases,
            self.beta[features],
            self.log_variances,
            self.log_unit_variance,
            np.ascontiguousarray(self.mu[features]),
            self.intercept,
        )


class Batch(NamedTuple):
    """Rows of every view, dense or CSR, the totals of count views, and labels or numbers."""

    views: tuple[Any, ...]
    totals: tuple[Array | None, ...]
    target: Any = None


def activations(params: Parameters, views: Any) -> Array:
    """a = beta + sum_v x_v . W_v."""
    a = params.beta
    for x, W in zip(views, params.weights):
        part = x @ W
        part += a
        a = part
    return a


def expect_units(
    model: Model, params: Parameters, views: Any, log_odds: Array | None
) -> tuple[Array, Units]:
    """Activations, and q(z, h | x) by them."""
    a = activations(params, views)
    return a, model.units.expect(a, log_odds, np.exp(params.log_unit_variance))


def naturals(params: Parameters, features: Array) -> Iterator[Array]:
    """bias_v + W_v (z h), view by view."""
    for W, bias in zip(params.weights, params.biases):
        natural = (W @ features.T).T  # a fifth faster than features @ W.T for small batches
        natural += bias
        yield natural


def view_means(model: Model, params: Parameters, features: Array, totals: Any) -> tuple[Array, ...]:
    """E[x_v | z h]."""
    variances = np.exp(params.log_variances)
    return tuple(
        view.mean(natural, variance, total)
        for view, natural, variance, total in zip(
            model.views, naturals(params, features), variances, totals
        )
    )


def objective(
    model: Model, params: Parameters, batch: Batch, log_odds: Array | None
) -> tuple[float, float]:
    """Means over a batch of the contrastive divergence and of the margin's loss."""
    variance, unit_variance = np.exp(params.log_variances), np.exp(params.log_unit_variance)
    a0, units = expect_units(model, params, batch.views, log_odds)
    means = view_means(model, params, units.mean, batch.totals)
    a1 = activations(params, means)
    log_z = model.units.log_partition
    contrast = log_z(a1, log_odds, unit_variance).sum(axis=1)
    contrast -= log_z(a0, log_odds, unit_variance).sum(axis=1)
    for v, (view, natural, x0, x1) in enumerate(
        zip(model.views, naturals(params, units.mean), batch.views, means)
    ):
        contrast += view.log_base(x0, variance[v]) - x0 @ params.biases[v]
        contrast -= np.einsum("dn,dn->d", natural, x1) - x1 @ params.biases[v]
        contrast += view.log_partition(natural, variance[v], batch.totals[v])
    if model.margin is None:
        return float(contrast.mean()), 0.0
    losses, _ = model.margin.losses(units.mean @ params.mu + params.intercept, batch.target)
    return float(contrast.mean()), float(losses.mean())


def gradient(
    model: Model,
    params: Parameters,
    batch: Batch,
    log_odds: Array | None,
    *,
    dropped: Array | None = None,
    exact: bool = False,
) -> tuple[Parameters, Units]:
    """Gradient of the mean of ``CF + margin`` over a batch (002, Section V-C), and its units.

    `dropped` multiplies the features before the classifier sees them.
    """
    share = params.beta.dtype.type(1.0 / batch.views[0].shape[0])
    variances, unit_variance = np.exp(params.log_variances), np.exp(params.log_unit_variance)
    a0, units = expect_units(model, params, batch.views, log_odds)
    d_mean: Any = 0.0  # by E[z h]
    d_mu, d_intercept = params.mu, params.intercept  # empty unless there is a margin

    if model.margin is not None:
        seen = units.mean if dropped is None else units.mean * dropped
        _, slope = model.margin.losses(seen @ params.mu + params.intercept, batch.target)
        slope *= share
        d_mu, d_intercept = seen.T @ slope, slope.sum(axis=0)
        d_mean = slope @ params.mu.T
        if dropped is not None:
            d_mean *= dropped

    # Section III-C; the printed gradient of W has h where z h is meant.
    means = view_means(model, params, units.mean, batch.totals)
    a1, again = expect_units(model, params, means, log_odds)
    d_a1 = share * again.mean
    d_naturals: list[Array] = []
    if exact:
        # CF moves with x1 by -W (m0 - m1) alone, m the means of the units before and after: the
        # entropy's share cancels against that of the natural parameters.
        gap = share * (again.mean - units.mean)
        for view, x1, W, s, total in zip(
            model.views, means, params.weights, variances, batch.totals
        ):
            d_naturals.append(view.covary(x1, gap @ W.T, s, total))
            d_mean = d_mean + d_naturals[-1] @ W
    d_a0 = -share * units.mean
    if exact or model.margin is not None:
        d_a0 += d_mean * model.units.slope(a0, units, unit_variance)

    weights = [_outer(x0, d_a0, x1, d_a1) for x0, x1 in zip(batch.views, means)]
    biases = [share * (column_sums(x1) - column_sums(x0)) for x0, x1 in zip(batch.views, means)]
    for d_W, d_bias, d_natural in zip(weights, biases, d_naturals):
        d_W += d_natural.T @ units.mean
        d_bias += d_natural.sum(axis=0)

    d_log_variances, d_log_unit_variance = 0 * params.log_variances, 0 * params.log_unit_variance
    if model.learn_variance:
        for v, (view, x0, x1, s) in enumerate(zip(model.views, batch.views, means, variances)):
            if view.has_variance:
                d_log_variances[v] = share * np.sum(view.log_base(x1, s) - view.log_base(x0, s))
                d_log_variances[v] += 0.5 * x1.shape[1]
                if exact:
                    d_log_variances[v] += np.sum(d_naturals[v] * x1) / s
        s, direct = unit_variance, model.units.log_partition_by_variance
        d_log_unit_variance += share * (direct(a1, again, s) - direct(a0, units, s))
        d_log_unit_variance += np.sum(d_mean * model.units.mean_by_variance(a0, units, s))
    return Parameters(
        tuple(weights),
        tuple(biases),
        d_a0.sum(axis=0) + d_a1.sum(axis=0),
        d_log_variances,
        d_log_unit_variance,
        d_mu,
        d_intercept,
    ), units


def _outer(x0: Any, d_a0: Array, x1: Array, d_a1: Array) -> Array:
    """x0' d_a0 + x1' d_a1."""
    if not sparse.issparse(x0):  # one product instead of two and a sum
        return np.concatenate([x0, x1]).T @ np.concatenate([d_a0, d_a1])
    out = x1.T @ d_a1
    add_transposed_product(out, x0.data, x0.indices, x0.indptr, d_a0)
    return out


def column_sums(x: Any) -> Array:
    return np.asarray(x.sum(axis=0)).ravel() if sparse.issparse(x) else np.add.reduce(x)
