"""Score spaces learnt with a margin: MSS (001, Section 4).

Two ways to let the labels into the generative models. Both fit a max-margin classifier w to the
*untilted* features of the training samples (on tilted ones it would read the labels back), and
find its multipliers lambda by the smooth primal (:mod:`regbayes.margin.med`).

- `em`, the paper's Algorithm 1: the E-step of every sample is tilted by lambda_t y_t w . phi (Eq.
  15 with the sign that integration gives), the M-step is the model's own.
- `gradient`: the margin loss is differentiated through the posterior. Every law gets one shared
  tilt delta; d E[T] / d delta is the posterior covariance of T, and its product with a direction v
  is the derivative of E[T] under a tilt along v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.margin import med
from regbayes.scores.protocol import Law
from regbayes.scores.scaling import Scaler, Scaling, fit_scaler


class Problem(NamedTuple):
    """Labelled samples, and how they are described."""

    batch: Any
    codes: NDArray
    n_classes: int
    segments: int
    scaling: Scaling
    C: float
    margin: float
    n_threads: int


class Space(NamedTuple):
    """Laws, their shared tilts (None for none), and what the margin needs.

    `weights` are those of the classifier on the expected statistics.
    """

    laws: list[Law]
    tilts: list[NDArray | None]
    weights: NDArray | None = None


class View(NamedTuple):
    """A space's features of the problem's samples, and the classifier on them."""

    raw: list[NDArray]  # for each law: (n_samples, segments, n_statistics)
    scaler: Scaler
    features: NDArray
    found: med.Discriminant


def expect(space: Space, batch: Any, segments: int, n_threads: int, entropies: bool) -> list[Any]:
    """What each law makes of the samples, under its shared tilt."""
    out = []
    for law, tilt in zip(space.laws, space.tilts):
        if tilt is not None:
            tilt = np.broadcast_to(tilt, (len(batch), segments, len(tilt)))
        out.append(law.expect(batch, tilt, segments, entropies, n_threads))
    return out


def look(problem: Problem, space: Space, max_iter: int = 1000) -> View:
    """Features and the classifier of largest margin, from the weights of last time."""
    batch, segments = problem.batch, problem.segments
    found = expect(space, batch, segments, problem.n_threads, False)
    raw = [each.statistics for each in found]
    flat = np.concatenate([each.reshape(len(batch), -1) for each in raw], axis=1)
    scaler = fit_scaler(flat, batch.sizes, problem.scaling)
    features = with_constant(scaler(flat, batch.sizes))
    start = space.weights
    if start is not None and start.shape[1] != features.shape[1]:
        start = None  # another set of columns varies
    solution = med.solve(
        features, problem.codes, problem.n_classes, problem.C, problem.margin, start,
        max_iter=max_iter,
    )  # fmt: skip
    return View(raw, scaler, features, solution)


def with_constant(features: NDArray) -> NDArray:
    """Features of mean square one in sum, and a constant for the intercept."""
    scaled = features / np.sqrt(max(features.shape[1], 1))
    return np.column_stack([scaled, np.ones(len(features))])


def directions(problem: Problem, view: View) -> list[NDArray]:
    """Where the margin pulls the statistics of each sample: -d loss / d E[T], for each law."""
    pull = med.pull(view.found.multipliers, problem.codes) @ view.found.weights[:, :-1]
    pull /= np.sqrt(max(pull.shape[1], 1))
    sizes = problem.batch.sizes
    flat = np.concatenate([each.reshape(len(sizes), -1) for each in view.raw], axis=1)
    back = np.zeros_like(flat)
    back[:, view.scaler.kept] = pull * view.scaler.slopes(flat, sizes)
    widths = [each[0].size for each in view.raw]
    parts = np.split(back, np.cumsum(widths)[:-1], axis=1)
    return [part.reshape(each.shape) for part, each in zip(parts, view.raw)]


def covariance_times(
    law: Law, batch: Any, tilt: NDArray | None, along: NDArray, n_threads: int
) -> NDArray:
    """Cov(sum of T over segments, T) . along, for every sample: a derivative along the tilt."""
    segments = along.shape[1]
    size = 1e-4 / np.abs(along).max(axis=(1, 2), keepdims=True)
    base = 0.0 if tilt is None else tilt
    up, down = (
        law.expect(batch, base + sign * size * along, segments, False, n_threads).statistics
        for sign in (1, -1)
    )
    return (up - down).sum(axis=1) / (2 * size[:, 0])


def em_step(problem: Problem, space: Space, per_class: bool, strength: float, most: float) -> Space:
    """A round of Algorithm 1; `most` bounds the tilt of any one statistic."""
    view = look(problem, space)
    laws = []
    for c, (law, tilt) in enumerate(zip(space.laws, directions(problem, view))):
        own = problem.codes == c if per_class else np.ones(len(problem.codes), dtype=bool)
        bounded = np.clip(strength * tilt[own], -most, most)
        found = law.expect(
            problem.batch.take(own), bounded, problem.segments, n_threads=problem.n_threads
        )
        laws.append(law.maximize(found.statistics.sum(axis=(0, 1))))
    return Space(laws, space.tilts, view.found.weights)


def gradient(problem: Problem, space: Space, view: View) -> list[NDArray]:
    """d loss / d delta of the laws' shared tilts, at the best classifier (so it is that of min_w).

    Samples whose margins are met have no part in it.
    """
    out = []
    for law, tilt, along in zip(space.laws, space.tilts, directions(problem, view)):
        active = np.abs(along).max(axis=(1, 2)) > 1e-12 * max(np.abs(along).max(), 1e-300)
        total = np.zeros(along.shape[2])
        if active.any():
            batch = problem.batch.take(active)
            total -= covariance_times(law, batch, tilt, along[active], problem.n_threads).sum(
                axis=0
            )
        out.append(total)
    return out


class Adam:
    """Steps of a size of their own for every coordinate (Kingma & Ba 2015)."""

    def __init__(self, n: int, rate: float):
        self.rate, self.mean, self.square, self.t = rate, np.zeros(n), np.zeros(n), 0

    def step(self, gradient: NDArray) -> NDArray:
        self.t += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.01 * (gradient**2 - self.square)
        mean, square = self.mean / (1 - 0.9**self.t), self.square / (1 - 0.99**self.t)
        return -self.rate * mean / (np.sqrt(square) + 1e-300)


def descend(
    problem: Problem,
    space: Space,
    n_iter: int,
    rate: float,
    decay: float,
    watch: Callable[[int, Space, View], bool],
) -> Space:
    """Gradient descent on the shared tilts; ends when `watch` says so."""
    sizes = [len(law.natural()) for law in space.laws]
    adam, tilt = Adam(sum(sizes), rate), np.zeros(sum(sizes))
    for t in range(n_iter + 1):
        view = look(problem, space, max_iter=15 if t else 200)
        space = space._replace(weights=view.found.weights)
        if watch(t, space, view) or t == n_iter:
            break
        slope = np.concatenate(gradient(problem, space, view)) + decay * tilt
        tilt = tilt + adam.step(slope)
        space = space._replace(tilts=np.split(tilt, np.cumsum(sizes)[:-1]))
    return space
