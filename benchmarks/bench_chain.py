"""Forward-backward against hmmlearn: Gaussian emissions, D = 10, 100 sequences of 1,000 steps.

Ours is the emission's log-likelihoods and `kernels.batch.smooth`, the peer
`GaussianHMM.predict_proba` in its two implementations, with the same parameters; posteriors agree
to 1e-10. "Recursion alone" starts from log-likelihoods; the peer is then hmmlearn's compiled
functions on their exponentials. All on one thread, but for two rows in wall-clock seconds, on a
machine that others use too. Freed memory stays with the process, for both sides alike: what a
system asks for fresh pages is not compared.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.hmm import GaussianHMM
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.harness import Comparison, compare
from regbayes.hmm.emissions import DiagonalEmission, GaussianEmission
from regbayes.kernels.batch import draw_paths, smooth
from regbayes.priors import NormalInverseGamma, NormalInverseWishart

N_FEATURES = 10
# Ours over the peer's CPU seconds: 3.5 and 10 times as fast, 5.5 and 25 times with more states.
TARGETS = {
    (10, "scaling"): 0.286,
    (10, "log"): 0.1,
    (50, "scaling"): 0.182,
    (50, "log"): 0.04,
}
NO_TARGET = float("inf")  # reported only


@dataclass(frozen=True)
class Problem:
    """A chain with known parameters, and what it emitted."""

    start: NDArray
    transitions: NDArray
    emission: DiagonalEmission | GaussianEmission
    parameters: tuple[NDArray, NDArray]
    X: NDArray
    starts: NDArray[np.int64]

    def log_likelihoods(self) -> NDArray:
        return self.emission.log_likelihoods(self.X, self.parameters)

    def peer(self, implementation: str) -> GaussianHMM:
        means, factors = self.parameters
        diagonal = isinstance(self.emission, DiagonalEmission)
        covariance = "diag" if diagonal else "full"
        model = GaussianHMM(len(means), covariance, implementation=implementation)
        model.n_features = N_FEATURES
        model.startprob_, model.transmat_, model.means_ = self.start, self.transitions, means
        model.covars_ = factors**2 if diagonal else factors @ factors.mT
        return model


def problem(covariance: str, n_states: int, n_sequences: int, n_steps: int) -> Problem:
    """States that last ten steps or so and overlap, so that neighbours have a say."""
    rng = np.random.default_rng(0)
    transitions = 0.9 * np.eye(n_states) + 0.1 * rng.dirichlet(np.ones(n_states), n_states)
    start = rng.dirichlet(np.ones(n_states))
    means = rng.standard_normal((n_states, N_FEATURES))
    emission: DiagonalEmission | GaussianEmission  # its prior plays no part here
    if covariance == "diag":
        factors = rng.uniform(0.7, 1.5, means.shape)
        emission = DiagonalEmission(NormalInverseGamma.from_data(means))
    else:
        mixing = rng.standard_normal((n_states, N_FEATURES, N_FEATURES))
        factors = np.linalg.cholesky(0.5 * np.eye(N_FEATURES) + mixing @ mixing.mT / N_FEATURES)
        emission = GaussianEmission(NormalInverseWishart.from_data(means))
    starts = np.arange(n_sequences + 1) * n_steps
    unseen = np.zeros((starts[-1], n_states))
    z = draw_paths(start, transitions, unseen, starts, rng.random(starts[-1]))
    X = emission.sample(rng, (means, factors), z)
    return Problem(start, transitions, emission, (means, factors), X, starts)


def smooth_by_hmmlearn(p: Problem, log_likelihoods: NDArray) -> NDArray:
    """Its scaled recursions and its posteriors, with nothing around them."""
    out = []
    for low, high in zip(p.starts[:-1], p.starts[1:]):
        likelihoods = np.exp(log_likelihoods[low:high])
        _, forward, scale = _hmmc.forward_scaling(p.start, p.transitions, likelihoods)
        backward = _hmmc.backward_scaling(p.start, p.transitions, likelihoods, scale)
        posterior = forward * backward
        posterior /= posterior.sum(axis=1, keepdims=True)
        out.append(posterior)
    return np.concatenate(out)


def compare_with_hmmlearn(covariance: str, n_states: int, quick: bool) -> list[Comparison]:
    p = problem(covariance, n_states, *((10, 200) if quick else (100, 1000)))
    lengths, given = np.diff(p.starts), p.log_likelihoods()

    def recursion(n_threads=1):
        return smooth(p.start, p.transitions, given, p.starts, n_threads)[0]

    def ours():
        return smooth(p.start, p.transitions, p.log_likelihoods(), p.starts)[0]

    name = f"{covariance}, K={n_states}"
    posteriors, out = ours(), []
    for implementation in ("scaling", "log"):
        model = p.peer(implementation)
        np.testing.assert_allclose(model.predict_proba(p.X, lengths), posteriors, atol=1e-10)
        out.append(
            compare(
                f"forward-backward, {name}",
                ours,
                f"hmmlearn, {implementation}",
                lambda m=model: m.predict_proba(p.X, lengths),
                target_ratio=TARGETS[n_states, implementation],
                repeats=2 if quick else 7,
            )
        )
    if covariance == "diag":  # the recursion does not know the emission
        np.testing.assert_allclose(smooth_by_hmmlearn(p, given), posteriors, atol=1e-10)
        out += [
            compare(
                f"recursion alone, K={n_states}",
                recursion,
                "hmmlearn's C, scaling",
                lambda: smooth_by_hmmlearn(p, given),
                target_ratio=NO_TARGET,
                repeats=2 if quick else 7,
            ),
            compare(
                f"recursion alone, K={n_states}, two threads, wall s",
                lambda: recursion(2),
                "one thread, wall s",
                recursion,
                target_ratio=NO_TARGET,
                repeats=2 if quick else 15,
                cpu_clock=time.perf_counter,
            ),
        ]
    return out


@contextmanager
def memory_kept() -> Iterator[None]:
    """Have glibc keep freed arrays for the next ones: on virtual machines, a fresh 80 MB can take
    longer than the recursions."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)
    mmap_max, trim_threshold = -4, -1
    set_option(mmap_max, 0)
    set_option(trim_threshold, 2**31 - 1)
    yield
    set_option(mmap_max, 65536)
    set_option(trim_threshold, 128 * 1024)


def run(quick: bool) -> list[Comparison]:
    with threadpool_limits(limits=1), memory_kept():
        return [
            comparison
            for covariance in ("diag", "full")
            for n_states in (10, 50)
            for comparison in compare_with_hmmlearn(covariance, n_states, quick)
        ]
