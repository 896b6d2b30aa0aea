"""DP mixture of Gaussians, compiled: component statistics, the assignment sweep, the votes.

A component holds the posterior Normal-inverse-Wishart of its members: its mean, and `factor`, the
lower Cholesky factor of the posterior scale matrix (full covariance) or the posterior scales
themselves (diagonal). Its predictive density is a Student-t, or a product of them when diagonal.
Components are the last axis of both, so that one datum meets all of them in vector instructions.
"""

import math
from typing import NamedTuple

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.labels import (
    add_log_labels,
    draw_new_label_weights,
    log_label,
    log_label_evidence,
)
from regbayes.kernels.linalg import cholesky, cholesky_downdate, cholesky_update
from regbayes.kernels.random import categorical_at, draw_categorical


class Base(NamedTuple):
    """The Normal-inverse-Wishart prior of every component."""

    mean: np.ndarray  # [M]
    factor: np.ndarray  # [M, M] lower, or [1, M] when diagonal
    strength: float
    df: float


class Components(NamedTuple):
    """The components, with room to spare: the first `n_components` are in use."""

    counts: np.ndarray  # [K]
    mean: np.ndarray  # [M, K]
    factor: np.ndarray  # [M, M, K] or [1, M, K]
    constant: np.ndarray  # [K] all of the log density that does not depend on x
    log_size: np.ndarray  # [K] log of counts
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
    S (k + 1) / (k dof): the dof cancel from its normaliser. `factor` is that of one component.
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
def distances(x, n_components, mean, factor, out, work):
    """Squared distance of `x` from every mean, in units of the component's scale matrix.

    For diagonal components `work[m, k]` keeps the parts, of which `out[k]` is the sum.
    """
    n_features = mean.shape[0]
    out[:n_components] = 0.0
    for a in range(n_features):
        centre, part = mean[a], work[a]
        for k in range(n_components):
            part[k] = x[a] - centre[k]
        if _is_diagonal(factor):
            scale = factor[0, a]
            for k in range(n_components):
                part[k] *= part[k] / scale[k]
                out[k] += part[k]
        else:
            for b in range(a):
                row, known = factor[a, b], work[b]
                for k in range(n_components):
                    part[k] -= row[k] * known[k]
            scale = factor[a, a]
            for k in range(n_components):
                part[k] /= scale[k]
                out[k] += part[k] * part[k]


@kernel
def _log_product(parts, k, scale):
    """log of prod_m (1 + scale parts[m, k]) with few logarithms and no overflow."""
    product, total = 1.0, 0.0
    for m in range(parts.shape[0]):
        product *= 1.0 + scale * parts[m, k]
        if not 1e-100 < product < 1e100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@kernel
def _log_spread(k, scale, diagonal, distance, parts):
    """log of det(S + scale r r') / det(S) for the offset r of a datum from component `k`."""
    # log1p would cost twice as much for digits that are lost in the sum it enters.
    return _log_product(parts, k, scale) if diagonal else math.log(1.0 + scale * distance[k])


@kernel
def log_gates(x, n_components, components, base, out, distance, parts):
    """log of size x Student-t density at `x` of every component; keeps the distances."""
    diagonal = _is_diagonal(base.factor)
    distances(x, n_components, components.mean, components.factor, distance, parts)
    for k in range(n_components):
        n = components.counts[k]
        strength = base.strength + n
        spread = _log_spread(k, strength / (strength + 1.0), diagonal, distance, parts)
        out[k] = components.log_size[k] + components.constant[k]
        out[k] -= 0.5 * (base.df + n + 1.0) * spread


@kernel
def log_left_out(k, distance, parts, components, base):
    """log density of a member under its own component without it, from that with it.

    Taking x out of S leaves S' = S - s r r' with s = k / (k - 1), and then det S' / det S and the
    distance under S' both follow from 1 - s r' S^-1 r. NaN if that is all rounding.
    """
    n = components.counts[k]
    strength = base.strength + n
    diagonal = _is_diagonal(base.factor)
    scale = -strength / (strength - 1.0)
    least = 1.0 + scale * distance[k]
    if diagonal:
        least = 1.0
        for m in range(parts.shape[0]):
            least = min(least, 1.0 + scale * parts[m, k])
    if not least > 1e-10:
        return np.nan
    left = _log_spread(k, scale, diagonal, distance, parts)
    constant = components.constant[k] + _constant_change(n, base)
    return constant - 0.5 * left + 0.5 * (base.df + n) * left


