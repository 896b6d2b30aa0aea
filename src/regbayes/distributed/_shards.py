"""Shards: parts of the data that stay with the workers of a cluster, and what is asked of them.

A message goes out to all shards; each answers with statistics, and may put something else in the
place of its latent variables. Statistics are merged on the way back, always in the same order.

Nothing is changed in place: latent variables are results of tasks that Dask remembers. If a worker
dies, Dask does again, elsewhere, what it had done since the last checkpoint, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regbayes import _files

# Statistics that one task, or the client, merges: the sum of many is a tree, not a queue before one
# process. A message to more shards than that is sent once, and workers have it from each other.
FAN = 16
Found = TypeVar("Found")


@dataclass(frozen=True)
class Place:
    """Where a shard is among all: items (steps, tokens, rows) before it, and those of all."""

    before: int
    total: int

    def stream(self, rng: np.random.Generator) -> Part:
        """What `rng` has for this shard."""
        return Part(copy_of(rng), self)


def copy_of(rng: np.random.Generator) -> np.random.Generator:
    """As `copy.deepcopy`, without its search for what is shared."""
    bits = type(rng.bit_generator)(0)
    bits.state = rng.bit_generator.state
    return np.random.Generator(bits)


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
        return moved, self._merged(self._map(_second, pairs), merge)

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
        note: Any = Note(message)
        if len(self._data) > FAN:
            note = self._submit(_same, note)
        if latents is None:
            return self._map(partial(_begin, function), self._data, note=note)
        return self._map(partial(_apply, function), self._data, self._pairs(latents), note=note)

    def _pairs(self, latents: Latents) -> list[Any]:
        if "pairs" not in vars(latents):
            self._hold(latents, self._map(_load, self._data, latents.files))
        return vars(latents)["pairs"]

    def _hold(self, latents: Latents, pairs: list[Any]) -> Latents:
        vars(latents).update(pairs=pairs, shards=self)  # no fields: a file has no room for them
        return latents

    def _merged(self, parts: list[Any], merge: Callable) -> Any:
        while len(parts) > FAN:
            groups = [parts[i : i + FAN] for i in range(0, len(parts), FAN)]
            parts = [self._submit(_fold, merge, *group) for group in groups]
        return _fold(merge, *self._client.gather(parts))

    def _submit(self, function: Callable, *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)

    def _map(self, function: Callable, *columns: Sequence[Any], **options: Any) -> list[Any]:
        """One task for each shard; all of them reach the scheduler at once."""
        return self._client.map(function, *columns, pure=False, **options)


def without_callbacks(estimator: Any) -> Any:
    """A copy to send to workers; callbacks may not be fit to travel."""
    parameters = estimator.get_params(deep=False)
    left = {name: None for name in ("callbacks", "checkpoint") if name in parameters}
    return type(estimator)(**parameters | left)


@dataclass(frozen=True)
class Note:
    """What goes out to the workers. Dask looks for futures in tuples and lists; not in here."""

    message: Any


def _same(note: Note) -> Note:
    return note


def _begin(function: Callable, shard: Any, note: Note) -> Any:
    return function(shard, None, note.message)


def _apply(function: Callable, shard: Any, pair: tuple[Any, Any], note: Note) -> Any:
    return function(shard, pair[0], note.message)


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
