"""The chain kernels against all paths of small chains, and against logarithms in nasty ones.

Then what feeds them and what reads them: emissions against SciPy and the priors, votes against
NumPy.
"""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from regbayes.hmm.emissions import (
    CategoricalEmission,
    DiagonalEmission,
    GaussianEmission,
    PoissonEmission,
)
from regbayes.kernels import chain, votes
from regbayes.kernels.batch import draw_paths, most_likely_paths, smooth
from regbayes.margin import GibbsClassifier
from regbayes.priors import Dirichlet, NormalInverseGamma, NormalInverseWishart
from tests.helpers import assert_law, assert_pmf, random_covariance

INF = np.inf
SIZES = [
    pytest.param(20_000, id="fast"),
    pytest.param(100_000, marks=pytest.mark.slow, id="slow"),
]


def log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


def bounds(lengths):
    return np.concatenate([[0], np.cumsum(lengths)])


def all_paths(start, transitions, log_likelihoods):
    """Every path, and the logarithm of its probability jointly with the observations."""
    n_steps, n_states = log_likelihoods.shape
    paths = np.array(list(product(range(n_states), repeat=n_steps)))
    log_p = log(start)[paths[:, 0]] + log_likelihoods[np.arange(n_steps), paths].sum(axis=1)
    return paths, log_p + log(transitions)[paths[:, :-1], paths[:, 1:]].sum(axis=1)


def shares(log_p):
    return np.exp(log_p - log_p.max()) / np.exp(log_p - log_p.max()).sum()


def in_logarithms(start, transitions, log_likelihoods):
    """Smoothed and causal marginals, log p(x) and expected transitions of a possible sequence."""
    forward, backward = log_likelihoods.copy(), np.zeros_like(log_likelihoods)
    log_a, steps, log_p = log(transitions), range(1, len(log_likelihoods)), 0.0
    forward[0] += log(start)
    # Levels are taken out at every step: sums of thousands would lose the digits of differences.
    for t in steps:
        log_p += (level := forward[t - 1].max())
        forward[t - 1] -= level
        forward[t] += np.logaddexp.reduce(forward[t - 1][:, None] + log_a, axis=0)
    for t in reversed(steps):
        ahead = log_likelihoods[t] + backward[t]
        backward[t - 1] = np.logaddexp.reduce(log_a + ahead, axis=1)
        backward[t - 1] -= (forward[t - 1] + backward[t - 1]).max()
    log_p += np.logaddexp.reduce(forward[-1])
    moves = [
        shares(forward[t - 1][:, None] + log_a + log_likelihoods[t] + backward[t]) for t in steps
    ]
    marginals = np.array([shares(f + b) for f, b in zip(forward, backward)])
    causal = np.array([shares(f) for f in forward])
    return marginals, causal, log_p, np.sum(moves, axis=0) if moves else 0.0


def assert_smooth(start, transitions, log_likelihoods, atol=1e-9):
    """`smooth` agrees with logarithms, whichever way it went."""
    ends = np.array([0, len(log_likelihoods)])
    case = start, transitions, log_likelihoods, ends
    marginals, causal, log_p, moves = in_logarithms(*case[:3])
    found = smooth(*case, moves=True)
    np.testing.assert_allclose(found[0], marginals, rtol=0, atol=atol)
    np.testing.assert_allclose(found[1], log_p, rtol=1e-13, atol=atol)
    np.testing.assert_allclose(found[2][0], moves, rtol=0, atol=atol * len(log_likelihoods))
    np.testing.assert_allclose(found[0].sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(smooth(*case, causal=True)[0], causal, rtol=0, atol=atol)


def is_scaled(start, transitions, log_likelihoods):
    """Whether the fast recursion thinks that it can be trusted."""
    likelihoods, filtered = np.empty((2, *log_likelihoods.shape))
    shifts, totals = np.empty((2, len(log_likelihoods)))
    chain.scale_likelihoods(log_likelihoods, likelihoods, shifts)
    return chain.filter_scaled(start, transitions[None], likelihoods, filtered, totals)


# ------------------------------------------------------------------------------- against all paths

CHAINS = {
    "one state": ([1.0], [[1.0]]),
    "two states": ([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]]),
    "dense": ([0.2, 0.5, 0.3], [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]),
    "left to right": ([1.0, 0.0, 0.0], [[0.5, 0.5, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]]),
    "swaps": ([0.4, 0.6, 0.0], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]),
    "dead end": ([0.5, 0.0, 0.5], [[0.5, 0.2, 0.3], [0.0, 0.0, 0.0], [0.3, 0.7, 0.0]]),
}
LENGTHS = [6, 1, 4, 2, 5, 3, 6, 1, 2, 4]


