"""Finite HMMs: gradients, the M-step, Baum-Welch, and CategoricalHMM and GaussianHMM."""

import pickle
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from regbayes.data import Sequences
from regbayes.hmm import CategoricalHMM, GaussianHMM
from regbayes.hmm.emissions import CategoricalEmission, DiagonalEmission, GaussianEmission
from regbayes.hmm.finite import ChainLaw
from regbayes.priors import NormalInverseGamma, NormalInverseWishart
from tests.helpers import assert_law, assert_pmf, contract, random_covariance

D, N_SYMBOLS = 2, 3
KINDS = ["symbols", "diagonal", "full"]
kinds = pytest.mark.parametrize("kind", KINDS)


def log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


# --------------------------------------------------------------------------------------- contracts

FEW = {"n_states": 3, "n_iter": 5}
MODELS = {
    "symbols": CategoricalHMM(**FEW),
    "symbols, left to right": CategoricalHMM(topology="left-to-right", **FEW),
    "diagonal": GaussianHMM(**FEW),
    "full": GaussianHMM(covariance_type="full", **FEW),
}


@pytest.mark.parametrize("check", contract(MODELS, besides=["symbols, left to right", "full"]))
def test_sequence_contract(check):
    check()


# ---------------------------------------------------------------------------------- the law itself


def random_law(rng, kind, K=3, pseudocount=0.4, concentration=0.3, left_to_right=False):
    start, transitions = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K)
    allowed_start, allowed = np.ones(K, dtype=bool), np.ones((K, K), dtype=bool)
    if left_to_right:
        allowed_start, allowed = np.arange(K) == 0, np.triu(allowed)
        start, transitions = allowed_start / 1.0, np.triu(transitions)
        transitions /= transitions.sum(axis=1, keepdims=True)
    means, centre = rng.standard_normal((2, K, D))
    if kind == "symbols":
        emission = CategoricalEmission(N_SYMBOLS, concentration)
        parameters = (log(rng.dirichlet(np.ones(N_SYMBOLS), K)),)
    elif kind == "diagonal":
        emission = DiagonalEmission(NormalInverseGamma(centre[0], 0.7, 3.5, rng.random(D) + 0.1))
        parameters = means, rng.uniform(0.5, 2, (K, D))
    else:
        emission = GaussianEmission(
            NormalInverseWishart(centre[0], 0.7, D + 1.5, random_covariance(rng, D))
        )
        parameters = means, np.linalg.cholesky([random_covariance(rng, D) for _ in range(K)])
    return ChainLaw(
        log(start), log(transitions), emission, parameters, pseudocount, allowed_start, allowed
    )


def random_sequences(rng, kind, lengths=(7, 1, 4, 9)):
    """With a step that is not observed."""
    n = sum(lengths)
    values = rng.integers(N_SYMBOLS, size=n) if kind == "symbols" else rng.normal(0, 2, (n, D))
    values[2] = -1 if kind == "symbols" else np.nan
    return Sequences(values, np.cumsum([0, *lengths]))


LOWER = np.tril_indices(D)


def to_vector(law):
    """The parameters as `gradient` orders them; the number of steps has none."""
    K = law.n_states
    if isinstance(law.emission, CategoricalEmission):
        rows = np.exp(law.parameters[0])
    else:
        means, roots = law.parameters
        squares = roots**2
        if roots.ndim == 3:
            squares = (roots @ roots.transpose(0, 2, 1))[:, *LOWER]
        rows = np.column_stack([np.zeros(K), means, squares])
    return np.concatenate(
        [np.exp(law.log_start), np.exp(law.log_transitions).ravel(), rows.ravel()]
    )


def from_vector(law, theta):
    """Probabilities are shares; a change below the diagonal is one above it too."""

    def log_shares(values):
        return log(values / values.sum(axis=-1, keepdims=True))

    K = law.n_states
    first, moves, rows = np.split(theta, [K, K + K * K])
    rows = rows.reshape(K, -1)
    if isinstance(law.emission, CategoricalEmission):
        parameters = (log_shares(rows),)
    elif isinstance(law.emission, DiagonalEmission):
        parameters = rows[:, 1 : 1 + D], np.sqrt(rows[:, 1 + D :])
    else:
        covariances = np.empty((K, D, D))
        covariances[:, *LOWER] = covariances[:, *LOWER[::-1]] = rows[:, 1 + D :]
        parameters = rows[:, 1 : 1 + D], np.linalg.cholesky(covariances)
    return replace(
        law,
        log_start=log_shares(first),
        log_transitions=log_shares(moves.reshape(K, K)),
        parameters=parameters,
    )


