"""Fisher kernel learning: a law whose scores tell the classes apart by their nearest neighbours.

After van der Maaten (2011). Taken as a random field, with potentials alpha + delta in the place of
log-probabilities, a law has the Fisher scores

    g_s = d log p(x_s) / d delta = E[T | x_s] - E[T],

and the last term, the model's own, is the same for all samples of one size: it is left out. With
features f_s, the scores after scaling, sample s chooses a neighbour with the probabilities
p_st ∝ exp(-beta |f_s - f_t|^2), and delta minimises the expected number of wrong choices
(neighbourhood components analysis, Goldberger et al. 2005):

    |delta|^2 / 2 + C sum_s (1 - sum_{t: y_t = y_s} p_st).

Scores move with delta by covariances, and a covariance along one direction is a difference of
scores under two tilts: Cov[T, v . T] = d E[T; delta + r v] / d r at r = 0. One direction for each
sample is all that the gradient asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import softmax

from regbayes import chains
from regbayes.scores.protocol import Law
from regbayes.scores.scaling import Scaler, Scaling, fit_scaler
from regbayes.scores.tilts import expected_statistics, slope_of_tilts

# Of the mean variance of the scores.
_RIDGE = 0.01


@dataclass(frozen=True, eq=False)
class Model:
    """What stays fixed: laws, samples, the scale of the scores and what neighbours are.

    Attributes
    ----------
    laws : list of Law
        One for all samples, or one for each class.
    batch : Batch
    codes : ndarray of int of shape (n_samples,)
    scaler : Scaler
        From raw scores to features, of the laws as they are without tilts.
    C, beta : float
    training : ndarray of bool of shape (n_samples,)
        The others say when to stop.
    segments, n_threads : int
    """

    laws: list[Law]
    batch: Any
    codes: NDArray
    scaler: Scaler
    C: float
    beta: float
    training: NDArray
    segments: int = 1
    n_threads: int = 1


def make_model(
    laws: list[Law],
    batch: Any,
    codes: NDArray,
    scaling: Scaling,
    C: float,
    perplexity: float,
    left_out: float,
    rng: np.random.Generator,
    segments: int = 1,
    n_threads: int = 1,
) -> Model:
    """Units and neighbours as the laws have them before any tilt."""
    blank = np.zeros((len(laws), len(laws[0].names)))
    raw = expected_statistics(laws, blank, batch, segments, n_threads).reshape(len(batch), -1)
    scaler = ridged_scaler(raw, batch.sizes, scaling)
    beta = find_beta(scaler(raw, batch.sizes), perplexity)
    training = leave_out(codes, left_out, rng)
    return Model(laws, batch, codes, scaler, C, beta, training, segments, n_threads)


class Solution(NamedTuple):
    """Tilts of shape (n_laws, n_statistics), the objective and the validation, round by round."""

    tilts: NDArray
    objective: NDArray
    validation: NDArray


def objective(model: Model, tilts: NDArray) -> tuple[float, NDArray]:
    """The objective on the training samples, and its gradient."""
    batch, codes = model.batch.take(model.training), model.codes[model.training]
    raw = expected_statistics(model.laws, tilts, batch, model.segments, model.n_threads)
    flat = raw.reshape(len(batch), -1)
    errors, slopes = neighbour_errors(model.scaler(flat, batch.sizes), codes, model.beta)
    directions = np.zeros_like(flat)
    directions[:, model.scaler.kept] = model.C * slopes * model.scaler.slopes(flat, batch.sizes)
    back = directions.reshape(raw.shape)
    moved = slope_of_tilts(model.laws, tilts, batch, back, raw, model.n_threads)
    value = 0.5 * np.sum(tilts**2) + model.C * errors.sum()
    return float(value), tilts + moved


def neighbour_errors(features: NDArray, codes: NDArray, beta: float) -> tuple[NDArray, NDArray]:
    """Probabilities that a sample's neighbour has another label; derivatives of their sum."""
    shares = choices(features, beta)
    right = shares * (codes[:, None] == codes)
    hits = right.sum(axis=1)
    # d(sum hits) / d|f_s - f_t|^2, to which both s and t belong.
    pull = beta * (hits[:, None] * shares - right)
    pull += pull.T
    slopes = 2 * (pull.sum(axis=1)[:, None] * features - pull @ features)
    return 1 - hits, -slopes


