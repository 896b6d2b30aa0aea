"""Rows of the tables on documents: score maps over LDA, topic models, what a user would pick."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import SVC, LinearSVC

from experiments.score_rows import Scored
from regbayes.data import check_documents, check_labelled_documents
from regbayes.scores import (
    FisherScore,
    FreeEnergyScore,
    MaxMarginScore,
    SufficientStatisticsScore,
)
from regbayes.topics import LatentDirichlet, MaxMarginTopics, reading
from regbayes.topics.gibbs import Summary

WEIGHTS = [0.1, 1.0, 10.0, 100.0]
SCALINGS = ("sqrt", "variance")
# Of MSS: tilts of topics times words learn their samples by heart within a few rounds, and a
# classifier of so many scores takes seconds. Why Fisher scores: docs/decisions/011.
LEARNING = {"n_iter": 16, "n_folds": 4, "n_splits": 2, "space": "fisher"}


def lda(n_topics, seed, quick=False):
    sweeps = {"burn_in": 10, "n_draws": 2} if quick else {"burn_in": 100, "n_draws": 20}
    return LatentDirichlet(n_topics, random_state=seed, **sweeps)


class CommonWords(TransformerMixin, BaseEstimator):
    """The words that most training documents have."""

    def __init__(self, n_words=None, min_documents=1):
        self.n_words = n_words
        self.min_documents = min_documents

    def fit(self, X, y=None):
        seen = np.asarray((X > 0).sum(axis=0)).ravel()
        order = np.argsort(-seen, kind="stable")[: self.n_words]
        self.kept_ = np.sort(order[seen[order] >= self.min_documents])
        return self

    def transform(self, X):
        return X[:, self.kept_]


class Columns(TransformerMixin, BaseEstimator):
    """Some columns, of views that stand side by side."""

    def __init__(self, first=0, last=None):
        self.first = first
        self.last = last

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[:, self.first : self.last]


class Seeing(ClassifierMixin, BaseEstimator):
    """A pipeline of two that tells what its classifier chose."""

    def __init__(self, view, classifier):
        self.view = view
        self.classifier = classifier

    def fit(self, X, y):
        self.view_, self.classifier_ = clone(self.view), clone(self.classifier)
        self.classifier_.fit(self.view_.fit(X, y).transform(X), y)
        self.classes_ = self.classifier_.classes_
        self.best_params_ = getattr(self.classifier_, "best_params_", {})
        return self

    def predict(self, X):
        return self.classifier_.predict(self.view_.transform(X))


def histogram_svm():
    """Square roots of the shares of words; linear SVM."""
    steps = make_pipeline(Normalizer("l1"), FunctionTransformer(np.sqrt), LinearSVC())
    return GridSearchCV(steps, {"linearsvc__C": WEIGHTS}, cv=3)


def _dense(X):
    return X.toarray()


def chi_squared(X, Y):
    """exp(-distance / mean distance), of shares of words; training documents come second."""
    return np.exp(additive_chi2_kernel(X, Y) / -additive_chi2_kernel(Y, Y).mean())


def chi_squared_svm():
    """The strongest known classifier of histograms (Zhang, Marszalek, Lazebnik & Schmid 2007)."""
    steps = make_pipeline(Normalizer("l1"), FunctionTransformer(_dense), SVC(kernel=chi_squared))
    return GridSearchCV(steps, {"svc__C": WEIGHTS}, cv=3)


def linear_svm():
    return GridSearchCV(LinearSVC(), {"C": WEIGHTS}, cv=3)


def tfidf_svm():
    """What a user would pick: tf-idf of unit length, linear SVM."""
    steps = make_pipeline(TfidfTransformer(), LinearSVC())
    grid = {"tfidftransformer__sublinear_tf": [False, True], "linearsvc__C": [0.1, 0.3, 1, 3, 10]}
    return GridSearchCV(steps, grid, cv=3)


def lda_svm(n_topics, seed, quick=False):
    """Square roots of the shares of topics; linear SVM."""
    return Searched(
        make_pipeline(lda(n_topics, seed, quick), FunctionTransformer(np.sqrt)), LinearSVC()
    )


class Searched(ClassifierMixin, BaseEstimator):
    """Features that are found once, and a classifier whose weight is chosen by three folds."""

    def __init__(self, features, classifier):
        self.features = features
        self.classifier = classifier

    def fit(self, X, y):
        self.features_ = clone(self.features)
        found = self.features_.fit_transform(X, y)
        self.search_ = GridSearchCV(self.classifier, {"C": WEIGHTS}, cv=3).fit(found, y)
        self.classes_, self.best_params_ = self.search_.classes_, self.search_.best_params_
        return self

    def predict(self, X):
        return self.search_.predict(self.features_.transform(X))


def max_margin_topics(seed, n_topics, n_chains, quick=False, **options):
    """Gibbs MedLDA; nothing is chosen."""
    sweeps = {"burn_in": 10, "n_draws": 2} if quick else {"burn_in": 100, "n_draws": 10}
    return MaxMarginTopics(
        n_topics, thin=4, n_chains=n_chains, random_state=seed, **sweeps, **options
    )


class RandomTopics(ClassifierMixin, BaseEstimator):
    """The readings of MedLDA, from topics that nobody sampled: what is not owed to topics."""

    def __init__(self, n_topics, random_state=None):
        self.n_topics = n_topics
        self.random_state = random_state

    def fit(self, X, y):
        documents, self.classes_, codes = check_labelled_documents(self, X, y)
        rng = np.random.default_rng(self.random_state)
        topics = rng.dirichlet(np.full(documents.n_words, 0.05), self.n_topics).T + 1e-9
        drawn = Summary(np.ones(self.n_topics), topics, np.empty((0, 0)))
        usual = MaxMarginTopics()
        self.word_weights_ = reading.word_weights(documents)
        inputs = reading.as_inputs(documents, self.word_weights_)
        task = reading.Task(inputs, codes, len(self.classes_), usual.tuning_C, usual.stay)
        self.reading_, _ = reading.tune(task, drawn, usual.n_rounds)
        return self

    def predict(self, X):
        documents = check_documents(self, X, reset=False)
        scores = self.reading_.scores(reading.as_inputs(documents, self.word_weights_))
        return self.classes_[scores.argmax(axis=1)]


def score_rows(n_topics, seed, quick=False, scaling=None):
    """FS, FESS, SS and MSS over one size of LDA, a law for each class.

    All have the scaling that is given; with none, SS and MSS choose theirs.
    """
    few = {"n_iter": 2} if quick else {}
    model = lda(n_topics, seed, quick)
    given = {"scaling": scaling} if scaling else {}

    def of_statistics(make, **options):
        if scaling:
            return Scored(make(model, scaling=scaling, **options))
        return Scored([make(model, scaling=each, **options) for each in SCALINGS])

    return {
        "FS": Scored(FisherScore(model, **given)),
        "FESS": Scored(FreeEnergyScore(model, **given)),
        "SS": of_statistics(SufficientStatisticsScore),
        "MSS": of_statistics(MaxMarginScore, random_state=seed, **LEARNING, **few),
    }
