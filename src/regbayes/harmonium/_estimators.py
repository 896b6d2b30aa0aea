"""scikit-learn's side of harmoniums: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from regbayes.data import check_numbers
from regbayes.harmonium._base import (
    COMMON,
    COUNT,
    INFINITE,
    MARGIN,
    NOT_NEGATIVE,
    POSITIVE,
    PRIORS,
    BaseHarmonium,
    FeatureClassifier,
    FeatureLearner,
    by_mini_batches,
)
from regbayes.harmonium.margins import InsensitiveMargin


class Harmonium(FeatureLearner):
    """Exponential family harmonium (EFH): features of tables, texts or several views.

    Hidden units and inputs form two layers that explain each other; binary units on binary inputs
    are a restricted Boltzmann machine. The views of an item share the units, so what is missing in
    one can be told from the others. Learnt by mean-field contrastive divergence [1]_.

    Parameters
    ----------
    n_units : int, default=50
        Hidden units. :class:`InfiniteHarmonium` finds their number.
    units : {"binary", "real"}, default="binary"
        Whether a feature is there or not, or a real number.
    visible : {"auto", "gaussian", "bernoulli", "count"} or dict of view to one, default="auto"
        Distribution of the inputs; "auto" is "bernoulli" for 0 and 1, else "gaussian". Columns of
        Gaussian views are standardised, but not centred if sparse. Counts are Poisson, given the
        total of a row.
    solver : {"adam", "lbfgs"}, default="adam"
        Mini-batches, or quasi-Newton on all rows as in the paper.
    max_iter : int, default=None
        Epochs, or rounds of L-BFGS. By default 2000 mini-batches, but 30 epochs at least; 50
        rounds.
    batch_size : int, default=None
        By default a tenth of the rows, from 20 to 200.
    learning_rate : float, default=0.003
        The first step of Adam; steps shorten linearly to nothing in `fit`, not in `partial_fit`.
    input_dropout : float, default=0.0
        Share of inputs that are left out at random in each mini-batch.
    weight_decay : float, default=0.0
        Ridge on the weights between inputs and units.
    learn_variance : bool, default=False
        Learn the variances of Gaussian views and real units, which are 1 otherwise.
    missing : {"error", "infer"}, default="error"
        "infer": NaN, and views absent in prediction, are inferred by mean field. To that end a
        fifth of the rows of each mini-batch learn without one of their views.
    early_stopping : bool, default=False
        Hold out a share of the rows, and keep the epoch that does best on it.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=10
        Epochs without progress on the share after which to stop.
    tol : float, default=1e-4
        L-BFGS stops when a round changes the objective by less than this fraction of it.
    random_state : int, RandomState, Generator or None
    verbose : bool or int, default=False
        Show a progress bar.
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        A folder in which `fit` keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    n_features_ : int
        Features in use.
    activations_ : ndarray of shape (`n_features_`,)
        Mean of each feature in the training data.
    objective_ : ndarray of shape ``(n_iter_ + 1,)``
        What is minimised, at the start and after each epoch, on 200 of the training rows; on all
        with L-BFGS.
    n_iter_ : int
    converged_ : bool
        Whether it stopped before `max_iter`.
    validation_losses_ : ndarray
        After each epoch, with `early_stopping`.

    References
    ----------
    .. [1] Welling, Rosen-Zvi & Hinton (2004). Exponential family harmoniums with an application to
           information retrieval. NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.harmonium import Harmonium
    >>> rng = np.random.default_rng(0)
    >>> stripes = np.repeat(rng.integers(2, size=(200, 4)), 5, axis=1)   # each bit five times
    >>> X = stripes ^ (rng.random(stripes.shape) < 0.05)                 # and noise
    >>> model = Harmonium(n_units=8, learning_rate=0.02, random_state=0).fit(X)
    >>> model.transform(X).shape
    (200, 8)
    >>> bool(np.mean((model.reconstruct(X) > 0.5) == stripes) > 0.97)
    True
    """

    _parameter_constraints: ClassVar[dict] = {"n_units": [COUNT], **COMMON}

    def __init__(
        self,
        n_units=50,
        *,
        units="binary",
        visible="auto",
        solver="adam",
        max_iter=None,
        batch_size=None,
        learning_rate=0.003,
        input_dropout=0.0,
        weight_decay=0.0,
        learn_variance=False,
        missing="error",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-4,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.n_units = n_units
        self.units = units
        self.visible = visible
        self.solver = solver
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.input_dropout = input_dropout
        self.weight_decay = weight_decay
        self.learn_variance = learn_variance
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint


class InfiniteHarmonium(FeatureLearner):
    """Infinite harmonium (iEFH): features whose number the data decide.

    Each item has some of the features of an Indian buffet process; those that no item needs are
    switched off [1]_.

    Parameters
    ----------
    max_features : int, default=200
        Truncation; the number found is `n_features_`.
    alpha : float, default=1.0
        Concentration: how many features an item has a priori. Smaller leaves fewer in use.
    prior : {"ibp", "beta-bernoulli"}, default="ibp"
        The Indian buffet by its sticks, or its finite relative, in which all features are alike.
    units, visible, solver, max_iter, batch_size, learning_rate, input_dropout, weight_decay
        As in :class:`Harmonium`.
    learn_variance, missing, early_stopping, validation_fraction, n_iter_no_change, tol
        As in :class:`Harmonium`.
    random_state, verbose, callbacks, checkpoint
        As in :class:`Harmonium`.

    Attributes
    ----------
    n_features_ : int
        Features in use, that is, which differ from item to item.
    activations_, objective_, n_iter_, converged_, validation_losses_
        As in :class:`Harmonium`.

    References
    ----------
    .. [1] Chen, Zhu, Sun & Zhang (2014). Learning harmonium models with infinite latent features.
           IEEE Transactions on Neural Networks and Learning Systems 25(3).

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.harmonium import InfiniteHarmonium
    >>> rng = np.random.default_rng(0)
    >>> stripes = np.repeat(rng.integers(2, size=(300, 4)), 5, axis=1)
    >>> model = InfiniteHarmonium(50, alpha=0.2, random_state=0).fit(stripes)
    >>> bool(4 <= model.n_features_ < 50)
    True
    """

    _parameter_constraints: ClassVar[dict] = {**INFINITE, **COMMON}

    def __init__(
        self,
        max_features=200,
        alpha=1.0,
        *,
        prior="ibp",
        units="binary",
        visible="auto",
        solver="adam",
        max_iter=None,
        batch_size=None,
        learning_rate=0.003,
        input_dropout=0.0,
        weight_decay=0.0,
        learn_variance=False,
        missing="error",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-4,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.max_features = max_features
        self.alpha = alpha
        self.prior = prior
        self.units = units
        self.visible = visible
        self.solver = solver
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.input_dropout = input_dropout
        self.weight_decay = weight_decay
        self.learn_variance = learn_variance
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint


class MaxMarginHarmonium(FeatureClassifier):
    """Max-margin harmonium (MMH): features that explain the inputs and tell classes apart.

    A :class:`Harmonium` whose expected features are also asked for a margin by a linear
    multi-class classifier [1]_. It is a classifier, and a transformer.

    Parameters
    ----------
    n_units : int, default=50
        Hidden units. :class:`InfiniteMaxMarginHarmonium` finds their number.
    C : float, default=100.0
        Weight of the margin against the contrastive divergence of an item, which grows with the
        number of inputs.
    cost : float, default=1.0
        Cost of a wrong label: the margin that is asked for.
    dropout : float, default=0.5
        Share of features that the classifier does without in each mini-batch.
    units, visible, solver, max_iter, batch_size, learning_rate, input_dropout, weight_decay
        As in :class:`Harmonium`.
    learn_variance, missing, early_stopping, validation_fraction, n_iter_no_change, tol
        As in :class:`Harmonium`; `early_stopping` looks at the share of wrong labels.
    random_state, verbose, callbacks, checkpoint
        As in :class:`Harmonium`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_activations_ : ndarray of shape (n_classes, `n_features_`)
        Mean of each feature in the training items of each class.
    n_features_, activations_, objective_, n_iter_, converged_, validation_losses_
        As in :class:`Harmonium`.

    References
    ----------
    .. [1] Chen, Zhu, Sun & Xing (2012). Large-margin predictive latent subspace learning for
           multiview data analysis. IEEE Transactions on Pattern Analysis and Machine
           Intelligence 34(12).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from regbayes.harmonium import MaxMarginHarmonium
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxMarginHarmonium(n_units=20, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.transform(X).shape
    (True, (150, 20))
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_units": [COUNT], "cost": [POSITIVE], **MARGIN, **COMMON,
    }  # fmt: skip

    def __init__(
        self,
        n_units=50,
        C=100.0,
        cost=1.0,
        *,
        dropout=0.5,
        units="binary",
        visible="auto",
        solver="adam",
        max_iter=None,
        batch_size=None,
        learning_rate=0.003,
        input_dropout=0.0,
        weight_decay=0.0,
        learn_variance=False,
        missing="error",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-4,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.n_units = n_units
        self.C = C
        self.cost = cost
        self.dropout = dropout
        self.units = units
        self.visible = visible
        self.solver = solver
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.input_dropout = input_dropout
        self.weight_decay = weight_decay
        self.learn_variance = learn_variance
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint


class InfiniteMaxMarginHarmonium(FeatureClassifier):
    """Infinite max-margin harmonium (iMMH): as many features as the classes and inputs ask for.

    posterior ∝ Indian buffet × harmonium × margin [1]_. A classifier, and a transformer.

    Parameters
    ----------
    max_features : int, default=200
        Truncation; the number found is `n_features_`.
    alpha : float, default=1.0
        Concentration: how many features an item has a priori. Smaller leaves fewer in use.
    C : float, default=100.0
        Weight of the margin against the contrastive divergence of an item, which grows with the
        number of inputs.
    cost : float, default=1.0
        Cost of a wrong label: the margin that is asked for.
    prior : {"ibp", "beta-bernoulli"}, default="ibp"
        The Indian buffet by its sticks, or its finite relative, in which all features are alike.
    dropout : float, default=0.5
        Share of features that the classifier does without in each mini-batch.
    units, visible, solver, max_iter, batch_size, learning_rate, input_dropout, weight_decay
        As in :class:`Harmonium`.
    learn_variance, missing, early_stopping, validation_fraction, n_iter_no_change, tol
        As in :class:`Harmonium`; `early_stopping` looks at the share of wrong labels.
    random_state, verbose, callbacks, checkpoint
        As in :class:`Harmonium`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_ : int
        Features in use, that is, which differ from item to item.
    class_activations_ : ndarray of shape (n_classes, `n_features_`)
        Mean of each feature in the training items of each class.
    activations_, objective_, n_iter_, converged_, validation_losses_
        As in :class:`Harmonium`.

    References
    ----------
    .. [1] Chen, Zhu, Sun & Zhang (2014). Learning harmonium models with infinite latent features.
           IEEE Transactions on Neural Networks and Learning Systems 25(3).

    Examples
    --------
    Images with tags, some of which have none:

    >>> import numpy as np
    >>> from regbayes.harmonium import InfiniteMaxMarginHarmonium
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=150)
    >>> image = rng.normal(size=(150, 6)) + 2 * np.eye(3, 6)[y]
    >>> tags = (rng.random((150, 4)) < 0.2 + 0.6 * np.eye(3, 4)[y]).astype(float)
    >>> tags[:50] = np.nan
    >>> X = {"image": image, "tags": tags}
    >>> model = InfiniteMaxMarginHarmonium(50, missing="infer", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    >>> model.predict({"image": image[:2]}).shape        # no tags at all
    (2,)
    """

    _parameter_constraints: ClassVar[dict] = {
        **INFINITE, "cost": [POSITIVE], **MARGIN, **COMMON,
    }  # fmt: skip

    def __init__(
        self,
        max_features=200,
        alpha=1.0,
        C=100.0,
        cost=1.0,
        *,
        prior="ibp",
        dropout=0.5,
        units="binary",
        visible="auto",
        solver="adam",
        max_iter=None,
        batch_size=None,
        learning_rate=0.003,
        input_dropout=0.0,
        weight_decay=0.0,
        learn_variance=False,
        missing="error",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-4,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.max_features = max_features
        self.alpha = alpha
        self.C = C
        self.cost = cost
        self.prior = prior
        self.dropout = dropout
        self.units = units
        self.visible = visible
        self.solver = solver
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.input_dropout = input_dropout
        self.weight_decay = weight_decay
        self.learn_variance = learn_variance
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint


class MaxMarginHarmoniumRegressor(RegressorMixin, BaseHarmonium):
    """Max-margin harmonium for numbers: features that explain the inputs and predict a target.

    As :class:`MaxMarginHarmonium`, or with a prior as :class:`InfiniteMaxMarginHarmonium`, with a
    margin about the target within which errors are free.

    Parameters
    ----------
    max_features : int, default=50
        Truncation, or the number of features if there is no prior.
    alpha : float, default=1.0
        Concentration: how many features an item has a priori. Smaller leaves fewer in use.
    C : float, default=100.0
        Weight of the margin against the contrastive divergence of an item.
    epsilon : float, default=0.1
        Errors below this many standard deviations of the target are free.
    prior : {"ibp", "beta-bernoulli", None}, default="ibp"
        The Indian buffet by its sticks, its finite relative, or all features always in use.
    dropout : float, default=0.0
        Share of features that the regression does without in each mini-batch.
    units, visible, solver, max_iter, batch_size, learning_rate, input_dropout, weight_decay
        As in :class:`Harmonium`.
    learn_variance, missing, early_stopping, validation_fraction, n_iter_no_change, tol
        As in :class:`Harmonium`; `early_stopping` looks at the mean loss.
    random_state, verbose, callbacks, checkpoint
        As in :class:`Harmonium`.

    Attributes
    ----------
    n_features_, activations_, objective_, n_iter_, converged_, validation_losses_
        As in :class:`InfiniteHarmonium`.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.harmonium import MaxMarginHarmoniumRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + np.abs(X[:, 1])
    >>> model = MaxMarginHarmoniumRegressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **INFINITE, "epsilon": [NOT_NEGATIVE], **MARGIN, **COMMON,
        "prior": [StrOptions(set(PRIORS)), None],
    }  # fmt: skip

    def __init__(
        self,
        max_features=50,
        alpha=1.0,
        C=100.0,
        epsilon=0.1,
        *,
        prior="ibp",
        dropout=0.0,
        units="binary",
        visible="auto",
        solver="adam",
        max_iter=None,
        batch_size=None,
        learning_rate=0.003,
        input_dropout=0.0,
        weight_decay=0.0,
        learn_variance=False,
        missing="error",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-4,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.max_features = max_features
        self.alpha = alpha
        self.C = C
        self.epsilon = epsilon
        self.prior = prior
        self.dropout = dropout
        self.units = units
        self.visible = visible
        self.solver = solver
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.input_dropout = input_dropout
        self.weight_decay = weight_decay
        self.learn_variance = learn_variance
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Learn features, and a regression on them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        rows = self._read(X)
        target = self._enter_target(check_numbers(self, X, y), first=True)
        return self._learn(rows, self._margin(), target)

    @available_if(by_mini_batches)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any) -> Any:
        """Go on learning: one epoch over these rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        first = not hasattr(self, "_state")
        rows = self._read(X, first)
        target = self._enter_target(check_numbers(self, X, y), first)
        return self._learn_more(rows, self._margin(), target, first)

    def predict(self, X: Any) -> NDArray:
        """The expected target.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_columns), dict of views, or Views

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)[:, 0] * self._spread + self._center

    def _margin(self) -> InsensitiveMargin:
        return InsensitiveMargin(float(self.C), float(self.epsilon))

    def _enter_target(self, y: NDArray, first: bool) -> NDArray:
        if first:
            self._center, self._spread = float(y.mean()), float(y.std()) or 1.0
        return ((y - self._center) / self._spread).astype(np.float32)
