"""Hidden Markov models with a given number of states, as an exponential family.

log p(x, z) = alpha . T(x, z), with statistics T = (first state, transitions, emissions): one
vector for everything that Baum-Welch, the score spaces and the max-margin tilt ask of a chain
(001, Eq. 3). See :class:`regbayes.scores.protocol.Law` for the names of the methods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.data import Sequences
from regbayes.hmm.emissions import ExponentialEmission, Parameters
from regbayes.kernels.batch import expect
from regbayes.priors.exponential import Expected, log_shares, share_gradient


@dataclass(frozen=True, eq=False)
class ChainLaw:
    """A finite HMM: parameters, and the priors they are learnt under.

    Parameters
    ----------
    log_start : ndarray of shape (K,)
    log_transitions : ndarray of shape (K, K)
    emission : ExponentialEmission
    parameters : tuple of ndarray
        Of the emission.
    pseudocount : float
        Added to every count of a first state or a transition that is allowed.
    allowed_start, allowed : ndarray of bool of shape (K,) and (K, K)
    """

    log_start: NDArray
    log_transitions: NDArray
    emission: ExponentialEmission
    parameters: Parameters
    pseudocount: float
    allowed_start: NDArray
    allowed: NDArray

    @property
    def n_states(self) -> int:
        return len(self.log_start)

    @property
    def start(self) -> NDArray:
        """Probabilities of the first state."""
        return np.exp(self.log_start)

    @property
    def transitions(self) -> NDArray:
        """Transition matrix."""
        return np.exp(self.log_transitions)

    @property
    def n_hidden(self) -> int:
        """How many of the statistics are of the hidden path alone; they come first."""
        return self.n_states + self.n_states**2

    @property
    def names(self) -> list[str]:
        """What the statistics are called."""
        states = range(self.n_states)
        first = [f"first:{k}" for k in states]
        moves = [f"{i}>{j}" for i in states for j in states]
        emitted = [name for k in states for name in self.emission.statistic_names(str(k))]
        return first + moves + emitted

    def natural(self) -> NDArray:
        """alpha(theta); zero where a statistic is impossible."""
        hidden = np.concatenate([self.log_start, self.log_transitions.ravel()])
        hidden = np.where(np.isneginf(hidden), 0.0, hidden)
        return np.concatenate([hidden, self.emission.natural(self.parameters).ravel()])

    def expect(
        self,
        sequences: Sequences,
        tilt: NDArray | None = None,
        segments: int = 1,
        entropies: bool = False,
        n_threads: int = 1,
    ) -> Expected:
        """E[T] under q(z) ∝ p(x, z) exp(tilt . T(x, z)), which is a chain again.

        Parameters
        ----------
        sequences : Sequences
        tilt : ndarray, optional
            Of shape (n_sequences, segments, n_statistics), or one that broadcasts to it.
        segments : int
            Statistics by position: parts of equal length, of every sequence.
        entropies : bool
        n_threads : int
        """
        n, K = len(sequences), self.n_states
        first, moves, sums, log_likelihoods, uncertain = self._count(
            sequences, tilt, segments, entropies, n_threads
        )
        out = np.zeros((n, segments, self.n_hidden + K * self.emission.n_statistics))
        out[:, 0, :K] = first
        out[:, :, K : self.n_hidden] = moves.reshape(n, segments, -1)
        out[:, :, self.n_hidden :] = sums.reshape(n, segments, -1)
        doubt = np.zeros((n, segments, self.n_hidden if entropies else 0))
        if entropies:
            doubt[:, 0, :K] = -first * np.log(np.where(first > 0, first, 1.0))
            doubt[:, :, K:] = uncertain.reshape(n, segments, -1)
        return Expected(out, log_likelihoods, doubt)

    def total(self, sequences: Sequences, n_threads: int = 1) -> tuple[NDArray, float]:
        """The E-step: the sum of E[T] over sequences, and of their log-likelihoods.

        As by :meth:`expect`, bit by bit, without a copy for each sequence.
        """
        first, moves, sums, log_likelihoods, _ = self._count(sequences, n_threads=n_threads)
        parts = [part.sum(axis=0).ravel() for part in (first, moves, sums)]
        return np.concatenate(parts), float(log_likelihoods.sum())

    def _count(
        self,
        sequences: Sequences,
        tilt: NDArray | None = None,
        segments: int = 1,
        entropies: bool = False,
        n_threads: int = 1,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
        """First states, moves and emissions of the sequences, likelihoods, entropies of moves."""
        n, K = len(sequences), self.n_states
        cells = cells_of(sequences.starts, segments)
        evidence, rows = self.emission.evidence(sequences.values, self.parameters)
        tilts = None
        if tilt is not None and tilt.any():
            each = np.broadcast_to(tilt, (n, segments, len(self.natural())))
            first, moves, emitted = self._parts(np.ascontiguousarray(each))
            if tilt.ndim < 3 or len(tilt) == 1:  # one for all
                weights, where = emitted[:1], cells % segments if segments > 1 else 0 * cells
            else:
                weights, where = emitted, cells
            weights = np.ascontiguousarray(weights).reshape(-1, K, self.emission.n_statistics)
            evidence, rows = self._tilted(sequences.values, weights, where, evidence, rows)
            # A sequence starts in its first segment; the tilt of other first states is idle.
            tilts = np.ascontiguousarray(first[:, 0]), np.ascontiguousarray(moves)
        sums = np.zeros((n * segments, K, self.emission.n_statistics))

        def add(low: int, high: int, marginals: NDArray) -> None:
            steps = slice(sequences.starts[low], sequences.starts[high])
            self.emission.expect(sequences.values[steps], marginals[steps], cells[steps], sums)

        marginals, log_likelihoods, moves, uncertain = expect(
            self.start,
            self.transitions,
            evidence,
            sequences.starts,
            n_threads,
            segments=segments,
            tilts=tilts,
            entropies=entropies,
            rows=rows,
            then=add,
        )
        first = marginals[sequences.starts[:-1]]
        return first, moves, sums, log_likelihoods, uncertain

    def _tilted(
        self, X: NDArray, weights: NDArray, cells: NDArray, evidence: NDArray, rows: NDArray | None
    ) -> tuple[NDArray, NDArray | None]:
        """The evidence with the tilts of the cells, in one table for each cell if that is less."""
        n_cells, n_rows = len(weights), len(evidence)
        if rows is None or n_cells * n_rows > len(rows):
            evidence = evidence if rows is None else evidence[rows]
            self.emission.tilt(X, weights, cells, evidence)
            return evidence, None
        step = np.zeros(n_rows, dtype=np.int64)
        step[rows] = np.arange(len(rows))  # one that has the row; a row that none has is idle
        tables = np.tile(evidence, (n_cells, 1))
        of = np.repeat(np.arange(n_cells), n_rows)
        self.emission.tilt(np.tile(X[step], n_cells), weights, of, tables)
        if n_cells == 1:
            return tables, rows
        return tables, cells * n_rows + np.where(rows < 0, rows + n_rows, rows)

    def gradient(self, statistics: NDArray) -> NDArray:
        """d log p / d theta = (d alpha / d theta)' E[T] (Fisher's identity), entry by entry.

        Probabilities are taken as theta / sum(theta), so that the gradient knows of the simplex.
        """
        first, moves, emitted = self._parts(statistics)
        parts = [
            share_gradient(first, self.start),
            share_gradient(moves, self.transitions),
            self.emission.gradient(emitted, self.parameters),
        ]
        lead = statistics.shape[:-1]
        return np.concatenate([part.reshape(*lead, -1) for part in parts], axis=-1)

    def pull_gradient(self, statistics: NDArray, directions: NDArray) -> NDArray:
        """d (v . gradient(T)) / d T, the same for all T: the gradient is linear in them."""
        first, moves, emitted = self._parts(directions)
        parts = [  # of shares it is symmetric
            share_gradient(first, self.start),
            share_gradient(moves, self.transitions),
            self.emission.pull_gradient(emitted, self.parameters),
        ]
        lead = directions.shape[:-1]
        return np.concatenate([part.reshape(*lead, -1) for part in parts], axis=-1)

    def maximize(self, totals: NDArray) -> ChainLaw:
        """The M-step: parameters of highest posterior density given sums of statistics."""
        first, moves, emitted = self._parts(totals)
        return replace(
            self,
            log_start=log_shares(first, self.allowed_start, self.pseudocount),
            log_transitions=log_shares(moves, self.allowed, self.pseudocount),
            parameters=self.emission.maximize(emitted),
        )

    def log_prior(self) -> float:
        """What `maximize` adds to the log-likelihood, up to a constant."""
        hidden = self.log_start[self.allowed_start].sum() + self.log_transitions[self.allowed].sum()
        ours = self.pseudocount * hidden if self.pseudocount else 0.0
        return float(ours + self.emission.log_prior(self.parameters))

    def _parts(self, statistics: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        K, lead = self.n_states, statistics.shape[:-1]
        return (
            statistics[..., :K],
            statistics[..., K : self.n_hidden].reshape(*lead, K, K),
            statistics[..., self.n_hidden :].reshape(*lead, K, self.emission.n_statistics),
        )


def cells_of(starts: NDArray, segments: int) -> NDArray:
    """The cell of every step: sequence s, step t of T has cell s * segments + t * segments // T."""
    lengths = np.diff(starts)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    if segments == 1:
        return sequence
    step = np.arange(starts[-1]) - starts[sequence]
    return sequence * segments + step * segments // lengths[sequence]


