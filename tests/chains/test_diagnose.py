"""Have the chains met? R-hat against ArviZ, plain verdicts, a warning in time, and the log."""

import logging
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from regbayes.chains import Trace, diagnose, r_hat
from regbayes.chains._diagnose import numbers, warn_when_apart
from regbayes.hmm import InfiniteHMM, MaxMarginInfiniteHMM
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM
from tests.robustness.runs import DATA, SEQUENCES


def trace_of(**columns):
    """A trace of arrays of shape (chain, draw)."""
    n_chains, n_draws = np.shape(next(iter(columns.values())))
    return Trace(
        [
            [{name: column[c][d] for name, column in columns.items()} for d in range(n_draws)]
            for c in range(n_chains)
        ]
    )


def walks(rng, n_chains, n_draws, memory, gap=0.0):
    out = np.empty((n_chains, n_draws))
    out[:, 0] = rng.standard_normal(n_chains)
    for t in range(1, n_draws):
        out[:, t] = memory * out[:, t - 1] + np.sqrt(1 - memory**2) * rng.standard_normal(n_chains)
    return out + gap * np.arange(n_chains)[:, None]


@pytest.mark.parametrize("seed", range(20))
def test_r_hat_is_that_of_arviz(seed):
    arviz = pytest.importorskip("arviz")
    rng = np.random.default_rng(seed)
    n_chains, n_draws = int(rng.integers(2, 6)), int(rng.integers(4, 200))
    draws = walks(rng, n_chains, n_draws, rng.uniform(0, 0.99), rng.choice([0.0, 1.0, 10.0]))
    if seed % 3 == 0:
        draws = np.round(draws)  # ties
    if seed % 4 == 0:
        draws *= 1 + np.arange(n_chains)[:, None]  # another spread
    np.testing.assert_allclose(r_hat(draws), float(arviz.rhat(draws)), rtol=1e-12)


def test_r_hat_without_meaning_is_nan():
    for chains in ([], [[]], [[1.0, 2.0]], np.ones((2, 50)), [[0.0, np.inf, 1.0, 2.0]] * 2):
        assert np.isnan(r_hat(chains))


def test_r_hat_of_chains_that_stand_apart_is_infinite():
    assert r_hat(np.repeat([[1.0], [2.0]], 20, axis=1)) == np.inf


def test_r_hat_so_far_takes_unequal_chains():
    """While chains run, one is ahead of the other; those not begun are left out."""
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal(100), rng.standard_normal(60)
    assert r_hat([one, two, []]) == r_hat([one[:60], two])


@pytest.mark.parametrize(
    ("memory", "gap", "n_draws", "verdict", "good"),
    [
        (0.0, 0.0, 400, "The chains agree", True),
        (0.0, 5.0, 400, "The chains disagree about x", False),
        (0.95, 0.0, 400, "times as long", False),
        (0.6, 0.0, 150, "twice as long", False),
        (0.0, 0.0, 10, "10 draws of a chain tell nothing", False),
    ],
)
def test_verdicts(memory, gap, n_draws, verdict, good):
    pytest.importorskip("arviz")
    draws = walks(np.random.default_rng(1), 4, n_draws, memory, gap)
    found = diagnose(trace_of(x=draws, fixed=np.ones(draws.shape)))
    assert verdict in found.verdict
    assert found.good == good
    assert list(found.quantities) == ["x"]
    assert str(found).splitlines()[1].startswith("x ")
    assert str(found).endswith(found.verdict)


def test_a_single_chain_is_never_sure():
    pytest.importorskip("arviz")
    found = diagnose(trace_of(x=walks(np.random.default_rng(0), 1, 1000, 0.0)))
    assert not found.good
    assert "run two or more" in found.verdict


