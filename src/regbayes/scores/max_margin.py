"""Score spaces learnt with a margin: MSS (001, Section 4).

Two ways to let the labels into the generative models. Both fit max-margin classifiers w to
*untilted* features of the training samples (on tilted ones they would read the labels back), and
find the multipliers lambda by the smooth primal (:mod:`regbayes.margin.med`).

- `em_step`, the paper's Algorithm 1: the E-step of every sample is tilted by lambda_t y_t w . phi
  (Eq. 15 with the sign that integration gives), the M-step is the model's own.
- `descend`: the margin loss is differentiated through the posterior. Every law gets one tilt delta,
  shared by all samples; d E[T] / d delta is the posterior covariance of T. The margin of a sample
  is that of a classifier which was fitted without it: its own classifier may have no margin left
  to gain, and following that one learns the training set by heart (docs/decisions/011).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from regbayes.margin import med
from regbayes.scores.protocol import Law
from regbayes.scores.scaling import Scaler, Scaling, fit_scaler
from regbayes.scores.tilts import raw_scores, slope_of_tilts


@dataclass(frozen=True, eq=False)
class Problem:
    """Labelled samples, how they are described, and what a margin is worth."""

    batch: Any
    codes: NDArray
    n_classes: int
    segments: int
    scaling: Scaling
    C: float
    margin: float
    n_threads: int


class Space(NamedTuple):
    """Laws, and the tilt that each has for all samples, (n_laws, n_statistics)."""

    laws: list[Law]
    tilts: NDArray

    @property
    def loss(self) -> float:
        """None is followed by EM, which goes on for as many rounds as it is told to."""
        return 0.0

    @property
    def done(self) -> bool:
        return False


class View(NamedTuple):
    """Untilted features of the problem's samples, and how they come from statistics."""

    raw: NDArray  # (n_samples, n_laws, segments, n_statistics)
    scaler: Scaler
    features: NDArray


def untilted(laws: list[Law]) -> Space:
    """The space of laws as they are: that of SS."""
    return Space(laws, np.zeros((len(laws), len(laws[0].natural()))))


def look(problem: Problem, space: Space) -> View:
    """The features, scaled and centred anew."""
    batch = problem.batch
    raw = raw_scores(space.laws, space.tilts, batch, problem.segments, problem.n_threads)
    flat = raw.reshape(len(batch), -1)
    scaler = fit_scaler(flat, batch.sizes, problem.scaling)
    return View(raw, scaler, with_constant(scaler(flat, batch.sizes)))


def with_constant(features: NDArray) -> NDArray:
    """Features whose squares sum to one, about, and a constant for the intercept."""
    scaled = features / np.sqrt(max(features.shape[1], 1))
    return np.column_stack([scaled, np.ones(len(features))])


def directions(problem: Problem, view: View, pull: NDArray) -> NDArray:
    """From the features to the statistics of each sample, the way back of a derivative."""
    pull = pull[:, :-1] / np.sqrt(max(pull.shape[1] - 1, 1))
    flat = view.raw.reshape(len(pull), -1)
    back = np.zeros_like(flat)
    back[:, view.scaler.kept] = pull * view.scaler.slopes(flat, problem.batch.sizes)
    return back.reshape(view.raw.shape)


def em_step(problem: Problem, owners: NDArray, strength: float, most: float, space: Space) -> Space:
    """A round of Algorithm 1 (001).

    `owners` says which law a sample trains; -1 for all. `most` bounds the tilt of a statistic.
    """
    view = look(problem, space)
    found = med.solve(  # Eq. 19: lambda; margins of Eq. 18 are integrated out in its primal
        view.features, problem.codes, problem.n_classes, problem.C, problem.margin
    )
    pull = med.pull(found.multipliers, problem.codes) @ found.weights  # lambda_t y_t w, Eq. 22
    tilts = np.clip(strength * directions(problem, view, pull), -most, most)  # Eq. 15
    laws = []
    for i, law in enumerate(space.laws):
        own = np.flatnonzero((owners == i) | (owners == -1))
        batch = problem.batch.take(own)
        # Eq. 16, exactly: the tilted posterior is a law of the same kind.
        tilted = law.expect(batch, tilts[own, i], problem.segments, n_threads=problem.n_threads)
        laws.append(law.maximize(tilted.statistics.sum(axis=(0, 1))))  # line 10 of Algorithm 1
    return Space(laws, space.tilts)