def make_case(name, loud=False):
    """Ten sequences, the last three of them impossible.

    A loud state is one that explains everything by far the best and that no path can enter: it
    drives the fast recursion to give up, and must change nothing else.
    """
    start, transitions = map(np.array, CHAINS[name])
    rng = np.random.default_rng(5)
    starts = bounds(LENGTHS)
    log_likelihoods = rng.normal(0, 3, (starts[-1], 3))[:, : len(start)].copy()
    if len(start) > 1:
        log_likelihoods[starts[0] + 1, 0] = log_likelihoods[starts[5] + 2, 1] = -INF
        log_likelihoods[starts[4] + 3, 2:] = -INF
    log_likelihoods[starts[7]] = log_likelihoods[starts[8] + 1] = -INF
    log_likelihoods[starts[9] + 2] = -INF
    if loud:
        start = np.append(start, 0.0)
        transitions = np.pad(transitions, ((0, 1), (0, 1)))
        transitions[-1] = 1.0 / len(start)
        log_likelihoods = np.pad(log_likelihoods, ((0, 0), (0, 1)), constant_values=700.0)
    return start, transitions, log_likelihoods, starts


def enumerated(case):
    start, transitions, log_likelihoods, starts = case
    return [all_paths(start, transitions, log_likelihoods[a:b]) for a, b in pairwise(starts)]


cases = pytest.mark.parametrize("loud", [False, True], ids=["", "loud"])
chains = pytest.mark.parametrize("name", CHAINS)


@chains
@cases
def test_smoothing_sums_over_all_paths(name, loud):
    case = make_case(name, loud)
    n_states = len(case[0])
    marginals, log_p, moves = smooth(*case, moves=True)
    impossible = 0
    for s, (paths, log_each) in enumerate(enumerated(case)):
        found = marginals[case[3][s] : case[3][s + 1]]
        if log_each.max() == -INF:
            assert log_p[s] == -INF
            assert not found.any()
            assert not moves[s].any()
            impossible += 1
            continue
        assert is_scaled(*case[:2], case[2][case[3][s] : case[3][s + 1]]) != loud
        assert log_p[s] == pytest.approx(np.logaddexp.reduce(log_each), abs=1e-10)
        weights, one_hot = shares(log_each), np.eye(n_states)[paths]
        np.testing.assert_allclose(found, np.tensordot(weights, one_hot, 1), rtol=0, atol=1e-10)
        expected = np.einsum("p,pti,ptj->ij", weights, one_hot[:, :-1], one_hot[:, 1:])
        np.testing.assert_allclose(moves[s], expected, rtol=0, atol=1e-10)
    assert 3 <= impossible < len(LENGTHS)
    assert smooth(*case)[2].shape == (len(LENGTHS), 0, 0)


@chains
@cases
def test_causal_marginals_are_smoothed_ones_of_what_came_before(name, loud):
    start, transitions, log_likelihoods, starts = case = make_case(name, loud)
    marginals, log_p, _ = smooth(*case, causal=True)
    np.testing.assert_array_equal(log_p, smooth(*case)[1])
    for s in np.flatnonzero(log_p > -INF):
        for t in range(starts[s], starts[s + 1]):
            before = log_likelihoods[starts[s] : t + 1]
            smoothed, _, _ = smooth(start, transitions, before, np.array([0, len(before)]))
            np.testing.assert_allclose(marginals[t], smoothed[-1], rtol=0, atol=1e-10)
    assert not marginals[np.repeat(log_p == -INF, LENGTHS)].any()


@chains
@cases
def test_no_path_is_likelier_than_the_most_likely(name, loud):
    case = make_case(name, loud)
    found, log_p = most_likely_paths(*case)
    for s, (paths, log_each) in enumerate(enumerated(case)):
        path = found[case[3][s] : case[3][s + 1]]
        if log_each.max() == -INF:
            assert log_p[s] == -INF
            assert (path == -1).all()
        else:
            assert log_p[s] == pytest.approx(log_each.max(), abs=1e-10)
            own = log_each[(paths == path).all(axis=1)]
            assert own == pytest.approx(log_each.max(), abs=1e-10)


