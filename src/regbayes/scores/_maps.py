"""scikit-learn's side of the score spaces: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import SequenceMixin, SequenceTags, check_sequence_labels
from regbayes.scores import spaces
from regbayes.scores.protocol import Expected, Law
from regbayes.scores.scaling import Scaler, fit_scaler

_COUNT = Interval(Integral, 1, None, closed="left")
_IMPOSSIBLE = -100.0  # log p of a step in a sequence that a law rules out: odds are to be numbers


class _ScoreMap(SequenceMixin, TransformerMixin, BaseEstimator):
    """What the score maps share: a law for each class, or one for all; scores; their scaling."""

    _parameter_constraints: ClassVar[dict] = {
        "model": [HasMethods(["read", "learn"])],
        "per_class": ["boolean"],
        "segments": [_COUNT],
        "scaling": [StrOptions({"none", "length", "sqrt", "variance", "standard"})],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
    }
    _space: Callable

    def __init__(self, model, per_class=True, segments=1, *, scaling="sqrt", n_jobs=None):
        self.model = model
        self.per_class = per_class
        self.segments = segments
        self.scaling = scaling
        self.n_jobs = n_jobs

    @with_callbacks  # learnt maps have some
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

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: Any, y: Any = None, lengths: Any = None) -> NDArray:
        """Fit, and give the scores of the same sequences, found once."""
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
        if not self._needs_labels:
            raise AttributeError("one law for all classes has no classes_")
        return self._classes

    def _fit_transform(self, X: Any, y: Any, lengths: Any) -> NDArray:
        return self._scale(*self._begin(X, y, lengths))

    def _begin(self, X: Any, y: Any, lengths: Any = None) -> tuple[Any, NDArray]:
        """Read the samples and learn the laws; gives the batch and the codes of its labels."""
        model = clone(self.model)
        batch = model.read(X, lengths, reset=True)
        self.model_ = model
        if y is None and not self._needs_labels:
            self._classes, codes = np.array(["all"]), np.zeros(len(batch), dtype=np.int64)
        else:
            self._classes, codes = check_sequence_labels(batch, y)
        self.laws_ = self._learn(batch, codes)
        return batch, codes

    def _scale(self, batch: Any, codes: NDArray) -> NDArray:
        """The scores of the samples that the laws were learnt from; their scale is remembered."""
        self._remember(batch, codes)
        raw = self._raw(batch)
        self._scaler = self._fit_scaler(raw, batch.sizes)
        if not self._scaler.kept.any():
            raise ValueError(
                "no score varies: the training sequences are all alike to this model.\n"
                "To mend it: check that they differ, and use a model with more states or other "
                "features, for example SequenceFeatures(use='velocities')."
            )
        return self._scaler(raw, batch.sizes)

    def _learn(self, batch: Any, codes: NDArray) -> list[Law]:
        if not self.per_class:
            return [self.model_.learn(batch)]
        parts = [batch.take(codes == c) for c in range(len(self._classes))]
        shared = getattr(self.model_, "random_state", None)
        return chains.each(self.model_.learn, parts, self.n_jobs, shared)

    def _fit_scaler(self, raw: NDArray, sizes: NDArray) -> Scaler:
        return fit_scaler(raw, sizes, self.scaling)

    def _remember(self, batch: Any, codes: NDArray) -> None:
        """What a space needs to know of the training samples."""

    @property
    def _views(self) -> list[tuple[int, NDArray | None]]:
        """The laws that are asked, by index, and the tilt of each."""
        return [(i, None) for i in range(len(self.laws_))]

    def _expect(self, index: int, batch: Any, tilt: NDArray | None = None) -> Expected:
        """What a law makes of samples."""
        return self.laws_[index].expect(batch, tilt, self.segments, True, self._n_threads)

    def _scores(self, index: int, found: Expected) -> NDArray:
        """The scores of one law, (n_sequences, n_segments, n_scores)."""
        return self._space(self.laws_[index], found)

    def _raw(self, batch: Any) -> NDArray:
        """Scores before scaling, (n_sequences, n_laws * n_segments * n_scores)."""
        each = [self._scores(i, self._expect(i, batch, tilt)) for i, tilt in self._views]
        return np.concatenate([scores.reshape(len(batch), -1) for scores in each], axis=1)

    def _raw_names(self) -> list[str]:
        names = spaces.NAMES[self._space](self.laws_[0])
        return named(self._owners, self.segments, names)

    @property
    def n_features_in_(self) -> int:
        return self.model_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray:
        return self.model_.feature_names_in_

    @property
    def _needs_labels(self) -> bool:
        return self.per_class

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
        tags.target_tags.required = self._needs_labels
        return tags


def named(owners: Sequence[str], segments: int, names: Sequence[str]) -> list[str]:
    places = [""] if segments == 1 else [f"[{s}]" for s in range(segments)]
    return [f"{owner}{place}|{name}" for owner in owners for place in places for name in names]


class SufficientStatisticsScore(_ScoreMap):
    """Sufficient statistics score space (SS): what the hidden states of a sequence count.

    Expected first states, transitions and emissions of a hidden Markov model, with the entropy
    terms of its posterior [1]_: a fixed number of features for sequences of any length, to be read
    by a linear classifier.

    Parameters
    ----------
    model : CategoricalHMM, GaussianHMM or another model with `read` and `learn`
        Cloned, never changed.
    per_class : bool, default=True
        A law for every class, or one for all.
    segments : int, default=1
        Parts of equal length that every sequence is cut into; scores are summed in each. More of
        them tell where in a sequence something happens.
    scaling : {"none", "length", "sqrt", "variance", "standard"}, default="sqrt"
        Raw sums; divided by the length of the sequence; then the signed square root, which evens
        out frequent and rare events; or divided by the standard deviation over the training
        sequences; or first the root, then that. All but the first are centred, and of unit size.
    n_jobs : int, default=None
        Threads over sequences; the result does not depend on it.

    Attributes
    ----------
    laws_ : list
        The law of every class in the order of `classes_`, or one.
    classes_ : ndarray
        With ``per_class=True``.
    model_ : the model that reads sequences

    Notes
    -----
    Scores that do not vary in training are left out: `get_feature_names_out` says which are there.
    A class may have a single sequence: the priors of the model keep its law proper. Symbols that
    training did not have are an error or unobserved steps, by the model's `unknown`.

    References
    ----------
    .. [1] Li, Wang, Liu & Lee (2013). Learning discriminative sufficient statistics score space
           for classification. ECML PKDD.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import SufficientStatisticsScore
    >>> X = [list("aabaab"), list("aaabaa"), list("bbabb"), list("babbbbb")]
    >>> y = ["a", "a", "b", "b"]
    >>> scores = SufficientStatisticsScore(CategoricalHMM(n_states=2, random_state=0))
    >>> make_pipeline(scores, LinearSVC()).fit(X, y).predict([list("aaaabaaa")])
    array(['a'], dtype='<U1')
    >>> scores.fit(X, y).get_feature_names_out()[6]
    'a|0:a'
    """

    _space = staticmethod(spaces.sufficient_statistics)


class FreeEnergyScore(_ScoreMap):
    """Free energy score space (FESS): the terms of the log-likelihood, which they sum to [1]_.

    Parameters
    ----------
    model, per_class, segments, scaling, n_jobs
        As in :class:`SufficientStatisticsScore`.

    Attributes
    ----------
    laws_, classes_, model_
        As in :class:`SufficientStatisticsScore`.

    References
    ----------
    .. [1] Perina, Cristani, Castellani, Murino & Jojic (2009). Free energy score space. NIPS.

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import FreeEnergyScore
    >>> X = [list("aabaab"), list("aaabaa"), list("bbabb")]
    >>> model = CategoricalHMM(n_states=2, random_state=0)
    >>> scores = FreeEnergyScore(model, per_class=False, scaling="none").fit_transform(X)
    >>> bool(abs(scores.sum() - model.fit(X).score(X)) < 1e-9)
    True
    """

    _space = staticmethod(spaces.free_energy)


class FisherScore(_ScoreMap):
    """Fisher score (FS): the gradient of the log-likelihood in the parameters [1]_.

    Parameters
    ----------
    model, per_class, segments, scaling, n_jobs
        As in :class:`SufficientStatisticsScore`.

    Attributes
    ----------
    laws_, classes_, model_
        As in :class:`SufficientStatisticsScore`.

    Notes
    -----
    Probabilities count as theta / sum(theta), so that the gradient knows of the simplex; Gaussians
    are differentiated by means and (co)variances.

    References
    ----------
    .. [1] Jaakkola & Haussler (1999). Exploiting generative models in discriminative classifiers.
           NIPS.

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import FisherScore
    >>> X, y = [list("aabaab"), list("aaabaa"), list("bbabb"), list("bbb")], [0, 0, 1, 1]
    >>> FisherScore(CategoricalHMM(n_states=2, random_state=0)).fit_transform(X, y).shape
    (4, 20)
    """

    _space = staticmethod(spaces.fisher)


class PosteriorDivergenceScore(_ScoreMap):
    """Posterior divergence (PD): how a sequence would move the model, fit it, and how surely [1]_.

    Parameters
    ----------
    model, per_class, segments, scaling, n_jobs
        As in :class:`SufficientStatisticsScore`.

    Attributes
    ----------
    laws_, classes_, model_
        As in :class:`SufficientStatisticsScore`.

    Notes
    -----
    The three measures are the terms by which the bound on the log-likelihood of the training data
    changes when the sequence joins them and the parameters follow by one incremental M-step. This
    is our reading of [1]_, whose text we could not check.

    References
    ----------
    .. [1] Li, Lee & Liu (2011). Hybrid generative-discriminative classification using posterior
           divergence. CVPR.

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import PosteriorDivergenceScore
    >>> X, y = [list("aabaab"), list("aaabaa"), list("bbabb"), list("bbb")], [0, 0, 1, 1]
    >>> scores = PosteriorDivergenceScore(CategoricalHMM(n_states=2, random_state=0))
    >>> scores.fit(X, y).get_feature_names_out()[0]
    '0|moved(first:0)'
    """

    _space = staticmethod(spaces.posterior_divergence)

    def _remember(self, batch: Any, codes: NDArray) -> None:
        owners = codes if self.per_class else np.zeros_like(codes)
        self._totals = [
            self._expect(c, batch.take(owners == c)).statistics.sum(axis=(0, 1))
            for c in range(len(self.laws_))
        ]

    def _scores(self, index: int, found: Expected) -> NDArray:
        return self._space(self.laws_[index], found, self._totals[index])


class TOPScore(_ScoreMap):
    """Tangent vectors of posterior log-odds (TOP) [1]_.

    The log-odds of every class, and their gradient in the parameters of that class's law.

    Parameters
    ----------
    model, segments, scaling, n_jobs
        As in :class:`SufficientStatisticsScore`; there is a law for every class.

    Attributes
    ----------
    laws_, classes_, model_
        As in :class:`SufficientStatisticsScore`.

    Notes
    -----
    For two classes this spans the features of [1]_: the log-odds of the second class are minus
    those of the first, and so are their gradients. With more, the gradients by the other classes'
    parameters are left out: there would be a square of classes of them.

    References
    ----------
    .. [1] Tsuda, Kawanabe, Raetsch, Sonnenburg & Mueller (2002). A new discriminative kernel from
           probabilistic models. Neural Computation 14.

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import TOPScore
    >>> X, y = [list("aabaab"), list("aaabaa"), list("bbabb"), list("bbb")], [0, 0, 1, 1]
    >>> scores = TOPScore(CategoricalHMM(n_states=2, random_state=0)).fit(X, y)
    >>> scores.get_feature_names_out()[:2]
    array(['log-odds(0)', 'log-odds(1)'], dtype=object)
    """

    _space = staticmethod(spaces.fisher)

    per_class = True

    def __init__(self, model, segments=1, *, scaling="sqrt", n_jobs=None):
        self.model = model
        self.segments = segments
        self.scaling = scaling
        self.n_jobs = n_jobs

    def _remember(self, batch: Any, codes: NDArray) -> None:
        self._log_shares = np.log(np.bincount(codes) / len(codes))

    def _raw(self, batch: Any) -> NDArray:
        each = [self._expect(i, batch) for i in range(len(self.laws_))]
        likelihoods = np.column_stack([found.log_likelihoods for found in each])
        unlikely = _IMPOSSIBLE * batch.sizes[:, None]
        likelihoods = np.where(np.isneginf(likelihoods), unlikely, likelihoods)
        parts = [spaces.log_odds(likelihoods + self._log_shares)]
        for law, found in zip(self.laws_, each):
            parts.append(self._space(law, found).reshape(len(batch), -1))
        return np.concatenate(parts, axis=1)

    def _raw_names(self) -> list[str]:
        return [f"log-odds({name})" for name in self._owners] + super()._raw_names()
