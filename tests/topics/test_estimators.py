"""The topic models as scikit-learn estimators: manners, odd counts, and what they can do."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from regbayes.topics import LatentDirichlet, MaxMarginTopics

few = {"n_draws": 3, "burn_in": 5, "thin": 1, "random_state": 0}


def corpus(n=120, n_words=30, n_topics=4, length=60, seed=0):
    """Documents whose class is which pair of topics they are about, and their true topics."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    y = rng.integers(2, size=n)
    theta = rng.dirichlet(np.full(n_topics, 0.3), n) * np.where(
        (np.arange(n_topics) % 2)[None] == y[:, None], 1.0, 0.02
    )
    theta /= theta.sum(axis=1, keepdims=True)
    X = np.array([rng.multinomial(length, t @ phi) for t in theta])
    return X, np.where(y == 0, "even", "odd"), phi


AGREED = {
    # It has negative data for everybody, whatever the tag `positive_only` says.
    "expected_failed_checks": lambda estimator: {
        "check_decision_proba_consistency": "its counts are negative"
    },
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        LatentDirichlet(3, **few),
        MaxMarginTopics(3, n_chains=1, **few),
        MaxMarginTopics("auto", max_topics=6, n_chains=1, **few),
    ],
    **AGREED,
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([MaxMarginTopics(3, n_chains=1, prediction="average", **few)], **AGREED)
def test_scikit_learn_agrees_with_the_average(estimator, check):
    check(estimator)


def test_decisions_and_probabilities_agree():
    """What scikit-learn's check would see, of counts."""
    X, y, _ = corpus()
    model = MaxMarginTopics(3, n_chains=1, **few).fit(X, y)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(model.predict_proba(X)[order, 1]) >= -1e-12).all()


# Latent Dirichlet allocation.


def test_topics_are_found():
    X, _, phi = corpus(300)
    model = LatentDirichlet(4, n_draws=10, burn_in=80, random_state=0).fit(X)
    closest = np.abs(model.components_[:, None] - phi[None]).sum(axis=2).min(axis=0)
    assert closest.max() < 0.35  # of at most two
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    even = np.full_like(model.components_, 1 / X.shape[1])
    guess = LatentDirichlet(4, **few).fit(X)
    guess.components_ = even
    assert model.perplexity(X) < 0.8 * guess.perplexity(X)
    assert model.score(X) == pytest.approx(-np.log(model.perplexity(X)))


def test_distinctive_words_are_not_those_of_all_topics():
    model = LatentDirichlet(2, **few).fit(corpus()[0][:, :4])
    model.alpha_ = np.array([0.5, 0.5])
    model.components_ = np.array([[0.6, 0.25, 0.1, 0.05], [0.6, 0.05, 0.05, 0.3]])
    assert model.top_words(2).tolist() == [[0, 1], [0, 3]]
    assert model.top_words(2, distinctive=0.9).tolist() == [[1, 2], [3, 0]]
    assert model.top_words(1, list("abcd"), 1.0).ravel().tolist() == ["b", "d"]


def test_perplexity_is_that_of_the_second_tokens():
    model = LatentDirichlet(2, **few).fit(corpus()[0][:, :3])
    x = np.array([[3, 0, 1]])  # tokens 0 0 0 2: the second and the fourth are asked for
    theta = model.transform(np.array([[2, 0, 0]]))[0]
    p = theta @ model.components_
    assert model.perplexity(x) == pytest.approx(np.exp(-np.mean(np.log(p[[0, 2]]))))
    with pytest.raises(ValueError, match="longer documents"):
        model.perplexity(np.array([[1, 0, 0]]))


def test_threads_do_not_change_the_result():
    X, y, _ = corpus()
    for make in (LatentDirichlet, MaxMarginTopics):
        one, three = (make(4, n_jobs=n, n_chains=1, **few).fit(X, y) for n in (1, 3))
        np.testing.assert_array_equal(one.components_, three.components_)
        np.testing.assert_array_equal(one.transform(X), three.transform(X))


def test_sparse_and_dense_are_the_same():
    X, y, _ = corpus()
    for make in (LatentDirichlet, MaxMarginTopics):
        dense = make(4, **few).fit(X, y)
        for kind in (csr_array, csr_matrix):
            sparse = make(4, **few).fit(kind(X), y)
            np.testing.assert_array_equal(dense.components_, sparse.components_)
            np.testing.assert_array_equal(dense.transform(X), sparse.transform(kind(X)))


def test_partial_fit_keeps_what_it_learned():
    X, _, _ = corpus(400)
    whole = LatentDirichlet(4, n_draws=10, burn_in=80, random_state=0).fit(X)
    online = LatentDirichlet(4, n_draws=10, burn_in=80, random_state=0)
    for part in np.array_split(X, 4):
        online.partial_fit(part)
    assert online.n_documents_seen_ == len(X)
    assert online._counts.sum() == pytest.approx(X.sum())
    new, _, _ = corpus(100, seed=0)
    assert online.perplexity(new) < 1.1 * whole.perplexity(new)
    first = LatentDirichlet(4, n_draws=10, burn_in=80, random_state=0).partial_fit(X[:100])
    assert online.perplexity(new) < first.perplexity(new)


