"""Dirichlet process, stick breaking and Dirichlet: by enumeration where it is possible."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from regbayes.priors import Dirichlet, DirichletProcess, StickBreaking
from regbayes.priors._common import log_rising
from tests.helpers import assert_law, assert_pmf

CONCENTRATIONS = [1e-3, 0.3, 1.0, 4.0, 1e3]


def partitions(n):
    """All partitions of n points as labels in order of appearance."""
    if n == 0:
        return [()]
    return [(*p, k) for p in partitions(n - 1) for k in range(max(p, default=-1) + 2)]


@pytest.mark.parametrize("alpha", [1e-300, *CONCENTRATIONS, 1e300])
def test_partition_probabilities_sum_to_one(alpha):
    process = DirichletProcess(alpha)
    logs = [process.log_partition_probability(p) for p in partitions(6)]
    assert len(logs) == 203  # Bell's number
    assert logsumexp(logs) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("alpha", CONCENTRATIONS)
def test_partition_draws_follow_their_probabilities(alpha):
    process, rng = DirichletProcess(alpha), np.random.default_rng(0)
    every = {p: i for i, p in enumerate(partitions(4))}
    draws = [every[tuple(process.draw_partition(4, rng).tolist())] for _ in range(10_000)]
    assert_pmf(draws, np.exp([process.log_partition_probability(p) for p in every]))


def test_partition_probability_ignores_names_and_order():
    process = DirichletProcess(0.7)
    expected = process.log_partition_probability([0, 0, 1, 2])
    assert process.log_partition_probability(["b", "a", "c", "b"]) == pytest.approx(expected)
    assert process.log_partition_probability([]) == 0


@pytest.mark.parametrize("alpha", CONCENTRATIONS)
def test_expected_components_by_enumeration(alpha):
    process = DirichletProcess(alpha)
    mean = sum((max(p) + 1) * np.exp(process.log_partition_probability(p)) for p in partitions(6))
    assert process.expected_components(6) == pytest.approx(mean)
    assert process.expected_components(0) == 0


@given(st.floats(-300, 300), st.integers(0, 30), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_partition_labels_appear_in_order(log_alpha, n, seed):
    process = DirichletProcess(10.0**log_alpha)
    labels = process.draw_partition(n, np.random.default_rng(seed))
    assert len(labels) == n
    first_seen = list(dict.fromkeys(labels.tolist()))
    assert first_seen == list(range(len(first_seen)))
    assert np.isfinite(process.log_partition_probability(labels))
    assert min(n, 1) <= process.expected_components(n) * (1 + 1e-12)
    assert process.expected_components(n) <= n * (1 + 1e-12)


@given(st.floats(-300, 300), st.integers(0, 200))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_rising_factorial(log_a, n):
    a = 10.0**log_a
    assert log_rising(a, n) == pytest.approx(np.log(a + np.arange(n)).sum(), rel=1e-10, abs=1e-10)


# ----------------------------------------------------------------------------------- stick breaking


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0, 1e3, 1e8])
def test_sticks_are_beta(alpha):
    rng = np.random.default_rng(1)
    weights = np.array([StickBreaking(alpha).draw_weights(2, rng)[0] for _ in range(2_000)])
    law = stats.beta(1, alpha).cdf
    assert_law(weights[:, 0], law)
    left = 1 - weights[:, 0]
    usable = left > 1e-8  # the second stick cannot be read off a stick that is all but gone
    assert_law(weights[usable, 1] / left[usable], law)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 1e3, 1e8])
def test_leftover_of_the_stick(alpha):
    """-log of what three sticks leave is Gamma(3) with rate alpha."""
    rng = np.random.default_rng(5)
    leftover = np.array([StickBreaking(alpha).draw_weights(3, rng)[1] for _ in range(2_000)])
    assert_law(-np.log(leftover) * alpha, stats.gamma(3).cdf)


@given(st.floats(-300, 300), st.integers(0, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_sticks_make_one_whole(log_alpha, n_sticks, seed):
    prior = StickBreaking(10.0**log_alpha)
    weights, leftover = prior.draw_weights(n_sticks, np.random.default_rng(seed))
    assert weights.shape == (n_sticks,)
    assert np.all(weights >= 0)
    assert leftover >= 0
    assert weights.sum() + leftover == pytest.approx(1, abs=1e-14)


def test_stick_posterior_agrees_with_the_partition_law():
    """E[prod w_k^n_k] under the sticks = ratio of Beta functions given by `posterior`."""
    prior, counts = StickBreaking(1.7), np.array([3, 0, 2])
    rng = np.random.default_rng(2)
    draws = np.array([prior.draw_weights(3, rng)[0] for _ in range(20_000)])
    # Importance weights prod w_k^n_k turn prior sticks into posterior sticks.
    importance = np.prod(draws**counts, axis=1)
    posterior = prior.posterior(counts)
    means = posterior[:, 0] / posterior.sum(axis=1)
    left = np.column_stack([np.ones(len(draws)), 1 - np.cumsum(draws, axis=1)[:, :-1]])
    estimate = np.average(draws / left, axis=0, weights=importance)
    np.testing.assert_allclose(estimate, means, atol=0.02)


@pytest.mark.parametrize("truncated", [True, False])
def test_expected_log_weights(truncated):
    prior = StickBreaking(0.8)
    posterior = prior.posterior([5, 2.5, 1])
    rng = np.random.default_rng(3)
    v = rng.beta(posterior[:, 0], posterior[:, 1], size=(100_000, 3))
    if truncated:
        v[:, -1] = 1.0
    left = np.cumprod(np.column_stack([np.ones(len(v)), 1 - v[:, :-1]]), axis=1)
    logs = np.log(v * left)
    z = (logs.mean(axis=0) - prior.expected_log_weights(posterior, truncated)) / (
        logs.std(axis=0) / np.sqrt(len(v))
    )
    assert np.abs(z).max() < 4


# ---------------------------------------------------------------------------------------- Dirichlet


def test_dirichlet_marginal_by_enumeration_and_by_chain_rule():
    prior = Dirichlet([0.5, 1.0, 2.0])
    sequences = list(itertools.product(range(3), repeat=4))
    counts = np.array([np.bincount(s, minlength=3) for s in sequences])
    logs = prior.log_marginal(counts)
    assert logsumexp(logs) == pytest.approx(0, abs=1e-12)
    chain, now = 0.0, prior
    for x in sequences[17]:
        chain += now.log_predictive(x)
        now = now.posterior(np.eye(3)[x])
    assert logs[17] == pytest.approx(chain)


def test_dirichlet_draws_mean_and_expected_log():
    prior = Dirichlet([0.5, 1.0, 2.0])
    rng = np.random.default_rng(4)
    draws = np.array([prior.draw(rng) for _ in range(4_000)])
    for k, a in enumerate(prior.concentration):
        assert_law(draws[:, k], stats.beta(a, 3.5 - a).cdf)
    for values, expected in [(draws, prior.mean), (np.log(draws), prior.expected_log())]:
        z = (values.mean(axis=0) - expected) / (values.std(axis=0) / np.sqrt(len(draws)))
        assert np.abs(z).max() < 4


def test_frozen_means_frozen():
    concentration = np.ones(2)
    prior = Dirichlet(concentration)
    concentration[0] = 9.0
    np.testing.assert_array_equal(prior.concentration, [1.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        prior.concentration[0] = 2.0


@pytest.mark.parametrize("bad", [[], [0.0, 1.0], [-1.0], [np.nan], [[1.0]]])
def test_dirichlet_refuses(bad):
    with pytest.raises(ValueError, match="concentration"):
        Dirichlet(bad)


@pytest.mark.parametrize("prior", [DirichletProcess, StickBreaking])
@pytest.mark.parametrize("bad", [0, -1, np.inf, np.nan, None, "1"])
def test_processes_refuse(prior, bad):
    with pytest.raises(ValueError, match="concentration"):
        prior(bad)
