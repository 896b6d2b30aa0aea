"""Checkpoints: a run that was cut short ends as one that was not."""

import json
import logging
import os
import signal
import threading
import time
import warnings
from functools import partial
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from regbayes import _files, chains
from regbayes._files import DamagedFile, FileError
from regbayes.chains import (
    Checkpoint,
    CheckpointError,
    Watch,
    _checkpoint,
    descend,
    minimize,
    run,
)
from regbayes.chains._checkpoint import fingerprint
from regbayes.harmonium import (
    DiscriminativeRBM,
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
    MaxMarginHarmoniumRegressor,
)
from regbayes.hmm import (
    CategoricalHMM,
    GaussianHMM,
    InfiniteHMM,
    LargeMarginHMM,
    MarkovSwitchingMED,
    MaxMarginInfiniteHMM,
)
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM
from regbayes.priors import Fixed, GammaPrior
from regbayes.scores import (
    FisherKernelLearning,
    MaxMarginScore,
    MaxMarginScoreClassifier,
    SideBySide,
)
from regbayes.topics import LatentDirichlet, MaxMarginTopics
from tests.robustness.runs import DATA, SEQUENCES, flat, same

# The tree.

TREES = [
    None,
    True,
    "text \u00e9 \ud800",
    [1, 2**80, -3, 0.1, np.inf, -np.inf],
    (1, (2.0, "a"), [], {}),
    {"a": {1: 2, "b": None}, "": 0},
    [1.5, 2.5],
    [True, False],
    [np.float64(0.5), np.float64(1.5)],
    ["", "a", "\u00e9\u00e9"],
    [{"a": 1, "b": np.zeros((2, 0))}, {"a": 2, "b": np.ones((1, 3))}],
    [{"a": 1}, {"b": 2}],
    [{"a": True, "b": "x"} for _ in range(50)],
    [np.zeros((1, 1, 1, 1))] * 20,
    [np.arange(3), np.arange(4.0)],
    np.float32(0.1),
    np.array(3),
    np.zeros((0, 4), dtype=np.int8),
    np.array([["a", "bcd"], ["", "\u00e9"]]),
    np.array([b"a", b"bc"]),
    np.array(["a", None, 3, 0.5, True], dtype=object),
    np.array([None], dtype=object),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
    np.arange(10)[::3],
    GammaPrior(2.0, 4.0),
    [Fixed(1.0), GammaPrior(1.0, 2.0)],
    [GammaPrior(1.0, 2.0), GammaPrior(3.0, 4.0)],
    [(1, "a"), (2, "b")],
    [(np.arange(3.0), None), (np.arange(4.0), None)],
    [(1, 2), (3,)],
    [(), ()],
    csr_array(np.eye(3)),
]


def round_trip(tmp_path, tree):
    _files.write(tmp_path / "file", "test", tree)
    return _files.read(tmp_path / "file", "test").content


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_a_tree_comes_back_as_it_was(tmp_path, tree):
    again = round_trip(tmp_path, tree)
    assert flat(again) == flat(tree)
    assert flat(round_trip(tmp_path, [tree, (tree, {"again": tree})])) == flat(
        [tree, (tree, {"again": tree})]
    )


@pytest.mark.parametrize("tree", [*TREES, TREES, [TREES, TREES]], ids=repr)
def test_what_is_written_is_never_too_much_to_read(tree):
    """A reader counts objects, lest a small file fill the memory; a writer knows how."""
    writer = _files._Writer()
    written = writer.node(tree, "")
    read = _files._Reader(writer.arrays, writer.n_objects, None).node(written)
    assert flat(read) == flat(tree)


@pytest.mark.parametrize("bits", ["MT19937", "PCG64", "PCG64DXSM", "SFC64"])
def test_generators_go_on_where_they_were(tmp_path, bits):
    rng = np.random.Generator(getattr(np.random, bits)(5))
    rng.standard_normal(7)
    again = round_trip(tmp_path, rng)
    np.testing.assert_array_equal(again.standard_normal(9), rng.standard_normal(9))
    old = np.random.RandomState(3)
    old.standard_normal(3)
    np.testing.assert_array_equal(round_trip(tmp_path, old).rand(5), old.rand(5))


