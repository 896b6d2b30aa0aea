"""Topics that show the class of a document before its label is known: the margin of readings.

Sampled topics tell classes apart with the labels in sight. New documents have none: what counts is
the margin of r_d, their square-rooted shares as the words alone give them. From the sampled topics,

    min over log phi and weights of  mean_d hinge(weights r_d) + |weights|^2 / (2 C n),

by steps on a few documents at a time, followed through the fixed point that the shares are
(:func:`regbayes.kernels.topics.pull_counts`). A part of the words is left out in every step, and it
ends after a few rounds, before the documents are known by heart: both keep topics near the draws.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regbayes.data import Documents
from regbayes.kernels.descent import adam
from regbayes.kernels.topics import expect_counts, pull_counts
from regbayes.topics.gibbs import Labels, Summary, refit, with_constant

_BATCH = 50  # documents of a step
_LEFT_OUT = 0.3  # of the words of a document
_RATE = 0.003  # of a step in log phi, its root mean square
_RATE_OF_WEIGHTS = 0.05
_NO_TILT = np.empty((0, 0))
_TINY = 1e-300


def tune(
    documents: Documents,
    labels: Labels,
    summary: Summary,
    C: float,
    n_rounds: int,
    rng: np.random.Generator,
    n_threads: int = 1,
) -> Summary:
    """A refitted classifier and its topics, moved together; the running mean is what stays."""
    alpha, n = summary.alpha, len(documents)
    log_phi = np.log(summary.phi)
    weights = np.ascontiguousarray(refit(documents, labels, summary, C, rng, n_threads).weights)
    first, second = np.zeros(weights.size), np.zeros(weights.size)
    pace, size = np.zeros_like(log_phi), 0.0
    mean_phi, mean_weights = log_phi.copy(), weights.copy()
    t = 0
    for _ in range(n_rounds):
        order = rng.permutation(n)
        for low in range(0, n, _BATCH):
            t += 1
            some = order[low : low + _BATCH]
            batch = leave_out(documents.take(some), rng)
            _, slope, slope_of_weights = loss_and_slopes(
                batch, labels.y[some], alpha, log_phi, weights, n_threads=n_threads
            )
            slope_of_weights += weights / (C * n)
            adam(
                weights.ravel(), slope_of_weights.ravel(), first, second,
                _RATE_OF_WEIGHTS / (1 - 0.9**t), 1.0, (0.1, 0.01), 1 / np.sqrt(1 - 0.99**t),
            )  # fmt: skip
            # One unit for all of phi, where Adam has one for each number: rare words would move as
            # far as frequent ones.
            pace += 0.1 * (slope - pace)
            size += 0.01 * (np.mean(slope**2) - size)
            log_phi -= _RATE * pace / (1 - 0.9**t) / (np.sqrt(size / (1 - 0.99**t)) + _TINY)
            mean_phi += max(0.02, 1 / t) * (log_phi - mean_phi)
            mean_weights += max(0.02, 1 / t) * (weights - mean_weights)
    return Summary(alpha, shares_of_words(mean_phi), mean_weights)


def loss_and_slopes(
    batch: Documents,
    y: NDArray,
    alpha: NDArray,
    log_phi: NDArray,
    weights: NDArray,
    tol: float = 1e-3,
    n_threads: int = 1,
) -> tuple[float, NDArray, NDArray]:
    """The mean hinge loss of labelled documents, and its derivatives by log phi and the weights.

    Columns of `log_phi` stand for what they are when they sum to one.
    """
    table, n, everyone = batch.counts, len(batch), np.arange(len(batch))
    phi, cells = shares_of_words(log_phi), np.empty((batch.counts.nnz, len(alpha)))
    counts, *_ = expect_counts(
        table.indptr, table.indices, table.data, alpha, phi, _NO_TILT, cells, tol, 100, n_threads
    )
    counts += alpha
    sizes = counts.sum(axis=1, keepdims=True)
    shares = np.sqrt(counts / sizes)
    inputs = with_constant(shares)
    costs = inputs @ weights.T + 1.0
    costs[everyone, y] -= 1.0
    rivals = costs.argmax(axis=1)
    losses = costs[everyone, rivals] - costs[everyone, y]
    push = np.zeros_like(costs)
    push[everyone, rivals] += 1.0 / n
    push[everyone, y] -= 1.0 / n  # nothing, if the own class is ahead by one
    by_count = push @ weights[:, :-1] * 0.5 / (shares * sizes)
    rows = np.repeat(everyone, np.diff(table.indptr))
    by_cell = pull_counts(table.indptr, table.data, alpha, cells, by_count[rows], n_threads)
    places = table.indices[:, None] * len(alpha) + np.arange(len(alpha))
    slope = np.bincount(places.ravel(), by_cell.ravel(), minlength=phi.size).reshape(phi.shape)
    return float(losses.mean()), slope - phi * slope.sum(axis=0), push.T @ inputs


def leave_out(documents: Documents, rng: np.random.Generator) -> Documents:
    """Documents without some of their words."""
    table = documents.counts.copy()
    table.data *= rng.random(table.nnz) >= _LEFT_OUT
    table.eliminate_zeros()
    return Documents(table)


def shares_of_words(log_phi: NDArray) -> NDArray:
    """phi, whose columns sum to one."""
    phi = np.exp(log_phi - log_phi.max(axis=0))
    return phi / phi.sum(axis=0)
