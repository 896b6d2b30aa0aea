"""Runs of sequences in threads: all of them once, whoever does it, and errors are told."""

import multiprocessing
import threading

import numpy as np
import pytest

from regbayes.kernels.threads import in_threads

STARTS = np.concatenate([[0], np.cumsum(np.arange(1, 41))])


def visited(n_threads, starts=STARTS):
    seen = np.zeros(len(starts) - 1, dtype=int)

    def work(low, high):
        seen[low:high] += 1

    in_threads(work, starts, n_threads)
    return seen


@pytest.mark.parametrize("n_threads", [1, 2, 3, 100])
def test_every_sequence_is_worked_on_once(n_threads):
    assert (visited(n_threads) == 1).all()


@pytest.mark.parametrize("starts", [[0, 5], [0, 0, 0, 7], [0, 9, 9, 9], [0, 0, 0]])
def test_sequences_may_be_empty_or_few(starts):
    assert (visited(3, np.array(starts)) == 1).all()


@pytest.mark.parametrize("at", [0, 39])
def test_errors_reach_the_caller(at):
    def work(low, high):
        if low <= at < high:
            raise ZeroDivisionError("told")

    with pytest.raises(ZeroDivisionError, match="told"):
        in_threads(work, STARTS, 2)
    assert (visited(2) == 1).all()


def test_work_may_itself_use_threads():
    seen = []

    def work(low, high):
        seen.append(visited(2).sum())

    in_threads(work, STARTS, 2)
    assert set(seen) == {40}


def test_many_callers_share_the_threads():
    found = []
    callers = [threading.Thread(target=lambda: found.append(visited(2))) for _ in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (np.array(found) == 1).all()


def _in_child():
    raise SystemExit(0 if (visited(2) == 1).all() else 1)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork"
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    visited(2)
    child = multiprocessing.get_context("fork").Process(target=_in_child)
    child.start()
    child.join(60)
    assert child.exitcode == 0