def test_an_array_that_is_there_twice_stays_one(tmp_path):
    array = np.arange(3.0)
    first, second = round_trip(tmp_path, (array, {"again": array}))
    assert first is second["again"]
    assert first.flags.writeable


@pytest.mark.parametrize("value", [lambda: 0, object(), np.array([1j]), {1, 2}, time])
def test_what_is_not_data_is_refused(tmp_path, value):
    with pytest.raises(FileError, match="cannot hold"):
        _files.write(tmp_path / "file", "test", {"a": [value]})
    assert not list(tmp_path.iterdir())


def test_another_kind_of_file_and_a_newer_format_are_refused(tmp_path, monkeypatch):
    _files.write(tmp_path / "file", "test", 1)
    with pytest.raises(FileError, match="is not a checkpoint"):
        _files.read(tmp_path / "file", "checkpoint")
    monkeypatch.setattr(_files, "FORMAT", 2)
    _files.write(tmp_path / "new", "test", 1)
    monkeypatch.undo()
    with pytest.raises(FileError, match="update regbayes"):
        _files.read(tmp_path / "new", "test")


def test_a_field_that_is_new_takes_its_default(tmp_path, monkeypatch):
    """A file of an older release does not know it."""
    from regbayes.hmm.emissions import CategoricalEmission

    def without(cls):
        return [name for name in names(cls) if name != "symbols"]

    names = _files._field_names
    monkeypatch.setattr(_files, "_field_names", without)
    _files.write(tmp_path / "old", "test", CategoricalEmission(3, 0.5, ("a", "b", "c")))
    monkeypatch.undo()
    assert _files.read(tmp_path / "old", "test").content == CategoricalEmission(3, 0.5)


# Every fit: cut short anywhere, it ends as if nothing had happened.

SAMPLERS = {
    "gisvm": GibbsInfiniteSVM(n_draws=6, burn_in=4, thin=2, random_state=0),
    "gisvm, full, one by one": GibbsInfiniteSVM(
        n_draws=5, burn_in=3, covariance="full", pooling="none", n_chains=1, random_state=1
    ),
    "dpmnl": DPMultinomialLogit(n_draws=5, burn_in=3, random_state=0),
    "ihmm": InfiniteHMM(n_draws=5, burn_in=3, stickiness=(1.0, 1.0), random_state=0),
    "ihmm, diagonal": InfiniteHMM("diag", n_draws=5, burn_in=3, random_state=0),
    "m2ihmm-1": MaxMarginInfiniteHMM(n_draws=5, burn_in=3, pooling="partial", random_state=0),
    "m2ihmm-2": MaxMarginInfiniteHMM(None, n_draws=5, burn_in=3, random_state=0),
    "lda": LatentDirichlet(3, n_draws=5, burn_in=5, n_chains=2, random_state=0),
    "medlda": MaxMarginTopics(3, n_draws=5, burn_in=5, random_state=0),
    "medlda, auto": MaxMarginTopics("auto", max_topics=6, n_draws=5, burn_in=5, random_state=0),
}
SYMBOLS = CategoricalHMM(2, n_iter=3, random_state=0)
ROUNDS = {
    "isvm": InfiniteSVM(max_components=3, n_init=2, max_iter=6, tol=0, random_state=0),
    "im2edm": MarkovSwitchingMED(max_states=3, n_init=2, max_iter=6, tol=0, random_state=0),
    "gaussian": GaussianHMM(3, n_init=2, n_iter=6, tol=0, random_state=0),
    "gaussian, full": GaussianHMM(2, "full", n_iter=6, tol=0, random_state=0),
    "symbols": CategoricalHMM(3, n_init=2, n_iter=6, tol=0, random_state=0),
    "efh": Harmonium(3, max_iter=6, random_state=0),
    "efh, lbfgs": Harmonium(3, solver="lbfgs", max_iter=6, tol=0, random_state=0),
    "iefh, held out": InfiniteHarmonium(5, early_stopping=True, max_iter=6, random_state=0),
    "mmh": MaxMarginHarmonium(3, dropout=0.2, max_iter=6, random_state=0),
    "immh, lbfgs": InfiniteMaxMarginHarmonium(4, solver="lbfgs", max_iter=6, tol=0, random_state=0),
    "immh, regression": MaxMarginHarmoniumRegressor(4, max_iter=6, random_state=0),
    "drbm": DiscriminativeRBM(3, early_stopping=True, max_iter=6, random_state=0),
    # A seed with which some samples stay misjudged: otherwise it would be done after a round.
    "mss": MaxMarginScore(SYMBOLS, n_iter=12, random_state=2),
    "mss, one against the rest": MaxMarginScore(
        SYMBOLS, multi_class="ovr", n_iter=6, n_referees=1, random_state=0
    ),
    "mss, em": MaxMarginScore(SYMBOLS, solver="em", n_iter=6, random_state=0),
    "lm-hmm": LargeMarginHMM(SYMBOLS, max_iter=6, tol=0),
    "fkl": FisherKernelLearning(SYMBOLS, n_iter=12, patience=12, random_state=0),
    "fkl, side by side": FisherKernelLearning(
        SideBySide([SYMBOLS, CategoricalHMM(1, n_iter=2, random_state=0)]),
        n_iter=12,
        patience=12,
        random_state=0,
    ),
    "fkl, all": FisherKernelLearning(SYMBOLS, n_iter=6, validation_fraction=0, random_state=0),
}
ALL = SAMPLERS | ROUNDS
# Their loops and states are those of others here.
VARIANTS = {"ihmm, diagonal", "gaussian, full", "efh", "mmh", "immh, regression", "fkl, all"}


