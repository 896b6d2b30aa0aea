"""From raw scores to features: by length, by square root, by variance; what never varies goes."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scaling = Literal["none", "length", "sqrt", "variance", "standard"]
_ROOTED = ("sqrt", "standard")
_LEVEL = 1e-3  # below this share of a step the square root turns into a line


class Scaler(NamedTuple):
    """How raw scores become features."""

    scaling: Scaling
    kept: NDArray
    center: NDArray
    unit: NDArray

    def __call__(self, raw: NDArray, sizes: NDArray) -> NDArray:
        """Features of raw scores, (n_samples, n_raw)."""
        return self._centred(_shaped(raw[:, self.kept], sizes, self.scaling))

    def _centred(self, shaped: NDArray) -> NDArray:
        shaped -= self.center
        shaped /= self.unit
        return shaped

    def slopes(self, raw: NDArray, sizes: NDArray) -> NDArray:
        """Derivatives of the features by their raw scores."""
        kept = raw[:, self.kept]
        if self.scaling == "none":
            return np.broadcast_to(1 / self.unit, kept.shape)
        slopes = 1 / sizes[:, None]
        if self.scaling not in _ROOTED:
            return slopes / self.unit
        roots = np.abs(kept)  # in place from here on: scores may be many millions
        roots *= slopes
        roots += _LEVEL
        np.sqrt(roots, out=roots)
        np.divide(slopes * 0.5, roots, out=roots)
        roots /= self.unit
        return roots


def fit_scaler(raw: NDArray, sizes: NDArray, scaling: Scaling) -> Scaler:
    """Columns that vary in training, their centres, and a unit: of each, or of all together."""
    return fit_scaled(raw, sizes, scaling)[0]


def fit_scaled(raw: NDArray, sizes: NDArray, scaling: Scaling) -> tuple[Scaler, NDArray]:
    """The same, and the features of the samples that it was fitted to."""
    shaped = _shaped(raw, sizes, scaling)
    spread = shaped.std(axis=0)
    kept = spread > 1e-9 * np.abs(shaped).max(axis=0, initial=0.0)
    shaped = shaped if kept.all() else shaped[:, kept]
    center, unit = shaped.mean(axis=0), spread[kept]
    if scaling == "none":
        center, unit = np.zeros_like(center), np.ones_like(unit)
    elif scaling not in ("variance", "standard"):
        unit = np.full_like(unit, np.sqrt(np.mean(unit**2)) if len(unit) else 1.0)
    scaler = Scaler(scaling, kept, center, unit)
    return scaler, scaler._centred(shaped)


def _shaped(raw: NDArray, sizes: NDArray, scaling: Scaling) -> NDArray:
    if scaling == "none":
        return raw.copy()
    raw = raw / sizes[:, None]
    if scaling not in _ROOTED:
        return raw
    roots = np.abs(raw)
    roots += _LEVEL
    np.sqrt(roots, out=roots)
    roots -= np.sqrt(_LEVEL)
    return np.copysign(roots, raw, out=roots)
