"""The mixtures as scikit-learn estimators: manners, labels, odd tables, and what they can do."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM

quick = {"n_draws": 20, "burn_in": 20, "random_state": 0}
gisvm = partial(GibbsInfiniteSVM, **quick)
dpmnl = partial(DPMultinomialLogit, **quick)
SAMPLED = [pytest.param(gisvm, id="GiSVM"), pytest.param(dpmnl, id="dpMNL")]
isvm = partial(InfiniteSVM, random_state=0)
ALL = [*SAMPLED, pytest.param(isvm, id="iSVM")]


def separable(n=80, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    X[:, 0] += np.where(X[:, 0] > 0, 0.5, -0.5)
    return X, (X[:, 0] > 0).astype(int)


def xor(n=160, seed=0):
    """Two far clusters in which the classes lie the opposite way round."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1, 1], n)
    X = np.column_stack([5 * side, np.zeros(n)]) + rng.standard_normal((n, 2))
    return X, np.where(X[:, 1] * side > 0, "up", "down")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        GibbsInfiniteSVM(n_draws=5, burn_in=10, n_chains=1, prediction="iterated", n_rounds=10),
        DPMultinomialLogit(n_draws=5, burn_in=10, n_chains=1),
        InfiniteSVM(max_components=6),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        GibbsInfiniteSVM(n_draws=5, burn_in=5),
        GibbsInfiniteSVM(n_draws=5, burn_in=10, n_chains=1, covariance="full"),
        GibbsInfiniteSVM(n_draws=5, burn_in=10, n_chains=1, prediction="single"),
        GibbsInfiniteSVM(n_draws=5, burn_in=10, n_chains=1, pooling="none"),
    ]
)
def test_scikit_learn_agrees_with_variants(estimator, check):
    check(estimator)


# In company.


@pytest.mark.parametrize("make", ALL)
def test_works_in_pipelines_searches_and_cross_validation(make):
    X, y = separable()
    pipeline = make_pipeline(StandardScaler(), make(max_components=3))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.8
    name = pipeline.steps[-1][0]
    grid = GridSearchCV(pipeline, {f"{name}__alpha": [0.5, (1.0, 1.0)]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.85
    assert not np.isnan(grid.cv_results_["mean_test_score"]).any()


@pytest.mark.parametrize("make", ALL)
def test_a_clone_and_a_pickle_answer_alike(make):
    X, y = xor(60)
    model = make().fit(X, y)
    expected = model.predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), expected)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), expected)
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("make", SAMPLED)
@pytest.mark.parametrize("prediction", ["marginal", "iterated", "single"])
def test_fits_and_answers_repeat_whatever_the_number_of_threads(make, prediction):
    X, y = xor(60)
    first = make(prediction=prediction, n_chains=3, n_jobs=1).fit(X, y)
    expected = first.predict_proba(X)
    np.testing.assert_array_equal(first.predict_proba(X), expected)
    np.testing.assert_array_equal(first.predict_proba(X[::-1])[::-1], expected)
    for n_jobs in (1, 2, 4):
        model = make(prediction=prediction, n_chains=3, n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(model.trace_["log_joint"], first.trace_["log_joint"])
        np.testing.assert_array_equal(model.predict_proba(X), expected)
    other = make(prediction=prediction, n_chains=3, random_state=1).fit(X, y)
    assert (other.trace_["log_joint"] != first.trace_["log_joint"]).any()


@pytest.mark.parametrize("make", ALL)
def test_a_second_fit_forgets_the_first(make):
    X, y = xor(60)
    iris = load_iris(return_X_y=True)
    model = make().fit(*iris)
    assert model.n_features_in_ == 4
    model.fit(X, y)
    assert model.n_features_in_ == 2
    assert list(model.classes_) == ["down", "up"]
    np.testing.assert_array_equal(model.predict(X), make().fit(X, y).predict(X))
    assert len(model.labels_) == len(X)


# Labels.


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    "names",
    [["no", "yes"], [False, True], [-3, -1], [1.0, 2.0], np.array(["b", "a"], dtype=object)],
    ids=str,
)
def test_labels_of_any_type_come_back(make, names):
    X, y = separable()
    labels = np.asarray(names)[y]
    model = make().fit(X, labels)
    assert model.predict(X).dtype == labels.dtype
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert np.mean(model.predict(X) == labels) > 0.9


@pytest.mark.parametrize("make", ALL)
def test_many_classes(make):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 3)
    X = np.column_stack([np.cos(y / 9.6), np.sin(y / 9.6)]) * 20
    X += 0.1 * rng.standard_normal(X.shape)
    size = {"n_draws": 4, "burn_in": 4} if make is not isvm else {"max_components": 5}
    model = make(**size).fit(X, 1000 - y)
    assert len(model.classes_) == 60
    assert set(model.predict(X)) <= set(1000 - y)
    assert model.score(X, 1000 - y) > 1 / 60


@pytest.mark.parametrize("make", SAMPLED)
@pytest.mark.parametrize("prediction", ["marginal", "iterated", "single"])
def test_shares_sum_to_one_and_the_largest_wins(make, prediction):
    X, y = load_iris(return_X_y=True)
    model = make(prediction=prediction).fit(X[::3], y[::3])
    shares = model.predict_proba(X)
    assert shares.shape == (150, 3)
    assert shares.min() >= 0
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))
    if prediction == "single":
        assert set(shares.ravel()) == {0.0, 1.0}


# What they can do.


@pytest.mark.parametrize("make", ALL)
def test_one_component_is_a_linear_classifier(make):
    X, y = separable()
    new, answers = separable(200, seed=1)
    model = make(max_components=1).fit(X, y)
    assert model.n_components_ == 1
    linear = LinearSVC().fit(X, y)
    assert linear.score(new, answers) > 0.97
    assert model.score(new, answers) > 0.95
    X, y = xor()
    assert make(max_components=1).fit(X, y).score(X, y) < 0.8, "so it cannot do what two can"


