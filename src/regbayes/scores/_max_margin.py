"""scikit-learn's side of the max-margin score space: parameters and validation, no mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from regbayes import chains
from regbayes.scores import max_margin, spaces
from regbayes.scores._maps import _COUNT, _ScoreMap, named
from regbayes.scores.max_margin import Task, Turn
from regbayes.scores.protocol import Law

_POSITIVE = Interval(Real, 0, None, closed="neither")


class MaxMarginScore(CallbackSupportMixin, _ScoreMap):
    """Sufficient statistics score space learnt with a margin (MSS).

    The features are those of :class:`SufficientStatisticsScore`, or of :class:`FisherScore`, whose
    scores are made of the same statistics; the generative models behind them are learnt together
    with a max-margin classifier, so that the hidden states count what tells the classes apart
    [1]_: posterior ∝ likelihood × margin. By gradient, what the models count as
    they were stays beside it.

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
    keep_plain : bool, default=True
        By gradient: scores of the laws as they are stand before the learnt ones, which then learn
        what these miss. By EM the laws themselves change, and there are no others.
    n_iter : int, default=None
        Rounds at most; 80 by gradient, 3 by EM.
    rate : float, default=0.3
        Size of a gradient step in log-potentials.
    n_folds : int, default=10
        Parts that the samples are split into: classifiers judge the one that they were not
        fitted to.
    n_referees : int, default=4
        The number of such splits, which take turns.
    n_splits : int, default=3
        How many rounds are good is learnt from parts of the samples, each without one of so many
        folds, with laws and a descent of their own, and from the errors in those folds, looked at
        after 1/8, 1/4, 1/2 and all of the rounds for as long as they become fewer. A quarter of
        `n_iter` is done; more if that has fewer errors; none if that is clearly better, and then
        the scores are those of :class:`SufficientStatisticsScore`, or of :class:`FisherScore`. With
        0 or 1, all of `n_iter`.
    strength : float, default=1.0
        Weight of the tilt in an E-step.
    max_tilt : float, default=3.0
        The largest tilt of a statistic in an E-step.
    scaling : {"none", "length", "sqrt", "variance", "standard"}, default="sqrt"
    space : {"statistics", "fisher"}, default="statistics"
        What the laws' statistics are turned into: nothing, or Fisher scores, of the law as it was,
        which count what is beyond the law's expectation; worth a try over documents.
    random_state : int, RandomState, Generator or None
        Of the splits.
    n_jobs : int, default=None
        Threads for the recursions, and with ``multi_class="ovr"`` for the classes, which go where
        :func:`joblib.parallel_config` says; with callbacks or a checkpoint one after the other.
    verbose : bool or int, default=False
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    laws_ : list
        The law of every class in the order of `classes_`, or one; with ``multi_class="ovr"`` that
        of every problem.
    tilts_ : ndarray of shape (n_laws, n_statistics)
        What the gradient added to the laws' potentials.
    n_rounds_ : list of int
        How many rounds were done for each problem (gradient); none, if a callback ended it while
        parts were still looked at.
    losses_ : list of ndarray
        The margin loss, round by round, of each problem (gradient): samples are left out of the
        classifiers' fits but not of the tilts', so it falls for longer than it should.
    unseen_errors_ : list of ndarray
        How many samples are misjudged that parts of each problem do not know (gradient): rows of
        the round, and of the number with each of several weights `C` of a
        :class:`MarginClassifier`, 1.5, 3, 10, 30, 100. Their mean decides.
    best_C_ : list of float or None
        The weight with the fewest errors in the round that was kept; None without `n_splits`.
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
        "keep_plain": ["boolean"],
        "space": [StrOptions(set(spaces.LEARNABLE))],
        "n_iter": [Interval(Integral, 0, None, closed="left"), None],
        "rate": [_POSITIVE],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_referees": [_COUNT],
        "n_splits": [Interval(Integral, 0, None, closed="left")],
        "strength": [_POSITIVE],
        "max_tilt": [_POSITIVE],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "checkpoint": chains.CHECKPOINT,
    }

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
        keep_plain=True,
        n_iter=None,
        rate=0.3,
        n_folds=10,
        n_referees=4,
        n_splits=3,
        strength=1.0,
        max_tilt=3.0,
        scaling="sqrt",
        space="statistics",
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        super().__init__(model, per_class, segments, scaling=scaling, n_jobs=n_jobs)
        self.C = C
        self.margin = margin
        self.solver = solver
        self.multi_class = multi_class
        self.keep_plain = keep_plain
        self.n_iter = n_iter
        self.rate = rate
        self.n_folds = n_folds
        self.n_referees = n_referees
        self.n_splits = n_splits
        self.strength = strength
        self.max_tilt = max_tilt
        self.space = space
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @property
    def _needs_labels(self) -> bool:
        return True

    @property
    def _owners(self) -> list[str]:
        if self.multi_class == "ovr":
            return [f"{name}" for name in self._classes]
        return super()._owners

    def _learn(self, batch: Any, codes: NDArray) -> list[Law]:
        seed = chains.draw_seed(self.random_state, self.checkpoint)
        n_tasks = len(self._classes) if self.multi_class == "ovr" else 1
        seeds = np.random.default_rng(seed).integers(2**31, size=(n_tasks, 1 + self.n_referees))
        tasks = self._tasks(batch, codes, seeds[:, 0])
        learn_laws = partial(super()._learn, batch, codes)
        laws: list[Law] = []

        def laws_of(some: NDArray, index: int) -> list[Law]:
            if self.multi_class == "ovr" and self.per_class:
                return [self.model_.learn(batch.take(some[codes[some] == index]))]
            return super(MaxMarginScore, self)._learn(batch.take(some), codes[some])

        def begin(_: np.random.Generator, index: int) -> Turn:
            if not laws:  # a fit that goes on may not need them
                laws.extend(learn_laws())
            own, task = laws, tasks[index]
            if self.multi_class == "ovr":
                own = [laws[index] if self.per_class else laws[0]]
            space = max_margin.untilted(own)
            if self.solver == "em":
                return Turn(index, space)
            of_parts = [max_margin.untilted(laws_of(part.known, index)) for part in task.splits]
            return Turn(
                index,
                task.begin(space, of_parts, self.n_folds, seeds[index, 1:], self._n_rounds),
            )

        step: Any = partial(max_margin.em_round, tasks, self.strength, self.max_tilt)
        if self.solver == "gradient":
            step = partial(max_margin.gradient_round, tasks, self.rate)
        gradient = self.solver == "gradient"  # EM goes on for as many rounds as it is told to
        with chains.watched(self, len(tasks)) as watch, threadpool_limits(1, user_api="blas"):
            if watch.idle and len(tasks) > 1:  # classes may then be learnt in many places
                laws.extend(learn_laws())
            found = [
                descent.state.state
                for descent in chains.descend_each(
                    begin,
                    step,
                    lambda here: here.state.loss if gradient else 0.0,
                    len(tasks),
                    settled=lambda here: gradient and here.state.done,
                    # First those of the parts.
                    max_iter=self._n_rounds * (2 if tasks[0].splits else 1),
                    random_state=seed,
                    watch=watch,
                    n_jobs=self.n_jobs if len(tasks) > 1 else 1,
                )
            ]
        searches = found if gradient else []
        self.n_rounds_ = [len(here.whole.losses) for here in searches]
        self.losses_: list[NDArray] = [np.array(here.whole.losses) for here in searches]
        self.unseen_errors_: list[NDArray] = [
            np.array([[check.n_rounds, *check.errors] for check in here.checks])
            for here in searches
        ]
        self.best_C_: list[float | None] = [here.kept.weight for here in searches]
        if gradient:
            found = [here.whole.learnt for here in searches]
        self.tilts_ = np.concatenate([space.tilts for space in found])
        return [law for space in found for law in space.laws]

    def _tasks(self, batch: Any, codes: NDArray, seeds: NDArray) -> list[Task]:
        problem = max_margin.Problem(
            batch,
            codes,
            len(self._classes),
            self.segments,
            self.scaling,
            self.C,
            self.margin,
            self._n_threads,
            self._both,
            self.space,
        )
        owners = codes if self.per_class else np.full_like(codes, -1)
        n_splits = self.n_splits if self.solver == "gradient" else 0
        if self.multi_class == "joint":
            return [Task.of(problem, owners, n_splits, int(seeds[0]), codes)]
        return [
            Task.of(
                replace(problem, codes=np.where(codes == c, 1, 0), n_classes=2),
                # A class's law learns from that class; the common one from all samples.
                np.where(codes == c, 0, -2) if self.per_class else owners,
                n_splits,
                int(seeds[c]),
                codes,
            )
            for c in range(len(self._classes))
        ]

    @property
    def _n_rounds(self) -> int:
        if self.n_iter is not None:
            return self.n_iter
        return 80 if self.solver == "gradient" else 3

    @property
    def _space(self) -> Callable:  # type: ignore[override]
        return spaces.LEARNABLE[self.space].describe

    @property
    def _both(self) -> bool:
        return self.keep_plain and self.solver == "gradient"

    @property
    def _views(self) -> list[tuple[int, NDArray | None]]:
        """First the laws as they are, if plain scores are kept; then those that have a tilt."""
        if not self._both:
            return list(enumerate(self.tilts_))
        return [*super()._views, *((i, tilt) for i, tilt in enumerate(self.tilts_) if tilt.any())]

    def _raw_names(self) -> list[str]:
        learnt = " learnt" if self._both else ""
        owners = [self._owners[i] + ("" if tilt is None else learnt) for i, tilt in self._views]
        return named(owners, self.segments, spaces.NAMES[self._space](self.laws_[0]))
