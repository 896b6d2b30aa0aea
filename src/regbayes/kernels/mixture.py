"""DP mixture of Gaussians, compiled: component statistics, the assignment sweep, the votes.

A component holds the posterior Normal-inverse-Wishart of its members: its mean, and `factor`, the
lower Cholesky factor of the posterior scale matrix (full covariance, `[M, M]`) or the posterior
scales themselves (diagonal covariance, `[1, M]`). Its predictive density is a Student-t, or a
product of them when diagonal; `constant` caches all of it that does not depend on `x`.
"""

import math
from typing import NamedTuple

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.linalg import cholesky_downdate, cholesky_update
from regbayes.kernels.labels import (
    draw_label_weights,
    draw_new_label_weights,
    log_label,
    log_label_evidence,
)
from regbayes.kernels.random import draw_categorical


class Base(NamedTuple):
    """The Normal-inverse-Wishart prior of every component."""

    mean: np.ndarray  # [M]
    factor: np.ndarray  # [M, M] lower, or [1, M]
    strength: float
    df: float


class Components(NamedTuple):
    """The components, with room to spare: the first `n_components` rows are in use."""

    counts: np.ndarray  # [K]
    mean: np.ndarray  # [K, M]
    factor: np.ndarray  # [K, M, M] or [K, 1, M]
    constant: np.ndarray  # [K]
    weights: np.ndarray  # [K, L, M + 1]


class Table(NamedTuple):
    """The data: inputs, inputs with a constant appended, labels, log p(x | base)."""

    X: np.ndarray  # [n, M]
    X1: np.ndarray  # [n, M + 1]
    y: np.ndarray  # [n], -1 where unknown
    log_new: np.ndarray  # [n]


@kernel
def _is_diagonal(factor):
    return factor.shape[0] != factor.shape[1]


@kernel
def predictive_constant(n, factor, base):
    """log predictive density of a component of `n` members, less the part that depends on `x`.

    With k = strength + n the Student-t has df + n - M + 1 degrees of freedom and scale matrix
    S (k + 1) / (k dof): the dof cancel from its normaliser.
    """
    n_features = factor.shape[1]
    k = base.strength + n
    half_log_det = 0.0
    if _is_diagonal(factor):
        dof = base.df + n
        for m in range(n_features):
            half_log_det += 0.5 * math.log(factor[0, m])
        gammas = n_features * (math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * dof))
    else:
        dof = base.df + n - n_features + 1.0
        for m in range(n_features):
            half_log_det += math.log(factor[m, m])
        gammas = math.lgamma(0.5 * (dof + n_features)) - math.lgamma(0.5 * dof)
    return gammas - half_log_det - 0.5 * n_features * math.log(math.pi * (k + 1.0) / k)


@kernel
def log_predictive(x, n, mean, factor, constant, base, work):
    """log Student-t density of `x` under a component of `n` members."""
    n_features = factor.shape[1]
    k = base.strength + n
    shrink = k / (k + 1.0)
    half = 0.5 * (base.df + n + 1.0)
    if _is_diagonal(factor):
        product, log_product = 1.0, 0.0
        for m in range(n_features):
            gap = x[m] - mean[m]
            product *= 1.0 + shrink * gap * gap / factor[0, m]
            if product > 1e100:  # few logarithms, no overflow
                log_product += math.log(product)
                product = 1.0
        return constant - half * (log_product + math.log(product))
    distance = 0.0
    for a in range(n_features):
        total = x[a] - mean[a]
        for b in range(a):
            total -= factor[a, b] * work[b]
        total /= factor[a, a]
        work[a] = total
        distance += total * total
    return constant - half * math.log1p(shrink * distance)


@kernel
def add_member(x, n, mean, factor, strength, work):
    """Take `x` into a component that has `n` members."""
    n_features = factor.shape[1]
    k = strength + n
    scale = math.sqrt(k / (k + 1.0))
    for m in range(n_features):
        gap = x[m] - mean[m]
        work[m] = scale * gap
        mean[m] += gap / (k + 1.0)
    if _is_diagonal(factor):
        for m in range(n_features):
            factor[0, m] += work[m] * work[m]
    else:
        cholesky_update(factor, work)


