"""Documents as an exponential family with hidden topics, for the score spaces.

Statistics are the counts of topics and of topics with words, T = (n_k, n_kw) (001, Section 5.2);
see :class:`regbayes.scores.protocol.Law` for the names of the methods. The shares of topics are
integrated out, so log p(z) is no linear function of the counts: n_k stands with the logarithm of
its expected share, and what is missing counts as uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from regbayes.data import Documents
from regbayes.kernels.documents import expect_counts, pull_counts
from regbayes.priors.exponential import Expected, log_shares, share_gradient

_NO_TILT = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class DocumentLaw:
    """Topics and their concentrations, known.

    Parameters
    ----------
    alpha : ndarray of shape (K,)
    phi : ndarray of shape (V, K)
        Columns sum to one.
    beta : float
        Added to every count of a word by `maximize`.
    words : ndarray of str, optional
    tol : float
        When the fixed point of a document counts as reached.
    max_iter : int
    """

    alpha: NDArray
    phi: NDArray
    beta: float
    words: NDArray | None = None
    tol: float = 1e-5
    max_iter: int = 500

    @property
    def n_topics(self) -> int:
        return len(self.alpha)

    @property
    def n_hidden(self) -> int:
        """Counts of topics are of hidden variables alone; they come first."""
        return len(self.alpha)

    @property
    def names(self) -> list[str]:
        """What the statistics are called."""
        words = range(len(self.phi)) if self.words is None else self.words
        topics = range(self.n_topics)
        return [f"topic:{k}" for k in topics] + [f"{k}:{w}" for k in topics for w in words]

    def natural(self) -> NDArray:
        """Logarithms of the expected shares of topics, and of the topics."""
        shares = np.log(self.alpha / self.alpha.sum())
        return np.concatenate([shares, np.log(self.phi.T).ravel()])

    def expect(
        self,
        batch: Documents,
        tilt: NDArray | None = None,
        segments: int = 1,
        entropies: bool = False,
        n_threads: int = 1,
    ) -> Expected:
        """E[T] under q(z) ∝ p(w, z) exp(tilt . T), by the fixed point of CVB0.

        Log-likelihoods are lower bounds. Words have no order, so there is one segment.
        """
        if segments != 1:
            raise ValueError(
                f"segments={segments}, but the words of a document have no order.\n"
                "To mend it: use segments=1."
            )
        K, V, n = self.n_topics, len(self.phi), len(batch)
        if tilt is None or not tilt.any():
            each = _NO_TILT
        else:
            n_tilts = len(tilt) if tilt.ndim == 3 else 1
            each = np.ascontiguousarray(np.broadcast_to(tilt, (n_tilts, 1, K + K * V))[:, 0])
        table = batch.counts
        cells = np.empty((table.nnz, K))
        by_topic, bounds, uncertain = expect_counts(
            table.indptr, table.indices, table.data, self.alpha, self.phi, each, cells, self.tol,
            self.max_iter, n_threads,
        )  # fmt: skip
        statistics = np.zeros((n, 1, K + K * V))
        statistics[:, 0, :K] = by_topic
        rows, columns = self._places(table)
        statistics[rows, 0, columns] = table.data[:, None] * cells
        doubt = np.zeros((n, 1, K if entropies else 0))
        if entropies:
            doubt[:, 0] = uncertain - by_topic * np.log(self.alpha / self.alpha.sum())
        return Expected(statistics, bounds, doubt)

    def slope(
        self, batch: Documents, statistics: NDArray, directions: NDArray, n_threads: int = 1
    ) -> NDArray:
        """d sum_s v_s . E[T_s] / d tilt of a tilt that all share: the fixed point, differentiated.

        Statistics, as :meth:`expect` gave them, and directions v have the shape
        (n_samples, 1, n_statistics).
        """
        K, table = self.n_topics, batch.counts
        rows, columns = self._places(table)
        q = statistics[rows, 0, columns] / table.data[:, None]
        v = directions[rows, 0, np.arange(K)] + directions[rows, 0, columns]
        cells = pull_counts(table.indptr, table.data, self.alpha, q, v, n_threads)
        out = np.bincount(columns.ravel(), cells.ravel(), minlength=K + K * len(self.phi))
        out[:K] = cells.sum(axis=0)
        return out

    def gradient(self, statistics: NDArray) -> NDArray:
        """Derivatives of the bounds by alpha, and by phi taken as theta / sum(theta)."""
        K, lead = self.n_topics, statistics.shape[:-1]
        counts, words = statistics[..., :K], statistics[..., K:].reshape(*lead, K, -1)
        total, size = self.alpha.sum(), counts.sum(axis=-1, keepdims=True)
        by_alpha = digamma(self.alpha + counts) - digamma(self.alpha)
        by_alpha += digamma(total) - digamma(total + size)
        by_phi = share_gradient(words, np.ascontiguousarray(self.phi.T))
        return np.concatenate([by_alpha, by_phi.reshape(*lead, -1)], axis=-1)

    def pull_gradient(self, statistics: NDArray, directions: NDArray) -> NDArray:
        """d (v . gradient(T)) / d T for directions v, at these statistics."""
        K, lead = self.n_topics, directions.shape[:-1]
        counts, words = statistics[..., :K], directions[..., K:].reshape(*lead, K, -1)
        v, size = directions[..., :K], counts.sum(axis=-1, keepdims=True)
        by_count = v * polygamma(1, self.alpha + counts)
        by_count -= v.sum(axis=-1, keepdims=True) * polygamma(1, self.alpha.sum() + size)
        by_word = share_gradient(words, np.ascontiguousarray(self.phi.T))  # it is symmetric
        return np.concatenate([by_count, by_word.reshape(*lead, -1)], axis=-1)

    def maximize(self, totals: NDArray) -> DocumentLaw:
        """Topics from counts of words. Shares of alpha from counts of topics: its sum stays.

        How much documents differ, which the sum of alpha tells, is not in the totals.
        """
        K = self.n_topics
        words = totals[K:].reshape(K, -1)
        log_phi = log_shares(words, np.ones_like(words, dtype=bool), self.beta)
        counts = totals[:K] + 1.0  # a topic that nobody has may come back
        alpha = self.alpha.sum() * counts / counts.sum()
        return replace(self, alpha=alpha, phi=np.ascontiguousarray(np.exp(log_phi).T))

    def _places(self, table: Any) -> tuple[NDArray, NDArray]:
        """Where the statistics of the words are: rows (n_cells, 1) and columns (n_cells, K)."""
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        K, V = self.n_topics, len(self.phi)
        return rows[:, None], K + np.arange(K) * V + table.indices[:, None]
