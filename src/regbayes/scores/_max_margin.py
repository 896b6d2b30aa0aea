"""scikit-learn's side of the max-margin score space: parameters and validation, no mathematics."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from regbayes import chains
from regbayes.scores import max_margin, spaces
from regbayes.scores._maps import _COUNT, _ScoreMap
from regbayes.scores.protocol import Expected, Law

_POSITIVE = Interval(Real, 0, None, closed="neither")


class MaxMarginScore(CallbackSupportMixin, _ScoreMap):
    """Sufficient statistics score space learnt with a margin (MSS).

    The features are those of :class:`SufficientStatisticsScore`; the generative models behind them
    are learnt together with a max-margin classifier, so that the hidden states count what tells
    the classes apart [1]_: posterior ∝ likelihood × margin.

    Parameters
    ----------
    model, per_class, segments
        As in :class:`SufficientStatisticsScore`.
    C : float, default=5.0
        Weight of the margin: no sample pulls harder than this.
    margin : float, default=1.0
        The largest margin that is asked for.
    solver : {"gradient", "em"}, default="gradient"
        `"gradient"`: the margin loss of samples, under classifiers that were fitted without them,
        is followed through the posterior down to the models' potentials. `"em"`: the
        paper's Algorithm 1, Baum-Welch with tilted E-steps.
    multi_class : {"joint", "ovr"}, default="joint"
        One classifier of all classes on the scores of all laws; or, as in [1]_, a problem of two
        classes for every class, with a law of its own.
    n_iter : int, default=None
        Rounds at most; 40 by gradient, 3 by EM.
    rate : float, default=0.1
        Size of a gradient step in log-potentials.
    n_folds, n_referees : int, default=4
        Parts that the samples are split into, and the number of such splits, which take turns.
    patience : int, default=15
        Stop when the loss of left-out samples has not fallen for so many rounds.
    strength : float, default=1.0
        Weight of the tilt in an E-step.
    max_tilt : float, default=3.0
        The largest tilt of a statistic in an E-step.
    scaling : {"none", "length", "sqrt", "variance"}, default="sqrt"
    random_state : int, RandomState, Generator or None
        Of the splits.
    n_jobs : int, default=None
    verbose : bool or int, default=False
    callbacks : list of scikit-learn callbacks, default=None

    Attributes
    ----------
    laws_ : list
        The law of every class in the order of `classes_`, or one; with ``multi_class="ovr"`` that
        of every problem.
    tilts_ : ndarray of shape (n_laws, n_statistics)
        What the gradient added to the laws' potentials.
    losses_ : list of ndarray
        The margin loss, round by round, of each problem (gradient).
    classes_, model_
        As in :class:`SufficientStatisticsScore`.

    References
    ----------
    .. [1] Li, Wang, Liu & Lee (2013). Learning discriminative sufficient statistics score space
           for classification. ECML PKDD.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import MaxMarginScore
    >>> X = [list("aabaab"), list("aaabaa"), list("bbabb"), list("babbbbb")]
    >>> y = ["a", "a", "b", "b"]
    >>> scores = MaxMarginScore(CategoricalHMM(n_states=2, random_state=0), random_state=0)
    >>> make_pipeline(scores, LinearSVC()).fit(X, y).predict([list("aaaabaaa")])
    array(['a'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[dict] = {
        **_ScoreMap._parameter_constraints,
        "C": [_POSITIVE],
        "margin": [_POSITIVE],
        "solver": [StrOptions({"gradient", "em"})],
        "multi_class": [StrOptions({"joint", "ovr"})],
        "n_iter": [_COUNT, None],
        "rate": [_POSITIVE],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_referees": [_COUNT],
        "patience": [_COUNT],
        "strength": [_POSITIVE],
        "max_tilt": [_POSITIVE],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
    }
    _space = staticmethod(spaces.sufficient_statistics)

    def __init__(
        self,
        model,
        per_class=True,
        segments=1,
        *,
        C=5.0,
        margin=1.0,
        solver="gradient",
        multi_class="joint",
        n_iter=None,
        rate=0.1,
        n_folds=4,
        n_referees=4,
        patience=15,
        strength=1.0,
        max_tilt=3.0,
        scaling="sqrt",
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
    ):
        super().__init__(model, per_class, segments, scaling=scaling, n_jobs=n_jobs)
        self.C = C
        self.margin = margin
        self.solver = solver
        self.multi_class = multi_class
        self.n_iter = n_iter
        self.rate = rate
        self.n_folds = n_folds
        self.n_referees = n_referees
        self.patience = patience
        self.strength = strength
        self.max_tilt = max_tilt
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> MaxMarginScore:
        """Learn laws and margin together.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : array-like of shape (n_sequences,)
            A label for every sequence.
        lengths : array-like of int, optional

        Returns
        -------
        self
        """
        self._fit_transform(X, y, lengths)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: Any, y: Any = None, lengths: Any = None) -> NDArray:
        """Fit, and give the scores of the same sequences."""
        return self._fit_transform(X, y, lengths)

    @property
    def _needs_labels(self) -> bool:
        return True

    @property
    def _owners(self) -> list[str]:
        if self.multi_class == "ovr":
            return [f"{name}" for name in self._classes]
        return super()._owners

    def _learn(self, batch: Any, codes: NDArray) -> list[Law]:
        laws = super()._learn(batch, codes)
        n_classes = len(self._classes)
        problem = max_margin.Problem(
            batch,
            codes,
            n_classes,
            self.segments,
            self.scaling,
            self.C,
            self.margin,
            self._n_threads,
        )
        owners = codes if self.per_class else np.full_like(codes, -1)
        tasks = [(problem, max_margin.untilted(laws), owners)]
        if self.multi_class == "ovr":
            tasks = [
                (
                    replace(problem, codes=np.where(codes == c, 1, 0), n_classes=2),
                    max_margin.untilted([laws[c] if self.per_class else laws[0]]),
                    # A class's law learns from that class; the common one from all samples.
                    np.where(codes == c, 0, -2) if self.per_class else owners,
                )
                for c in range(n_classes)
            ]
        learnt = []
        self.losses_: list[NDArray] = []
        rng = np.random.default_rng(chains.draw_seed(self.random_state))
        with chains.watched(self, len(tasks)) as watch, threadpool_limits(1, user_api="blas"):
            for index, task in enumerate(tasks):
                with watch.chain(index, self._n_rounds) as tell:
                    learnt.append(self._learn_one(*task, rng, tell))
        self.tilts_ = np.concatenate([space.tilts for space in learnt])
        return [law for space in learnt for law in space.laws]

    def _learn_one(
        self,
        problem: max_margin.Problem,
        space: max_margin.Space,
        owners: NDArray,
        rng: np.random.Generator,
        tell: Any,
    ) -> max_margin.Space:
        if self.solver == "em":
            step = partial(max_margin.em_step, problem, owners, self.strength, self.max_tilt)
            for _ in range(self._n_rounds):
                space = step(space)
                if tell():
                    break
            return space
        if np.bincount(problem.codes).max() < 2:  # nothing can be left out
            return space
        space, losses = max_margin.descend(
            problem,
            space,
            self._n_rounds,
            self.rate,
            self.n_folds,
            self.n_referees,
            self.patience,
            rng,
            tell,
        )
        self.losses_.append(losses)
        return space

    @property
    def _n_rounds(self) -> int:
        if self.n_iter is not None:
            return self.n_iter
        return 40 if self.solver == "gradient" else 3

    def _expect(self, index: int, batch: Any) -> Expected:
        return self.laws_[index].expect(
            batch, self.tilts_[index], self.segments, True, self._n_threads
        )
