"""MarginClassifier, Preprocessed and the classifier that chooses for itself."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from regbayes.data import SequenceFeatures, SequenceQuantizer, StepTransformer
from regbayes.hmm import CategoricalHMM, GaussianHMM
from regbayes.scores import (
    MarginClassifier,
    MaxMarginScore,
    MaxMarginScoreClassifier,
    Preprocessed,
    SufficientStatisticsScore,
)
from regbayes.testing import sequence_checks

SMALL = {"segments": 1, "C": (3, 30), "cv": 2, "random_state": 0}


def checks_of(estimator):
    return list(sequence_checks(estimator))


@parametrize_with_checks([MarginClassifier()])
def test_manners_of_the_margin_classifier(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("name", "check"),
    checks_of(
        MaxMarginScoreClassifier(GaussianHMM(2, n_iter=3, random_state=0), learn="never", **SMALL)
    ),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_manners_with_real_sequences(name, check):
    check()


@pytest.mark.parametrize(
    ("name", "check"),
    checks_of(
        MaxMarginScoreClassifier(
            CategoricalHMM(2, n_iter=3, random_state=0, unknown="error"), learn="never", **SMALL
        )
    ),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_manners_with_symbols(name, check):
    check()


def words(n, rng):
    """Sequences whose classes differ in what follows what, not in the letters' shares."""
    X, y = [], []
    for i in range(n):
        label = i % 2
        steps = [rng.integers(3)]
        for _ in range(rng.integers(15, 30)):
            turn = 1 if rng.random() < 0.8 else rng.integers(3)
            steps.append((steps[-1] + (turn if label else -turn)) % 3)
        X.append(np.array(list("abc"))[steps])
        y.append("up" if label else "down")
    return X, np.array(y)


def waves(n, rng):
    """Gestures whose classes differ in direction, at any place."""
    X, y = [], []
    for i in range(n):
        t = np.linspace(0, 2 * np.pi, rng.integers(20, 30)) * (1 if i % 2 else -1)
        X.append(np.column_stack([np.cos(t), np.sin(t)]) + rng.normal(0, 3, 2))
        y.append("left" if i % 2 else "right")
    return X, np.array(y)


def test_the_kind_of_model_follows_from_the_data():
    rng = np.random.default_rng(0)
    X, y = words(40, rng)
    model = MaxMarginScoreClassifier(cv=2, random_state=0).fit(X, y)
    assert isinstance(model.chosen_["model"], CategoricalHMM)
    assert model.score(*words(40, rng)) > 0.9
    X, y = waves(24, rng)
    model = MaxMarginScoreClassifier(cv=2, random_state=0).fit(X, y)
    assert isinstance(model.chosen_["model"], Preprocessed)
    assert model.score(*waves(24, rng)) > 0.9


def test_choices_are_those_of_highest_accuracy():
    X, y = words(60, np.random.default_rng(1))
    # One state sees letters only, which say nothing here.
    models = [CategoricalHMM(1, random_state=0), CategoricalHMM(3, random_state=0)]
    found = MaxMarginScoreClassifier(models, (1, 2), learn="never", cv=3, random_state=0).fit(X, y)
    assert found.chosen_["model"].n_states == 3
    alone = cross_val_score(
        MaxMarginScoreClassifier(
            models[1], found.chosen_["segments"], learn="never", C=found.chosen_["C"]
        ),
        X,
        y,
        cv=found._folds(np.unique(y, return_inverse=True)[1]),
    )
    assert found.chosen_["accuracy"] == pytest.approx(alone.mean(), abs=1e-12)


def test_a_data_frame_with_text_ids_is_real():
    pandas = pytest.importorskip("pandas")
    X, y = waves(8, np.random.default_rng(10))
    frame = pandas.DataFrame(np.concatenate(X), columns=["x", "y"])
    frame["sequence_id"] = np.repeat([f"s{i}" for i in range(8)], [len(x) for x in X])
    model = MaxMarginScoreClassifier(segments=1, learn="never", cv=2, random_state=0).fit(frame, y)
    assert isinstance(model.chosen_["model"], Preprocessed)
    assert len(model.get_feature_names_out()) == model.transform(frame).shape[1]


