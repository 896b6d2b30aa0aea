"""Files of the data home: download once, verify by content, write atomically, read two formats.

Every data set is kept in its own folder of the data home: as CSV tables, or where these would be
large (sequences) as arrays in an npz file. Either is verified by the SHA-256 of what it *says*
(see `content_checksum` and `array_checksum`), so a copy that differs in line endings, in trailing
zeros, in compression or in the order of its columns is still the same data.
"""

import csv
import gzip
import hashlib
import http.client
import io
import json
import os
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes._files import write_atomically

# The cells of a table by column name; every column has one type.
Columns = dict[str, list[Any]]

# The arrays of an npz file by name.
NamedArrays = dict[str, NDArray[Any]]

# What the standard library raises at a gzip or zip file that is cut short or something else.
BAD_ARCHIVE = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError)

# Answers after which the same request may well succeed; any other HTTP error is final.
TRANSIENT_STATUS = {408, 425, 429, 500, 502, 503, 504}


class DatasetError(OSError):
    """A data set that is absent, cannot be fetched, or is not what it should be."""


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Folder in which data sets are kept.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. When None: the environment variable ``REGBAYES_DATA`` if it is set and not
        empty, else ``~/regbayes_data``. It is created when the first file is written to it.

    Returns
    -------
    data_home : pathlib.Path

    Examples
    --------
    >>> from regbayes.datasets import get_data_home
    >>> get_data_home("my_data").name
    'my_data'
    """
    chosen = data_home or os.environ.get("REGBAYES_DATA") or Path("~", "regbayes_data")
    return Path(chosen).expanduser()


def content_checksum(columns: Columns) -> str:
    """SHA-256 of a table's content, whatever the file that held it looked like.

    The canonical form is JSON with sorted column names and no spaces, each column a list of
    typed cells: text and integers as they are, floats in Python's shortest exact notation.

    Examples
    --------
    >>> content_checksum({"b": [1.50], "a": ["x"]}) == content_checksum({"a": ["x"], "b": [1.5]})
    True
    """
    canonical = json.dumps(columns, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def array_checksum(arrays: NamedArrays) -> str:
    """SHA-256 of named arrays: names in order, types, shapes and the numbers themselves.

    Examples
    --------
    >>> a, b = np.zeros(2), np.ones(3)
    >>> array_checksum({"b": b, "a": a}) == array_checksum({"a": a, "b": b})
    True
    """
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def as_text(content: bytes) -> str:
    """Text of a downloaded file."""
    return content.decode("utf-8-sig")


def gunzip(content: bytes) -> str:
    """Text of a downloaded gzip file.

    Examples
    --------
    >>> gunzip(gzip.compress(b"one line"))
    'one line'
    """
    try:
        return as_text(gzip.decompress(content))
    except BAD_ARCHIVE as error:
        raise ValueError(f"not a whole gzip file ({error})") from error


def unzip(content: bytes) -> dict[str, bytes]:
    """Files of a downloaded zip archive by their names without folders."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {
                PurePosixPath(member.filename).name: archive.read(member)
                for member in archive.infolist()
                if not member.is_dir()
            }
    except BAD_ARCHIVE as error:
        raise ValueError(f"not a whole zip archive ({error})") from error


@dataclass(frozen=True)
class RemoteFile:
    """A public file, and how patiently to ask for it.

    Parameters
    ----------
    url : str
    attempts : int, default=3
        Requests in all; only transient failures are tried again.
    pause : float, default=1.0
        Seconds before the second attempt, doubled before each further one.
    timeout : float, default=30.0
        Seconds to wait for the server.
    unpack : callable, default=as_text
        Makes of the bytes what `RemoteDataset.parse` takes; raises ValueError at bytes it does
        not understand.
    """

    url: str
    attempts: int = 3
    pause: float = 1.0
    timeout: float = 30.0
    unpack: Callable[[bytes], Any] = as_text

    def read(self) -> Any:
        """The file, unpacked; a `DatasetError` says why it could not be had."""
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                with urllib.request.urlopen(self.url, timeout=self.timeout) as response:
                    content = _receive(response, PurePosixPath(self.url).name)
                return self.unpack(content)
            except urllib.error.HTTPError as error:
                failure: Exception = error
                if error.code not in TRANSIENT_STATUS:
                    break
            except (http.client.HTTPException, OSError) as error:
                # No route, no name, a connection cut short (IncompleteRead), a timeout.
                failure = error
        raise DatasetError(f"could not download {self.url}: {failure!r}") from failure


