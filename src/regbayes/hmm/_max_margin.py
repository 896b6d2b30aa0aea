"""The max-margin infinite HMM: parameters and methods, no mathematics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from regbayes.data import Sequences, SequenceTags, check_step_labels
from regbayes.hmm import prediction
from regbayes.hmm._chain import _COUNT, _POSITIVE, _InfiniteChain
from regbayes.hmm._step_labeller import StepLabeller
from regbayes.margin import GibbsClassifier, check_scale


class MaxMarginInfiniteHMM(StepLabeller, _InfiniteChain):
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
    n_label_states : int, default=1
        With ``init="labels"``, first states for each label: clusters of its steps. Labels that have
        parts, such as actions, want several.
    n_init_states, beam_width, mean_strength, covariance_df, covariance_scale, symbol_concentration
        As in :class:`InfiniteHMM`.
    n_draws, burn_in, thin, n_chains, random_state, n_jobs, verbose, callbacks, warm_start,
    checkpoint
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
        "n_label_states": [_COUNT],
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
        n_label_states=1,
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
        warm_start=False,
        checkpoint=None,
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
        self.n_label_states = n_label_states
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
        self.warm_start = warm_start
        self.checkpoint = checkpoint

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
        return sequences.give_back(self.classes_[self._answers(sequences, causal)])

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
        return replace(super()._sequence_tags(), labels="step", missing_labels=True)

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

    def _answers(self, sequences: Sequences, causal: bool = False) -> NDArray[np.int64]:
        return self._shares(sequences, causal).argmax(axis=1)

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
