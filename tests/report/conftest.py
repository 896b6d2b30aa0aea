"""Small fitted models of every family, made once."""

import numpy as np
import pytest

from regbayes.datasets import make_switching_labels
from regbayes.hmm import CategoricalHMM, GaussianHMM, MarkovSwitchingMED, MaxMarginInfiniteHMM
from regbayes.mixture import GibbsInfiniteSVM, InfiniteSVM
from regbayes.scores import MaxMarginScoreClassifier

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="session")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + np.repeat([[-4.0, 0.0], [4.0, 2.0]], 30, axis=0)
    return X, np.where((X[:, 0] > 0) == (X[:, 1] > 1), "in", "out")


@pytest.fixture(scope="session")
def mixture(table):
    return GibbsInfiniteSVM(n_draws=8, burn_in=8, random_state=0).fit(*table)


@pytest.fixture(scope="session")
def recordings():
    data = make_switching_labels((60, 40), "sticky", means=[-4, 0, 4], random_state=8)
    return data.data, [np.where(labels, "up", "down") for labels in data.target]


@pytest.fixture(scope="session")
def chain(recordings):
    return MaxMarginInfiniteHMM(n_draws=8, burn_in=8, random_state=0).fit(*recordings)


@pytest.fixture(scope="session")
def words():
    texts = ["ab" * n for n in range(4, 8)] + ["aabb" * n for n in range(2, 6)]
    return [list(text) for text in texts], ["single"] * 4 + ["pairs"] * 4


@pytest.fixture(scope="session")
def families(table, mixture, recordings, chain, words):
    """Model, data and labels by name."""
    X, y = recordings
    switching = MarkovSwitchingMED(3, max_iter=3, tol=1.0, random_state=0)
    reader = MaxMarginScoreClassifier(
        CategoricalHMM(2, n_iter=3, random_state=0), learn="never", C=10, random_state=0
    )
    return {
        "mixture": (mixture, *table),
        "variational mixture": (InfiniteSVM(max_components=2, random_state=0).fit(*table), *table),
        "chain": (chain, X, y),
        "switching": (switching.fit(X, y), X, y),
        "gaussian": (GaussianHMM(2, n_iter=5, random_state=0).fit(X), X, y),
        "symbols": (CategoricalHMM(2, n_iter=5, random_state=0).fit(words[0]), words[0], None),
        "scores": (reader.fit(*words), *words),
    }
