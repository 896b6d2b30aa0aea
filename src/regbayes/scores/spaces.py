"""Score spaces: fixed-length descriptions of samples by what a generative model makes of them.

Every function takes a law, its expectations of some samples, and gives scores of shape
(n_samples, n_segments, n_scores); its companion in `NAMES` says what they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.scores.protocol import Expected, Law


def sufficient_statistics(law: Law, found: Expected) -> NDArray:
    """Expected statistics and entropy terms (001, Eqs. 6-7).

    With eta = (alpha, 1) their inner product is the log-likelihood (001, Eq. 5); the constants of
    Eq. 6 are left to the classifier's intercept.
    """
    return np.concatenate([found.statistics, found.entropies], axis=-1)


def free_energy(law: Law, found: Expected) -> NDArray:
    """The terms of the log-likelihood: they sum to it (Perina et al. 2009)."""
    return np.concatenate([found.statistics * law.natural(), found.entropies], axis=-1)


def fisher(law: Law, found: Expected) -> NDArray:
    """The gradient of the log-likelihood (Jaakkola & Haussler 1999)."""
    return law.gradient(found.statistics)


def posterior_divergence(law: Law, found: Expected, totals: NDArray) -> NDArray:
    """What changes when a sample joins the training set (after Li, Lee & Liu 2011).

    An incremental M-step moves theta to theta+. The bound on the log-likelihood then changes by how
    much the sample moves the model, totals (alpha(theta+) - alpha(theta)), how well it fits,
    E[T] alpha(theta+), and how uncertain that fit is, the entropies: three measures whose sum is
    the change.
    """
    alpha = law.natural()
    after = np.array(
        [law.maximize(totals + one).natural() for one in found.statistics.sum(axis=1)]
    )[:, None]
    moved = np.zeros_like(found.statistics)
    moved[:, :1] = totals * (after - alpha)  # of the whole sample: no segment has a part in it
    return np.concatenate([moved, found.statistics * after, found.entropies], axis=-1)


def log_odds(log_joint: NDArray) -> NDArray:
    """log p(class | x) - log p(any other class | x), from log p(class, x)."""
    out = np.empty_like(log_joint)
    for c in range(log_joint.shape[1]):
        others = np.delete(log_joint, c, axis=1)
        out[:, c] = log_joint[:, c] - np.logaddexp.reduce(others, axis=1)
    return out


def _with_entropies(law: Law) -> list[str]:
    return law.names + _entropies(law)


def _entropies(law: Law) -> list[str]:
    return [f"entropy({name})" for name in law.names[: law.n_hidden]]


class Learnable(NamedTuple):
    """A space of functions of the statistics alone, which a tilt can be learnt through."""

    describe: Callable[[Law, Expected], NDArray]  # as it is shown
    scores: Callable[[Law, NDArray], NDArray]  # of statistics, as it is learnt
    pull: Callable[[Law, NDArray, NDArray], NDArray]  # d (v . scores) / d statistics


LEARNABLE = {
    # Entropies are no function of the statistics: they are shown, and nothing is learnt from them.
    "statistics": Learnable(sufficient_statistics, lambda law, found: found, lambda law, _, v: v),
    "fisher": Learnable(
        fisher,
        lambda law, found: law.gradient(found),
        lambda law, found, v: law.pull_gradient(found, v),
    ),
}

NAMES: dict[Callable, Callable[[Law], list[str]]] = {
    sufficient_statistics: _with_entropies,
    free_energy: _with_entropies,
    fisher: lambda law: [f"d/d({name})" for name in law.names],
    posterior_divergence: lambda law: (
        [f"moved({name})" for name in law.names] + law.names + _entropies(law)
    ),
}
