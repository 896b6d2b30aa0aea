"""Dirichlet process as a law of partitions: the Chinese restaurant.

References
----------
- Antoniak (1974). Mixtures of Dirichlet processes. Annals of Statistics 2(6).
- Pitman (1995). Exchangeable and partially exchangeable random partitions. PTRF 102.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from regbayes.priors._common import check_positive, log_rising


@dataclass(frozen=True)
class DirichletProcess:
    """Partitions of n points under a Dirichlet process.

    Examples
    --------
    >>> import numpy as np
    >>> process = DirichletProcess(concentration=1.0)
    >>> process.draw_partition(5, np.random.default_rng(0)).shape
    (5,)
    >>> round(float(np.exp(process.log_partition_probability([0, 0]))), 12)
    0.5
    """

    concentration: float

    def __post_init__(self) -> None:
        value = check_positive(self.concentration, "concentration")
        object.__setattr__(self, "concentration", value)

    def log_partition_probability(self, labels: Any) -> float:
        """Log probability of the partition the labels induce (EPPF, Pitman 1995), names free."""
        _, sizes = np.unique(np.asarray(labels), return_counts=True)
        alpha = self.concentration
        log_tables = len(sizes) * np.log(alpha) + gammaln(sizes).sum()
        return float(log_tables - log_rising(alpha, sizes.sum()))

    def draw_partition(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Labels of n points, numbered 0, 1, ... in order of appearance."""
        index = np.arange(n)
        is_new = rng.random(n) * (self.concentration + index) < self.concentration
        # To join a table in proportion to its size is to follow a customer chosen at random.
        friend = (rng.random(n) * index).astype(np.int64)
        labels = np.empty(n, dtype=np.int64)
        n_tables = 0
        for i in range(n):
            if i == 0 or is_new[i]:
                labels[i] = n_tables
                n_tables += 1
            else:
                labels[i] = labels[friend[i]]
        return labels

    def expected_components(self, n: int) -> float:
        """Expected number of components among n points (Antoniak 1974)."""
        alpha = self.concentration
        return float((alpha / (alpha + np.arange(n))).sum())
