"""Margins: what a wrong answer costs, and its sub-gradient with respect to the scores.

``F(y; x) = mu_y . E[z h] + intercept_y`` is the effective discriminant of 002, Eq. 14.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


@dataclass(frozen=True)
class MultiClassMargin:
    """``C max_y (cost [y != y_d] + F(y) - F(y_d))``, 002, Section V-B."""

    n_outputs: int
    C: float
    cost: float = 1.0

    def losses(self, scores: Array, target: NDArray) -> tuple[Array, Array]:
        """The loss of each row, and its sub-gradient by the scores."""
        rows = np.arange(len(scores))
        augmented = scores + scores.dtype.type(self.cost)
        augmented[rows, target] = scores[rows, target]
        worst = augmented.argmax(axis=1)  # the loss-augmented prediction, y-bar
        slope = np.zeros_like(scores)
        slope[rows, worst] = self.C
        slope[rows, target] -= self.C
        return self.C * (augmented[rows, worst] - scores[rows, target]), slope


@dataclass(frozen=True)
class InsensitiveMargin:
    """``C max(0, |y_d - F| - epsilon)``: errors below `epsilon` are free."""

    C: float
    epsilon: float
    n_outputs: int = 1

    def losses(self, scores: Array, target: NDArray) -> tuple[Array, Array]:
        """The loss of each row, and its sub-gradient by the scores."""
        error = scores[:, 0] - target
        outside = np.abs(error) > self.epsilon
        slope = (self.C * outside * np.sign(error)).astype(scores.dtype)[:, None]
        return self.C * np.maximum(np.abs(error) - self.epsilon, 0.0), slope


Margin = MultiClassMargin | InsensitiveMargin