class _StepByStep(CategoricalEmission):
    """Symbols whose likelihoods are not in a table."""

    def evidence(self, X, parameters):
        table, rows = super().evidence(X, parameters)
        return table[rows], None


@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("longest", [4, 60])  # tables of the cells are longer than the data, or not
def test_tilted_tables_are_the_tilted_steps(segments, shared, longest):
    rng = np.random.default_rng(longest)
    law = random_law(rng, "symbols")
    lengths = rng.integers(longest // 2, longest + 1, size=20)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    sequences = Sequences(rng.integers(-1, N_SYMBOLS, size=starts[-1]), starts)
    tilt = rng.normal(size=(1 if shared else 20, segments, len(law.natural())))
    emission = _StepByStep(law.emission.n_symbols, law.emission.concentration)
    expected = replace(law, emission=emission).expect(sequences, tilt, segments, entropies=True)
    found = law.expect(sequences, tilt, segments, entropies=True)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@kinds
@pytest.mark.parametrize("left_to_right", [False, True])
def test_the_gradient_is_that_of_the_log_likelihood(kind, left_to_right):
    rng = np.random.default_rng(0)
    law, sequences = random_law(rng, kind, left_to_right=left_to_right), random_sequences(rng, kind)
    found = law.gradient(law.expect(sequences).statistics)
    by_segment = law.gradient(law.expect(sequences, segments=3).statistics)
    assert found.shape == (4, 1, len(law.natural()))
    np.testing.assert_allclose(by_segment.sum(axis=1), found[:, 0], atol=1e-9)
    theta, names = to_vector(law), law.names
    step, changed = 1e-5, 0
    for i, value in enumerate(theta):
        if value == 0.0:
            assert not found[:, 0, i].any(), names[i]  # a structural zero, or no parameter at all
            continue
        up, down = (
            from_vector(law, theta + h * (np.arange(len(theta)) == i)).expect(sequences)
            for h in (step, -step)
        )
        slope = (up.log_likelihoods - down.log_likelihoods) / (2 * step)
        np.testing.assert_allclose(found[:, 0, i], slope, rtol=1e-5, atol=1e-6, err_msg=names[i])
        changed += np.abs(slope).max() > 1e-3
    assert changed > 12


@kinds
def test_the_gradient_vanishes_at_a_maximum(kind):
    """Of the likelihood: for Gaussians the prior pulls, but not at the chain."""
    rng = np.random.default_rng(1)
    law, sequences = random_law(rng, kind, 2, 0.0, 0.0), random_sequences(rng, kind, (60, 40))
    first = law.gradient(law.expect(sequences).statistics.sum(axis=(0, 1)))
    for _ in range(1000):
        totals = law.expect(sequences).statistics.sum(axis=(0, 1))
        law = law.maximize(totals)
    last = to_vector(law) * law.gradient(law.expect(sequences).statistics.sum(axis=(0, 1)))
    last = last if kind == "symbols" else last[: law.n_hidden]
    assert np.abs(last).max() < 0.01 < 1 < np.abs(first).max()


def expected_log_posterior(law, totals):
    """Of the complete data, and the prior of the parameters."""
    return totals @ law.natural() + law.log_prior()


@kinds
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    pseudocount=st.sampled_from([0.0, 0.5]),
    concentration=st.sampled_from([0.0, 0.2]),
    left_to_right=st.booleans(),
    log_size=st.floats(-4, -0.5),
)
def test_no_other_parameters_are_better_than_the_m_steps(
    kind, seed, pseudocount, concentration, left_to_right, log_size
):
    rng = np.random.default_rng(seed)
    law = random_law(rng, kind, 2, pseudocount, concentration, left_to_right)
    totals = law.expect(random_sequences(rng, kind)).statistics.sum(axis=(0, 1))
    best = law.maximize(totals)
    value, theta = expected_log_posterior(best, totals), to_vector(best)
    assert value >= expected_log_posterior(law, totals) - 1e-9
    better = []
    for _ in range(20):
        try:  # shares and variances stay positive, covariances perhaps not
            change = 10.0**log_size * rng.uniform(-0.9, 0.9, len(theta))
            other = from_vector(best, theta * (1 + change))
        except np.linalg.LinAlgError:
            continue
        better.append(expected_log_posterior(other, totals) - value)
    assert better
    assert max(better) <= 1e-9 * abs(value)
    assert min(better) < 0


