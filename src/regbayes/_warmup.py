"""Compile before the clock runs."""

import numpy as np


def warmup() -> None:
    """Compile every kernel, or load it from numba's cache, so that the first fit is a fast one.

    Examples
    --------
    >>> import regbayes
    >>> regbayes.warmup()
    """
    from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM

    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    y = np.arange(12) % 2
    for family in (GibbsInfiniteSVM, DPMultinomialLogit):
        for prediction in ("marginal", "iterated"):
            model = family(prediction=prediction, n_draws=2, burn_in=2, n_chains=1, random_state=0)
            model.fit(X, y).predict_component(X)
            model.predict(X)
    InfiniteSVM(max_components=2, max_iter=2, tol=1e9, random_state=0).fit(X, y).predict(X)