@dataclass
class Referee:
    """Classifiers that judge samples they were not fitted to, fold by fold.

    They are kept from round to round, for the next fit to start from.
    """

    folds: list[tuple[NDArray, NDArray]]  # what a classifier sees, and what it judges
    weights: list[NDArray | None]

    @classmethod
    def of(cls, problem: Problem, n_folds: int, seed: int) -> Referee:
        sizes = np.bincount(problem.codes)
        folds = StratifiedKFold(min(n_folds, sizes.max()), shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            # A class smaller than the folds is judged, in part, by classifiers that saw none of it.
            warnings.simplefilter("ignore", UserWarning)
            parts = list(folds.split(problem.codes, problem.codes))
        return cls(parts, [None] * len(parts))

    def judge(self, problem: Problem, features: NDArray) -> tuple[float, NDArray]:
        """The margin loss of all samples, and minus its derivative by their features."""
        total, out = 0.0, np.empty_like(features)
        for f, (rest, fold) in enumerate(self.folds):
            start = self.weights[f]
            known = start is not None and start.shape[1] == features.shape[1]
            found = med.solve(
                features[rest],
                problem.codes[rest],
                problem.n_classes,
                problem.C,
                problem.margin,
                start if known else None,
                tol=1e-4,
                max_iter=10 if known else 100,
            )
            self.weights[f] = found.weights
            losses, multipliers = med.margin_terms(
                features[fold] @ found.weights.T, problem.codes[fold], problem.C, problem.margin
            )
            total += losses.sum()
            out[fold] = med.pull(multipliers, problem.codes[fold]) @ found.weights
        return float(total), out


def loss_and_slope(problem: Problem, space: Space, referee: Referee) -> tuple[float, NDArray]:
    """The margin loss on left-out samples, and its derivative by the tilts at fixed classifiers."""
    view = look(problem, space)
    loss, pull = referee.judge(problem, view.features)
    back = -directions(problem, view, pull)
    slope = slope_of_tilts(
        space.laws, space.tilts, problem.batch, back, view.raw, problem.n_threads
    )
    return loss, slope


@dataclass(frozen=True)
class Descent:
    """Where the gradient descent on the tilts stands."""

    space: Space
    referees: list[Referee]
    mean: NDArray  # of the tilts, running: what is kept in the end
    first: NDArray  # moments of the slope, as Adam has them
    second: NDArray
    losses: tuple[float, ...] = ()
    done: bool = False

    @classmethod
    def of(cls, problem: Problem, space: Space, n_folds: int, seeds: NDArray) -> Descent:
        """The first state, with a referee for each of the seeds."""
        zeros = np.zeros_like(space.tilts)
        if np.bincount(problem.codes).max() < 2:  # nothing can be left out
            return cls(space, [], zeros, zeros, zeros, done=True)
        referees = [Referee.of(problem, n_folds, int(seed)) for seed in seeds]
        return cls(space, referees, zeros, zeros, zeros)

    @property
    def loss(self) -> float:
        return self.losses[-1] if self.losses else np.inf


def descend(problem: Problem, rate: float, patience: int, here: Descent) -> Descent:
    """A round of gradient descent on the tilts, by Adam.

    Referees with other folds take turns. The loss of a round is that of samples left out of their
    fit; it ends when the mean over the referees has not fallen for `patience` rounds.
    """
    if here.done:
        return here
    t, n_referees = len(here.losses) + 1, len(here.referees)
    loss, slope = loss_and_slope(problem, here.space, here.referees[t % n_referees])
    losses = (*here.losses, loss)
    if _stalled(losses, n_referees, patience):
        return replace(here, losses=losses, done=True)
    first = here.first + 0.1 * (slope - here.first)
    second = here.second + 0.01 * (slope**2 - here.second)
    step = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.99**t)) + 1e-300)
    space = here.space._replace(tilts=here.space.tilts - rate * step)
    mean = here.mean + max(0.1, 1 / t) * (space.tilts - here.mean)
    return Descent(space, here.referees, mean, first, second, losses)


Tasks = list[tuple[Problem, NDArray]]  # with the law that each sample trains


class Turn(NamedTuple):
    """Where one of several tasks stands, for :func:`regbayes.chains.descend_each`."""

    task: int
    state: Any


def em_round(tasks: Tasks, strength: float, most: float, rng: Any, here: Turn) -> Turn:
    """:func:`em_step` of a task; no random numbers are used."""
    problem, owners = tasks[here.task]
    return here._replace(state=em_step(problem, owners, strength, most, here.state))


def descent_round(tasks: Tasks, rate: float, patience: int, rng: Any, here: Turn) -> Turn:
    """:func:`descend` of a task; no random numbers are used."""
    problem, _ = tasks[here.task]
    return here._replace(state=descend(problem, rate, patience, here.state))


def _stalled(losses: Sequence[float], window: int, patience: int) -> bool:
    if len(losses) < window + patience:
        return False
    means = np.convolve(losses, np.full(window, 1 / window), mode="valid")
    return bool(means[-1 - patience :].argmin() == 0)
