"""Sequences side by side against the same sequences one at a time, and against logarithms."""

import numpy as np
import pytest

from regbayes.kernels.batch import expect
from regbayes.kernels.lanes import LANES, group
from tests.kernels.test_chain import bounds, in_logarithms


def a_batch(rng, lengths, n_states, segments=1):
    n, starts = len(lengths), bounds(lengths)
    start, transitions = (
        rng.dirichlet(np.ones(n_states), 2)[0],
        rng.dirichlet(np.ones(n_states), n_states),
    )
    evidence = 2.0 * rng.normal(size=(starts[-1], n_states))
    tilts = rng.normal(size=(n, n_states)), rng.normal(size=(n, segments, n_states, n_states))
    return start, transitions, evidence, starts, tilts


def one_at_a_time(start, transitions, evidence, starts, tilts=None, **options):
    found = []
    for s in range(len(starts) - 1):
        own = None if tilts is None else (tilts[0][s : s + 1], tilts[1][s : s + 1])
        steps = slice(starts[s], starts[s + 1])
        bounds_of_one = np.array([0, starts[s + 1] - starts[s]])
        found.append(
            expect(start, transitions, evidence[steps], bounds_of_one, tilts=own, **options)
        )
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def assert_same(found, expected):
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_states", [1, 3, 10, 12])
@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("tilted", [False, True])
@pytest.mark.parametrize("entropies", [False, True])
def test_side_by_side_is_one_at_a_time(n_states, segments, tilted, entropies):
    lengths = [7] * (LANES + 13) + [1] * 14 + [4] + [20] * 13 + [9, 9]
    rng = np.random.default_rng(n_states)
    *chain, tilts = a_batch(rng, rng.permutation(lengths), n_states, segments)
    options = {"segments": segments, "entropies": entropies}
    if tilted:
        options["tilts"] = tilts
    assert np.diff(group(chain[-1], chain[1])[1]).max() == LANES
    assert_same(expect(*chain, **options), one_at_a_time(*chain, **options))


def test_steps_that_share_their_likelihoods():
    rng = np.random.default_rng(1)
    start, transitions, _, starts, _ = a_batch(rng, [5] * 20, 3)
    table, rows = rng.normal(size=(4, 3)), rng.integers(-1, 3, size=100)
    found = expect(start, transitions, table, starts, rows=rows)
    assert_same(found, expect(start, transitions, table[rows], starts))


@pytest.mark.parametrize("nasty", ["zero transitions", "faint", "one impossible", "steep tilt"])
def test_lanes_that_are_not_safe_go_alone(nasty):
    rng = np.random.default_rng(2)
    start, transitions, evidence, starts, tilts = a_batch(rng, [6] * 20, 3)
    options = {}
    if nasty == "zero transitions":
        transitions = np.triu(transitions)
        transitions /= transitions.sum(axis=1, keepdims=True)
        assert np.diff(group(starts, transitions)[1]).max() == 1
    elif nasty == "faint":  # of some sequences only
        evidence[::18] *= 900.0
    elif nasty == "one impossible":
        evidence[starts[3] + 2] = -np.inf
    else:
        tilts[1][4:7] *= 500.0
        options = {"tilts": tilts}
    found = expect(start, transitions, evidence, starts, **options)
    assert_same(found, one_at_a_time(start, transitions, evidence, starts, **options))
    marginals, log_likelihoods, moves, _ = found
    if nasty == "one impossible":
        assert log_likelihoods[3] == -np.inf
        assert not marginals[18:24].any()
        assert not moves[3].any()
    for s in range(20) if not options else ():
        steps = slice(starts[s], starts[s + 1])
        if log_likelihoods[s] > -np.inf:
            smoothed, _, log_p, counted = in_logarithms(start, transitions, evidence[steps])
            np.testing.assert_allclose(marginals[steps], smoothed, atol=1e-9)
            np.testing.assert_allclose(moves[s, 0], counted, atol=1e-9)
            np.testing.assert_allclose(log_likelihoods[s], log_p, rtol=1e-10)


def test_groups_do_not_depend_on_threads():
    rng = np.random.default_rng(3)
    *chain, tilts = a_batch(rng, rng.integers(1, 6, size=90), 4)
    alone = expect(*chain, 1, tilts=tilts, entropies=True)
    for n_threads in (2, 5):
        for got, wanted in zip(
            expect(*chain, n_threads, tilts=tilts, entropies=True), alone, strict=True
        ):
            np.testing.assert_array_equal(got, wanted)


def test_what_goes_side_by_side():
    def evenly(n_states):
        return np.full((n_states, n_states), 1.0 / n_states)

    _, edges = group(bounds([5] * 40), evenly(4))
    np.testing.assert_array_equal(edges, [0, 16, 32, 40])
    for lengths, transitions in (
        ([5] * 3, evenly(2)),
        ([5] * 40, evenly(30)),
        ([9999] * 20, evenly(4)),
        ([5] * 40, np.eye(4)),
    ):
        _, edges = group(bounds(lengths), transitions)
        assert np.diff(edges).max() == 1
    members, edges = group(bounds([2, 3] * 8), evenly(4))
    assert sorted(members) == list(range(16))
    np.testing.assert_array_equal(edges, [0, 8, 16])
