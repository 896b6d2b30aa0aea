"""scikit-learn's side of latent Dirichlet allocation: parameters and methods, no mathematics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import Documents, ReportMixin, check_documents
from regbayes.kernels.topics import make_corpus
from regbayes.priors import AsymmetricDirichlet, Fixed, as_concentration_prior
from regbayes.topics import gibbs
from regbayes.topics.law import DocumentLaw

POSITIVE = Interval(Real, 0, None, closed="neither")
COUNT = Interval(Integral, 1, None, closed="left")


class TopicModel(
    chains.SamplerMixin,
    ReportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    """What the topic models share: reading documents, and looking at topics."""

    _parameter_constraints: ClassVar[dict] = {
        "n_topics": [COUNT],
        "alpha": [POSITIVE, tuple, list],
        "beta": [POSITIVE, tuple, list],
        "n_draws": [COUNT],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [COUNT],
        "n_chains": [COUNT],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "warm_start": ["boolean"],
        "checkpoint": chains.CHECKPOINT,
    }
    components_: NDArray
    alpha_: NDArray

    def transform(self, X: Any) -> NDArray:
        """Shares of the topics in documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        ndarray of shape (n_documents, n_topics)
            Posterior means given the topics; rows sum to one. An empty document has the shares
            of the prior.
        """
        documents = self._new_documents(X)
        return gibbs.proportions_of(documents, self.alpha_, self._phi, self._n_threads)

    def perplexity(self, X: Any) -> float:
        """Perplexity of every second word of documents given the others.

        Document completion: the shares of a document's topics are found from one half of its
        tokens, the other half is predicted. Lower is better; the number of words is the worst that
        a reasonable model does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        """
        documents = self._new_documents(X)
        log_p, n = gibbs.completion(documents, self.alpha_, self._phi, self._n_threads)
        if n == 0:
            raise ValueError(
                "no document has two words, one to read and one to predict.\n"
                "To mend it: pass longer documents."
            )
        return float(np.exp(-log_p / n))

    def top_words(self, n_words: int = 10, words: Any = None, distinctive: float = 0.0) -> NDArray:
        """The words that stand for every topic, first the one that does most.

        Parameters
        ----------
        n_words : int, default=10
        words : array-like of str, optional
            What the columns are called; by default `feature_names_in_`, or their numbers.
        distinctive : float, default=0.0
            At 0, words with the largest shares of a topic. At 1, words whose share is large against
            that in all topics together, be they rare. Between, a compromise: the relevance of
            Sievert & Shirley (2014), with lambda = 1 - distinctive.

        Returns
        -------
        ndarray of shape (n_topics, n_words)
        """
        check_is_fitted(self)
        overall = self.alpha_ / self.alpha_.sum() @ self.components_
        relevance = np.log(self.components_) - distinctive * np.log(overall)
        first = np.argsort(-relevance, axis=1, kind="stable")[:, :n_words]
        names = getattr(self, "feature_names_in_", None) if words is None else words
        return first if names is None else np.asarray(names)[first]

    @property
    def _phi(self) -> NDArray:
        return np.ascontiguousarray(self.components_.T)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def _n_threads(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def _new_documents(self, X: Any) -> Documents:
        check_is_fitted(self)
        return check_documents(self, X, reset=False)

    def _model(self, documents: Documents, n_topics: int, proportions: Any, **more: Any) -> Any:
        table = documents.counts
        return gibbs.Model(
            make_corpus(table.indptr, table.indices, table.data, documents.n_words),
            n_topics,
            proportions,
            more.pop("prior_of_words", as_concentration_prior(self.beta, "beta")),
            # The last tenth of the burn-in is exact, as are all sweeps after it.
            n_settle=0 if len(more.get("base", ())) else self.burn_in * 9 // 10,
            n_threads=chains.spare_threads(self.n_jobs, self.n_chains),  # work on documents
            **more,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def best_chain(trace: chains.Trace) -> int:
    """The chain of highest joint density: across chains, topics have no names in common."""
    return int(np.argmax([np.mean([d["log_joint"] for d in chain]) for chain in trace.chains]))


class LatentDirichlet(TopicModel):
    """Latent Dirichlet allocation, by Gibbs sampling.

    Topics are distributions over words, documents are mixtures of topics [1]_. The concentrations
    of both are learned in every sweep: one for each topic, so that common and rare topics may be
    unlike, and one for the words.

    Parameters
    ----------
    n_topics : int, default=50
    alpha : float or (shape, rate), default=(1.0, 10.0)
        Concentrations of the topics in documents: a number fixes all of them, a pair is the Gamma
        prior of each.
    beta : float or (shape, rate), default=(1.0, 20.0)
        Concentration of the words in topics.
    n_draws, burn_in, thin, n_chains : int
        Sweeps kept, thrown away, between two that are kept; chains, of which the best is looked
        at. The first nine tenths of the burn-in are fast sweeps, see Notes.
    random_state : int, RandomState, Generator or None
    n_jobs : int, default=None
        Threads over chains and documents; the result does not depend on it.
    verbose : bool or int, default=False
    callbacks : list of scikit-learn callbacks, default=None
    warm_start : bool, default=False
        Go on where the last fit with warm_start=True ended: `n_draws` more of the same chains.
    checkpoint : path, Checkpoint or None, default=None
        A folder in which the fit keeps what it needs to go on after a crash; see
        :class:`regbayes.chains.Checkpoint`. A fit that finds one of its own there goes on.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Topics: posterior means over the draws of the best chain; rows sum to one.
    alpha_ : ndarray of shape (n_topics,)
        Concentrations of the topics in documents, likewise.
    beta_ : float
    trace_ : regbayes.chains.Trace
        ``trace_["log_joint"]``, ``trace_["alpha"]``.
    n_documents_seen_ : int
        By `fit`, or by all calls of `partial_fit`.

    Notes
    -----
    X holds counts, dense or sparse. Negative counts are an error. Fractions are rounded up with a
    warning. Empty documents are taken, and have the shares of the prior. A word that training never
    had has the share of the prior in every topic, so it says nothing about a document; a column of
    zeros is such a word.

    The sampler draws topics and integrates the shares of documents out, so that documents are
    sampled in threads, exactly, and with the same result for any number of them. Early sweeps use
    the mean of the topics in place of a draw, which finds good topics in half the sweeps and is not
    exact; no draw is kept before exact sweeps have followed.

    References
    ----------
    .. [1] Blei, Ng & Jordan (2003). Latent Dirichlet allocation. JMLR 3.
    .. [2] Griffiths & Steyvers (2004). Finding scientific topics. PNAS 101.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.topics import LatentDirichlet
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.4, 0.4, 0.2, 0, 0, 0], [0, 0, 0, 0.2, 0.4, 0.4]], 30, axis=0)
    >>> X = np.array([rng.multinomial(20, p) for p in X])
    >>> model = LatentDirichlet(2, random_state=0).fit(X)
    >>> sorted(map(sorted, model.top_words(3).tolist()))
    [[0, 1, 2], [3, 4, 5]]
    >>> bool(model.transform(X).max(axis=1).min() > 0.8), model.perplexity(X) < 3.5
    (True, True)
    """

    def __init__(
        self,
        n_topics=50,
        alpha=(1.0, 10.0),
        beta=(1.0, 20.0),
        *,
        n_draws=20,
        burn_in=160,
        thin=2,
        n_chains=1,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callbacks=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
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
    def fit(self, X: Any, y: Any = None) -> LatentDirichlet:
        """Sample topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : ignored

        Returns
        -------
        self
        """
        documents = check_documents(self, X)
        model = self._model(documents, self.n_topics, self._proportions)
        trace = chains.run_for(
            self,
            partial(gibbs.init, model),
            partial(gibbs.step, model),
            partial(gibbs.record, model),
            chains.draw_seed(self.random_state, self.checkpoint),
        )
        return self._learn_anew(trace, documents)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> LatentDirichlet:
        """Learn from more documents; those seen before are not needed.

        The counts of words in topics that earlier documents left behind stand beside the new ones,
        each with the weight of one token: topics move less and less. Earlier documents are not
        assigned anew. `alpha_` is the mean over batches by their sizes; `beta_` is that of the
        first batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        y : ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "components_")
        documents = check_documents(self, X, reset=first)
        seed = chains.draw_seed(self.random_state)
        if first:
            self._counts = np.zeros((documents.n_words, self.n_topics))
            self.n_documents_seen_ = 0
            model = self._model(documents, self.n_topics, self._proportions)
        else:
            model = self._model(
                documents,
                self.n_topics,
                self._proportions,
                base=self._counts,
                prior_of_words=Fixed(self.beta_),
            )
        self.trace_ = self._run(model, [seed, self.n_documents_seen_])
        self._learn_from(self.trace_.chains[best_chain(self.trace_)], documents)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-probability of a word, of those that :meth:`perplexity` predicts."""
        return -float(np.log(self.perplexity(X)))

    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> Documents:
        """Documents as the law reads them; for :mod:`regbayes.scores`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        lengths : None
        reset : bool, default=False
            Decide on the number of words, as `fit` does.
        """
        if lengths is not None:
            raise ValueError("documents are rows of counts: there are no lengths to give.")
        return check_documents(self, X, reset=reset)

    def learn(self, documents: Documents) -> DocumentLaw:
        """The law of documents that :meth:`read` gave, without changing the model.

        Parameters
        ----------
        documents : Documents

        Returns
        -------
        DocumentLaw
        """
        self._validate_params()
        model = self._model(documents, self.n_topics, self._proportions)
        trace = self._run(model, chains.draw_seed(self.random_state))
        draws = trace.chains[best_chain(trace)]
        phi = gibbs.mean_topics(draws, documents.n_words)
        alpha = np.mean([draw["alpha"] for draw in draws], axis=0)
        beta = float(np.mean([draw["beta"] for draw in draws]))
        names = getattr(self, "feature_names_in_", None)
        return DocumentLaw(alpha, phi, beta, names)

    @property
    def _proportions(self) -> AsymmetricDirichlet:
        return AsymmetricDirichlet(as_concentration_prior(self.alpha, "alpha"))

    def _run(self, model: gibbs.Model, seed: Any) -> chains.Trace:
        return chains.run(
            partial(gibbs.init, model),
            partial(gibbs.step, model),
            partial(gibbs.record, model),
            n_draws=self.n_draws,
            burn_in=self.burn_in,
            thin=self.thin,
            n_chains=self.n_chains,
            random_state=np.random.default_rng(seed),
            n_jobs=self.n_jobs,
        )

    def _learn_anew(self, trace: chains.Trace, documents: Documents) -> LatentDirichlet:
        self.trace_ = trace
        self._counts = np.zeros((documents.n_words, self.n_topics))
        self.n_documents_seen_ = 0
        self._learn_from(trace.chains[best_chain(trace)], documents)
        return self

    def _learn_from(self, draws: Sequence[Any], documents: Documents) -> None:
        """Topics and concentrations from the draws of a chain, beside what was there before."""
        n_words, seen = documents.n_words, self.n_documents_seen_
        phi = gibbs.mean_topics(draws, n_words, self._counts)
        self.components_ = np.ascontiguousarray(phi.T)
        self._counts = self._counts + gibbs.mean_counts(draws, n_words)
        alpha = np.mean([draw["alpha"] for draw in draws], axis=0)
        self.n_documents_seen_ = seen + len(documents)
        share = len(documents) / self.n_documents_seen_
        self.alpha_ = share * alpha + (1 - share) * getattr(self, "alpha_", 0) if seen else alpha
        if not seen:
            self.beta_ = float(np.mean([draw["beta"] for draw in draws]))
