"""Shards: parts of the data that stay with the workers of a cluster, and what is asked of them.

A message goes out to all shards; each answers with statistics, and may put something else in the
place of its latent variables. Statistics are merged on the way back, always in the same order.

Nothing is changed in place: latent variables are results of tasks that Dask remembers. If a worker
dies, Dask does again, elsewhere, what it had done since the last checkpoint, with the same numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regbayes import _files

FAN = 16  # statistics that one task merges: their sum is a tree, not a queue before one process
Found = TypeVar("Found")


@dataclass(frozen=True)
class Place:
    """Where a shard is among all: items (steps, tokens, rows) before it, and those of all."""

    before: int
    total: int

    def stream(self, rng: np.random.Generator) -> Part:
        """What `rng` has for this shard."""
        return Part(copy.deepcopy(rng), self)


@dataclass(frozen=True)
class Part:
    """The numbers of one shard, of those that one generator gives to all items in order.

    Examples
    --------
    >>> whole = np.random.default_rng(0).random(5)
    >>> part = Place(2, 5).stream(np.random.default_rng(0)).random(3)
    >>> bool((part == whole[2:]).all())
    True
    """

    rng: np.random.Generator
    place: Place

    def random(self, size: int) -> NDArray[np.float64]:
        """As `Generator.random` for all items, but only these of them."""
        skip(self.rng, self.place.before)
        found = self.rng.random(size)
        skip(self.rng, self.place.total - self.place.before - size)
        return found

    def integers(self, high: int, size: int) -> NDArray[np.int64]:
        """As `Generator.integers`; how many numbers that takes is only known by doing it."""
        skip_integers(self.rng, high, self.place.before)
        found = self.rng.integers(high, size=size)
        skip_integers(self.rng, high, self.place.total - self.place.before - size)
        return found


def skip(rng: np.random.Generator, n: int) -> None:
    """As if `rng.random(n)` had been called."""
    bits: Any = rng.bit_generator
    half = {name: bits.state[name] for name in ("has_uint32", "uinteger")}
    bits.advance(n)
    bits.state = bits.state | half  # which `advance` forgets, and `random` does not


def skip_integers(rng: np.random.Generator, high: int, n: int) -> None:
    """As if `rng.integers(high, size=n)` had been called."""
    for start in range(0, n, 2**20):
        rng.integers(high, size=min(2**20, n - start))


@dataclass
class Latents:
    """The latent variables of all shards: pairs with statistics that tasks return, or files.

    A checkpoint keeps the names of the files, and :class:`Shards` finds the rest again.
    """

    files: list[str] = field(default_factory=list)

    def put_down(self, folder: Path, name: str) -> None:
        """Write them, for a checkpoint."""
        vars(self)["shards"].put_down(self, folder, name)


@dataclass
class Shards:
    """The parts of a data set, on a cluster.

    Parameters
    ----------
    digests : list of str
        Checksums, by which a checkpoint knows its data again.
    sizes : ndarray of int
        Items of the shards: steps, tokens or rows.
    client : dask.distributed.Client
        Or anything that has `submit` and `gather`.
    data : list of futures
    """

    digests: list[str]
    sizes: NDArray[np.int64]
    client: InitVar[Any]
    data: InitVar[Sequence[Any]]

    def __post_init__(self, client: Any, data: Sequence[Any]) -> None:
        self._client = client
        self._data = data

    @property
    def n_items(self) -> int:
        return int(self.sizes.sum())

    def ask(
        self,
        function: Callable[..., Found],
        message: Any,
        merge: Callable[[Found, Found], Found],
        latents: Latents | None = None,
    ) -> Found:
        """What `function(data, latent variables, message)` of all shards comes to by `merge`."""
        return self._merged(self._each(function, message, latents), merge)

    def move(
        self,
        function: Callable[..., tuple[Any, Found]],
        message: Any,
        merge: Callable[[Found, Found], Found],
        latents: Latents | None = None,
    ) -> tuple[Latents, Found]:
        """The same, of a function that returns new latent variables, which stay, and statistics."""
        pairs = self._each(function, message, latents)
        moved = self._hold(Latents(), pairs)
        # Before the merging, so that only statistics travel.
        return moved, self._merged([self._submit(_second, pair) for pair in pairs], merge)

    def put_down(self, latents: Latents, folder: Path, name: str) -> None:
        """Let every worker write its own into the folder, and go on from there.

        The two generations before are kept, since two checkpoints may name them.
        """
        folder.mkdir(parents=True, exist_ok=True)
        chain = name.split(".")[0]
        older = sorted({int(path.name.split(".")[1]) for path in folder.glob(f"{chain}.*.part-*")})
        for sweep in older[:-2]:
            for path in folder.glob(f"{chain}.{sweep}.part-*"):
                path.unlink()
        stored = [
            self._submit(_store, pair, str(folder / f"{name}.part-{i}"))
            for i, pair in enumerate(self._pairs(latents))
        ]
        latents.files = self._client.gather(stored)
        del vars(latents)["pairs"]  # and with them what Dask would have to do again

    def _each(self, function: Callable, message: Any, latents: Latents | None) -> list[Any]:
        note = self._submit(_same, message)  # sent once; workers have it from each other
        if latents is None:
            return [self._submit(function, shard, None, note) for shard in self._data]
        pairs = self._pairs(latents)
        return [
            self._submit(_apply, function, shard, pair, note)
            for shard, pair in zip(self._data, pairs)
        ]

    def _pairs(self, latents: Latents) -> list[Any]:
        if "pairs" not in vars(latents):
            pairs = [
                self._submit(_load, shard, file) for shard, file in zip(self._data, latents.files)
            ]
            self._hold(latents, pairs)
        return vars(latents)["pairs"]

    def _hold(self, latents: Latents, pairs: list[Any]) -> Latents:
        vars(latents).update(pairs=pairs, shards=self)  # no fields: a file has no room for them
        return latents

    def _merged(self, parts: list[Any], merge: Callable) -> Any:
        while len(parts) > 1:
            groups = [parts[i : i + FAN] for i in range(0, len(parts), FAN)]
            parts = [self._submit(_fold, merge, *group) for group in groups]
        return self._client.gather(parts)[0]

    def _submit(self, function: Callable, *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)


def without_callbacks(estimator: Any) -> Any:
    """A copy to send to workers; callbacks may not be fit to travel."""
    parameters = estimator.get_params(deep=False)
    left = {name: None for name in ("callbacks", "checkpoint") if name in parameters}
    return type(estimator)(**parameters | left)


def _same(message: Any) -> Any:
    return message


def _apply(function: Callable, shard: Any, pair: tuple[Any, Any], message: Any) -> Any:
    return function(shard, pair[0], message)


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _fold(merge: Callable, *parts: Any) -> Any:
    return reduce(merge, parts)


def _store(pair: tuple[Any, Any], path: str) -> str:
    _files.write(Path(path), "checkpoint", pair[0])
    _files.sync_folder(Path(path).parent)
    return path


def _load(shard: Any, path: str) -> tuple[Any, None]:
    """Where the data are: they are an argument for the scheduler's sake."""
    return _files.read(Path(path), "checkpoint").content, None
