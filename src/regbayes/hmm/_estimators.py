"""scikit-learn's side of the infinite HMMs: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from regbayes import chains
from regbayes.data import (
    Frame,
    SequenceMixin,
    Sequences,
    SequenceTags,
    check_sequences,
    check_step_labels,
)
from regbayes.hmm import beam, prediction
from regbayes.hmm.emissions import (
    CategoricalEmission,
    DiagonalEmission,
    Emission,
    GaussianEmission,
    NoEmission,
    PoissonEmission,
)
from regbayes.margin import GibbsClassifier, check_scale
from regbayes.priors import (
    HierarchicalDirichlet,
    NormalInverseGamma,
    NormalInverseWishart,
    as_concentration_prior,
    gaussian_prior,
)

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
Values = Literal["continuous", "categorical", "count"]
_VALUES: dict[str | None, Values] = {"categorical": "categorical", "poisson": "count"}


def _has_emission(self: Any) -> bool:
    if self.emission is None:
        raise AttributeError(
            "a model with emission=None has no law of the observations to sample from; fit one "
            "with an emission"
        )
    return True


class _InfiniteChain(SequenceMixin, CallbackSupportMixin, BaseEstimator):
    """What the sampled HMMs share: all but the labels."""

    _parameter_constraints: ClassVar[dict] = {
        "emission": [StrOptions({"gaussian", "diag", "categorical", "poisson"})],
        "alpha": [_POSITIVE, tuple, list],
        "gamma": [_POSITIVE, tuple, list],
        "stickiness": [Interval(Real, 0, 1, closed="left"), tuple, list],
        "init": [StrOptions({"kmeans", "random"})],
        "n_init_states": [_COUNT],
        "beam_width": [Interval(Real, 0, 1, closed="right")],
        "mean_strength": [_POSITIVE],
        "covariance_df": [_POSITIVE, None],
        "covariance_scale": [_POSITIVE],
        "symbol_concentration": [_POSITIVE],
        "n_draws": [_COUNT],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [_COUNT],
        "n_chains": [_COUNT],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
    }

    def decode(self, X: Any, lengths: Any = None) -> Any:
        """The most likely path of states in `best_draw_`, whatever the labels.

        Numbers agree with `states_` and with the rows of the arrays in `best_draw_`.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        list of ndarray of int, or ndarray
            In the layout of `X`.
        """
        sequences = self._new_sequences(X, lengths)
        path = prediction.most_likely_states(self._questions(sequences), self._emission, self._best)
        return sequences.give_back(path)

    @available_if(_has_emission)
    def sample(self, n_steps: int = 100, random_state: Any = None) -> tuple[NDArray, NDArray]:
        """A new sequence from the posterior predictive law.

        Parameters
        ----------
        n_steps : int, default=100
        random_state : int, RandomState, Generator or None

        Returns
        -------
        X : ndarray of shape (n_steps, n_features), or of n_steps symbols
        states : ndarray of int of shape (n_steps,)
            Numbers are those of the draw that was picked.
        """
        check_is_fitted(self)
        rng = np.random.default_rng(chains.draw_seed(random_state))
        draws = list(self.trace_)
        draw = prediction.recall(draws[rng.integers(len(draws))], self._emission)
        X, z = prediction.sample(n_steps, self._emission, draw, rng)
        if self.emission == "categorical":
            X = self.categories_[X]
        elif self.emission != "poisson":
            X = X * self._frame.unit + self._frame.center
        return X, z

    @property
    def means_(self) -> NDArray:
        """Means of the states of `best_draw_` (gaussian, diag, poisson), in the units of X."""
        check_is_fitted(self)
        if self.emission == "poisson":
            return self.best_draw_["rates"]
        if self.emission not in ("gaussian", "diag"):
            raise AttributeError(f"the states of emission={self.emission!r} have no means")
        return self.best_draw_["means"] * self._frame.unit + self._frame.center

    @property
    def covariances_(self) -> NDArray:
        """Covariances of the states of `best_draw_` (gaussian; variances for diag)."""
        check_is_fitted(self)
        if self.emission == "gaussian":
            factors = self.best_draw_["factors"] * self._frame.unit
            return factors @ factors.transpose(0, 2, 1)
        if self.emission == "diag":
            return np.square(self.best_draw_["deviations"] * self._frame.unit)
        raise AttributeError(f"the states of emission={self.emission!r} have no covariances")

    @property
    def transitions_(self) -> NDArray:
        """Transition matrix of `best_draw_`."""
        check_is_fitted(self)
        return self._best.matrix

    @property
    def start_(self) -> NDArray:
        """Probabilities of the first state in `best_draw_`."""
        check_is_fitted(self)
        return self._best.start

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(values=_VALUES.get(self.emission, "continuous"))

    def _sample(self, sequences: Sequences, codes: NDArray | None) -> None:
        """Set up the model, run the chains, pick the draw to look at."""
        self._frame = _frame(sequences, self._values)
        self._emission = self._make_emission(sequences)
        new = self._questions(sequences)
        labels = None
        if codes is not None:
            self._classifier = self._make_classifier(new.inputs.shape[1])
            labels = beam.Labels(new.inputs, codes, self._classifier)
        model = beam.Model(
            new.X,
            new.starts,
            self._emission,
            HierarchicalDirichlet(
                as_concentration_prior(self.alpha, "alpha"),
                as_concentration_prior(self.gamma, "gamma"),
                _check_stickiness(self.stickiness),
            ),
            labels,
            self.beam_width,
            # Threads that chains leave over work on sequences.
            max(1, effective_n_jobs(self.n_jobs) // self.n_chains),
        )
        self._seed = chains.draw_seed(self.random_state)
        self.trace_ = chains.run_for(
            self,
            partial(beam.init, model, partial(self._first_states, new, codes)),
            partial(beam.step, model),
            partial(beam.record, model),
            self._seed,
        )
        self.best_draw_ = self.trace_.typical("n_states")
        self.n_states_ = self.best_draw_["n_states"]
        self.states_ = sequences.give_back(self.best_draw_["z"])

    def _first_states(
        self, new: prediction.Questions, codes: NDArray | None, rng: np.random.Generator
    ) -> NDArray:
        n_steps, n_states = len(new.X), min(self.n_init_states, len(new.X))
        if self.init == "random":
            return rng.integers(n_states, size=n_steps)
        if self.init == "labels" and codes is not None:
            guess = rng.choice(codes[codes >= 0], size=n_steps)
            return np.where(codes >= 0, codes, guess)
        # More points than this find the same places.
        some = new.inputs[rng.permutation(n_steps)[: 1000 * n_states]]
        n_states = min(n_states, len(np.unique(some, axis=0)))
        kmeans = KMeans(n_states, n_init=1, random_state=int(rng.integers(2**31)))
        with threadpool_limits(limits=1, user_api="openmp"):  # chains have threads of their own
            return kmeans.fit(some).predict(new.inputs).astype(np.int64)

    @property
    def _values(self) -> Values:
        return self._sequence_tags().values

    @property
    def _n_symbols(self) -> int:
        return len(self.categories_)

    @property
    def _best(self) -> prediction.Recalled:
        return prediction.recall(
            self.best_draw_, self._emission, getattr(self, "_classifier", None)
        )

    def _make_emission(self, sequences: Sequences) -> Emission:
        if self.emission is None:
            return NoEmission()
        if self.emission == "categorical":
            return CategoricalEmission(self._n_symbols, self.symbol_concentration)
        observed = sequences.values[~np.isnan(sequences.values[:, 0])]
        if self.emission == "poisson":
            rate = 1.0 / np.maximum(observed.mean(axis=0), 1.0 / len(observed))
            return PoissonEmission(np.ones_like(rate), rate)
        prior = gaussian_prior(
            self._frame.enter(observed),
            "full" if self.emission == "gaussian" else "diag",
            self.mean_strength,
            self.covariance_df,
            self.covariance_scale,
        )
        if isinstance(prior, NormalInverseWishart):
            return GaussianEmission(prior)
        assert isinstance(prior, NormalInverseGamma)
        return DiagonalEmission(prior)

    def _questions(self, sequences: Sequences) -> prediction.Questions:
        values = sequences.values
        if self._values == "categorical":
            inputs = np.eye(self._n_symbols)[values] * (values >= 0)[:, None]
            return prediction.Questions(values, sequences.starts, _with_constant(inputs))
        framed = self._frame.enter(values)
        # An unobserved step is the centre of the data to a classifier.
        inputs = _with_constant(np.nan_to_num(framed))
        X = values if self._values == "count" else framed
        return prediction.Questions(X, sequences.starts, inputs)

    def _new_sequences(self, X: Any, lengths: Any) -> Sequences:
        check_is_fitted(self)
        return check_sequences(
            self,
            X,
            lengths,
            values=self._values,
            reset=False,
            categories=getattr(self, "categories_", None),
        )

    def _check_training(self, X: Any, lengths: Any) -> Sequences:
        sequences = check_sequences(self, X, lengths, values=self._values)
        if sequences.categories is not None:
            self.categories_ = sequences.categories
        return sequences


class InfiniteHMM(_InfiniteChain):
    """Hidden Markov model that finds its number of states (HDP-HMM), by beam sampling.

    Rows of the transition matrix come from a hierarchical Dirichlet process [1]_, so that there
    are as many states as the data ask for; paths are drawn as a whole, without truncation [2]_.

    Parameters
    ----------
    emission : {"gaussian", "diag", "categorical", "poisson"}, default="gaussian"
        Gaussian with full or diagonal covariances, symbols, or counts.
    alpha, gamma : float or (shape, rate), default=(1, 1)
        Concentrations of the rows of the transition matrix and of the states: a number fixes it,
        a pair is a Gamma prior. Larger ones ask for more varied rows and for more states.
    stickiness : float in [0, 1) or (a, b), default=0.0
        Share of a row's prior mass that is on its own state [3]_, for states that last; a pair is
        its Beta prior, and the data decide.
    init : {"kmeans", "random"}, default="kmeans"
        First states of a chain: clusters of the observations, or random ones.
    n_init_states : int, default=10
        Their number.
    beam_width : float in (0, 1], default=0.01
        Transitions that are likelier than this compete at every step of a sweep; 1 is the beam of
        [2]_, whose chains move more slowly. The posterior is the same.
    mean_strength : float, default=0.1
        How many observations the prior of a state's mean counts for.
    covariance_df : float, default=None
        Degrees of freedom of a state's covariance prior for one feature; more is tighter.
    covariance_scale : float, default=0.5
        Expected variance of a state as a fraction of the data's.
    symbol_concentration : float, default=0.5
        Dirichlet prior of each symbol in a state.
    n_draws, burn_in, thin, n_chains : int
        Sweeps kept, thrown away, between two that are kept; independent chains, pooled.
    random_state : int, RandomState, Generator or None
    n_jobs : int, default=None
        Threads over chains and, if there are more, over sequences; the result does not depend on
        it.
    verbose : bool or int, default=False
    callbacks : list of scikit-learn callbacks, default=None

    Attributes
    ----------
    n_states_ : int
        Posterior mode of the number of states; ``trace_["n_states"]`` has all draws.
    trace_ : regbayes.chains.Trace
        All draws.
    best_draw_ : mapping
        The draw of highest joint density among those with `n_states_` states.
    states_ : list of ndarray of int, or ndarray
        States of the training steps in that draw, in the layout of X.
    means_, covariances_, transitions_, start_ : ndarray
        Parameters of that draw.
    categories_ : ndarray
        Symbols, with ``emission="categorical"``.

    Notes
    -----
    A step that is NaN (None for symbols) is unobserved: its state follows from its neighbours.

    References
    ----------
    .. [1] Teh, Jordan, Beal & Blei (2006). Hierarchical Dirichlet processes. JASA 101.
    .. [2] Van Gael, Saatci, Teh & Ghahramani (2008). Beam sampling for the infinite hidden Markov
           model. ICML.
    .. [3] Fox, Sudderth, Jordan & Willsky (2011). A sticky HDP-HMM. Annals of Applied Statistics 5.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.hmm import InfiniteHMM
    >>> rng = np.random.default_rng(0)
    >>> hidden = np.repeat([0, 1, 0, 1, 1, 0], 20)
    >>> X = [rng.normal(8 * hidden, 1)[:, None]]
    >>> model = InfiniteHMM(random_state=0).fit(X)
    >>> model.n_states_, model.decode(X)[0].shape
    (2, (120,))
    """

    def __init__(
        self,
        emission="gaussian",
        alpha=(1.0, 1.0),
        gamma=(1.0, 1.0),
        stickiness=0.0,
        *,
        init="kmeans",
        n_init_states=10,
        beam_width=0.01,
        mean_strength=0.1,
        covariance_df=None,
        covariance_scale=0.5,
        symbol_concentration=0.5,
        n_draws=100,
        burn_in=500,
        thin=1,
        n_chains=2,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
    ):
        self.emission = emission
        self.alpha = alpha
        self.gamma = gamma
        self.stickiness = stickiness
        self.init = init
        self.n_init_states = n_init_states
        self.beam_width = beam_width
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.symbol_concentration = symbol_concentration
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> InfiniteHMM:
        """Sample states, their emissions and transitions.

        Parameters
        ----------
        X : list of arrays of shape (n_steps, n_features), array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : ignored
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        self
        """
        self._sample(self._check_training(X, lengths), None)
        return self

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The states of the steps, as :meth:`decode`."""
        return self.decode(X, lengths)

    def predict_proba(self, X: Any, lengths: Any = None, causal: bool = False) -> Any:
        """Probabilities of the states of `best_draw_` at every step.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
        causal : bool, default=False
            Use the past of each step only.

        Returns
        -------
        list of ndarray of shape (n_steps, n_states), or ndarray
            In the layout of `X`; columns in the order of `best_draw_`.
        """
        sequences = self._new_sequences(X, lengths)
        marginals = prediction.state_marginals(
            self._questions(sequences), self._emission, self._best, causal
        )
        return sequences.give_back(marginals)

    def score_samples(self, X: Any, lengths: Any = None) -> NDArray:
        """Log predictive density of every sequence, averaged over the posterior draws.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        sequences = self._new_sequences(X, lengths)
        new = self._questions(sequences)
        each = np.concatenate(
            Parallel(n_jobs=self.n_jobs, backend="threading")(
                delayed(prediction.log_predictive)(new, self._emission, chain)
                for chain in self.trace_.chains
            )
        )
        total = logsumexp(each, axis=0) - np.log(len(each))
        if self._values == "continuous":  # back from the frame's units to those of X
            observed = ~np.isnan(sequences.values[:, 0])
            per_sequence = np.add.reduceat(observed, sequences.starts[:-1], dtype=np.int64)
            total -= per_sequence * self.n_features_in_ * np.log(self._frame.unit)
        return total

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Log predictive density of all sequences together."""
        return float(self.score_samples(X, lengths).sum())


