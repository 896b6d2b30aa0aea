"""The max-margin topic model: parameters and methods, no mathematics."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions

from regbayes import chains
from regbayes.data import check_labelled_documents
from regbayes.margin import GibbsClassifier, check_scale
from regbayes.priors import (
    AsymmetricDirichlet,
    HierarchicalProportions,
    as_concentration_prior,
)
from regbayes.topics import gibbs
from regbayes.topics._latent_dirichlet import COUNT, POSITIVE, TopicModel, best_chain
from regbayes.topics.reading import Task, as_inputs, tune, word_weights


class MaxMarginTopics(ClassifierMixin, TopicModel):
    """Max-margin topics: a classifier of documents that shows its topics (Gibbs MedLDA).

    Latent Dirichlet allocation, and a linear max-margin classifier of the shares of topics in a
    document: topics explain the words and tell the classes apart,
    posterior ∝ topics × words × margin [1]_.

    Parameters
    ----------
    n_topics : int or "auto", default=50
        `"auto"` finds the number under a hierarchical Dirichlet process.
    C : float, default=1.0
        Weight of the margin of a document against the likelihood of its words.
    cost : float, default=100.0
        Cost of a wrong label: the margin that is asked for. Shares of topics are small numbers, and
        a margin moves the topics of a document only if it costs as much as words do.
    prediction : {"tuned", "average"}, default="tuned"
        `"tuned"`: words are read one by one, by the topics that they show out of context, as
        the documents that are to be labelled have to be read too; these topics move to where a
        max-margin classifier of them has its margin, and the mean of the scores of all chains
        counts. `"average"`: the mean over draws of the classifiers that were sampled with the
        topics.
    alpha, beta
        As in :class:`LatentDirichlet`; with ``n_topics="auto"``, `alpha` is not used.
    concentration, gamma : float or (shape, rate), default=(1.0, 1.0)
        With ``n_topics="auto"``: how much alike the documents are, and how many topics there are a
        priori.
    max_topics : int, default=100
        With ``n_topics="auto"``: where the process is truncated.
    nu : float or (shape, rate), default=(1.0, 100.0)
        Scale of the weights: a number fixes it, a pair is a Gamma prior on ``1 / nu**2``.
    tuning_C : float, default=1.5
        With ``prediction="tuned"``: weight of the margin of a document, above 1.
    stay : float, default=0.1
        With ``prediction="tuned"``: what it costs a word to leave the topics that it was sampled
        in. Small numbers are for accuracy, large ones for topics as the documents have them.
    n_rounds : int, default=20
        With ``prediction="tuned"``: rounds at most, of classifier and topics in turn.
    n_draws, burn_in, thin, n_chains, random_state, n_jobs, verbose, callbacks, warm_start,
    checkpoint
        As in :class:`LatentDirichlet`. All chains have a say in predictions.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (n_topics, n_words)
        Topics: posterior means over the draws of the best chain. With ``n_topics="auto"``, those
        that have words.
    topic_weights_ : ndarray of shape (n_classes, n_topics)
        What a topic says for each class, in the best chain; zero in the mean over classes.
    intercept_ : ndarray of shape (n_classes,)
    alpha_ : ndarray of shape (n_topics,)
    n_topics_ : int
        Posterior mode of the number of topics with words.
    trace_ : regbayes.chains.Trace

    Notes
    -----
    What X may hold is as in :class:`LatentDirichlet`; an empty document says less than usual
    of every topic. The z-updates use the margin itself, by Metropolis steps, and the weights are
    drawn by the augmentation that all max-margin families here share.

    References
    ----------
    .. [1] Zhu, Chen, Perkins & Zhang (2014). Gibbs max-margin topic models with data augmentation.
           JMLR 15.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.topics import MaxMarginTopics
    >>> rng = np.random.default_rng(0)
    >>> law = np.repeat([[0.3, 0.1, 0.3, 0.3], [0.1, 0.3, 0.3, 0.3]], 40, axis=0)
    >>> X = np.array([rng.multinomial(40, p) for p in law])
    >>> y = np.repeat(["first", "second"], 40)
    >>> model = MaxMarginTopics(4, n_draws=10, burn_in=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.topic_weights_.shape
    (2, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        **TopicModel._parameter_constraints,
        "n_topics": [COUNT, StrOptions({"auto"})],
        "C": [POSITIVE],
        "cost": [POSITIVE],
        "concentration": [POSITIVE, tuple, list],
        "gamma": [POSITIVE, tuple, list],
        "max_topics": [COUNT],
        "nu": [POSITIVE, tuple, list],
        "prediction": [StrOptions({"tuned", "average"})],
        "tuning_C": [Interval(Real, 1, None, closed="neither")],
        "stay": [POSITIVE],
        "n_rounds": [COUNT],
    }

    def __init__(
        self,
        n_topics=50,
        C=1.0,
        cost=100.0,
        prediction="tuned",
        alpha=(1.0, 10.0),
        beta=(1.0, 20.0),
        *,
        concentration=(1.0, 1.0),
        gamma=(1.0, 1.0),
        max_topics=100,
        nu=(1.0, 100.0),
        tuning_C=1.5,
        stay=0.1,
        n_rounds=20,
        n_draws=20,
        burn_in=160,
        thin=2,
        n_chains=2,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.n_topics = n_topics
        self.C = C
        self.cost = cost
        self.prediction = prediction
        self.alpha = alpha
        self.beta = beta
        self.concentration = concentration
        self.gamma = gamma
        self.max_topics = max_topics
        self.nu = nu
        self.tuning_C = tuning_C
        self.stay = stay
        self.n_rounds = n_rounds
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
    def fit(self, X: Any, y: Any) -> MaxMarginTopics:
        """Sample topics and classifiers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,)
            Labels of any type, two classes or more.

        Returns
        -------
        self
        """
        documents, self.classes_, codes = check_labelled_documents(self, X, y)
        n_topics, proportions = self._prior()
        classifier = GibbsClassifier(
            len(self.classes_), n_topics + 1, self.C, self.cost, check_scale(self.nu, "nu")
        )
        labels = gibbs.Labels(codes, classifier)
        model = self._model(documents, n_topics, proportions, labels=labels)
        seed = chains.draw_seed(self.random_state, self.checkpoint)
        self.trace_ = chains.run_for(
            self,
            partial(gibbs.init, model),
            partial(gibbs.step, model),
            partial(gibbs.record, model),
            seed,
        )
        self.n_topics_ = int(np.bincount([draw["n_topics"] for draw in self.trace_]).argmax())
        only_used = self.n_topics == "auto"
        found = [
            gibbs.summarize(chain, documents.n_words, only_used) for chain in self.trace_.chains
        ]
        self._readings = []
        if self.prediction == "tuned":
            self._word_weights = word_weights(documents)
            inputs = as_inputs(documents, self._word_weights)
            task = Task(inputs, codes, len(self.classes_), self.tuning_C, self.stay)
            tuned = [tune(task, summary, self.n_rounds) for summary in found]
            self._readings, found = [list(each) for each in zip(*tuned)]
        self._best_chain = best_chain(self.trace_)
        best = found[self._best_chain]
        self.components_, self.alpha_ = np.ascontiguousarray(best.phi.T), best.alpha
        weights = best.weights - best.weights.mean(axis=0)
        self.topic_weights_, self.intercept_ = weights[:, :-1], weights[:, -1]
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Scores of the classes, the mean over draws; for two, the second's minus the first's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        ndarray of shape (n_documents, n_classes) or (n_documents,)
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """The class with the largest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray:
        """The margin's pseudo-likelihoods of the classes at the mean scores, normalised.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            Columns in the order of `classes_`; rows sum to one.
        """
        sampled = self.prediction == "average"
        C, cost = (self.C, self.cost) if sampled else (self.tuning_C, 1.0)
        return np.exp(gibbs.log_label_shares(self._scores(X), C, cost))

    def evidence(self, X: Any) -> NDArray:
        """How much more of each topic documents show than usual: what scores are made of.

        As the best chain reads them; its scores are ``evidence(X) @ topic_weights_.T +
        intercept_``, so the products tell which topics decide the label of a document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        ndarray of shape (n_documents, n_topics)
        """
        documents = self._new_documents(X)
        if self.prediction == "average":
            found = gibbs.expected_counts(documents, self.alpha_, self._phi, self._n_threads)
            return found / documents.sizes[:, None]
        inputs = as_inputs(documents, self._word_weights)
        return self._readings[self._best_chain].evidence(inputs)

    def _scores(self, X: Any) -> NDArray:
        documents = self._new_documents(X)
        if self.prediction == "average":
            return gibbs.average_scores(documents, list(self.trace_), self._n_threads)
        inputs = as_inputs(documents, self._word_weights)
        return np.mean([reading.scores(inputs) for reading in self._readings], axis=0)

    def _prior(self) -> tuple[int, AsymmetricDirichlet | HierarchicalProportions]:
        if self.n_topics != "auto":
            prior = as_concentration_prior(self.alpha, "alpha")
            return self.n_topics, AsymmetricDirichlet(prior)
        return self.max_topics, HierarchicalProportions(
            as_concentration_prior(self.concentration, "concentration"),
            as_concentration_prior(self.gamma, "gamma"),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Two "words" with three clusters between them have no topics to tell them apart by.
        tags.classifier_tags.poor_score = True
        return tags