def log_prior_by_scipy(law):
    """Dirichlet(1 + pseudocount) of all shares, and the density of all means and covariances."""
    rows = [(row, law.pseudocount) for row in (law.log_start, *law.log_transitions)]
    if isinstance(law.emission, CategoricalEmission):
        rows += [(row, law.emission.concentration) for row in law.parameters[0]]
    total = sum(stats.dirichlet.logpdf(np.exp(row), 1 + np.full(len(row), c)) for row, c in rows)
    if isinstance(law.emission, CategoricalEmission):
        return total
    prior = law.emission.prior
    for mean, root in zip(*law.parameters):
        if root.ndim == 1:
            total += stats.invgamma(prior.df / 2, scale=prior.scale / 2).logpdf(root**2).sum()
            covariance = np.diag(root**2)
        else:
            covariance = root @ root.T
            total += stats.invwishart(prior.df, prior.scale).logpdf(covariance)
        total += stats.multivariate_normal(prior.mean, covariance / prior.strength).logpdf(mean)
    return total


@kinds
def test_the_prior_has_the_density_that_it_claims(kind):
    one = random_law(np.random.default_rng(2), kind)
    other = replace(random_law(np.random.default_rng(3), kind), emission=one.emission)
    gap = log_prior_by_scipy(one) - log_prior_by_scipy(other)
    assert one.log_prior() - other.log_prior() == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("spread", [1e-5, 1e-8, 1e-10, 0.0])
def test_far_from_the_centre_variances_stay_positive(kind, spread):
    """Sums of squares have lost the digits of such a spread, and may fall short of it."""
    rng = np.random.default_rng(0)
    points = 3.0 + spread * rng.standard_normal((500, D))
    points[:, 0] += rng.standard_normal(500)  # one feature is as it should be
    scale = np.array([0.1, 0.1 * max(spread, 1e-11) ** 2])
    if kind == "diagonal":
        emission = DiagonalEmission(NormalInverseGamma([3.0, 3.0], 0.01, 3.0, scale))
    else:
        emission = GaussianEmission(NormalInverseWishart([3.0, 3.0], 0.01, 4.0, np.diag(scale)))
    totals = np.zeros((1, 1, emission.n_statistics))
    emission.expect(points, np.ones((500, 1)), np.zeros(500, np.int64), totals)
    means, roots = emission.maximize(totals[0])
    variances = roots[0] ** 2 if kind == "diagonal" else np.diag(roots[0] @ roots[0].T)
    np.testing.assert_allclose(means[0], points.mean(axis=0), rtol=1e-4)
    assert variances[0] == pytest.approx(1.0, rel=0.2)
    assert 0.9 * scale[1] / 510 <= variances[1] < 1e-9
    assert np.isfinite(emission.log_likelihoods(points, (means, roots))).all()


# ------------------------------------------------------------------------------------- Baum-Welch


def topology_of(rng, name, K):
    if name != "array":
        return name
    allowed = rng.random((K, K)) < 0.5
    allowed[np.arange(K), rng.integers(K, size=K)] = True
    return allowed


def random_data(rng, kind, style, lengths):
    """Sequences: of noise, constant, of few values, far from zero; some steps not observed."""
    if kind == "symbols":
        n_symbols = 1 if style == "constant" else 4
        X = [rng.integers(n_symbols, size=n).astype(object) for n in lengths]
    else:
        change = {
            "noise": lambda x: x,
            "constant": lambda x: 0 * x + 3.3,
            "ties": np.round,
            "far": lambda x: 1e6 + 1e-5 * x,
            "heavy": lambda x: x**7 * [1e-3, 1e2],
        }
        X = [change[style](rng.standard_normal((n, D))) for n in lengths]
    first = np.copy(X[0][0]) if kind != "symbols" else X[0][0]  # something is observed
    for x in X:
        x[rng.random(len(x)) < rng.choice([0.0, 0.3])] = None if kind == "symbols" else np.nan
    X[0][0] = first
    return X