@kernel
def remove_member(x, n, mean, factor, strength, work):
    """Take `x` out of a component that has `n` members; False if rounding stood in the way."""
    n_features = factor.shape[1]
    k = strength + n
    scale = math.sqrt(k / (k - 1.0))
    for m in range(n_features):
        gap = x[m] - mean[m]
        work[m] = scale * gap
        mean[m] -= gap / (k - 1.0)
    if _is_diagonal(factor):
        sound = True
        for m in range(n_features):
            factor[0, m] -= work[m] * work[m]
            sound = sound and factor[0, m] > 0.0
        return sound
    return cholesky_downdate(factor, work)


@kernel
def collect(X, z, k, base, components, work):
    """The statistics of component `k` afresh from its members."""
    components.mean[k] = base.mean
    components.factor[k] = base.factor
    n = 0
    for d in range(X.shape[0]):
        if z[d] == k:
            add_member(X[d], n, components.mean[k], components.factor[k], base.strength, work)
            n += 1
    components.counts[k] = n
    components.constant[k] = predictive_constant(n, components.factor[k], base)


@kernel
def collect_all(X, z, n_components, base, components):
    """`collect` for all in one pass: done each sweep, so that rounding never builds up."""
    work = np.empty(X.shape[1])
    for k in range(n_components):
        components.counts[k] = 0
        components.mean[k] = base.mean
        components.factor[k] = base.factor
    for d in range(X.shape[0]):
        k = z[d]
        n = components.counts[k]
        add_member(X[d], n, components.mean[k], components.factor[k], base.strength, work)
        components.counts[k] = n + 1
    for k in range(n_components):
        components.constant[k] = predictive_constant(
            components.counts[k], components.factor[k], base
        )


@kernel
def _drop(components, z, k, last):
    """Give the place of the empty component `k` to the last one."""
    if k != last:
        components.counts[k] = components.counts[last]
        components.mean[k] = components.mean[last]
        components.factor[k] = components.factor[last]
        components.constant[k] = components.constant[last]
        components.weights[k] = components.weights[last]
        for d in range(z.shape[0]):
            if z[d] == last:
                z[d] = k


@kernel
def assign(rng, start, table, z, n_components, components, base, term, alpha, max_components):
    """Resample `z[start:]`, one datum at a time (000, Eqs. 17 and 18).

    Returns where it stopped and the number of components: it stops early when `components` has no
    room for one more, so that the caller can grow it and go on, and at -1 when the densities of
    some datum are not numbers.
    """
    n_points, n_features = table.X.shape
    capacity = components.counts.shape[0]
    work = np.empty(n_features)
    log_weights = np.empty(capacity + 1)
    mean_kept = np.empty(n_features)
    factor_kept = np.empty(base.factor.shape)
    log_alpha = math.log(alpha)
    for d in range(start, n_points):
        if n_components == capacity and capacity < max_components:
            return d, n_components
        x, x1, label = table.X[d], table.X1[d], table.y[d]

        own = z[d]
        constant_kept = components.constant[own]
        if components.counts[own] == 1:
            n_components -= 1
            z[d] = -1
            _drop(components, z, own, n_components)
            own = -1
        else:
            mean_kept[:] = components.mean[own]
            factor_kept[:] = components.factor[own]
            n = components.counts[own]
            sound = remove_member(
                x, n, components.mean[own], components.factor[own], base.strength, work
            )
            components.counts[own] = n - 1
            if sound:
                components.constant[own] = predictive_constant(n - 1, components.factor[own], base)
            else:
                z[d] = -1
                collect(table.X, z, own, base, components, work)

        for k in range(n_components):  # Eq. 17
            log_weights[k] = (
                math.log(components.counts[k])
                + log_predictive(
                    x,
                    components.counts[k],
                    components.mean[k],
                    components.factor[k],
                    components.constant[k],
                    base,
                    work,
                )
                + log_label(x1, label, components.weights[k], term)
            )
        n_choices, log_evidence = n_components, 0.0
        if n_components < max_components:  # Eq. 18
            # phi <= 1 bounds the label evidence, so the quadrature is put off until a new
            # component is proposed; rejecting it, the draw starts afresh with the exact weight.
            log_weights[n_components] = log_alpha + table.log_new[d]
            n_choices += 1
        k = draw_categorical(rng, log_weights[:n_choices])
        if k == n_components:
            log_evidence = log_label_evidence(x1, label, term)
            if -rng.standard_exponential() > log_evidence:
                log_weights[n_components] += log_evidence
                k = draw_categorical(rng, log_weights[:n_choices])

        if k < 0:
            return -1, n_components
        z[d] = k
        if k == own:  # back to where it was: no rounding, no work
            components.counts[k] += 1
            components.mean[k] = mean_kept
            components.factor[k] = factor_kept
            components.constant[k] = constant_kept
            continue
        if k == n_components:
            n_components += 1
            components.counts[k] = 0
            components.mean[k] = base.mean
            components.factor[k] = base.factor
            draw_new_label_weights(rng, x1, label, term, log_evidence, components.weights[k])
        n = components.counts[k]
        add_member(x, n, components.mean[k], components.factor[k], base.strength, work)
        components.counts[k] = n + 1
        components.constant[k] = predictive_constant(n + 1, components.factor[k], base)
    return n_points, n_components


