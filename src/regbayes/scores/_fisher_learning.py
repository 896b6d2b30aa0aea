"""scikit-learn's side of Fisher kernel learning: parameters, validation, no mathematics."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions

from regbayes import chains
from regbayes.scores import fisher_learning, spaces
from regbayes.scores._maps import _COUNT, _ScoreMap
from regbayes.scores.protocol import Law
from regbayes.scores.scaling import Scaler
from regbayes.scores.tilts import expected_statistics

_POSITIVE = Interval(Real, 0, None, closed="neither")


class FisherKernelLearning(CallbackSupportMixin, _ScoreMap):
    """Fisher scores of a model that was trained to have neighbours of the same class.

    A transformer: sequences become vectors, the gradients of their log-likelihoods. The model
    learns by maximum likelihood first, and without labels; then its potentials move until a
    sequence and its nearest neighbours in the space of scores tend to have the same label [1]_.
    Put :class:`~sklearn.neighbors.KNeighborsClassifier` with one neighbour after it, or
    :class:`~sklearn.svm.LinearSVC`.

    Parameters
    ----------
    model : CategoricalHMM, GaussianHMM, or any model with their methods `read` and `learn`
        Not fitted.
    per_class : bool, default=False
        One model for all classes, as in the original; otherwise one for each, whose scores stand
        side by side.
    segments : int, default=1
        Scores for so many parts of equal length of every sequence.
    C : float, default=1.0
        Weight of the wrong neighbours against the pull to the model of maximum likelihood.
    perplexity : float, default=10.0
        How many neighbours a sequence has, on average over sequences, before learning. It sets the
        unit of the distances.
    scaling : {"none", "length", "variance"}, default="variance"
        Scores as they are, divided by the length of the sequence, or also by their deviation: that
        of the model of maximum likelihood, which stands for the Fisher information and stays as
        the model moves.
    n_iter : int, default=30
        At most this many rounds of L-BFGS.
    validation_fraction : float, default=0.3
        The share of each class that is left out of training, to choose the round that is best for
        it; 0 trains on all sequences for `n_iter` rounds.
    patience : int, default=10
        Stop after so many rounds that are not better for the sequences left out.
    random_state : int, RandomState, Generator or None
        Decides which sequences are left out; `model` has its own.
    n_jobs : int, default=None
        Threads over sequences; the result does not depend on it.
    verbose : bool or int, default=False
        Show a progress bar.
    callbacks : list of scikit-learn callbacks, default=None
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    laws_ : list of Law
        The model of maximum likelihood, or those of the classes.
    tilts_ : ndarray of shape (n_laws, n_statistics)
        What learning added to their log-probabilities, in the order of ``laws_[0].names``.
    objective_ : ndarray
        At the start and after each round, of the sequences that were trained on.
    validation_ : ndarray
        Expected share of wrong neighbours of those left out, at the start and after each round;
        empty without them.
    n_iter_ : int
    model_ : estimator
        The copy of `model` that reads sequences.

    Notes
    -----
    Coordinates are those of a random field: potentials in the place of log-probabilities, not
    normalised row by row. The score is then ``E[T | x] - E[T]`` with the statistics T, counts of
    first states, transitions and emissions. The last term is the same for all sequences of a
    length, and is left out; with ``segments=1`` and no learning, the scores are the expected
    statistics.

    From the original we know the idea, and have not seen its text: the model is trained so that
    gradients are close for equal labels and far apart for different ones, by the error of the
    nearest neighbour. Our reading is the rest: choosing a neighbour at random, by a softmax over
    squared distances [2]_; the fixed scale; L-BFGS with a penalty and early stopping, without
    which few sequences are soon learnt by heart.

    References
    ----------
    .. [1] van der Maaten (2011). Learning discriminative Fisher kernels. ICML.
    .. [2] Goldberger, Roweis, Hinton & Salakhutdinov (2005). Neighbourhood components analysis.
           NIPS 17.

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM
    >>> from regbayes.scores import FisherKernelLearning
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X = [list("aabbaabb"), list("bbaabb"), list("ababab"), list("babababa")]
    >>> y = ["pairs", "pairs", "single", "single"]
    >>> scores = FisherKernelLearning(CategoricalHMM(n_states=2, random_state=0), random_state=0)
    >>> model = make_pipeline(scores, KNeighborsClassifier(1)).fit(X, y)
    >>> model.predict([list("bbaabbaa"), list("ababa")])
    array(['pairs', 'single'], dtype='<U6')
    """

    _parameter_constraints: ClassVar[dict] = {
        **_ScoreMap._parameter_constraints,
        # Squared distances are between gradients, not between their square roots.
        "scaling": [StrOptions({"none", "length", "variance"})],
        "C": [_POSITIVE],
        "perplexity": [Interval(Real, 1, None, closed="neither")],
        "n_iter": [_COUNT],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": [_COUNT],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "checkpoint": chains.CHECKPOINT,
    }
    _space = staticmethod(spaces.fisher)

    def __init__(
        self,
        model,
        per_class=False,
        segments=1,
        *,
        C=1.0,
        perplexity=10.0,
        scaling="variance",
        n_iter=30,
        validation_fraction=0.3,
        patience=10,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        super().__init__(model, per_class, segments, scaling=scaling, n_jobs=n_jobs)
        self.C = C
        self.perplexity = perplexity
        self.n_iter = n_iter
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @property
    def _needs_labels(self) -> bool:
        return True

    def _learn(self, batch: Any, codes: NDArray) -> list[Law]:
        seed = chains.draw_seed(self.random_state, self.checkpoint)
        with chains.watched(self, 1) as watch:
            ask = watch.replay(batch, codes, seed=seed)
            laws = ask(super()._learn, batch, codes)
            problem = fisher_learning.make_model(
                laws,
                batch,
                codes,
                self.scaling,
                self.C,
                self.perplexity,
                self.validation_fraction,
                np.random.default_rng(seed),
                self.segments,
                self._n_threads,
            )
            self._scaler = problem.scaler
            self.tilts_, self.objective_, self.validation_ = fisher_learning.solve(
                problem, self.n_iter, self.patience, ask, watch
            )
        self.n_iter_ = len(self.objective_) - 1
        return laws

    def _fit_scaler(self, raw: NDArray, sizes: NDArray) -> Scaler:
        return self._scaler  # that of the laws before learning: distances keep their unit

    def _raw(self, batch: Any) -> NDArray:
        raw = expected_statistics(self.laws_, self.tilts_, batch, self.segments, self._n_threads)
        return raw.reshape(len(batch), -1)