@kernel
def _constant_change(n, base):
    """How `predictive_constant` changes from n to n - 1 members with the same scale matrix."""
    n_features = base.factor.shape[1]
    k = base.strength + n
    shape = 0.5 * (base.df + n)
    if _is_diagonal(base.factor):
        gammas = n_features * (
            2.0 * math.lgamma(shape) - math.lgamma(shape - 0.5) - math.lgamma(shape + 0.5)
        )
    else:
        low = shape - 0.5 * n_features
        gammas = math.lgamma(shape) - math.lgamma(shape + 0.5)
        gammas += math.lgamma(low + 0.5) - math.lgamma(low)
    return gammas + 0.5 * n_features * math.log((k * k - 1.0) / (k * k))


@kernel
def add_member(x, k, components, base, work):
    """Take `x` into component `k`."""
    n_features = x.shape[0]
    strength = base.strength + components.counts[k]
    scale = math.sqrt(strength / (strength + 1.0))
    for m in range(n_features):
        gap = x[m] - components.mean[m, k]
        work[m] = scale * gap
        components.mean[m, k] += gap / (strength + 1.0)
    if _is_diagonal(base.factor):
        for m in range(n_features):
            components.factor[0, m, k] += work[m] * work[m]
    else:
        cholesky_update(components.factor[:, :, k], work)
    components.counts[k] += 1


@kernel
def remove_member(x, k, components, base, work):
    """Take `x` out of component `k`; False, and the scale is wrong, if rounding was in the way."""
    n_features = x.shape[0]
    strength = base.strength + components.counts[k]
    scale = math.sqrt(strength / (strength - 1.0))
    for m in range(n_features):
        gap = x[m] - components.mean[m, k]
        work[m] = scale * gap
        components.mean[m, k] -= gap / (strength - 1.0)
    components.counts[k] -= 1
    if not _is_diagonal(base.factor):
        return cholesky_downdate(components.factor[:, :, k], work)
    sound = True
    for m in range(n_features):
        before = components.factor[0, m, k]
        components.factor[0, m, k] -= work[m] * work[m]
        sound = sound and components.factor[0, m, k] > 1e-12 * before
    return sound


@kernel
def _put(value, k, place):
    """Copy to the k-th part along the last axis, entry by entry.

    numba compiles the message of a mismatch for every assignment of one array to another, which
    takes longer than all that is done here.
    """
    for a in range(place.shape[0]):
        for b in range(place.shape[1]):
            place[a, b, k] = value[a, b]


@kernel
def _empty(k, components, base):
    components.counts[k] = 0
    for m in range(base.mean.shape[0]):
        components.mean[m, k] = base.mean[m]
    _put(base.factor, k, components.factor)


@kernel
def _refresh(k, components, base):
    components.constant[k] = predictive_constant(
        components.counts[k], components.factor[:, :, k], base
    )
    components.log_size[k] = math.log(components.counts[k])


@kernel
def collect(X, z, k, components, base, work):
    """The statistics of component `k` afresh from its members."""
    _empty(k, components, base)
    for d in range(X.shape[0]):
        if z[d] == k:
            add_member(X[d], k, components, base, work)
    _refresh(k, components, base)