def codes_of(z, n_steps, n_states):
    """Paths as numbers, in the order of `all_paths`."""
    return z.reshape(-1, n_steps) @ n_states ** np.arange(n_steps)[::-1]


def copies(case, s, n):
    """Sequence s of a case, n times over."""
    start, transitions, log_likelihoods, starts = case
    one = log_likelihoods[starts[s] : starts[s + 1]]
    return start, transitions, np.tile(one, (n, 1)), len(one) * np.arange(n + 1)


@pytest.mark.parametrize("name", list(CHAINS)[1:])
@cases
def test_paths_follow_their_posterior(name, loud):
    case = make_case(name, loud)
    rng = np.random.default_rng(11)
    for s in (2, 4):
        many = copies(case, s, 100_000)
        z = draw_paths(*many, rng.random(many[3][-1]))
        law = shares(enumerated(case)[s][1])
        assert_pmf(codes_of(z, LENGTHS[s], len(case[0])), law)


@cases
def test_an_impossible_sequence_has_no_path(loud):
    case = make_case("dense", loud)
    z = draw_paths(*case, np.random.default_rng(0).random(case[3][-1]))
    np.testing.assert_array_equal(z < 0, np.repeat([False] * 7 + [True] * 3, LENGTHS))


def beam_sweep(many, z, width, rng):
    cuts, uniforms = np.empty(len(z)), rng.random((2, len(z)))
    least = chain.draw_slices(many[0], many[1], many[3], z, uniforms[0], width, cuts)
    assert least == cuts.min()
    start, transitions, log_likelihoods, starts = many
    return draw_paths(start, transitions, log_likelihoods.copy(), starts, uniforms[1], cuts, width)


@pytest.mark.parametrize("name", ["dense", "left to right", "dead end"])
@pytest.mark.parametrize("width", [1.0, 0.2, 0.01])
@pytest.mark.parametrize("n", SIZES)
def test_the_beam_has_the_posterior_as_its_stationary_law(name, width, n):
    """Chains that all start from the least likely path, side by side."""
    case, s = make_case(name), 2
    paths, log_each = enumerated(case)[s]
    law, many, rng = shares(log_each), copies(case, s, n), np.random.default_rng(12)
    worst = np.where(law > 0, law, INF).argmin()
    z = np.tile(paths[worst], n)
    for _ in range(25):
        z = beam_sweep(many, z, width, rng)
    assert_pmf(codes_of(z, LENGTHS[s], len(case[0])), law)


@pytest.mark.parametrize("width", [1.0, 0.01])
def test_one_sweep_of_the_beam_keeps_the_posterior(width):
    """Sharper than convergence: draws from the posterior, and the two paths before and after.

    A sweep is reversible: a path and its successor are exchangeable.
    """
    case, s, n = make_case("two states"), 2, 50_000
    law, many, rng = shares(enumerated(case)[s][1]), copies(case, s, n), np.random.default_rng(13)
    before = draw_paths(*many, rng.random(many[3][-1]))
    after = beam_sweep(many, before, width, rng)
    i, j = (codes_of(z, LENGTHS[s], 2) for z in (before, after))
    assert_pmf(j, law)
    flow = np.zeros((len(law), len(law)))
    np.add.at(flow, (i, j), 1)
    both = (flow + flow.T)[upper := np.triu_indices(len(law), 1)]
    gap = (flow - flow.T)[upper][both >= 20]
    statistic = (gap**2 / both[both >= 20]).sum()
    assert stats.chi2.sf(statistic, len(gap)) > 1e-4, "not reversible"


def test_slices_are_uniform_below_the_transition_and_the_width():
    start, transitions, _, _ = make_case("dense")
    n, width = 20_000, 0.25
    path, p = np.tile([0, 1, 2, 2], n), np.array([0.2, 0.3, 0.6, 0.1])
    uniforms, cuts = np.random.default_rng(0).random(4 * n), np.empty(4 * n)
    chain.draw_slices(start, transitions, 4 * np.arange(n + 1), path, uniforms, width, cuts)
    np.testing.assert_array_equal(cuts, uniforms * np.minimum(np.tile(p, n), width))


