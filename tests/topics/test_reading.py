"""Readings of documents: the objective against differences, what rounds do, and whom they serve."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfTransformer

from regbayes.data import Documents
from regbayes.topics import MaxMarginTopics, reading
from regbayes.topics.gibbs import Summary
from tests.topics.test_estimators import corpus, few


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    n_words, n_topics, n_classes = 6, 3, 4
    X = np.vstack([rng.poisson(1.5, (20, n_words)), np.zeros((1, n_words), dtype=int)])
    documents = Documents(csr_array(X))
    inputs = reading.as_inputs(documents, reading.word_weights(documents))
    task = reading.Task(inputs, rng.integers(n_classes, size=21), n_classes, 3.0, 2.0)
    phi = rng.dirichlet(np.ones(n_words), n_topics).T
    return task, Summary(rng.uniform(0.2, 1.0, n_topics), phi, np.empty((0, 0)))


def test_inputs_are_sublinear_tf_idf():
    X = np.random.default_rng(0).poisson(0.7, (15, 8))
    X[3] = 0
    theirs = TfidfTransformer(sublinear_tf=True).fit(X[:10])
    mine = reading.word_weights(Documents(csr_array(X[:10])))
    found = reading.as_inputs(Documents(csr_array(X)), mine)
    np.testing.assert_allclose(found.toarray(), theirs.transform(X).toarray(), atol=1e-12)


def test_words_that_training_never_had_are_passed_over():
    X = np.array([[2, 1, 0], [1, 0, 0]])
    weights = reading.word_weights(Documents(csr_array(X)))
    assert weights[2] == 0
    found = reading.as_inputs(Documents(csr_array([[1, 1, 9], [0, 0, 9]])), weights).toarray()
    known = reading.as_inputs(Documents(csr_array([[1, 1, 0], [0, 0, 0]])), weights).toarray()
    np.testing.assert_array_equal(found, known)


def test_slopes_are_those_of_the_loss(problem):
    task, _ = problem
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((4, 4))
    words = rng.standard_normal((6, 4))  # any weights of words: q is the identity, eta is them

    def loss(words, intercepts):
        each = np.column_stack([words.T, intercepts])
        return task.loss(reading.Reading(np.eye(6), each, np.zeros(6)))

    value, by_words, by_intercepts = loss(words, weights[:, -1])
    assert value > 0
    for at in np.ndindex(words.shape):
        move = np.zeros_like(words)
        move[at] = 1e-6
        ahead, behind = loss(words + move, weights[:, -1]), loss(words - move, weights[:, -1])
        np.testing.assert_allclose(by_words[at], (ahead[0] - behind[0]) / 2e-6, atol=1e-6)
    for i in range(4):
        move = np.eye(4)[i] * 1e-6
        ahead, behind = loss(words, weights[:, -1] + move), loss(words, weights[:, -1] - move)
        np.testing.assert_allclose(by_intercepts[i], (ahead[0] - behind[0]) / 2e-6, atol=1e-6)


def test_rounds_go_to_where_the_objective_is_stationary(problem):
    """Slopes of J along tilts and weights, by differences, go to zero; J never rises."""
    task, summary = problem
    state = reading.begin(task, reading.out_of_context(summary))

    def largest_slope(state):
        def objective(tilts, weights):
            topics = softmax(state.log_first + tilts, axis=1)
            there = state._replace(reading=reading.Reading(topics, weights, np.zeros(3)))
            return task.loss(there.reading)[0] + reading.divergence(task, there)

        tilts, weights = state.tilts, state.reading.weights
        assert objective(tilts, weights) == pytest.approx(state.value)
        slopes = []
        for i, place in enumerate((tilts, weights)):
            for at in np.ndindex(place.shape):
                move = np.zeros_like(place)
                move[at] = 1e-4
                ways = [(move, 0.0), (0.0, move)][i]
                ahead = objective(tilts + ways[0], weights + ways[1])
                slopes.append((ahead - objective(tilts - ways[0], weights - ways[1])) / 2e-4)
        return np.abs(slopes).max()

    first, values = largest_slope(state), [state.value]
    for _ in range(300):
        state = reading.step(task, state)
        values.append(state.value)
    assert np.all(np.diff(values) <= 1e-9)
    assert values[-1] < 0.8 * values[0]
    assert largest_slope(state) < 0.01 * first


def test_stationary_tilts_are_multipliers_times_weights(problem):
    """tilt = -G eta / stay, but for what is the same in all topics of a word."""
    task, summary = problem

    def gap(state):
        _, by_words, _ = task.loss(state.reading)
        apart = state.tilts + (by_words @ state.reading.weights[:, :-1]) / task.stay
        return np.abs(apart - apart.mean(axis=1, keepdims=True)).max()

    first = state = reading.begin(task, reading.out_of_context(summary))
    for _ in range(300):
        state = reading.step(task, state)
    assert gap(state) < 0.01 * gap(first)


def test_topics_keep_their_words_in_number(problem):
    _, summary = problem
    tilts = np.random.default_rng(2).standard_normal(summary.phi.shape) * 50
    found = reading.tilted(summary, tilts, summary.weights)
    np.testing.assert_allclose(found.phi.sum(axis=0), 1)
    np.testing.assert_allclose(found.phi @ found.alpha, summary.phi @ summary.alpha)
    same = reading.tilted(summary, np.zeros_like(tilts), summary.weights)
    np.testing.assert_allclose(same.phi, summary.phi)
    np.testing.assert_allclose(same.alpha, summary.alpha)


def test_evidence_makes_the_scores_of_a_chain():
    X, y, _ = corpus(100)
    for prediction in ("tuned", "average"):
        model = MaxMarginTopics(4, prediction=prediction, n_chains=1, **few).fit(X, y)
        evidence = model.evidence(X)
        assert evidence.shape == (100, 4)
        scores = evidence @ model.topic_weights_.T + model.intercept_
        if prediction == "tuned":  # the average is over draws, of which this is the mean
            np.testing.assert_allclose(scores[:, 1] - scores[:, 0], model.decision_function(X))
            np.testing.assert_allclose(evidence.mean(axis=0), 0, atol=1e-12)


def test_a_word_that_costs_much_to_move_stays():
    X, y, _ = corpus(200)
    options = {"n_chains": 1, **few, "burn_in": 40}
    free, tied = (MaxMarginTopics(3, stay=stay, **options).fit(X, y) for stay in (0.01, 1e6))
    sampled = MaxMarginTopics(3, prediction="average", **options).fit(X, y)
    np.testing.assert_allclose(tied.components_, sampled.components_, atol=1e-4)
    assert np.abs(free.components_ - sampled.components_).sum(axis=1).max() > 0.01
    np.testing.assert_allclose(free.components_.sum(axis=1), 1)


def test_a_margin_that_nothing_could_reach_is_refused():
    X, y, _ = corpus(30)
    with pytest.raises(ValueError, match="tuning_C"):
        MaxMarginTopics(3, tuning_C=1.0, **few).fit(X, y)
