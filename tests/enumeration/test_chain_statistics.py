"""The statistics of finite HMMs, tilted or not, against sums over all paths of tiny chains.

Everything about a path is counted here step by step; probabilities are added in extended precision.
"""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regbayes.data import Sequences
from regbayes.hmm.emissions import CategoricalEmission, DiagonalEmission, GaussianEmission
from regbayes.hmm.finite import ChainLaw, cells_of
from regbayes.kernels import batch, chain
from regbayes.priors import NormalInverseGamma, NormalInverseWishart
from tests.helpers import random_covariance

KINDS = ["symbols", "diagonal", "full"]
TOPOLOGIES = ["dense", "left to right", "sparse"]
D, N_SYMBOLS = 2, 3


# ------------------------------------------------------------------------------- models and oracle


def random_chain(rng, K, topology):
    start, transitions = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K)
    if topology == "left to right":
        start, transitions = np.eye(K)[0], np.triu(transitions)
    if topology == "sparse":
        transitions = transitions * (rng.random((K, K)) < 0.5)
        start = start * (rng.random(K) < 0.6)
        start[rng.integers(K)] += 1.0
        transitions[np.arange(K), rng.permutation(K)] += 1.0
    return start / start.sum(), transitions / transitions.sum(axis=1, keepdims=True)


def log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


def random_emission(rng, kind, K, topology):
    """An emission, its parameters, and log p(x | state k) by SciPy."""
    means = rng.standard_normal((K, D))
    if kind == "symbols":
        p = rng.dirichlet(np.ones(N_SYMBOLS), K)
        if topology == "sparse":  # symbols that a state cannot say, and so impossible sequences
            p[rng.random(p.shape) < 0.3] = 0.0
            p[:, 0] += 0.1
        p /= p.sum(axis=1, keepdims=True)
        return CategoricalEmission(N_SYMBOLS, 0.3), (log(p),), lambda x, k: log(p[k, x])
    if kind == "diagonal":
        deviations = rng.uniform(0.5, 2, (K, D))
        emission = DiagonalEmission(NormalInverseGamma(np.zeros(D), 0.1, 3.0, np.ones(D)))
        law = stats.norm.logpdf
        return emission, (means, deviations), lambda x, k: law(x, means[k], deviations[k]).sum()
    covariances = np.array([random_covariance(rng, D) + 0.1 * np.eye(D) for _ in range(K)])
    emission = GaussianEmission(NormalInverseWishart(np.zeros(D), 0.1, D + 2.0, np.eye(D)))
    law = stats.multivariate_normal.logpdf
    factors = np.linalg.cholesky(covariances)
    return emission, (means, factors), lambda x, k: law(x, means[k], covariances[k])


def random_case(seed, kind, K, topology, lengths, gaps, spread=1.5):
    """A law, sequences, and log p(x_t | k) of all their steps from the oracle."""
    rng = np.random.default_rng(seed)
    start, transitions = random_chain(rng, K, topology)
    emission, parameters, law_of = random_emission(rng, kind, K, topology)
    law = ChainLaw(
        log(start), log(transitions), emission, parameters, 0.1, start > 0, transitions > 0
    )
    n = sum(lengths)
    seen = rng.random(n) >= (0.3 if gaps else 0.0)
    if kind == "symbols":
        values = np.where(seen, rng.integers(N_SYMBOLS, size=n), -1)
    else:
        values = np.where(seen[:, None], spread * rng.standard_normal((n, D)), np.nan)
    evidence = np.array(
        [[law_of(x, k) if s else 0.0 for k in range(K)] for x, s in zip(values, seen)]
    )
    return law, Sequences(values, np.cumsum([0, *lengths])), evidence


def describe(kind, x):
    """f(x), in the documented order."""
    if kind == "symbols":
        return np.eye(N_SYMBOLS)[x] if x >= 0 else np.zeros(N_SYMBOLS)
    squares = [(i, j) for i in range(D) for j in range(i + 1) if kind == "full" or i == j]
    f = np.array([1.0, *x, *(x[i] * x[j] for i, j in squares)])
    return np.nan_to_num(0.0 * f) if np.isnan(x).any() else f


