"""The infinite HMM over shards: the sweeps of one machine, wherever the sequences are."""

import itertools
import os
import pickle
import signal
import warnings
from dataclasses import replace
from threading import Lock

import numpy as np
import pytest
from sklearn.base import clone

from regbayes.chains import Checkpoint, CheckpointError
from regbayes.distributed import _hmm, fit
from regbayes.distributed._shards import Part, Place, Shards, skip
from regbayes.hmm import GaussianHMM, InfiniteHMM, MaxMarginInfiniteHMM, beam
from regbayes.hmm._chain import Start
from regbayes.hmm.emissions import (
    CategoricalEmission,
    GaussianEmission,
    PoissonEmission,
)
from regbayes.kernels.labels import draw_all_label_weights
from regbayes.margin import GibbsClassifier
from regbayes.priors import GammaPrior, HierarchicalDirichlet, NormalInverseWishart
from tests.distributed.here import Here
from tests.enumeration import test_hmm as enumeration
from tests.robustness.runs import flat, same

PRIOR = HierarchicalDirichlet(GammaPrior(1.0, 1.0), GammaPrior(1.0, 1.0), (2.0, 3.0))
STARTS = np.cumsum([0, 30, 12, 1, 25, 40])
RNG = np.random.default_rng(0)
SYMBOLS = np.where(RNG.random(STARTS[-1]) < 0.1, -1, RNG.integers(4, size=STARTS[-1]))
POINTS = RNG.normal(size=(STARTS[-1], 2)) + 4 * (np.arange(STARTS[-1]) // 6 % 2)[:, None]
POINTS[[3, 50]] = np.nan
MODELS = {
    "symbols": beam.Model(SYMBOLS, STARTS, CategoricalEmission(4, 0.5), PRIOR),
    "gaussian": beam.Model(
        POINTS,
        STARTS,
        GaussianEmission(NormalInverseWishart(np.zeros(2), 0.1, 4.0, np.eye(2))),
        PRIOR,
        width=1.0,
    ),
    "counts": beam.Model(
        np.round(np.abs(POINTS)), STARTS, PoissonEmission(np.ones(2), np.ones(2)), PRIOR
    ),
}


def cut(model, edges, client):
    """Shards of whole sequences, between these."""
    data, sizes = [], []
    for low, high in itertools.pairwise(edges):
        steps = slice(model.starts[low], model.starts[high])
        starts = model.starts[low : high + 1] - model.starts[low]
        place, labels = _hmm.Place(int(model.starts[low]), int(model.starts[-1])), model.labels
        if labels is not None:
            labels = replace(labels, inputs=labels.inputs[steps], y=labels.y[steps])
        part = replace(model, X=model.X[steps], starts=starts, labels=labels)
        data.append(_hmm.Shard(part, place))
        sizes.append(steps.stop - steps.start)
    return Shards([], np.array(sizes), client, data), replace(model, X=model.X[:0])


def sweeps(model, edges, n, seed=1, n_states=5, client=None):
    """Sweeps over shards, and the paths after each."""
    shards, law = cut(model, edges, client or Here())
    rng = np.random.default_rng(seed)
    state = _hmm.init(shards, law, Start("random", n_states, 1), rng)
    for _ in range(n):
        state = _hmm.step(shards, law, rng, state)
        z = np.concatenate([pair[0] for pair in vars(state.paths)["pairs"]])
        yield replace(state.known, z=state.names[z]), _hmm.record(shards, law, state)


def alone(model, n, seed=1, n_states=5):
    rng = np.random.default_rng(seed)
    state = beam.init(model, lambda rng: rng.integers(n_states, size=model.starts[-1]), rng)
    for _ in range(n):
        state = beam.step(model, rng, state)
        yield state, beam.record(model, state)


def test_a_part_of_a_stream_is_that_part():
    rng = np.random.default_rng(3)
    rng.integers(5)  # half of a number is left over
    whole = np.random.default_rng(3)
    whole.integers(5)
    expected = whole.random(10), whole.integers(7, size=10), whole.integers(5)
    part = Part(rng, Place(4, 10))
    np.testing.assert_array_equal(part.random(3), expected[0][4:7])
    np.testing.assert_array_equal(part.integers(7, 3), expected[1][4:7])
    assert rng.integers(5) == expected[2]
    skip(rng, 4)
    whole.random(4)
    assert rng.bit_generator.state == whole.bit_generator.state


@pytest.mark.parametrize("edges", [[0, 5], [0, 2, 5], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("name", MODELS)
def test_sweeps_over_shards_are_those_of_one_machine(name, edges):
    """Bit by bit where the statistics are whole numbers, or there is one shard; else by rounding,
    which paths do not see in a few sweeps."""
    exact = name == "symbols" or len(edges) == 2
    n = 30 if exact else 5
    found = list(zip(alone(MODELS[name], n), sweeps(MODELS[name], edges, n)))
    assert len(found) == n
    for (one, draw), (other, shared) in found:
        np.testing.assert_array_equal(one.z, other.z)
        if exact:
            assert flat(one) == flat(other)
        for key in shared:
            np.testing.assert_allclose(shared[key], draw[key], rtol=1e-9)
    assert not exact or len({len(one.weights) for (one, _), _ in found}) > 1  # states came, went


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("labels", 5_000),
        pytest.param("beam", 20_000, marks=pytest.mark.slow),
        pytest.param("labels", 40_000, marks=pytest.mark.slow),
        pytest.param("labels alone", 40_000, marks=pytest.mark.slow),
    ],
)
def test_paths_over_shards_follow_the_exact_posterior(name, n):
    """Two sequences in two places, against the enumeration of their partitions."""
    setting = enumeration.SETTINGS[name]
    model = enumeration.model_of(setting)
    drawn = []
    for state, _ in sweeps(model, [0, 1, 2], n, seed=3, n_states=3):
        _, first, place = np.unique(state.z, return_index=True, return_inverse=True)
        drawn.append(tuple(first.argsort().argsort()[place].tolist()))
    assert enumeration.p_value(drawn[50:], enumeration.exact_posterior(setting)) > 1e-4


def test_weights_by_sums_are_those_drawn_at_once():
    """One state, the first class: the same random numbers, in the same order."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(-1, 4, size=40)
    classifier = GibbsClassifier(4, 3, C=0.7, cost=2.0, nu=1.5)
    term, z = classifier.init(), np.zeros(40, dtype=np.int64)
    weights = rng.normal(size=(1, 4, 3))
    at_once = weights.copy()
    draw_all_label_weights(np.random.default_rng(1), X, y, z, at_once, term)
    model = replace(MODELS["gaussian"], labels=beam.Labels(X, y, classifier))
    state = beam.State(z, None, (), weights, term)
    own = np.random.default_rng(1)
    drawn = beam.draw_pulled(own, state, 0, beam.pull(model, own, state, 0))
    np.testing.assert_allclose(drawn.weights[:, 0], at_once[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(drawn.weights[:, 1:], weights[:, 1:])


class Scale(Here):
    """Weighs messages, and what comes back."""

    bytes = 0

    def map(self, function, *columns, pure=None, **options):
        self.bytes += len(columns[0]) * len(pickle.dumps(options))
        return [function(*arguments, **options) for arguments in zip(*columns)]

    def gather(self, found):
        self.bytes += len(pickle.dumps(found))
        return found


def test_what_travels_does_not_grow_with_the_steps():
    """By the number of states, those among them that a sweep lets in and drops."""
    weights = {}
    for n_steps in (40, 400):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(4 * n_steps, 2)) + 9 * (np.arange(4 * n_steps) // 10 % 2)[:, None]
        model = replace(MODELS["gaussian"], X=X, starts=np.arange(5) * n_steps)
        scale = Scale()
        shards, law = cut(model, [0, 2, 4], scale)
        state = _hmm.init(shards, law, Start("random", 4, 1), rng)
        for _ in range(60):
            before, n_before = scale.bytes, len(state.known.weights)
            state = _hmm.step(shards, law, rng, state)
            sizes = n_before, len(state.names)
            weights.setdefault(sizes, {}).setdefault(n_steps, scale.bytes - before)
    both = [each for each in weights.values() if len(each) == 2]
    assert len(both) >= 3
    for each in both:  # whole numbers are pickled by their size
        assert abs(each[40] - each[400]) < 100


SEQUENCES = [
    RNG.normal(size=(n, 2)) + 5 * (np.arange(n) // 7 % 2)[:, None] for n in (40, 25, 60, 33, 21)
]
WORDS = [list("aabbc" * 4), ["a", None, "b", "b"], list("abcab" * 3), list("ccd" * 5)]
few = {"n_draws": 6, "burn_in": 6, "n_chains": 2, "random_state": 0}


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def test_a_fit_on_a_cluster_is_that_of_one_machine(client):
    """Symbols and random first states: the same numbers, whatever the shards."""
    model = InfiniteHMM("categorical", init="random", **few)
    here = quiet(clone(model).fit, WORDS)
    for n_shards in (1, 3):
        there = quiet(fit, clone(model), WORDS, client=client, n_shards=n_shards)
        for one, two in zip(here.trace_, there.trace_):
            assert flat({k: v for k, v in one.items() if k not in ("z", "log_joint")}) == flat(
                {k: v for k, v in two.items() if k != "log_joint"}
            )
            assert one["log_joint"] == pytest.approx(two["log_joint"], rel=1e-12)
        np.testing.assert_array_equal(here.categories_, there.categories_)
        np.testing.assert_array_equal(here.score_samples(WORDS), there.score_samples(WORDS))


@pytest.mark.slow
@pytest.mark.parametrize("emission", ["gaussian", "poisson"])
def test_the_priors_are_those_of_one_machine(emission, client):
    X = SEQUENCES if emission == "gaussian" else [np.round(np.abs(x)) for x in SEQUENCES]
    model = InfiniteHMM(emission, **few)
    here = quiet(clone(model).fit, X)
    there = quiet(fit, clone(model), X, client=client, n_shards=3)
    np.testing.assert_allclose(here._frame.center, there._frame.center, rtol=1e-12)
    np.testing.assert_allclose(here._frame.unit, there._frame.unit, rtol=1e-12)
    ours, theirs = (vars(m._emission) for m in (here, there))
    if emission == "gaussian":
        ours, theirs = (vars(each["prior"]) for each in (ours, theirs))
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-9)
    assert [len(z) for z in there.decode(X)] == list(map(len, X))


@pytest.mark.slow
def test_data_come_from_bags_and_tables(client, tmp_path):
    """The same data by five ways, in the same partitions: the same model."""
    bag, dataframe, delayed = (
        pytest.importorskip(name) for name in ("dask.bag", "dask.dataframe", "dask.delayed")
    )
    import pandas as pd

    model = InfiniteHMM(**few)
    first = quiet(fit, clone(model), SEQUENCES[:4], client=client, n_shards=2)
    rows = [
        pd.DataFrame(x, columns=["a", "b"]).assign(sequence_id=i)
        for i, x in enumerate(SEQUENCES[:4])
    ]
    for i in range(2):
        pd.concat(rows[2 * i : 2 * i + 2]).to_parquet(tmp_path / f"part-{i}.parquet", index=False)
    ways = {
        "bag": bag.from_sequence(SEQUENCES[:4], npartitions=2),
        "delayed": [delayed.delayed(SEQUENCES[:2]), delayed.delayed(SEQUENCES[2:4])],
        "futures": [client.submit(list, SEQUENCES[i : i + 2]) for i in (0, 2)],
        "Parquet": dataframe.read_parquet(tmp_path),
    }
    for name, X in ways.items():
        found = quiet(fit, clone(model), X, client=client)
        assert flat(found.trace_.chains) == flat(first.trace_.chains), name
    assert list(found.feature_names_in_) == ["a", "b"]

    split = dataframe.from_pandas(pd.concat(rows[:1] * 2, ignore_index=True), npartitions=2)
    with pytest.raises(ValueError, match="sequence_id is in two partitions"):
        fit(clone(model), split, client=client)


class Kill:
    """After a sweep, kill -9 a worker."""

    def __init__(self, client, sweep):
        self.client, self.sweep, self.killed, self.due = client, sweep, [], Lock()

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, **more):
        now = context.task_name == "sweep" and context.task_id == self.sweep
        if now and self.due.acquire(blocking=False):  # chains run in threads; never released
            pids = self.client.run(os.getpid)
            self.killed.append(next(iter(pids.values())))
            os.kill(self.killed[0], signal.SIGKILL)


@pytest.mark.parametrize("checkpoint", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_worker_may_die(checkpoint, client, tmp_path):
    model = InfiniteHMM(**few)
    undisturbed = quiet(fit, clone(model), SEQUENCES, client=client, n_shards=4)
    kill = Kill(client, 8)
    disturbed = clone(model).set_params(callbacks=[kill])
    if checkpoint:
        disturbed.set_params(checkpoint=Checkpoint(tmp_path, every=3))
    quiet(fit, disturbed, SEQUENCES, client=client, n_shards=4)
    assert len(kill.killed) == 1
    assert same(undisturbed, disturbed)
    client.wait_for_workers(2)


@pytest.mark.slow
def test_a_worker_may_die_in_a_large_run(client, tmp_path):
    """200 sequences of 2,000 steps."""
    rng = np.random.default_rng(1)
    X = [
        rng.normal(size=(2_000, 4)) + 4 * (np.arange(2_000) // rng.integers(5, 40) % 3)[:, None]
        for _ in range(200)
    ]
    model = InfiniteHMM(n_draws=3, burn_in=9, n_chains=1, random_state=0)
    undisturbed = quiet(fit, clone(model), X, client=client, n_shards=4)
    kill = Kill(client, 6)
    disturbed = clone(model).set_params(callbacks=[kill], checkpoint=Checkpoint(tmp_path, every=4))
    quiet(fit, disturbed, X, client=client, n_shards=4)
    assert len(kill.killed) == 1
    assert same(undisturbed, disturbed)
    client.wait_for_workers(2)


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint(client, tmp_path):
    model = InfiniteHMM(**few)
    whole = quiet(fit, clone(model), SEQUENCES, client=client, n_shards=3)
    book = Checkpoint(tmp_path, every=1)
    begun = clone(model).set_params(n_draws=2, checkpoint=book)
    quiet(fit, begun, SEQUENCES, client=client, n_shards=3)
    ended = clone(model).set_params(checkpoint=book)
    quiet(fit, ended, SEQUENCES, client=client, n_shards=3)
    assert same(whole, ended)
    # Two generations of parts, and the one that was being written.
    assert len({path.name.split(".")[1] for path in tmp_path.glob("chain-0.*.part-0")}) == 3
    with pytest.raises(CheckpointError, match="its data are others"):
        fit(clone(ended), SEQUENCES[1:], client=client, n_shards=3)


def switching(n, n_steps, seed, by_state=False):
    """Three states by turns, with a rule for the labels in each, or one label; some unknown."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        z = (np.arange(n_steps) + rng.integers(30)) // 10 % 3
        x = rng.normal(size=(n_steps, 2)) + 6 * np.eye(3)[z][:, :2]
        right = z == 0 if by_state else (x[:, 0] - 6 * (z == 0) > 0) ^ (z == 2)
        labels = np.where(right, "up", "down").astype(object)
        labels[rng.random(n_steps) < 0.2] = None
        X.append(x)
        y.append(labels)
    return X, y


@pytest.mark.parametrize(
    "how", [{"init": "kmeans"}, {"init": "labels"}, {"init": "labels", "n_label_states": 3}],
    ids=lambda how: "-".join(map(str, how.values())),
)  # fmt: skip
def test_labels_may_be_elsewhere(how):
    by_state = how["init"] == "labels"
    X, y = switching(8, 60, 0, by_state)
    y[2][:] = None  # a partition without any
    y[3][y[3] == "up"] = None  # and one with a single class
    new, truth = switching(3, 60, 1, by_state)
    model = MaxMarginInfiniteHMM(n_draws=20, burn_in=40, n_chains=1, random_state=0, **how)
    there = quiet(fit, clone(model), X, y, client=Here(), n_shards=8)
    here = quiet(clone(model).fit, X, y)
    assert list(there.classes_) == ["down", "up"]
    answers, known = np.concatenate(there.predict(new)), np.concatenate(truth) != None  # noqa: E711
    right = np.mean((answers == np.concatenate(truth))[known])
    right_here = np.mean((np.concatenate(here.predict(new)) == np.concatenate(truth))[known])
    assert right > 0.8
    assert abs(right - right_here) < 0.1
    again = quiet(fit, clone(model), X, y, client=Here(), n_shards=8)
    assert flat(again.trace_.chains) == flat(there.trace_.chains)


@pytest.mark.slow
def test_a_worker_that_knew_labels_may_die(client, tmp_path):
    X, y = switching(6, 60, 0)
    model = MaxMarginInfiniteHMM("categorical", init="labels", **few)
    symbols = [np.where(x[:, 0] > 3, "a", "b") for x in X]
    undisturbed = quiet(fit, clone(model), symbols, y, client=Here(), n_shards=3)
    kill = Kill(client, 8)
    disturbed = clone(model).set_params(callbacks=[kill], checkpoint=Checkpoint(tmp_path, every=3))
    quiet(fit, disturbed, symbols, y, client=client, n_shards=3)
    assert len(kill.killed) == 1
    assert same(undisturbed, disturbed)
    client.wait_for_workers(2)


def test_labels_may_be_a_column():
    """A partition of a table, whose rows need not be in the order of its sequences."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"x": [0.0, 5.0, 1.0, 6.0], "sequence_id": [1, 0, 1, 0]})
    found = _hmm.read(table, pd.Series(["a", "b", "c", None]), MaxMarginInfiniteHMM())
    assert list(found.classes) == ["a", "b", "c"]
    by_value = dict(zip(found.sequences.values.ravel(), found.codes))
    assert by_value == {0.0: 0, 5.0: 1, 1.0: 2, 6.0: -1}


def test_labels_that_will_not_do_are_refused():
    X, y = switching(3, 20, 0)
    model = MaxMarginInfiniteHMM(**few)
    with pytest.raises(ValueError, match="X has 3 partitions, and y 2"):
        fit(model, X, y[:2], client=Here(), n_shards=3)
    with pytest.raises(ValueError, match="labels of different types"):
        fit(model, X, [*y[:2], [1] * 20], client=Here(), n_shards=3)
    with pytest.raises(ValueError, match="no labels at all"):
        fit(model, X, [None] * 3, client=Here(), n_shards=3)
    with pytest.raises(ValueError, match="only one class"):
        fit(model, X, [["up"] * 20, None, None], client=Here(), n_shards=3)


def test_what_cannot_be_done_says_so(client):
    with pytest.raises(TypeError, match="To mend it: use one of InfiniteHMM"):
        fit(GaussianHMM(), SEQUENCES, client=client)
    with pytest.raises(ValueError, match="use checkpoint"):
        fit(InfiniteHMM(warm_start=True), SEQUENCES, client=client)
    with pytest.raises(ValueError, match="different features"):
        fit(InfiniteHMM(), [*SEQUENCES[:1], np.zeros((5, 3))], client=client)