@kernel
def draw_all_weights(rng, table, z, n_components, components, term):
    """The weights of every component given the assignments (000, Eqs. 19-23)."""
    n_points = z.shape[0]
    members = np.empty(n_points, dtype=np.int64)
    ends = np.zeros(n_components + 1, dtype=np.int64)
    for d in range(n_points):
        ends[z[d] + 1] += 1
    for k in range(n_components):
        ends[k + 1] += ends[k]
    starts = ends[:n_components].copy()
    for d in range(n_points):
        members[starts[z[d]]] = d
        starts[z[d]] += 1
    for k in range(n_components):
        draw_label_weights(
            rng, table.X1, table.y, members[ends[k] : ends[k + 1]], components.weights[k], term
        )


@kernel
def log_gates(x, components, base, log_new, out, work):
    """log of the unnormalised weight of every component for a new `x`, a fresh one last."""
    n_components = components.counts.shape[0]
    for k in range(n_components):
        out[k] = math.log(components.counts[k]) + log_predictive(
            x,
            components.counts[k],
            components.mean[k],
            components.factor[k],
            components.constant[k],
            base,
            work,
        )
    out[n_components] = log_new


@kernel
def _winner(x1, weights):
    best, best_score = 0, -np.inf
    for j in range(weights.shape[0]):
        score = 0.0
        for m in range(x1.shape[0]):
            score += weights[j, m] * x1[m]
        if score > best_score:
            best, best_score = j, score
    return best


@kernel
def add_votes(table, components, base, term, alpha, votes):
    """Add to `votes[n, L]` the shares that one posterior draw gives to every label.

    A component votes for its classifier's answer with its posterior probability given `x`; a
    component not seen yet votes as the mean of its prior weights does, or for all labels alike
    when that mean knows nothing.
    """
    n_points, n_features = table.X.shape
    n_classes = votes.shape[1]
    n_components = components.counts.shape[0]
    work = np.empty(n_features)
    gates = np.empty(n_components + 1)
    ignorant = not np.any(term.mean)
    for d in range(n_points):
        log_gates(
            table.X[d], components, base, math.log(alpha) + table.log_new[d], gates, work
        )
        top = gates.max()
        total = 0.0
        for k in range(n_components + 1):
            gates[k] = math.exp(gates[k] - top)
            total += gates[k]
        for k in range(n_components):
            votes[d, _winner(table.X1[d], components.weights[k])] += gates[k] / total
        if ignorant:
            for j in range(n_classes):
                votes[d, j] += gates[n_components] / (total * n_classes)
        else:
            votes[d, _winner(table.X1[d], term.mean)] += gates[n_components] / total


