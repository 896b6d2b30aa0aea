"""The harness for ratios against peers."""

import numpy as np
import pytest

from benchmarks import __main__ as command_line
from benchmarks import bench_ihmm, weak_limit
from benchmarks.bench_import import children_cpu_seconds, in_fresh_interpreter
from benchmarks.harness import Comparison, as_table, compare
from regbayes.priors import NormalInverseWishart


def test_ours_and_the_peer_take_turns():
    calls = []
    result = compare(
        "a", lambda: calls.append("A"), "b", lambda: calls.append("B"), target_ratio=2, repeats=3
    )
    assert "".join(calls) == "AB" * 4  # one round does not count
    assert result.repeats == 3


def test_medians_of_a_known_clock():
    """Ours takes 2, 4, 9 ticks, the peer always 8: medians 4 and 8."""
    now = 0.0
    ours_ticks = iter([100, 2, 4, 9])

    def tick(amount):
        nonlocal now
        now += amount

    result = compare(
        "a", lambda: tick(next(ours_ticks)), "b", lambda: tick(8),
        target_ratio=0.5, repeats=3, cpu_clock=lambda: now,
    )  # fmt: skip
    assert (result.ours_seconds, result.peer_seconds) == (4, 8)
    assert result.ratio == 0.5
    assert not result.met  # the target is to be below it


def test_table_tells_met_from_missed():
    fast = Comparison("fast", 1.0, "peer", 2.0, 1.0, 1.0, 4.0, repeats=3)
    slow = Comparison("slow", 3.0, "peer", 2.0, 1.0, 3.0, 4.0, repeats=3)
    _, _, first, second = as_table([fast, slow]).splitlines()
    assert first == "| fast | 1 | peer | 2 | 0.50 | < 1 | met | 0.25 |"
    assert second == "| slow | 3 | peer | 2 | 1.50 | < 1 | missed | 0.75 |"


def test_fresh_interpreters_are_measured():
    before = children_cpu_seconds()
    in_fresh_interpreter("sum(range(1_000_000))")()
    assert children_cpu_seconds() > before


@pytest.mark.parametrize(("seconds", "code"), [(1.0, 0), (5.0, 1)])
def test_command_writes_a_page_and_fails_when_missed(tmp_path, monkeypatch, capsys, seconds, code):
    class Benchmark:
        """What is compared."""

        @staticmethod
        def run(quick):
            assert quick
            return [Comparison("task", seconds, "peer", 2.0, 1.0, seconds, 2.0, repeats=3)]

    monkeypatch.setattr(command_line.importlib, "import_module", lambda name: Benchmark)
    assert command_line.main(["import", "--quick"], results=tmp_path) == code
    page = (tmp_path / "import_quick.md").read_text()
    for part in (
        "What is compared.",
        "| task |",
        "- numpy: ",
        "python -m benchmarks import --quick",
    ):
        assert part in page
    assert "| task |" in capsys.readouterr().out


def test_unknown_benchmarks_are_refused_with_a_list(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["nope"])
    message = capsys.readouterr().err
    assert "There are: " in message
    assert "import, mixture" in message


def test_weak_limit_draws_paths_from_their_posterior():
    rng = np.random.default_rng(0)
    start, transitions = np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.4, 0.6]])
    likelihoods = np.array([[0.5, 0.2], [0.1, 0.7], [0.3, 0.3]])
    law = np.einsum("i,ij,jk,i,j,k->ijk", start, transitions, transitions, *likelihoods)
    n_draws, seen = 4000, np.zeros((2, 2, 2))
    for _ in range(n_draws):
        seen[tuple(weak_limit.draw_path(rng, start, transitions, np.log(likelihoods)))] += 1
    expected = n_draws * law / law.sum()
    assert ((seen - expected) ** 2 / expected).sum() < 29.9  # chi-square, 7 degrees, p = 1e-4


def test_weak_limit_draws_gaussians_from_their_posterior():
    rng = np.random.default_rng(0)
    prior = NormalInverseWishart([1.0, -1.0], 2.0, 10.0, [[2.0, 0.5], [0.5, 1.0]])
    points, n_states = np.array([[3.0, 0.0], [2.0, -2.0]]), 1000  # each of them sees the same
    model = weak_limit.WeakLimitHDPHMM(np.tile(points, (n_states, 1)), prior, n_states=n_states)
    z = np.repeat(np.arange(n_states), len(points))
    draws = [model._draw_gaussians(rng, z) for _ in range(10)]
    means, factors = (np.concatenate(arrays) for arrays in zip(*draws))
    after = prior.posterior(points)
    covariance = after.scale / (after.df - 3)
    np.testing.assert_allclose((factors @ factors.mT).mean(axis=0), covariance, atol=0.02)
    np.testing.assert_allclose(means.mean(axis=0), after.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(means.T), covariance / after.strength, atol=0.01)


def test_beam_and_weak_limit_find_the_same_states():
    (X, _), (new, _) = bench_ihmm.sequence(600, 0), bench_ihmm.sequence(200, 1)
    first = np.zeros(600, dtype=np.int64)
    for make in (bench_ihmm.beam_chain, bench_ihmm.weak_limit_chain):
        chain = make(X, first)
        chain.run(100)
        assert chain.describe(new, n_draws=20).startswith("4 states, held-out -3.")
