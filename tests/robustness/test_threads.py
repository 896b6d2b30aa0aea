"""Threads change nothing: neither those of a fit, nor those that share a fitted model."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.base import clone

from regbayes.hmm import (
    CategoricalHMM,
    GaussianHMM,
    InfiniteHMM,
    LargeMarginHMM,
    MarkovSwitchingMED,
    MaxMarginInfiniteHMM,
)
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM
from regbayes.scores import MaxMarginScoreClassifier
from regbayes.topics import LatentDirichlet, MaxMarginTopics
from tests.robustness.runs import DATA, SEQUENCES, flat, same

few = {"n_draws": 4, "burn_in": 4, "random_state": 0}
SYMBOLS = CategoricalHMM(2, n_iter=3, random_state=0)
SAMPLERS = {
    "gisvm": GibbsInfiniteSVM(n_chains=3, **few),
    "dpmnl": DPMultinomialLogit(n_chains=3, **few),
    "ihmm": InfiniteHMM(n_chains=3, **few),
    "ihmm, one chain": InfiniteHMM(n_chains=1, **few),  # threads go to the sequences
    "m2ihmm-1": MaxMarginInfiniteHMM(n_chains=3, **few),
    "m2ihmm-2": MaxMarginInfiniteHMM(None, n_chains=1, **few),
    "lda": LatentDirichlet(3, n_chains=1, **few),
    "medlda": MaxMarginTopics(3, n_chains=3, **few),
}
CLASSIFIERS = {
    "iterated": GibbsInfiniteSVM(prediction="iterated", n_rounds=3, **few),
    "isvm": InfiniteSVM(max_components=2, random_state=0),
    "im2edm": MarkovSwitchingMED(2, random_state=0),
    "gaussian": GaussianHMM(2, random_state=0),
    "symbols": SYMBOLS,
    "lm-hmm": LargeMarginHMM(SYMBOLS, max_iter=3, tol=1.0),
    "mss": MaxMarginScoreClassifier(SYMBOLS, learn="never", cv=2, C=1.0, random_state=0),
}


def fitted(model):
    data = SEQUENCES.get(type(model).__name__, DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(data[0], *map(list, data[1:])), data[0]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_fit_does_not_depend_on_its_threads(name):
    one, two, eight = (fitted(SAMPLERS[name].set_params(n_jobs=n))[0] for n in (1, 2, 8))
    assert same(one, two)
    assert same(one, eight)


QUESTIONS = ("predict_proba", "decision_function", "decode", "transform")


def share(model, X, n_calls):
    """Whether 16 threads that ask one model all get what one gets alone."""
    ask = next(getattr(model, name) for name in QUESTIONS if hasattr(model, name))
    alone = flat(ask(X))
    with ThreadPoolExecutor(16) as threads:
        return all(flat(got) == alone for got in threads.map(lambda _: ask(X), range(n_calls)))


@pytest.mark.parametrize("name", SAMPLERS | CLASSIFIERS)
def test_a_fitted_model_serves_16_threads(name):
    assert share(*fitted((SAMPLERS | CLASSIFIERS)[name]), n_calls=32)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS | CLASSIFIERS)
def test_a_fitted_model_serves_a_thousand_calls(name):
    assert share(*fitted((SAMPLERS | CLASSIFIERS)[name]), n_calls=1000)
