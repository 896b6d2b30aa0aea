"""scikit-learn's side of the finite HMMs: parameters, validation, methods, no mathematics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
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
)
from regbayes.hmm import finite, prediction
from regbayes.hmm._steps import clusters, log_units, observed_steps
from regbayes.hmm.emissions import (
    CategoricalEmission,
    DiagonalEmission,
    ExponentialEmission,
    GaussianEmission,
    gaussian_emission,
)
from regbayes.hmm.finite import ChainLaw
from regbayes.kernels.batch import most_likely_paths, smooth

_Chain = tuple[NDArray, NDArray, NDArray, NDArray]
_COUNT = Interval(Integral, 1, None, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


class _FiniteHMM(ReportMixin, SequenceMixin, CallbackSupportMixin, BaseEstimator, ABC):
    """What the finite HMMs share: all but the emission."""

    _parameter_constraints: ClassVar[dict] = {
        "n_states": [_COUNT],
        "topology": [StrOptions({"ergodic", "left-to-right", "banded"}), "array-like"],
        "bandwidth": [_COUNT, None],
        "pseudocount": [_NOT_NEGATIVE],
        "n_iter": [_COUNT],
        "tol": [_NOT_NEGATIVE],
        "n_init": [_COUNT],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "checkpoint": chains.CHECKPOINT,
    }
    _values: ClassVar[Literal["continuous", "categorical"]]

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> _FiniteHMM:
        """Learn the parameters by Baum-Welch.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : ignored
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        self
        """
        sequences = self.read(X, lengths, reset=True)
        with chains.watched(self, self.n_init) as watch:
            state, self.objective_, self.converged_ = self._descend(sequences, watch)
        self.law_ = state.law
        self.n_iter_ = len(self.objective_) - 1
        return self

    @abstractmethod
    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> Sequences:
        """Sequences as the law reads them: symbols by number, real values in units of their own.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
        reset : bool, default=False
            Decide on symbols and units, as `fit` does.

        Returns
        -------
        Sequences
        """

    def learn(self, sequences: Sequences) -> ChainLaw:
        """The law of sequences that :meth:`read` gave: what `fit` does, without changing the model.

        Score spaces learn one law for each class this way, with the symbols of all.

        Parameters
        ----------
        sequences : Sequences

        Returns
        -------
        ChainLaw
        """
        self._validate_params()
        return self._descend(sequences, None).state.law

    def decode(self, X: Any, lengths: Any = None) -> Any:
        """The most likely path of states.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray of int, or ndarray
            In the layout of `X`.
        """
        sequences, chain = self._evidence(X, lengths)
        return sequences.give_back(most_likely_paths(*chain, self._n_threads)[0])

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The states of the steps, as :meth:`decode`."""
        return self.decode(X, lengths)

    def predict_proba(self, X: Any, lengths: Any = None, causal: bool = False) -> Any:
        """Probabilities of the states at every step.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
        causal : bool, default=False
            Use the past of each step only.

        Returns
        -------
        list of ndarray of shape (n_steps, n_states), or ndarray
            In the layout of `X`.
        """
        sequences, chain = self._evidence(X, lengths)
        return sequences.give_back(smooth(*chain, self._n_threads, causal)[0])

    def score_samples(self, X: Any, lengths: Any = None) -> NDArray:
        """Log-likelihood of every sequence.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        sequences, chain = self._evidence(X, lengths)
        total = smooth(*chain, self._n_threads, True)[1]
        return total - self._log_units(sequences)

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Log-likelihood of all sequences together."""
        return float(self.score_samples(X, lengths).sum())

    def sample(self, n_steps: int = 100, random_state: Any = None) -> tuple[NDArray, NDArray]:
        """A new sequence, and its states.

        Parameters
        ----------
        n_steps : int, default=100
        random_state : int, RandomState, Generator or None

        Returns
        -------
        X : ndarray of shape (n_steps, n_features), or of n_steps symbols
        states : ndarray of int of shape (n_steps,)
        """
        check_is_fitted(self, "law_")
        rng = np.random.default_rng(chains.draw_seed(random_state))
        draw = prediction.Recalled(self.start_, self.transitions_, self.law_.parameters)
        X, states = prediction.sample(n_steps, self.law_.emission, draw, rng)
        return self._leave(X), states

    @property
    def start_(self) -> NDArray:
        """Probabilities of the first state."""
        check_is_fitted(self, "law_")
        return self.law_.start

    @property
    def transitions_(self) -> NDArray:
        """Transition matrix."""
        check_is_fitted(self, "law_")
        return self.law_.transitions

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(values=self._values)

    @abstractmethod
    def _emission(self, sequences: Sequences) -> ExponentialEmission:
        """What the states say of observations, under its prior."""

    @abstractmethod
    def _first_guess(self, sequences: Sequences, rng: np.random.Generator) -> NDArray:
        """Probabilities of states to begin with."""

    @abstractmethod
    def _leave(self, X: NDArray) -> NDArray:
        """From the law's units to those of the user."""

    def _log_units(self, sequences: Sequences) -> NDArray | float:
        return 0.0

    @property
    def _n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def _descend(self, sequences: Sequences, watch: Any) -> chains.Descent:
        K = self.n_states
        allowed_start, allowed = _allowed(self.topology, self.bandwidth, K)
        blank = ChainLaw(
            np.zeros(K),
            np.zeros((K, K)),
            self._emission(sequences),
            (),
            self.pseudocount,
            allowed_start,
            allowed,
        )

        def init(rng: np.random.Generator) -> finite.Fit:
            if allowed_start.all():
                marginals = self._first_guess(sequences, rng)
            else:
                marginals = np.eye(K)[_in_order(sequences.starts, allowed)]
            law = finite.guess(blank, sequences, marginals)
            return finite.evaluate(law, sequences, self._n_threads)

        return chains.descend(
            init,
            partial(finite.step, sequences, self._n_threads),
            lambda state: state.loss,
            max_iter=self.n_iter,
            tol=self.tol,
            n_init=self.n_init,
            random_state=self.random_state,
            watch=watch,
            advice=None,
        )

    def _evidence(self, X: Any, lengths: Any) -> tuple[Sequences, _Chain]:
        check_is_fitted(self, "law_")
        sequences = self.read(X, lengths)
        evidence = self.law_.emission.log_likelihoods(sequences.values, self.law_.parameters)
        return sequences, (self.start_, self.transitions_, evidence, sequences.starts)


