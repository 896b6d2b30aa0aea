"""Harmoniums as scikit-learn estimators: manners, views, what is missing, and what they can do."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from regbayes.data import Views
from regbayes.harmonium import (
    DiscriminativeRBM,
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
    MaxMarginHarmoniumRegressor,
)

brief = {"max_iter": 10, "batch_size": 40, "learning_rate": 0.05}
quick = {"max_iter": 30, "batch_size": 20, "learning_rate": 0.05, "random_state": 0}
efh = partial(Harmonium, 8, **quick)
iefh = partial(InfiniteHarmonium, 12, alpha=3.0, **quick)
mmh = partial(MaxMarginHarmonium, 12, **quick)
immh = partial(InfiniteMaxMarginHarmonium, 20, alpha=5.0, **quick)
regressor = partial(MaxMarginHarmoniumRegressor, 20, alpha=5.0, **quick)
drbm = partial(DiscriminativeRBM, 12, **quick)
LEARNERS = [pytest.param(efh, id="EFH"), pytest.param(iefh, id="iEFH")]
CLASSIFIERS = [pytest.param(mmh, id="MMH"), pytest.param(immh, id="iMMH")]
FEATURES = [*LEARNERS, *CLASSIFIERS, pytest.param(regressor, id="regressor")]
ALL = [*FEATURES, pytest.param(drbm, id="DRBM")]


def tagged(n=120, seed=0):
    """Images and tags of three classes; neither tells all of them apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    image = rng.standard_normal((n, 5)) + 3.0 * (y == 0)[:, None]
    tags = (rng.random((n, 6)) < np.where(y == 1, 0.8, 0.2)[:, None]).astype(float)
    return {"image": image, "tags": tags}, y


