"""The draws of several chains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import arviz


class Ends(NamedTuple):
    """Where the chains of a run stand: a checksum of their data, then state, generator, sweeps."""

    data: str
    places: list[tuple[Any, np.random.Generator, int, int]]


@dataclass(eq=False, repr=False)
class Trace:
    """Draws by chain; a draw maps names to numbers or arrays, whose shapes may vary.

    Parameters
    ----------
    chains : sequence of sequences of mappings
    ends : Ends, optional
        For a run that goes on, see :func:`run`.

    Examples
    --------
    >>> trace = Trace([[{"size": 2, "w": [0.4, 0.6]}, {"size": 1, "w": [1.0]}]])
    >>> trace["size"]
    array([[2, 1]])
    >>> [len(draw["w"]) for draw in trace]
    [2, 1]
    """

    chains: Sequence[Sequence[Mapping[str, Any]]]
    ends: Ends | None = None

    def __post_init__(self) -> None:
        self.chains = [list(chain) for chain in self.chains]

    @property
    def n_chains(self) -> int:
        return len(self.chains)

    @property
    def n_draws(self) -> int:
        """Draws of the shortest chain; all are as long unless a callback ended one early."""
        return min(len(chain) for chain in self.chains)

    @property
    def names(self) -> list[str]:
        return list(self.chains[0][0])

    def __len__(self) -> int:
        return sum(len(chain) for chain in self.chains)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """All draws, chain after chain."""
        for chain in self.chains:
            yield from chain

    def __repr__(self) -> str:
        return f"Trace({self.n_chains} chains x {self.n_draws} draws of {', '.join(self.names)})"

    def __getitem__(self, name: str) -> np.ndarray:
        """Draws of one quantity as an array of shape (chain, draw, ...).

        Quantities whose shape varies from draw to draw have no such array: iterate instead.
        """
        if name not in self.names:
            raise KeyError(f"no {name!r} in this trace; it has {', '.join(self.names)}")
        values = [[draw[name] for draw in chain[: self.n_draws]] for chain in self.chains]
        if len({np.shape(value) for chain in values for value in chain}) > 1:
            raise ValueError(
                f"the shape of {name!r} varies from draw to draw, so it makes no array; "
                f"iterate over the trace: `for draw in trace: draw[{name!r}]`"
            )
        return np.array(values)

    def typical(self, size: str) -> Mapping[str, Any]:
        """The draw of highest ``log_joint`` among those of the commonest `size`.

        Joint densities compare only between draws with as many parts.
        """
        sizes = [draw[size] for draw in self]
        mode = np.bincount(sizes).argmax()
        return max((draw for draw in self if draw[size] == mode), key=lambda d: d["log_joint"])

    def to_arviz(self) -> arviz.InferenceData:
        """The quantities of fixed shape for ArviZ (``pip install "regbayes[arviz]"``)."""
        import arviz

        fixed = {}
        for name in self.names:
            if len({np.shape(draw[name]) for draw in self}) == 1:
                fixed[name] = self[name]
        return arviz.from_dict(posterior=fixed)