@pytest.mark.parametrize(
    "make",
    [
        gisvm,
        partial(gisvm, covariance="full"),
        partial(gisvm, pooling="none"),
        partial(gisvm, prediction="iterated"),
        partial(gisvm, nu=(1.0, 1.0), shared_nu=(1.0, 1.0)),
        dpmnl,
        partial(dpmnl, covariance="full"),
    ],
)
def test_solves_what_one_linear_svm_cannot(make):
    X, y = xor()
    new, answers = xor(seed=1)
    assert LinearSVC().fit(X, y).score(new, answers) < 0.8
    model = make(burn_in=50).fit(X, y)
    assert model.score(new, answers) > 0.88
    assert model.n_components_ >= 2


def test_prediction_modes_agree_on_easy_data():
    X, y = separable()
    new, _ = separable(200, seed=1)
    marginal, iterated, single = (
        gisvm(prediction=mode).fit(X, y).predict(new) for mode in ("marginal", "iterated", "single")
    )
    assert np.mean(marginal == iterated) > 0.95
    assert np.mean(marginal == single) > 0.9


@pytest.mark.parametrize("make", ALL)
def test_components_of_rows_agree_with_the_partition(make):
    X, y = xor()
    model = make().fit(X, y)
    component = model.predict_component(X)
    assert np.mean(component == model.labels_) > 0.7
    assert not set(component[X[:, 0] < -2]) & set(component[X[:, 0] > 2])


def test_concentration_is_fixed_or_learned():
    X, y = xor(60)
    fixed = gisvm(alpha=0.7).fit(X, y).trace_["alpha"]
    assert np.all(fixed == 0.7)
    learned = gisvm(alpha=(2.0, 1.0)).fit(X, y).trace_["alpha"]
    assert len(np.unique(learned)) == learned.size
    few, many = (gisvm(alpha=a).fit(X, y).trace_["n_components"].mean() for a in (1e-3, 50.0))
    assert many > few + 5


def test_number_of_components_is_the_posterior_mode_and_the_best_draw_has_the_highest_joint():
    X, y = xor(60)
    model = gisvm(max_components=3).fit(X, y)
    sizes = model.trace_["n_components"].ravel()
    assert model.n_components_ == np.bincount(sizes).argmax()
    assert sizes.max() <= 3
    assert model.best_draw_["log_joint"] == model.trace_["log_joint"].max()
    np.testing.assert_array_equal(model.labels_, model.best_draw_["z"])


# Odd tables. Warnings of RuntimeWarning are errors here.


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_far_away_rows_get_finite_answers(make, covariance):
    X, y = xor(60)
    model = make(covariance=covariance).fit(X, y)
    far = np.array([[1e300, -1e300], [1e10, 0.0], [-1.7e308, 1.7e308], [0.0, 0.0]])
    assert set(model.predict(far)) <= {"up", "down"}
    assert np.all(model.predict_component(far) >= 0)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1)
    else:
        assert np.isfinite(model.decision_function(far)).all()


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("covariance", ["diag", "full"])
@pytest.mark.parametrize("table", ["duplicated", "constant column", "collinear", "few", "outlier"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_odd_tables_are_fitted(make, covariance, table):
    X, y = separable(40)
    if table == "duplicated":
        X, y = np.repeat(X[:8], 5, axis=0), np.repeat(y[:8], 5)
    elif table == "constant column":
        X = np.column_stack([X, np.full(40, 3.0)])
    elif table == "collinear":
        X = np.column_stack([X, X[:, 0] + X[:, 1], 2 * X[:, 0]])
    elif table == "few":  # fewer rows than components to start with
        X, y = np.array([[-1.0, 0.0], [1.0, 0.2], [1.2, 0.0]]), np.array([0, 1, 1])
    else:
        X[0] *= 1e8 / np.abs(X[0]).max()
    model = make(covariance=covariance).fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    if table not in ("few", "outlier"):
        assert model.score(X, y) > 0.85


@pytest.mark.parametrize("make", ALL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_constant_table_says_how_frequent_the_classes_are_at_most(make):
    y = np.array([0, 0, 0, 1])
    assert set(make().fit(np.ones((4, 2)), y).predict(np.ones((4, 2)))) <= {0, 1}


@pytest.mark.parametrize("make", SAMPLED)
def test_without_an_intercept_a_boundary_goes_through_the_centre(make):
    X, y = separable()
    model = make(fit_intercept=False, max_components=1).fit(X, y)
    assert model.best_draw_["weights"].shape == (1, 2, 2)
    assert model.score(X, y) > 0.95


def test_without_an_intercept_a_row_at_the_centre_is_fitted():
    X = np.array([[-1.0], [1.0], [3e-18]] * 6)
    y = np.arange(18) % 2
    assert np.isfinite(gisvm(fit_intercept=False).fit(X, y).predict_proba(X)).all()


# Parameters.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", -1),
        ("C", np.nan),
        ("cost", 0.0),
        ("alpha", "x"),
        ("alpha", (1,)),
        ("alpha", (1.0, -1.0)),
        ("nu", (1.0,)),
        ("shared_nu", "wide"),
        ("covariance", "round"),
        ("prediction", "best"),
        ("pooling", "full"),
        ("max_components", 0),
        ("n_draws", 0),
        ("burn_in", -1),
        ("thin", 0),
        ("n_chains", 0),
        ("random_state", "seed"),
    ],
)
def test_a_parameter_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter|{name} must be"):
        GibbsInfiniteSVM(**{name: value}).fit(*separable(10))
