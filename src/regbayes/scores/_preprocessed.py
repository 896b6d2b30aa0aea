"""A generative model of sequences that are transformed first."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone

from regbayes.data import SequenceTags


class Preprocessed(BaseEstimator):
    """A transformer of sequences, and a generative model of what it gives.

    It offers what score spaces ask of a model, so that choices of both can be compared.

    Parameters
    ----------
    transformer : SequenceFeatures, SequenceQuantizer, StepTransformer or another transformer
    model : CategoricalHMM, GaussianHMM or another model with `read` and `learn`

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.data import SequenceQuantizer
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import Preprocessed, SufficientStatisticsScore
    >>> X, y = [np.arange(5.0), np.ones(4), np.arange(9.0), np.zeros(5)], [1, 0, 1, 0]
    >>> model = Preprocessed(SequenceQuantizer(3, use="velocities"), CategoricalHMM(2))
    >>> len(SufficientStatisticsScore(model).fit_transform(X, y))
    4
    """

    def __init__(self, transformer, model):
        self.transformer = transformer
        self.model = model

    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> Any:
        """Sequences as the model reads them; with `reset`, the transformer is fitted.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
        reset : bool, default=False

        Returns
        -------
        Sequences
        """
        if reset:
            self.transformer_ = clone(self.transformer).fit(X, lengths=lengths)
            self.model_ = clone(self.model)
        new = self.transformer_.transform(X, lengths=lengths)
        # A stacked array comes back stacked, and its bounds are those of X.
        return self.model_.read(new, lengths, reset)

    def learn(self, batch: Any) -> Any:
        """The law of sequences that :meth:`read` gave.

        Parameters
        ----------
        batch : Sequences

        Returns
        -------
        Law
        """
        return self.model_.learn(batch)

    @property
    def n_features_in_(self) -> int:
        return self.transformer_.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        return self.transformer_.feature_names_in_

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(labels="none", values=self.transformer._sequence_tags().values)