def test_output_and_names():
    pandas = pytest.importorskip("pandas")
    X, _, _ = corpus()
    frame = pandas.DataFrame(X, columns=[f"word{i}" for i in range(X.shape[1])])
    model = LatentDirichlet(3, **few).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == [f"latentdirichlet{k}" for k in range(3)]
    assert model.top_words(2).shape == (3, 2)
    assert model.top_words(1)[0, 0].startswith("word")
    assert model.top_words(1, np.arange(X.shape[1]) * 10)[0, 0] % 10 == 0


def test_chains_are_not_mixed_up():
    X, _, _ = corpus()
    model = LatentDirichlet(4, n_chains=3, **few).fit(X)
    means = model.trace_["log_joint"].mean(axis=1)
    draws = model.trace_.chains[means.argmax()]
    np.testing.assert_allclose(model.alpha_, np.mean([d["alpha"] for d in draws], axis=0))


# Counts as they come.


def test_negative_counts_are_an_error():
    X, y, _ = corpus()
    X[3, 2] = -1
    for make in (LatentDirichlet, MaxMarginTopics):
        with pytest.raises(ValueError, match=r"Negative values .*\n?.*row 3, column 2 is -1"):
            make(3, **few).fit(X, y)


def test_fractions_are_rounded_up_with_a_warning():
    X, y, _ = corpus()
    for make in (LatentDirichlet, MaxMarginTopics):
        with pytest.warns(DataConversionWarning, match="rounded up"):
            fractions = make(3, **few).fit(np.maximum(X - 0.3, 0), y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            whole = make(3, **few).fit(X.astype(float), y)
        np.testing.assert_array_equal(fractions.components_, whole.components_)


def test_empty_documents_are_taken():
    X, y, _ = corpus()
    X[5] = 0
    lda = LatentDirichlet(3, **few).fit(X)
    np.testing.assert_allclose(lda.transform(X)[5], lda.alpha_ / lda.alpha_.sum())
    model = MaxMarginTopics(3, prediction="average", n_chains=1, **few).fit(X, y)
    intercepts = np.mean([draw["weights"][:, -1] for draw in model.trace_], axis=0)
    np.testing.assert_allclose(model.decision_function(X)[5], intercepts[1] - intercepts[0])
    model = MaxMarginTopics(3, n_chains=1, **few).fit(X, y)
    scores = model.evidence(X[5:6]) @ model.topic_weights_.T + model.intercept_
    assert (model.evidence(X[5:6]) < 0).all()
    np.testing.assert_allclose(model.decision_function(X)[5], scores[0, 1] - scores[0, 0])
    nothing = LatentDirichlet(3, **few).fit(np.zeros((4, 5)))
    np.testing.assert_allclose(nothing.components_.sum(axis=1), 1)


def test_words_that_training_never_had_say_nothing():
    X, y, _ = corpus()
    X[:, -1] = 0  # a column of zeros
    model = LatentDirichlet(3, **few).fit(X)
    assert (model.components_[:, -1] > 0).all()
    assert model.components_[:, -1].max() < 1 / X.shape[1]
    labelled = MaxMarginTopics(3, **few).fit(X, y)
    assert np.isfinite(labelled.decision_function(np.eye(X.shape[1])[-1:])).all()
    with pytest.raises(ValueError, match="the columns that the model was trained on"):
        model.transform(np.ones((2, X.shape[1] + 1)))


def test_numbers_fix_the_concentrations():
    X, _, _ = corpus()
    model = LatentDirichlet(3, alpha=0.3, beta=0.2, **few).fit(X)
    np.testing.assert_array_equal(model.alpha_, np.full(3, 0.3))
    assert model.beta_ == pytest.approx(0.2)
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        LatentDirichlet(3, alpha=(1, 2, 3), **few).fit(X)


# With labels.


@pytest.mark.parametrize("prediction", ["tuned", "average"])
@pytest.mark.parametrize("n_topics", [6, "auto"])
def test_classes_are_learned(n_topics, prediction):
    X, y, _ = corpus(300)
    model = MaxMarginTopics(
        n_topics,
        prediction=prediction,
        max_topics=20,
        n_draws=10,
        burn_in=60,
        n_chains=1,
        random_state=0,
    ).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.85
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    assert model.topic_weights_.shape == (2, len(model.components_))
    if n_topics == "auto":
        assert 2 <= model.n_topics_ < 20


def test_the_margin_moves_topics():
    """The class is a matter of two rare words, which topics of words alone do not care about."""
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.full(20, 1.0), 3)
    y = np.arange(200) % 2
    X = np.array([rng.multinomial(40, law[rng.integers(3)]) for _ in y])
    X[:, :2] = 0
    X[np.arange(200), y] = 1
    plain = LatentDirichlet(5, n_draws=10, burn_in=80, random_state=0)
    by_words = cross_val_score(make_pipeline(plain, LinearSVC()), X, y, cv=3).mean()
    model = MaxMarginTopics(5, n_draws=10, burn_in=80, n_chains=1, random_state=0)
    with_margin = cross_val_score(model, X, y, cv=3).mean()
    assert with_margin > by_words + 0.1


def test_searches_pickles_and_clones():
    X, y, _ = corpus()
    grid = GridSearchCV(MaxMarginTopics(3, n_chains=1, **few), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    model = grid.best_estimator_
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
