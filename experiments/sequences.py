"""What the experiments on sequences share: models of tables on steps, a CRF, metrics."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import f1_score


def accuracy(y_true, y_pred) -> float:
    """Share of right steps."""
    return float(np.mean(np.concatenate(y_true) == np.concatenate(y_pred)))


def macro_f1(y_true, y_pred) -> float:
    return f1_score(np.concatenate(y_true), np.concatenate(y_pred), average="macro")


class PerStep(BaseEstimator):
    """A classifier of tables on every step by itself, or with `window` steps on either side."""

    def __init__(self, estimator, window=0):
        self.estimator = estimator
        self.window = window

    def fit(self, X, y):
        self.estimator_ = clone(self.estimator).fit(self._table(X), np.concatenate(y))
        return self

    def predict(self, X):
        ends = np.cumsum([len(x) for x in X])[:-1]
        return np.split(self.estimator_.predict(self._table(X)), ends)

    def score(self, X, y):
        return accuracy(y, self.predict(X))

    def _table(self, X):
        return np.concatenate([with_neighbours(x, self.window) for x in X])


def with_neighbours(x, window):
    """Every row beside the rows around it; the ends are repeated."""
    at = np.clip(np.arange(len(x))[:, None] + np.arange(-window, window + 1), 0, len(x) - 1)
    return np.asarray(x)[at].reshape(len(x), -1)


class ChainCRF(BaseEstimator):
    """A linear-chain conditional random field (python-crfsuite, L-BFGS)."""

    def __init__(self, c2=1.0, max_iterations=200):
        self.c2 = c2
        self.max_iterations = max_iterations

    def fit(self, X, y):
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False)
        for x, labels in zip(X, y):
            trainer.append(_items(x), [str(label) for label in labels])
        trainer.set_params({"c1": 0.0, "c2": self.c2, "max_iterations": self.max_iterations})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.crf"
            trainer.train(str(file))
            self.model_ = file.read_bytes()
        self.classes_ = np.unique(np.concatenate(y))
        return self

    def predict(self, X):
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open_inmemory(self.model_)
        names = {str(label): label for label in self.classes_}
        return [np.array([names[label] for label in tagger.tag(_items(x))]) for x in X]

    def score(self, X, y):
        return accuracy(y, self.predict(X))


def _items(x):
    return [{f"x{j}": float(v) for j, v in enumerate(row) if v} | {"1": 1.0} for row in x]
