"""Score spaces learnt with a margin: MSS (001, Section 4).

Two ways to let the labels into the generative models. Both fit max-margin classifiers w to
*untilted* features of the training samples (on tilted ones they would read the labels back), and
find the multipliers lambda by the smooth primal (:mod:`regbayes.margin.med`).

- `em_step`, the paper's Algorithm 1: the E-step of every sample is tilted by lambda_t y_t w . phi
  (Eq. 15 with the sign that integration gives), the M-step is the model's own.
- `descend`: the margin loss is differentiated through the posterior. Every law gets one tilt delta,
  shared by all samples; d E[T] / d delta is the posterior covariance of T. The margin of a sample
  is that of a classifier which was fitted without it: its own classifier may have no margin left
  to gain, and following that one learns the training set by heart (docs/decisions/011). How far to
  go is learnt beside it, from parts of the samples that the tilts do not see either.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from regbayes.margin import med
from regbayes.scores.protocol import Law
from regbayes.scores.scaling import Scaler, Scaling, fit_scaled, fit_scaler
from regbayes.scores.spaces import LEARNABLE
from regbayes.scores.tilts import expected_statistics, slope_of_tilts

# Referees need not be exact: they change from round to round, and start from where they were.
_REFEREES = 1e-2
# Of the classifiers that unseen samples are tried with.
WEIGHTS = (1.5, 3.0, 10.0, 30.0, 100.0)
_MOST_KEPT = 30_000_000  # plain scores, of all samples: more are found anew in each round
_BETTER, _CLEARLY_BETTER = 0.25, 0.5  # in standard errors of a count


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
    keep_plain: bool = False  # features of the laws as they are, beside those under a tilt
    description: str = "statistics"  # of these by raw scores, see `spaces.LEARNABLE`

    def take(self, some: NDArray) -> Problem:
        """The same with some of the samples."""
        return replace(self, batch=self.batch.take(some), codes=self.codes[some])


class Space(NamedTuple):
    """Laws, and the tilt that each has for all samples, (n_laws, n_statistics)."""

    laws: list[Law]
    tilts: NDArray


class View(NamedTuple):
    """Untilted features of the problem's samples, and how they come from statistics."""

    counted: NDArray  # statistics under the tilts, (n_samples, n_laws, segments, n_statistics)
    raw: NDArray  # scores, of the laws as they are too, if these are kept: tilted ones last
    scaler: Scaler
    features: NDArray


def untilted(laws: list[Law]) -> Space:
    """The space of laws as they are: that of SS."""
    return Space(laws, np.zeros((len(laws), len(laws[0].natural()))))


def count(problem: Problem, space: Space) -> NDArray:
    """Statistics under the tilted laws, (n_samples, n_laws, segments, n_statistics)."""
    return expected_statistics(*space, problem.batch, problem.segments, problem.n_threads)


def describe(problem: Problem, space: Space, counted: NDArray | None = None) -> NDArray:
    """The raw scores of statistics, which may be known."""
    counted = count(problem, space) if counted is None else counted
    scores = LEARNABLE[problem.description].scores
    return np.stack([scores(law, counted[:, i]) for i, law in enumerate(space.laws)], axis=1)


def raw_scores(
    problem: Problem, space: Space, counted: NDArray | None = None, plain: NDArray | None = None
) -> NDArray:
    """What the features are made of: scores of the tilted laws; before them, plain ones.

    These are the same from round to round, and may be known.
    """
    learnt = describe(problem, space, counted)
    if not problem.keep_plain:
        return learnt
    return np.concatenate(
        [describe(problem, untilted(space.laws)) if plain is None else plain, learnt], axis=1
    )


def look(problem: Problem, space: Space, plain: NDArray | None = None) -> View:
    """The features, scaled and centred anew."""
    batch, counted = problem.batch, count(problem, space)
    raw = raw_scores(problem, space, counted, plain)
    scaler, features = fit_scaled(raw.reshape(len(batch), -1), batch.sizes, problem.scaling)
    return View(counted, raw, scaler, with_constant(features))


def with_constant(features: NDArray) -> NDArray:
    """Features whose squares sum to one, about, and a constant for the intercept."""
    scaled = features / np.sqrt(max(features.shape[1], 1))
    return np.column_stack([scaled, np.ones(len(features))])