class CategoricalHMM(_FiniteHMM):
    """Hidden Markov model of symbols, with a given number of states, by Baum-Welch.

    Parameters
    ----------
    n_states : int, default=5
    topology : {"ergodic", "left-to-right", "banded"} or array of bool, default="ergodic"
        Transitions that are possible: all; to the same state or later ones, beginning with the
        first state; between states whose numbers differ by `bandwidth` at most; or those of an
        array of shape (n_states, n_states).
    bandwidth : int, default=None
        How far a transition may go: 1 when banded, anywhere otherwise.
    pseudocount : float, default=0.1
        Added to the counts of every first state and transition that is possible: a Dirichlet prior.
    symbol_concentration : float, default=0.1
        Added to the counts of every symbol in every state.
    unknown : {"error", "missing"}, default="error"
        What a symbol that training did not have is taken for: a mistake, or a step that is not
        observed.
    n_iter : int, default=100
        Rounds of Baum-Welch at most.
    tol : float, default=1e-5
        Stop when a round gains less than this share of the log posterior.
    n_init : int, default=1
        Random starts; the best is kept.
    init : {"random", "symbols"}, default="random"
        Where Baum-Welch begins: with states that prefer random symbols, or with a state for each
        symbol (in turn, if there are fewer states), so that transitions count pairs of symbols.
    random_state : int, RandomState, Generator or None
    n_jobs : int, default=None
        Threads over sequences; the result does not depend on it.
    verbose : bool or int, default=False
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    start_, transitions_, probabilities_ : ndarray
    categories_ : ndarray
        The symbols, in the order of the columns of `probabilities_`.
    objective_ : ndarray
        Minus the log posterior density of the parameters, round by round.
    converged_ : bool
    n_iter_ : int
    law_ : ChainLaw
        The model as an exponential family, for :mod:`regbayes.scores`.

    Notes
    -----
    A step that is None or NaN is unobserved. A state that loses all its steps keeps even
    probabilities. Where nothing is added to the counts, a new sequence may be impossible: its
    log-likelihood is -inf, its path -1 throughout, and its states have no probabilities (zeros).

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM
    >>> X = [list("aabbbaab"), list("abba"), list("bbbbaaaa")]
    >>> model = CategoricalHMM(n_states=2, random_state=0).fit(X)
    >>> model.probabilities_.shape, model.score_samples(X).shape
    ((2, 2), (3,))
    """

    _parameter_constraints: ClassVar[dict] = {
        **_FiniteHMM._parameter_constraints,
        "symbol_concentration": [_NOT_NEGATIVE],
        "unknown": [StrOptions({"error", "missing"})],
        "init": [StrOptions({"random", "symbols"})],
    }
    _values = "categorical"
    categories_: Any

    def __init__(
        self,
        n_states=5,
        *,
        topology="ergodic",
        bandwidth=None,
        pseudocount=0.1,
        symbol_concentration=0.1,
        unknown="error",
        n_iter=100,
        tol=1e-5,
        n_init=1,
        init="random",
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.n_states = n_states
        self.topology = topology
        self.bandwidth = bandwidth
        self.pseudocount = pseudocount
        self.symbol_concentration = symbol_concentration
        self.unknown = unknown
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @property
    def probabilities_(self) -> NDArray:
        """Probabilities of the symbols, of shape (n_states, n_symbols)."""
        check_is_fitted(self, "law_")
        return np.exp(self.law_.parameters[0])

    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> Sequences:
        if not reset:
            check_is_fitted(self)
        sequences = check_sequences(
            self,
            X,
            lengths,
            values="categorical",
            reset=reset,
            categories=None if reset else self.categories_,
            unknown=self.unknown,
        )
        if reset:
            self.categories_ = sequences.categories
        return sequences

    def _emission(self, sequences: Sequences) -> CategoricalEmission:
        symbols = tuple(map(str, self.categories_))
        return CategoricalEmission(len(symbols), self.symbol_concentration, symbols)

    def _first_guess(self, sequences: Sequences, rng: np.random.Generator) -> NDArray:
        if self.init == "symbols":  # an unobserved step is in any of them
            known = np.eye(self.n_states)[sequences.values % self.n_states]
            return np.where(sequences.values[:, None] >= 0, known, 1 / self.n_states)
        # Every symbol has its favourite states: a random soft clustering of the symbols.
        table = rng.dirichlet(np.ones(self.n_states), size=len(self.categories_) + 1)
        guessed = rng.dirichlet(np.ones(self.n_states), size=sequences.n_steps)
        guessed += table[sequences.values]
        guessed *= 0.5
        return guessed

    def _leave(self, X: NDArray) -> NDArray:
        return self.categories_[X]


class GaussianHMM(_FiniteHMM):
    """Hidden Markov model of real vectors, with a given number of states, by Baum-Welch.

    Parameters
    ----------
    n_states : int, default=5
    covariance_type : {"full", "diag"}, default="diag"
    topology, bandwidth, pseudocount
        As in :class:`CategoricalHMM`.
    mean_strength : float, default=0.01
        How many steps the prior of a state's mean, the data's, counts for.
    covariance_df : float, default=None
        Degrees of freedom of a state's covariance prior for one feature; more is tighter.
    covariance_scale : float, default=0.1
        Expected variance of a state as a fraction of the data's.
    n_iter, tol, n_init, random_state, n_jobs, verbose, callbacks, checkpoint
        As in :class:`CategoricalHMM`.

    Attributes
    ----------
    start_, transitions_, means_, covariances_ : ndarray
        In the units of X; variances, when they are diagonal.
    objective_, converged_, n_iter_, law_
        As in :class:`CategoricalHMM`.

    Notes
    -----
    A step that is NaN in any feature is unobserved. The normal-inverse-Wishart prior keeps every
    covariance positive definite, those of empty states too.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.hmm import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> hidden = np.repeat([0, 1, 0, 1], 25)
    >>> X = [rng.normal(5 * hidden, 1)[:, None]]
    >>> model = GaussianHMM(n_states=2, random_state=0).fit(X)
    >>> np.sort(model.means_.ravel()).round().astype(int).tolist()
    [0, 5]
    """

    _parameter_constraints: ClassVar[dict] = {
        **_FiniteHMM._parameter_constraints,
        "covariance_type": [StrOptions({"full", "diag"})],
        "mean_strength": [_POSITIVE],
        "covariance_df": [_POSITIVE, None],
        "covariance_scale": [_POSITIVE],
    }
    _values = "continuous"

    def __init__(
        self,
        n_states=5,
        covariance_type="diag",
        *,
        topology="ergodic",
        bandwidth=None,
        pseudocount=0.1,
        mean_strength=0.01,
        covariance_df=None,
        covariance_scale=0.1,
        n_iter=100,
        tol=1e-5,
        n_init=1,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.n_states = n_states
        self.covariance_type = covariance_type
        self.topology = topology
        self.bandwidth = bandwidth
        self.pseudocount = pseudocount
        self.mean_strength = mean_strength
        self.covariance_df = covariance_df
        self.covariance_scale = covariance_scale
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @property
    def means_(self) -> NDArray:
        """Means of the states, in the units of X."""
        check_is_fitted(self, "law_")
        return self.law_.parameters[0] * self._frame.unit + self._frame.center

    @property
    def covariances_(self) -> NDArray:
        """Covariances of the states, in the units of X; variances, when they are diagonal."""
        check_is_fitted(self, "law_")
        roots = self.law_.parameters[1] * self._frame.unit
        if self.covariance_type == "diag":
            return np.square(roots)
        return roots @ roots.transpose(0, 2, 1)

    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> Sequences:
        if not reset:
            check_is_fitted(self)
        sequences = check_sequences(self, X, lengths, reset=reset)
        if reset:
            self._frame = Frame.of(_observed(sequences))
        return replace(sequences, values=self._frame.enter(sequences.values))

    def _emission(self, sequences: Sequences) -> GaussianEmission | DiagonalEmission:
        return gaussian_emission(
            _observed(sequences),
            self.covariance_type,
            self.mean_strength,
            self.covariance_df,
            self.covariance_scale,
        )

    def _first_guess(self, sequences: Sequences, rng: np.random.Generator) -> NDArray:
        steps = np.nan_to_num(sequences.values)
        return np.eye(self.n_states)[clusters(_observed(sequences), steps, self.n_states, rng)]

    def _leave(self, X: NDArray) -> NDArray:
        return X * self._frame.unit + self._frame.center

    def _log_units(self, sequences: Sequences) -> NDArray:
        return log_units(sequences, self._frame)


def _observed(sequences: Sequences) -> NDArray:
    seen = observed_steps(sequences)
    # A class may have nothing that is observed: then the centre, in units of the frame.
    return seen if len(seen) else np.zeros((1, sequences.values.shape[1]))


def _in_order(starts: NDArray, allowed: NDArray) -> NDArray:
    """A path through the states in their order: equal parts of every sequence, if allowed."""
    part = finite.cells_of(starts, len(allowed)) % len(allowed)
    step = np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
    # A short sequence does not get as far: it would be impossible to begin with.
    return np.minimum(part, step * (allowed[0].sum() - 1))


def _allowed(
    topology: str | ArrayLike, bandwidth: int | None, n_states: int
) -> tuple[NDArray, NDArray]:
    """First states and transitions that are possible."""
    anywhere = np.ones(n_states, dtype=bool)
    if not isinstance(topology, str):
        allowed = np.asarray(topology)
        if allowed.shape != (n_states, n_states) or allowed.dtype != bool:
            raise ValueError(
                f"topology must be a name or an array of bool of shape ({n_states}, {n_states}), "
                f"got {allowed.dtype} of shape {allowed.shape}."
            )
        if not allowed.any(axis=1).all():
            state = allowed.any(axis=1).argmin()
            raise ValueError(f"topology lets nothing follow state {state}; allow at least itself.")
        return anywhere, allowed
    if bandwidth is None:
        bandwidth = 1 if topology == "banded" else n_states
    ahead = np.arange(n_states) - np.arange(n_states)[:, None]
    allowed = np.abs(ahead) <= bandwidth
    if topology == "left-to-right":
        return np.arange(n_states) == 0, allowed & (ahead >= 0)
    return anywhere, allowed