class Fit(NamedTuple):
    """State of Baum-Welch: a law, its statistics of the data, and minus the objective."""

    law: ChainLaw
    totals: NDArray
    loss: float


def guess(law: ChainLaw, sequences: Sequences, marginals: NDArray) -> ChainLaw:
    """A law to start from: the M-step on independent steps with given probabilities of states."""
    starts = sequences.starts
    before = marginals[:-1].copy()
    before[starts[1:-1] - 1] = 0.0  # from the last step of a sequence there is no move
    emitted = np.zeros((1, law.n_states, law.emission.n_statistics))
    law.emission.expect(sequences.values, marginals, np.zeros(len(marginals), np.int64), emitted)
    moved = before.T @ marginals[1:]
    parts = [marginals[starts[:-1]].sum(axis=0), moved, emitted]
    return law.maximize(np.concatenate([part.ravel() for part in parts]))


def evaluate(law: ChainLaw, sequences: Sequences, n_threads: int) -> Fit:
    """The E-step."""
    totals, log_likelihood = law.total(sequences, n_threads)
    return Fit(law, totals, -log_likelihood - law.log_prior())


def step(sequences: Sequences, n_threads: int, rng: np.random.Generator, state: Fit) -> Fit:
    """One round of Baum-Welch, which never lowers the posterior density of the parameters."""
    return evaluate(state.law.maximize(state.totals), sequences, n_threads)
