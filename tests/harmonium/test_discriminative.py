"""The discriminative RBM: its conditional law by enumeration, its gradients by differences."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from regbayes.harmonium import DiscriminativeRBM, discriminative
from regbayes.harmonium.energy import Model, Parameters
from regbayes.harmonium.units import BernoulliView, BinaryUnits, CountView
from tests.harmonium.test_energy import differences

MODEL = Model((BernoulliView(), CountView()), BinaryUnits())


def problem(n=6, n_columns=4, n_units=3, n_classes=3):
    rng = np.random.default_rng(0)
    params = Parameters(
        (rng.standard_normal((n_columns, n_units)), rng.standard_normal((n_classes, n_units))),
        (rng.standard_normal(n_columns), rng.standard_normal(n_classes)),
        rng.standard_normal(n_units),
        np.zeros(2), np.zeros(1), np.zeros((n_units, 0)), np.zeros(0),
    )  # fmt: skip
    return params, rng.integers(2, size=(n, n_columns)).astype(float), rng.integers(3, size=n)


def test_conditional_law_by_enumeration_of_units():
    params, x, _ = problem()
    W, U = params.weights
    joint = np.zeros((len(x), 3))
    for d, label in itertools.product(range(len(x)), range(3)):
        joint[d, label] = logsumexp(
            [
                params.biases[1][label] + np.array(h) @ (params.beta + U[label] + x[d] @ W)
                for h in itertools.product([0, 1], repeat=3)
            ]
        )
    expected = joint - logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(discriminative.log_posteriors(params, x), expected, rtol=1e-10)


def test_gradient_of_the_conditional_likelihood():
    params, x, y = problem()

    def f(p):
        return -discriminative.log_conditional(p, x)[0][np.arange(len(y)), y].mean()

    found = discriminative.conditional_gradient(params, x, y)
    for slope, expected in zip(found, differences(f, params)):
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-8)


def test_the_hybrid_adds_the_contrastive_divergence_of_inputs_and_labels():
    params, x, y = problem()
    plain = discriminative.gradient(MODEL, params, x, y, 0.0)
    hybrid = discriminative.gradient(MODEL, params, x, y, 0.5)
    W, U = params.weights
    h0 = 1 / (1 + np.exp(-(params.beta + x @ W + U[y])))
    x1 = 1 / (1 + np.exp(-(params.biases[0] + h0 @ W.T)))
    scores = params.biases[1] + h0 @ U.T
    y1 = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    h1 = 1 / (1 + np.exp(-(params.beta + x1 @ W + y1 @ U)))
    n, labels = len(y), np.eye(3)[y]
    expected = [(x1.T @ h1 - x.T @ h0) / n, (y1.T @ h1 - labels.T @ h0) / n]
    for found, without, slope in zip(hybrid.weights, plain.weights, expected):
        np.testing.assert_allclose(found - without, 0.5 * slope, rtol=1e-10)
    np.testing.assert_allclose(
        hybrid.biases[1] - plain.biases[1], 0.5 * (y1 - labels).mean(axis=0), rtol=1e-10
    )


@pytest.mark.parametrize("generative", [0.0, 0.1])
def test_probabilities_and_progress(generative):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = (rng.random((200, 9)) < 0.2 + 0.6 * np.repeat(np.eye(3), 3, axis=1)[y]).astype(float)
    model = DiscriminativeRBM(8, generative, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert model.score(X, y) > 0.85
    assert model.objective_[-1] < 0.5 * model.objective_[0]
