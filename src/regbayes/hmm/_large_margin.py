"""scikit-learn's side of the large-margin HMM: parameters, validation, no mathematics."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import ReportMixin, SequenceMixin, Sequences, SequenceTags, check_sequence_labels
from regbayes.hmm import large_margin

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")


class LargeMarginHMM(
    ReportMixin, SequenceMixin, ClassifierMixin, CallbackSupportMixin, BaseEstimator
):
    """Classifier of whole sequences: a hidden Markov model for each class, with a margin.

    The models are learnt by maximum likelihood first. Then their log-probabilities of first states,
    transitions and emissions move until the log-likelihood of every training sequence is larger
    under its own class than under all others together, by a margin for each step [1]_.

    Parameters
    ----------
    model : CategoricalHMM, GaussianHMM, or any finite HMM with their methods `read` and `learn`
        The model of a class, not fitted; every class gets one of its own, over the symbols, or in
        the units, of all classes.
    C : float, default=10.0
        Weight of the hinge against the pull to the models of maximum likelihood.
    margin : float, default=0.1
        The margin that is asked for: a difference of log-likelihoods, divided by the length of the
        sequence.
    max_iter : int, default=200
        At most this many rounds of L-BFGS.
    tol : float, default=1e-4
        Stop when a round lowers the objective by less than this fraction of it.
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
    laws_ : list of ChainLaw
        The models of maximum likelihood.
    tilts_ : ndarray of shape (n_classes, n_statistics)
        What the margin added to the log-probabilities of each class, in the order of
        ``laws_[0].names``.
    objective_ : ndarray of shape ``(n_iter_ + 1,)``
        At the start and after each round, never rising.
    converged_ : bool
    n_iter_ : int
    model_ : estimator
        The copy of `model` that reads sequences.

    See Also
    --------
    regbayes.hmm.CategoricalHMM, regbayes.hmm.GaussianHMM : what to pass as `model`.

    Notes
    -----
    Differences from the original, which labels every step of speech with a phone:

    * A class is a label of the whole sequence with a chain of its own, and the margin is asked
      against the other classes, not against other paths. As there, it grows with the length, and
      a soft maximum over everything that is wrong leaves one hinge for each sequence.
    * The path of the right class is summed over. In the original it is fixed to the best path by
      maximum likelihood, which makes the problem convex; here it is smooth, and has a local
      minimum near the models of maximum likelihood, from where the search starts.
    * First states and transitions are learnt as well as emissions. None of them are normalised
      after that (nor in the original): scores are no likelihoods any more, which is why there is
      no `predict_proba`, and `random_state`, `pseudocount` and the like belong to `model`.
    * The penalty is the squared distance from maximum likelihood, in place of the traces of the
      precision matrices. Squares of diagonal Gaussians keep coefficients below zero, as in the
      original; full covariances are kept so by the penalty alone.
    * The corner of the hinge is rounded, over a tenth of the margin.

    Classes are equally likely a priori.

    References
    ----------
    .. [1] Sha & Saul (2007). Large margin hidden Markov models for automatic speech recognition.
           NIPS 19.

    Examples
    --------
    >>> from regbayes.hmm import CategoricalHMM, LargeMarginHMM
    >>> X = [list("aabbaabb"), list("abbaab"), list("ababab"), list("babababa")]
    >>> y = ["pairs", "pairs", "single", "single"]
    >>> model = LargeMarginHMM(CategoricalHMM(n_states=2, random_state=0)).fit(X, y)
    >>> model.predict([list("bbaabbaa"), list("ababa")])
    array(['pairs', 'single'], dtype='<U6')
    """

    _parameter_constraints: ClassVar[dict] = {
        "model": [HasMethods(["read", "learn"])],
        "C": [_POSITIVE],
        "margin": [_POSITIVE],
        "max_iter": [_COUNT],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "checkpoint": chains.CHECKPOINT,
    }

    def __init__(
        self,
        model,
        C=10.0,
        margin=0.1,
        *,
        max_iter=200,
        tol=1e-4,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        checkpoint=None,
    ):
        self.model = model
        self.C = C
        self.margin = margin
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> LargeMarginHMM:
        """Learn a model for each class, and move them apart.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences in any layout, see :func:`regbayes.data.check_sequences`.
        y : array-like of shape (n_sequences,)
            A label for every sequence.
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        self
        """
        self.model_ = clone(self.model)
        sequences = self.model_.read(X, lengths, reset=True)
        self.classes_, codes = check_sequence_labels(sequences, y)
        parts = [sequences.take(codes == c) for c in range(len(self.classes_))]
        shared = getattr(self.model_, "random_state", None)
        with chains.watched(self, 1) as watch:
            ask = watch.replay(sequences, codes)
            learn = partial(chains.each, self.model_.learn, parts, self.n_jobs, shared)
            self.laws_ = ask(learn)
            problem = large_margin.Model(
                self.laws_, sequences, codes, self.C, self.margin, self._n_threads
            )
            self.tilts_, self.objective_, self.converged_ = large_margin.solve(
                problem, self.max_iter, self.tol, ask, watch
            )
        self.n_iter_ = len(self.objective_) - 1
        return self

    def decision_function(self, X: Any, lengths: Any = None) -> NDArray:
        """Scores of the classes: log-likelihoods for each step, and what the margin added.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences, n_classes) or, for two classes, (n_sequences,)
            Columns in the order of `classes_`; for two classes the second's score minus the
            first's.
        """
        scores = self._scores(self._new_sequences(X, lengths))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any, lengths: Any = None) -> NDArray:
        """The class of every sequence: that with the largest score.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        scores = self._scores(self._new_sequences(X, lengths))
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Share of sequences that are predicted right.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        y : array-like of shape (n_sequences,)
            A label for every sequence.
        lengths : array-like of int, optional

        Returns
        -------
        float
        """
        sequences = self._new_sequences(X, lengths)
        _, truth = check_sequence_labels(sequences, y, classes=self.classes_)
        return float(np.mean(self._scores(sequences).argmax(axis=1) == truth))

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        check_is_fitted(self)
        return self.model_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray:
        """Names of the features, when a DataFrame had them."""
        check_is_fitted(self)
        return self.model_.feature_names_in_

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(labels="sequence", values=self.model._sequence_tags().values)

    @property
    def _n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def _new_sequences(self, X: Any, lengths: Any) -> Sequences:
        check_is_fitted(self)
        return self.model_.read(X, lengths)

    def _scores(self, sequences: Sequences) -> NDArray:
        return large_margin.scores(self.laws_, self.tilts_, sequences, self._n_threads)
