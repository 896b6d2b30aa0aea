"""From raw scores to features: by length, by square root, by variance; what never varies goes."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scaling = Literal["none", "length", "sqrt", "variance"]


class Scaler(NamedTuple):
    """How raw scores become features; `slope` and `shape` are what the tilt needs to go back."""

    scaling: Scaling
    kept: NDArray
    center: NDArray
    unit: NDArray

    def __call__(self, raw: NDArray, sizes: NDArray) -> NDArray:
        """Features of raw scores, (n_samples, n_raw)."""
        return (_shaped(raw[:, self.kept], sizes, self.scaling) - self.center) / self.unit

    def slopes(self, raw: NDArray, sizes: NDArray) -> NDArray:
        """Derivatives of the features by their raw scores."""
        kept = raw[:, self.kept]
        if self.scaling == "none":
            slope = np.ones_like(kept)
        else:
            slope = np.repeat(1 / sizes[:, None], kept.shape[1], axis=1)
        if self.scaling == "sqrt":
            # The root is steep near zero: no steeper than at a hundredth of a step.
            slope *= 0.5 / np.sqrt(np.maximum(np.abs(kept / sizes[:, None]), 0.01))
        return slope / self.unit


def fit_scaler(raw: NDArray, sizes: NDArray, scaling: Scaling) -> Scaler:
    """Columns that vary in training, their centres and, if asked for, their deviations."""
    shaped = _shaped(raw, sizes, scaling)
    spread = shaped.std(axis=0)
    kept = spread > 1e-9 * np.maximum(np.abs(shaped).max(axis=0, initial=0.0), 1e-9)
    if scaling == "variance":
        return Scaler(scaling, kept, shaped[:, kept].mean(axis=0), spread[kept])
    return Scaler(scaling, kept, np.zeros(kept.sum()), np.ones(kept.sum()))


def _shaped(raw: NDArray, sizes: NDArray, scaling: Scaling) -> NDArray:
    if scaling == "none":
        return raw
    raw = raw / sizes[:, None]
    return np.sign(raw) * np.sqrt(np.abs(raw)) if scaling == "sqrt" else raw