def assert_sound(model):
    """Finite parameters; shares that sum to one; zeros where the topology has them."""
    law = model.law_
    for rows, allowed in (
        (model.start_[None], law.allowed_start[None]),
        (model.transitions_, law.allowed),
    ):
        assert np.isfinite(rows).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
        assert not rows[~allowed].any()
        assert (rows >= 0).all()
    if isinstance(model, CategoricalHMM):
        np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1.0, rtol=1e-12)
        return
    assert np.isfinite(model.means_).all()
    spread = model.covariances_
    assert (spread > 0).all() if spread.ndim == 2 else (np.linalg.eigvalsh(spread) > 0).all()


@kinds
@settings(max_examples=70, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    K=st.integers(1, 6),
    topology=st.sampled_from(["ergodic", "left-to-right", "banded", "array"]),
    bandwidth=st.sampled_from([None, 1, 2]),
    pseudocount=st.sampled_from([0.0, 0.1, 3.0]),
    concentration=st.sampled_from([0.0, 0.1]),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    style=st.sampled_from(["noise", "constant", "ties", "far", "heavy"]),
)
def test_baum_welch_never_lowers_the_posterior(
    kind, seed, K, topology, bandwidth, pseudocount, concentration, lengths, style
):
    rng = np.random.default_rng(seed)
    X = random_data(rng, kind, style, lengths)
    options = {
        "topology": topology_of(rng, topology, K),
        "bandwidth": bandwidth,
        "pseudocount": pseudocount,
        "n_iter": 15,
        "tol": 0.0,
        "random_state": seed,
    }
    if kind == "symbols":
        model = CategoricalHMM(K, symbol_concentration=concentration, **options)
    else:
        model = GaussianHMM(K, {"full": "full", "diagonal": "diag"}[kind], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of scikit-learn's clustering too
        model.fit(X)
    assert np.isfinite(model.objective_).all()
    assert (np.diff(model.objective_) <= 1e-9 * np.abs(model.objective_[1:]) + 1e-10).all()
    assert_sound(model)
    assert len(model.objective_) == model.n_iter_ + 1
    if kind == "symbols" and pseudocount == concentration == 0:
        assert model.score(X) == pytest.approx(-model.objective_[-1], rel=1e-9, abs=1e-9)
    marginals = np.concatenate(model.predict_proba(X))
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("bandwidth", [None, 1, 2])
@pytest.mark.parametrize("n_states", [3, 7])
def test_short_sequences_are_possible_from_the_start(n_states, bandwidth):
    """Left to right, a path through all states would be too fast for them."""
    model = CategoricalHMM(
        n_states, topology="left-to-right", bandwidth=bandwidth, symbol_concentration=0.0,
        pseudocount=0.0,
    ).fit([list("abcdefg"), list("gf"), list("e"), list("dab")])  # fmt: skip
    assert np.isfinite(model.objective_).all()
    assert_sound(model)


def test_a_first_guess_with_fewer_clusters_than_states_is_no_matter_for_a_warning():
    """scikit-learn's clustering cannot tell such points apart, and says so."""
    X = np.array([0.0, 1e-12, 2e-12, 3e-12, 1.0] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianHMM(5, random_state=0).fit([X])
    assert_sound(model)


def test_empty_states_have_even_probabilities():
    """More states than steps, in an order: the last are never reached."""
    model = CategoricalHMM(
        6, topology="left-to-right", pseudocount=0.0, symbol_concentration=0.0
    ).fit([list("ab"), list("a")])
    np.testing.assert_allclose(model.probabilities_[-1], 0.5)
    np.testing.assert_allclose(model.transitions_[1, 1:], 0.2)
    full = GaussianHMM(6, "full", topology="left-to-right").fit([[[0.0], [1.0]], [[2.0]]])
    np.testing.assert_allclose(full.means_[-1], 1.0)  # that of the data
    assert_sound(full)


def switching(n_steps=400, gap=6.0, stay=0.9, seed=0):
    rng = np.random.default_rng(seed)
    z = np.zeros(n_steps, dtype=int)
    for t in range(1, n_steps):
        z[t] = z[t - 1] if rng.random() < stay else 1 - z[t - 1]
    X = np.column_stack([gap * z, -gap * z]) + rng.standard_normal((n_steps, 2)) * [1.0, 0.5]
    return X, z


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_finds_the_states_of_real_vectors(covariance_type):
    X, z = switching()
    model = GaussianHMM(2, covariance_type, random_state=0).fit([X])
    assert model.converged_
    path = model.decode([X])[0]
    assert adjusted_rand_score(path, z) > 0.98
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[order], [[0, 0], [6, -6]], atol=0.3)
    variances = model.covariances_[order]
    if covariance_type == "full":
        assert np.abs(variances[:, 0, 1]).max() < 0.15
        variances = np.diagonal(variances, axis1=1, axis2=2)
    np.testing.assert_allclose(variances, [[1, 0.25]] * 2, atol=0.2)
    np.testing.assert_allclose(np.diag(model.transitions_), 0.9, atol=0.05)


def test_finds_the_states_of_symbols():
    rng = np.random.default_rng(1)
    z = switching(2000, stay=0.95)[1]
    law = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    X = np.array(["x", "y", "z"])[(rng.random(2000)[:, None] > law[z].cumsum(axis=1)).sum(axis=1)]
    model = CategoricalHMM(2, n_init=3, random_state=0).fit([X[:900], X[900:]])
    order = np.argsort(model.probabilities_[:, 2])
    np.testing.assert_allclose(model.probabilities_[order], law, atol=0.06)
    np.testing.assert_allclose(np.diag(model.transitions_), 0.95, atol=0.02)
    assert adjusted_rand_score(np.concatenate(model.decode([X])), z) > 0.75
    assert model.categories_.tolist() == ["x", "y", "z"]


def test_left_to_right_states_come_in_their_order():
    rng = np.random.default_rng(0)
    X = [
        np.repeat([5.0, -1.0, 9.0], n)[:, None] + rng.normal(0, 1, (3 * n, 1)) for n in (9, 12, 20)
    ]
    model = GaussianHMM(3, topology="left-to-right", pseudocount=0.0).fit(X)
    np.testing.assert_allclose(model.means_[:, 0], [5, -1, 9], atol=0.5)
    for x in X:
        (path,) = model.decode([x])
        np.testing.assert_array_equal(path, np.repeat([0, 1, 2], len(x) // 3))


# ----------------------------------------------------------------------------------- from all paths


def fitted(kind, **options):
    """A model, and new sequences with one step that is not observed."""
    rng = np.random.default_rng(5)
    options = {"n_states": 3, "n_iter": 4, "random_state": 0, **options}
    if kind == "symbols":
        names = np.array(["a", "b", "c", None])
        X = [names[rng.integers(3, size=n)] for n in (12, 9, 15)]
        new = [names[rng.integers(4, size=n)] for n in (5, 1, 4)]
        return CategoricalHMM(**options).fit(X), new
    X = [[100.0, -30.0] + [7.0, 20.0] * rng.standard_normal((n, 2)) for n in (12, 9, 15)]
    new = [[100.0, -30.0] + [7.0, 20.0] * rng.standard_normal((n, 2)) for n in (5, 1, 4)]
    new[0][2] = np.nan
    covariance_type = "full" if kind == "full" else "diag"
    return GaussianHMM(covariance_type=covariance_type, **options).fit(X), new


def log_densities(model, x):
    """log p(x_t | state k) by what the model shows, in the units of the data."""
    if isinstance(model, CategoricalHMM):
        places = {symbol: i for i, symbol in enumerate(model.categories_)}
        known = [np.log(model.probabilities_[:, places[s]]) if s in places else 0 * model.start_
                 for s in x]  # fmt: skip
        return np.array(known)
    out = np.zeros((len(x), model.n_states))
    for k, (mean, spread) in enumerate(zip(model.means_, model.covariances_)):
        covariance = np.diag(spread) if spread.ndim == 1 else spread
        seen = ~np.isnan(x[:, 0])
        out[seen, k] = stats.multivariate_normal(mean, covariance).logpdf(x[seen])
    return out


def all_paths(model, x):
    """Every path, and the logarithm of its probability jointly with the observations."""
    paths = np.array(list(product(range(model.n_states), repeat=len(x))))
    log_p = log(model.start_)[paths[:, 0]] + log_densities(model, x)[np.arange(len(x)), paths].sum(
        1
    )
    return paths, log_p + log(model.transitions_)[paths[:, :-1], paths[:, 1:]].sum(axis=1)


def marginals_of(model, x):
    paths, log_p = all_paths(model, x)
    q = np.exp(log_p - logsumexp(log_p))
    return np.einsum("p,ptk->tk", q, np.eye(model.n_states)[paths])


@kinds
@pytest.mark.parametrize("topology", ["ergodic", "left-to-right"])
def test_answers_are_those_of_all_paths(kind, topology):
    model, new = fitted(kind, topology=topology)
    scores, paths, states = model.score_samples(new), model.decode(new), model.predict_proba(new)
    causal = model.predict_proba(new, causal=True)
    for x, score, path, smooth, filtered in zip(new, scores, paths, states, causal, strict=True):
        every, log_p = all_paths(model, x)
        assert score == pytest.approx(logsumexp(log_p), rel=1e-10)
        np.testing.assert_array_equal(path, every[log_p.argmax()])
        np.testing.assert_allclose(smooth, marginals_of(model, x), rtol=0, atol=1e-9)
        for t in range(len(x)):
            before = marginals_of(model, x[: t + 1])[-1]
            np.testing.assert_allclose(filtered[t], before, rtol=0, atol=1e-9)
    assert model.score(new) == pytest.approx(scores.sum())
    for one, other in zip(paths, model.predict(new)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize(("unit", "origin"), [(1e-3, 0.0), (1024.0, 5.0), (1e150, 0.0)])
def test_densities_are_in_the_users_units(covariance_type, unit, origin):
    """Other units change a log density by the Jacobian, and the parameters with them."""
    X, _ = switching(60)
    parts = [X[:35], X[35:50], X[50:]]
    parts[1] = parts[1].copy()
    parts[1][3] = np.nan
    options = {"n_states": 3, "covariance_type": covariance_type, "random_state": 0}
    model = GaussianHMM(**options).fit(parts)
    scaled = [unit * (x - origin) for x in parts]
    other = GaussianHMM(**options).fit(scaled)
    jacobian = 2 * np.log(unit) * np.array([35, 14, 10])
    expected = model.score_samples(parts) - jacobian
    np.testing.assert_allclose(other.score_samples(scaled), expected, rtol=1e-7)
    np.testing.assert_allclose(other.means_ / unit + origin, model.means_, rtol=1e-6, atol=1e-6)
    if unit < 1e100:
        np.testing.assert_allclose(other.covariances_ / unit**2, model.covariances_, rtol=1e-5)


# ---------------------------------------------------------------------------------------- sampling


@kinds
def test_samples_follow_the_law(kind):
    model, _ = fitted(kind)
    X, z = model.sample(20_000, random_state=1)
    for k in range(3):
        after = z[1:][z[:-1] == k]
        assert_pmf(after, model.transitions_[k])
        if kind == "symbols":
            codes = np.searchsorted(model.categories_, X[z == k].astype(str))
            assert_pmf(codes, model.probabilities_[k])
            continue
        spread = model.covariances_[k]
        root = np.linalg.cholesky(np.diag(spread) if kind == "diagonal" else spread)
        white = np.linalg.solve(root, (X[z == k] - model.means_[k]).T)
        for row in [*white, (white[0] + white[1]) / np.sqrt(2)]:
            assert_law(row, stats.norm.cdf)
    same, _ = model.sample(20_000, random_state=1)
    np.testing.assert_array_equal(X, same)


def test_samples_begin_as_the_law_does():
    model, _ = fitted("symbols", pseudocount=20.0)
    rng = np.random.default_rng(0)
    assert_pmf(np.array([model.sample(1, rng)[1][0] for _ in range(2000)]), model.start_)
    left, _ = fitted("symbols", topology="left-to-right")
    assert {left.sample(3, seed)[1][0] for seed in range(50)} == {0}


# ------------------------------------------------------------------------------------- estimators


def test_more_starts_fit_no_worse_and_the_best_is_kept():
    rng = np.random.default_rng(0)
    X = [rng.integers(6, size=60) for _ in range(3)]
    ends = []
    for n_init in (1, 2, 4, 8):
        model = CategoricalHMM(4, n_init=n_init, random_state=3).fit(X)
        ends.append(model.objective_[-1])
        law = model.law_
        again = -law.expect(model.read(X)).log_likelihoods.sum() - law.log_prior()
        assert again == pytest.approx(ends[-1])
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] < ends[0]


@kinds
def test_the_number_of_jobs_changes_no_bit(kind):
    laws = [fitted(kind, n_jobs=n)[0].law_ for n in (1, 2, 3)]
    for law in laws[1:]:
        for one, other in zip(law.parameters, laws[0].parameters):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(law.log_transitions, laws[0].log_transitions)


@kinds
def test_copies_and_second_fits(kind):
    model, new = fitted(kind)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(new), model.score_samples(new))
    np.testing.assert_array_equal(again.sample(5, 0)[0], model.sample(5, 0)[0])
    fresh = clone(model)
    assert not hasattr(fresh, "law_")
    other = [x[:, :1] for x in new] if kind != "symbols" else [np.array(["p", "q", "p"])]
    fresh.fit(other)
    model.fit(other)  # nothing is left of the first fit
    np.testing.assert_array_equal(model.score_samples(other), fresh.score_samples(other))
    assert model.sample(4)[0].shape == ((4,) if kind == "symbols" else (4, 1))


def test_a_topology_in_an_array_survives_cloning():
    allowed = np.array([[True, True], [False, True]])
    model = clone(GaussianHMM(2, topology=allowed, random_state=0)).fit([np.arange(9.0)])
    assert model.transitions_[1, 0] == 0
    np.testing.assert_array_equal(model.topology, allowed)


@kinds
def test_a_law_is_learnt_without_changing_the_model(kind):
    model, new = fitted(kind)
    before = pickle.dumps((model.law_, model.objective_))
    sequences = model.read(new)
    law = model.learn(sequences)
    assert pickle.dumps((model.law_, model.objective_)) == before
    # What `fit` would have learnt from them, in the same units and symbols.
    loss = -law.expect(sequences).log_likelihoods.sum() - law.log_prior()
    old = replace(law, log_start=model.law_.log_start, log_transitions=model.law_.log_transitions,
                  parameters=model.law_.parameters)  # fmt: skip
    assert loss < -old.expect(sequences).log_likelihoods.sum() - old.log_prior()


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("spread", [1e-7, 1e-9, 1e-12, 0.0, np.nan])
def test_a_law_is_learnt_from_a_class_that_hardly_varies(covariance_type, spread):
    """Or that has nothing observed; the units are those of all classes together."""
    rng = np.random.default_rng(0)
    X = [1.0 + spread * rng.standard_normal((20, 2)) for _ in range(5)]
    X += [rng.standard_normal((20, 2)) - 1.0 for _ in range(5)]
    model = GaussianHMM(3, covariance_type, random_state=0)
    sequences = model.read(X, reset=True)
    law = model.learn(sequences.take(np.arange(5)))
    assert all(np.isfinite(array).all() for array in law.parameters)
    assert np.isfinite(law.expect(sequences).log_likelihoods).all()


@kinds
def test_without_a_fit_there_is_an_error_that_says_so(kind):
    model, new = fitted(kind)
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.read(new)
    fresh.read(new, reset=True)  # symbols and units are known, but no law
    for ask in (fresh.decode, fresh.predict_proba, fresh.score_samples):
        with pytest.raises(NotFittedError):
            ask(new)
    for name in ("start_", "transitions_", "sample"):
        with pytest.raises(NotFittedError):
            getattr(fresh, name)()


def test_unknown_symbols_are_errors_or_gaps():
    X, new = [list("abab"), list("aabb")], [["a", "z", "b"]]
    strict = CategoricalHMM(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="symbol 'z' at sequence 0, step 1") as caught:
        strict.score_samples(new)
    assert "To mend it" in str(caught.value)
    assert 'unknown="missing"' in str(caught.value)
    lenient = CategoricalHMM(2, unknown="missing", random_state=0).fit(X)
    gap = [["a", None, "b"]]
    assert lenient.score_samples(new) == strict.score_samples(gap)
    np.testing.assert_array_equal(lenient.decode(new)[0], strict.decode(gap)[0])
    np.testing.assert_array_equal(lenient.predict_proba(new)[0], strict.predict_proba(gap)[0])
    # In training every symbol is known.
    assert lenient.fit(new).categories_.tolist() == ["a", "b", "z"]


def test_statistics_are_named_by_the_symbols():
    names = CategoricalHMM(2, random_state=0).fit([["b", "a"], ["c"]]).law_.names
    assert names[-6:] == ["0:a", "0:b", "0:c", "1:a", "1:b", "1:c"]


def test_impossible_sequences_have_no_path():
    """Symbols that every state has forgotten, when nothing is added to their counts."""
    model = CategoricalHMM(2, topology="left-to-right", pseudocount=0.0, symbol_concentration=0.0)
    model.fit([list("aabb"), list("ab")])
    scores = model.score_samples([list("ba"), list("ab")])
    assert scores[0] == -np.inf
    assert np.isfinite(scores[1])
    impossible, possible = model.decode([list("ba"), list("ab")])
    assert impossible.tolist() == [-1, -1]
    assert possible.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("topology", "bandwidth", "expected"),
    [
        ("ergodic", None, [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]),
        ("ergodic", 2, [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]),
        ("banded", None, [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]),
        ("banded", 2, [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]),
        ("left-to-right", None, [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]),
        ("left-to-right", 1, [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]]),
    ],
)
def test_topologies(topology, bandwidth, expected):
    X = [np.random.default_rng(0).integers(5, size=40)]
    model = CategoricalHMM(4, topology=topology, bandwidth=bandwidth, random_state=0).fit(X)
    np.testing.assert_array_equal(model.transitions_ > 0, np.array(expected, dtype=bool))
    first = [True, False, False, False] if topology == "left-to-right" else [True] * 4
    np.testing.assert_array_equal(model.start_ > 0, first)
    array = CategoricalHMM(4, topology=np.array(expected, dtype=bool).tolist(), random_state=0)
    np.testing.assert_array_equal(array.fit(X).transitions_ > 0, np.array(expected, dtype=bool))
    if topology != "left-to-right":  # the same law by another name
        np.testing.assert_array_equal(array.transitions_, model.transitions_)


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (np.ones((3, 3), dtype=bool), r"shape \(2, 2\), got bool of shape \(3, 3\)"),
        (np.ones((2, 2)), r"array of bool.* got float64"),
        ([[1, 0], [0, 1]], "array of bool"),
        ([True, True], r"shape \(2,\)"),
        ([[True, True], [False, False]], "nothing follow state 1; allow at least itself"),
        ("circular", "'topology' parameter"),
        (3, "'topology' parameter"),
    ],
)
def test_bad_topologies_are_refused(topology, message):
    with pytest.raises(ValueError, match=message):
        CategoricalHMM(2, topology=topology).fit([[0, 1, 0]])