def _receive(response: Any, name: str) -> bytes:
    """The body of an answer, with a bar on a terminal; one that is cut short is an error."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    promised, parts = response.length, []
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    shown = Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )
    with shown:
        task = shown.add_task(name, total=promised)
        while part := response.read(1 << 16):
            parts.append(part)
            shown.advance(task, len(part))
    content = b"".join(parts)
    if promised is not None and len(content) < promised:
        raise http.client.IncompleteRead(content, promised - len(content))
    return content


def read_columns(text: str, types: Mapping[str, Callable[[str], Any]]) -> Columns:
    """Typed columns of a CSV text with a header; other columns of the text are left out.

    Examples
    --------
    >>> read_columns("size,name\\n1.50,x\\n", {"name": str, "size": float})
    {'name': ['x'], 'size': [1.5]}
    """
    rows = csv.DictReader(io.StringIO(text, newline=""))
    missing = set(types) - set(rows.fieldnames or ())
    if missing:
        raise ValueError(f"column(s) {sorted(missing)} are missing")
    columns: Columns = {name: [] for name in types}
    for row in rows:
        for name, to_type in types.items():
            # csv gives None for the cells of a line cut short.
            if row[name] is None:
                raise ValueError(f"line {rows.line_num} has no {name!r}")
            columns[name].append(to_type(row[name]))
    return columns


def _compare(found: str, expected: str) -> None:
    if found != expected:
        raise ValueError(f"its content has SHA-256 {found}, not the expected {expected}")


@dataclass(frozen=True)
class Table:
    """One CSV file of a data set: the type of each column, and the checksum of its content."""

    types: Mapping[str, Callable[[str], Any]]
    sha256: str

    def load(self, path: Path) -> Columns:
        """Typed columns of a CSV file, verified; a ValueError says what is wrong."""
        return self.read(path.read_text(encoding="utf-8-sig"))

    def read(self, text: str) -> Columns:
        """Typed columns of a CSV text, verified; a ValueError says what is wrong."""
        columns = read_columns(text, self.types)
        self.verify(columns)
        return columns

    def write(self, columns: Columns) -> str:
        """CSV text of verified columns."""
        self.verify(columns)
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.types)
        writer.writerows(zip(*(columns[name] for name in self.types)))
        return text.getvalue()

    def verify(self, columns: Columns) -> None:
        _compare(content_checksum(columns), self.sha256)


@dataclass(frozen=True)
class Arrays:
    """One npz file of a data set: the type of each array, and the checksum of their content.

    The checksums were computed from copies in this form, not from downloads (decision 005). So the
    types are integers, text, and float32: decimals as printed in the originals are the same float32
    whoever parsed them.
    """

    types: Mapping[str, str]
    sha256: str

    def load(self, path: Path) -> NamedArrays:
        """Arrays of an npz file, verified; other arrays of the file are left out."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = self._typed(stored)
        except BAD_ARCHIVE as error:
            raise ValueError(f"not a whole npz file ({error})") from error
        _compare(array_checksum(arrays), self.sha256)
        return arrays

    def write(self, arrays: NamedArrays) -> bytes:
        """Content of an npz file of verified arrays."""
        typed: dict[str, Any] = self._typed(arrays)
        _compare(array_checksum(typed), self.sha256)
        content = io.BytesIO()
        np.savez_compressed(content, **typed)
        return content.getvalue()

    def _typed(self, arrays: Mapping[str, NDArray[Any]]) -> NamedArrays:
        missing = set(self.types) - set(arrays)
        if missing:
            raise ValueError(f"array(s) {sorted(missing)} are missing")
        return {name: np.asarray(arrays[name], kind) for name, kind in self.types.items()}


@dataclass(frozen=True)
class Lines:
    """A gzip file of lines, verified by their content."""

    sha256: str

    def load(self, path: Path) -> list[str]:
        lines = gunzip(path.read_bytes()).splitlines()
        self._verify(lines)
        return lines

    def write(self, lines: list[str]) -> bytes:
        self._verify(lines)
        return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)

    def _verify(self, lines: list[str]) -> None:
        _compare(content_checksum({"line": list(lines)}), self.sha256)


@dataclass(frozen=True)
class RemoteDataset:
    """Tables in a folder of the data home, and where they come from.

    Parameters
    ----------
    folder : str
        Name of the folder in the data home.
    tables : mapping of file name to Table, Arrays or Lines
    sources : tuple of RemoteFile
        The published originals.
    parse : callable
        Takes each source, unpacked, in order; returns the columns or arrays of each table by file
        name. It raises ValueError at a source it does not understand.
    """

    folder: str
    tables: Mapping[str, Table | Arrays | Lines]
    sources: tuple[RemoteFile, ...]
    parse: Callable[..., dict[str, Any]]

    def load(
        self, data_home: str | os.PathLike[str] | None, download_if_missing: bool
    ) -> dict[str, Any]:
        """Verified content of each table by file name, downloaded first where one is absent."""
        folder = get_data_home(data_home) / self.folder
        missing = [name for name in self.tables if not (folder / name).is_file()]
        if missing and not download_if_missing:
            raise DatasetError(
                f"{', '.join(missing)} not found in {folder}. Pass download_if_missing=True, or "
                "point data_home or the environment variable REGBAYES_DATA to the folder that "
                f"holds {self.folder}/."
            )
        if missing:
            self._download(folder)
        loaded = {}
        for name, table in self.tables.items():
            try:
                loaded[name] = table.load(folder / name)
            except ValueError as error:
                raise DatasetError(
                    f"{folder / name} is damaged or of another version: {error}. "
                    "Delete the file so that it is fetched again."
                ) from error
        return loaded

    def _download(self, folder: Path) -> None:
        remedy = (
            f"Nothing was written. Try again later, or put {', '.join(self.tables)} into {folder} "
            "by hand; an existing copy elsewhere is found through data_home or REGBAYES_DATA."
        )
        try:
            parsed = self.parse(*(source.read() for source in self.sources))
            files = {name: table.write(parsed[name]) for name, table in self.tables.items()}
        except DatasetError as error:
            raise DatasetError(f"{error}. {remedy}") from error
        except ValueError as error:
            first, *others = (source.url for source in self.sources)
            urls = f"{first} and {len(others)} more" if others else first
            raise DatasetError(
                f"the download from {urls} is incomplete or has changed: {error}. {remedy}"
            ) from error
        for name, content in files.items():
            write_atomically(folder / name, content)
