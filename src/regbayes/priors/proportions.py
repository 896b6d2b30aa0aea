"""The prior of the proportions of topics in documents: theta_d ~ Dirichlet(alpha).

Both draw alpha with theta integrated out, by the tables of the restaurants that documents are
(Teh et al. 2006): `seats[k, n]` documents have more than n tokens of topic k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.random import draw_dirichlet, draw_gamma
from regbayes.kernels.topics import sum_log_rests
from regbayes.priors.concentration import Fixed, GammaPrior

_LEAST = 1e-100  # of a topic's concentration: a topic that no document has may come back


class Proportions(NamedTuple):
    """alpha, and for the hierarchical prior its sum and the concentration of topics."""

    alpha: NDArray
    total: float
    gamma: float


def draw_tables(rng: np.random.Generator, seats: NDArray, alpha: NDArray) -> NDArray:
    """Tables of each topic: customer n opens one with probability alpha / (alpha + n).

    Examples
    --------
    >>> draw_tables(np.random.default_rng(0), np.array([[3, 2, 1], [2, 0, 0]]), np.array([1e9, 1]))
    array([6, 2])
    """
    customers = np.arange(seats.shape[1])
    return rng.binomial(seats, alpha[:, None] / (alpha[:, None] + customers)).sum(axis=1)


@dataclass(frozen=True)
class AsymmetricDirichlet:
    """A concentration of its own for every topic: fixed, or each with a Gamma prior.

    Examples
    --------
    >>> prior = AsymmetricDirichlet(GammaPrior(1.0, 10.0))
    >>> now = prior.init(2)
    >>> now.alpha
    array([0.1, 0.1])
    >>> seats = np.array([[90, 80, 70], [10, 0, 0]])
    >>> now = prior.draw(np.random.default_rng(0), now, seats, np.full(100, 3))
    >>> bool(now.alpha[0] > now.alpha[1])
    True
    """

    prior: Fixed | GammaPrior

    @property
    def is_fixed(self) -> bool:
        return isinstance(self.prior, Fixed)

    def init(self, n_topics: int) -> Proportions:
        alpha = np.full(n_topics, self.prior.mean)
        return Proportions(alpha, float(alpha.sum()), np.nan)

    def draw(
        self, rng: np.random.Generator, now: Proportions, seats: NDArray, sizes: NDArray
    ) -> Proportions:
        """alpha_k ~ Gamma(shape + tables, rate - sum_d log q_d), q_d ~ Beta(sum alpha, n_d)."""
        if isinstance(self.prior, Fixed):
            return now
        tables = draw_tables(rng, seats, now.alpha)
        rate = self.prior.rate + sum_log_rests(rng, now.total, sizes)
        drawn = [draw_gamma(rng, self.prior.shape + m) / rate for m in tables]
        alpha = np.maximum(drawn, _LEAST)
        return now._replace(alpha=alpha, total=float(alpha.sum()))


@dataclass(frozen=True)
class HierarchicalProportions:
    """alpha = total * shares, shares ~ Dirichlet(gamma / K): the HDP when K is large.

    The limit of many topics is the hierarchical Dirichlet process; with a finite K it is its
    weak-limit approximation (Ishwaran & Zarepour 2002), which leaves most topics empty.

    Parameters
    ----------
    total, gamma : Fixed or GammaPrior
        Concentrations of the documents and of the topics.

    Examples
    --------
    >>> prior = HierarchicalProportions(Fixed(1.0), Fixed(2.0))
    >>> seats = np.array([[90, 80], [10, 0], [0, 0]])
    >>> now = prior.draw(np.random.default_rng(0), prior.init(3), seats, np.full(90, 2))
    >>> bool(now.alpha[0] > now.alpha[1]), bool(np.isclose(now.alpha.sum(), 1.0))
    (True, True)
    """

    total: Fixed | GammaPrior
    gamma: Fixed | GammaPrior

    is_fixed = False

    def init(self, n_topics: int) -> Proportions:
        total = self.total.mean
        return Proportions(np.full(n_topics, total / n_topics), total, self.gamma.mean)

    def draw(
        self, rng: np.random.Generator, now: Proportions, seats: NDArray, sizes: NDArray
    ) -> Proportions:
        """Tables; the concentrations given them; the shares of the topics."""
        n_topics = len(now.alpha)
        tables = draw_tables(rng, seats, now.alpha)
        total = self.total.draw_concentration(now.total, int(tables.sum()), sizes, rng)
        # The tables of a topic are customers one level up, whose tables tell about gamma.
        above = np.arange(tables.max(initial=0)) < tables[:, None]
        n_above = int(draw_tables(rng, above, np.full(n_topics, now.gamma / n_topics)).sum())
        gamma = self.gamma.draw_concentration(now.gamma, n_above, tables.sum(), rng)
        shares = np.empty(n_topics)
        draw_dirichlet(rng, tables + gamma / n_topics, shares)
        return Proportions(np.maximum(total * shares, _LEAST), total, gamma)
