"""Baum-Welch against hmmlearn, and what a margin costs: sequences of 100 symbols.

Baum-Welch: 500 sequences, K = 10 states, V = 20 symbols, 30 rounds from the same start, CPU seconds
on one thread; ours is `CategoricalHMM.learn`, which looks at the sequences once more to know how
good the last round was. Log-likelihoods agree to 1e-9 of their size. The rows in wall-clock seconds
have two threads against one, on a machine that others use too: a round takes two thousandths of a
second, so that what one thread does between rounds counts, and less with ten times as many
sequences. Below them, what two processes that share nothing gain there.

Score spaces: 300 sequences of three classes that are not easy to tell apart, K = 5, V = 20; `fit`
of :class:`MaxMarginScore` against that of :class:`SufficientStatisticsScore`, on the same models:
with 40 rounds, as :class:`MaxMarginScoreClassifier` has it, and with its defaults, up to 80 rounds
and their number by cross-validation. Freed memory stays with the process, for both sides alike:
what a system asks for fresh pages is not compared.
"""

from __future__ import annotations

import logging
import time
from functools import partial

import numpy as np
from hmmlearn.hmm import CategoricalHMM as PeerHMM
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.bench_chain import memory_kept
from benchmarks.harness import Comparison, compare, two_cores
from regbayes import chains
from regbayes.data import Sequences
from regbayes.hmm import CategoricalHMM, finite
from regbayes.scores import MaxMarginScore, SufficientStatisticsScore

N_SYMBOLS, N_STEPS, N_ROUNDS = 20, 100, 30
# Ours over the peer's: 4 and 35 times as fast; threads 1.6 times; the margin at most 20 times as
# much work.
TARGETS = {"scaling": 0.25, "log": 0.0286, "threads": 0.625, "margin": 20.0}


def sequences(
    n: int, n_states: int, rng: np.random.Generator, common: NDArray | float = 0.0
) -> list[NDArray]:
    """From a chain whose states last five steps or so and share their symbols.

    `common` are parts of the symbols' probabilities that are the same for several calls.
    """
    transitions = 0.8 * np.eye(n_states) + 0.2 * rng.dirichlet(np.ones(n_states), n_states)
    symbols = common + (1 - np.sum(common, axis=-1, keepdims=True)) * rng.dirichlet(
        np.full(N_SYMBOLS, 0.3), n_states
    )
    moves, emitted = transitions.cumsum(axis=1), symbols.cumsum(axis=1)
    z, out = rng.integers(n_states, size=n), np.empty((n, N_STEPS), dtype=np.int64)
    for t in range(N_STEPS):
        out[:, t] = (emitted[z] < rng.random((n, 1))).sum(axis=1).clip(max=N_SYMBOLS - 1)
        z = (moves[z] < rng.random((n, 1))).sum(axis=1).clip(max=n_states - 1)
    return list(out)


def peer(first: finite.ChainLaw, implementation: str) -> PeerHMM:
    """hmmlearn's, which starts where ours does and does as many rounds."""
    model = PeerHMM(
        first.n_states, n_iter=N_ROUNDS, tol=-np.inf, init_params="", implementation=implementation
    )
    model.n_features = N_SYMBOLS
    model.startprob_, model.transmat_ = np.exp(first.log_start), np.exp(first.log_transitions)
    model.emissionprob_ = np.exp(first.parameters[0])
    return model


def compare_with_hmmlearn(quick: bool) -> list[Comparison]:
    X = sequences(50 if quick else 500, 10, np.random.default_rng(0))
    stacked, lengths = np.concatenate(X)[:, None], [N_STEPS] * len(X)
    # Nothing is added to the counts: hmmlearn's default too. No round is left out.
    model = CategoricalHMM(
        10, pseudocount=0.0, symbol_concentration=0.0, n_iter=N_ROUNDS, tol=0.0, random_state=0
    )
    batch = model.read(X, reset=True)

    def ours(n_jobs: int = 1, given: Sequences = batch) -> finite.ChainLaw:
        return model.set_params(n_jobs=n_jobs).learn(given)

    law = ours()
    guessed = model._first_guess(batch, chains.streams(0, 1)[0])
    first = finite.guess(law, batch, guessed)
    reached, out = law.expect(batch).log_likelihoods.sum(), []
    for implementation in ("scaling", "log"):
        found = peer(first, implementation).fit(stacked, lengths)
        assert found.monitor_.iter == N_ROUNDS
        np.testing.assert_allclose(found.score(stacked, lengths), reached, rtol=1e-9)
        out.append(
            compare(
                f"Baum-Welch, {N_ROUNDS} rounds, K=10",
                ours,
                f"hmmlearn, {implementation}",
                lambda i=implementation: peer(first, i).fit(stacked, lengths),
                target_ratio=TARGETS[implementation],
                repeats=2 if quick else 5,
            )
        )
    many = model.read(sequences(500 if quick else 5000, 10, np.random.default_rng(1)), reset=True)
    for name, given, target, repeats in (
        ("Baum-Welch", batch, TARGETS["threads"], 15),
        ("Baum-Welch, 5,000 sequences", many, None, 5),
    ):
        out.append(
            compare(
                f"{name}, two threads, wall s",
                partial(ours, 2, given),
                "one thread, wall s",
                partial(ours, 1, given),
                target_ratio=target,
                repeats=2 if quick else repeats,
                cpu_clock=time.perf_counter,
            )
        )
    out.append(two_cores(lambda: [ours() for _ in range(1 if quick else 4)]))
    return out


def compare_with_likelihood(quick: bool) -> list[Comparison]:
    rng = np.random.default_rng(1)
    n_classes, each = 3, 10 if quick else 100
    common = 0.85 * rng.dirichlet(np.full(N_SYMBOLS, 0.3), 5)
    X = [x for _ in range(n_classes) for x in sequences(each, 5, rng, common)]
    y = np.repeat(np.arange(n_classes), each)
    model = CategoricalHMM(5, random_state=0)
    settings = {"40 rounds": {"n_iter": 40, "n_splits": 0}, "rounds by folds": {}}
    return [
        compare(
            f"max-margin score space, K=5, 3 classes, {name}",
            lambda options=options: MaxMarginScore(model, random_state=0, **options).fit(X, y),
            "ours, without the margin",
            lambda: SufficientStatisticsScore(model).fit(X, y),
            target_ratio=TARGETS["margin"],
            repeats=2 if quick else 5,
        )
        for name, options in settings.items()
    ]


def run(quick: bool) -> list[Comparison]:
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # rows that rounding takes from 1
    with threadpool_limits(limits=1), memory_kept():
        return [*compare_with_hmmlearn(quick), *compare_with_likelihood(quick)]