class MaxMarginInfiniteHMM(_InfiniteChain):
    """Max-margin infinite HMM: labels every step of a sequence, and finds its number of states.

    Every state has a linear max-margin classifier; states follow each other as in an infinite
    HMM. What decides a step's state is its neighbours, the observation and the label:
    posterior ∝ HDP × emission × margin [1]_. With an emission this is M2iHMM-1, with
    ``emission=None`` M2iHMM-2.

    Parameters
    ----------
    emission : {"gaussian", "diag", "categorical", "poisson"} or None, default="gaussian"
        Law of the observations in a state; None for states that follow the labels alone, which
        leaves little to tell the states of new sequences by, least of all with many classes.
    C : float, default=1.0
        Weight of the margin against the likelihood.
    cost : float, default=1.0
        Cost of a wrong label: the margin that is asked for.
    prediction : {"marginal", "iterated", "single"}, default="marginal"
        `"marginal"`: every draw votes, each state weighed by its exact smoothed probability.
        `"iterated"`: the paper's alternation of states and answers, then a vote over draws.
        `"single"`: the same with the last draw only.
    alpha, gamma, stickiness
        As in :class:`InfiniteHMM`.
    pooling : {"none", "partial"}, default="none"
        `"partial"`: the classifiers of the states scatter about shared weights. `"none"`: the
        paper's independent classifiers.
    nu : float or (shape, rate), default=(1.0, 100.0)
        Scale of the weights: a number fixes it, a pair is a Gamma prior on ``1 / nu**2``.
    shared_nu : float or (shape, rate), default=(1.0, 100.0)
        The same for the shared weights, when pooling is partial.
    init : {"kmeans", "random", "labels"}, default="kmeans"
        First states of a chain: clusters of the observations, random ones, or a state for each
        label, which suits many classes that follow each other, such as letters.
    n_init_states, beam_width, mean_strength, covariance_df, covariance_scale, symbol_concentration
        As in :class:`InfiniteHMM`.
    n_draws, burn_in, thin, n_chains, random_state, n_jobs, verbose, callbacks
        As in :class:`InfiniteHMM`.
    n_rounds : int, default=50
        Rounds of the iterated prediction.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_states_, trace_, best_draw_, states_, means_, covariances_, transitions_, start_
        As in :class:`InfiniteHMM`.
    weights_, intercepts_ : ndarray
        Classifiers of the states of `best_draw_`.

    Notes
    -----
    A step labelled None, NaN or -1 has no label, and still tells about the states: partly
    labelled sequences train. A step that is NaN is unobserved; its classifier sees the centre of
    the data.

    References
    ----------
    .. [1] Zhang, Zhu & Zhang (2014). Max-margin infinite hidden Markov models. ICML.

    Examples
    --------
    >>> from regbayes.datasets import make_switching_labels
    >>> from regbayes.hmm import MaxMarginInfiniteHMM
    >>> data = make_switching_labels((200, 100), means=[-3, 0, 3], random_state=0)
    >>> model = MaxMarginInfiniteHMM(random_state=0).fit(data.data[:1], data.target[:1])
    >>> bool(model.score(data.data[1:], data.target[1:]) > 0.8)
    True
    >>> live = model.predict_stream(data.data[1])
    >>> label = next(live)  # of the first step, before the second is known
    """

    _parameter_constraints: ClassVar[dict] = {
        **_InfiniteChain._parameter_constraints,
        "emission": [StrOptions({"gaussian", "diag", "categorical", "poisson"}), None],
        "init": [StrOptions({"kmeans", "random", "labels"})],
        "C": [_POSITIVE],
        "cost": [_POSITIVE],
        "prediction": [StrOptions({"marginal", "iterated", "single"})],
        "pooling": [StrOptions({"partial", "none"})],
        "nu": [_POSITIVE, tuple, list],
        "shared_nu": [_POSITIVE, tuple, list],
        "n_rounds": [_COUNT],
    }

    def __init__(
        self,
        emission="gaussian",
        C=1.0,
        cost=1.0,
        prediction="marginal",
        alpha=(1.0, 1.0),
        gamma=(1.0, 1.0),
        stickiness=0.0,
        *,
        pooling="none",
        nu=(1.0, 100.0),
        shared_nu=(1.0, 100.0),
        init="kmeans",
        n_init_states=10,
        beam_width=0.01,
        mean_strength=0.1,
        covariance_df=None,
        covariance_scale=0.5,
        symbol_concentration=0.5,
        n_draws=100,
        burn_in=500,
        thin=1,
        n_chains=2,
        n_rounds=50,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
    ):
        self.emission = emission
        self.C = C
        self.cost = cost
        self.prediction = prediction
        self.alpha = alpha
        self.gamma = gamma
        self.stickiness = stickiness
        self.pooling = pooling
        self.nu = nu
        self.shared_nu = shared_nu
        self.init = init
        self.n_init_states = n_init_states
        self.beam_width = beam_width
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.symbol_concentration = symbol_concentration
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.n_rounds = n_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> MaxMarginInfiniteHMM:
        """Sample states, their emissions and transitions, and a classifier for every state.

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
        sequences = self._check_training(X, lengths)
        self.classes_, codes = check_step_labels(sequences, y)
        self._sample(sequences, codes)
        return self

    def predict_proba(self, X: Any, lengths: Any = None, causal: bool = False) -> Any:
        """Posterior vote shares of the classes at every step.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
        causal : bool, default=False
            Use the past of each step only (with ``prediction="marginal"``).

        Returns
        -------
        list of ndarray of shape (n_steps, n_classes), or ndarray
            In the layout of `X`; columns in the order of `classes_`, rows sum to one.
        """
        sequences = self._new_sequences(X, lengths)
        return sequences.give_back(self._shares(sequences, causal))

    def predict(self, X: Any, lengths: Any = None, causal: bool = False) -> Any:
        """The label of every step: the class with the largest vote share.

        Parameters
        ----------
        X, lengths, causal
            As for :meth:`predict_proba`.

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`.
        """
        sequences = self._new_sequences(X, lengths)
        labels = self.classes_[self._shares(sequences, causal).argmax(axis=1)]
        return sequences.give_back(labels)

    def predict_stream(self, steps: Iterable[Any]) -> Iterator[Any]:
        """Labels one step at a time, as the steps come in: the labels of ``predict(causal=True)``.

        The cost of a step does not grow with their number.

        Parameters
        ----------
        steps : iterable of array-like of shape (n_features,), or of symbols
            The steps of one sequence; it may be endless.

        Yields
        ------
        label
        """
        check_is_fitted(self)
        votes = prediction.vote_stream(
            map(self._one_step, steps), self._emission, self._classifier, list(self.trace_)
        )
        return (self.classes_[shares.argmax()] for shares in votes)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Share of labelled steps that are predicted right.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        y : list of arrays, or array
            A label for every step; those of None, NaN or -1 are left out.
        lengths : array-like of int, optional

        Returns
        -------
        float
        """
        sequences = self._new_sequences(X, lengths)
        _, truth = check_step_labels(sequences, y, classes=self.classes_)
        answer = self._shares(sequences, False).argmax(axis=1)
        return float(np.mean((answer == truth)[truth != -1]))

    @property
    def weights_(self) -> NDArray:
        """Weights of the states' classifiers in `best_draw_`, (n_states, n_classes, n_features).

        In the units of X: a step x has the scores ``weights_[k] @ x + intercepts_[k]`` in state k.
        Symbols have a weight each.
        """
        check_is_fitted(self)
        return self.best_draw_["weights"][:, :, :-1] / self._frame.unit

    @property
    def intercepts_(self) -> NDArray:
        """Intercepts that go with `weights_`, of shape (n_states, n_classes)."""
        check_is_fitted(self)
        intercepts = self.best_draw_["weights"][:, :, -1]
        if self._values == "categorical":
            return intercepts
        return intercepts - self.weights_ @ self._frame.center

    def _sequence_tags(self) -> SequenceTags:
        values = _VALUES.get(self.emission, "continuous")
        return SequenceTags(labels="step", values=values, missing_labels=True)

    def _make_classifier(self, n_inputs: int) -> GibbsClassifier:
        return GibbsClassifier(
            len(self.classes_),
            n_inputs,
            self.C,
            self.cost,
            check_scale(self.nu, "nu"),
            check_scale(self.shared_nu, "shared_nu") if self.pooling == "partial" else None,
        )

    def _one_step(self, x: Any) -> tuple[NDArray, NDArray]:
        step = [x] if self._values == "categorical" else np.asarray(x)[None]
        new = self._questions(self._new_sequences([step], None))
        return new.X, new.inputs

    def _shares(self, sequences: Sequences, causal: bool) -> NDArray:
        new = self._questions(sequences)
        if causal and self.prediction != "marginal":
            raise ValueError(
                f"causal=True needs prediction='marginal', not {self.prediction!r}: the other "
                "ways look at whole sequences"
            )
        if self.prediction == "marginal":  # chain by chain, so that sums do not depend on n_jobs
            shares = sum(
                Parallel(n_jobs=self.n_jobs, backend="threading")(
                    delayed(prediction.vote)(new, self._emission, self._classifier, chain, causal)
                    for chain in self.trace_.chains
                )
            )
        else:
            draws = list(self.trace_)
            one = self.prediction == "single"
            shares = prediction.vote_iterated(
                new,
                self._emission,
                self._classifier,
                draws[-1:] if one else draws,
                self.n_rounds,
                self._seed,  # at every call: predictions of a fitted model do not change
            )
        return shares / shares.sum(axis=1, keepdims=True)


def _frame(sequences: Sequences, values: Values) -> Frame:
    if values == "categorical":  # symbols have no units
        return Frame(np.zeros(1), 1.0)
    return Frame.of(sequences.values[~np.isnan(sequences.values[:, 0])])


def _with_constant(inputs: NDArray) -> NDArray:
    return np.ascontiguousarray(np.column_stack([inputs, np.ones(len(inputs))]))


def _check_stickiness(value: Any) -> float | tuple[float, float]:
    if isinstance(value, Real):
        return float(value)
    if len(value) == 2 and all(isinstance(v, Real) and 0 < float(v) < np.inf for v in value):
        return float(value[0]), float(value[1])
    raise ValueError(
        f"stickiness must be a number in [0, 1), or a pair (a, b) of positive numbers, its Beta "
        f"prior; got {value!r}. For example stickiness=0.5 or stickiness=(1.0, 1.0)."
    )
