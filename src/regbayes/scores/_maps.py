"""scikit-learn's side of the score spaces: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes.data import SequenceMixin, SequenceTags, check_sequence_labels
from regbayes.scores import spaces
from regbayes.scores.protocol import Law
from regbayes.scores.scaling import fit_scaler

_COUNT = Interval(Integral, 1, None, closed="left")


class _ScoreMap(SequenceMixin, TransformerMixin, BaseEstimator):
    """What the score maps share: a law for each class, or one for all; scores; their scaling."""

    _parameter_constraints: ClassVar[dict] = {
        "model": [HasMethods(["read", "learn"])],
        "per_class": ["boolean"],
        "segments": [_COUNT],
        "scaling": [StrOptions({"none", "length", "sqrt", "variance"})],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
    }
    _space: ClassVar[Callable]

    def __init__(self, model, per_class=True, segments=1, *, scaling="variance", n_jobs=None):
        self.model = model
        self.per_class = per_class
        self.segments = segments
        self.scaling = scaling
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> _ScoreMap:
        """Learn the laws, and the scale of the scores.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : array-like of shape (n_sequences,)
            A label for every sequence; not needed with ``per_class=False``.
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        self
        """
        self._fit_transform(X, y, lengths)
        return self

    def fit_transform(self, X: Any, y: Any = None, lengths: Any = None) -> NDArray:
        """Fit, and give the scores of the same sequences."""
        # scikit-learn's forgets the lengths, and would find the posteriors twice.
        self._validate_params()
        return self._fit_transform(X, y, lengths)

    def transform(self, X: Any, lengths: Any = None) -> NDArray:
        """Scores of sequences.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences, n_scores)
        """
        check_is_fitted(self)
        batch = self.model_.read(X, lengths)
        return self._scaler(self._raw(batch), batch.sizes)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names of the scores: class, segment, statistic.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = np.array(self._raw_names(), dtype=object)
        return names[self._scaler.kept]

    @property
    def classes_(self) -> NDArray:
        """The classes that have a law each."""
        check_is_fitted(self)
        if not self.per_class:
            raise AttributeError("one law for all classes has no classes_")
        return self._classes

    def _fit_transform(self, X: Any, y: Any, lengths: Any) -> NDArray:
        self.model_ = clone(self.model)
        batch = self.model_.read(X, lengths, reset=True)
        self.n_features_in_ = self.model_.n_features_in_
        if y is None and not self.per_class:
            self._classes, codes = np.array(["all"]), np.zeros(len(batch), dtype=np.int64)
        else:
            self._classes, codes = check_sequence_labels(batch, y)
        self.laws_ = self._learn(batch, codes)
        raw = self._raw(batch)
        self._scaler = fit_scaler(raw, batch.sizes, self.scaling)
        return self._scaler(raw, batch.sizes)

    def _learn(self, batch: Any, codes: NDArray) -> list[Law]:
        if not self.per_class:
            return [self.model_.learn(batch)]
        return [self.model_.learn(batch.take(codes == c)) for c in range(len(self._classes))]

    def _raw(self, batch: Any) -> NDArray:
        """Scores before scaling, (n_sequences, n_laws * segments * n_scores)."""
        each = [
            type(self)._space(law, law.expect(batch, segments=self.segments, entropies=True,
                                              n_threads=self._n_threads))
            for law in self.laws_
        ]
        return np.concatenate([scores.reshape(len(batch), -1) for scores in each], axis=1)

    def _raw_names(self) -> list[str]:
        return _names(self._owners, self.segments, spaces.NAMES[type(self)._space](self.laws_[0]))

    @property
    def _owners(self) -> list[str]:
        return [f"{name}" for name in self._classes] if self.per_class else ["all"]

    @property
    def _n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def _sequence_tags(self) -> SequenceTags:
        values = self.model._sequence_tags().values
        return SequenceTags(labels="sequence", values=values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.per_class
        return tags


def _names(owners: Sequence[str], segments: int, names: Sequence[str]) -> list[str]:
    places = [""] if segments == 1 else [f"[{s}]" for s in range(segments)]
    return [f"{owner}{place}|{name}" for owner in owners for place in places for name in names]
