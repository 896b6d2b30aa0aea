"""Harmoniums over shards of rows: the gradients of one machine, but for rounding."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from regbayes.distributed import _harmonium, fit
from regbayes.harmonium import (
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
    MaxMarginHarmoniumRegressor,
)
from tests.distributed.here import Here

RNG = np.random.default_rng(0)
FEATURES = RNG.random((90, 3)) < 0.5
TABLE = FEATURES @ (3 * RNG.normal(size=(3, 8))) + RNG.normal(size=(90, 8)) + 50.0
BITS = (RNG.random((90, 12)) < np.where(FEATURES @ np.ones((3, 12)) > 1, 0.8, 0.1)).astype(float)
DATA = {
    "table": TABLE,
    "bits": BITS,
    "sparse": csr_array(BITS),
    "counts": RNG.poisson(2.0, (90, 6)).astype(float),
}
MODELS = {
    "table": Harmonium(4, max_iter=3, batch_size=30, random_state=0),
    "bits": InfiniteHarmonium(max_features=5, max_iter=3, batch_size=30, random_state=0),
    "sparse": InfiniteHarmonium(max_features=5, max_iter=3, batch_size=30, random_state=0),
    "counts": Harmonium(4, visible="count", max_iter=3, batch_size=30, random_state=0),
}


def compare(here, there, X):
    np.testing.assert_allclose(here.objective_, there.objective_, rtol=1e-4)
    for one, two in zip(here._params, there._params):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)
    for name in ("centers", "scales", "means", "totals"):
        for one, two in zip(getattr(here._reader, name), getattr(there._reader, name)):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(here.activations_, there.activations_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(here.transform(X), there.transform(X), rtol=1e-3, atol=1e-3)
    for one, two in zip(here._spreads, there._spreads):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_shards", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_learning_over_shards_is_that_of_one_machine(name, n_shards):
    X = DATA[name]
    here = clone(MODELS[name]).fit(X)
    there = fit(clone(MODELS[name]), X, client=Here(), n_shards=n_shards)
    compare(here, there, X)


LABELS = np.array(["few", "some", "many"])[FEATURES.sum(axis=1).clip(max=2)]
CERTAIN = {"dropout": 0.0, "max_iter": 3, "batch_size": 30, "random_state": 0}


@pytest.mark.parametrize("n_shards", [1, 4, 30])
@pytest.mark.parametrize(
    "model",
    [MaxMarginHarmonium(4, **CERTAIN), InfiniteMaxMarginHarmonium(5, **CERTAIN)],
    ids=["finite", "infinite"],
)
def test_margins_over_shards_are_those_of_one_machine(model, n_shards):
    """Of thirty shards, some have not all the classes."""
    here = clone(model).fit(TABLE, LABELS)
    there = fit(clone(model), TABLE, LABELS, client=Here(), n_shards=n_shards)
    compare(here, there, TABLE)
    assert list(there.classes_) == ["few", "many", "some"]
    np.testing.assert_allclose(here.class_activations_, there.class_activations_, rtol=1e-3)
    np.testing.assert_allclose(
        here.decision_function(TABLE), there.decision_function(TABLE), rtol=1e-2, atol=1e-3
    )


def test_margins_with_units_left_out():
    """Other random numbers, the same kind of place."""
    model = MaxMarginHarmonium(6, max_iter=60, batch_size=30, random_state=0)
    there = fit(clone(model), TABLE, LABELS, client=Here(), n_shards=3)
    assert there.score(TABLE, LABELS) > clone(model).fit(TABLE, LABELS).score(TABLE, LABELS) - 0.05


def test_views_by_name_and_left_out_inputs():
    """Sub-batches have numbers of their own: another course, to the same kind of place."""
    views = [{"a": TABLE[i::3], "b": BITS[i::3]} for i in range(3)]
    model = Harmonium(4, max_iter=40, batch_size=30, input_dropout=0.2, random_state=0)
    client = Here()
    parts = [client.submit(dict, view) for view in views]
    found = _harmonium.fit(clone(model), client, parts, [None] * 3)
    assert found.objective_[-1] < found.objective_[0]
    assert found.transform({"a": TABLE, "b": BITS}).shape == (90, 4)


@pytest.mark.slow
def test_a_fit_on_a_cluster(client):
    dask_array = pytest.importorskip("dask.array")
    X = dask_array.from_array(TABLE, chunks=(40, 3))
    compare(clone(MODELS["table"]).fit(TABLE), fit(clone(MODELS["table"]), X, client=client), TABLE)


def test_what_cannot_be_done_says_so():
    for parameters in ({"solver": "lbfgs"}, {"early_stopping": True}, {"missing": "infer"}):
        with pytest.raises(ValueError, match=f"To mend it: set {next(iter(parameters))}="):
            fit(Harmonium(**parameters), TABLE, client=Here())
    with pytest.raises(TypeError, match="To mend it: use one of"):
        fit(MaxMarginHarmoniumRegressor(), TABLE, client=Here())
    with pytest.raises(ValueError, match="requires y"):
        fit(MaxMarginHarmonium(), TABLE, client=Here())
    with pytest.raises(ValueError, match="only one class"):
        fit(MaxMarginHarmonium(), TABLE, np.zeros(90, dtype=int), client=Here())
    with pytest.raises(ValueError, match="different columns"):
        _harmonium.fit(Harmonium(), Here(), [TABLE, TABLE[:, :3]], [None] * 2)
