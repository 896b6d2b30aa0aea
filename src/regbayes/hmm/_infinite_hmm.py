"""The infinite HMM: parameters and methods, no mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks

from regbayes.hmm import prediction
from regbayes.hmm._chain import _InfiniteChain
from regbayes.hmm._steps import log_units


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
    warm_start : bool, default=False
        Go on where the last fit with warm_start=True ended: `n_draws` more of the same chains.
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

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
        warm_start=False,
        checkpoint=None,
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
        self.warm_start = warm_start
        self.checkpoint = checkpoint

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
            total -= log_units(sequences, self._frame)
        return total

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Log predictive density of all sequences together."""
        return float(self.score_samples(X, lengths).sum())
