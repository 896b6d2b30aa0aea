"""Chains, folds and classes go where joblib's `parallel_config` says, and come back the same."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from regbayes.chains import Checkpoint
from regbayes.hmm import CategoricalHMM, InfiniteHMM, LargeMarginHMM
from regbayes.mixture import GibbsInfiniteSVM
from regbayes.scores import (
    MaxMarginScore,
    MaxMarginScoreClassifier,
    SufficientStatisticsScore,
)
from tests.robustness.runs import DATA, SEQUENCES, same
from tests.robustness.test_threads import SAMPLERS, fitted

SYMBOLS = CategoricalHMM(2, n_iter=3, random_state=0)
BY_CLASS = {
    "lm-hmm": LargeMarginHMM(SYMBOLS, max_iter=3, tol=1.0),
    "scores": SufficientStatisticsScore(SYMBOLS),
    "one against the rest": MaxMarginScore(SYMBOLS, multi_class="ovr", n_iter=3, random_state=0),
    "cross-validation": MaxMarginScoreClassifier(
        SYMBOLS, learn="never", cv=2, C=[0.1, 1.0], random_state=0
    ),
}


def fit(model):
    if type(model) is SufficientStatisticsScore:
        return clone(model).fit(*SEQUENCES["LargeMarginHMM"])
    return fitted(model)[0]


def everywhere(model, client):
    """The same fit in a thread, in threads, in processes and on a cluster."""
    alone = fit(model)
    for backend, n_jobs in (("threading", 2), ("loky", 2), ("dask", -1)):
        with joblib.parallel_config(backend, n_jobs=n_jobs):
            assert same(alone, fit(model)), backend


def some(names, fast):
    """All of them, but most in `make check-slow` only."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", some(SAMPLERS, {"ihmm", "lda"}))
def test_a_sampler_does_not_depend_on_where_its_chains_run(name, client):
    everywhere(clone(SAMPLERS[name]).set_params(n_jobs=None), client)


@pytest.mark.parametrize("name", some(BY_CLASS, {"scores", "one against the rest"}))
def test_classes_and_folds_do_not_depend_on_where_they_run(name, client):
    everywhere(BY_CLASS[name], client)


@pytest.mark.slow
def test_cross_validation_of_a_sampler(client):
    model = GibbsInfiniteSVM(n_draws=4, burn_in=4, n_chains=2, random_state=0)
    alone = cross_val_score(model, *DATA, cv=2)
    with joblib.parallel_config("dask"):  # chains within folds: tasks that start tasks
        np.testing.assert_array_equal(cross_val_score(model, *DATA, cv=2), alone)


@pytest.mark.parametrize("backend", some(["loky", "dask"], {"dask"}))
def test_a_run_goes_on_from_its_checkpoint_elsewhere(backend, client, tmp_path):
    """Begun here, ended in other processes, whose checkpoint then has all there is."""
    model = InfiniteHMM(n_draws=10, burn_in=4, n_chains=2, random_state=0)
    data = SEQUENCES["InfiniteHMM"]
    whole = clone(model).fit(*data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        halfway = clone(model).set_params(n_draws=3, checkpoint=Checkpoint(tmp_path, every=1))
        halfway.fit(*data)
        with joblib.parallel_config(backend, n_jobs=2):
            ended = clone(model).set_params(checkpoint=Checkpoint(tmp_path, every=1)).fit(*data)
        again = clone(ended).fit(*data)
    assert same(whole, ended)
    assert same(whole, again)


def test_callbacks_stay_behind(client):
    """They are told of the fit, and not of sweeps in other processes."""
    told = []

    class Listener:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context):
            told.append(context.task_name)

        def on_fit_task_end(self, estimator, context, **more): ...

        def __reduce__(self):
            raise TypeError("a callback that cannot leave its process")

    model = InfiniteHMM(n_draws=2, burn_in=0, random_state=0, callbacks=[Listener()])
    with joblib.parallel_config("dask"):
        model.fit(*SEQUENCES["InfiniteHMM"])
    assert set(told) == {"fit"}
