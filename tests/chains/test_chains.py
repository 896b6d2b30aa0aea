"""The sampling loop, its progress and its trace."""

import pickle
import threading
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regbayes import chains
from regbayes.chains import Trace, backtrack, run
from regbayes.mixture import GibbsInfiniteSVM, gibbs

RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 2))
Y = np.where(X[:, 0] > 0, "right", "left")
small = partial(GibbsInfiniteSVM, n_draws=4, burn_in=3, n_chains=2, random_state=0)


def walk(**options):
    """A random walk that counts its steps."""
    return run(
        init=lambda rng: (0, rng.standard_normal(3)),
        step=lambda rng, state: (state[0] + 1, state[1] + rng.standard_normal(3)),
        record=lambda state: {"sweep": state[0], "x": state[1]},
        **options,
    )


class Recorder:
    """A callback that counts what it hears, and may ask one chain to stop."""

    def __init__(self, stop_chain=None, after=0):
        self.heard = Counter()
        self.stop_chain, self.after = stop_chain, after
        self.lock = threading.Lock()

    def hear(self, *what):
        with self.lock:
            self.heard[what] += 1

    def setup(self, estimator, context):
        self.hear("setup")

    def teardown(self, estimator, context):
        self.hear("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.hear("begin", context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.hear("end", context.task_name)
        return (
            context.task_name == "sweep"
            and context.parent.task_id == self.stop_chain
            and context.task_id + 1 >= self.after
        )

    def expected(self, n_chains, n_sweeps):
        counts = {"fit": 1, "chain": n_chains, "sweep": n_sweeps}
        both = {(when, name): n for name, n in counts.items() for when in ("begin", "end")}
        return {("setup",): 1, ("teardown",): 1, **both}


# The loop.


def test_draws_do_not_depend_on_the_number_of_threads():
    traces = [walk(n_draws=20, n_chains=5, random_state=3, n_jobs=n)["x"] for n in (1, 2, 4, None)]
    for trace in traces[1:]:
        np.testing.assert_array_equal(trace, traces[0])


@pytest.mark.parametrize(("burn_in", "thin"), [(0, 1), (5, 1), (0, 3), (5, 3)])
def test_burn_in_and_thinning_keep_the_right_sweeps(burn_in, thin):
    trace = walk(n_draws=4, burn_in=burn_in, thin=thin, n_chains=2, random_state=0)
    expected = burn_in + thin * np.arange(1, 5)
    np.testing.assert_array_equal(trace["sweep"], [expected, expected])


def test_thinning_skips_draws_of_the_same_chain():
    every, third = (walk(n_draws=n, thin=t, random_state=0)["x"] for n, t in ((12, 1), (4, 3)))
    np.testing.assert_array_equal(third, every[:, 2::3])


def test_chains_differ_and_the_first_do_not_depend_on_how_many_there_are():
    x = walk(n_draws=3, n_chains=4, random_state=0)["x"]
    assert len(np.unique(x[:, 0, 0])) == 4
    np.testing.assert_array_equal(walk(n_draws=3, n_chains=2, random_state=0)["x"], x[:2])


@pytest.mark.parametrize("kind", [int, np.random.RandomState, np.random.default_rng])
def test_equal_random_states_give_equal_draws(kind):
    first, second = (walk(n_draws=3, random_state=kind(7))["x"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (walk(n_draws=3, random_state=kind(8))["x"] != first).all()


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_a_stateful_random_state_moves_on(kind):
    state = kind(7)
    first, second = (walk(n_draws=3, random_state=state)["x"] for _ in range(2))
    assert (first != second).all()


def test_no_random_state_gives_new_draws():
    assert (walk(n_draws=3)["x"] != walk(n_draws=3)["x"]).all()


def test_the_loop_leaves_global_random_state_alone():
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.RandomState(0).random()
    walk(n_draws=3, random_state=1)
    assert np.random.random() == expected  # noqa: NPY002


def test_an_error_in_a_step_reaches_the_caller():
    def step(rng, state):
        raise FloatingPointError("scale the inputs")

    with pytest.raises(FloatingPointError, match="scale the inputs"):
        run(lambda rng: 0, step, lambda state: {}, n_chains=2, n_jobs=2)


# The loop of variational methods.


def halve(max_iter=3, tol=0.0, **options):
    """A descent that takes for ever."""
    return chains.descend(
        init=lambda rng: 1.0 + rng.random(),
        step=lambda rng, x: x / 2,
        objective=lambda x: 1.0 + x,
        max_iter=max_iter,
        tol=tol,
        random_state=0,
        **options,
    )


def test_a_descent_that_ran_out_of_rounds_says_what_to_do():
    with pytest.warns(ConvergenceWarning, match="after max_iter=3 rounds; raise max_iter or tol"):
        found = halve()
    assert not found.converged
    assert len(found.objective) == 4
    with pytest.warns(ConvergenceWarning, match=r"after max_iter=2 rounds; take a walk\.$"):
        halve(max_iter=2, advice="take a walk")


def test_a_descent_without_advice_stops_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = halve(advice=None)
        assert not found.converged
        assert halve(max_iter=100, tol=1e-3, advice="never said").converged


def test_the_best_of_several_descents_is_kept():
    every = [halve(n_init=n, advice=None) for n in (1, 2, 3, 8)]
    ends = [found.objective[-1] for found in every]
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] < ends[0]
    for found in every:
        assert found.objective[-1] == 1.0 + found.state


# Progress.


@pytest.mark.parametrize("how", ["parameter", "set_callbacks", "both"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_hear_every_chain_and_sweep_once(how, n_jobs):
    one, two = Recorder(), Recorder()
    model = small(n_jobs=n_jobs, thin=2, callbacks=None if how == "set_callbacks" else [one])
    if how != "parameter":
        model.set_callbacks(two)
    for fits in (1, 2):
        model.fit(X, Y)
        for recorder in {"parameter": [one], "set_callbacks": [two], "both": [one, two]}[how]:
            expected = recorder.expected(n_chains=2, n_sweeps=2 * (3 + 4 * 2))
            assert recorder.heard == {name: fits * n for name, n in expected.items()}


def test_callbacks_do_not_stay_behind():
    one, two = Recorder(), Recorder()
    model = small(callbacks=[one]).set_callbacks(two).fit(X, Y)
    assert model._skl_callbacks == [two]
    assert model.callbacks == [one]
    plain = small(callbacks=[one], verbose=True).fit(X, Y)
    assert not hasattr(plain, "_skl_callbacks")
    assert not hasattr(plain, "_callback_fit_ctx")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_fit_tears_callbacks_down_once(monkeypatch, n_jobs):
    def fail(model, rng, state):
        raise FloatingPointError("no numbers")

    monkeypatch.setattr(gibbs, "step", fail)
    recorder = Recorder()
    model = small(callbacks=[recorder], n_jobs=n_jobs)
    with pytest.raises(FloatingPointError, match="no numbers"):
        model.fit(X, Y)
    assert recorder.heard["setup",] == recorder.heard["teardown",] == 1
    assert not hasattr(model, "_skl_callbacks")


def test_bad_data_are_refused_before_callbacks_are_set_up():
    recorder = Recorder()
    with pytest.raises(ValueError, match="one class"):
        small(callbacks=[recorder]).fit(X, np.zeros(len(X)))
    assert not recorder.heard


@pytest.mark.parametrize("after", [1, 5])
def test_a_callback_may_end_a_chain_early(after):
    """Before its first draw (burn-in is 3), and after it."""
    recorder = Recorder(stop_chain=0, after=after)
    model = small(callbacks=[recorder]).fit(X, Y)
    lengths = [len(chain) for chain in model.trace_.chains]
    assert lengths == [max(after - 3, 1), 4]
    assert model.trace_.n_draws == lengths[0]
    assert recorder.heard["end", "sweep"] == after + 7
    assert model.trace_["alpha"].shape == (2, lengths[0])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    full = small().fit(X, Y)
    np.testing.assert_array_equal(model.trace_["alpha"][1], full.trace_["alpha"][1, : lengths[0]])


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="FitCallback protocol"):
        small(callbacks=["loud"]).fit(X, Y)


def test_verbose_shows_a_progress_bar(capsys):
    small(verbose=True).fit(X, Y)
    shown = capsys.readouterr().out
    assert shown.count("100%") == shown.count("log_joint") == 2
    assert "n_components" in shown
    assert "chain 1" in shown
    small().fit(X, Y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "outer",
    [
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(model, {"C": [1.0]}, cv=2, error_score="raise"),
    ],
)
def test_inside_another_estimator_the_bar_is_left_to_the_outer_one(outer, capsys):
    outer(small(verbose=True)).fit(X, Y)
    assert "chain" not in capsys.readouterr().out
    with pytest.raises(TypeError, match="call set_callbacks on the Pipeline"):
        outer(small(callbacks=[ProgressBar()])).fit(X, Y)


def test_a_grid_search_hands_its_progress_bar_down(capsys):
    grid = GridSearchCV(small(), {"C": [1.0]}, cv=2, error_score="raise")
    grid.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, Y)
    assert "chain" in capsys.readouterr().out


def test_watch_without_an_estimator_is_silent():
    with chains.Watch().chain(0, 10) as tell:
        assert tell() is False


# The trace.


@pytest.fixture
def trace():
    draws = [
        {"size": 2, "w": np.array([0.4, 0.6]), "v": np.ones(3)},
        {"size": 1, "w": np.array([1.0]), "v": np.zeros(3)},
    ]
    return Trace([draws, draws[::-1]])


def test_trace_counts_and_iterates_chain_after_chain(trace):
    assert (trace.n_chains, trace.n_draws, len(trace)) == (2, 2, 4)
    assert trace.names == ["size", "w", "v"]
    assert [draw["size"] for draw in trace] == [2, 1, 1, 2]
    assert repr(trace) == "Trace(2 chains x 2 draws of size, w, v)"


def test_trace_gives_arrays_by_chain_and_draw(trace):
    np.testing.assert_array_equal(trace["size"], [[2, 1], [1, 2]])
    assert trace["v"].shape == (2, 2, 3)


def test_trace_errors_say_what_to_do_instead(trace):
    with pytest.raises(KeyError, match="no 'weights' in this trace; it has size, w, v"):
        trace["weights"]
    with pytest.raises(ValueError, match="iterate over the trace"):
        trace["w"]


def test_trace_of_unequal_chains_is_cut_to_the_shortest(trace):
    uneven = Trace([trace.chains[0], trace.chains[1][:1]])
    assert uneven["size"].tolist() == [[2], [1]]
    assert len(list(uneven)) == len(uneven) == 3


def test_trace_pickles(trace):
    again = pickle.loads(pickle.dumps(trace))
    np.testing.assert_array_equal(again["size"], trace["size"])
    assert repr(again) == repr(trace)


def test_trace_goes_to_arviz(trace):
    pytest.importorskip("arviz")
    posterior = trace.to_arviz().posterior
    assert set(posterior.data_vars) == {"size", "v"}
    assert dict(posterior.sizes) == {"chain": 2, "draw": 2, "v_dim_0": 3}
    np.testing.assert_array_equal(posterior["size"], trace["size"])


def test_trace_of_a_fit_goes_to_arviz():
    pytest.importorskip("arviz")
    posterior = small(n_draws=6).fit(X, Y).trace_.to_arviz().posterior
    assert {"n_components", "alpha", "log_joint", "z", "shared_weights"} <= set(posterior.data_vars)
    assert posterior["z"].shape == (2, 6, len(X))
    assert posterior["shared_weights"].shape == (2, 6, 2, 3)


def test_backtracking_goes_down_or_stays():
    rates = []

    def attempt(rate):
        rates.append(rate)
        return 1.0 - 5.0 * rate

    assert backtrack(attempt, abs, 1.0, rate=0.3) == (1.0 - 5.0 * 0.3, 0.3)
    assert rates == [0.6, 0.3]  # the next attempt is bolder than the last step
    assert backtrack(attempt, lambda x: -x, 1.0, rate=1.0) == (1.0, 1.0)  # no way down
