"""What the estimators of harmoniums share: reading, learning, methods; no mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.model_selection import train_test_split
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import ReportMixin, ViewReader, ViewRows, check_class_labels
from regbayes.harmonium import energy, learning
from regbayes.harmonium.margins import Margin, MultiClassMargin
from regbayes.harmonium.units import UNITS, VIEWS
from regbayes.priors import BetaBernoulli, IndianBuffet

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")
PRIORS: dict[str, Any] = {"ibp": IndianBuffet, "beta-bernoulli": BetaBernoulli}

COMMON: dict[str, list] = {
    "units": [StrOptions(set(UNITS))],
    "visible": [StrOptions({"auto", *VIEWS}), Mapping],
    "solver": [StrOptions({"adam", "lbfgs"})],
    "max_iter": [COUNT, None],
    "batch_size": [COUNT, None],
    "learning_rate": [POSITIVE],
    "input_dropout": [SHARE],
    "weight_decay": [NOT_NEGATIVE],
    "learn_variance": ["boolean"],
    "missing": [StrOptions({"error", "infer"})],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [COUNT],
    "tol": [NOT_NEGATIVE],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    "callbacks": [list, tuple, None],
    "checkpoint": chains.CHECKPOINT,
}
INFINITE: dict[str, list] = {
    "max_features": [COUNT],
    "alpha": [POSITIVE],
    "prior": [StrOptions(set(PRIORS))],
}
MARGIN: dict[str, list] = {"C": [POSITIVE], "dropout": [SHARE]}


def make_settings(estimator: Any, n_rows: int) -> learning.Settings:
    """How to learn, by the estimator's parameters."""
    adam = getattr(estimator, "solver", "adam") == "adam"
    batch_size = estimator.batch_size or int(np.clip(n_rows // 10, 20, 200))
    n_batches = -(-n_rows // batch_size)
    prior = getattr(estimator, "prior", None)
    return learning.Settings(
        prior=None if prior is None else PRIORS[prior](estimator.alpha),
        batch_size=batch_size,
        learning_rate=estimator.learning_rate,
        max_iter=estimator.max_iter or (max(30, -(-2000 // n_batches)) if adam else 50),
        dropout=getattr(estimator, "dropout", 0.0),
        input_dropout=getattr(estimator, "input_dropout", 0.0),
        weight_decay=estimator.weight_decay,
        hide_views=0.2 if getattr(estimator, "missing", "error") == "infer" else 0.0,
        tol=None if adam else estimator.tol,
        patience=estimator.n_iter_no_change,
    )


def hold_out(n: int, labels: NDArray | None, share: float, seed: int) -> list[NDArray]:
    """Rows to learn from and rows held out, by class if there are labels."""
    try:
        return train_test_split(
            np.arange(n),
            test_size=share,
            stratify=labels,
            random_state=int(chains.streams(seed, 2)[1].integers(2**31)),
        )
    except ValueError as error:
        raise ValueError(
            f"{error}\nTo mend it: the share held out needs rows of every class; raise "
            "validation_fraction, or set early_stopping=False."
        ) from error


def by_mini_batches(estimator: Any) -> bool:
    """Whether there is a `partial_fit`."""
    if estimator.solver != "adam":
        raise AttributeError('partial_fit goes on by mini-batches: set solver="adam".')
    return True


class BaseHarmonium(
    ReportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    """What all harmoniums share: reading views, learning, features, reconstructions, samples."""

    @property
    def _width(self) -> int:
        """Units, or the truncation."""
        return self.max_features if hasattr(self, "max_features") else self.n_units

    def _read(self, X: Any, first: bool = True) -> ViewRows:
        if not first:
            return self._reader.read(self, X)
        reader, rows = ViewReader.learn(self, X, self.visible, self.missing)
        self._reader: ViewReader = reader
        return rows

    def _make_model(self, margin: Margin | None) -> energy.Model:
        views = tuple(VIEWS[kind] for kind in self._reader.kinds)
        return energy.Model(views, UNITS[self.units], margin, self.learn_variance)

    def _learn(self, rows: ViewRows, margin: Margin | None, target: NDArray | None) -> Any:
        self._model = self._make_model(margin)
        seed = chains.draw_seed(self.random_state, self.checkpoint)
        learnt_from, held_out, taught = rows, None, target
        if self.early_stopping:
            labels = target if isinstance(margin, MultiClassMargin) else None
            ours, theirs = hold_out(rows.n, labels, self.validation_fraction, seed)
            learnt_from = rows.take(ours)
            if target is not None:
                taught = target[ours]
            held_out = rows.take(theirs), None if target is None else target[theirs]
        task = learning.Lesson(
            self._model,
            make_settings(self, learnt_from.n),
            learnt_from,
            taught,
            self._width,
            self.solver,
            held_out,
        )
        with chains.watched(self, 1) as watch:
            learnt = learning.learn(task, seed, watch)
        self._rng = chains.streams(seed, 3)[2]  # for partial_fit
        self._state = learnt.state
        self.objective_ = learnt.objective
        self.n_iter_ = len(learnt.objective) - 1
        self.converged_ = learnt.converged
        if self.early_stopping:
            self.validation_losses_ = learnt.validation
        return self._finish(rows, target)

    def _learn_more(
        self, rows: ViewRows, margin: Margin | None, target: NDArray | None, first: bool
    ) -> Any:
        self._model = self._make_model(margin)
        settings = make_settings(self, rows.n)
        if first:
            self._rng = chains.streams(self.random_state, 1)[0]
            self._state = learning.init(
                self._model, settings, rows, self._width, np.float32, self._rng
            )
            self.n_iter_ = 0
        self._state = learning.go_on(self._model, settings, self._state, rows, target, self._rng)
        self.n_iter_ += 1
        return self._finish(rows, target)

    def _finish(self, rows: ViewRows, target: NDArray | None) -> Any:
        """Switch unused features off, and tell what the others do."""
        found = learning.finish(self._model, self._state, rows)
        features = found.features
        self._keep(found.params, found.log_odds, found.spreads, features.mean(axis=0))
        if isinstance(self._model.margin, MultiClassMargin):
            members = np.eye(self._model.margin.n_outputs)[target]
            with np.errstate(invalid="ignore"):  # a class that partial_fit has not seen yet: NaN
                self.class_activations_ = members.T @ features / members.sum(axis=0)[:, None]
        return self

    def _keep(self, params: Any, log_odds: Any, spreads: Any, activations: NDArray) -> None:
        self._params, self._log_odds, self._spreads = params, log_odds, spreads
        self.n_features_ = self._n_features_out = len(activations)
        self.activations_ = activations

    def _features(self, X: Any) -> NDArray:
        check_is_fitted(self)
        rows = self._reader.read(self, X)
        return learning.transform(self._model, self._params, self._log_odds, rows)

    def _scores(self, X: Any) -> NDArray:
        return self._features(X) @ self._params.mu + self._params.intercept

    def transform(self, X: Any) -> NDArray:
        """Expected features of the items.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views

        Returns
        -------
        ndarray of shape (n_samples, `n_features_`)
        """
        return self._features(X)

    def reconstruct(self, X: Any) -> Any:
        """What the features of the items say about their inputs; fills gaps too.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
            With ``missing="infer"`` views may be absent and values NaN.

        Returns
        -------
        ndarray, or dict of name to ndarray
            Expected inputs, all views of them, dense, in the units of the training data.
        """
        check_is_fitted(self)
        rows = self._reader.read(self, X)
        means = learning.reconstruct(self._model, self._params, self._log_odds, rows)
        return self._reader.leave(means)

    def sample(self, n_samples: int = 1, *, n_steps: int = 200, random_state: Any = None) -> Any:
        """Items that the model makes up, by Gibbs sampling from the mean of the training data.

        Parameters
        ----------
        n_samples : int, default=1
        n_steps : int, default=200
            Sweeps of the chain of each item.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        ndarray, or dict of name to ndarray
        """
        check_is_fitted(self)
        rng = chains.streams(random_state, 1)[0]
        usual, totals = self._reader.means, self._reader.usual_totals(n_samples)
        views = learning.sample(
            self._model, self._params, self._log_odds, usual, totals, n_samples, n_steps, rng
        )
        return self._reader.leave(views)

    def top_inputs(self, k: int = 10, names: Any = None) -> Any:
        """The inputs that turn each feature on most strongly.

        Weights count by how much their input varies in the training data: a word that hardly
        occurs explains no feature, whatever its weight.

        Parameters
        ----------
        k : int, default=10
        names : sequence of str, or dict of view to sequence of str, default=None
            Names of the columns; by default those of the training DataFrame, or numbers.

        Returns
        -------
        list of lists, or dict of name to list of lists
            For each feature, `k` inputs, the strongest first; for every view if there are several.
        """
        check_is_fitted(self)
        found = {}
        for view, W, spread in zip(self._reader.names, self._params.weights, self._spreads):
            order = np.argsort(-(W * spread[:, None]), axis=0, kind="stable")[:k].T
            given = names.get(view) if isinstance(names, Mapping) else names
            if given is None and self._reader.plain:
                given = getattr(self, "feature_names_in_", None)
            if given is not None:
                order = np.asarray(given)[order]
            found[view] = order.tolist()
        return found[self._reader.names[0]] if self._reader.plain else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "infer"
        return tags


class FeatureLearner(BaseHarmonium):
    """fit and partial_fit without labels."""

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn features.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
        y : ignored

        Returns
        -------
        self
        """
        return self._learn(self._read(X), None, None)

    @available_if(by_mini_batches)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Go on learning: one epoch over these rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
        y : ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "_state")
        return self._learn_more(self._read(X, first), None, None, first)


class FeatureClassifier(ClassifierMixin, BaseHarmonium):
    """fit, partial_fit and predict with classes."""

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Learn features, and a classifier on them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
        y : array-like of shape (n_samples,)
            Labels of any type, two classes or more.

        Returns
        -------
        self
        """
        rows = self._read(X)
        self.classes_, labels = check_class_labels(self, X, y)
        return self._learn(rows, self._margin(), labels)

    @available_if(by_mini_batches)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Go on learning: one epoch over these rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
        y : array-like of shape (n_samples,)
        classes : array-like, default=None
            All classes there will be; asked for at the first call only.

        Returns
        -------
        self
        """
        first = not hasattr(self, "_state")
        rows = self._read(X, first)
        if first and classes is not None:
            self.classes_ = np.unique(classes)
        known = None if first and classes is None else self.classes_
        self.classes_, labels = check_class_labels(self, X, y, known)
        return self._learn_more(rows, self._margin(), labels, first)

    def _margin(self) -> Margin:
        return MultiClassMargin(len(self.classes_), float(self.C), float(self.cost))

    def decision_function(self, X: Any) -> NDArray:
        """Scores of the classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Columns in the order of `classes_`; for two classes the second's minus the first's.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """The class with the largest score.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]