class Crash(Exception):
    pass


class Bomb:
    """A callback that fails after so many sweeps of all chains together."""

    def __init__(self, after):
        self.left = after

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.left -= context.task_name == "sweep"
        if self.left < 0:
            raise Crash


def data_of(model):
    return SEQUENCES.get(type(model).__name__, DATA)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in VARIANTS else ()) for name in ALL]
)
def test_a_fit_that_crashed_goes_on(tmp_path, name):
    undisturbed = clone(ALL[name]).fit(*data_of(ALL[name]))
    path = tmp_path / "run.ckpt"
    model = clone(ALL[name]).set_params(checkpoint=Checkpoint(path, every=2))
    for n_crashes, after in enumerate(cycle((0, 1, 3, 2))):  # noqa: B007
        resumed = clone(model).set_params(callbacks=[Bomb(after)])
        try:
            resumed.fit(*data_of(model))
        except Crash:
            continue
        break
    assert n_crashes >= 3
    assert same(resumed, undisturbed)
    again = clone(model).set_params(callbacks=[Bomb(0)]).fit(*data_of(model))
    assert same(again, undisturbed)  # no sweep was left to do


@pytest.mark.parametrize("name", ["gisvm", "ihmm"])
def test_threads_share_a_checkpoint(tmp_path, name):
    undisturbed = clone(SAMPLERS[name]).set_params(n_chains=4).fit(*data_of(SAMPLERS[name]))
    model = clone(undisturbed).set_params(n_jobs=3, checkpoint=Checkpoint(tmp_path, every=1))
    with pytest.raises(Crash):
        clone(model).set_params(callbacks=[Bomb(11)]).fit(*data_of(model))
    assert same(model.set_params(n_jobs=2).fit(*data_of(model)), undisturbed)


def test_no_thread_outlives_a_crash():
    """One would write to the checkpoint beside the run that goes on from there."""
    began, ended = [], []

    def step(rng, state):
        began.append(state)
        if len(began) == 7:
            raise Crash
        time.sleep(0.002)
        ended.append(state)
        return state + 1

    sampler = {"init": lambda rng: 0, "record": lambda x: {"x": x}}
    with pytest.raises(Crash):
        chains.run(step=step, n_draws=10_000, n_chains=3, n_jobs=3, random_state=0, **sampler)
    now = len(began), len(ended)
    assert now[0] == now[1] + 1
    time.sleep(0.05)
    assert (len(began), len(ended)) == now


# What is refused.


