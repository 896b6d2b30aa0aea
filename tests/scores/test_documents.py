"""The score spaces over documents: the same classes, another law."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from regbayes.data import Documents
from regbayes.kernels.topics import Corpus, Margins, draw_assignments, empty_topics
from regbayes.scores import (
    FisherScore,
    FreeEnergyScore,
    MaxMarginScore,
    PosteriorDivergenceScore,
    SufficientStatisticsScore,
    max_margin,
    spaces,
)
from regbayes.topics import LatentDirichlet
from regbayes.topics.law import DocumentLaw
from tests.helpers import assert_pmf
from tests.topics.test_estimators import corpus

K, V = 3, 4
few = {"n_draws": 3, "burn_in": 20, "thin": 1, "random_state": 0}


def make_law(seed=0, concentration=1.0, **options):
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(V, 1.0), K).T
    return DocumentLaw(concentration * rng.uniform(0.3, 1.0, K), phi, 0.1, **options)


def documents(*rows):
    return Documents(csr_array(np.array(rows)))


def enumerate_topics(law, row, tilt):
    """All assignments of the tokens, their probabilities under the tilt, log normaliser."""
    words = np.repeat(np.arange(V), row)
    codes = np.array(list(itertools.product(range(K), repeat=len(words))))
    counts = (codes[:, :, None] == np.arange(K)).sum(axis=1)
    log_p = (gammaln(law.alpha + counts) - gammaln(law.alpha)).sum(axis=1)
    log_p += gammaln(law.alpha.sum()) - gammaln(law.alpha.sum() + len(words))
    by_word = tilt[K:].reshape(K, V)
    for i, w in enumerate(words):
        log_p += np.log(law.phi[w, codes[:, i]]) + tilt[codes[:, i]] + by_word[codes[:, i], w]
    log_z = np.logaddexp.reduce(log_p)
    return codes, np.exp(log_p - log_z), log_z


def exact_statistics(law, row, tilt):
    words = np.repeat(np.arange(V), row)
    codes, p, log_z = enumerate_topics(law, row, tilt)
    out = np.zeros((K, V))
    for i, w in enumerate(words):
        np.add.at(out[:, w], codes[:, i], p)
    return np.concatenate([out.sum(axis=1), out.ravel()]), log_z


ROWS = ([2, 1, 0, 2], [1, 0, 0, 0], [0, 3, 2, 1], [1, 1, 1, 1])


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("tilted", [False, True])
def test_expectations_are_close_to_those_of_all_assignments(row, tilted):
    """CVB0 is an approximation; a tenth of a token is what it may miss of six."""
    law = make_law()
    tilt = 0.7 * np.random.default_rng(1).standard_normal(K + K * V) * tilted
    found = law.expect(documents(row), tilt[None, None], entropies=True)
    exact, log_z = exact_statistics(law, row, tilt)
    assert np.abs(found.statistics[0, 0] - exact).max() < 0.12
    np.testing.assert_allclose(found.statistics[0, 0, :K].sum(), sum(row))
    assert log_z - 1.0 < found.log_likelihoods[0] <= log_z + 1e-9  # a bound, from below
    if not tilted:
        terms = found.statistics[0, 0] @ law.natural() + found.entropies.sum()
        np.testing.assert_allclose(terms, found.log_likelihoods[0])


def by_rounds_alone(law, row, tilt):
    """E[n_k] after many rounds over the words, one after the other, and nothing else."""
    words = np.flatnonzero(row)
    potential = law.phi[words] * np.exp(tilt[:K] + tilt[K:].reshape(K, -1).T[words])
    q = potential * law.alpha / (potential @ law.alpha)[:, None]
    for _ in range(20_000):
        for i in range(len(words)):
            expected = np.array(row)[words] @ q
            q[i] = potential[i] * (law.alpha + expected - q[i])
            q[i] /= q[i].sum()
    return np.array(row)[words] @ q


@pytest.mark.parametrize("seed", range(6))
def test_newtons_steps_end_where_rounds_do(seed):
    """Of topics that are alike rounds creep; with small alpha some get hardly a token."""
    rng = np.random.default_rng(seed)
    law = make_law(seed, 10.0 ** (-seed / 2), tol=1e-12, max_iter=60)
    law = replace(law, phi=0.2 * law.phi + 0.8 * law.phi.mean(axis=1, keepdims=True))
    row, tilt = rng.integers(1, 40, size=V), 0.3 * rng.standard_normal(K + K * V)
    found = law.expect(documents(row), tilt[None, None])
    exact = by_rounds_alone(law, row, tilt)
    np.testing.assert_allclose(found.statistics[0, 0, :K], exact, atol=1e-7 * row.sum())


def test_one_token_is_exact():
    law = make_law(tol=1e-12)
    tilt = np.random.default_rng(2).standard_normal(K + K * V)
    found = law.expect(documents([0, 0, 1, 0]), tilt[None, None])
    exact, _ = exact_statistics(law, [0, 0, 1, 0], tilt)
    np.testing.assert_allclose(found.statistics[0, 0], exact, atol=1e-12)


@pytest.mark.parametrize("row", ROWS[:1])
def test_the_tilted_conditional_of_a_token_matches_enumeration(row):
    """A tilt is a factor of every token: Gibbs sampling under it needs tilted topics, no more."""
    law, rng = make_law(), np.random.default_rng(3)
    tilt = 0.7 * rng.standard_normal(K + K * V)
    factor = np.exp(tilt[:K] + tilt[K:].reshape(K, V).T)
    topics = empty_topics(V, K)
    topics.cells[:] = np.arange(K)
    topics.shares[:] = law.phi * factor
    topics.sizes[:] = K
    words = np.repeat(np.arange(V), row).astype(np.int32)
    batch = Corpus(words, np.array([0, len(words)]), np.empty(0, int), np.empty(0, int))
    nobody = Margins(np.empty(0, dtype=np.int64), np.zeros((K + 1, 0)), 0.0, 0.0)
    z = np.zeros(len(words), dtype=np.int32)
    drawn = np.empty(20_000, dtype=np.int64)
    for i in range(len(drawn)):
        for _ in range(2):
            draw_assignments(rng, batch, z, law.alpha, topics, nobody)
        drawn[i] = K ** np.arange(len(words))[::-1] @ z
    _, p, _ = enumerate_topics(law, row, tilt)
    assert_pmf(drawn, p)


def test_tilts_broadcast_and_samples_do_not_meet():
    law, batch = make_law(), documents(*ROWS)
    tilt = 0.5 * np.random.default_rng(4).standard_normal(K + K * V)
    once = law.expect(batch, tilt).statistics
    each = law.expect(batch, np.tile(tilt, (len(batch), 1, 1)), n_threads=3).statistics
    np.testing.assert_array_equal(once, each)
    alone = law.expect(batch.take(np.array([2])), tilt).statistics
    np.testing.assert_array_equal(alone[0], once[2])
    with pytest.raises(ValueError, match="segments=1"):
        law.expect(batch, segments=2)


def test_slopes_are_derivatives_of_the_expectations():
    law, batch = make_law(tol=1e-14, max_iter=5000), documents(*ROWS, [0, 0, 0, 0])
    rng = np.random.default_rng(5)
    tilt = 0.3 * rng.standard_normal(K + K * V)
    directions = rng.standard_normal((len(batch), 1, K + K * V))
    found = law.slope(batch, law.expect(batch, tilt).statistics, directions, n_threads=2)
    for j, step in enumerate(1e-4 * np.eye(K + K * V)):
        ahead, behind = (law.expect(batch, tilt + s * step).statistics for s in (1, -1))
        slope = np.sum(directions * (ahead - behind)) / 2e-4
        np.testing.assert_allclose(found[j], slope, atol=1e-6)


def test_slopes_are_close_to_covariances():
    """Of all assignments; as far from them, in proportion, as the expectations are."""
    law, row = make_law(), ROWS[0]
    codes, p, _ = enumerate_topics(law, row, np.zeros(K + K * V))
    words = np.repeat(np.arange(V), row)
    each = np.zeros((len(codes), K + K * V))
    for i, w in enumerate(words):
        np.add.at(each, (np.arange(len(codes)), codes[:, i]), 1.0)
        np.add.at(each, (np.arange(len(codes)), K + codes[:, i] * V + w), 1.0)
    v = np.random.default_rng(6).standard_normal(K + K * V)
    exact = p @ (each * (each @ v)[:, None]) - (p @ each) * (p @ each @ v)
    batch = documents(row)
    found = law.slope(batch, law.expect(batch).statistics, v[None, None])
    assert np.corrcoef(found, exact)[0, 1] > 0.97


def test_gradient_by_alpha_is_that_of_the_bound():
    law, batch = make_law(tol=1e-12, max_iter=5000), documents(*ROWS)
    found = law.gradient(law.expect(batch).statistics)[:, 0, :K]
    counts = law.expect(batch).statistics[:, 0, :K]

    def log_p(alpha):
        total = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum(axis=1))
        return total + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)

    for k, step in enumerate(1e-5 * np.eye(K)):
        slope = (log_p(law.alpha + step) - log_p(law.alpha - step)) / 2e-5
        np.testing.assert_allclose(found[:, k], slope, atol=1e-6)


def test_what_fisher_scores_pull_is_the_derivative_of_the_gradient():
    law, batch = make_law(), documents(*ROWS)
    found, rng = law.expect(batch).statistics, np.random.default_rng(7)
    v = rng.standard_normal(found.shape)
    pulled = law.pull_gradient(found, v)
    for _ in range(5):  # counts of topics are sums of those of topics with words
        moved = rng.standard_normal((len(batch), 1, K, V))
        moved = np.concatenate([moved.sum(axis=-1), moved.reshape(len(batch), 1, -1)], axis=-1)
        ahead, behind = (law.gradient(found + h * moved) for h in (1e-5, -1e-5))
        slope = np.sum(v * (ahead - behind), axis=(1, 2)) / 2e-5
        np.testing.assert_allclose(np.sum(pulled * moved, axis=(1, 2)), slope, rtol=1e-6)


@pytest.mark.parametrize("space", spaces.LEARNABLE)
@pytest.mark.parametrize("scaling", ["sqrt", "standard"])
def test_the_slope_of_the_margin_loss_is_that_of_differences(space, scaling):
    laws = [make_law(seed, tol=1e-14, max_iter=5000) for seed in (0, 1)]
    batch, codes = documents(*ROWS, [0, 4, 1, 0], [2, 2, 0, 1]), np.array([0, 1, 0, 1, 0, 1])
    problem = max_margin.Problem(batch, codes, 2, 1, scaling, 4.0, 1.3, 1, True, space)
    rng = np.random.default_rng(8)
    here = max_margin.untilted(laws)
    here = here._replace(tilts=0.3 * rng.standard_normal(here.tilts.shape))
    view = max_margin.look(problem, here)
    weights = rng.standard_normal(view.features.shape)

    class Linear:
        def judge(self, problem, features):
            return float(np.sum(weights * features)), -weights

    _, slope = max_margin.loss_and_slope(problem, here, Linear())

    def moved(by):
        raw = max_margin.raw_scores(problem, here._replace(tilts=here.tilts + by))
        features = view.scaler(raw.reshape(len(raw), -1), batch.sizes)
        return float(np.sum(weights * max_margin.with_constant(features)))

    for _ in range(4):
        direction = rng.standard_normal(slope.shape)
        expected = (moved(1e-5 * direction) - moved(-1e-5 * direction)) / 2e-5
        np.testing.assert_allclose(np.sum(slope * direction), expected, rtol=1e-5)


def test_maximize_is_the_most_likely_law_of_counts():
    law = make_law()
    rng = np.random.default_rng(6)
    words = rng.integers(1, 9, (K, V)).astype(float)
    totals = np.concatenate([words.sum(axis=1), words.ravel()])
    found = law.maximize(totals)
    np.testing.assert_allclose(found.phi, ((words + 0.1) / (words + 0.1).sum(1, keepdims=True)).T)
    assert found.alpha.sum() == pytest.approx(law.alpha.sum())


# The maps.


@pytest.mark.parametrize(
    "make", [SufficientStatisticsScore, FisherScore, FreeEnergyScore, PosteriorDivergenceScore]
)
def test_maps_take_documents(make):
    X, y, _ = corpus(120)
    X = csr_array(X)
    model = make_pipeline(make(LatentDirichlet(3, **few)), LinearSVC())
    assert model.fit(X[:80], y[:80]).score(X[80:], y[80:]) > 0.75
    scores = model[0]
    features = scores.transform(X)
    assert features.shape == (120, len(scores.get_feature_names_out()))
    np.testing.assert_array_equal(scores.transform(X[5:7]), features[5:7])


def test_names_say_the_words():
    pandas = pytest.importorskip("pandas")
    X, y, _ = corpus(40, n_words=5)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    names = SufficientStatisticsScore(LatentDirichlet(2, **few)).fit(frame, y)
    assert {"even|topic:0", "odd|1:e"} <= set(names.get_feature_names_out())


@pytest.mark.parametrize("solver", ["gradient", "em"])
def test_the_margin_is_learnt_through_topics(solver):
    X, y, _ = corpus(100, n_words=12)
    model = LatentDirichlet(2, **few)
    options = {"n_iter": 16, "n_splits": 0, "n_referees": 1, "n_folds": 4, "random_state": 0}
    scores = MaxMarginScore(model, solver=solver, keep_plain=False, **options)
    learnt = make_pipeline(scores, LinearSVC()).fit(X[:70], y[:70])
    assert learnt.score(X[70:], y[70:]) > 0.75
    plain = SufficientStatisticsScore(model).fit(X[:70], y[:70])
    n_plain = len(plain.get_feature_names_out())
    assert not np.allclose(scores.transform(X)[:, -n_plain:], plain.transform(X))
    if solver == "gradient":
        losses = scores.losses_[0]
        assert losses[-2:].mean() < losses[:2].mean()


def test_empty_documents_have_scores():
    X, y, _ = corpus(40, n_words=6)
    X[3] = 0
    scores = SufficientStatisticsScore(LatentDirichlet(2, **few)).fit_transform(X, y)
    assert np.isfinite(scores).all()


def test_documents_have_no_lengths():
    X, y, _ = corpus(40, n_words=6)
    with pytest.raises(ValueError, match="no lengths"):
        SufficientStatisticsScore(LatentDirichlet(2, **few)).fit(X, y, lengths=[20, 20])
