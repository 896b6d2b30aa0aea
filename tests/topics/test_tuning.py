"""Tuned topics: slopes against differences, and what rounds do."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from regbayes.data import Documents
from regbayes.topics import MaxMarginTopics
from regbayes.topics.tuning import _LEFT_OUT, leave_out, loss_and_slopes, shares_of_words
from tests.topics.test_estimators import corpus, few


def test_slopes_are_those_of_the_loss():
    rng = np.random.default_rng(0)
    n_words, n_topics, n_classes = 6, 3, 4
    batch = Documents(csr_array(np.vstack([rng.poisson(1.5, (8, n_words)), np.zeros((1, 6), int)])))
    y = rng.integers(n_classes, size=9)
    alpha = rng.uniform(0.2, 1.0, n_topics)
    log_phi = rng.standard_normal((n_words, n_topics))
    weights = rng.standard_normal((n_classes, n_topics + 1))

    def loss(log_phi, weights):
        return loss_and_slopes(batch, y, alpha, log_phi, weights, tol=1e-14)

    value, by_phi, by_weights = loss(log_phi, weights)
    assert value > 0
    for at in np.ndindex(log_phi.shape):
        step = np.zeros_like(log_phi)
        step[at] = 1e-5
        slope = (loss(log_phi + step, weights)[0] - loss(log_phi - step, weights)[0]) / 2e-5
        np.testing.assert_allclose(by_phi[at], slope, atol=1e-7)
    for at in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[at] = 1e-5
        slope = (loss(log_phi, weights + step)[0] - loss(log_phi, weights - step)[0]) / 2e-5
        np.testing.assert_allclose(by_weights[at], slope, atol=1e-7)


def test_words_are_left_out_whole():
    X = csr_array(np.random.default_rng(1).poisson(2.0, (200, 20)))
    found = leave_out(Documents(X), np.random.default_rng(0)).counts.toarray()
    assert set(np.unique((found == X.toarray()) | (found == 0))) == {True}
    assert (found > 0).sum() / X.nnz == pytest.approx(1 - _LEFT_OUT, abs=0.03)


def test_rounds_lower_the_loss_and_keep_the_topics():
    X, y, _ = corpus(300, n_topics=8)
    codes = (y == "odd").astype(int)
    options = {"n_chains": 1, **few, "burn_in": 40}
    losses, topics = [], []
    for prediction in ("refit", "tuned"):
        model = MaxMarginTopics(3, prediction=prediction, n_rounds=40, **options).fit(X, y)
        weights = np.column_stack([model.topic_weights_, model.intercept_])
        log_phi = np.log(model.components_.T)
        batch = Documents(csr_array(X))
        losses.append(loss_and_slopes(batch, codes, model.alpha_, log_phi, weights)[0])
        topics.append(model.components_)
    assert losses[1] < losses[0]
    assert 0.0 < np.abs(topics[1] - topics[0]).sum(axis=1).max() < 0.5  # of at most two
    np.testing.assert_allclose(topics[1].sum(axis=1), 1)


def test_shares_of_words_are_safe_from_overflow():
    np.testing.assert_allclose(shares_of_words(np.array([[1000.0], [1000.0]])), 0.5)
