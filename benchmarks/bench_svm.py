"""The Crammer-Singer solver against LIBLINEAR (LinearSVC) at an equal objective.

The problems have the shape that iSVM makes: inputs repeated for every component, weighed by
responsibilities. LinearSVC gets the loosest tolerance that reaches our objective to 0.1 %.
"""

from __future__ import annotations

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.harness import Comparison, compare
from regbayes.margin import crammer_singer


def problem(n: int, n_features: int, n_components: int, n_classes: int):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    responsibilities = rng.dirichlet(np.full(n_components, 0.1), n)
    scores = X @ rng.standard_normal((n_features, n_classes)) + rng.standard_normal((n, n_classes))
    features = (responsibilities[:, :, None] * X[:, None, :]).reshape(n, -1)
    return features, scores.argmax(axis=1)


def objective(weights: np.ndarray, X: np.ndarray, y: np.ndarray, C: float) -> float:
    scores = X @ weights.T
    own = scores[np.arange(len(y)), y]
    scores += 1.0
    scores[np.arange(len(y)), y] -= 1.0
    return 0.5 * np.square(weights).sum() + C * (scores.max(axis=1) - own).sum()


def weights_of(model: LinearSVC) -> np.ndarray:
    # For two classes scikit-learn gives one row, the difference of the two.
    return np.vstack([-model.coef_, model.coef_]) / 2 if len(model.coef_) == 1 else model.coef_


def run(quick: bool) -> list[Comparison]:
    out = []
    C = 1.0
    for n, n_features, n_components, n_classes in ((200, 11, 20, 2), (311, 22, 20, 27)):
        X, y = problem(n, n_features, n_components, n_classes)

        def ours(X=X, y=y, n_classes=n_classes):
            return crammer_singer(X, y, n_classes, C=C, rng=np.random.default_rng(0))

        target = 1.001 * ours().objective

        def peer(tol, X=X, y=y):
            model = LinearSVC(
                multi_class="crammer_singer", fit_intercept=False, C=C, tol=tol, random_state=0
            )
            return model.fit(X, y)

        tol = 1.0
        while objective(weights_of(peer(tol)), X, y, C) > target:
            tol *= 0.3
        with threadpool_limits(limits=1):
            out.append(
                compare(
                    f"Crammer-Singer, {n} x {X.shape[1]}, {n_classes} classes",
                    ours,
                    "LinearSVC",
                    lambda tol=tol, f=peer: f(tol),
                    target_ratio=1.0,
                    repeats=3 if quick else 15,
                )
            )
    return out
