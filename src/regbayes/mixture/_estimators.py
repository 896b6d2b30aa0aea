"""scikit-learn's side of the sampled mixtures: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import Frame, ReportMixin, check_labelled_table, check_new_table
from regbayes.margin import GibbsClassifier, check_scale
from regbayes.mixture import gibbs
from regbayes.priors import as_concentration_prior, gaussian_prior

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")


class _SampledMixture(
    ReportMixin, chains.SamplerMixin, ClassifierMixin, CallbackSupportMixin, BaseEstimator
):
    """What GiSVM and dpMNL share: all but the label factor."""

    _parameter_constraints: ClassVar[dict] = {
        "alpha": [_POSITIVE, tuple, list],
        "max_components": [_COUNT, None],
        "covariance": [StrOptions({"full", "diag"})],
        "prediction": [StrOptions({"marginal", "iterated", "single"})],
        "nu": [_POSITIVE, tuple, list],
        "mean_strength": [_POSITIVE],
        "covariance_df": [_POSITIVE, None],
        "covariance_scale": [_POSITIVE],
        "fit_intercept": ["boolean"],
        "n_draws": [_COUNT],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [_COUNT],
        "n_chains": [_COUNT],
        "n_rounds": [_COUNT],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "warm_start": ["boolean"],
        "checkpoint": chains.CHECKPOINT,
    }

    def _classifier(self, n_classes: int, n_inputs: int) -> GibbsClassifier:
        raise TypeError(f"{type(self).__name__} has no label factor")

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Sample partitions of the rows of `X` and a classifier for every part.

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
        self._prior = gaussian_prior(
            X, self.covariance, self.mean_strength, self.covariance_df, self.covariance_scale
        )
        table = gibbs.make_table(X, labels, self._base, self.fit_intercept)
        self._label_model = self._classifier(len(self.classes_), table.X1.shape[1])
        model = gibbs.Model(
            table,
            self._base,
            self._label_model,
            as_concentration_prior(self.alpha, "alpha"),
            len(X) if self.max_components is None else self.max_components,
            weight_passes=getattr(self, "weight_passes", 1),
        )
        self._seed = chains.draw_seed(self.random_state, self.checkpoint)
        self.trace_ = chains.run_for(
            self,
            partial(gibbs.init, model),
            partial(gibbs.step, model),
            partial(gibbs.record, model),
            self._seed,
        )
        self.best_draw_ = self.trace_.typical("n_components")
        self.n_components_ = self.best_draw_["n_components"]
        self.labels_ = self.best_draw_["z"]
        return self

    def predict_proba(self, X: Any) -> NDArray:
        """Posterior vote shares of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; rows sum to one.
        """
        table = self._new_table(X)
        if self.prediction == "single":
            shares = self._votes(table, [self.trace_.chains[-1][-1]], n_rounds=1)
        elif self.prediction == "iterated":
            shares = self._votes(table, list(self.trace_), self.n_rounds)
        else:  # chain by chain, whatever n_jobs is, so that sums do not depend on it
            shares = sum(
                Parallel(n_jobs=self.n_jobs, backend="threading")(
                    delayed(gibbs.predict_marginal)(table, self._base, self._label_model, chain)
                    for chain in self.trace_.chains
                )
            )
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray:
        """The class with the largest vote share.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def predict_component(self, X: Any) -> NDArray:
        """The component of `best_draw_` that a row most likely belongs to, whatever its label.

        Numbers agree with `labels_` and with the rows of the arrays in `best_draw_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        table = self._new_table(X)
        return gibbs.most_likely_component(table, self._base, self._label_model, self.best_draw_)

    @property
    def _base(self) -> gibbs.Base:
        return gibbs.make_base(self._prior)

    def _new_table(self, X: Any) -> gibbs.Table:
        check_is_fitted(self)
        X = self._frame.enter(check_new_table(self, X))
        unknown = np.full(len(X), -1, dtype=np.int64)
        return gibbs.make_table(X, unknown, self._base, self.fit_intercept)

    def _votes(self, table: gibbs.Table, draws: list, n_rounds: int) -> NDArray:
        # The same stream at every call: predictions of a fitted model do not change.
        rng = np.random.default_rng([self._seed, 1])
        return gibbs.predict_iterated(table, self._base, self._label_model, draws, n_rounds, rng)


class GibbsInfiniteSVM(_SampledMixture):
    """DP mixture of max-margin classifiers, sampled: Gibbs infinite SVM (GiSVM).

    The rows are split into components, as many as the data ask for; each component is a Gaussian
    over the inputs and a linear max-margin classifier over the labels. Both decide who belongs
    where: posterior ∝ Dirichlet process × Gaussian likelihood × margin [1]_.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the margin against the likelihood.
    cost : float, default=1.0
        Cost of a wrong label: the margin that is asked for.
    alpha : float or (shape, rate), default=(1, 1)
        Concentration of the Dirichlet process: a number fixes it, a pair is a Gamma prior.
    max_components : int, default=None
        Upper limit on components; 1 is a plain Gibbs SVM.
    covariance : {"diag", "full"}, default="diag"
        Shape of a component.
    prediction : {"marginal", "iterated", "single"}, default="marginal"
        `"marginal"`: every draw votes, each component weighed by its exact posterior probability.
        `"iterated"`: the paper's alternation of component and answer, then a vote over draws.
        `"single"`: one Gibbs classifier, the last draw.
    pooling : {"partial", "none"}, default="partial"
        `"partial"`: the classifiers of the components scatter about shared weights, which also
        answer for inputs unlike any component. `"none"`: the paper's independent classifiers.
        The latter learns sub-populations by heart, and does worse than one component on rows
        from new ones: see the table by subject among the experiments.
    nu : float or (shape, rate), default=(1.0, 0.1)
        Scale of a component's weights about the shared ones: a number fixes it, a pair is a
        Gamma prior on the precision ``1 / nu**2``.
    shared_nu : float or (shape, rate), default=(1.0, 0.1)
        The same for the shared weights, when pooling is partial.
    mean_strength : float, default=0.1
        How many points the prior of a component's mean counts for.
    covariance_df : float, default=None
        Degrees of freedom of a component's covariance prior for one feature; more is tighter.
    covariance_scale : float, default=1.0
        Expected variance of a component as a fraction of the data's.
    fit_intercept : bool, default=True
    n_draws, burn_in, thin, n_chains : int
        Sweeps kept, thrown away, between two that are kept; independent chains, pooled.
    n_rounds : int, default=50
        Rounds of the iterated prediction.
    random_state : int, RandomState, Generator or None
    n_jobs : int, default=None
        Threads over chains; the result does not depend on it.
    verbose : bool or int, default=False
        Show a progress bar. Inside a Pipeline or a search there is none: set scikit-learn's
        `ProgressBar` on the outer estimator instead.
    callbacks : list of scikit-learn callbacks, default=None
    warm_start : bool, default=False
        Go on where the last fit with warm_start=True ended: `n_draws` more of the same chains.
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_components_ : int
        Posterior mode of the number of components.
    trace_ : regbayes.chains.Trace
        All draws; ``trace_["n_components"]``, ``trace_.to_arviz()``.
    best_draw_ : mapping
        The draw of highest joint density among those with `n_components_` components.
    labels_ : ndarray of shape (n_samples,)
        Components of the training rows in that draw.

    Notes
    -----
    Inputs are centred and divided by one number, their root mean square, so `C` and `nu` do not
    depend on the units of the table; columns in unlike units still want a `StandardScaler` first.

    References
    ----------
    .. [1] Zhang, Zhu & Zhang (2014). Max-margin infinite hidden Markov models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.mixture import GibbsInfiniteSVM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (40, 2)), rng.normal(4, 1, (40, 2))])
    >>> y = np.where((X[:, 0] > 0) == (X[:, 1] % 8 > 4), "in", "out")
    >>> model = GibbsInfiniteSVM(n_draws=50, burn_in=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.predict_proba(X).shape
    (True, (80, 2))
    """

    _parameter_constraints: ClassVar[dict] = {
        **_SampledMixture._parameter_constraints,
        "C": [_POSITIVE],
        "cost": [_POSITIVE],
        "pooling": [StrOptions({"partial", "none"})],
        "shared_nu": [_POSITIVE, tuple, list],
    }

    def __init__(
        self,
        C=1.0,
        cost=1.0,
        alpha=(1.0, 1.0),
        max_components=None,
        covariance="diag",
        prediction="marginal",
        *,
        pooling="partial",
        nu=(1.0, 0.1),
        shared_nu=(1.0, 0.1),
        mean_strength=0.1,
        covariance_df=None,
        covariance_scale=1.0,
        fit_intercept=True,
        n_draws=100,
        burn_in=100,
        thin=1,
        n_chains=2,
        n_rounds=50,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.C = C
        self.cost = cost
        self.alpha = alpha
        self.max_components = max_components
        self.covariance = covariance
        self.prediction = prediction
        self.pooling = pooling
        self.nu = nu
        self.shared_nu = shared_nu
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.fit_intercept = fit_intercept
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.n_rounds = n_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def _classifier(self, n_classes: int, n_inputs: int) -> GibbsClassifier:
        return GibbsClassifier(
            n_classes,
            n_inputs,
            self.C,
            self.cost,
            check_scale(self.nu, "nu"),
            check_scale(self.shared_nu, "shared_nu") if self.pooling == "partial" else None,
        )


class DPMultinomialLogit(_SampledMixture):
    """DP mixture of multinomial logits (dpMNL), sampled.

    As :class:`GibbsInfiniteSVM`, but a component's labels follow a softmax of its linear scores
    instead of a margin [1]_. Weights are drawn by elliptical slice sampling.

    Parameters
    ----------
    alpha : float or (shape, rate), default=(1, 1)
        Concentration of the Dirichlet process: a number fixes it, a pair is a Gamma prior.
    max_components : int, default=None
        Upper limit on components; 1 is a Bayesian multinomial logit.
    covariance : {"diag", "full"}, default="diag"
        Shape of a component. The original has independent inputs, `"diag"`.
    prediction : {"marginal", "iterated", "single"}, default="marginal"
        As in :class:`GibbsInfiniteSVM`.
    nu : float or (shape, rate), default=(1.0, 1.0)
        Scale of the weights; a pair is a Gamma prior on the precision ``1 / nu**2``.
    weight_passes : int, default=5
        Passes over the weights in a sweep; slices move less far than the margin's exact draws.
    mean_strength, covariance_df, covariance_scale, fit_intercept
        As in :class:`GibbsInfiniteSVM`.
    n_draws, burn_in, thin, n_chains, n_rounds, random_state, n_jobs, verbose, callbacks,
    warm_start, checkpoint
        As in :class:`GibbsInfiniteSVM`.

    Attributes
    ----------
    classes_, n_components_, trace_, best_draw_, labels_
        As in :class:`GibbsInfiniteSVM`.

    References
    ----------
    .. [1] Shahbaba & Neal (2009). Nonlinear models using Dirichlet process mixtures. JMLR 10.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from regbayes.mixture import DPMultinomialLogit
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DPMultinomialLogit(n_draws=50, burn_in=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **_SampledMixture._parameter_constraints,
        "weight_passes": [_COUNT],
    }

    def __init__(
        self,
        alpha=(1.0, 1.0),
        max_components=None,
        covariance="diag",
        prediction="marginal",
        *,
        nu=(1.0, 1.0),
        weight_passes=5,
        mean_strength=0.1,
        covariance_df=None,
        covariance_scale=1.0,
        fit_intercept=True,
        n_draws=100,
        burn_in=100,
        thin=1,
        n_chains=2,
        n_rounds=50,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.alpha = alpha
        self.max_components = max_components
        self.covariance = covariance
        self.prediction = prediction
        self.nu = nu
        self.weight_passes = weight_passes
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.fit_intercept = fit_intercept
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.n_rounds = n_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def _classifier(self, n_classes: int, n_inputs: int) -> GibbsClassifier:
        return GibbsClassifier(n_classes, n_inputs, nu=check_scale(self.nu, "nu"), softmax=True)
