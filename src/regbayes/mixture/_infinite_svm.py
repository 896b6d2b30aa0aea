"""scikit-learn's side of the infinite SVM: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import Frame, ReportMixin, check_labelled_table, check_new_table
from regbayes.margin import average_scores
from regbayes.mixture import variational
from regbayes.priors import as_concentration_prior, gaussian_prior
from regbayes.priors.mean_field import make_prior

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")


class InfiniteSVM(ReportMixin, ClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """DP mixture of large-margin classifiers by variational inference: infinite SVM (iSVM).

    Each component is a Gaussian over the inputs and a linear classifier; the score of a class is
    the average of the components' scores, ``F(y, x) = sum_k r_k(x) mu_ky . x``, and the margin is
    asked of that average [1]_. :class:`GibbsInfiniteSVM` asks it of each component instead, and
    samples. Here one optimisation gives one classifier: faster, deterministic, no probabilities.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the margin against the likelihood. The hinge counts ``2 * C``, as in
        :class:`GibbsInfiniteSVM`.
    cost : float, default=1.0
        Cost of a wrong label: the margin that is asked for.
    alpha : float or (shape, rate), default=(1, 1)
        Concentration of the Dirichlet process: a number fixes it, a pair is a Gamma prior.
    max_components : int, default=20
        Truncation of the Dirichlet process; 1 is a linear SVM of Crammer and Singer.
    covariance : {"diag", "full"}, default="diag"
        Shape of a component.
    nu : float, default=1.0
        Scale of the weights, a priori N(0, nu^2).
    mean_strength : float, default=0.1
        How many points the prior of a component's mean counts for.
    covariance_df : float, default=None
        Degrees of freedom of a component's covariance prior for one feature; more is tighter.
    covariance_scale : float, default=1.0
        Expected variance of a component as a fraction of the data's.
    fit_intercept : bool, default=True
    max_iter : int, default=100
        At most this many rounds of updates.
    tol : float, default=1e-5
        Stop when a round lowers the objective by less than this fraction of it.
    n_init : int, default=1
        Starts, of which the one with the lowest objective is kept.
    random_state : int, RandomState, Generator or None
        Decides where the components start.
    verbose : bool or int, default=False
        Show a progress bar.
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_components_ : int
        Components that hold at least half a training row, in expectation.
    counts_ : ndarray of shape (max_components,)
        Expected training rows of each component.
    labels_ : ndarray of shape (n_samples,)
        The component that each training row most likely belongs to, its label known.
    weights_ : ndarray of shape (max_components, n_classes, n_features + fit_intercept)
        Expected weights, the intercept last, in the coordinates of the Notes.
    multipliers_ : ndarray of shape (n_samples, n_classes)
        Multipliers of the margin's constraints; a row of zeros is no support vector.
    objective_ : ndarray of shape ``(n_iter_ + 1,)``
        The objective at the start and after each round, never rising.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    Inputs are centred and divided by one number, their root mean square, so `C` and `nu` do not
    depend on the units of the table; columns in unlike units still want a `StandardScaler` first.

    In training the labels take part in the choice of components, for new rows they cannot. A low
    objective may therefore come from components that split the classes rather than the inputs,
    which does not help to predict: choose `max_components` and `C` by cross-validation.

    References
    ----------
    .. [1] Zhu, Chen & Xing (2011). Infinite SVM: a Dirichlet process mixture of large-margin
           kernel machines. ICML.
    .. [2] Blei & Jordan (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.mixture import InfiniteSVM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (40, 2)), rng.normal(4, 1, (40, 2))])
    >>> y = np.where((X[:, 0] > 0) == (X[:, 1] % 8 > 4), "in", "out")
    >>> model = InfiniteSVM(max_components=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.decision_function(X).shape
    (True, (80,))
    """

    _parameter_constraints: ClassVar[dict] = {
        "C": [_POSITIVE],
        "cost": [_POSITIVE],
        "alpha": [_POSITIVE, tuple, list],
        "max_components": [_COUNT],
        "covariance": [StrOptions({"full", "diag"})],
        "nu": [_POSITIVE],
        "mean_strength": [_POSITIVE],
        "covariance_df": [_POSITIVE, None],
        "covariance_scale": [_POSITIVE],
        "fit_intercept": ["boolean"],
        "max_iter": [_COUNT],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [_COUNT],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "checkpoint": chains.CHECKPOINT,
    }

    def __init__(
        self,
        C=1.0,
        cost=1.0,
        alpha=(1.0, 1.0),
        max_components=20,
        covariance="diag",
        *,
        nu=1.0,
        mean_strength=0.1,
        covariance_df=None,
        covariance_scale=1.0,
        fit_intercept=True,
        max_iter=100,
        tol=1e-5,
        n_init=1,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.C = C
        self.cost = cost
        self.alpha = alpha
        self.max_components = max_components
        self.covariance = covariance
        self.nu = nu
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Find components of the rows of `X` and a classifier for each, with a margin on average.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, two classes or more.

        Returns
        -------
        self
        """
        X, self.classes_, labels = check_labelled_table(self, X, y)
        self._frame = Frame.of(X)
        X = self._frame.enter(X)
        prior = gaussian_prior(
            X, self.covariance, self.mean_strength, self.covariance_df, self.covariance_scale
        )
        self._prior = make_prior(prior)
        model = variational.Model(
            *variational.make_inputs(X, self._prior, self.fit_intercept),
            labels,
            len(self.classes_),
            self._prior,
            as_concentration_prior(self.alpha, "alpha"),
            self.max_components,
            self.C,
            self.cost,
            self.nu,
        )
        with chains.watched(self, self.n_init) as watch:
            state, self.objective_, self.converged_ = chains.descend(
                partial(variational.init, model),
                partial(variational.step, model),
                partial(variational.objective, model),
                finish=partial(variational.finish, model),
                max_iter=self.max_iter,
                tol=self.tol,
                n_init=self.n_init,
                random_state=self.random_state,
                watch=watch,
            )
        self.n_iter_ = len(self.objective_) - 1
        self.counts_ = np.exp(state.log_r).sum(axis=0)
        self.n_components_ = int(np.sum(self.counts_ >= 0.5))
        self.labels_ = state.log_r.argmax(axis=1)
        self.weights_ = state.weights
        self.multipliers_ = state.multipliers
        self._sticks, self._gaussians = state.sticks, state.gaussians
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Scores of the classes, averaged over the components a row may belong to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Columns in the order of `classes_`; for two classes the second's minus the first's.
        """
        X1, log_r = self._place(X)
        scores = average_scores(X1, np.exp(log_r), self.weights_)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """The class with the largest score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def predict_component(self, X: Any) -> NDArray:
        """The component that a row most likely belongs to, whatever its label.

        Numbers agree with `labels_`, `counts_` and the rows of `weights_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        return self._place(X)[1].argmax(axis=1)

    def _place(self, X: Any) -> tuple[NDArray, NDArray]:
        """Inputs of the classifiers, and the log probabilities of the components."""
        check_is_fitted(self)
        X = self._frame.enter(check_new_table(self, X))
        blocks, X1 = variational.make_inputs(X, self._prior, self.fit_intercept)
        fit = variational.log_fit(blocks, self._sticks, self._gaussians)
        return X1, log_softmax(fit, axis=1)
