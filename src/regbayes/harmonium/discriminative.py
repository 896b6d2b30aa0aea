"""The discriminative RBM: labels are a view like the inputs, and p(y | x) is exact.

    p(y | x) ∝ exp(d_y + sum_k softplus(beta_k + U_yk + x . W_k))

(Larochelle & Bengio 2008, Eq. 2). The joint model is a harmonium with two views, the inputs and a
count of one among the classes, so its contrastive divergence is that of `energy`; the hybrid adds
it to the conditional likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from regbayes.data import ViewRows
from regbayes.harmonium import energy, learning
from regbayes.harmonium.energy import Array, Batch, Model, Parameters
from regbayes.harmonium.learning import CHUNK, Settings, State
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


@dataclass(frozen=True, eq=False)
class Lesson:
    """Labels of rows, to be told from their inputs: a task of :func:`learning.learn`."""

    view: View
    settings: Settings
    x: Any
    usual: Array
    y: NDArray
    n_classes: int
    n_units: int
    generative: float
    held_out: tuple[Any, NDArray] | None = None

    @property
    def model(self) -> Model:
        return Model((self.view, CountView()), BinaryUnits())

    def start(self, rng: np.random.Generator) -> tuple[State, NDArray]:
        n = len(self.y)
        labels = np.eye(self.n_classes, dtype=np.float32)[self.y]
        rows = ViewRows(
            (self.x, labels),
            (None, np.ones(n, np.float32)),
            (False, False),
            (self.usual, labels.mean(axis=0)),
            n,
        )
        state = learning.init(self.model, self.settings, rows, self.n_units, np.float32, rng)
        return state, np.sort(rng.permutation(n)[:200])

    def epoch(
        self, rng: np.random.Generator, state: State, rate: Callable[[float], float]
    ) -> State:
        """One pass of Adam over all rows in random order."""
        settings, n, moments = self.settings, len(self.y), state.moments
        order = rng.permutation(n)
        for start in range(0, n, settings.batch_size):
            chosen = order[start : start + settings.batch_size]
            x, y = self.x[chosen], self.y[chosen]
            slope = gradient(self.model, state.params, x, y, self.generative)
            length = settings.learning_rate * rate(start / n)
            decay = settings.weight_decay
            moments = moments.step(state.params, slope, length, decay, (1.0, 1.0))
        return replace(state, moments=moments)

    def measure(self, state: State, shown: NDArray) -> float:
        log_p, _ = log_conditional(state.params, self.x[shown])
        return float(-log_p[np.arange(len(shown)), self.y[shown]].mean())

    def validate(self, state: State) -> float | None:
        if self.held_out is None:
            return None
        x, y = self.held_out
        return float(np.mean(log_posteriors(state.params, x).argmax(axis=1) != y))


def log_posteriors(params: Parameters, x: Any) -> Array:
    """log p(y | x) of many rows, a chunk at a time."""
    starts = range(0, x.shape[0], CHUNK)
    return np.concatenate([log_conditional(params, x[i : i + CHUNK])[0] for i in starts])
