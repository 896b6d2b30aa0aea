"""Compile before the clock runs."""

import numpy as np
from scipy.sparse import csr_matrix


def warmup() -> None:
    """Compile every kernel, or load it from numba's cache, so that the first fit is a fast one.

    Examples
    --------
    >>> import regbayes
    >>> regbayes.warmup()
    """
    from regbayes.harmonium import Harmonium
    from regbayes.hmm import InfiniteHMM, MarkovSwitchingMED, MaxMarginInfiniteHMM
    from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM
    from regbayes.topics import LatentDirichlet, MaxMarginTopics

    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    y = np.arange(12) % 2
    for family in (GibbsInfiniteSVM, DPMultinomialLogit):
        for prediction in ("marginal", "iterated"):
            model = family(prediction=prediction, n_draws=2, burn_in=2, n_chains=1, random_state=0)
            model.fit(X, y).predict_component(X)
            model.predict(X)
    InfiniteSVM(max_components=2, max_iter=2, tol=1e9, random_state=0).fit(X, y).predict(X)
    words = csr_matrix((rng.random((12, 3)) < 0.5).astype(np.float32))
    Harmonium(2, max_iter=1, visible="bernoulli", random_state=0).fit(words)
    few = {"n_draws": 1, "burn_in": 1, "n_chains": 1, "random_state": 0}
    counts = rng.poisson(3.0, (12, 2))
    for emission in ("gaussian", "diag", "poisson", "categorical"):
        steps = {"poisson": counts, "categorical": counts[:, 0]}.get(emission, X)
        chain = InfiniteHMM(emission, **few).fit([steps])
        chain.decode([steps])
        chain.score([steps])
    for law in ("gaussian", None):
        labeller = MaxMarginInfiniteHMM(law, **few).fit([X], [y])
        labeller.predict([X])
        next(labeller.predict_stream(X))
    MarkovSwitchingMED(max_states=2, max_iter=2, tol=1e9, random_state=0).fit([X], [y]).predict([X])
    sweeps = {**few, "burn_in": 10}
    LatentDirichlet(2, **sweeps).fit(counts).partial_fit(counts).perplexity(counts)
    for n_topics in (2, "auto"):
        MaxMarginTopics(n_topics, max_topics=2, **sweeps).fit(counts, y).predict(counts)