@pytest.fixture
def run_dir(tmp_path):
    """The checkpoint of a short run, with a state before the last."""
    model = GibbsInfiniteSVM(
        n_draws=4, burn_in=2, n_chains=1, random_state=0, checkpoint=Checkpoint(tmp_path, every=2)
    )
    model.fit(*DATA)
    assert {path.name for path in tmp_path.iterdir()} == {
        "chain-0.state", "chain-0.previous", "chain-0.draws-0", "chain-0.draws-2"
    }  # fmt: skip
    return model, tmp_path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 2.0}, "C was 1.0 and is 2.0"),
        ({"random_state": 1}, "the seed was 0 and is 1"),
        ({"burn_in": 3, "thin": 2}, "burn_in was 2 and is 3; thin was 1 and is 2"),
    ],
)
def test_another_run_is_refused_and_told_apart(run_dir, change, message):
    model, _ = run_dir
    with pytest.raises(CheckpointError, match=message) as caught:
        clone(model).set_params(**change).fit(*DATA)
    assert "To mend it" in str(caught.value)


def test_other_data_and_other_estimators_are_refused(run_dir):
    model, path = run_dir
    X, y = DATA
    moved = X.copy()
    moved[3, 1] += 1e-9
    for other in ((moved, y), (X, y[::-1]), (X[:-1], y[:-1])):
        with pytest.raises(CheckpointError, match="its data are others"):
            clone(model).fit(*other)
    with pytest.raises(CheckpointError, match="the estimator was GibbsInfiniteSVM"):
        DPMultinomialLogit(n_draws=4, burn_in=2, random_state=0, checkpoint=path).fit(X, y)


def test_idle_parameters_may_change(run_dir):
    model, _ = run_dir
    longer = clone(model).set_params(n_draws=9, n_jobs=2, checkpoint=model.checkpoint.path)
    expected = GibbsInfiniteSVM(n_draws=9, burn_in=2, n_chains=1, random_state=0).fit(*DATA)
    assert same(longer.fit(*DATA), expected)
    assert same(clone(model).fit(*DATA), model)  # fewer draws again: the first ones


@pytest.mark.parametrize("how", [{"every": 0}, {"every": 1.5}, {"seconds": -1.0}])
def test_senseless_checkpoints_are_refused(tmp_path, how):
    with pytest.raises(ValueError, match="must be a positive"):
        Checkpoint(tmp_path, **how)
    with pytest.raises(ValueError, match="'checkpoint' parameter"):
        GibbsInfiniteSVM(checkpoint=3).fit(*DATA)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(CheckpointError, match="is a file"):
        GibbsInfiniteSVM(checkpoint=tmp_path / "notes").fit(*DATA)


def test_a_step_without_data_is_no_run():
    with pytest.raises(TypeError, match=r"functools\.partial"):
        run(lambda rng: 0, lambda rng, x: x, lambda x: {"x": x}, watch=Watch(checkpoint="nowhere"))


# Damage.


