"""Checkpoints: what a chain needs to go on, in files that survive the machine.

A checkpoint is a folder. Each chain has a file for its state, random generator and place, replaced
as a whole and with the one before it kept, and files for its draws, written once each.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from regbayes import _files
from regbayes._files import DamagedFile, FileError

logger = logging.getLogger("regbayes")

# Parameters that do not change the course of a chain; the seed is compared by itself.
IDLE = frozenset(
    {"n_jobs", "verbose", "callbacks", "checkpoint", "warm_start", "random_state", "n_draws"}
)


_MOST = 1000  # draws in a file


class CheckpointError(FileError):
    """A checkpoint is of another run, or damaged beyond help; the message says what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit keeps what it needs to go on, and how often.

    Parameters
    ----------
    path : path
        A folder, made if it is not there.
    every : int or None, default=50
        Write after so many sweeps (or rounds) of a chain.
    seconds : float or None, default=60
        Write after a sweep if the last time was so long ago.

    Examples
    --------
    >>> from regbayes.chains import Checkpoint
    >>> from regbayes.mixture import GibbsInfiniteSVM
    >>> model = GibbsInfiniteSVM(checkpoint=Checkpoint("run.ckpt", every=None, seconds=600))
    """

    path: str | os.PathLike[str]
    every: int | None = 50
    seconds: float | None = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(f"path must be a path, got {self.path!r}.")
        if self.every is not None and not (isinstance(self.every, Integral) and self.every >= 1):
            raise ValueError(f"every must be a positive integer or None, got {self.every!r}.")
        if self.seconds is not None and not (isinstance(self.seconds, Real) and self.seconds > 0):
            raise ValueError(f"seconds must be a positive number or None, got {self.seconds!r}.")


# What scikit-learn may find in a parameter `checkpoint`.
CHECKPOINT = [str, os.PathLike, Checkpoint, None]


def as_checkpoint(value: Any) -> Checkpoint | None:
    """Read a user's `checkpoint`: a path, a :class:`Checkpoint`, or None."""
    return value if value is None or isinstance(value, Checkpoint) else Checkpoint(value)


@dataclass
class Progress:
    """Where a chain stands: all that its next sweep depends on, and what it has kept so far."""

    state: Any
    rng: np.random.Generator
    n_done: int  # sweeps
    target: int
    kept: list[Any] = field(default_factory=list)


def fingerprint(step: Callable) -> str:
    """A checksum of what a step is bound to, its data and constants, but not of `n_threads`.

    Examples
    --------
    >>> from functools import partial
    >>> def step(model, rng, state): ...
    >>> fingerprint(partial(step, {"X": np.zeros(3)})) == fingerprint(partial(step, {"X": 0}))
    False
    """
    if not isinstance(step, partial):
        raise TypeError(
            "a run is known again by the data that its step is bound to, and this step is bound to "
            "none.\nTo mend it: pass step=functools.partial(step, model)."
        )
    bound = inspect.signature(step.func).bind_partial(*step.args, **step.keywords).arguments
    counted = {name: value for name, value in bound.items() if name != "n_threads"}
    return _files.digest(counted, leave_out=["n_threads"])


def identify(estimator: Any, step: Callable, seed: int) -> dict[str, Any]:
    """What makes two runs the same: model, parameters, seed and data."""
    texts = {}
    if estimator is not None:
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            parameters = estimator.get_params(deep=False).items()
            texts = {name: repr(value) for name, value in parameters if name not in IDLE}
    return {
        "estimator": type(estimator).__name__,
        "parameters": texts,
        "seed": seed,
        "data": fingerprint(step),
    }


