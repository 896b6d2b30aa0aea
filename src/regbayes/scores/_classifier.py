"""A classifier of whole sequences that makes its own choices."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from itertools import groupby, product
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import (
    ReportMixin,
    SequenceFeatures,
    SequenceMixin,
    Sequences,
    SequenceTags,
    check_sequence_labels,
    check_sequences,
)
from regbayes.hmm import CategoricalHMM, GaussianHMM
from regbayes.scores._maps import SufficientStatisticsScore
from regbayes.scores._margin_classifier import MarginClassifier
from regbayes.scores._max_margin import MaxMarginScore
from regbayes.scores._preprocessed import Preprocessed

_COUNT = Interval(Integral, 1, None, closed="left")


class MaxMarginScoreClassifier(ReportMixin, SequenceMixin, ClassifierMixin, BaseEstimator):
    """Classify whole sequences: a score space learnt with a margin, and a classifier on it.

    What is not given is chosen by cross-validation inside the training data: first the model and
    the segments, and the classifier and its weight, with plain scores, which are cheap; then
    whether learning the scores with a margin helps.

    Parameters
    ----------
    model : model with `read` and `learn`, list of them, or None, default=None
        Those to choose from, such as ``[CategoricalHMM(3), CategoricalHMM(8)]`` or
        :class:`Preprocessed` ones. None: finite HMMs of symbols, or Gaussian ones of real
        sequences, by what X is.
    segments : int or sequence of int, default=(1, 6)
        Those to choose from, see :class:`SufficientStatisticsScore`.
    per_class : bool, default=True
        A law for every class, or one for all.
    scaling : str or sequence of str, default="sqrt"
        Those to choose from.
    learn : {"auto", "always", "never"}, default="auto"
        Whether the scores are learnt with a margin: if it helps, always or never.
    solver : {"gradient", "em"}, default="gradient"
        See :class:`MaxMarginScore`.
    classifier : classifier with a parameter `C`, list of them, or None, default=None
        Those to choose from, on the scores: None is the paper's Eq. 22
        (:class:`MarginClassifier`); any SVM of scikit-learn will do, such as
        ``[MarginClassifier(), SVC()]``.
    C : float or sequence of float, default=(3, 10, 30, 100)
        Their weights to choose from.
    cv : int, default=3
        Folds.
    random_state : int, RandomState, Generator or None
    n_jobs : int, default=None
        Threads over sequences; the result does not depend on it.
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what cross-validation has found, to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    scores_ : SufficientStatisticsScore or MaxMarginScore
        The score map.
    classifier_ : classifier
    chosen_ : dict
        What was chosen, and the accuracy it had in cross-validation; None where there was nothing
        to choose, or too little to choose by.

    Notes
    -----
    A class needs two sequences for cross-validation; with a single one the first of every list is
    taken, and ``learn="auto"`` does not learn.

    Examples
    --------
    >>> from regbayes.scores import MaxMarginScoreClassifier
    >>> X = [list("aabaab"), list("aaabaa"), list("bbabb"), list("babbbbb")]
    >>> y = ["a", "a", "b", "b"]
    >>> model = MaxMarginScoreClassifier(cv=2, random_state=0).fit(X, y)
    >>> model.predict([list("aaaabaaa")])
    array(['a'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[dict] = {
        "model": [HasMethods(["read", "learn"]), list, tuple, None],
        "segments": [_COUNT, list, tuple],
        "per_class": ["boolean"],
        "scaling": [str, list, tuple],
        "learn": [StrOptions({"auto", "always", "never"})],
        "solver": [StrOptions({"gradient", "em"})],
        "classifier": [HasMethods(["fit", "predict"]), list, tuple, None],
        "C": [Interval(Integral, 0, None, closed="neither"), float, list, tuple],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
        "checkpoint": chains.CHECKPOINT,
    }

    def __init__(
        self,
        model=None,
        segments=(1, 6),
        per_class=True,
        *,
        scaling="sqrt",
        learn="auto",
        solver="gradient",
        classifier=None,
        C=(3, 10, 30, 100),
        cv=3,
        random_state=None,
        n_jobs=None,
        checkpoint=None,
    ):
        self.model = model
        self.segments = segments
        self.per_class = per_class
        self.scaling = scaling
        self.learn = learn
        self.solver = solver
        self.classifier = classifier
        self.C = C
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> MaxMarginScoreClassifier:
        """Choose, and fit what was chosen to all sequences.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : array-like of shape (n_sequences,)
            A label for every sequence.
        lengths : array-like of int, optional

        Returns
        -------
        self
        """
        sequences = _apart(self, X, lengths)
        self.classes_, codes = check_sequence_labels(sequences.batch, y)
        labels = self.classes_[codes]
        seed = chains.draw_seed(self.random_state, self.checkpoint)
        self._seed = seed % 2**31
        folds = self._folds(codes)
        maps, heads = list(self._maps(sequences.kind)), self._heads()
        for one in maps:
            one._validate_params()
        watch = chains.Watch(self, checkpoint=self.checkpoint)
        ask = watch.replay(sequences.batch, codes, seed=seed)
        search = _Search(self, sequences.parts, labels, folds, ask)
        best, head, accuracy = search.best(maps, heads)
        if self.learn == "always":
            best = self._learnt(best)
        elif self.learn == "auto" and accuracy < 1:
            found = search.best([self._learnt(best)], heads)
            if found[2] > accuracy:
                best, head, accuracy = found
        ask.keep()
        self.scores_ = clone(best)
        features = self.scores_.fit_transform(sequences.parts, labels)
        self.classifier_ = clone(head).fit(features, labels)
        self.chosen_ = {
            "model": best.model,
            "segments": best.segments,
            "scaling": best.scaling,
            "learnt": isinstance(best, MaxMarginScore),
            "classifier": head,
            "C": head.C,
            "accuracy": None if np.isnan(accuracy) else accuracy,
        }
        return self

    def transform(self, X: Any, lengths: Any = None) -> NDArray:
        """The scores of sequences: what the classifier sees.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences, n_scores)
        """
        check_is_fitted(self)
        return self.scores_.transform(_apart(self, X, lengths, reset=False).parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names of the scores, see :meth:`SufficientStatisticsScore.get_feature_names_out`."""
        check_is_fitted(self)
        return self.scores_.get_feature_names_out()

    def decision_function(self, X: Any, lengths: Any = None) -> NDArray:
        """The classifier's scores of the classes."""
        features = self.transform(X, lengths)
        return self.classifier_.decision_function(features)

    def predict(self, X: Any, lengths: Any = None) -> NDArray:
        """The class of every sequence.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        features = self.transform(X, lengths)
        return self.classifier_.predict(features)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Share of sequences that are classified right."""
        check_is_fitted(self)
        sequences = _apart(self, X, lengths, reset=False)
        _, truth = check_sequence_labels(sequences.batch, y, classes=self.classes_)
        answers = self.classifier_.predict(self.scores_.transform(sequences.parts))
        return float(np.mean(np.searchsorted(self.classes_, answers) == truth))

    def _sequence_tags(self) -> SequenceTags:
        models = [] if self.model is None else _as_list(self.model)
        values: Any = models[0]._sequence_tags().values if models else "continuous"
        return SequenceTags(labels="sequence", values=values)

    def _folds(self, codes: NDArray) -> list[tuple[NDArray, NDArray]]:
        n_folds = min(self.cv, np.bincount(codes).min())
        if n_folds < 2:
            return []
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=self._seed)
        return list(folds.split(codes, codes))

    def _maps(self, kind: str) -> Iterator[SufficientStatisticsScore]:
        models = _default_models(kind, self._seed) if self.model is None else self.model
        for model, segments, scaling in product(
            _as_list(models), _as_list(self.segments), _as_list(self.scaling)
        ):
            yield SufficientStatisticsScore(
                model, self.per_class, segments, scaling=scaling, n_jobs=self.n_jobs
            )

    def _learnt(self, plain: SufficientStatisticsScore) -> MaxMarginScore:
        # A few rounds, whose use our own folds tell: no need for others inside.
        few = {"n_iter": 40, "n_splits": 0} if self.solver == "gradient" else {}
        return MaxMarginScore(
            plain.model,
            plain.per_class,
            plain.segments,
            scaling=plain.scaling,
            solver=self.solver,
            **few,
            random_state=self._seed,
            n_jobs=self.n_jobs,
        )

    def _heads(self) -> list:
        kinds = [MarginClassifier()] if self.classifier is None else _as_list(self.classifier)
        return [clone(kind).set_params(C=C) for kind, C in product(kinds, _as_list(self.C))]


class _Search:
    """Accuracies by cross-validation; a map is fitted once for all classifiers on it."""

    def __init__(self, owner: Any, X: list, labels: NDArray, folds: list, ask: Any) -> None:
        self.owner, self.X, self.labels, self.folds, self.ask = owner, X, labels, folds, ask

    def best(self, maps: list, heads: list) -> tuple[Any, Any, float]:
        """The map and the classifier of highest accuracy; the first of equals."""
        if not self.folds:
            return maps[0], heads[0], np.nan
        if len(maps) * len(heads) == 1 and self.owner.learn != "auto":
            return maps[0], heads[0], np.nan
        # Maps of one model differ in how they read its laws, and share them.
        groups = [list(same) for _, same in groupby(maps, key=lambda one: id(one.model))]
        table = np.concatenate([self._accuracies(group, heads) for group in groups])
        at = np.unravel_index(table.argmax(), table.shape)
        return maps[at[0]], heads[at[1]], float(table[at])

    def _accuracies(self, maps: list, heads: list) -> NDArray:
        of_fold = partial(_fold_accuracies, maps, heads, self.X, self.labels)
        found = self.ask(partial(chains.each, of_fold, self.folds, self.owner.n_jobs))
        return sum(found) / len(self.folds)


def _fold_accuracies(
    maps: list, heads: list, X: list, labels: NDArray, fold: tuple[NDArray, NDArray]
) -> NDArray:
    rest, held_out = fold
    first = clone(maps[0])
    begun = first._begin([X[i] for i in rest], labels[rest])
    right = np.empty((len(maps), len(heads)))
    for row, one in zip(right, maps):
        scores = copy(first).set_params(segments=one.segments, scaling=one.scaling)
        here = scores._scale(*begun)
        there = scores.transform([X[i] for i in held_out])
        start = MarginClassifier(warm_start=True)  # from one weight's result to the next
        for i, head in enumerate(heads):
            same = isinstance(head, MarginClassifier)
            fitted = (start.set_params(C=head.C) if same else clone(head)).fit(here, labels[rest])
            row[i] = accuracy_score(labels[held_out], fitted.predict(there))
    return right


class _Apart(NamedTuple):
    """Sequences as a list, whatever the layout, and what kind they are."""

    batch: Sequences
    parts: list[NDArray]
    kind: str


def _apart(estimator: Any, X: Any, lengths: Any, reset: bool = True) -> _Apart:
    kind = _kind(estimator, X) if reset else estimator._kind
    if reset:
        estimator._kind = kind
    batch = check_sequences(estimator, X, lengths, values=kind, reset=reset)
    values = batch.values
    if batch.categories is not None:
        symbols = np.array([*batch.categories, None], dtype=object)  # -1 is the last: unobserved
        values = symbols[values]
    return _Apart(batch, np.split(values, batch.starts[1:-1]), kind)


def _kind(estimator: Any, X: Any) -> Any:
    if estimator.model is not None:
        return estimator._sequence_tags().values
    if hasattr(X, "drop"):  # a data frame; its ids are no values
        X = X.drop(columns="sequence_id", errors="ignore")
    kind = _first_value(X).dtype.kind
    return "categorical" if kind in "OUSb" else "continuous"


def _first_value(X: Any) -> NDArray:
    """The first value that is not missing, as an array."""
    parts = X if isinstance(X, (list, tuple)) else [X]
    for part in parts:
        flat = np.ravel(np.asarray(part, dtype=object))
        seen = [value for value in flat[:1000] if value is not None and value == value]
        if seen:
            return np.asarray(seen[0])
    return np.asarray(np.nan)


def _default_models(kind: str, random_state: int) -> list:
    if kind == "categorical":
        return [
            CategoricalHMM(n, unknown="missing", n_iter=50, tol=1e-4, random_state=random_state)
            for n in (2, 6)
        ]
    views: list[tuple[Any, str]] = [
        ("positions", "full"),
        ("velocities", "diag"),
        ("both", "diag"),
    ]
    return [
        Preprocessed(
            SequenceFeatures(use=use),
            GaussianHMM(4, covariance, n_iter=50, tol=1e-4, random_state=random_state),
        )
        for use, covariance in views
    ]


def _as_list(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]