def test_transitions_are_counted():
    starts, path = np.array([0, 4, 5, 8]), np.array([0, 1, 1, 2, 1, 2, 0, 1])
    first, *counts = chain.count_transitions(starts, path, 3)
    np.testing.assert_array_equal(first, [1, 1, 1])
    np.testing.assert_array_equal(counts, [[0, 2, 0], [0, 1, 1], [1, 0, 0]])


@cases
def test_threads_change_no_bit(loud):
    rng = np.random.default_rng(3)
    start, transitions, _, _ = make_case("dense", loud)
    starts = bounds(rng.integers(1, 40, 60))
    log_likelihoods = rng.normal(0, 30, (starts[-1], len(start)))
    if loud:
        log_likelihoods[:, -1] = 1e3
    case = start, transitions, log_likelihoods, starts
    uniforms, cuts = rng.random((2, starts[-1]))
    cuts *= 0.05  # every state has two successors or more above it

    def results(n_threads):
        return [
            *smooth(*case, n_threads, moves=True),
            *smooth(*case, n_threads, causal=True),
            *most_likely_paths(*case, n_threads),
            draw_paths(*case, uniforms, n_threads=n_threads),
            draw_paths(*case[:2], case[2].copy(), starts, uniforms, cuts, 0.5, n_threads),
        ]

    expected = results(1)
    assert min(expected[-1].min(), expected[-2].min()) == 0
    for n_threads in (2, 3, 8):
        for one, other in zip(expected, results(n_threads)):
            np.testing.assert_array_equal(one, other)


def test_streaming_gives_the_causal_marginals():
    """Several chains side by side, a step at a time."""
    names = ["dense", "two states", "swaps"]
    several = [make_case(name) for name in names]
    starts = several[0][3]
    ends = bounds([len(case[0]) for case in several])
    start = np.concatenate([case[0] for case in several])
    matrices = np.concatenate([case[1].ravel() for case in several])
    log_likelihoods = np.concatenate([case[2] for case in several], axis=1)
    expected = np.concatenate([smooth(*case, causal=True)[0] for case in several], axis=1)
    for low, high in pairwise(starts):
        carried, filtered = np.full((2, len(start)), np.nan)
        for t in range(low, high):
            chain.advance(t == low, start, matrices, ends, log_likelihoods[t], carried, filtered)
            for a, b in pairwise(ends):
                if expected[t, a:b].any():  # all zero if the sequence is impossible
                    np.testing.assert_allclose(filtered[a:b], expected[t, a:b], rtol=0, atol=1e-12)


def test_streaming_survives_underflow():
    start, transitions, log_likelihoods = NASTY["comes back"]
    carried, filtered, ends = np.empty(3), np.empty(3), np.array([0, 3])
    for t, row in enumerate(log_likelihoods):
        chain.advance(t == 0, start, transitions.ravel(), ends, row, carried, filtered)
    expected = in_logarithms(start, transitions, log_likelihoods)[1][-1]
    np.testing.assert_allclose(filtered, expected, rtol=0, atol=1e-9)


def test_streaming_forgets_an_impossible_step():
    start, transitions, *_ = make_case("dense")
    carried, filtered, ends = np.empty(3), np.empty(3), np.array([0, 3])
    chain.advance(True, start, transitions.ravel(), ends, np.zeros(3), carried, filtered)
    chain.advance(False, start, transitions.ravel(), ends, np.full(3, -INF), carried, filtered)
    np.testing.assert_allclose(filtered, start @ transitions, rtol=1e-14)


# --------------------------------------------------------------------------------------- underflow


def test_exponentials_are_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = -np.concatenate([rng.uniform(0, 707, 200_000), 10.0 ** rng.uniform(-20, 2, 200_000)])
    x = np.concatenate([[0.0, -707.9, -708.0, -1000.0, -1e300, -INF], x])[None]
    found, shifts = np.empty_like(x), np.empty(1)
    for offset in (0.0, -1e4):  # the largest becomes one, whatever it was
        chain.scale_likelihoods(x + offset, found, shifts)
        assert shifts[0] == offset
        expected = np.exp((x + offset) - offset)
        expected[x <= -708] = 0.0
        assert (np.abs(found - expected) <= 2 * np.spacing(expected)).all()