class Logbook:
    """The files of a run."""

    def __init__(self, checkpoint: Checkpoint, identity: dict[str, Any]) -> None:
        self.checkpoint = checkpoint
        self.folder = Path(checkpoint.path)
        self.identity = identity
        if self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(
                f"{self.folder} is a file, and a checkpoint is a folder.\n"
                "To mend it: pass another path as checkpoint."
            )
        for leftover in self.folder.glob(".chain-*"):  # of a write that was cut short
            leftover.unlink()

    def open(self, index: int) -> Page:
        """The page of a chain, with where it stands if it was begun."""
        found = read_state(self.folder, index)
        if found is None:
            return Page(self, index, None, [])
        self._compare(found["identity"])
        progress = replace(found["progress"], kept=found["kept"])
        logger.info("chain %d goes on after sweep %d", index, progress.n_done)
        return Page(self, index, progress, found["parts"])

    def _compare(self, there: dict[str, Any]) -> None:
        here = self.identity
        if there == here:
            return
        differences = [
            f"{name} was {there['parameters'].get(name)} and is {here['parameters'].get(name)}"
            for name in sorted({*there["parameters"], *here["parameters"]})
            if there["parameters"].get(name) != here["parameters"].get(name)
        ]
        differences += [
            f"the {name} was {there[name]} and is {here[name]}"
            for name in ("estimator", "seed")
            if there[name] != here[name]
        ]
        if not differences:
            differences = ["its data are others"]
        raise CheckpointError(
            f"the checkpoint {self.folder} is of another run: {'; '.join(differences)}.\n"
            "To mend it: pass another path as checkpoint, or delete that folder."
        )


class Page:
    """The files of one chain."""

    def __init__(
        self, book: Logbook, index: int, progress: Progress | None, parts: list[list[Any]]
    ) -> None:
        self.progress = progress
        self._book = book
        self._index = index
        self._parts = parts  # of the draws: file, checksum, number
        self._n_done = 0 if progress is None else progress.n_done
        self._time = time.monotonic()

    def keep(self, progress: Progress, at_once: bool = False) -> None:
        """Write, if it is time to."""
        every, seconds = self._book.checkpoint.every, self._book.checkpoint.seconds
        if (
            at_once
            or (every is not None and progress.n_done - self._n_done >= every)
            or (seconds is not None and time.monotonic() - self._time >= seconds)
        ):
            self._write(progress)
            self._n_done, self._time = progress.n_done, time.monotonic()

    def _write(self, progress: Progress) -> None:
        folder, name = self._book.folder, f"chain-{self._index}"
        if hasattr(progress.state, "put_down"):  # some of it is elsewhere: regbayes.distributed
            progress.state.put_down(folder, f"{name}.{progress.n_done}")
        for start in range(sum(n for _, _, n in self._parts), len(progress.kept), _MOST):
            some = progress.kept[start : start + _MOST]
            checksum = _files.write(folder / f"{name}.draws-{start}", "checkpoint", some)
            self._parts = [*self._parts, [f"{name}.draws-{start}", checksum, len(some)]]
        content = {
            "identity": self._book.identity,
            "progress": replace(progress, kept=[]),
            "parts": self._parts,
        }
        state, previous = state_files(folder, self._index)
        _files.write(state, "checkpoint", content, previous=previous)
        _files.sync_folder(folder)
        logger.debug("chain %d: checkpoint after sweep %d", self._index, progress.n_done)


def state_files(folder: Path, index: int) -> tuple[Path, Path]:
    """Where the state of a chain is, and the one before it."""
    return folder / f"chain-{index}.state", folder / f"chain-{index}.previous"


def read_state(folder: Path, index: int) -> dict[str, Any] | None:
    """The last good state of a chain, with its draws; None if there is none."""
    damage: Exception | None = None
    for path in state_files(folder, index):
        try:
            found = _files.read(path, "checkpoint").content
            found["kept"] = list(_draws(folder, found["parts"]))
        except (FileNotFoundError, NotADirectoryError) as error:
            if path.exists():  # its draws are missing
                damage = error
            continue
        except DamagedFile as error:
            damage = error
            continue
        except FileError as error:
            raise CheckpointError(str(error)) from error
        if damage is not None:
            warnings.warn(
                f"the last checkpoint is damaged; going on from the one before: {damage}",
                stacklevel=2,
            )
        return found
    if damage is not None:
        raise CheckpointError(
            f"the checkpoint {folder} is damaged, and there is no good one before it: {damage}.\n"
            "To mend it: delete that folder and start anew."
        ) from damage
    return None


def _draws(folder: Path, parts: list[list[Any]]) -> Iterator[Any]:
    for name, checksum, _ in parts:
        part = _files.read(folder / name, "checkpoint")
        if part.checksum != checksum:
            raise DamagedFile(f"{folder / name} is not the file that belongs here")
        yield from part.content


def stored_seed(checkpoint: Any) -> int | None:
    """The seed of a run to go on with, if there is one."""
    checkpoint = as_checkpoint(checkpoint)
    found = None if checkpoint is None else read_state(Path(checkpoint.path), 0)
    return None if found is None else found["identity"]["seed"]
