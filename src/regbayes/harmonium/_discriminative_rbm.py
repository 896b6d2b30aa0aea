"""scikit-learn's side of the discriminative RBM: parameters, validation, no mathematics."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import ViewReader, check_class_labels
from regbayes.harmonium import discriminative, learning
from regbayes.harmonium._base import COMMON, COUNT, NOT_NEGATIVE, hold_out, make_settings
from regbayes.harmonium.units import VIEWS


class DiscriminativeRBM(ClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """Restricted Boltzmann machine of inputs and labels, learnt to predict the labels.

    The conditional law of the label is exact, and so is its gradient [1]_. `generative` adds the
    contrastive divergence of inputs and labels together, the hybrid of the paper.

    Parameters
    ----------
    n_units : int, default=50
    generative : float, default=0.0
        Weight of the joint model against the conditional likelihood; 0 is purely discriminative.
    visible : {"auto", "gaussian", "bernoulli", "count"}, default="auto"
        As in :class:`Harmonium`.
    max_iter : int, default=None
        Epochs. By default 2000 mini-batches, but 30 epochs at least.
    batch_size : int, default=None
        By default a tenth of the rows, from 20 to 200.
    learning_rate : float, default=0.003
        The first step of Adam; steps shorten linearly to nothing.
    weight_decay : float, default=0.0
        Ridge on the weights between inputs, labels and units.
    early_stopping : bool, default=False
        Hold out a share of the rows, and keep the epoch that does best on it.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=10
        Epochs without progress on the share after which to stop.
    random_state : int, RandomState, Generator or None
    verbose : bool or int, default=False
        Show a progress bar.
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        As in :class:`Harmonium`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
    objective_ : ndarray of shape ``(n_iter_ + 1,)``
        Mean of ``-log p(y | x)`` of 200 training rows, at the start and after each epoch.
    validation_losses_ : ndarray
        Share of wrong labels after each epoch, with `early_stopping`.

    References
    ----------
    .. [1] Larochelle & Bengio (2008). Classification using discriminative restricted Boltzmann
           machines. ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from regbayes.harmonium import DiscriminativeRBM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DiscriminativeRBM(10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.predict_proba(X).shape
    (True, (150, 3))
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_units": [COUNT],
        "generative": [NOT_NEGATIVE],
        **{
            name: COMMON[name]
            for name in (
                "visible", "max_iter", "batch_size", "learning_rate", "weight_decay",
                "early_stopping", "validation_fraction", "n_iter_no_change", "random_state",
                "verbose", "callbacks", "checkpoint",
            )
        },
    }  # fmt: skip

    def __init__(
        self,
        n_units=50,
        generative=0.0,
        *,
        visible="auto",
        max_iter=None,
        batch_size=None,
        learning_rate=0.003,
        weight_decay=0.0,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.n_units = n_units
        self.generative = generative
        self.visible = visible
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Learn to predict the labels of the rows of `X`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, two classes or more.

        Returns
        -------
        self
        """
        self._reader, rows = ViewReader.learn(self, X, self.visible, "error")
        self.classes_, labels = check_class_labels(self, X, y)
        if not self._reader.plain:
            raise ValueError(
                "DiscriminativeRBM reads one table.\nTo mend it: put the views side by side, or "
                "take MaxMarginHarmonium."
            )
        seed = chains.draw_seed(self.random_state, self.checkpoint)
        (x,), taught, held_out = rows.arrays, labels, None
        if self.early_stopping:
            ours, theirs = hold_out(rows.n, labels, self.validation_fraction, seed)
            held_out = x[theirs], labels[theirs]
            x, taught = x[ours], labels[ours]
        task = discriminative.Lesson(
            VIEWS[self._reader.kinds[0]],
            make_settings(self, len(taught)),
            x,
            rows.usual[0],
            taught,
            len(self.classes_),
            self.n_units,
            float(self.generative),
            held_out,
        )
        with chains.watched(self, 1) as watch:
            learnt = learning.learn(task, seed, watch)
        params = learnt.state.params
        self._params = params.like([array.astype(np.float64) for array in params])
        self.n_iter_ = len(learnt.objective) - 1
        self.objective_ = learnt.objective
        if self.early_stopping:
            self.validation_losses_ = learnt.validation
        return self

    def predict_proba(self, X: Any) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        (x,) = self._reader.read(self, X).arrays
        return np.exp(discriminative.log_posteriors(self._params, x))

    def predict(self, X: Any) -> NDArray:
        """The likeliest class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