def spoil(path, rng):
    """Truncate, or turn some bits."""
    data = bytearray(path.read_bytes())
    if rng.random() < 0.5:
        path.write_bytes(data[: rng.integers(len(data))])
        return
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        data[place] ^= 1 << rng.integers(8)
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_checkpoint_falls_back_or_is_refused(run_dir, seed):
    model, path = run_dir
    rng = np.random.default_rng(seed)
    spoil(path / "chain-0.state", rng)
    with pytest.warns(UserWarning, match="going on from the one before"):
        assert same(clone(model).fit(*DATA), model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(clone(model).fit(*DATA), model)  # the fit has mended it
    for name in ("chain-0.state", "chain-0.previous"):
        spoil(path / name, rng)
    with pytest.raises(CheckpointError, match="delete that folder"):
        clone(model).fit(*DATA)


@pytest.mark.parametrize("harm", ["spoil", "delete", "swap"])
@pytest.mark.parametrize("part", [0, 2])
def test_damaged_draws_fall_back_or_are_refused(run_dir, harm, part):
    model, path = run_dir
    file, other = path / f"chain-0.draws-{part}", path / f"chain-0.draws-{2 - part}"
    if harm == "spoil":
        spoil(file, np.random.default_rng(0))
    elif harm == "delete":
        file.unlink()
    else:
        file.write_bytes(other.read_bytes())
    if part == 2:  # the state before the last does not need them
        with pytest.warns(UserWarning, match="going on from the one before"):
            assert same(clone(model).fit(*DATA), model)
    else:
        with pytest.raises(CheckpointError, match="no good one before"):
            clone(model).fit(*DATA)


def test_between_two_renames_there_is_the_one_before(run_dir):
    model, path = run_dir
    (path / "chain-0.state").unlink()
    (path / ".chain-0.state.x1").write_bytes(b"half of it")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(clone(model).fit(*DATA), model)
    assert not list(path.glob(".*"))


def test_a_failed_write_leaves_the_old_one(run_dir, monkeypatch):
    model, path = run_dir
    before = (path / "chain-0.state").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        clone(model).set_params(n_draws=6).fit(*DATA)
    assert (path / "chain-0.state").read_bytes() == before
    assert not list(path.glob(".*"))


# When it is written.


def walk(path, every=None, seconds=None, after=lambda: None, n_draws=10):
    def step(model, rng, state):
        after()
        return state + rng.standard_normal()

    watch = Watch(checkpoint=Checkpoint(path, every, seconds))
    return run(
        lambda rng: 0.0, partial(step, "walk"), lambda x: {"x": x},
        n_draws=n_draws, burn_in=0, random_state=0, watch=watch,
    )  # fmt: skip


def test_it_is_written_every_so_often_and_at_the_end(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, "regbayes"):
        walk(tmp_path / "a", every=4)
    written = [r.args[1] for r in caplog.records if "checkpoint" in r.msg]
    assert written == [4, 8, 10]
    sizes = {p.name: p.stat().st_size for p in (tmp_path / "a").iterdir()}
    assert {name for name in sizes if "draws" in name} == {
        "chain-0.draws-0", "chain-0.draws-4", "chain-0.draws-8"
    }  # fmt: skip


def test_many_draws_are_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "_MOST", 3)
    first = walk(tmp_path)  # at the end only
    assert {p.name for p in tmp_path.glob("*draws*")} == {
        f"chain-0.draws-{start}" for start in (0, 3, 6, 9)
    }
    assert walk(tmp_path)["x"].tolist() == first["x"].tolist()


def test_it_is_written_by_the_clock(tmp_path, caplog, monkeypatch):
    now = iter(range(1000))
    # Of this module only: other threads of the process have clocks too.
    clock = SimpleNamespace(monotonic=lambda: next(now))
    monkeypatch.setattr(chains._checkpoint, "time", clock)
    with caplog.at_level(logging.DEBUG, "regbayes"):
        walk(tmp_path, seconds=3)
    written = [r.args[1] for r in caplog.records if "checkpoint" in r.msg]
    assert written[0] == 3
    assert 10 in written
    assert len(written) < 10


def test_a_run_without_a_seed_goes_on_with_its_own(tmp_path):
    model = GibbsInfiniteSVM(
        n_draws=4, burn_in=1, prediction="iterated", n_rounds=3, checkpoint=tmp_path
    )
    first, second = clone(model).fit(*DATA), clone(model).fit(*DATA)
    assert same(first, second)
    np.testing.assert_array_equal(first.predict_proba(DATA[0]), second.predict_proba(DATA[0]))


def test_the_fingerprint_knows_data_and_not_threads():
    from regbayes.data import Sequences
    from regbayes.hmm import finite

    batch = Sequences(np.arange(5.0)[:, None], np.array([0, 2, 5]))
    other = Sequences(np.arange(5.0)[:, None], np.array([0, 3, 5]))
    one, two = (fingerprint(partial(finite.step, batch, n)) for n in (1, 2))
    assert one == two != fingerprint(partial(finite.step, other, 1))
    sparse = [partial(lambda X, rng, s: s, csr_array(np.eye(3) * k)) for k in (1, 1, 2)]
    assert fingerprint(sparse[0]) == fingerprint(sparse[1]) != fingerprint(sparse[2])


# Warm starts.


@pytest.mark.parametrize("name", SAMPLERS)
def test_warm_start_adds_draws(name):
    short = clone(SAMPLERS[name]).set_params(warm_start=True)
    n_draws = short.n_draws
    data = data_of(short)
    short.fit(*data).fit(*data).fit(*data)
    long = clone(SAMPLERS[name]).set_params(n_draws=3 * n_draws).fit(*data)
    assert flat(short.trace_.chains) == flat(long.trace_.chains)