@pytest.mark.parametrize(
    "model",
    [
        GibbsInfiniteSVM(n_draws=30, burn_in=10, random_state=0),
        DPMultinomialLogit(n_draws=30, burn_in=10, random_state=0),
        InfiniteHMM(n_draws=30, burn_in=10, random_state=0),
        MaxMarginInfiniteHMM(n_draws=30, burn_in=10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_sampler_diagnoses_itself(model):
    arviz = pytest.importorskip("arviz")
    with pytest.raises(NotFittedError):
        model.diagnose()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*SEQUENCES.get(type(model).__name__, DATA))
    found = model.diagnose()
    size = "n_states" if hasattr(model, "n_states_") else "n_components"
    assert {size, "log_joint", "alpha"} <= set(found.quantities)
    for name, quantity in found.quantities.items():
        draws = model.trace_[name].astype(float)
        assert quantity.r_hat == pytest.approx(float(arviz.rhat(draws)), rel=1e-9)
        assert quantity.ess_bulk == pytest.approx(float(arviz.ess(draws)), rel=1e-9)
    assert found.verdict.endswith(".")


def test_numbers_are_those_that_no_relabelling_changes():
    draw = {"n_states": 3, "log_joint": np.float64(-1.5), "z": np.arange(4), "on": True, "w": [1]}
    assert numbers(draw) == {"n_states": 3.0, "log_joint": -1.5}


def test_fit_warns_when_chains_disagree_about_the_number_of_parts():
    rng = np.random.default_rng(0)
    apart = walks(rng, 2, 50, 0.5, gap=9.0)
    together = walks(rng, 2, 50, 0.0)
    with pytest.warns(ConvergenceWarning, match="disagree about n_parts"):
        warn_when_apart(trace_of(n_parts=apart, log_joint=together), "X")
    with pytest.warns(ConvergenceWarning, match="disagree about log_joint"):
        warn_when_apart(trace_of(log_joint=apart, nu=together), "X")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_when_apart(trace_of(n_parts=together, log_joint=apart, nu=apart), "X")
        warn_when_apart(trace_of(n_parts=apart[:1]), "X")
        warn_when_apart(trace_of(n_parts=apart[:, :10]), "X")  # too few to tell


def test_a_fit_whose_chains_got_stuck_warns():
    X = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.warns(ConvergenceWarning, match="DPMultinomialLogit disagree about n_components"):
        DPMultinomialLogit(random_state=0).fit(X, X[:, 0] > 0)


def test_the_log_tells_about_chains(caplog, tmp_path):
    model = GibbsInfiniteSVM(n_draws=3, burn_in=2, random_state=0, checkpoint=tmp_path)
    with caplog.at_level(logging.INFO, "regbayes"):
        model.fit(*DATA)
        model.fit(*DATA)
    told = [record.getMessage() for record in caplog.records]
    assert told[:2] == ["chain 0: 5 sweeps, 3 draws", "chain 1: 5 sweeps, 3 draws"]
    assert "chain 1 goes on after sweep 5" in told


def test_callbacks_may_look_at_a_chain():
    """`metadata["look"]()`: numbers of the last draw, or of the state during burn-in, and R-hat."""

    class Looker:
        def __init__(self):
            self.seen = []

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, metadata):
            if context.task_name == "sweep":
                self.seen.append(metadata["look"]())

    looker = Looker()
    model = GibbsInfiniteSVM(n_draws=8, burn_in=3, n_chains=2, random_state=0, callbacks=[looker])
    plain = GibbsInfiniteSVM(n_draws=8, burn_in=3, n_chains=2, random_state=0).fit(*DATA)
    model.fit(*DATA)
    np.testing.assert_array_equal(model.trace_["log_joint"], plain.trace_["log_joint"])
    assert len(looker.seen) == 22
    joints = [seen["log_joint"] for seen in looker.seen]
    assert joints[3:11] == plain.trace_["log_joint"][0].tolist()
    assert np.isnan(looker.seen[5]["r_hat"])
    assert looker.seen[-1]["r_hat"] == r_hat(plain.trace_["log_joint"])
    assert looker.seen[0]["n_components"] >= 1