def choices(features: NDArray, beta: float) -> NDArray:
    """p_st, the probabilities that sample s takes sample t, but never itself, for its neighbour."""
    distances = cdist(features, features, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    return softmax(-beta * distances, axis=1)


def ridged_scaler(raw: NDArray, sizes: NDArray, scaling: Scaling) -> Scaler:
    """A scaler by the (diagonal) Fisher information and a ridge, to be kept as the scores move.

    A transition that hardly ever happens has scores that hardly vary. Without a ridge, a tilt that
    lets it happen would send them off to where no sample has a neighbour.
    """
    scaler = fit_scaler(raw, sizes, scaling)
    if scaling != "variance" or not scaler.kept.any():
        return scaler
    return scaler._replace(unit=np.sqrt(scaler.unit**2 + _RIDGE * np.mean(scaler.unit**2)))


def find_beta(features: NDArray, perplexity: float) -> float:
    """The precision with which samples have this many neighbours, by their mean entropy."""
    distances = cdist(features, features, "sqeuclidean")
    typical = distances.mean()
    if typical == 0 or len(features) < 3:
        return 1.0
    aim = np.log(min(perplexity, 0.5 * len(features)))
    low, high = np.log(1e-6 / typical), np.log(1e6 / typical)
    for _ in range(60):
        middle = 0.5 * (low + high)
        shares = choices(features, np.exp(middle))
        entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0))) / len(features)
        low, high = (middle, high) if entropy > aim else (low, middle)
    return float(np.exp(low))


def validate(model: Model, tilts: NDArray) -> float:
    """Share of wrong choices, of samples left out among those of training."""
    raw = expected_statistics(model.laws, tilts, model.batch, model.segments, model.n_threads)
    features = model.scaler(raw.reshape(len(raw), -1), model.batch.sizes)
    out, within = features[~model.training], features[model.training]
    shares = softmax(-model.beta * cdist(out, within, "sqeuclidean"), axis=1)
    same = model.codes[~model.training][:, None] == model.codes[model.training]
    return float(1 - np.sum(shares * same) / len(out))


def solve(
    model: Model,
    n_iter: int,
    patience: int,
    ask: chains.Replay | None = None,
    watch: chains.Watch | None = None,
) -> Solution:
    """From zero, by L-BFGS, to the round that is best for the samples left out, if there are any.

    It ends after `n_iter` rounds, or after `patience` rounds that are no better than one before.
    """
    ask = chains.Replay(None) if ask is None else ask
    judge = partial(validate, model)
    judged = not model.training.all()
    best = np.zeros((len(model.laws), len(model.laws[0].names)))
    validation = [ask(judge, best)] if judged else []

    def look(here: NDArray) -> bool:
        nonlocal best
        if not judged:
            best = here
            return False
        validation.append(ask(judge, here))
        if validation[-1] < min(validation[:-1]):
            best = here
        return len(validation) - 1 - int(np.argmin(validation)) >= patience

    function = partial(objective, model)
    found = chains.minimize(
        function, best, max_iter=n_iter, tol=1e-6, look=look, ask=ask, watch=watch
    )
    return Solution(best, found.objective, np.array(validation))


def leave_out(codes: NDArray, fraction: float, rng: np.random.Generator) -> NDArray:
    """The samples to train on: a share of every class is left out, but never its last sample."""
    training = np.ones(len(codes), dtype=bool)
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        training[members[: int(fraction * len(members))]] = False
    return training
