"""Laws under a shared tilt: their statistics, and how these move with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.scores.protocol import Differentiable, Law

# A difference moves log-probabilities by this, times the root of the length: about nine digits of
# a covariance are right, for sequences of five steps and of a thousand. No potential moves by more
# than ten times as much, or a direction along a rare statistic would be a leap for it.
_STEP = 1e-4


def expected_statistics(
    laws: list[Law], tilts: NDArray, batch: Any, segments: int = 1, n_threads: int = 1
) -> NDArray:
    """E[T | x] under tilted laws, of shape (n_samples, n_laws, segments, n_statistics)."""
    each = [
        law.expect(batch, tilt, segments, n_threads=n_threads).statistics
        for law, tilt in zip(laws, tilts)
    ]
    return np.stack(each, axis=1)


def covariances(
    law: Law, batch: Any, tilt: NDArray, directions: NDArray, raw: NDArray, n_threads: int
) -> NDArray:
    """Cov[T, v_s . T | x_s] for a direction v_s of each sample, (n_samples, n_statistics).

    The derivative of E[T] under a tilt along v_s, by a central difference. The directions and the
    raw scores have the shape (n_samples, segments, n_statistics).
    """
    # How much a sample's log-probability changes by its direction, about.
    change = np.sum(np.abs(directions * raw), axis=(1, 2), keepdims=True)
    change /= np.sqrt(batch.sizes)[:, None, None]
    change = np.maximum(change, 0.1 * np.abs(directions).max(axis=(1, 2), keepdims=True))
    step = _STEP / np.where(change > 0, change, np.inf)

    def ahead(sign: int) -> NDArray:
        moved = tilt + sign * step * directions
        found = law.expect(batch, tilt=moved, segments=directions.shape[1], n_threads=n_threads)
        return found.statistics

    return np.sum((ahead(1) - ahead(-1)) / np.where(step > 0, 2 * step, 1.0), axis=1)


def slope_of_tilts(
    laws: list[Law], tilts: NDArray, batch: Any, directions: NDArray, raw: NDArray, n_threads: int
) -> NDArray:
    """sum_s Cov[T, v_s . T | x_s] for every law: the chain rule from statistics to tilts.

    A law that knows its own derivative has it asked for. Samples without a direction cost nothing.
    """
    out = np.zeros_like(tilts)
    for i, (law, tilt) in enumerate(zip(laws, tilts)):
        size = np.abs(directions[:, i]).max(axis=(1, 2))
        active = size > 1e-12 * size.max(initial=0.0)
        if active.any():
            some, v, known = batch.take(active), directions[active, i], raw[active, i]
            if isinstance(law, Differentiable):
                out[i] = law.slope(some, known, v, n_threads)
            else:
                out[i] = covariances(law, some, tilt, v, known, n_threads).sum(axis=0)
    return out
