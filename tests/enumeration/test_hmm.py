"""The beam sampler against the exact posterior over partitions of a few steps.

Two states of a path are told apart, never named: what is compared is which steps share a state.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from regbayes.hmm import beam
from regbayes.hmm.emissions import CategoricalEmission, NoEmission
from regbayes.margin import GibbsClassifier
from regbayes.priors import Dirichlet, Fixed, HierarchicalDirichlet

STARTS = np.array([0, 4, 6])
SYMBOLS = np.array([0, 1, 1, 0, 0, 0])
INPUTS = np.array([[0.4], [-1.1], [0.8], [1.5], [-0.6], [0.9]])
LABELS = np.array([0, 1, 1, -1, 0, 0])


@dataclass(frozen=True)
class Setting:
    stay: float = 0.0
    width: float = 0.01
    alpha: float = 1.3
    gamma: float = 1.7
    concentration: float | None = 0.6  # None: no emission
    classifier: GibbsClassifier | None = None


def prior_of_partitions(setting: Setting) -> dict[tuple[int, ...], float]:
    """Paths in order of appearance, by the Chinese restaurant franchise, a step at a time.

    A customer of restaurant j (the state before, or None) joins those who went to state k with
    n_jk, or opens a table with alpha. With probability `stay` a table serves state j; else it
    orders one of the states by how many tables ordered it before, or a new one with gamma. Who
    sits where within a restaurant does not matter: a path and its orders are all there is.
    """
    alpha, gamma = setting.alpha, setting.gamma
    law = {((), ()): 1.0}
    for t in range(STARTS[-1]):
        after: dict[tuple, float] = defaultdict(float)
        for (path, orders), p in law.items():
            before = [None if i in STARTS else path[i - 1] for i in range(t)]
            own = None if t in STARTS else path[t - 1]
            seen = Counter(k for j, k in zip(before, path) if j == own)
            n, m, n_states = seen.total(), sum(orders), len(orders)
            for k in seen:
                after[(*path, k), orders] += p * seen[k] / (n + alpha)
            p *= alpha / (n + alpha)
            if own is not None:
                after[(*path, own), orders] += p * setting.stay
                p *= 1 - setting.stay
            for k in range(n_states):
                more = (*orders[:k], orders[k] + 1, *orders[k + 1 :])
                after[(*path, k), more] += p * orders[k] / (m + gamma)
            after[(*path, n_states), (*orders, 1)] += p * gamma / (m + gamma)
        law = after
    total: dict[tuple[int, ...], float] = defaultdict(float)
    for (path, _), p in law.items():
        total[path] += p
    return total


def log_label_evidence(members: list[int], classifier: GibbsClassifier) -> float:
    """log of the integral of prod phi over the difference of two classes' weights, by a grid."""
    grid = np.linspace(-9.0, 9.0, 4001)
    log_p = stats.norm.logpdf(grid) + np.log(grid[1] - grid[0])
    for t in members:
        if LABELS[t] >= 0:
            gap = (1 - 2 * LABELS[t]) * np.sqrt(2) * classifier.nu * grid * INPUTS[t, 0]
            log_p = log_p - 2 * classifier.C * np.maximum(0, classifier.cost - gap)
    return float(logsumexp(log_p))


def exact_posterior(setting: Setting) -> dict[tuple[int, ...], float]:
    @functools.cache
    def log_block(*members):
        value = 0.0
        if setting.concentration is not None:
            counts = np.bincount(SYMBOLS[list(members)], minlength=2)
            value += Dirichlet([setting.concentration] * 2).log_marginal(counts)
        if setting.classifier is not None:
            value += log_label_evidence(members, setting.classifier)
        return value

    prior = prior_of_partitions(setting)
    log_p = [
        np.log(p) + sum(log_block(*np.flatnonzero(np.equal(path, k))) for k in set(path))
        for path, p in prior.items()
    ]
    return dict(zip(prior, np.exp(np.array(log_p) - logsumexp(log_p))))