def test_warm_start_and_checkpoint(tmp_path):
    """Killed in the middle of what was added, a run goes on to where it was to end."""
    model = clone(SAMPLERS["gisvm"]).set_params(
        warm_start=True, checkpoint=Checkpoint(tmp_path, every=1)
    )
    clone(model).fit(*DATA)  # 16 sweeps of 2 chains
    for after in (3, 4, 9):  # 12 more of each
        with pytest.raises(Crash):
            clone(model).set_params(callbacks=[Bomb(after)]).fit(*DATA)
    long = clone(SAMPLERS["gisvm"]).set_params(n_draws=12).fit(*DATA)
    assert flat(clone(model).fit(*DATA).trace_.chains) == flat(long.trace_.chains)


def test_warm_start_refuses_other_data_and_says_when_it_cannot_go_on():
    model = GibbsInfiniteSVM(n_draws=3, burn_in=1, random_state=0).fit(*DATA)
    with pytest.warns(UserWarning, match="starts anew"):
        model.set_params(warm_start=True).fit(*DATA)
    assert model.trace_.n_draws == 3
    with pytest.raises(CheckpointError, match="on the same data"):
        model.fit(DATA[0][:-1], DATA[1][:-1])
    assert model.fit(*DATA).trace_.n_draws == 6


# Ctrl-C.


