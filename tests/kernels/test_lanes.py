"""Sequences side by side against the same sequences one at a time, and against logarithms."""

from itertools import pairwise, product

import numpy as np
import pytest

from regbayes.kernels.batch import expect, smooth
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


@pytest.mark.parametrize("n_states", [1, 3, 10, 16])
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


def lengths_in_groups(starts, transitions):
    members, edges = group(starts, transitions)
    return [np.diff(starts)[members[low:high]] for low, high in pairwise(edges)]


@pytest.mark.parametrize("segments", [1, 3, 7])
@pytest.mark.parametrize("tilted", [False, True])
@pytest.mark.parametrize("longest", [4, 90])
def test_unequal_lengths_side_by_side(segments, tilted, longest):
    """Lengths of one step, fewer steps than segments, and hardly two sequences of one length."""
    rng = np.random.default_rng(longest)
    *chain, tilts = a_batch(rng, rng.integers(1, longest + 1, size=70), 4, segments)
    groups = lengths_in_groups(chain[-1], chain[1])
    assert max(len(np.unique(lengths)) for lengths in groups) > 1
    options = {"segments": segments, "entropies": True}
    if tilted:
        options["tilts"] = tilts
    assert_same(expect(*chain, **options), one_at_a_time(*chain, **options))


def test_one_long_sequence_among_short_ones():
    rng = np.random.default_rng(8)
    *chain, tilts = a_batch(rng, [1] * 5 + [2] * 5 + [300] * 6, 2, 3)
    assert len(lengths_in_groups(chain[-1], chain[1])) == 1
    options = {"segments": 3, "entropies": True, "tilts": tilts}
    assert_same(expect(*chain, **options), one_at_a_time(*chain, **options))


@pytest.mark.parametrize("segments", [1, 4])
def test_neighbours_change_no_bit(segments):
    """Nor does a sequence's lane, or how long the others in its group are."""
    rng = np.random.default_rng(4)
    start, transitions, evidence, _, tilts = a_batch(rng, [17], 4, segments)
    options = {"segments": segments, "entropies": True}
    found = []
    for lengths in ([17] * 11, [17, 16, 14, 17] * 3, [17, 18, 25, 20] * 3, [17, *range(3, 18)]):
        _, _, others, bounds_of_all, other_tilts = a_batch(rng, lengths, 4, segments)
        others[:17] = evidence
        for own, other in zip(tilts, other_tilts, strict=True):
            other[0] = own[0]
        assert len(lengths_in_groups(bounds_of_all, transitions)) == 1
        results = expect(start, transitions, others, bounds_of_all, tilts=other_tilts, **options)
        found.append([results[0][:17], *(part[0] for part in results[1:])])
    for others in found[1:]:
        for got, wanted in zip(others, found[0], strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_smoothing_and_filtering_of_unequal_lengths(causal):
    rng = np.random.default_rng(5)
    start, transitions, evidence, starts, _ = a_batch(rng, rng.integers(1, 30, size=40), 3)
    found = smooth(start, transitions, evidence, starts, causal=causal, moves=not causal)
    for s, (low, high) in enumerate(pairwise(starts)):
        smoothed, filtered, log_p, counted = in_logarithms(start, transitions, evidence[low:high])
        np.testing.assert_allclose(found[0][low:high], filtered if causal else smoothed, atol=1e-9)
        np.testing.assert_allclose(found[1][s], log_p, rtol=1e-10)
        if not causal:
            np.testing.assert_allclose(found[2][s], counted, atol=1e-9)


@pytest.mark.parametrize("lengths", [[5] * 20, [*range(1, 20)]])
def test_steps_that_share_their_likelihoods(lengths):
    rng = np.random.default_rng(1)
    start, transitions, _, starts, _ = a_batch(rng, lengths, 3)
    table, rows = rng.normal(size=(4, 3)), rng.integers(-1, 3, size=starts[-1])
    found = expect(start, transitions, table, starts, rows=rows)
    assert_same(found, expect(start, transitions, table[rows], starts))


@pytest.mark.parametrize("nasty", ["zero transitions", "faint", "one impossible", "steep tilt"])
@pytest.mark.parametrize("lengths", [[6] * 20, [6, 5, 7, 6] + [4, 8, 6, 7] * 4])
def test_lanes_that_are_not_safe_go_alone(nasty, lengths):
    rng = np.random.default_rng(2)
    start, transitions, evidence, starts, tilts = a_batch(rng, lengths, 3)
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
        assert not marginals[starts[3] : starts[4]].any()
        assert not moves[3].any()
    for s in range(20) if not options else ():
        steps = slice(starts[s], starts[s + 1])
        if log_likelihoods[s] > -np.inf:
            smoothed, _, log_p, counted = in_logarithms(start, transitions, evidence[steps])
            np.testing.assert_allclose(marginals[steps], smoothed, atol=1e-9)
            np.testing.assert_allclose(moves[s, 0], counted, atol=1e-9)
            np.testing.assert_allclose(log_likelihoods[s], log_p, rtol=1e-10)


@pytest.mark.parametrize("longest", [5, 200])
@pytest.mark.parametrize("segments", [1, 3])
def test_groups_do_not_depend_on_threads(longest, segments):
    rng = np.random.default_rng(3)
    *chain, tilts = a_batch(rng, rng.integers(1, longest + 1, size=90), 4, segments)
    options = {"segments": segments, "tilts": tilts, "entropies": True}
    alone = expect(*chain, 1, **options)
    for n_threads in (2, 5):
        for got, wanted in zip(expect(*chain, n_threads, **options), alone, strict=True):
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
    np.testing.assert_array_equal(edges, [0, 16])  # three steps, where apart they were five


@pytest.mark.parametrize("n_states", [2, 12])
def test_no_other_groups_cost_less(n_states):
    """Against every way to cut lengths in order, a step of all lanes being that of several."""
    rng = np.random.default_rng(6)
    transitions = np.full((n_states, n_states), 1.0 / n_states)

    def cost(lengths):
        return lengths[0] if len(lengths) == 1 else max(4, n_states // 2) * lengths[-1]

    for _ in range(10):
        lengths = np.sort(rng.integers(1, 12, size=10))
        found = sum(map(cost, lengths_in_groups(bounds(lengths), transitions)))
        least = min(
            sum(map(cost, np.split(lengths, np.flatnonzero(cuts) + 1)))
            for cuts in product([0, 1], repeat=9)
        )
        assert found == least


def test_padding_is_little_where_lengths_are_many():
    lengths = np.random.default_rng(7).integers(20, 400, size=500)
    groups = lengths_in_groups(bounds(lengths), np.full((4, 4), 0.25))
    assert sum(LANES * one[-1] for one in groups if len(one) > 1) < 1.1 * lengths.sum()