def test_nothing_possible_scales_to_zeros():
    found, shifts = np.empty((1, 3)), np.empty(1)
    chain.scale_likelihoods(np.full((1, 3), -INF), found, shifts)
    assert not found.any()
    assert shifts[0] == 0.0


def sticky(n, p):
    return np.full((n, n), p / (n - 1)) + (1 - p - p / (n - 1)) * np.eye(n)


def left_to_right(n, p):
    transitions = np.diag(np.full(n, 1 - p)) + np.diag(np.full(n - 1, p), 1)
    transitions[-1, -1] = 1.0
    return transitions


def favours(n_states, times):
    """Log-likelihoods of rows (state, by how much, how many steps)."""
    rows = [np.eye(n_states)[[state] * n] * gain for state, gain, n in times]
    return np.concatenate(rows)


def nasty_chains():
    rng = np.random.default_rng(0)
    first = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    even = np.full(3, 1 / 3)
    alternating = favours(3, [(0, 2000.0, 1), (2, 2000.0, 1)] * 20)
    noise = rng.normal(0, 1, (3000, 5))
    rare = np.array([[1.0, 1e-200, 0.0], [0.0, 1.0, 1e-200], [0.0, 0.0, 1.0]])
    return {
        "alternating": (even, sticky(3, 0.1), alternating),
        "alternating, rare moves": (even, sticky(3, 1e-200), alternating),
        "alternating, fixed": (even, np.eye(3), alternating[1:]),
        "alternating, swaps": (even, np.eye(3)[[2, 1, 0]], alternating),
        "long": (first, left_to_right(5, 1e-3), noise),
        "long, loud noise": (first, left_to_right(5, 1e-3), 30 * noise),
        "long, rare moves": (first, left_to_right(5, 1e-200), noise),
        "long, wild": (first, left_to_right(5, 0.5), 1e3 * noise),
        # The right state is lost in a few steps, or in a thousand; plain scaling never sees it
        # again and says nothing.
        "comes back": (even, np.eye(3), favours(3, [(0, 100.0, 10), (1, 100.0, 11)])),
        "comes back slowly": (even, np.eye(3), favours(3, [(0, 1.0, 1000), (1, 1.0, 1010)])),
        "comes back to a tie": (even, np.eye(3), favours(3, [(0, 1.0, 800), (1, 1.0, 800)])),
        "comes back at once": (even, np.eye(3), favours(3, [(0, 800.0, 1), (1, 801.0, 1)])),
        "comes back in waves": (even, np.eye(3), favours(3, [(0, 90.0, 9), (1, 90.0, 9)] * 9)),
        "rare moves, there and back": (
            even,
            left_to_right(3, 1e-100),
            favours(3, [(0, 100.0, 5), (2, 100.0, 20), (0, 50.0, 4)]),
        ),
        # The product of two rare moves is zero in floating point.
        "too rare to see": (
            np.eye(3)[0],
            rare,
            favours(3, [(0, 0.0, 3), (2, 460.0, 6)]),
        ),
        # The middle state sinks to where floating point has a few bits left, then wins.
        "few bits left": (
            np.array([1.0, 1e-200, 0.0]),
            np.eye(3),
            np.log([[1e-40, 1.4e-123, 1.0], [1e-150, 1.0, 1.0], [1e-150, 1.0, 1.0]]),
        ),
    }


NASTY = nasty_chains()
LOST = [name for name in NASTY if name.startswith("comes back")]


@pytest.mark.parametrize("name", NASTY)
def test_smoothing_survives_underflow(name):
    assert_smooth(*NASTY[name])


@pytest.mark.parametrize("name", [*LOST, "too rare to see", "few bits left"])
def test_the_fast_recursion_says_that_a_state_was_lost(name):
    assert not is_scaled(*NASTY[name])


@chains
def test_the_fast_recursion_serves_ordinary_chains(name):
    start, transitions, _, _ = make_case(name)
    log_likelihoods = np.random.default_rng(0).normal(0, 3, (500, len(start)))
    if name != "dead end":
        assert is_scaled(start, transitions, log_likelihoods)
        assert_smooth(start, transitions, log_likelihoods)


