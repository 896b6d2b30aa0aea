"""The discriminative RBM: labels are a view like the inputs, and p(y | x) is exact.

    p(y | x) ∝ exp(d_y + sum_k softplus(beta_k + U_yk + x . W_k))

(Larochelle & Bengio 2008, Eq. 2). The joint model is a harmonium with two views, the inputs and a
count of one among the classes, so its contrastive divergence is that of `energy`; the hybrid adds
it to the conditional likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from regbayes.chains import Watch
from regbayes.data import ViewRows
from regbayes.harmonium import energy, learning
from regbayes.harmonium.energy import Array, Batch, Model, Parameters
from regbayes.harmonium.learning import CHUNK, Learnt, Settings, State
from regbayes.harmonium.units import BinaryUnits, CountView, View, sigmoid


def log_conditional(params: Parameters, x: Any) -> tuple[Array, Array]:
    """log p(y | x) for all y, and the activations of the units under each, (n, n_classes, K)."""
    W, U = params.weights
    a = (x @ W + params.beta)[:, None, :] + U
    return log_softmax(np.logaddexp(0, a).sum(axis=2) + params.biases[1], axis=1), a


def conditional_gradient(params: Parameters, x: Any, y: NDArray) -> Parameters:
    """Gradient of the mean of -log p(y | x) (their Eq. 4)."""
    n = x.shape[0]
    log_p, a = log_conditional(params, x)
    d_scores = np.exp(log_p)
    d_scores[np.arange(n), y] -= 1
    d_scores /= n
    d_a = sigmoid(a)
    d_a *= d_scores[:, :, None]
    d_hidden = d_a.sum(axis=1)
    return params.like([
        x.T @ d_hidden, d_a.sum(axis=0),
        np.zeros_like(params.biases[0]), d_scores.sum(axis=0),
        d_hidden.sum(axis=0),
        *(np.zeros_like(array) for array in list(params)[5:]),
    ])  # fmt: skip


def gradient(model: Model, params: Parameters, x: Any, y: NDArray, generative: float) -> Parameters:
    """Of the mean of ``-log p(y | x) + generative * CF(x, y)`` (their Section 4)."""
    slope = conditional_gradient(params, x, y)
    if generative == 0:
        return slope
    labels = np.eye(len(params.biases[1]), dtype=params.beta.dtype)[y]
    batch = Batch((x, labels), (None, np.ones(len(y), params.beta.dtype)))
    joint, _ = energy.gradient(model, params, batch, None)
    return params.like([a + params.beta.dtype.type(generative) * b for a, b in zip(slope, joint)])


def learn(
    view: View,
    settings: Settings,
    x: Any,
    usual: Array,
    y: NDArray,
    n_classes: int,
    n_units: int,
    generative: float,
    rng: np.random.Generator,
    *,
    held_out: tuple[Any, NDArray] | None = None,
    patience: int = 10,
    watch: Watch | None = None,
) -> Learnt:
    """Epochs of Adam."""
    model = Model((view, CountView()), BinaryUnits())
    labels = np.eye(n_classes, dtype=np.float32)[y]
    rows = ViewRows(
        (x, labels),
        (None, np.ones(len(y), np.float32)),
        (False, False),
        (usual, labels.mean(axis=0)),
        len(y),
    )
    state = learning.init(model, settings, rows, n_units, np.float32, rng)
    some = np.sort(rng.permutation(len(y))[:200])

    def step(state: State, rate: Callable[[float], float]) -> State:
        moments, order = state.moments, rng.permutation(len(y))
        for start in range(0, len(y), settings.batch_size):
            chosen = order[start : start + settings.batch_size]
            slope = gradient(model, state.params, x[chosen], y[chosen], generative)
            length = settings.learning_rate * rate(start / len(y))
            decay = settings.weight_decay
            moments = moments.step(state.params, slope, length, decay, (1.0, 1.0))
        return replace(state, moments=moments)

    def measure(state: State) -> float:
        return float(
            -log_conditional(state.params, x[some])[0][np.arange(len(some)), y[some]].mean()
        )

    def validate(state: State) -> float:
        assert held_out is not None
        return float(
            np.mean(log_posteriors(state.params, held_out[0]).argmax(axis=1) != held_out[1])
        )

    return learning.run_epochs(
        state,
        step,
        measure,
        max_iter=settings.max_iter,
        validate=None if held_out is None else validate,
        patience=patience,
        watch=watch,
    )


def log_posteriors(params: Parameters, x: Any) -> Array:
    """log p(y | x) of many rows, a chunk at a time."""
    starts = range(0, x.shape[0], CHUNK)
    return np.concatenate([log_conditional(params, x[i : i + CHUNK])[0] for i in starts])