@kernel
def add_iterated_votes(rng, table, components, base, term, alpha, n_rounds, votes):
    """The paper's prediction (000, Section 4.3): draw z | x, answer, then alternate z | x, answer.

    One stream of uniforms serves every datum, so that an answer does not depend on its neighbours.
    """
    n_points, n_features = table.X.shape
    n_components = components.counts.shape[0]
    work = np.empty(n_features)
    gates = np.empty(n_components + 1)
    tilted = np.empty(n_components + 1)
    uniforms = rng.random(n_rounds)
    fresh = term.mean + term.nu * rng.standard_normal(term.mean.shape)
    for d in range(n_points):
        x1 = table.X1[d]
        log_gates(
            table.X[d], components, base, math.log(alpha) + table.log_new[d], gates, work
        )
        answer = -1
        for i in range(n_rounds):
            for k in range(n_components):
                tilted[k] = gates[k] + log_label(x1, answer, components.weights[k], term)
            tilted[n_components] = gates[n_components] + log_label(x1, answer, fresh, term)
            k = _index_at(tilted, uniforms[i])
            weights = fresh if k == n_components else components.weights[k]
            answer = _winner(x1, weights)
        votes[d, answer] += 1.0


@kernel
def _index_at(log_weights, uniform):
    """The categorical value at quantile `uniform`."""
    top = log_weights.max()
    total = 0.0
    for k in range(log_weights.shape[0]):
        total += math.exp(log_weights[k] - top)
    threshold = uniform * total
    cumulative = 0.0
    for k in range(log_weights.shape[0] - 1):
        cumulative += math.exp(log_weights[k] - top)
        if cumulative > threshold:
            return k
    return log_weights.shape[0] - 1


@kernel
def nearest_components(table, components, base):
    """The component with the largest posterior probability given `x` alone, for every datum."""
    work = np.empty(table.X.shape[1])
    gates = np.empty(components.counts.shape[0] + 1)
    out = np.empty(table.X.shape[0], dtype=np.int64)
    for d in range(table.X.shape[0]):
        log_gates(table.X[d], components, base, -np.inf, gates, work)
        out[d] = np.argmax(gates)
    return out


@kernel
def log_base_density(X, base):
    """log p(x | base) of every row: the predictive density of an empty component."""
    work = np.empty(X.shape[1])
    constant = predictive_constant(0, base.factor, base)
    out = np.empty(X.shape[0])
    for d in range(X.shape[0]):
        out[d] = log_predictive(X[d], 0, base.mean, base.factor, constant, base, work)
    return out


@kernel
def log_joint_data(table, z, n_components, components, base, term):
    """log p(X | z) phi(y | z, weights) from collected statistics, up to a constant."""
    n_features = table.X.shape[1]
    total = 0.0
    for k in range(n_components):
        n, factor = components.counts[k], components.factor[k]
        k_n, df_n = base.strength + n, base.df + n
        total -= 0.5 * n_features * math.log(k_n)
        if _is_diagonal(factor):
            for m in range(n_features):
                total += math.lgamma(0.5 * df_n) - 0.5 * df_n * math.log(factor[0, m])
                total -= math.lgamma(0.5 * base.df) - 0.5 * base.df * math.log(base.factor[0, m])
        else:
            for m in range(n_features):
                total += math.lgamma(0.5 * (df_n - m)) - df_n * math.log(factor[m, m])
                total -= math.lgamma(0.5 * (base.df - m)) - base.df * math.log(base.factor[m, m])
        total += 0.5 * n_features * (math.log(base.strength) - n * math.log(math.pi))
    for d in range(z.shape[0]):
        total += log_label(table.X1[d], table.y[d], components.weights[z[d]], term)
    return total