def directions(problem: Problem, laws: list[Law], view: View, pull: NDArray) -> NDArray:
    """From the features to the statistics of each sample, the way back of a derivative."""
    pull = pull[:, :-1] / np.sqrt(max(pull.shape[1] - 1, 1))
    flat = view.raw.reshape(len(pull), -1)
    back = np.zeros_like(flat)
    back[:, view.scaler.kept] = pull * view.scaler.slopes(flat, problem.batch.sizes)
    learnt = back.reshape(view.raw.shape)[:, -len(laws) :]  # plain scores do not move
    pull_back = LEARNABLE[problem.description].pull
    each = [pull_back(law, view.counted[:, i], learnt[:, i]) for i, law in enumerate(laws)]
    return np.stack(each, axis=1)


def em_step(problem: Problem, owners: NDArray, strength: float, most: float, space: Space) -> Space:
    """A round of Algorithm 1 (001).

    `owners` says which law a sample trains; -1 for all. `most` bounds the tilt of a statistic.
    """
    view = look(problem, space)
    found = med.solve(  # Eq. 19: lambda; margins of Eq. 18 are integrated out in its primal
        view.features, problem.codes, problem.n_classes, problem.C, problem.margin
    )
    pull = med.pull(found.multipliers, problem.codes) @ found.weights  # lambda_t y_t w, Eq. 22
    tilts = np.clip(strength * directions(problem, space.laws, view, pull), -most, most)  # Eq. 15
    laws = []
    for i, law in enumerate(space.laws):
        own = np.flatnonzero((owners == i) | (owners == -1))
        batch = problem.batch.take(own)
        # Eq. 16, exactly: the tilted posterior is a law of the same kind.
        tilted = law.expect(batch, tilts[own, i], problem.segments, n_threads=problem.n_threads)
        laws.append(law.maximize(tilted.statistics.sum(axis=(0, 1))))  # line 10 of Algorithm 1
    return Space(laws, space.tilts)


def split(codes: NDArray, n_folds: int, seed: int) -> list[tuple[NDArray, NDArray]]:
    """Folds by class, what is left of the samples before each."""
    sizes = np.bincount(codes)
    folds = StratifiedKFold(min(n_folds, sizes.max()), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class smaller than the folds is judged, in part, by classifiers that saw none of it.
        warnings.simplefilter("ignore", UserWarning)
        return list(folds.split(codes, codes))


@dataclass
class Referee:
    """Classifiers that judge samples they were not fitted to, fold by fold.

    They are kept from round to round, for the next fit to start from.
    """

    folds: list[tuple[NDArray, NDArray]]  # what a classifier sees, and what it judges
    found: list[med.Discriminant | None]

    @classmethod
    def of(cls, problem: Problem, n_folds: int, seed: int) -> Referee:
        folds = split(problem.codes, n_folds, seed)
        return cls(folds, [None] * len(folds))

    def judge(self, problem: Problem, features: NDArray) -> tuple[float, NDArray]:
        """The margin loss of all samples, and minus its derivative by their features."""
        total, out = 0.0, np.empty_like(features)
        codes, gram = problem.codes, med.products(features)
        for f, (rest, fold) in enumerate(self.folds):
            last = self.found[f]
            self.found[f] = found = med.solve(
                features,
                codes,
                problem.n_classes,
                problem.C,
                problem.margin,
                None if last is None else last.multipliers,
                tol=_REFEREES,
                gram=gram,
                samples=rest,
            )
            losses, multipliers = med.margin_terms(
                features[fold] @ found.weights.T, codes[fold], problem.C, problem.margin
            )
            total += losses.sum()
            out[fold] = med.pull(multipliers, codes[fold]) @ found.weights
        return float(total), out


def loss_and_slope(
    problem: Problem, space: Space, referee: Referee, plain: NDArray | None = None
) -> tuple[float, NDArray]:
    """The margin loss on left-out samples, and its derivative by the tilts at fixed classifiers."""
    view = look(problem, space, plain)
    loss, pull = referee.judge(problem, view.features)
    back = -directions(problem, space.laws, view, pull)
    return loss, slope_of_tilts(*space, problem.batch, back, view.counted, problem.n_threads)


@dataclass(frozen=True)
class Descent:
    """Where the gradient descent on the tilts stands."""

    space: Space
    referees: list[Referee]
    mean: NDArray  # of the tilts, running: what is kept in the end
    first: NDArray  # moments of the slope, as Adam has them
    second: NDArray
    plain: NDArray | None = None  # raw scores of the laws as they are; none if they are many
    losses: tuple[float, ...] = ()  # of samples left out of the referees' fits

    @classmethod
    def of(cls, problem: Problem, space: Space, n_folds: int, seeds: NDArray) -> Descent:
        """The first state; a referee for each of the seeds, if any sample can be left out."""
        zeros = np.zeros_like(space.tilts)
        can = np.bincount(problem.codes).max() > 1
        referees = [Referee.of(problem, n_folds, int(seed)) for seed in seeds if can]
        plain, n_cells = None, len(problem.batch) * problem.segments * zeros.size
        if problem.keep_plain and n_cells <= _MOST_KEPT:
            plain = describe(problem, untilted(space.laws))
        return cls(space, referees, zeros, zeros, zeros, plain)

    @property
    def learnt(self) -> Space:
        return self.space._replace(tilts=self.mean)


def descend(problem: Problem, rate: float, here: Descent) -> Descent:
    """A round of gradient descent on the tilts, by Adam; referees with other folds take turns."""
    t, n_referees = len(here.losses) + 1, len(here.referees)
    if not n_referees:
        return here
    referee = here.referees[t % n_referees]
    loss, slope = loss_and_slope(problem, here.space, referee, here.plain)
    first = here.first + 0.1 * (slope - here.first)
    second = here.second + 0.01 * (slope**2 - here.second)
    step = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.99**t)) + 1e-300)
    space = here.space._replace(tilts=here.space.tilts - rate * step)
    mean = here.mean + max(0.1, 1 / t) * (space.tilts - here.mean)
    return Descent(space, here.referees, mean, first, second, here.plain, (*here.losses, loss))


