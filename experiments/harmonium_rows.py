"""Data, rows and small estimators that the tables and figures of 002 share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from regbayes import datasets
from regbayes.data import Views

SCORES = {
    "accuracy": accuracy_score,
    "macro F1": lambda y, found: f1_score(y, found, average="macro"),
}


def error(y: Any, found: Any) -> float:
    return 1.0 - accuracy_score(y, found)


# ------------------------------------------------------------------------------------ documents


@dataclass(frozen=True)
class News:
    """20 Newsgroups: which of the commonest words a document has; the published split by date."""

    X: Any
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    words: np.ndarray


def load_news(n_words: int = 5000, per_class: int | None = None) -> News:
    """The `n_words` commonest words of the training part, there or not."""
    news = datasets.fetch_newsgroup_counts()
    totals = np.asarray(news.data[news.is_train].sum(axis=0), dtype=np.int64).ravel()
    top = np.argsort(-totals, kind="stable")[:n_words]
    X = (news.data[:, top] > 0).astype(np.float32).tocsr()
    y = np.asarray(news.target)
    train, test = np.flatnonzero(news.is_train), np.flatnonzero(~news.is_train)
    if per_class is not None:
        train, test = (
            np.concatenate([part[y[part] == c][:per_class] for c in np.unique(y)])
            for part in (train, test)
        )
    return News(X, y, train, test, np.asarray(news.feature_names)[top])


# ---------------------------------------------------------------------------------------- views


@dataclass(frozen=True)
class Task:
    """Items with two views: how they are had, and how many of them train."""

    title: str
    load: Callable[[], tuple[Views, np.ndarray]]
    train_size: float | int
    note: str


def _load_scenes() -> tuple[Views, np.ndarray]:
    real = datasets.fetch_scene15("real", scenes="ot8")
    words = datasets.fetch_scene15("words500", scenes="ot8")
    # The square root of a Poisson count has a variance of about 1/4, whatever its mean.
    return Views({"real": real.data, "words": np.sqrt(words.data.toarray())}), real.target


def _load_embryos() -> tuple[Views, np.ndarray]:
    X, y = datasets.fetch_bdgp(return_X_y=True)
    return Views(X), y


def _load_numerals() -> tuple[Views, np.ndarray]:
    X, y = datasets.fetch_mfeat(return_X_y=True)
    return Views({"real": np.hstack([X["fou"], X["zer"]]), "pixels": 1.0 * (X["pix"] >= 4)}), y


TASKS = {
    "scenes": Task(
        "8 outdoor scenes, the stand-in for Flickr", _load_scenes, 0.5,
        "644 real descriptors; counts of 500 visual words by their square roots.",
    ),
    "embryos": Task(
        "BDGP embryos, the stand-in for TRECVID", _load_embryos, 250,
        "1750 real features and 79 terms. Terms nearly give the class away, so 250 items train.",
    ),
    "numerals": Task(
        "mfeat, handwritten numerals", _load_numerals, 0.5,
        "Fourier and Zernike features, and pixels that are dark or not.",
    ),
}  # fmt: skip


# Of iMMH and MMH on views, for all sets (002_choices, decision 016).
MARGIN = {"C": 100.0, "cost": 5.0, "input_dropout": 0.3}
ALPHA = 20.0


def load_task(task: Task, quick: bool, n_splits: int) -> tuple[Views, np.ndarray, list]:
    """Views, labels and splits; of a quick run few of each."""
    X, y = task.load()
    if quick:
        some = np.concatenate([np.flatnonzero(y == c)[:30] for c in np.unique(y)])
        X, y = X[some], y[some]
    size = 0.5 if quick else task.train_size
    splits = StratifiedShuffleSplit(1 if quick else n_splits, train_size=size, random_state=0)
    return X, y, list(splits.split(np.zeros(len(y)), y))


class OnView(ClassifierMixin, BaseEstimator):
    """A classifier that sees one of the views only."""

    def __init__(self, estimator: Any, view: str):
        self.estimator = estimator
        self.view = view

    def fit(self, X: Views, y: Any) -> OnView:
        self.estimator_ = clone(self.estimator).fit(X[self.view], y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Views) -> Any:
        return self.estimator_.predict(X[self.view])


def side_by_side(X: Views) -> np.ndarray:
    return np.hstack([view for _, view in X.items()])


WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0)


def tuned_svm(*before: Any, weights: tuple[float, ...] = WEIGHTS, folds: Any = 3) -> GridSearchCV:
    """A linear SVM whose weight folds of the training part choose."""
    pipeline = make_pipeline(*before, LinearSVC(dual="auto"))
    return GridSearchCV(pipeline, {"linearsvc__C": weights}, cv=folds)


def views_svm() -> GridSearchCV:
    """On all views side by side, as they are or standardised: three folds say."""
    pipeline = make_pipeline(FunctionTransformer(side_by_side), StandardScaler(), LinearSVC())
    grid = {
        "standardscaler": [StandardScaler(), "passthrough"],
        "linearsvc__C": [1e-3, 1e-2, 1e-1, 1.0, 10.0],
    }
    return GridSearchCV(pipeline, grid, cv=3)


class FeaturesSVM(ClassifierMixin, BaseEstimator):
    """Features learnt without labels, then a linear SVM: learnt once, not once in each fold."""

    def __init__(
        self,
        features: Any,
        scale: bool = True,
        weights: tuple[float, ...] = WEIGHTS,
        folds: Any = 3,
    ):
        self.features = features
        self.scale = scale
        self.weights = weights
        self.folds = folds

    def fit(self, X: Any, y: Any) -> FeaturesSVM:
        self.features_ = clone(self.features)
        H = self.features_.fit_transform(X)
        self.svm_ = tuned_svm(
            StandardScaler() if self.scale else "passthrough",
            weights=self.weights,
            folds=self.folds,
        ).fit(H, y)
        self.classes_, self.best_params_ = self.svm_.classes_, self.svm_.best_params_
        return self

    def predict(self, X: Any) -> Any:
        return self.svm_.predict(self.features_.transform(X))