def test_sequences_that_are_all_alike_are_refused():
    X, y = [["a", "a"]] * 4, [0, 1, 0, 1]
    with pytest.raises(ValueError, match="no score varies"):
        SufficientStatisticsScore(CategoricalHMM(1)).fit(X, y)


def test_learning_is_kept_when_asked_for():
    X, y = words(24, np.random.default_rng(2))
    model = CategoricalHMM(2, n_iter=5, random_state=0)
    always = MaxMarginScoreClassifier(model, 1, learn="always", C=10, random_state=0).fit(X, y)
    never = MaxMarginScoreClassifier(model, 1, learn="never", C=10, random_state=0).fit(X, y)
    assert isinstance(always.scores_, MaxMarginScore)
    assert isinstance(never.scores_, SufficientStatisticsScore)
    assert always.chosen_["learnt"]
    assert not never.chosen_["learnt"]
    em = clone(always).set_params(solver="em").fit(X, y)
    assert em.scores_.solver == "em"


def test_any_linear_svm_will_do():
    X, y = words(30, np.random.default_rng(3))
    model = MaxMarginScoreClassifier(
        CategoricalHMM(3, random_state=0), 1, classifier=LinearSVC(), C=(0.1, 1.0), random_state=0
    ).fit(X, y)
    assert isinstance(model.classifier_, LinearSVC)
    assert model.classifier_.C in (0.1, 1.0)


def test_a_class_with_one_sequence_trains():
    X, y = words(9, np.random.default_rng(4))
    y[0] = "odd"
    model = MaxMarginScoreClassifier(CategoricalHMM(2, random_state=0), (1, 2)).fit(X, y)
    assert set(model.predict(X)) <= {"odd", "up", "down"}
    assert model.chosen_["segments"] == 1
    assert model.chosen_["accuracy"] is None


def test_symbols_unseen_in_training():
    X, y = words(20, np.random.default_rng(5))
    new = [np.array(list("abcxabc"))]
    own = MaxMarginScoreClassifier(segments=1, cv=2, random_state=0).fit(X, y)
    assert own.predict(new)[0] in ("up", "down")  # the default models take x as unobserved
    strict = MaxMarginScoreClassifier(CategoricalHMM(2), 1, learn="never", C=10).fit(X, y)
    with pytest.raises(ValueError, match="'x'"):
        strict.predict(new)


def test_a_transformer_before_the_model_equals_a_pipeline():
    X, y = waves(16, np.random.default_rng(6))
    quantizer = SequenceQuantizer(5, use="velocities", random_state=0)
    model = CategoricalHMM(2, random_state=0)
    inside = SufficientStatisticsScore(Preprocessed(quantizer, model)).fit_transform(X, y)
    outside = SufficientStatisticsScore(model).fit_transform(quantizer.fit_transform(X), y)
    np.testing.assert_array_equal(inside, outside)


def test_a_transformer_before_the_model_keeps_layouts():
    X, y = waves(12, np.random.default_rng(7))
    model = Preprocessed(SequenceFeatures(use="both"), GaussianHMM(2, random_state=0))
    scores = SufficientStatisticsScore(model).fit(X, y)
    stacked, lengths = np.concatenate(X), [len(x) for x in X]
    np.testing.assert_array_equal(scores.transform(X), scores.transform(stacked, lengths))
    again = clone(scores).fit(stacked, y, lengths)
    np.testing.assert_array_equal(scores.transform(X), again.transform(X))


def test_weights_are_sums_of_multipliers_times_features():
    """001, Eq. 22, for many classes: every sample pulls its class up and the others down."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(30, 4)), rng.integers(3, size=30)
    model = MarginClassifier(C=5.0).fit(X, y)
    phi = np.column_stack([X / 2, np.ones(30)])
    pull = -model.multipliers_
    pull[np.arange(30), y] = model.multipliers_.sum(axis=1)
    np.testing.assert_allclose(model.coef_ * 2, (pull.T @ phi)[:, :-1], atol=2e-3)
    np.testing.assert_allclose(model.intercept_, (pull.T @ phi)[:, -1], atol=2e-3)


def test_transformers_of_steps_will_do():
    model = Preprocessed(StepTransformer(StandardScaler()), GaussianHMM(2, random_state=0))
    X, y = waves(8, np.random.default_rng(9))
    assert len(SufficientStatisticsScore(model).fit_transform(X, y)) == 8