def unseen_errors(problem: Problem, space: Space, rest: NDArray, fold: NDArray) -> NDArray:
    """How many of a fold are misjudged by classifiers and a scaling that know the rest alone.

    One number for each of the `WEIGHTS`. They are errors, not a loss: a margin loss rises with the
    length of the weights while errors fall.
    """
    raw, sizes = raw_scores(problem, space), problem.batch.sizes
    raw = raw.reshape(len(raw), -1)
    scaler = fit_scaler(raw[rest], sizes[rest], problem.scaling)
    features, codes = with_constant(scaler(raw, sizes)), problem.codes
    gram, start, errors = med.products(features[rest]), None, np.empty(len(WEIGHTS))
    for i, C in enumerate(WEIGHTS):
        found = med.solve(
            features[rest], codes[rest], problem.n_classes, C, problem.margin, start, 1e-3,
            gram=gram,
        )  # fmt: skip
        start = found.multipliers
        errors[i] = np.sum((features[fold] @ found.weights.T).argmax(axis=1) != codes[fold])
    return errors


class Check(NamedTuple):
    """How many of what the parts have left out are misjudged after some rounds."""

    n_rounds: int
    errors: NDArray  # by weight

    @property
    def mean(self) -> float:
        """Errors, on average over the weights."""
        return float(self.errors.mean())

    @property
    def weight(self) -> float | None:
        """That of the classifier with the fewest errors, if any were counted."""
        return WEIGHTS[int(self.errors.argmin())] if len(self.errors) else None


