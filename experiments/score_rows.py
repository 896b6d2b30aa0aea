"""Rows of the score-space tables: score maps with their classifier, and what a user would pick."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from experiments.harness import take
from regbayes.scores import MarginClassifier

WEIGHTS = (1.5, 3, 10, 30, 100)  # those that MaxMarginScore tries by itself
SEARCH = "a quarter, more or none"  # how it chooses its rounds; no parameter tells


class Scored(ClassifierMixin, BaseEstimator):
    """A score map, and Eq. 22's classifier on it, whose weight is chosen by three folds.

    In a fold the map knows the rest alone: one that has seen the labels of what it is tried on
    would choose too large a weight. A map that has tried classifiers on such folds by itself, to
    know how many rounds to learn, is asked. Of several maps the folds choose one first, as they are
    before anything is learnt.
    """

    def __init__(self, scores, n_folds=3, weights=WEIGHTS):
        self.scores = scores
        self.n_folds = n_folds
        self.weights = weights

    def fit(self, X, y):
        y = np.asarray(y)
        chosen = self._pick(X, y) if isinstance(self.scores, list) else self.scores
        self.scores_ = clone(chosen)
        features = self.scores_.fit_transform(X, y)
        tried = getattr(self.scores_, "best_C_", [])
        if len(tried) == 1 and tried[0] in self.weights:
            weight = tried[0]
        else:
            weight = self.weights[self._try(chosen, X, y).argmax()]
        self.best_params_ = {"C": weight}
        if chosen is not self.scores:
            self.best_params_["scaling"] = chosen.scaling
        if getattr(self.scores_, "n_rounds_", []):
            self.best_params_["rounds"] = self.scores_.n_rounds_[0]
        self.head_ = MarginClassifier(C=weight).fit(features, y)
        self.classes_ = self.head_.classes_
        return self

    def _pick(self, X, y):
        still = {"n_iter": 0, "n_splits": 0} if hasattr(self.scores[0], "n_iter") else {}
        tried = [self._try(clone(each).set_params(**still), X, y).max() for each in self.scores]
        return self.scores[int(np.argmax(tried))]

    def _try(self, scores, X, y):
        """The accuracy in all folds with each weight."""
        accuracies = np.zeros(len(self.weights))
        for rest, fold in StratifiedKFold(self.n_folds).split(y, y):
            own = clone(scores)
            here = own.fit_transform(take(X, rest), y[rest])
            there = own.transform(take(X, fold))
            head = MarginClassifier(warm_start=True)
            for i, C in enumerate(self.weights):
                accuracies[i] += head.set_params(C=C).fit(here, y[rest]).score(there, y[fold])
        return accuracies

    def predict(self, X):
        return self.head_.predict(self.scores_.transform(X))


def rbf(X, Y):
    """The kernel of SVC(), by one product of matrices: many times as fast where scores are many.

    scikit-learn calls it with the training samples second.
    """
    return rbf_kernel(X, Y, gamma=1.0 / (Y.shape[1] * Y.var()))


def _letters(X):
    return ["".join(x) for x in X]


def kmer_svm():
    """Counts of one, two and three letters in a row, of unit length; linear SVM."""
    counts = CountVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False)
    steps = make_pipeline(
        FunctionTransformer(_letters), counts, FunctionTransformer(np.sqrt), Normalizer(),
        LinearSVC(),
    )  # fmt: skip
    return GridSearchCV(steps, {"linearsvc__C": [0.1, 1.0, 10.0, 100.0]}, cv=3)


def kmer_rbf_svm():
    """Counts of one and two letters in a row, their roots, of unit length; RBF SVM."""
    counts = CountVectorizer(analyzer="char", ngram_range=(1, 2), lowercase=False)
    steps = make_pipeline(
        FunctionTransformer(_letters), counts, FunctionTransformer(np.sqrt), Normalizer(), SVC()
    )
    return GridSearchCV(steps, {"svc__C": [1.0, 3.0, 10.0], "svc__gamma": [0.3, 1.0, 3.0]}, cv=3)


def _stack(X):
    return np.array([list(x) for x in X], dtype=object)


def one_hot_svm():
    """Letters of fixed places; RBF SVM."""
    steps = make_pipeline(
        FunctionTransformer(_stack), OneHotEncoder(handle_unknown="ignore"), SVC()
    )
    grid = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": [0.003, 0.01, 0.03]}
    return GridSearchCV(steps, grid, cv=3)


def resample(x, length):
    """A sequence of given length, by linear interpolation."""
    old, new = np.linspace(0, 1, len(x)), np.linspace(0, 1, length)
    return np.column_stack([np.interp(new, old, column) for column in x.T])


def _frames(X, length, unit):
    frames = np.array([resample(x, length) for x in X])
    if unit:  # shapes, not places and sizes
        frames = frames - frames.mean(axis=1, keepdims=True)
        spread = np.sqrt((frames**2).mean(axis=(1, 2), keepdims=True))
        frames = frames / np.where(spread > 0, spread, 1.0)
    return frames.reshape(len(X), -1)


def frames_svm(length=30):
    """Frames of sequences resampled to one length, as they are or of unit size; RBF SVM."""
    frames = FunctionTransformer(_frames, kw_args={"length": length, "unit": False})
    steps = make_pipeline(frames, StandardScaler(), SVC())
    shapes = [{"length": length, "unit": unit} for unit in (False, True)]
    grid = {
        "functiontransformer__kw_args": shapes,
        "svc__C": [1.0, 10.0, 100.0],
        "svc__gamma": ["scale", 0.001],
    }
    return GridSearchCV(steps, grid, cv=3)


class MiniRocketRidge(ClassifierMixin, BaseEstimator):
    """aeon's MiniRocket on sequences resampled to the median length; ridge classifier."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        from aeon.transformations.collection.convolution_based import MiniRocket

        self.length_ = max(9, int(np.median([len(x) for x in X])))
        self.pipeline_ = make_pipeline(
            MiniRocket(random_state=self.random_state),
            StandardScaler(with_mean=False),
            RidgeClassifierCV(alphas=np.logspace(-3, 3, 10)),
        )
        self.pipeline_.fit(self._cube(X), y)
        self.classes_ = self.pipeline_.classes_
        return self

    def predict(self, X):
        return self.pipeline_.predict(self._cube(X))

    def _cube(self, X):
        return np.array([resample(x, self.length_).T for x in X], dtype=np.float32)