@pytest.mark.parametrize("name", NASTY)
def test_paths_survive_underflow(name):
    """Where a single path has nearly all the probability, it is drawn and found."""
    start, transitions, log_likelihoods = NASTY[name]
    ends, rng = np.array([0, len(log_likelihoods)]), np.random.default_rng(0)
    marginals = in_logarithms(start, transitions, log_likelihoods)[0]
    sure = marginals.max(axis=1) > 1 - 1e-9
    z = draw_paths(start, transitions, log_likelihoods, ends, rng.random(len(marginals)))
    np.testing.assert_array_equal(z[sure], marginals.argmax(axis=1)[sure])
    best, log_p = most_likely_paths(start, transitions, log_likelihoods, ends)
    taken = np.append(start[best[0]], transitions[best[:-1], best[1:]])
    own = log_likelihoods[np.arange(len(best)), best]
    assert log_p[0] == pytest.approx((log(taken) + own).sum(), rel=1e-12)
    if sure.all():
        np.testing.assert_array_equal(best, z)


def random_chain(seed, n_states, n_steps, log_scale, rarity, zeros):
    """Wild in every way at once, and possible: one path is kept free of zeros."""
    rng = np.random.default_rng(seed)
    path = rng.integers(n_states, size=n_steps)
    start = np.exp(-rarity * rng.random(n_states))
    transitions = np.exp(-rarity * rng.random((n_states, n_states)))
    log_likelihoods = 10.0**log_scale * rng.standard_normal((n_steps, n_states))
    gone = [rng.random(a.shape) < zeros for a in (start, transitions, log_likelihoods)]
    gone[0][path[0]] = gone[1][path[:-1], path[1:]] = gone[2][np.arange(n_steps), path] = False
    start[gone[0]] = transitions[gone[1]] = 0.0
    log_likelihoods[gone[2]] = -INF
    transitions /= np.maximum(transitions.sum(axis=1, keepdims=True), 1e-300)
    return start / start.sum(), transitions, log_likelihoods


wild = given(
    seed=st.integers(0, 2**32 - 1),
    n_states=st.integers(1, 6),
    n_steps=st.integers(1, 40),
    log_scale=st.floats(-1, 4),
    rarity=st.sampled_from([0.0, 3.0, 200.0, 600.0]),
    zeros=st.sampled_from([0.0, 0.3, 0.7]),
)


@wild
@settings(max_examples=400, deadline=None, derandomize=True)
def test_smoothing_is_right_for_any_chain(**shape):
    assert_smooth(*random_chain(**shape))


# --------------------------------------------------------------------------------------- emissions

D, K = 3, 4


def gaussian_parameters(rng, n_states=K):
    factors = np.linalg.cholesky([random_covariance(rng, D) for _ in range(n_states)])
    return rng.standard_normal((n_states, D)), factors


def some_points(rng, n=150):
    X = 3 * rng.standard_normal((n, D))
    X[[4, 7]] = np.nan
    return X


def likelihood_cases():
    rng = np.random.default_rng(4)
    X, (means, factors) = some_points(rng), gaussian_parameters(rng)
    deviations, rates = rng.uniform(0.1, 2, (2, K, D))
    counts = np.where(np.isnan(X), X, rng.poisson(2.0, X.shape))
    log_probabilities = np.log(rng.dirichlet(np.ones(5), K))
    codes = rng.integers(-1, 5, len(X))
    return {
        "full": (
            GaussianEmission(None),
            X,
            (means, factors),
            lambda x, k: stats.multivariate_normal.logpdf(x, means[k], factors[k] @ factors[k].T),
        ),
        "diagonal": (
            DiagonalEmission(None),
            X,
            (means, deviations),
            lambda x, k: stats.norm.logpdf(x, means[k], deviations[k]).sum(),
        ),
        "poisson": (
            PoissonEmission(None, None),
            counts,
            (rates,),
            lambda x, k: stats.poisson.logpmf(x, rates[k]).sum(),
        ),
        "categorical": (
            CategoricalEmission(5, 1.0),
            codes,
            (log_probabilities,),
            lambda x, k: log_probabilities[k, x],
        ),
    }


