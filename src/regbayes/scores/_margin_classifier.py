"""The classifier that comes with the max-margin score space."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from regbayes.data import check_labelled_table, check_new_table, check_size
from regbayes.margin import med
from regbayes.scores.max_margin import with_constant


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier of features with weights ``sum_t lambda_t y_t phi_t`` (001, Eq. 22).

    Maximum entropy discrimination: a normal prior of the weights and exponential priors of the
    margins, which makes a smooth relative of the SVM.

    Parameters
    ----------
    C : float, default=10.0
        No sample weighs more than this; with 1 or less, none has any weight.
    warm_start : bool, default=False
        Start from the multipliers of the last fit, if it had as many classes and samples: the
        result is the same, sooner. Useful for rising values of `C`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    multipliers_ : ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.scores import MarginClassifier
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), ["low", "low", "high", "high"]
    >>> MarginClassifier().fit(X, y).predict([[0.5], [3.5]])
    array(['low', 'high'], dtype='<U4')
    """

    _parameter_constraints: ClassVar[dict] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(self, C=10.0, warm_start=False):
        self.C = C
        self.warm_start = warm_start

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> MarginClassifier:
        """Find the weights.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        self
        """
        X, self.classes_, codes = check_labelled_table(self, X, y)
        check_size(X)
        start: NDArray | None = None
        last: NDArray = getattr(self, "multipliers_", np.empty(0))
        if self.warm_start and last.shape == (len(X), len(self.classes_)):
            start = last
        with threadpool_limits(1, user_api="blas"):  # small products, and many of them
            found = med.solve(
                with_constant(X), codes, len(self.classes_), self.C, start=start, tol=1e-5
            )
        self.coef_ = found.weights[:, :-1] / np.sqrt(X.shape[1])
        self.intercept_: NDArray = found.weights[:, -1]
        self.multipliers_ = found.multipliers
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Scores of the classes; for two, the second's minus the first's.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
        """
        check_is_fitted(self)
        scores = check_new_table(self, X) @ self.coef_.T + self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """The class with the largest score.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        ]
