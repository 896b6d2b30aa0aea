"""Hierarchical Dirichlet process: the prior of an infinite transition matrix.

References
----------
- Teh, Jordan, Beal & Blei (2006). Hierarchical Dirichlet processes. JASA 101.
- Fox, Sudderth, Jordan & Willsky (2011). A sticky HDP-HMM. Annals of Applied Statistics 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.hdp import break_sticks, draw_rows, draw_tables
from regbayes.kernels.random import draw_dirichlet
from regbayes.priors.concentration import Fixed, GammaPrior

_TOO_MANY = 10_000


class Transitions(NamedTuple):
    """A transition matrix over the states in use, and what is left for all others.

    `beta[K + 1]` and every row of `rows[K + 1, K + 1]` end with the mass of the states not in
    use; `rows[0]` are the first states, `rows[1 + j]` follow state j.
    """

    beta: NDArray
    rows: NDArray
    alpha: float
    gamma: float
    stay: float

    @property
    def n_states(self) -> int:
        return len(self.beta) - 1

    @property
    def start(self) -> NDArray:
        """Probabilities of the first state, those in use only."""
        return np.ascontiguousarray(self.rows[0, :-1])

    @property
    def matrix(self) -> NDArray:
        """Probabilities of the next state, those in use only."""
        return np.ascontiguousarray(self.rows[1:, :-1])

    def keep(self, used: NDArray[np.bool_]) -> Transitions:
        """Give the mass of the states that are not `used` back to the rest."""
        if used.all():
            return self
        columns = np.append(used, False)

        def merged(array: NDArray) -> NDArray:
            kept = array[..., columns]
            rest = array[..., ~columns].sum(axis=-1, keepdims=True)
            return np.concatenate([kept, rest], axis=-1)

        return self._replace(beta=merged(self.beta), rows=merged(self.rows[np.append(True, used)]))


@dataclass(frozen=True)
class HierarchicalDirichlet:
    """``beta ~ GEM(gamma)`` and ``row_j ~ DP(alpha, (1 - stay) beta + stay [j])``.

    Parameters
    ----------
    alpha, gamma : Fixed or GammaPrior
        Concentrations of the rows and of the states.
    stay : float or (a, b)
        Share of a row's prior mass on its own state; a pair is its Beta prior.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> prior = HierarchicalDirichlet(Fixed(1.0), Fixed(2.0), 0.5)
    >>> counts = np.array([[1, 0], [5, 1], [1, 5]])  # first states, then by state
    >>> transitions = prior.draw(rng, prior.init(2), counts)
    >>> transitions.matrix.shape, bool(np.allclose(transitions.rows.sum(axis=1), 1))
    ((2, 2), True)
    >>> prior.extend(rng, transitions, least=1e-3).n_states > 2
    True
    """

    alpha: Fixed | GammaPrior
    gamma: Fixed | GammaPrior
    stay: float | tuple[float, float] = 0.0

    def init(self, n_states: int) -> Transitions:
        """The start of a chain: concentrations at their prior means, all states alike."""
        share = 1.0 / (n_states + 1)
        a, b = self.stay if isinstance(self.stay, tuple) else (self.stay, 1.0 - self.stay)
        return Transitions(
            np.full(n_states + 1, share),
            np.full((n_states + 1, n_states + 1), share),
            self.alpha.mean,
            self.gamma.mean,
            a / (a + b),
        )

    def draw(
        self, rng: np.random.Generator, now: Transitions, counts: NDArray[np.int64]
    ) -> Transitions:
        """Everything given the transitions, `counts[K + 1, K]`; every state was entered once.

        With the rows integrated out: tables, concentrations, `beta`; then the rows.
        """
        tables = np.zeros(counts.shape[1], dtype=np.int64)
        n_tables, n_first, n_stays = draw_tables(rng, counts, now.beta, now.alpha, now.stay, tables)
        alpha = self.alpha.draw_concentration(now.alpha, n_tables, counts.sum(axis=1), rng)
        gamma = self.gamma.draw_concentration(now.gamma, len(tables), tables.sum(), rng)
        stay = now.stay
        if isinstance(self.stay, tuple):
            a, b = self.stay
            stay = float(rng.beta(a + n_stays, b + n_tables - n_first - n_stays))
        beta, rows = np.empty(len(tables) + 1), np.empty((len(tables) + 1, len(tables) + 1))
        draw_dirichlet(rng, np.append(tables, gamma).astype(np.float64), beta)
        draw_rows(rng, counts, beta, alpha, stay, rows)
        return Transitions(beta, rows, alpha, gamma, stay)

    def extend(self, rng: np.random.Generator, now: Transitions, least: float) -> Transitions:
        """New states, until no row has `least` or more left for others."""
        n = now.n_states
        beta, rows = now.beta, now.rows
        while True:
            room = len(beta) + max(8, n // 2)
            beta, rows = _with_room(beta, room), _with_room(rows, room)
            n = break_sticks(rng, n, least, beta, rows, now.alpha, now.gamma, now.stay)
            if n + 1 < room:
                break
            if n > _TOO_MANY:
                raise FloatingPointError(
                    f"more than {_TOO_MANY} states were needed in one sweep; fix alpha and gamma "
                    "at small numbers, or scale the inputs"
                )
        size = n + 1
        return now._replace(beta=beta[:size].copy(), rows=rows[:size, :size].copy())


def _with_room(array: NDArray, size: int) -> NDArray:
    """A copy in the corner of a larger array."""
    larger = np.zeros((size,) * array.ndim)
    larger[tuple(map(slice, array.shape))] = array
    return larger
