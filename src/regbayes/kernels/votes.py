"""The classifiers of many states on many steps: margins while training, votes afterwards.

`weights[K, L, M]` are those of state k and label y; `inputs[T, M]`.
"""

import math

import numpy as np

from regbayes.kernels._jit import kernel

_CHUNK = 1 << 19  # scores held at a time


def add_log_margins(inputs, y, weights, term, out):
    """Add log phi(y_t | x_t, state k) to `out[T, K]`; a label of -1 adds nothing."""
    for rows, scores in _scores(inputs, weights):
        _add_log_margins(scores, y[rows], term.c, term.ell, out[rows])


def add_log_free_labels(inputs, weights, term, out):
    """Add log of the sum over labels of phi(y | x_t, state k) to `out[T, K]`."""
    for rows, scores in _scores(inputs, weights):
        _add_log_free_labels(scores, term.c, term.ell, out[rows])


def add_votes(inputs, weights, marginals, votes):
    """Every state votes for its classifier's answer with its probability at the step."""
    for rows, scores in _scores(inputs, weights):
        _add_votes(scores, marginals[rows], votes[rows])


def answers(inputs, weights, path):
    """The answer of the classifier of each step's state."""
    scores = np.einsum("tlm,tm->tl", weights[path], inputs)
    return scores.argmax(axis=1)


def each_answer(inputs, weights):
    """The answers of all classifiers to a single step."""
    return (weights @ inputs[0]).argmax(axis=1)


def _scores(inputs, weights):
    """Scores [t, K, L] of runs of rows, by BLAS."""
    n_states, n_labels, n_inputs = weights.shape
    flat = weights.reshape(n_states * n_labels, n_inputs).T
    size = max(1, _CHUNK // max(1, n_states * n_labels))
    for low in range(0, len(inputs), size):
        rows = slice(low, low + size)
        yield rows, (inputs[rows] @ flat).reshape(-1, n_states, n_labels)


@kernel
def _add_log_margins(scores, y, c, ell, out):
    n_steps, n_states, n_labels = scores.shape
    for t in range(n_steps):
        if y[t] < 0:
            continue
        for k in range(n_states):
            rival = -np.inf
            for j in range(n_labels):
                if j != y[t]:
                    rival = max(rival, scores[t, k, j])
            out[t, k] -= 2.0 * c * max(0.0, ell + rival - scores[t, k, y[t]])


@kernel
def _add_log_free_labels(scores, c, ell, out):
    n_steps, n_states, n_labels = scores.shape
    for t in range(n_steps):
        for k in range(n_states):
            first, second = -np.inf, -np.inf
            for j in range(n_labels):
                if scores[t, k, j] > first:
                    first, second = scores[t, k, j], first
                else:
                    second = max(second, scores[t, k, j])
            total = 0.0
            for j in range(n_labels):
                rival = second if scores[t, k, j] == first else first
                total += math.exp(-2.0 * c * max(0.0, ell + rival - scores[t, k, j]))
            out[t, k] += math.log(total)


@kernel
def _add_votes(scores, marginals, votes):
    n_steps, n_states, n_labels = scores.shape
    for t in range(n_steps):
        for k in range(n_states):
            best = 0
            for j in range(1, n_labels):
                if scores[t, k, j] > scores[t, k, best]:
                    best = j
            votes[t, best] += marginals[t, k]