@dataclass(frozen=True)
class Search:
    """Descents of parts of the samples tell how far that of all samples, after them, should go."""

    n_iter: int
    whole: Descent
    parts: list[Descent]
    checks: tuple[Check, ...]

    @property
    def loss(self) -> float:
        """That of the last round, of all samples or of the parts together."""
        running = [self.whole] if self.decided else self.parts
        return sum(each.losses[-1] if each.losses else np.inf for each in running)

    @property
    def n_tried(self) -> int:
        """Rounds of the parts."""
        return len(self.parts[0].losses) if self.parts else 0

    @property
    def decided(self) -> bool:
        """Whether the parts are done: no rounds left, none misjudged, or no fewer than before."""
        if not self.checks or self.n_tried >= self.n_iter:
            return True
        last = self.checks[-1].mean
        return last == 0 or (self.n_tried >= self._usual and last >= self.checks[-2].mean)

    @property
    def done(self) -> bool:
        return not self.whole.referees or (
            self.decided and len(self.whole.losses) >= self.kept.n_rounds
        )

    @property
    def kept(self) -> Check:
        """A quarter of the rounds, more if that is better, none if that is clearly better.

        Of the looks from a quarter on, the first that is not worse than the best; without looks,
        all rounds. Better is what has fewer errors by a share of their root, which is about their
        standard error. They are averaged over the weights, for those with one weight are few.
        """
        if not self.checks:
            return Check(self.n_iter, np.empty(0))
        none = self.checks[0]
        some = [check for check in self.checks if check.n_rounds >= self._usual]
        some = some or [self.checks[-1]]  # nothing was misjudged before
        fewest = min(check.mean for check in some)
        kept = next(check for check in some if check.mean <= fewest + _BETTER * np.sqrt(fewest))
        return none if none.mean < kept.mean - _CLEARLY_BETTER * np.sqrt(kept.mean) else kept

    @property
    def _usual(self) -> int:
        return max(1, self.n_iter // 4)


def search_round(task: Task, rate: float, here: Search) -> Search:
    """A round of the parts, until they have told how many are good; then one of all samples.

    What the parts left out is looked at after an eighth of the rounds, and when their number has
    doubled.
    """
    if here.done:
        return here
    if here.decided:
        return replace(here, whole=descend(task.problem, rate, here.whole))
    parts = [descend(part.problem, rate, own) for part, own in zip(task.splits, here.parts)]
    here = replace(here, parts=parts)
    if here.n_tried not in {here.n_iter >> halvings for halvings in range(4)}:
        return here
    return replace(here, checks=(*here.checks, Check(here.n_tried, _errors(task, parts))))


class Part(NamedTuple):
    """Samples without a fold, for which a descent of their own is tried.

    Laws that know the fold's labels would make it look easier than new samples are: a part has
    its own. Where it has no sample of a class, that of the fold serves: `known` has all of these.
    """

    problem: Problem
    rest: NDArray
    fold: NDArray
    known: NDArray


class Task(NamedTuple):
    """A problem, the law that each sample trains, and its parts for :func:`search_round`."""

    problem: Problem
    owners: NDArray
    splits: list[Part]

    @classmethod
    def of(
        cls, problem: Problem, owners: NDArray, n_splits: int, seed: int, classes: NDArray
    ) -> Task:
        """`classes` are those that have laws, whatever the problem tells apart."""
        few = n_splits < 2 or np.bincount(problem.codes).max() < 2
        parts = []
        for rest, fold in [] if few else split(problem.codes, n_splits, seed):
            alone = fold[~np.isin(classes[fold], classes[rest])]
            parts.append(Part(problem.take(rest), rest, fold, np.union1d(rest, alone)))
        return cls(problem, owners, parts)

    def begin(
        self, space: Space, of_parts: list[Space], n_folds: int, seeds: NDArray, n_iter: int
    ) -> Search:
        """The first state of a search, with its referees' seeds."""
        whole = Descent.of(self.problem, space, n_folds, seeds)
        parts = [
            Descent.of(part.problem, own, n_folds, seeds)
            for part, own in zip(self.splits, of_parts)
        ]
        checks = (Check(0, _errors(self, parts)),) if parts else ()
        return Search(n_iter, whole, parts, checks)


def _errors(task: Task, parts: list[Descent]) -> NDArray:
    each = [
        unseen_errors(task.problem, descent.learnt, part.rest, part.fold)
        for part, descent in zip(task.splits, parts)
    ]
    return np.sum(each, axis=0)


class Turn(NamedTuple):
    """Where one of several tasks stands, for :func:`regbayes.chains.descend_each`."""

    task: int
    state: Any


def em_round(tasks: list[Task], strength: float, most: float, rng: Any, here: Turn) -> Turn:
    """:func:`em_step` of a task; no random numbers are used."""
    problem, owners, _ = tasks[here.task]
    return here._replace(state=em_step(problem, owners, strength, most, here.state))


def gradient_round(tasks: list[Task], rate: float, rng: Any, here: Turn) -> Turn:
    """:func:`search_round` of a task; no random numbers are used."""
    return here._replace(state=search_round(tasks[here.task], rate, here.state))