@kernel
def collect_all(X, z, n_components, components, base):
    """`collect` for all, in two passes: done each sweep, so that rounding never builds up.

    About the posterior mean m, the posterior scale is S0 + strength (m0 - m)(m0 - m)' plus the
    scatter of the members.
    """
    n_features = X.shape[1]
    diagonal = _is_diagonal(base.factor)
    centre = np.zeros((n_components, n_features))
    scatter = np.zeros((n_components, 1 if diagonal else n_features, n_features))
    components.counts[:n_components] = 0
    for d in range(X.shape[0]):
        components.counts[z[d]] += 1
        for m in range(n_features):
            centre[z[d], m] += X[d, m] - base.mean[m]
    for k in range(n_components):
        for m in range(n_features):
            centre[k, m] /= base.strength + components.counts[k]
            components.mean[m, k] = base.mean[m] + centre[k, m]
        _add_square(centre[k], base.strength, scatter[k])
    gap = np.empty(n_features)
    for d in range(X.shape[0]):
        k = z[d]
        for m in range(n_features):
            gap[m] = X[d, m] - base.mean[m] - centre[k, m]
        _add_square(gap, 1.0, scatter[k])
    for k in range(n_components):
        if diagonal:
            for m in range(n_features):
                components.factor[0, m, k] = base.factor[0, m] + scatter[k, 0, m]
        else:
            for a in range(n_features):
                for b in range(a + 1):
                    for m in range(b + 1):
                        scatter[k, a, b] += base.factor[a, m] * base.factor[b, m]
            cholesky(scatter[k], scatter[k])
            _put(scatter[k], k, components.factor)
        _refresh(k, components, base)


@kernel
def _add_square(gap, scale, scatter):
    """Add scale gap gap' to the lower triangle of `scatter`, or its diagonal to a single row."""
    for a in range(gap.shape[0]):
        if _is_diagonal(scatter):
            scatter[0, a] += scale * gap[a] * gap[a]
        else:
            for b in range(a + 1):
                scatter[a, b] += scale * gap[a] * gap[b]


@kernel
def _drop(k, last, components, columns, z):
    """Give the place of the emptied component `k` to the last one."""
    if k == last:
        return
    components.counts[k] = components.counts[last]
    for m in range(components.mean.shape[0]):
        components.mean[m, k] = components.mean[m, last]
    _put(components.factor[:, :, last], k, components.factor)
    components.constant[k] = components.constant[last]
    components.log_size[k] = components.log_size[last]
    for m in range(columns.shape[0]):
        for j in range(columns.shape[1]):
            components.weights[k, j, m] = components.weights[last, j, m]
            columns[m, j, k] = columns[m, j, last]
    for d in range(z.shape[0]):
        if z[d] == last:
            z[d] = k


@kernel
def _score_columns(weights):
    """The weights [K, L, M] with components last, [M, L, K]."""
    n_components, n_classes, n_inputs = weights.shape
    columns = np.empty((n_inputs, n_classes, n_components))
    for k in range(n_components):
        for j in range(n_classes):
            for m in range(n_inputs):
                columns[m, j, k] = weights[k, j, m]
    return columns


@kernel
def _scores(x1, n_components, columns, out):
    """The linear scores `out[j, k]` of every class in every component."""
    for j in range(out.shape[0]):
        total = out[j]
        for k in range(n_components):
            total[k] = 0.0
        for m in range(x1.shape[0]):
            column = columns[m, j]
            for k in range(n_components):
                total[k] += x1[m] * column[k]