def statistics_of_paths(kind, K, values, segments):
    """All paths of a sequence, and T(x, z) of each by segments: (n_paths, segments, n)."""
    n = len(values)
    paths = np.array(list(product(range(K), repeat=n)))
    f = [describe(kind, x) for x in values]
    out = np.zeros((len(paths), segments, K + K * K + K * len(f[0])))
    each = np.arange(len(paths))
    out[each, 0, paths[:, 0]] = 1.0
    for t in range(n):
        segment = t * segments // n
        for i, value in enumerate(f[t]):
            out[each, segment, K + K * K + paths[:, t] * len(f[t]) + i] += value
        if t + 1 < n:
            out[each, segment, K + paths[:, t] * K + paths[:, t + 1]] += 1.0
    return paths, out


def enumerate_paths(kind, law, values, evidence, tilt, segments):
    """E[T], log normaliser and entropy of q(z) ∝ p(x, z) exp(tilt . T(x, z))."""
    paths, statistics = statistics_of_paths(kind, law.n_states, values, segments)
    log_p = law.log_start[paths[:, 0]].astype(np.longdouble)
    for t, z in enumerate(paths.T):
        log_p = log_p + evidence[t, z]
        if t > 0:
            log_p = log_p + law.log_transitions[paths[:, t - 1], z]
    if tilt is not None:
        log_p = log_p + np.einsum("psn,sn->p", statistics, tilt.astype(np.longdouble))
    high = log_p.max()
    if high == -np.inf:
        return np.zeros(statistics.shape[1:]), -np.inf, 0.0, paths, np.zeros(len(paths))
    q = np.exp(log_p - high) / np.exp(log_p - high).sum()
    entropy = -np.sum(q * np.log(np.where(q > 0, q, 1.0)))
    mean = np.einsum("p,psn->sn", q, statistics).astype(float)
    return mean, float(high + np.log(np.exp(log_p - high).sum())), float(entropy), paths, q


def entropy_terms(paths, q, K, segments):
    """-E[log q] term by term: of the first state, and of transitions given where they start."""
    n = paths.shape[1]
    out = np.zeros((segments, K + K * K))

    def surprise(p, given=1.0):
        return float(-p * np.log(p / given)) if p > 0 else 0.0

    for i in range(K):
        out[0, i] = surprise(q[paths[:, 0] == i].sum())
    for t in range(n - 1):
        for i, j in product(range(K), repeat=2):
            here = paths[:, t] == i
            both = q[here & (paths[:, t + 1] == j)].sum()
            out[t * segments // n, K + i * K + j] += surprise(both, q[here].sum())
    return out


def random_tilt(seed, n_sequences, segments, n_statistics, scale):
    """Of a scale; the huge ones have two values only, to be as far apart as can be."""
    rng = np.random.default_rng([seed, 1])
    shape = n_sequences, segments, n_statistics
    if scale < 100:
        return scale * rng.standard_normal(shape)
    return scale * rng.choice([-1.0, 1.0], shape)


def assert_close(found, expected, tol=1e-10):
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)


def assert_enumerated(kind, law, sequences, evidence, tilt, segments, tol=1e-10):
    """All that `expect` says about a batch is what the sums over paths say."""
    n, n_statistics = len(sequences), len(law.natural())
    found = law.expect(sequences, tilt, segments, entropies=True)
    assert found.statistics.shape == (n, segments, n_statistics)
    assert found.entropies.shape == (n, segments, law.n_hidden)
    for s, (low, high) in enumerate(pairwise(sequences.starts)):
        own = None if tilt is None else tilt[s]
        given = sequences.values[low:high], evidence[low:high], own
        mean, log_z, entropy, paths, q = enumerate_paths(kind, law, *given, segments)
        assert_close(found.statistics[s], mean, tol)
        assert_close(found.log_likelihoods[s], log_z, tol)
        assert_close(found.entropies[s].sum(), entropy, tol)
        assert_close(found.entropies[s], entropy_terms(paths, q, law.n_states, segments), tol)
        if tilt is None and np.isfinite(log_z):  # 001, Eq. 5
            total = found.statistics[s].sum(axis=0) @ law.natural() + found.entropies[s].sum()
            assert_close(total, log_z)
    plain = law.expect(sequences, tilt, segments)
    np.testing.assert_array_equal(plain.statistics, found.statistics)
    assert plain.entropies.shape == (n, segments, 0)
    return found