@pytest.mark.parametrize(
    ("Model", "options"),
    [
        (CategoricalHMM, {"pseudocount": -0.1}),
        (CategoricalHMM, {"symbol_concentration": -1}),
        (CategoricalHMM, {"unknown": "drop"}),
        (CategoricalHMM, {"n_states": 0}),
        (CategoricalHMM, {"bandwidth": 0}),
        (GaussianHMM, {"covariance_type": "spherical"}),
        (GaussianHMM, {"mean_strength": 0.0}),
        (GaussianHMM, {"covariance_scale": 0.0}),
    ],
)
def test_bad_parameters_are_named(Model, options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        Model(**options).fit([[0, 1, 0]])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_sequences_of_one_step(model):
    """Nothing is known about transitions: they are even."""
    values = [0, 1, 1, 2, 0] if isinstance(model, CategoricalHMM) else [0.0, 1.0, 1.5, -2.0, 9.0]
    found = clone(model).set_params(random_state=0).fit([[value] for value in values])
    allowed = found.law_.allowed
    np.testing.assert_allclose(found.transitions_, allowed / allowed.sum(axis=1, keepdims=True))
    assert_sound(found)
    assert np.isfinite(found.score_samples([[values[0]], [values[1]]])).all()
    assert all(len(path) == 1 for path in found.decode([[value] for value in values]))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("X", "message"), [([], "no sequences"), ([[0, 1], []], "sequence 1 is empty")]
)
def test_empty_sequences_are_refused(model, X, message):
    fresh = clone(model)
    with pytest.raises(ValueError, match=message):
        fresh.fit(X)
    fresh.fit([[0, 1, 1, 0]])
    for ask in (fresh.decode, fresh.predict_proba, fresh.score_samples):
        with pytest.raises(ValueError, match=message):
            ask(X)


def test_rounds_that_were_too_few_say_nothing():
    """Baum-Welch is often stopped early on purpose."""
    X, _ = switching(100, gap=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianHMM(3, n_iter=2, tol=0.0, random_state=0).fit([X])
    assert not model.converged_
    assert model.n_iter_ == 2