@kernel
def assign(rng, start, table, z, n_components, components, base, term, alpha, max_components):
    """Resample `z[start:]`, one datum at a time (000, Eqs. 17 and 18).

    Returns where it stopped and the number of components: it stops early when `components` has no
    room for one more, so that the caller can grow it and go on, and at -1 when the densities of
    some datum are not numbers.
    """
    n_points, n_features = table.X.shape
    capacity = components.counts.shape[0]
    columns = _score_columns(components.weights)
    scores = np.empty((components.weights.shape[1], capacity))
    parts = np.empty((n_features, capacity))
    distance = np.empty(capacity)
    log_weights = np.empty(capacity + 1)
    work = np.empty(n_features)
    for d in range(start, n_points):
        if n_components == capacity and capacity < max_components:
            return d, n_components
        x, x1, label, own = table.X[d], table.X1[d], table.y[d], z[d]
        log_gates(x, n_components, components, base, log_weights, distance, parts)  # Eq. 17
        alone = components.counts[own] == 1
        if alone:
            log_weights[own] = -np.inf
        else:
            log_own = log_left_out(own, distance, parts, components, base)
            if math.isnan(log_own):  # an outlier that made its component what it is
                log_own = _log_left_out_afresh(d, table, z, components, base)
            log_weights[own] = math.log(components.counts[own] - 1) + log_own
        _scores(x1, n_components, columns, scores)
        add_log_labels(scores, n_components, label, term, log_weights)
        n_choices, log_evidence = n_components, 0.0
        if n_components - alone < max_components:  # Eq. 18
            # phi <= 1 bounds the label evidence, so the quadrature is put off until a new
            # component is proposed; rejecting it, the draw starts afresh with the exact weight.
            log_weights[n_components] = math.log(alpha) + table.log_new[d]
            n_choices += 1
        choice = draw_categorical(rng, log_weights[:n_choices])
        if choice == n_components:
            log_evidence = log_label_evidence(x1, label, term)
            if -rng.standard_exponential() > log_evidence:
                log_weights[n_components] += log_evidence
                choice = draw_categorical(rng, log_weights[:n_choices])
        if choice < 0:
            return -1, n_components
        if choice == own:  # nothing has moved
            continue

        if choice == n_components:
            if alone:
                choice = own  # its old place, emptied
            else:
                n_components += 1
            draw_new_label_weights(rng, x1, label, term, log_evidence, components.weights[choice])
            for j in range(columns.shape[1]):
                for m in range(columns.shape[0]):
                    columns[m, j, choice] = components.weights[choice, j, m]
            if alone:
                continue  # its statistics are those of this one datum already
            _empty(choice, components, base)
        z[d] = choice
        add_member(x, choice, components, base, work)
        _refresh(choice, components, base)
        if alone:
            n_components -= 1
            _drop(own, n_components, components, columns, z)
        elif remove_member(x, own, components, base, work):
            _refresh(own, components, base)
        else:
            collect(table.X, z, own, components, base, work)
    return n_points, n_components


@kernel
def _lone_component(base):
    """Room for one component, empty."""
    n_features = base.mean.shape[0]
    lone = Components(
        np.zeros(1, dtype=np.int64),
        np.empty((n_features, 1)),
        np.empty((base.factor.shape[0], n_features, 1)),
        np.zeros(1),
        np.zeros(1),
        np.zeros((1, 1, 1)),
    )
    _empty(np.int64(0), lone, base)  # of a literal 0 all would be compiled once more
    return lone


@kernel
def _log_left_out_afresh(d, table, z, components, base):
    """What `log_left_out` says, from the members themselves."""
    n_features = table.X.shape[1]
    lone, work = _lone_component(base), np.empty(n_features)
    first = np.int64(0)
    for other in range(z.shape[0]):
        if z[other] == z[d] and other != d:
            add_member(table.X[other], first, lone, base, work)
    _refresh(first, lone, base)
    out, distance = np.empty(1), np.empty(1)
    log_gates(table.X[d], first + 1, lone, base, out, distance, np.empty((n_features, 1)))
    return out[0] - lone.log_size[0]


@kernel
def add_votes(table, components, base, term, alpha, votes):
    """Add to `votes[n, L]` the shares that one posterior draw gives to every label.

    A component votes for its classifier's answer with its posterior probability given `x`; one
    not seen yet votes as the mean of its weights does, or for all labels alike when it is zero.
    """
    n_points, n_features = table.X.shape
    n_classes = votes.shape[1]
    n_components = components.counts.shape[0]
    columns = _score_columns(components.weights)
    scores = np.empty((n_classes, n_components))
    gates = np.empty(n_components + 1)
    distance = np.empty(n_components)
    parts = np.empty((n_features, n_components))
    ignorant = not np.any(term.mean)
    for d in range(n_points):
        log_gates(table.X[d], n_components, components, base, gates, distance, parts)
        gates[n_components] = math.log(alpha) + table.log_new[d]
        top = gates.max()
        total = 0.0
        for k in range(n_components + 1):
            gates[k] = math.exp(gates[k] - top)
            total += gates[k]
        _scores(table.X1[d], n_components, columns, scores)
        for k in range(n_components):
            votes[d, np.argmax(scores[:, k])] += gates[k] / total
        if ignorant:
            for j in range(n_classes):
                votes[d, j] += gates[n_components] / (total * n_classes)
        else:
            votes[d, np.argmax(term.mean @ table.X1[d])] += gates[n_components] / total


