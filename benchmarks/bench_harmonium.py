"""An epoch of a harmonium: against scikit-learn's RBM, and against its own matrix products.

RBM: 10,000 x 784 inputs of 0 and 1, 256 units, float32, one BLAS thread; ours is the epoch that
`Harmonium` does, mean-field contrastive divergence and Adam; scikit-learn's `BernoulliRBM` samples
persistent chains, and is asked for one epoch by `fit`, which adds about a hundredth.

Text: 11,269 x 5,000 words, about 0.9 million of them there, as a CSR matrix; K = 200. The products
alone are those of the reconstruction, which is dense: units to words, words to units, and the
gradient, mini-batch by mini-batch.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

from benchmarks.bench_chain import memory_kept
from benchmarks.harness import Comparison, compare
from regbayes.data import ViewReader
from regbayes.harmonium import energy, learning
from regbayes.harmonium.units import UNITS, VIEWS

# Ours over the peer's: 2.5 and 1.5 times as fast; text twice its products; ten times the documents
# at most 12 times the seconds.
TARGETS = {10: 0.4, 100: 0.667, "text": 2.0, "linear": 12.0}


def make_epoch(X, n_units: int, batch_size: int):
    """An epoch, to be called again and again."""
    _, rows = ViewReader.learn(BaseEstimator(), X, "bernoulli", "error")
    model = energy.Model((VIEWS["bernoulli"],), UNITS["binary"])
    settings = learning.Settings(batch_size=batch_size)
    rng = np.random.default_rng(0)
    state = learning.init(model, settings, rows, n_units, np.float32, rng)
    return lambda: learning.epoch(model, settings, state, rows, None, rng)


def compare_with_rbm(quick: bool) -> list[Comparison]:
    n = 1_000 if quick else 10_000
    X = (np.random.default_rng(0).random((n, 784)) < 0.2).astype(np.float32)
    return [
        compare(
            f"an epoch, batches of {size}",
            make_epoch(X, 256, size),
            "BernoulliRBM",
            lambda size=size: BernoulliRBM(256, batch_size=size, n_iter=1, random_state=0).fit(X),
            target_ratio=TARGETS[size],
            repeats=2 if quick else 7,
        )
        for size in (10, 100)
    ]


def text(n: int) -> sparse.csr_matrix:
    """About 80 words a document, common ones more often."""
    rng = np.random.default_rng(0)
    rate = 1.0 / np.arange(10, 5010)
    p = 80 * rate / rate.sum()
    rows = [np.flatnonzero(rng.random(5000) < p) for _ in range(n)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.concatenate(rows).astype(np.int32)
    return sparse.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), (n, 5000))


def products(n: int) -> None:
    """The dense products of an epoch, and nothing else."""
    W, h = np.ones((5000, 200), np.float32), np.ones((200, 200), np.float32)
    for _ in range(-(-n // 200)):
        x1 = h @ W.T
        x1 @ W
        x1.T @ h


def run(quick: bool) -> list[Comparison]:
    n = 1_000 if quick else 11_269
    repeats = 2 if quick else 5
    small, large = make_epoch(text(n // 10), 200, 200), make_epoch(text(n), 200, 200)
    with threadpool_limits(limits=1), memory_kept():
        return [
            *compare_with_rbm(quick),
            compare(
                "an epoch on text, CSR",
                large,
                "its dense products",
                lambda: products(n),
                target_ratio=TARGETS["text"],
                repeats=repeats,
            ),
            compare(
                "an epoch on text, all documents",
                large,
                "a tenth of them",
                small,
                target_ratio=TARGETS["linear"],
                repeats=repeats,
            ),
        ]