# ------------------------------------------------------------------------------------------- tests

SHAPES = {
    "seed": st.integers(0, 2**32 - 1),
    "K": st.integers(1, 3),
    "topology": st.sampled_from(TOPOLOGIES),
    "lengths": st.lists(st.integers(1, 5), min_size=1, max_size=4) | st.just([1, 6]),
    "gaps": st.booleans(),
}


@pytest.mark.parametrize("kind", KINDS)
@given(
    scale=st.sampled_from([None, 0.1, 1.0, 5.0, 300.0, 1e4]), segments=st.integers(1, 4), **SHAPES
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_statistics_are_sums_over_all_paths(kind, scale, segments, **shape):
    case = random_case(kind=kind, **shape)
    tilt = scale and random_tilt(
        shape["seed"], len(shape["lengths"]), segments, len(case[0].natural()), scale
    )
    # Floating point knows huge exponents, and so the answers, less closely.
    assert_enumerated(kind, *case, tilt, segments, 1e-10 * max(1, (scale or 0) / 300))


@pytest.mark.parametrize("kind", KINDS[1:])
@given(segments=st.integers(1, 4), **SHAPES)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_likelihoods_may_be_too_small_for_floating_point(kind, segments, **shape):
    assert_enumerated(kind, *random_case(kind=kind, spread=200.0, **shape), None, segments)


def is_scaled(law, sequence, tilt):
    """Whether the fast recursion trusts itself with a tilted sequence."""
    K, evidence = law.n_states, law.emission.log_likelihoods(sequence.values, law.parameters)
    first, moves, emitted = (np.ascontiguousarray(part) for part in law._parts(tilt))
    cells = cells_of(sequence.starts, tilt.shape[1])
    law.emission.tilt(sequence.values, emitted.reshape(-1, K, emitted.shape[-1]), cells, evidence)
    likelihoods, filtered = np.empty((2, *evidence.shape))
    shifts, totals = np.empty((2, len(evidence)))
    logs = law.log_start, law.log_transitions
    matrices = np.empty((tilt.shape[1], K, K))
    room = batch._Room(likelihoods, shifts, totals, np.empty(K), matrices, matrices.copy())
    tilted = batch._Chain(law.start, law.transitions, *logs, first[:, 0].copy(), moves)
    batch._tilted(tilted, 0, room)
    chain.scale_likelihoods(evidence, likelihoods, shifts)
    return chain.filter_scaled(room.first, room.matrices, likelihoods, filtered, totals)


@pytest.mark.parametrize(
    ("scale", "spread", "trusted"),
    [(1.0, 1.5, True), (300.0, 1.5, False), (1e4, 1.5, False), (0.0, 200.0, False)],
)
def test_steep_chains_take_the_slow_road(scale, spread, trusted):
    """Or the tests above would say nothing about the logarithms."""
    fast = []
    for seed in range(20):
        law, sequences, _ = random_case(seed, "full", 3, "left to right", [6], False, spread)
        fast.append(is_scaled(law, sequences, random_tilt(seed, 1, 2, len(law.natural()), scale)))
    assert np.mean(fast) == 1.0 if trusted else np.mean(fast) < 0.5


@pytest.mark.parametrize("rarity", [300.0, 700.0, 800.0, 2000.0])
def test_a_transition_too_rare_for_floating_point_is_not_lost(rarity):
    """What was lost at the transition, the steps after it make up for, little by little."""
    law, sequences, evidence = random_case(0, "symbols", 3, "left to right", [6, 6], False)
    tilt = np.zeros((2, 2, len(law.natural())))
    tilt[:, :, law.names.index("0>1")] = tilt[:, :, law.names.index("0>2")] = -rarity
    for symbol in range(N_SYMBOLS):
        tilt[:, :, law.names.index(f"1:{symbol}")] = rarity / 3
    found = assert_enumerated("symbols", law, sequences, evidence, tilt, 2, 1e-9)
    gone = found.statistics[:, :, law.names.index("0>1")].sum(axis=1)
    np.testing.assert_allclose(gone, 1.0, rtol=1e-6)  # it is where the probability is


def test_names_say_which_statistic_is_which():
    """One step in a state that is known: what is not zero has the right name."""
    law, sequences, _ = random_case(3, "full", 2, "left to right", [1], False)
    (x, y), found = sequences.values[0], law.expect(sequences).statistics[0, 0]
    said = {name: value for name, value in zip(law.names, found, strict=True) if value}
    expected = {"first:0": 1, "0:steps": 1, "0:x0": x, "0:x1": y}
    expected |= {"0:x0*x0": x * x, "0:x1*x0": x * y, "0:x1*x1": y * y}
    assert said == pytest.approx(expected)
    law, sequences, _ = random_case(3, "diagonal", 2, "left to right", [1], False)
    assert "1:x1^2" in law.names
    law, sequences, _ = random_case(3, "symbols", 2, "dense", [1], False)
    assert law.names[:6] == ["first:0", "first:1", "0>0", "0>1", "1>0", "1>1"]
    assert law.names[6:] == ["0:0", "0:1", "0:2", "1:0", "1:1", "1:2"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_impossible_has_no_weight(kind):
    """Its statistic is zero, and an infinite weight would make a NaN of it."""
    law, _, _ = random_case(1, kind, 3, "sparse", [2], False)
    said = np.concatenate([law.log_start, law.log_transitions.ravel()])
    alpha = law.natural()
    assert np.isfinite(alpha).all()
    assert np.isneginf(said).any()
    np.testing.assert_array_equal(alpha[: law.n_hidden], np.where(said == -np.inf, 0.0, said))
    if kind == "symbols":
        (said,) = law.parameters
        assert np.isneginf(said).any()
        expected = np.where(said == -np.inf, 0.0, said).ravel()
        np.testing.assert_array_equal(alpha[law.n_hidden :], expected)


def test_an_impossible_sequence_has_no_statistics():
    law, sequences, _ = random_case(0, "symbols", 2, "dense", [3, 2], False)
    law = replace(law, parameters=(log(np.array([[1.0, 0.0, 0.0]] * 2)),))
    sequences = Sequences(np.array([0, 1, 0, 0, 0]), sequences.starts)
    for tilt in (None, np.full((2, 3, len(law.natural())), 7.0)):
        found = law.expect(sequences, tilt, 3, entropies=True)
        assert found.log_likelihoods[0] == -np.inf
        assert np.isfinite(found.log_likelihoods[1])
        assert not found.statistics[0].any()
        assert not found.entropies[0].any()


@pytest.mark.parametrize("scale", [None, 1.0, 300.0])
@pytest.mark.parametrize("segments", [1, 3])
def test_threads_change_no_bit(scale, segments):
    lengths = np.random.default_rng(4).integers(1, 30, 40).tolist()
    law, sequences, _ = random_case(4, "diagonal", 3, "left to right", lengths, True)
    tilt = scale and random_tilt(4, len(lengths), segments, len(law.natural()), scale)
    one, *others = (
        law.expect(sequences, tilt, segments, entropies=True, n_threads=n) for n in (1, 2, 3, 8)
    )
    assert np.isfinite(one.log_likelihoods).all()
    for other in others:
        for a, b in zip(one, other):
            np.testing.assert_array_equal(a, b)