@kernel
def add_iterated_votes(rng, table, components, base, term, alpha, n_rounds, votes):
    """The paper's prediction (000, Section 4.3): draw z | x, answer, then alternate z | x, answer.

    One stream of uniforms serves every datum, so that an answer does not depend on its neighbours.
    """
    n_points, n_features = table.X.shape
    n_components = components.counts.shape[0]
    n_classes, n_inputs = term.mean.shape
    weights = np.empty((n_components + 1, n_classes, n_inputs))
    for k in range(n_components):
        for j in range(n_classes):
            for m in range(n_inputs):
                weights[k, j, m] = components.weights[k, j, m]
    for j in range(n_classes):  # a component not seen yet
        for m in range(n_inputs):
            weights[n_components, j, m] = term.mean[j, m] + term.nu * rng.standard_normal()
    columns = _score_columns(weights)
    scores = np.empty((n_classes, n_components + 1))
    gates = np.empty(n_components + 1)
    tilted = np.empty(n_components + 1)
    distance = np.empty(n_components)
    parts = np.empty((n_features, n_components))
    uniforms = np.empty(n_rounds)
    for i in range(n_rounds):
        uniforms[i] = rng.random()
    for d in range(n_points):
        log_gates(table.X[d], n_components, components, base, gates, distance, parts)
        gates[n_components] = math.log(alpha) + table.log_new[d]
        _scores(table.X1[d], n_components + 1, columns, scores)
        answer = -1
        for i in range(n_rounds):
            for k in range(n_components + 1):
                tilted[k] = gates[k]
            add_log_labels(scores, n_components + 1, answer, term, tilted)
            answer = int(np.argmax(scores[:, categorical_at(tilted, uniforms[i])]))
        votes[d, answer] += 1.0


@kernel
def nearest_components(table, components, base):
    """The component with the largest posterior probability given `x` alone, for every datum."""
    n_components = components.counts.shape[0]
    gates, distance = np.empty(n_components), np.empty(n_components)
    parts = np.empty((table.X.shape[1], n_components))
    out = np.empty(table.X.shape[0], dtype=np.int64)
    for d in range(table.X.shape[0]):
        log_gates(table.X[d], n_components, components, base, gates, distance, parts)
        out[d] = np.argmax(gates)
    return out


@kernel
def log_base_density(X, base):
    """log p(x | base) of every row: the predictive density of an empty component."""
    empty = _lone_component(base)
    empty.constant[0] = predictive_constant(np.int64(0), base.factor, base)
    distance, parts = np.empty(1), np.empty((X.shape[1], 1))
    out = np.empty(X.shape[0])
    for d in range(X.shape[0]):
        log_gates(X[d], np.int64(1), empty, base, out[d : d + 1], distance, parts)
    return out


@kernel
def log_joint_data(table, z, n_components, components, base, term):
    """log p(X | z) phi(y | z, weights) from collected statistics."""
    n_features = table.X.shape[1]
    df, strength = base.df, base.strength
    total = 0.0
    for k in range(n_components):
        n, factor = components.counts[k], components.factor[:, :, k]
        if _is_diagonal(factor):
            for m in range(n_features):
                total += math.lgamma(0.5 * (df + n)) - 0.5 * (df + n) * math.log(factor[0, m])
                total -= math.lgamma(0.5 * df) - 0.5 * df * math.log(base.factor[0, m])
        else:
            for m in range(n_features):
                total += math.lgamma(0.5 * (df + n - m)) - (df + n) * math.log(factor[m, m])
                total -= math.lgamma(0.5 * (df - m)) - df * math.log(base.factor[m, m])
        total -= 0.5 * n_features * (n * math.log(math.pi) + math.log((strength + n) / strength))
    columns = _score_columns(components.weights)
    scores = np.empty((components.weights.shape[1], components.weights.shape[0]))
    for d in range(z.shape[0]):
        _scores(table.X1[d], n_components, columns, scores)
        total += log_label(scores, z[d], table.y[d], term)
    return total
