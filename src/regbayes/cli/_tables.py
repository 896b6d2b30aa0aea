"""Reading tables from files, and finding what is wrong with their columns."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regbayes.cli._problem import Problem, suggest

_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
_PARQUET = (".parquet", ".pq")


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise Problem("reading tables needs pandas", 'pip install "regbayes[cli]"') from error
    return pandas


def read_table(path: Path) -> Any:
    """A CSV or Parquet file as a DataFrame."""
    if path.is_dir():
        raise Problem(f"{path} is a folder", "name a CSV or Parquet file in it")
    if not path.exists():
        raise Problem(
            f"there is no file {path}",
            "check its name, or try data of the library, which `regbayes datasets` lists",
        )
    try:
        if path.name.endswith(_PARQUET):
            table = _read_parquet(path)
        elif path.name.endswith(_TEXT):
            table = _read_csv(path)
        else:
            raise Problem(f"{path} is neither CSV nor Parquet by its name", "export it as .csv")
    except PermissionError as error:
        raise Problem(f"{path} may not be read", "change its permissions, or copy it") from error
    if not len(table):
        raise Problem(f"{path} has a header and no rows", "export it again, with its rows")
    return table


def _read_parquet(path: Path) -> Any:
    pandas = _pandas()
    try:
        return pandas.read_parquet(path)
    except ImportError as error:
        raise Problem(
            "reading Parquet needs pyarrow", 'pip install "regbayes[parquet]", or export as .csv'
        ) from error
    except (ValueError, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        raise Problem(f"{path} is no Parquet file", "export it again, or as .csv") from error


def _read_csv(path: Path) -> Any:
    pandas = _pandas()
    try:
        head = pandas.read_csv(path, header=None, nrows=1, dtype=str, sep="\x1f")
        line = str(head.iloc[0, 0])
        separator = max(",;\t", key=line.count)
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator))]
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            table = pandas.read_csv(
                path, sep=separator, index_col=False, low_memory=False, skipinitialspace=True
            )
    except pandas.errors.EmptyDataError as error:
        raise Problem(f"{path} is empty", "export it again") from error
    except pandas.errors.ParserWarning as error:
        raise Problem(
            f"the rows of {path} have more fields than its header", "give every column a name"
        ) from error
    except UnicodeError as error:
        raise Problem(
            f"{path} is not in UTF-8",
            f"convert it, for example by `iconv -f latin1 -t utf-8 {path.name} > utf8.csv`",
        ) from error
    except (pandas.errors.ParserError, csv.Error) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise Problem(
            f"the rows of {path} are not alike ({reason})",
            "give every line as many fields as the header, with quotes about commas inside them",
        ) from error
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Problem(f"{path} has two columns '{twice[0]}'", "rename one of them")
    return table.rename(columns=str.strip)


@dataclass(frozen=True)
class Roles:
    """Which column is what."""

    label: str | None = None
    sequence_id: str | None = None
    time: str | None = None
    ignore: Sequence[str] = ()
    views: str | None = None

    def check(self, table: Any) -> tuple[list[str], dict[str, list[str]] | None]:
        """The features and the views, if these roles fit the table."""
        named = {"--label": self.label, "--sequence-id": self.sequence_id, "--time": self.time}
        taken: dict[str, str] = {}
        for option, name in [*named.items(), *(("--ignore", name) for name in self.ignore)]:
            if name is None:
                continue
            require_column(table, name, option)
            if taken.get(name, option) != option:
                raise Problem(
                    f"column '{name}' is given to {taken[name]} and to {option}",
                    "give each option a column of its own",
                )
            taken[name] = option
        features = [name for name in table.columns if name not in taken]
        views = None if self.views is None else parse_views(self.views, list(table.columns))
        if views is not None:
            inside = [name for names in views.values() for name in names]
            for name in inside:
                if name in taken:
                    raise Problem(
                        f"column '{name}' is given to {taken[name]} and to --views",
                        "write patterns that leave it out",
                    )
                if inside.count(name) > 1:
                    raise Problem(f"column '{name}' is in two views", "give it to one of them")
            features = inside
        if not features:
            raise Problem("no column is left to learn from", "add columns, or --ignore fewer")
        return features, views


def parse_views(text: str, columns: Sequence[str]) -> dict[str, list[str]]:
    """Views by name, each with the columns that its pattern matches.

    Examples
    --------
    >>> parse_views("image=px*,words=w_*", ["px0", "px1", "w_cat"])
    {'image': ['px0', 'px1'], 'words': ['w_cat']}
    """
    views: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, pattern = (piece.strip() for piece in part.partition("="))
        if not (name and equals and pattern):
            raise Problem(f"--views has {part!r}", 'write --views "image=px*,words=w_*"')
        found = [column for column in columns if fnmatchcase(column, pattern)]
        if not found:
            raise Problem(
                f"no column matches the pattern {pattern} of the view '{name}'",
                suggest(pattern.strip("*"), columns, "the columns are"),
            )
        views.setdefault(name, []).extend(found)
    if len(views) < 2:
        raise Problem("--views names one view only", "name two or more, or leave --views out")
    return views


def require_column(table: Any, name: str, option: str) -> None:
    if name not in table.columns:
        raise Problem(
            f"there is no column '{name}' for {option}",
            suggest(name, table.columns, "the columns are"),
        )


def content_of(
    table: Any, features: list[str], in_sequences: bool
) -> Literal["numbers", "symbols", "documents"]:
    """What the features are; refuses what is neither numbers nor one text to learn from."""
    texts = [name for name in features if not is_numeric(table[name])]
    for name in texts:
        _refuse_mixed(table, name, _or_ignore(name))
    if not texts:
        return "numbers"
    if len(features) == 1:
        if in_sequences:
            return "symbols"
        words = table[texts[0]].dropna().astype(str).str.split().str.len()
        if words.mean() >= 5:
            return "documents"
    raise Problem(
        f"column '{texts[0]}' holds text, such as {table[texts[0]].dropna().iloc[0]!r}",
        f"leave it out by --ignore {texts[0]}, or encode it as numbers",
    )


def is_numeric(column: Any) -> bool:
    return _pandas().api.types.is_numeric_dtype(column)


def require_numbers(table: Any, features: list[str]) -> None:
    """Refuse text where a model was trained on numbers."""
    for name in features:
        if not is_numeric(table[name]):
            _refuse_mixed(table, name)
            raise Problem(
                f"column '{name}' holds text, and the model reads numbers",
                "pass a table like the one of the training",
            )


def _or_ignore(name: str) -> str:
    return f", or leave the column out by --ignore {name}"


def _refuse_mixed(table: Any, name: str, or_else: str = "") -> None:
    column = table[name].dropna()
    numbers = _pandas().to_numeric(column, errors="coerce").notna().to_numpy()
    if numbers.any() and not numbers.all():
        place = column.index[int(np.argmin(numbers))]
        raise Problem(
            f"column '{name}' mixes numbers and text: row {place + 1} has {table[name][place]!r}",
            f"correct such cells or empty them{or_else}",
        )


def check_numbers(
    table: Any, features: list[str], allow_missing: bool, training: bool = True
) -> None:
    """Finite numbers, with gaps only where the model takes them."""
    values = table[features].to_numpy(dtype=np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise Problem(
            f"column '{features[column]}' is infinite in row {row + 1}",
            "replace such values; they often come from a division by zero",
        )
    missing = np.isnan(values)
    empty = np.flatnonzero(missing.all(axis=0))
    if training and len(empty):
        name = features[empty[0]]
        raise Problem(f"column '{name}' is empty", f"leave it out by --ignore {name}")
    if missing.any() and not allow_missing:
        row, column = np.argwhere(missing)[0]
        or_else = _or_ignore(features[column]) if training else ""
        raise Problem(
            f"column '{features[column]}' has no value in row {row + 1}, and this model needs all",
            f"fill the gaps, or drop those rows{or_else}",
        )


def check_labels(table: Any, name: str, allow_missing: bool) -> None:
    """Two classes or more, and no more than can be learnt."""
    column = table[name]
    missing = column.isna().to_numpy()
    if missing.all():
        raise Problem(f"the label column '{name}' is empty", "name another column by --label")
    if missing.any() and not allow_missing:
        raise Problem(
            f"{missing.sum()} rows have no label in '{name}', the first of them row "
            f"{missing.argmax() + 1}",
            "label those rows or drop them",
        )
    classes = column.dropna().unique()
    if len(classes) < 2:
        raise Problem(
            f"the label column '{name}' has one class only, {classes[0]!r}",
            "add rows of another class, or name another column by --label",
        )
    fractions = column.dtype.kind == "f" and bool((column.dropna() % 1 != 0).any())
    if (fractions and len(classes) > 10) or len(classes) > max(30, len(table) // 2):
        raise Problem(
            f"the label column '{name}' has {len(classes)} different values in {len(table)} rows, "
            "which looks like a measurement",
            "cut it into a few classes, or name another column by --label",
        )


def check_sequences(table: Any, sequence_id: str, time: str | None) -> Any:
    """The table with a time that can be sorted; refuses what has no order."""
    ids = table[sequence_id]
    if ids.isna().any():
        row = int(np.argmax(ids.isna().to_numpy())) + 1
        raise Problem(
            f"row {row} has no sequence in '{sequence_id}'", "fill that column, or drop such rows"
        )
    if time is None:
        starts = ids[ids != ids.shift()]
        if starts.duplicated().any():
            raise Problem(
                f"the rows of sequence {starts[starts.duplicated()].iloc[0]!r} are not together",
                "sort the file by sequence and time, or name the column of the time by --time",
            )
        return table
    table = table.assign(**{time: as_time(table, time)})
    twice = table.duplicated([sequence_id, time])
    if twice.any():
        row = int(np.argmax(twice.to_numpy()))
        raise Problem(
            f"row {row + 1} has the same '{sequence_id}' and '{time}' as one before it",
            "drop such rows, or name columns that tell them apart",
        )
    return table


def as_time(table: Any, name: str) -> Any:
    """Numbers or dates."""
    column = table[name]
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy())) + 1
        raise Problem(f"row {row} has no time in '{name}'", "fill that column, or drop such rows")
    if is_numeric(column) or column.dtype.kind == "M":
        return column
    try:
        return _pandas().to_datetime(column, format="ISO8601")
    except ValueError as error:
        raise Problem(
            f"the time column '{name}' is neither numbers nor dates, such as {column.iloc[0]!r}",
            "write numbers, or dates as 2024-01-31 12:00:00",
        ) from error


def check_output(path: Path | None) -> None:
    """Before the work, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise Problem(f"{path} is a folder", "name a file in it by -o")
    folder = path.parent
    if not folder.is_dir():
        raise Problem(f"there is no folder {folder}", "make it, or name another file by -o")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise Problem(f"{path} may not be written", "name another file by -o")


def write_table(table: Any, path: Path) -> None:
    """CSV, or Parquet by its name."""
    if not path.name.endswith(_PARQUET):
        table.to_csv(path, index=False)
        return
    try:
        table.to_parquet(path, index=False)
    except ImportError as error:
        raise Problem(
            "writing Parquet needs pyarrow", 'pip install "regbayes[parquet]", or name a .csv'
        ) from error