@pytest.fixture(autouse=True)
def hears_ctrl_c():
    """As in a terminal: a shell starts what is to run in the background deaf to it."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


class Interrupt(Bomb):
    """Ctrl-C after so many sweeps, in the middle of a fit."""

    def __init__(self, after, times=1):
        super().__init__(after)
        self.times = times
        self.lock = threading.Lock()

    def on_fit_task_end(self, estimator, context):
        with self.lock:
            self.left -= context.task_name == "sweep"
            if self.left == 0 and context.task_name == "sweep":
                for _ in range(self.times):
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)  # the main thread hears it


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_fit_with_what_it_has(tmp_path, n_jobs):
    usual = signal.getsignal(signal.SIGINT)
    plain = clone(SAMPLERS["gisvm"]).set_params(burn_in=0, thin=1, n_draws=12)
    model = clone(plain).set_params(n_jobs=n_jobs, checkpoint=str(tmp_path))
    stopped = clone(model).set_params(callbacks=[Interrupt(10)])
    with pytest.warns(UserWarning, match="Ctrl-C ended this fit early"):
        stopped.fit(*DATA)
    assert signal.getsignal(signal.SIGINT) is usual
    whole = clone(plain).fit(*DATA)
    assert 10 <= len(stopped.trace_) < len(whole.trace_)
    for short, long in zip(stopped.trace_.chains, whole.trace_.chains):
        assert flat(short) == flat(long[: len(short)])
    assert stopped.predict(DATA[0]).shape == (len(DATA[0]),)
    assert same(clone(model).fit(*DATA), whole)  # and then goes on


def test_a_second_ctrl_c_is_an_error_as_ever():
    with pytest.raises(KeyboardInterrupt):
        clone(SAMPLERS["gisvm"]).set_params(callbacks=[Interrupt(3, times=2)]).fit(*DATA)


@pytest.mark.parametrize("name", ["isvm", "gaussian", "efh", "lm-hmm"])
def test_ctrl_c_ends_rounds(tmp_path, name):
    model = clone(ROUNDS[name]).set_params(checkpoint=tmp_path)
    stopped = clone(model).set_params(callbacks=[Interrupt(4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.warns(UserWarning, match="Ctrl-C"):
            stopped.fit(*data_of(model))
    assert stopped.n_iter_ == 4
    assert not stopped.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = clone(ROUNDS[name]).fit(*data_of(model))
        assert same(clone(model).fit(*data_of(model)), whole)


@pytest.mark.parametrize("name", ["mss, one against the rest", "fkl"])
def test_ctrl_c_leaves_a_learnt_space(tmp_path, name):
    model = clone(ROUNDS[name]).set_params(checkpoint=tmp_path)
    stopped = clone(model).set_params(callbacks=[Interrupt(2)])
    with pytest.warns(UserWarning, match="Ctrl-C"):
        stopped.fit(*data_of(model))
    assert np.isfinite(stopped.transform(data_of(model)[0])).all()
    whole = clone(ROUNDS[name]).fit(*data_of(model))
    assert not same(stopped, whole)
    assert same(clone(model).fit(*data_of(model)), whole)


def test_answers_are_not_asked_for_twice(tmp_path):
    asked = []

    def square(x):
        asked.append(x.tolist())
        return float(x @ x), 2 * x

    def go(after=99, start=3.0):
        watch = Watch(checkpoint=Checkpoint(tmp_path, every=1))
        left = iter(range(after))
        ask = watch.replay("data")
        return minimize(
            square, np.full(2, start), max_iter=9, tol=0.0, ask=ask,
            look=lambda x: next(left, None) is None,
        )  # fmt: skip

    short = go(after=0)
    n_asked = len(asked)
    assert 1 < len(short.objective) < len(go().objective)
    assert len(asked) > n_asked
    n_asked, whole = len(asked), go()
    assert len(asked) == n_asked
    np.testing.assert_array_equal(whole.x, go().x)
    assert len({tuple(x) for x in asked}) >= len(asked) - 1  # SciPy asks for the start again
    with pytest.raises(CheckpointError, match="other versions of NumPy or SciPy"):
        go(start=2.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_laws_are_learnt_once(tmp_path):
    """A model without a seed would be another one after a crash, and the run another run."""
    model = LargeMarginHMM(CategoricalHMM(2, n_iter=2), max_iter=4, tol=0)
    first, second = (
        clone(model).set_params(checkpoint=tmp_path).fit(*SEQUENCES["LargeMarginHMM"])
        for _ in range(2)
    )
    assert flat(first.laws_) == flat(second.laws_)
    assert flat(first.tilts_) == flat(second.tilts_)


def test_choices_go_on(tmp_path, monkeypatch):
    """Each fold of each candidate is fitted once, whatever happens between them."""
    model = MaxMarginScoreClassifier(SYMBOLS, (1, 2), C=(3, 10), cv=2, random_state=0)
    data = SEQUENCES["MaxMarginScoreClassifier"]
    whole = clone(model).fit(*data)
    learn, left = CategoricalHMM.learn, [0]

    def learn_or_crash(self, batch):
        left[0] -= 1
        if left[0] < 0:
            raise Crash
        return learn(self, batch)

    monkeypatch.setattr(CategoricalHMM, "learn", learn_or_crash)
    model.set_params(checkpoint=Checkpoint(tmp_path, every=1))
    for n_crashes in range(100):  # noqa: B007
        left[0] = 4  # a fold learns a law for each of two classes, and so does the fit at the end
        try:
            resumed = clone(model).fit(*data)
        except Crash:
            continue
        break
    assert n_crashes >= 1
    assert same(resumed, whole)


def test_a_descent_that_settled_is_returned_at_once(tmp_path):
    calls = []

    def step(model, rng, x):
        calls.append(x)
        return x / 2

    def go():
        return descend(
            lambda rng: rng.normal(), partial(step, 1), lambda x: 1 + x**2,
            n_init=2, random_state=0, watch=Watch(checkpoint=tmp_path),
        )  # fmt: skip

    first, n_calls = go(), len(calls)
    second = go()
    assert len(calls) == n_calls
    assert first.converged
    assert second.converged
    assert (first.state, first.objective.tolist()) == (second.state, second.objective.tolist())


def test_the_file_is_plain_safetensors_and_json(run_dir):
    """Anyone may look into it without this library."""
    from safetensors import safe_open

    with safe_open(run_dir[1] / "chain-0.state", framework="numpy") as file:
        head = json.loads(file.metadata()["head"])
        assert head["format"] == 1
        assert head["tree"]["dict"]["progress"]["record"][1]["n_done"] == 6
        assert file.get_tensor("progress.state.z").shape == (len(DATA[0]),)


def test_damage_has_its_own_error(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(DamagedFile):
        _files.read(tmp_path / "x", "test")