def binary(n=100, n_columns=12, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return (rng.random((n, n_columns)) < 0.25 + 0.5 * y[:, None]).astype(float), y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        Harmonium(5, max_iter=2),
        Harmonium(3, max_iter=1, solver="lbfgs", units="real"),
        InfiniteHarmonium(8, max_iter=2),
        MaxMarginHarmonium(20, **brief),
        InfiniteMaxMarginHarmonium(20, units="real", missing="infer", **brief),
        MaxMarginHarmoniumRegressor(20, **{**brief, "max_iter": 40}),
        DiscriminativeRBM(5, generative=0.01, **brief),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([InfiniteMaxMarginHarmonium(20, **brief)])
def test_scikit_learn_agrees_with_binary_features(estimator, check):
    check(estimator)


# In company.


@pytest.mark.parametrize("make", [*CLASSIFIERS, pytest.param(drbm, id="DRBM")])
def test_works_in_pipelines_searches_and_cross_validation(make):
    X, y = binary()
    assert cross_val_score(make(), X, y, cv=3).min() > 0.8
    search = GridSearchCV(make(), {"weight_decay": [0.0, 0.1]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85


@pytest.mark.parametrize("make", LEARNERS)
def test_features_feed_a_classifier(make):
    X, y = binary()
    assert cross_val_score(make_pipeline(make(), LinearSVC()), X, y, cv=3).min() > 0.8


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_views_survive_cross_validation_and_search(make):
    X, y = tagged()
    assert cross_val_score(make(), Views(X), y, cv=3).min() > 0.8
    search = GridSearchCV(make(), {"C": [10.0, 100.0]}, cv=2).fit(Views(X), y)
    assert search.best_score_ > 0.85
    np.testing.assert_array_equal(search.predict(X), search.predict(Views(X)))


@pytest.mark.parametrize("make", ALL)
def test_a_clone_and_a_pickle_answer_alike(make):
    X, y = binary()
    model = make().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    for method in ("transform", "predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            expected = getattr(model, method)(X)
            np.testing.assert_array_equal(getattr(again, method)(X), expected)
            np.testing.assert_array_equal(getattr(clone(model).fit(X, y), method)(X), expected)
    other = make(random_state=1).fit(X, y)
    assert (other.objective_ != model.objective_).any()


@pytest.mark.parametrize("make", FEATURES)
def test_pandas_comes_out_with_names(make):
    pandas = pytest.importorskip("pandas")
    X, y = binary()
    frame = pandas.DataFrame(X, columns=[f"word{i}" for i in range(12)])
    model = make().set_output(transform="pandas").fit(frame, y)
    features = model.transform(frame)
    assert features.shape == (100, model.n_features_)
    assert list(features) == list(model.get_feature_names_out())
    assert features.columns[0] == type(model).__name__.lower() + "0"
    assert set(np.ravel(model.top_inputs(3))) <= set(frame)


# Dense, sparse, and both.


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("visible", ["bernoulli", "count"])
def test_sparse_is_dense(make, visible):
    X, y = binary()
    dense = make(visible=visible).fit(X, y)
    csr = make(visible=visible).fit(sparse.csr_matrix(X), y)
    method = "predict_proba" if make is drbm else "transform"
    expected = getattr(dense, method)(X)
    np.testing.assert_allclose(getattr(csr, method)(X), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        getattr(dense, method)(sparse.csr_array(X)), expected, rtol=1e-6, atol=1e-9
    )


def test_a_sparse_gaussian_view_is_scaled_not_centred():
    X, y = binary()
    X = sparse.csr_matrix(X * np.linspace(0.5, 7.0, 12))
    model = mmh(visible="gaussian").fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.mean((model.reconstruct(X) - X.toarray()) ** 2) < X.toarray().var()


def test_a_dict_of_one_view_is_a_table():
    X, y = binary()
    table, named = immh().fit(X, y), immh().fit({"x": X}, y)
    np.testing.assert_array_equal(named.transform({"x": X}), table.transform(X))


def test_both_views_tell_more_than_either():
    X, y = tagged(300)
    new, truth = tagged(300, seed=1)
    both = immh().fit(X, y).score(new, truth)
    singles = [immh().fit({k: X[k]}, y).score({k: new[k]}, truth) for k in X]
    assert both > max(singles) + 0.1


# What is missing.


@pytest.mark.parametrize("make", [*LEARNERS, *CLASSIFIERS])
def test_a_view_that_is_missing_is_inferred(make):
    rng = np.random.default_rng(0)
    bits = rng.integers(2, size=(400, 3))
    first = (np.repeat(bits, 4, axis=1) ^ (rng.random((400, 12)) < 0.03)).astype(float)
    second = 2.0 * np.repeat(bits, 2, axis=1) + 0.1 * rng.standard_normal((400, 6))
    y = bits[:, 0]
    train = {"first": first[:300], "second": second[:300].copy()}
    train["second"][:40] = np.nan
    gentle = {"C": 10.0} if make in (mmh, immh) else {}
    model = make(missing="infer", max_iter=60, **gentle).fit(train, y[:300])
    filled = model.reconstruct({"first": first[300:]})["second"]
    error = np.mean((filled - second[300:]) ** 2)
    assert error < 0.7 * second.var()
    assert model.transform({"second": second[300:]}).shape == (100, model.n_features_)
    if hasattr(model, "predict"):
        assert model.score({"second": second[300:]}, y[300:]) > 0.9
        assert model.score({"first": first[300:]}, y[300:]) > 0.9


def test_single_values_may_be_missing_and_sparse_rows_too():
    X, y = binary(200)
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = immh(missing="infer").fit(holes, y)
    assert model.score(X, y) > 0.9
    assert np.isfinite(model.transform(holes)).all()
    rows = sparse.csr_matrix(X)
    rows[3] = np.nan
    named = {"words": rows, "image": X + 0.1}
    model = immh(missing="infer").fit(named, y)
    assert model.score(named, y) > 0.9


def test_counts_may_be_missing():
    X, y = binary(100)
    counts = 3 * X
    counts[:10] = np.nan
    model = immh(missing="infer", visible="count").fit(counts, y)
    assert np.isfinite(model.reconstruct(counts)).all()
    np.testing.assert_allclose(model.reconstruct(3 * X).sum(axis=1), (3 * X).sum(axis=1), rtol=1e-5)


# Bad input.


def test_negative_counts():
    with pytest.raises(ValueError, match=r"negative counts\.\nTo mend it"):
        efh(visible="count").fit([[1.0, -1.0], [0.0, 2.0]])


def test_bernoulli_inputs_that_are_not_binary():
    with pytest.raises(ValueError, match=r"other than 0 and 1\.\nTo mend it"):
        efh(visible="bernoulli").fit([[1.0, 0.5], [0.0, 1.0]])
    model = efh().fit([[1.0, 0.0], [0.0, 1.0]])  # found to be binary: held to it
    with pytest.raises(ValueError, match="other than 0 and 1"):
        model.transform([[0.3, 0.0]])


def test_views_of_different_lengths():
    with pytest.raises(ValueError, match=r"different numbers of rows.*'tags': 2(.|\n)*To mend it"):
        efh().fit({"image": np.zeros((3, 2)), "tags": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="different numbers of rows"):
        Views({"image": np.zeros((3, 2)), "tags": np.zeros((2, 2))})


def test_unknown_and_absent_views():
    X, y = tagged()
    model = immh().fit(X, y)
    with pytest.raises(ValueError, match=r"no view 'sound'; .* fitted on 'image', 'tags'"):
        model.predict({**X, "sound": X["image"]})
    with pytest.raises(ValueError, match=r"'tags' is missing\.\nTo mend it.*missing=.infer"):
        model.predict({"image": X["image"]})
    with pytest.raises(ValueError, match="fitted on views by name, and X is a table"):
        model.predict(X["image"])
    with pytest.raises(ValueError, match=r"distributions for \['image', 'sound'\]"):
        immh(visible={"image": "gaussian", "sound": "count"}).fit(X, y)
    with pytest.raises(ValueError, match="view 'tags' has 2 columns, but 6 in training"):
        model.predict({"image": X["image"], "tags": X["tags"][:, :2]})
    with pytest.raises(ValueError, match="no view at all"):
        immh(missing="infer").fit(X, y).predict({})


def test_nan_without_missing():
    X, y = tagged()
    X["image"][4, 2] = np.nan
    with pytest.raises(ValueError, match=r"'image'.* contains NaN(.|\n)*To mend it") as caught:
        immh().fit(X, y)
    assert 'missing="infer"' in "".join(caught.value.__notes__)
    with pytest.raises(ValueError, match="contains NaN"):
        immh().fit(X["image"], y)
    immh(missing="infer").fit(X, y)


def test_bad_labels_and_words():
    X, y = binary()
    with pytest.raises(ValueError, match="only one class"):
        mmh().fit(X, np.zeros(100))
    with pytest.raises(ValueError, match="not among the classes"):
        mmh().partial_fit(X, y + 5, classes=[0, 1])
    with pytest.raises(AttributeError, match="partial_fit"):
        efh(solver="lbfgs").partial_fit(X)
    with pytest.raises(ValueError, match="share held out needs rows of every class"):
        mmh(early_stopping=True, validation_fraction=0.01).fit(X, y)
    with pytest.raises(ValueError, match="reads one table"):
        drbm().fit({"a": X, "b": X}, y)


# Learning.


@pytest.mark.parametrize("make", FEATURES)
@pytest.mark.parametrize("units", ["binary", "real"])
@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_the_objective_falls(make, units, solver):
    X, y = tagged()
    iterations = {"adam": 40, "lbfgs": 8}[solver]
    model = make(units=units, solver=solver, max_iter=iterations).fit(X, y)
    assert len(model.objective_) == model.n_iter_ + 1
    assert model.objective_[-1] < 0.8 * model.objective_[0]
    if hasattr(model, "predict"):
        assert model.score(X, y) > 0.8


@pytest.mark.parametrize("make", [efh, immh])
def test_variances_can_be_learnt(make):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((300, 1))
    X = z @ rng.standard_normal((1, 8)) + 0.3 * rng.standard_normal((300, 8))
    y = (z[:, 0] > 0).astype(int)
    for units in ("binary", "real"):
        model = make(units=units, learn_variance=True, max_iter=100).fit(X, y)
        assert np.exp(model._params.log_variances[0]) < 0.8
        fixed = make(units=units, max_iter=1).fit(X, y)
        assert np.mean((model.reconstruct(X) - X) ** 2) < 0.5 * X.var()
        assert fixed._params.log_variances[0] == 0


@pytest.mark.parametrize("make", ALL)
def test_early_stopping_keeps_the_best_epoch(make):
    X, y = binary(200)
    model = make(early_stopping=True, n_iter_no_change=3, max_iter=200).fit(X, y)
    assert model.n_iter_ < 200
    losses = model.validation_losses_
    assert len(losses) == model.n_iter_ == np.argmin(losses) + 4


@pytest.mark.parametrize("make", FEATURES)
def test_partial_fit_learns_from_parts(make):
    X, y = binary(200)
    model = make()
    for epoch in range(20):
        for part in (slice(0, 100), slice(100, 200)):
            if make is mmh or make is immh:
                model.partial_fit(X[part], y[part], classes=[0, 1])
            else:
                model.partial_fit(X[part], y[part])
        if epoch == 0:
            first = np.mean((model.reconstruct(X) - X) ** 2)
    assert model.n_iter_ == 40
    assert np.mean((model.reconstruct(X) - X) ** 2) < first
    if make is mmh or make is immh:
        assert model.score(X, y) > 0.9


def test_features_that_nothing_needs_are_switched_off():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] > 7, y[:400]
    model = InfiniteMaxMarginHarmonium(120, alpha=1.0, random_state=0, max_iter=60).fit(X, y)
    assert 10 < model.n_features_ < 100
    assert model.transform(X).shape[1] == model.n_features_
    # what is left does what all features did
    state = model._state
    a = state.params.beta + state.log_odds + X @ state.params.weights[0]
    scores = expit(a) @ state.params.mu + state.params.intercept
    np.testing.assert_allclose(model.decision_function(X), scores, atol=0.02 * np.abs(scores).max())


def test_the_finite_prior_treats_all_features_alike():
    X, y = binary()
    model = immh(prior="beta-bernoulli").fit(X, y)
    assert model.score(X, y) > 0.9
    model = regressor(prior=None).fit(X, y)
    assert model.n_features_ == 20


# After the fit.


def test_classes_show_in_the_activations():
    X, y = binary(300)
    model = immh().fit(X, np.array(["no", "yes"])[y])
    expected = [model.transform(X)[y == c].mean(axis=0) for c in (0, 1)]
    np.testing.assert_allclose(model.class_activations_, expected)
    np.testing.assert_allclose(model.activations_, model.transform(X).mean(axis=0))


def test_top_inputs_are_those_that_turn_a_feature_on():
    rng = np.random.default_rng(0)
    bits = rng.integers(2, size=(300, 2))
    X = np.repeat(bits, 4, axis=1) ^ (rng.random((300, 8)) < 0.02)
    model = Harmonium(2, learning_rate=0.02, random_state=1).fit(X)
    names = [f"{side}{i}" for side in ("a", "b") for i in range(4)]
    for top in model.top_inputs(2, names):
        assert len(top) == 2
    features = model.transform(X)
    for k, top in enumerate(model.top_inputs(8)):
        strength = [np.cov(X[:, n], features[:, k])[0, 1] for n in top]
        assert np.corrcoef(strength, np.arange(8))[0, 1] < -0.7
    views = immh().fit({"x": X, "y": X[:, :3]}, bits[:, 0])
    found = views.top_inputs(2, {"y": ["p", "q", "r"]})
    assert set(np.ravel(found["y"])) <= {"p", "q", "r"}
    assert len(found["x"]) == views.n_features_


def test_samples_look_like_the_data():
    rng = np.random.default_rng(0)
    bits = rng.integers(2, size=(400, 1))
    X = (np.repeat(bits, 6, axis=1) ^ (rng.random((400, 6)) < 0.05)).astype(float)
    model = Harmonium(4, learning_rate=0.02, max_iter=300, random_state=0).fit(X)
    draws = model.sample(500, random_state=0)
    assert set(np.unique(draws)) == {0.0, 1.0}
    together = np.corrcoef(draws.T)[np.triu_indices(6, 1)].mean()
    assert together > 0.3  # means of the field make the walls between modes too high
    np.testing.assert_array_equal(draws, model.sample(500, random_state=0))


def test_samples_of_all_kinds_of_views():
    X, _ = tagged()
    X["words"] = np.random.default_rng(0).poisson(2.0, (120, 4))
    kinds = {"image": "gaussian", "tags": "bernoulli", "words": "count"}
    for units in ("binary", "real"):
        model = iefh(visible=kinds, units=units).fit(X)
        draws = model.sample(30, n_steps=20, random_state=0)
        assert {name: view.shape for name, view in draws.items()} == {
            "image": (30, 5), "tags": (30, 6), "words": (30, 4),
        }  # fmt: skip
        assert (draws["words"].sum(axis=1) == np.rint(X["words"].sum(axis=1).mean())).all()
        assert np.isfinite(draws["image"]).all()


def test_regression_answers_in_the_units_of_the_target():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = 1000 + 50 * (X[:, 0] + np.abs(X[:, 1]))
    for prior in ("ibp", "beta-bernoulli", None):
        model = MaxMarginHarmoniumRegressor(30, prior=prior, random_state=0, max_iter=100).fit(X, y)
        assert model.score(X, y) > 0.75
    assert regressor(units="real").fit(X, X[:, 0]).score(X, X[:, 0]) > 0.8


def test_iris_labels_come_back():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = InfiniteMaxMarginHarmonium(30, random_state=0).fit(X, names)
    assert model.score(X, names) > 0.95
    assert model.decision_function(X).shape == (150, 3)
