"""Large-margin HMMs: a law for each class, tilted until sequences are right by a margin.

After Sha & Saul (2007). Class c scores a sequence x of T steps by a sum over paths,

    F_c(x) = log sum_z p_c(x, z) exp(delta_c . T(x, z)),       F_c(x) = log p_c(x) at delta_c = 0,

which is the normaliser of a tilted chain, and its gradient in delta_c is E[T] (Fisher's identity).
The tilts delta minimise

    sum_c |delta_c|^2 / 2 + C sum_s [m - (F_y(x_s) - log sum_{c != y} exp F_c(x_s)) / T_s]_+,

one hinge for each sequence, with a soft maximum over its wrong classes. A margin m for each step
is a margin m T for a sequence, as their Hamming distance of two paths that never meet.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from regbayes import chains
from regbayes.data import Sequences
from regbayes.hmm.emissions import DiagonalEmission
from regbayes.hmm.finite import ChainLaw

# The hinge's corner is a parabola over this share of the margin: L-BFGS wants a gradient.
ROUNDED = 0.1
# What an impossible sequence scores, so that differences are numbers.
IMPOSSIBLE = -1e300


@dataclass(frozen=True, eq=False)
class Model:
    """What stays fixed: laws by maximum likelihood, labelled sequences, what is asked of them."""

    laws: list[ChainLaw]
    sequences: Sequences
    codes: NDArray
    C: float
    margin: float
    n_threads: int = 1


class Solution(NamedTuple):
    """Tilts of shape (n_classes, n_statistics), the objective round by round, did it settle."""

    tilts: NDArray
    objective: NDArray
    converged: bool


def objective(model: Model, tilts: NDArray) -> tuple[float, NDArray]:
    """The objective and its gradient."""
    found = [
        law.expect(model.sequences, tilt, n_threads=model.n_threads)
        for law, tilt in zip(model.laws, tilts)
    ]
    sizes = model.sequences.sizes
    scores = np.column_stack([each.log_likelihoods for each in found])
    gaps, slopes = gaps_to_rivals(scores, model.codes)
    losses, pulls = hinge(model.margin - gaps / sizes, ROUNDED * model.margin)
    weights = -(pulls / sizes)[:, None] * slopes
    moved = [weight @ each.statistics[:, 0] for weight, each in zip(weights.T, found)]
    value = 0.5 * np.sum(tilts**2) + model.C * losses.sum()
    return float(value), tilts + model.C * np.array(moved)


def solve(
    model: Model,
    max_iter: int,
    tol: float,
    ask: chains.Replay | None = None,
    watch: chains.Watch | None = None,
) -> Solution:
    """From the laws of maximum likelihood, where all tilts are zero, by L-BFGS."""
    found = chains.minimize(
        partial(objective, model),
        np.zeros((len(model.laws), len(model.laws[0].names))),
        upper=np.array([ceilings(law) for law in model.laws]),
        max_iter=max_iter,
        tol=tol,
        memory=20,
        ask=ask,
        watch=watch,
    )
    if len(found.objective) > max_iter:
        warnings.warn(
            f"the objective still falls after max_iter={max_iter} rounds; raise max_iter or tol, "
            "or lower C.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Solution(*found)


def scores(
    laws: list[ChainLaw], tilts: NDArray, sequences: Sequences, n_threads: int = 1
) -> NDArray:
    """F_c(x) / T, of shape (n_sequences, n_classes)."""
    found = [
        law.expect(sequences, tilt, n_threads=n_threads).log_likelihoods
        for law, tilt in zip(laws, tilts)
    ]
    return np.maximum(np.column_stack(found) / sequences.sizes[:, None], IMPOSSIBLE)


def gaps_to_rivals(scores: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
    """F_y - log sum_{c != y} exp F_c, and its derivatives by all F."""
    own = codes[:, None]
    rivals = scores.copy()
    np.put_along_axis(rivals, own, -np.inf, axis=1)
    soft = np.maximum(logsumexp(rivals, axis=1, keepdims=True), IMPOSSIBLE)
    slopes = -np.exp(rivals - soft)
    np.put_along_axis(slopes, own, 1.0, axis=1)
    return (np.take_along_axis(scores, own, axis=1) - soft)[:, 0], slopes


def hinge(short: NDArray, width: float) -> tuple[NDArray, NDArray]:
    """[u]_+ with a parabola in the place of its corner, for 0 < u < width; and its derivative."""
    slopes = np.clip(short / width, 0.0, 1.0)
    return slopes * (short - 0.5 * width * slopes), slopes


def ceilings(law: ChainLaw) -> NDArray:
    """Largest tilts: with them the squares of diagonal Gaussians count against a class.

    Sha & Saul ask for positive semidefinite matrices. Without, a class would take what is far from
    all classes; with full covariances, which no box constrains, only the penalty prevents it.
    """
    most = np.full(len(law.names), np.inf)
    if isinstance(law.emission, DiagonalEmission):
        n_features = len(law.emission.prior.mean)
        squares = most[law.n_hidden :].reshape(law.n_states, -1)[:, 1 + n_features :]
        squares[:] = -law.emission.natural(law.parameters)[:, 1 + n_features :]
    return most