LIKELIHOODS = likelihood_cases()


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_likelihoods_are_scipys(kind):
    emission, X, parameters, law = LIKELIHOODS[kind]
    unseen = X < 0 if X.ndim == 1 else np.isnan(X[:, 0])
    assert 0 < unseen.sum() < len(X)
    expected = [[0.0 if no else law(x, k) for k in range(K)] for x, no in zip(X, unseen)]
    np.testing.assert_allclose(emission.log_likelihoods(X, parameters), expected, rtol=1e-10)


N_COPIES = 8_000


def shared_data(X):
    """The same data for the first N_COPIES states, and none for as many others."""
    z = np.repeat(np.arange(N_COPIES), len(X))
    return np.tile(X, (N_COPIES, *[1] * (X.ndim - 1))), z, 2 * N_COPIES


def draw_from(emission, rng, X, z, n_states):
    """In two halves, as of sequences in two places."""
    at = len(X) // 3
    seen = [emission.observe(X[part], z[part], n_states) for part in (slice(at), slice(at, None))]
    return emission.draw(rng, emission.merge(*seen))


def halves(array):
    return array[:N_COPIES], array[N_COPIES:]


def test_full_gaussians_follow_their_posterior():
    """Every projection is known: Student-t, and inverse gamma; given Sigma the mean is normal."""
    rng = np.random.default_rng(6)
    prior = NormalInverseWishart(rng.standard_normal(D), 0.6, D + 1.5, random_covariance(rng, D))
    X = some_points(rng, 9)
    means, factors = draw_from(GaussianEmission(prior), rng, *shared_data(X))
    assert not np.triu(factors, 1).any()
    laws = prior.posterior(X[~np.isnan(X[:, 0])]), prior
    for law, mu, root in zip(laws, halves(means), halves(factors)):
        df = law.df - D + 1
        white = np.linalg.solve(root, (mu - law.mean)[..., None])[..., 0] * np.sqrt(law.strength)
        for direction in [*np.eye(D), *rng.standard_normal((3, D))]:
            scale = direction @ law.scale @ direction
            spread = np.square(np.einsum("kij,i->kj", root, direction)).sum(axis=1)
            assert_law(spread, stats.invgamma(df / 2, scale=scale / 2).cdf)
            width = np.sqrt(scale / (law.strength * df))
            assert_law(mu @ direction, stats.t(df, direction @ law.mean, width).cdf)
            assert_law(white @ direction / np.linalg.norm(direction), stats.norm.cdf)


def test_diagonal_gaussians_follow_their_posterior():
    rng = np.random.default_rng(7)
    prior = NormalInverseGamma(rng.standard_normal(D), 0.6, 2.5, rng.uniform(0.5, 2, D))
    X = some_points(rng, 9)
    means, deviations = draw_from(DiagonalEmission(prior), rng, *shared_data(X))
    laws = prior.posterior(X[~np.isnan(X[:, 0])]), prior
    for law, mu, sd in zip(laws, halves(means), halves(deviations)):
        for i in range(D):
            assert_law(sd[:, i] ** 2, stats.invgamma(law.df / 2, scale=law.scale[i] / 2).cdf)
            width = np.sqrt(law.scale[i] / (law.strength * law.df))
            assert_law(mu[:, i], stats.t(law.df, law.mean[i], width).cdf)
            white = (mu[:, i] - law.mean[i]) / sd[:, i] * np.sqrt(law.strength)
            assert_law(white, stats.norm.cdf)


def test_poisson_rates_follow_their_posterior():
    rng = np.random.default_rng(8)
    shape, rate = np.array([0.5, 2.0, 7.0]), np.array([0.3, 1.0, 4.0])
    X = np.where(np.isnan(some_points(rng, 9)), np.nan, rng.poisson(2.0, (9, D)))
    (rates,) = draw_from(PoissonEmission(shape, rate), rng, *shared_data(X))
    total, n = np.nansum(X, axis=0), 7
    for i in range(D):
        after, before = halves(rates[:, i])
        assert_law(after, stats.gamma(shape[i] + total[i], scale=1 / (rate[i] + n)).cdf)
        assert_law(before, stats.gamma(shape[i], scale=1 / rate[i]).cdf)


