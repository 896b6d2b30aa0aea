"""Small runs to disturb, and whether two of them came to the same, bit by bit."""

import numpy as np
from scipy.sparse import issparse

from regbayes import _files

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(-3, 1, (20, 2)), RNG.normal(3, 1, (20, 2))])
DATA = X, np.where((X[:, 0] > 0) == (X[:, 1] % 6 > 3), "in", "out")
_steps = [RNG.normal(size=(n, 2)) + 3 * (np.arange(n) // 5 % 2)[:, None] for n in (30, 20)]
_labels = [np.where(x[:, 0] > 1.5, "high", "low") for x in _steps]
_symbols = [list("aabbc" * 5), list("abcab" * 4)]
_words = [list("ab" * n) for n in range(3, 7)] + [list("aabb" * n) for n in range(2, 6)]
_labelled = _words, [0] * 4 + [1] * 4
_counts = RNG.poisson(np.repeat([[3, 2, 0.2, 1], [0.2, 1, 3, 2]], 10, axis=0))
SEQUENCES = {
    "LatentDirichlet": (_counts,),
    "MaxMarginTopics": (_counts, np.repeat(["one", "two"], 10)),
    "InfiniteHMM": (_steps,),
    "MaxMarginInfiniteHMM": (_steps, _labels),
    "MarkovSwitchingMED": (_steps, _labels),
    "GaussianHMM": (_steps,),
    "CategoricalHMM": (_symbols,),
    "LargeMarginHMM": _labelled,
    "MaxMarginScore": _labelled,
    "FisherKernelLearning": _labelled,
    "MaxMarginScoreClassifier": _labelled,
    "Harmonium": (X,),
    "InfiniteHarmonium": (X,),
    "MaxMarginHarmoniumRegressor": (X, X[:, 0] * X[:, 1]),
}


def flat(value):
    """Types and bits of a tree, in a form that compares."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return "objects", value.shape, [flat(each) for each in value.ravel()]
        return value.dtype.str, value.shape, value.tobytes()
    if issparse(value):
        return type(value), flat(value.toarray())
    if isinstance(value, dict):
        return {key: flat(each) for key, each in value.items()}
    if _files.is_record(type(value)):
        names = _files._field_names(type(value))
        return type(value), [flat(getattr(value, name)) for name in names]
    if isinstance(value, (list, tuple)):
        return type(value), [flat(each) for each in value]
    if isinstance(value, np.random.Generator):
        return flat(value.bit_generator.state)
    if hasattr(value, "get_params"):
        return type(value), flat(vars(value))
    return type(value), repr(value)


def same(one, two):
    """Whether two fitted estimators hold the same bits; how they were run does not count."""
    idle = {"n_jobs", "verbose", "callbacks", "checkpoint", "warm_start", "n_draws"}
    found = [
        {name: flat(value) for name, value in vars(model).items() if name not in idle}
        for model in (one, two)
    ]
    return found[0] == found[1]
