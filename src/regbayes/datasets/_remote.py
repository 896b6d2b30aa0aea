"""Files of the data home: download once, verify by content, write atomically, read one format.

Every data set is kept as CSV tables in its own folder of the data home. A table is verified by
the SHA-256 of what it *says* (see `content_checksum`), so a copy that differs in line endings, in
trailing zeros or in the order of its columns is still the same table.
"""

import csv
import hashlib
import http.client
import io
import json
import os
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The cells of a table by column name; every column has one type.
Columns = dict[str, list[Any]]

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


def write_atomically(path: Path, text: str) -> None:
    """Write `text` so that a reader sees the old file or the whole new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        # mkstemp gives 0600; a data home or a results folder may be shared.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


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
    """

    url: str
    attempts: int = 3
    pause: float = 1.0
    timeout: float = 30.0

    def read(self) -> str:
        """Text of the file; a `DatasetError` says why it could not be had."""
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                with urllib.request.urlopen(self.url, timeout=self.timeout) as response:
                    return response.read().decode("utf-8-sig")
            except urllib.error.HTTPError as error:
                failure: Exception = error
                if error.code not in TRANSIENT_STATUS:
                    break
            except (http.client.HTTPException, OSError) as error:
                # No route, no name, a connection cut short (IncompleteRead), a timeout.
                failure = error
        raise DatasetError(f"could not download {self.url}: {failure!r}") from failure


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


@dataclass(frozen=True)
class Table:
    """One CSV file of a data set: the type of each column, and the checksum of its content."""

    types: Mapping[str, Callable[[str], Any]]
    sha256: str

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
        found = content_checksum(columns)
        if found != self.sha256:
            raise ValueError(f"its content has SHA-256 {found}, not the expected {self.sha256}")


@dataclass(frozen=True)
class RemoteDataset:
    """Tables in a folder of the data home, and where they come from.

    Parameters
    ----------
    folder : str
        Name of the folder in the data home.
    tables : mapping of file name to Table
    sources : tuple of RemoteFile
        The published originals.
    parse : callable
        Takes the text of each source, in order; returns the columns of each table by file name.
        It raises ValueError at text it does not understand.
    """

    folder: str
    tables: Mapping[str, Table]
    sources: tuple[RemoteFile, ...]
    parse: Callable[..., dict[str, Columns]]

    def load(
        self, data_home: str | os.PathLike[str] | None, download_if_missing: bool
    ) -> dict[str, Columns]:
        """Verified columns of each table by file name, downloaded first where one is absent."""
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
                loaded[name] = table.read((folder / name).read_text(encoding="utf-8-sig"))
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
            columns = self.parse(*(source.read() for source in self.sources))
            texts = {name: table.write(columns[name]) for name, table in self.tables.items()}
        except DatasetError as error:
            raise DatasetError(f"{error}. {remedy}") from error
        except ValueError as error:
            urls = " and ".join(source.url for source in self.sources)
            raise DatasetError(
                f"the download from {urls} is incomplete or has changed: {error}. {remedy}"
            ) from error
        for name, text in texts.items():
            write_atomically(folder / name, text)
