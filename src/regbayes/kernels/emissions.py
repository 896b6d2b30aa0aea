"""What the states of a chain say about the observations: likelihoods, and draws of parameters.

A row of NaN (or a symbol of -1) is unobserved: it has likelihood one and counts for nothing.
"""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel
from regbayes.kernels.linalg import cholesky
from regbayes.kernels.random import draw_gamma, draw_inverse_wishart

_BLOCK = 64


@fused_kernel
def full_log_likelihoods(X, whitener, center, constant, out):
    """log N(x_t; state k) = constant[k] - |whitener[k] x_t - center[k]|^2 / 2.

    By blocks of steps, with the steps as the last axis: a triangle of weights meets many of them.
    """
    n_states, n_features = center.shape
    steps = np.empty((n_features, _BLOCK))
    white, total = np.empty(_BLOCK), np.empty(_BLOCK)
    for low in range(0, X.shape[0], _BLOCK):
        n = min(_BLOCK, X.shape[0] - low)
        for t in range(n):
            for i in range(n_features):
                steps[i, t] = X[low + t, i]
        for k in range(n_states):
            total[:] = 0.0
            for i in range(n_features):
                white[:] = -center[k, i]
                for j in range(i + 1):
                    weight = whitener[k, i, j]
                    for t in range(_BLOCK):
                        white[t] += weight * steps[j, t]
                for t in range(_BLOCK):
                    total[t] += white[t] * white[t]
            for t in range(n):
                out[low + t, k] = constant[k] - 0.5 * total[t]
        for t in range(n):
            if math.isnan(X[low + t, 0]):
                out[low + t] = 0.0


@fused_kernel
def diagonal_log_likelihoods(X, precision_root, center, constant, out):
    """The same with independent features; here the states are the last axis."""
    n_features, n_states = center.shape
    for t in range(X.shape[0]):
        row = out[t]
        if math.isnan(X[t, 0]):
            row[:] = 0.0
            continue
        for k in range(n_states):
            row[k] = constant[k]
        for i in range(n_features):
            x = X[t, i]
            for k in range(n_states):
                white = precision_root[i, k] * x - center[i, k]
                row[k] -= 0.5 * white * white


@fused_kernel
def poisson_log_likelihoods(X, log_rates, constant, out):
    """log Poisson(x_t; state k) = constant[k] + sum_i x_i log_rates[i, k] - log x_i!."""
    n_features, n_states = log_rates.shape
    for t in range(X.shape[0]):
        row = out[t]
        if math.isnan(X[t, 0]):
            row[:] = 0.0
            continue
        for k in range(n_states):
            row[k] = constant[k]
        for i in range(n_features):
            x = X[t, i]
            log_factorial = math.lgamma(x + 1.0)
            for k in range(n_states):
                row[k] += x * log_rates[i, k] - log_factorial


@kernel
def categorical_log_likelihoods(codes, log_probabilities, out):
    """log p(symbol | state k) = log_probabilities[symbol, k]."""
    for t in range(codes.shape[0]):
        if codes[t] < 0:
            out[t] = 0.0
        else:
            out[t] = log_probabilities[codes[t]]


@kernel
def average(X, z, counts, averages):
    """How many rows each state has seen, and their averages, into arrays of zeros."""
    n_states, n_features = averages.shape
    for t in range(X.shape[0]):
        if not math.isnan(X[t, 0]):
            counts[z[t]] += 1
            for i in range(n_features):
                averages[z[t], i] += X[t, i]
    for k in range(n_states):
        if counts[k] > 0:
            for i in range(n_features):
                averages[k, i] /= counts[k]


@kernel
def add_scatter(X, z, averages, scatter):
    """Sums of squares and products about the averages, in the lower triangles."""
    n_features = averages.shape[1]
    gap = np.empty(n_features)
    for t in range(X.shape[0]):
        if not math.isnan(X[t, 0]):
            k = z[t]
            for i in range(n_features):
                gap[i] = X[t, i] - averages[k, i]
                for j in range(i + 1):
                    scatter[k, i, j] += gap[i] * gap[j]


@kernel
def add_squares(X, z, averages, squares):
    """Sums of squares about the averages."""
    for t in range(X.shape[0]):
        if not math.isnan(X[t, 0]):
            for i in range(averages.shape[1]):
                squares[z[t], i] += (X[t, i] - averages[z[t], i]) ** 2


@kernel
def draw_full(rng, counts, averages, scatter, mean, strength, df, scale, means, factors):
    """Means and Cholesky factors of covariances from their normal-inverse-Wishart posteriors."""
    n_states, n_features = means.shape
    factors[:] = scatter
    gap = np.empty(n_features)
    for k in range(n_states):
        n = counts[k]
        total = strength + n
        for i in range(n_features):
            gap[i] = averages[k, i] - mean[i]
            for j in range(i + 1):
                factors[k, i, j] += scale[i, j] + strength * n / total * gap[i] * gap[j]
        cholesky(factors[k], factors[k])
        draw_inverse_wishart(rng, df + n, factors[k], factors[k])
        for i in range(n_features):
            means[k, i] = mean[i] + n / total * gap[i]
        for j in range(n_features):
            noise = rng.standard_normal() / math.sqrt(total)
            for i in range(j, n_features):
                means[k, i] += factors[k, i, j] * noise


@kernel
def draw_diagonal(rng, counts, averages, squares, mean, strength, df, scale, means, deviations):
    """Means and standard deviations from their normal-inverse-gamma posteriors."""
    n_states, n_features = means.shape
    for k in range(n_states):
        n = counts[k]
        total = strength + n
        for i in range(n_features):
            gap = averages[k, i] - mean[i]
            sum_of_squares = squares[k, i] + scale[i] + strength * n / total * gap * gap
            variance = sum_of_squares / (2.0 * draw_gamma(rng, 0.5 * (df + n)))
            deviations[k, i] = math.sqrt(variance)
            noise = rng.standard_normal() * math.sqrt(variance / total)
            means[k, i] = mean[i] + n / total * gap + noise


@kernel
def draw_poisson_rates(rng, counts, averages, shape, rate, rates):
    """Rates from their gamma posteriors."""
    n_states, n_features = rates.shape
    for k in range(n_states):
        for i in range(n_features):
            total = counts[k] * averages[k, i]
            rates[k, i] = draw_gamma(rng, shape[i] + total) / (rate[i] + counts[k])
