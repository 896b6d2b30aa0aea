"""scikit-learn's side of the Markov-switching MED: parameters, validation, no mathematics."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import (
    Frame,
    ReportMixin,
    SequenceMixin,
    Sequences,
    SequenceTags,
    check_sequences,
    check_step_labels,
)
from regbayes.hmm import variational
from regbayes.hmm._step_labeller import StepLabeller
from regbayes.hmm.emissions import COVARIANCES
from regbayes.priors import StickBreaking, as_concentration_prior, gaussian_prior
from regbayes.priors.mean_field import Gaussians, make_prior

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")


class MarkovSwitchingMED(
    ReportMixin, StepLabeller, SequenceMixin, CallbackSupportMixin, BaseEstimator
):
    """Infinite Markov-switching maximum entropy discrimination machine (iM2EDM).

    Labels every step of a sequence. Hidden states follow a Markov chain and each has a linear
    classifier; the score of a class is the average of the states' scores, ``F(y, x_t) = sum_k
    q(z_t = k) mu_ky . x_t``, and the margin is asked of that average [1]_. It is the infinite SVM
    (:class:`regbayes.mixture.InfiniteSVM`) for sequences, by variational inference: one
    optimisation gives one classifier, deterministic and without probabilities.
    :class:`MaxMarginInfiniteHMM` asks the margin of each state instead, and samples.

    Parameters
    ----------
    max_states : int, default=10
        Truncation of the number of states; 1 is a linear SVM of Crammer and Singer.
    C : float, default=1.0
        Weight of the margin against the likelihood. The hinge counts ``2 * C``, as in
        :class:`MaxMarginInfiniteHMM`.
    cost : float, default=1.0
        Cost of a wrong label: the margin that is asked for.
    alpha : float or (shape, rate), default=(1, 1)
        Concentration of the rows of the transition matrix: a number fixes it, a pair is a Gamma
        prior. More asks for more states.
    emission : {"gaussian", "diag"} or None, default="gaussian"
        Law of the observations in a state, with full or diagonal covariance; None for states that
        follow the labels alone. Then nothing in a new sequence tells its states, and the answers
        are nearly those of one linear classifier.
    nu : float, default=1.0
        Scale of the weights, a priori N(0, nu^2).
    mean_strength : float, default=0.1
        How many observations the prior of a state's mean counts for.
    covariance_df : float, default=None
        Degrees of freedom of a state's covariance prior for one feature; more is tighter.
    covariance_scale : float, default=0.25
        Expected variance of a state as a fraction of the data's.
    max_iter : int, default=100
        At most this many rounds of updates.
    tol : float, default=1e-4
        Stop when a round lowers the objective by less than this fraction of it.
    n_init : int, default=1
        Starts, of which the one with the lowest objective is kept.
    random_state : int, RandomState, Generator or None
        Decides where the states start.
    verbose : bool or int, default=False
        Show a progress bar.
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_states_ : int
        States that hold more than one training step, in expectation.
    counts_ : ndarray of shape (max_states,)
        Expected training steps of each state.
    states_ : list of ndarray of int, or ndarray
        The state that each training step is most likely in, its label known, in the layout of X.
    weights_ : ndarray of shape (max_states, n_classes, n_features + 1)
        Expected weights, the intercept last, of the inputs centred and divided by one number, their
        root mean square.
    start_, transitions_ : ndarray of shape (max_states,) and (max_states, max_states)
        Expected probabilities of the first state and of the moves.
    means_ : ndarray of shape (max_states, n_features)
        Expected means of the states; none with ``emission=None``.
    objective_ : ndarray of shape ``(n_iter_ + 1,)``
        The objective at the start and after each round, never rising.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    A step labelled None, NaN or -1 has no label, and still tells about the states: partly
    labelled sequences train. A step that is NaN is unobserved; its classifier sees the centre of
    the data.

    In training the labels take part in the choice of states, for new sequences they cannot. A low
    objective may therefore come from states that split the classes rather than the observations,
    which does not help to predict: choose `max_states` and `C` by cross-validation.

    What is known of the original here comes from its abstract and from the account in [2]_: large-
    margin classifiers joined by a Markov chain with stick-breaking priors, the margin of the
    averaged discriminant, truncated variational inference. Our reading is the rest: Gaussian
    observations, as in the infinite SVM (the numbers in [2]_ look more like none); a stick for each
    row of the transition matrix [3]_ and one concentration for all; q(z) a chain, not a product of
    steps; linear classifiers, where the original also speaks of kernels.

    References
    ----------
    .. [1] Chatzis (2013). Infinite Markov-switching maximum entropy discrimination machines. ICML.
    .. [2] Zhang, Zhu & Zhang (2014). Max-margin infinite hidden Markov models. ICML.
    .. [3] Paisley & Carin (2009). Hidden Markov models with stick-breaking priors. IEEE
           Transactions on Signal Processing 57(10).

    Examples
    --------
    >>> from regbayes.datasets import make_switching_labels
    >>> from regbayes.hmm import MarkovSwitchingMED
    >>> data = make_switching_labels((200, 100), means=[-3, 0, 3], random_state=0)
    >>> model = MarkovSwitchingMED(random_state=0).fit(data.data[:1], data.target[:1])
    >>> bool(model.score(data.data[1:], data.target[1:]) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "max_states": [_COUNT],
        "C": [_POSITIVE],
        "cost": [_POSITIVE],
        "alpha": [_POSITIVE, tuple, list],
        "emission": [StrOptions(set(COVARIANCES)), None],
        "nu": [_POSITIVE],
        "mean_strength": [_POSITIVE],
        "covariance_df": [_POSITIVE, None],
        "covariance_scale": [_POSITIVE],
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
        max_states=10,
        C=1.0,
        cost=1.0,
        alpha=(1.0, 1.0),
        emission="gaussian",
        *,
        nu=1.0,
        mean_strength=0.1,
        covariance_df=None,
        covariance_scale=0.25,
        max_iter=100,
        tol=1e-4,
        n_init=1,
        random_state=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.max_states = max_states
        self.C = C
        self.cost = cost
        self.alpha = alpha
        self.emission = emission
        self.nu = nu
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> MarkovSwitchingMED:
        """Find states of the steps and a classifier for each, with a margin on average.

        Parameters
        ----------
        X : list of arrays of shape (n_steps, n_features), array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : list of arrays, or array
            A label for every step, of any type; None, NaN or -1 for none.
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        self
        """
        sequences = check_sequences(self, X, lengths)
        self.classes_, codes = check_step_labels(sequences, y)
        observed = sequences.values[~np.isnan(sequences.values[:, 0])]
        self._frame = Frame.of(observed)
        self._prior = self._make_prior(self._frame.enter(observed))
        model = variational.Model(
            self._steps(sequences),
            codes,
            len(self.classes_),
            self._prior,
            as_concentration_prior(self.alpha, "alpha"),
            self.max_states,
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
        self.counts_ = state.paths.r.sum(axis=0)
        self.n_states_ = int(np.sum(self.counts_ > 1))
        self.states_ = sequences.give_back(state.paths.r.argmax(axis=1))
        rows = StickBreaking(1.0).expected_weights(state.sticks)
        self.start_, self.transitions_ = rows[0], rows[1:]
        self.weights_ = state.weights
        self._sticks, self._gaussians = state.sticks, state.gaussians
        return self

    def decision_function(self, X: Any, lengths: Any = None) -> Any:
        """Scores of the classes, averaged over the states that a step may be in.

        The states are weighed by their smoothed probabilities: both the past and the future of a
        step take part.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        list of ndarray of shape (n_steps, n_classes) or, for two classes, (n_steps,); or ndarray
            In the layout of `X`. Columns in the order of `classes_`; for two classes the second's
            score minus the first's.
        """
        sequences = self._new_sequences(X, lengths)
        scores = self._scores(sequences)
        two = len(self.classes_) == 2
        return sequences.give_back(scores[:, 1] - scores[:, 0] if two else scores)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The label of every step: the class with the largest score.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`.
        """
        sequences = self._new_sequences(X, lengths)
        return sequences.give_back(self.classes_[self._answers(sequences)])

    def decode(self, X: Any, lengths: Any = None) -> Any:
        """The most likely path of states, whatever the labels.

        Numbers agree with `states_`, `counts_` and the rows of `weights_`.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray of int, or ndarray
            In the layout of `X`.
        """
        sequences = self._new_sequences(X, lengths)
        steps = self._steps(sequences)
        path = variational.predict_states(steps, self._sticks, self._gaussians)
        return sequences.give_back(path)

    @property
    def means_(self) -> NDArray:
        """Expected means of the states, in the units of X."""
        check_is_fitted(self)
        if self.emission is None:
            raise AttributeError("the states of emission=None have no means")
        means = self._gaussians.mean.reshape(self.max_states, -1)
        return means * self._frame.unit + self._frame.center

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(labels="step", missing_labels=True)

    def _make_prior(self, observed: NDArray) -> Gaussians:
        if self.emission is None:
            return make_prior(None)
        prior = gaussian_prior(
            observed,
            COVARIANCES[self.emission],
            self.mean_strength,
            self.covariance_df,
            self.covariance_scale,
        )
        return make_prior(prior)

    def _new_sequences(self, X: Any, lengths: Any) -> Sequences:
        check_is_fitted(self)
        return check_sequences(self, X, lengths, reset=False)

    def _steps(self, sequences: Sequences) -> variational.Steps:
        framed = self._frame.enter(sequences.values)
        return variational.make_steps(framed, sequences.starts, self._prior)

    def _answers(self, sequences: Sequences) -> NDArray[np.int64]:
        return self._scores(sequences).argmax(axis=1)

    def _scores(self, sequences: Sequences) -> NDArray:
        return variational.predict_scores(
            self._steps(sequences), self._sticks, self._gaussians, self.weights_
        )