def test_symbol_probabilities_follow_their_posterior():
    rng = np.random.default_rng(9)
    prior, codes = Dirichlet([0.7] * 3), np.array([0, 2, 2, -1, 2, 1, -1, 2])
    (log_probabilities,) = draw_from(CategoricalEmission(3, 0.7), rng, *shared_data(codes))
    np.testing.assert_allclose(np.exp(log_probabilities).sum(axis=1), 1.0)
    laws = prior.posterior(np.bincount(codes[codes >= 0])), prior
    for law, log_p in zip(laws, halves(log_probabilities)):
        for i, a in enumerate(law.concentration):
            assert_law(np.exp(log_p[:, i]), stats.beta(a, law.concentration.sum() - a).cdf)


def test_samples_follow_the_emission():
    rng, n = np.random.default_rng(10), 20_000
    means, factors = gaussian_parameters(rng)
    deviations, rates = rng.uniform(0.5, 2, (2, K, D))
    z = np.full(n, 2)
    full = GaussianEmission(None).sample(rng, (means, factors), z)
    white = np.linalg.solve(factors[2], (full - means[2]).T)
    for row in [*white, (white[0] + white[1]) / np.sqrt(2)]:
        assert_law(row, stats.norm.cdf)
    diagonal = DiagonalEmission(None).sample(rng, (means, deviations), z)
    assert_law(((diagonal - means[2]) / deviations[2])[:, 1], stats.norm.cdf)
    counts = PoissonEmission(None, None).sample(rng, (rates,), z)[:, 0].astype(int)
    assert_pmf(counts, np.exp(np.arange(30) * np.log(rates[2, 0]) - gammaln(np.arange(1, 31))))
    p = rng.dirichlet(np.ones(5), K)
    assert_pmf(CategoricalEmission(5, 1.0).sample(rng, (np.log(p),), z), p[2])


# ------------------------------------------------------------------------------------------- votes

TERM = GibbsClassifier(5, 3, C=0.7, cost=1.3).init()


def vote_case(n_steps=3000, n_states=40):
    """More scores than are held at a time."""
    rng = np.random.default_rng(2)
    inputs, weights = rng.standard_normal((n_steps, 3)), rng.standard_normal((n_states, 5, 3))
    assert n_steps * n_states * 5 > votes._CHUNK
    return rng, inputs, weights, np.einsum("klm,tm->tkl", weights, inputs)


def naive_log_margins(scores):
    """log phi of all labels: (..., L) -> (..., L)."""
    rivals = [np.delete(scores, y, axis=-1).max(axis=-1) for y in range(scores.shape[-1])]
    return -2 * 0.7 * np.maximum(0, 1.3 + np.stack(rivals, axis=-1) - scores)


def test_margins_are_added():
    rng, inputs, weights, scores = vote_case()
    y = rng.integers(-1, 5, len(inputs))
    before = rng.standard_normal(scores.shape[:2])
    out = before.copy()
    votes.add_log_margins(inputs, y, weights, TERM, out)
    added = np.take_along_axis(naive_log_margins(scores), y[:, None, None] % 5, axis=2)[:, :, 0]
    added[y < 0] = 0.0
    np.testing.assert_allclose(out, before + added, rtol=1e-12, atol=1e-12)


def test_free_labels_are_summed_out():
    rng, inputs, weights, scores = vote_case()
    weights[3] = 0.0  # all labels tie
    weights[4, :2] = weights[4, 2]  # some do
    scores = np.einsum("klm,tm->tkl", weights, inputs)
    before = rng.standard_normal(scores.shape[:2])
    out = before.copy()
    votes.add_log_free_labels(inputs, weights, TERM, out)
    added = np.logaddexp.reduce(naive_log_margins(scores), axis=2)
    np.testing.assert_allclose(out, before + added, rtol=1e-12, atol=1e-12)


def test_states_vote_for_their_answers():
    rng, inputs, weights, scores = vote_case()
    marginals = rng.dirichlet(np.ones(scores.shape[1]), len(inputs))
    answers = scores.argmax(axis=2)
    total = np.ones((len(inputs), 5))
    votes.add_votes(inputs, weights, marginals, total)
    expected = 1 + np.einsum("tk,tkl->tl", marginals, np.eye(5)[answers])
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    path = rng.integers(scores.shape[1], size=len(inputs))
    own = answers[np.arange(len(path)), path]
    np.testing.assert_array_equal(votes.answers(inputs, weights, path), own)
    np.testing.assert_array_equal(votes.each_answer(inputs[:1], weights), answers[0])