def model_of(setting: Setting) -> beam.Model:
    emission = NoEmission()
    if setting.concentration is not None:
        emission = CategoricalEmission(2, setting.concentration)
    labels = None
    if setting.classifier is not None:
        labels = beam.Labels(INPUTS, LABELS, setting.classifier)
    prior = HierarchicalDirichlet(Fixed(setting.alpha), Fixed(setting.gamma), setting.stay)
    return beam.Model(SYMBOLS, STARTS, emission, prior, labels, setting.width)


@functools.cache
def draw_partitions(setting: Setting, n: int, seed: int) -> list[tuple[int, ...]]:
    rng, model = np.random.default_rng(seed), model_of(setting)
    state = beam.init(model, np.arange(STARTS[-1]), rng)
    drawn = []
    for i in range(n + 50):
        state = beam.step(model, rng, state)
        if i >= 50:
            _, first, place = np.unique(state.z, return_index=True, return_inverse=True)
            drawn.append(tuple(first.argsort().argsort()[place].tolist()))
    return drawn


def p_value(drawn: list[tuple[int, ...]], exact: dict[tuple[int, ...], float]) -> float:
    """Chi-squared, corrected for the correlation of successive sweeps (Rao & Scott 1981).

    Counts of a Markov chain vary more than those of independent draws, by as much as its
    autocorrelation adds up to. Batch means tell by how much in each cell; the statistic is
    divided by the average.
    """
    places = {path: i for i, path in enumerate(exact)}
    codes, law = np.array([places[path] for path in drawn]), np.array(list(exact.values()))
    rare = law * len(codes) < 20
    cell = np.where(rare, (~rare).sum(), (~rare).cumsum() - 1)
    law, codes = np.bincount(cell, law), cell[codes]
    batches = [np.bincount(b, minlength=len(law)) for b in np.array_split(codes, 100)]
    observed, expected = np.sum(batches, axis=0), law * len(codes)
    inflation = np.var(batches, axis=0, ddof=1) / (expected / 100 * (1 - law))
    average = max(1.0, np.average(inflation, weights=1 - law))
    statistic = ((observed - expected) ** 2 / expected).sum() / average
    return float(stats.chi2.sf(statistic, len(law) - 1))


SETTINGS = {
    "beam": Setting(width=1.0),
    "narrow beam": Setting(),
    "sticky beam": Setting(stay=0.4, width=1.0),
    "narrow sticky beam": Setting(stay=0.4),
    "labels": Setting(stay=0.4, classifier=GibbsClassifier(2, 1, C=1.2, nu=1.4)),
    "labels alone": Setting(
        width=0.3, concentration=None, classifier=GibbsClassifier(2, 1, C=0.8, cost=1.5, nu=2.0)
    ),
}


def test_the_exact_law_is_one():
    for stay in (0.0, 0.4):
        prior = prior_of_partitions(Setting(stay=stay))
        assert len(prior) == 203  # Bell's number
        assert sum(prior.values()) == pytest.approx(1.0, abs=1e-12)
        # The first two steps: the second stayed, or ordered what the first had.
        together = sum(p for path, p in prior.items() if path[0] == path[1])
        assert together == pytest.approx(stay + (1 - stay) / (1 + 1.7), abs=1e-12)


@pytest.mark.parametrize("name", ["beam", "labels"])
def test_partitions_follow_the_exact_posterior(name):
    setting = SETTINGS[name]
    assert p_value(draw_partitions(setting, 6_000, seed=1), exact_posterior(setting)) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_partitions_follow_the_exact_posterior_closely(name):
    setting = SETTINGS[name]
    assert p_value(draw_partitions(setting, 40_000, seed=2), exact_posterior(setting)) > 1e-4


@pytest.mark.slow
def test_a_posterior_that_is_a_little_off_is_told_apart():
    drawn = draw_partitions(SETTINGS["narrow sticky beam"], 40_000, seed=2)
    for wrong in (Setting(stay=0.3), Setting(stay=0.4, alpha=1.8), Setting(stay=0.4, gamma=2.3)):
        assert p_value(drawn, exact_posterior(wrong)) < 1e-6
