"""scikit-learn transformers on the steps of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from regbayes.data._sequences import SequenceMixin, check_sequences, check_step_labels


class StepTransformer(SequenceMixin, TransformerMixin, BaseEstimator):
    """Apply a transformer of tables to every step: scaling, principal components, and so on.

    Parameters
    ----------
    transformer : transformer
        Fitted on the observed steps of all sequences together, with their labels if given.

    Attributes
    ----------
    transformer_ : transformer

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from regbayes.data import StepTransformer
    >>> from regbayes.hmm import InfiniteHMM
    >>> X = [np.array([[1.0], [3.0]]), np.array([[np.nan], [5.0]])]
    >>> StepTransformer(StandardScaler()).fit_transform(X)[1].round(2)
    array([[ nan],
           [1.22]])
    >>> pipeline = make_pipeline(StepTransformer(StandardScaler()), InfiniteHMM())
    """

    def __init__(self, transformer: Any):
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> StepTransformer:
        """Fit on all observed steps.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout.
        y : list of arrays, or array, default=None
            Labels of the steps, for transformers that read them; unlabelled steps are left out.
        lengths : array-like of int, optional

        Returns
        -------
        self
        """
        sequences = check_sequences(self, X, lengths)
        seen = ~np.isnan(sequences.values[:, 0])
        self.transformer_ = clone(self.transformer)
        if y is None:
            self.transformer_.fit(sequences.values[seen])
        else:
            classes, codes = check_step_labels(sequences, y)
            seen &= codes >= 0
            self.transformer_.fit(sequences.values[seen], classes[codes[seen]])
        return self

    def transform(self, X: Any, lengths: Any = None) -> list[NDArray] | NDArray:
        """Transform every observed step; unobserved ones stay so.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`.
        """
        check_is_fitted(self)
        sequences = check_sequences(self, X, lengths, reset=False)
        seen = ~np.isnan(sequences.values[:, 0])
        # A step of zeros tells the width when none is observed.
        some = sequences.values[seen] if seen.any() else np.zeros((1, sequences.values.shape[1]))
        new = np.asarray(self.transformer_.transform(some), dtype=np.float64)
        out = np.full((sequences.n_steps, new.shape[1]), np.nan)
        out[seen] = new[: seen.sum()]
        return sequences.give_back(out)
