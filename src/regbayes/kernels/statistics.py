"""Expected sufficient statistics of emissions, by cells, and linear terms in them.

A cell is a segment of a sequence: step t belongs to `cells[t]`. A row of NaN (or a symbol of -1)
is unobserved and counts for nothing.
"""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel


@kernel
def add_symbols(codes, marginals, cells, out):
    """out[cell, k, symbol] += p(z_t = k); steps of a cell follow one another."""
    n_steps, n_states = marginals.shape
    sums = np.zeros((out.shape[2], n_states))  # of a cell, with states last
    for t in range(n_steps):
        if codes[t] >= 0:
            for k in range(n_states):
                sums[codes[t], k] += marginals[t, k]
        if t + 1 == n_steps or cells[t + 1] != cells[t]:
            out[cells[t]] += sums.T
            sums[:] = 0.0


@kernel
def tilt_symbols(codes, weights, cells, out):
    """out[t, k] += weights[cell, k, symbol]."""
    for t in range(codes.shape[0]):
        if codes[t] >= 0:
            for k in range(out.shape[1]):
                out[t, k] += weights[cells[t], k, codes[t]]


@fused_kernel
def add_moments(X, marginals, cells, full, out):
    """out[cell, k] += p(z_t = k) (1, x, x x'); squares only, unless `full`."""
    n_features = X.shape[1]
    for t in range(X.shape[0]):
        if math.isnan(X[t, 0]):
            continue
        for k in range(marginals.shape[1]):
            weight, sums = marginals[t, k], out[cells[t], k]
            sums[0] += weight
            at = 1 + n_features
            for i in range(n_features):
                part = weight * X[t, i]
                sums[1 + i] += part
                for j in range(0 if full else i, i + 1):
                    sums[at] += part * X[t, j]
                    at += 1


@fused_kernel
def tilt_moments(X, weights, cells, full, out):
    """out[t, k] += weights[cell, k] . (1, x, x x')."""
    n_features = X.shape[1]
    for t in range(X.shape[0]):
        if math.isnan(X[t, 0]):
            continue
        for k in range(out.shape[1]):
            row = weights[cells[t], k]
            total = row[0]
            at = 1 + n_features
            for i in range(n_features):
                total += row[1 + i] * X[t, i]
                for j in range(0 if full else i, i + 1):
                    total += row[at] * X[t, i] * X[t, j]
                    at += 1
            out[t, k] += total
