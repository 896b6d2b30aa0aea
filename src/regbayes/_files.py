"""Files that are opened without running code: arrays as safetensors, all else as a tree in JSON.

A tree is made of None, truth values, numbers, text, lists, tuples, dicts, arrays, generators of
random numbers, and records: the dataclasses and named tuples of this package. A record is written
by its name and looked up among the classes that are loaded already; nothing that a file names is
imported or called. In JSON an object has one key, its kind::

    {"record": ["regbayes.priors.concentration.GammaPrior", {"shape": 2.0, "rate": 4.0}]}

Lists whose entries are alike are written by column, so that a thousand draws are a few arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from scipy.sparse import csr_array, csr_matrix, issparse, sparray

from regbayes._version import __version__

FORMAT = 1
# Bytes that objects of a file may take besides its arrays, and a quarter of its size.
_ALLOWANCE = 2**26
_OBJECT = 50  # bytes of a Python object, roughly
_DEEPEST = 100
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "SFC64")
_PLAIN = "biuf"  # kinds of arrays that safetensors has

# What values of the wrong kind lead to.
_FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)

# Of an estimator: its name, its parameters, what fit found. And the way back.
Describe = Callable[[Any], tuple[str, dict[str, Any], dict[str, Any]] | None]
Build = Callable[[str], Callable[[dict[str, Any], dict[str, Any]], Any]]


class FileError(ValueError):
    """A file cannot be read or written; the message says why."""


class DamagedFile(FileError):
    """A file is not what was written."""


class File(NamedTuple):
    """What a file holds, the version of regbayes that wrote it, and its checksum."""

    content: Any
    version: str
    checksum: str


def write(
    path: Path,
    kind: str,
    content: Any,
    describe: Describe = lambda value: None,
    previous: Path | None = None,
) -> str:
    """Write `content` atomically; returns its checksum. The file it replaces becomes `previous`.

    Names last when :func:`sync_folder` was called.
    """
    writer = _Writer(describe)
    tree = writer.node(content, "")
    head = json.dumps(
        {"format": FORMAT, "kind": kind, "version": __version__, "tree": tree},
        allow_nan=False,
        separators=(",", ":"),
    )
    checksum = _checksum(head, writer.arrays)
    data = save(writer.arrays, {"head": head, "sha256": checksum})
    if int.from_bytes(data[:8], "little") > _most_header(len(data)) or (
        writer.n_objects > _most_objects(len(data))
    ):
        raise FileError(
            f"{path} would consist of too many small parts to be read safely.\n"
            "To mend it: keep fewer draws, for example by a larger thin."
        )
    write_atomically(path, data, previous)
    return checksum


def read(path: Path, kind: str, build: Build | None = None) -> File:
    """Read a file of this kind; any fault of it is a :class:`FileError`."""
    size = path.stat().st_size
    try:
        head_text, checksum, arrays = _load(path, size)
        head = json.loads(head_text)
        if (head["kind"], type(head["format"])) != (kind, int):
            raise FileError(f"{path} is not a {kind} of regbayes")
        if not 1 <= head["format"] <= FORMAT:
            raise FileError(
                f"{path} has format {head['format']}, written by regbayes {head['version']}; this "
                f"is {__version__}, which reads formats up to {FORMAT}.\n"
                "To mend it: update regbayes."
            )
        if checksum != _checksum(head_text, arrays):
            raise DamagedFile(f"{path} is damaged: its checksum is not that of its content")
        reader = _Reader(arrays, _most_objects(size), build)
        return File(reader.node(head["tree"]), str(head["version"]), checksum)
    except FileError:
        raise
    except SafetensorError as error:
        raise DamagedFile(f"{path} is damaged, or no file of regbayes: {error}") from error
    except _FAULTS as error:
        raise DamagedFile(f"{path} does not hold what it should: {error!r}") from error


def digest(value: Any, leave_out: Iterable[str] = ()) -> str:
    """A checksum of a tree; fields of records that are called as in `leave_out` do not count.

    Examples
    --------
    >>> digest({"x": np.zeros(3)}) == digest({"x": np.zeros(3)}), digest(1) == digest(1.0)
    (True, False)
    """
    writer = _Writer(leave_out=leave_out)
    return _checksum(json.dumps(writer.node(value, "")), writer.arrays)


def write_atomically(path: Path, content: str | bytes, previous: Path | None = None) -> None:
    """Write `content` so that a reader sees the old file or the whole new one, never a part.

    With `previous`, that is where the old file goes: the reader looks there if it finds none.
    """
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp gives 0600; a data home or a results folder may be shared.
        os.chmod(temporary, 0o644)
        if previous is not None and path.exists():
            os.replace(path, previous)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _load(path: Path, size: int) -> tuple[str, str, dict[str, NDArray]]:
    with path.open("rb") as file:
        n_header = int.from_bytes(file.read(8), "little")
    if size < 8 or n_header > min(size - 8, _most_header(size)):
        raise DamagedFile(f"{path} is damaged, or no file of regbayes: its header cannot be")
    # safetensors compares the sizes of all arrays with that of the file before it allocates any.
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        return (
            metadata["head"],
            metadata["sha256"],
            {name: file.get_tensor(name) for name in file.keys()},  # noqa: SIM118
        )


def _most_header(size: int) -> int:
    # The objects that JSON makes are up to some 25 times as large as the text.
    return 2**20 + size // 128


def _most_objects(size: int) -> int:
    return (size // 4 + _ALLOWANCE) // _OBJECT


def _checksum(head: str, arrays: Mapping[str, NDArray]) -> str:
    total = hashlib.sha256(head.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


class _Writer:
    """Turns a value into JSON, and collects its arrays."""

    def __init__(
        self, describe: Describe = lambda value: None, leave_out: Iterable[str] = ()
    ) -> None:
        self.arrays: dict[str, NDArray] = {}
        self.n_objects = 0  # as a reader counts them, or more
        self._describe = describe
        self._leave_out = frozenset(leave_out)
        self._known: dict[int, tuple[NDArray, Any]] = {}

    def node(self, value: Any, path: str) -> Any:
        self.n_objects += 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.array(value), path)}
        if isinstance(value, int):
            return value if abs(value) < 2**53 else {"int": str(value)}
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, np.random.Generator):
            return {"generator": self.node(value.bit_generator.state, path)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.node(value.get_state(legacy=False), path)}
        if is_record(type(value)):
            values = {name: getattr(value, name) for name in self._fields(type(value))}
            return {"record": [_full_name(type(value)), self._named(values, path)]}
        if isinstance(value, list):
            return self._list(value, path)
        if isinstance(value, tuple):
            return {"tuple": self._list(value, path)}
        if isinstance(value, Mapping):
            if all(type(key) is str for key in value):
                return {"dict": self._named(value, path)}
            return {"pairs": [[self.node(k, path), self.node(v, path)] for k, v in value.items()]}
        if issparse(value):
            rows = value.tocsr()
            parts = [list(rows.shape), rows.data, rows.indices, rows.indptr]
            return {"sparse": [isinstance(value, sparray), self.node(parts, path)]}
        described = self._describe(value)
        if described is not None:
            name, parameters, found = described
            return {"estimator": [name, *(self._named(part, path) for part in (parameters, found))]}
        raise FileError(
            f"{path or 'this'} is a {_full_name(type(value))}, which these files cannot hold.\n"
            "To mend it: use plain numbers, text, arrays and the estimators of regbayes; or "
            "pickle, for files that only you open."
        )

    def _named(self, values: Mapping[str, Any], path: str) -> dict[str, Any]:
        prefix = f"{path}." if path else ""
        return {name: self.node(value, prefix + name) for name, value in values.items()}

    def _fields(self, cls: type) -> list[str]:
        return [name for name in _field_names(cls) if name not in self._leave_out]

    def _list(self, values: list | tuple, path: str) -> Any:
        """By column, if the entries are alike."""
        kinds = {type(value) for value in values}
        kind: Any = kinds.pop() if len(kinds) == 1 and len(values) > 1 else None
        self.n_objects += 1 + len(values)
        if kind is dict and values[0] and _same_names(values):
            columns = {key: [value[key] for value in values] for key in values[0]}
            self.n_objects += _n_objects_of_rows(columns)
            return {"rows": self._named(columns, path)}
        if is_record(kind) and self._fields(kind):
            columns = {name: [getattr(v, name) for v in values] for name in self._fields(kind)}
            self.n_objects += _n_objects_of_rows(columns)
            return {"records": [_full_name(kind), self._named(columns, path)]}
        if kind is tuple and len({len(value) for value in values}) == 1 and 0 < len(values[0]) < 9:
            places = enumerate(zip(*values))
            return {"tuples": [self._list(place, f"{path}.{i}") for i, place in places]}
        if kind is np.ndarray and _same_kind(values):
            flat = self._store(np.concatenate([value.reshape(-1) for value in values]), path)
            shapes = np.array([value.shape for value in values], dtype=np.int64)
            self.n_objects += len(shapes) + shapes.size
            return {"arrays": [flat, self._store(shapes, f"{path}.shapes")]}
        if kind is str:
            texts = [value.encode("utf-8", "surrogatepass") for value in values]
            lengths = np.array([len(text) for text in texts], dtype=np.int64)
            flat = self._store(np.frombuffer(b"".join(texts), dtype=np.uint8), path)
            return {"strings": [flat, self._store(lengths, f"{path}.lengths")]}
        if kind in (bool, float) or (kind is int and all(-(2**63) <= v < 2**63 for v in values)):
            return {"numbers": self._store(np.array(values, dtype=kind), path)}
        if kind is not None and issubclass(kind, np.generic) and np.dtype(kind).kind in _PLAIN:
            return {"scalars": self._store(np.array(values), path)}
        return [self.node(value, f"{path}.{i}") for i, value in enumerate(values)]

    def _array(self, value: NDArray, path: str) -> Any:
        self.n_objects += 1
        if value.dtype == object:
            values = value.ravel().tolist()
            return {"objects": [list(value.shape), self._list(values, path)]}
        # An array that is there twice is one array when it is read, too.
        if id(value) not in self._known:
            self._known[id(value)] = value, self._new_array(np.asarray(value), path)
        return self._known[id(value)][1]

    def _new_array(self, value: NDArray, path: str) -> Any:
        kind, width = value.dtype.kind, value.dtype.itemsize
        if kind in "US" and width:
            letters = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
            unit = np.dtype(np.uint32 if kind == "U" else np.uint8)
            flat = letters.reshape(-1).view(unit)
            shape = (*value.shape, width // unit.itemsize)
            return {"text": [kind, self._store(flat.reshape(shape), path)]}
        if kind not in _PLAIN or width > 8:
            raise FileError(f"{path} is an array of {value.dtype}, which these files cannot hold")
        # Sums and products may depend on which axis is the fastest: it is kept.
        axes = sorted(range(value.ndim), key=lambda axis: (-abs(value.strides[axis]), axis))
        if axes == list(range(value.ndim)) or value.flags.c_contiguous:
            return {"array": self._store(value, path)}
        back = [axes.index(axis) for axis in range(value.ndim)]
        return {"turned": [self._store(value.transpose(axes), path), back]}

    def _store(self, value: NDArray, path: str) -> str:
        name = path or "value"
        while name in self.arrays:
            name += "+"
        self.arrays[name] = np.require(value, value.dtype.newbyteorder("="), "C")
        return name


class _Reader:
    """Turns JSON and arrays into a value; never into more objects than a file of its size needs."""

    def __init__(self, arrays: dict[str, NDArray], n_objects: int, build: Build | None) -> None:
        self._arrays = arrays
        self._unread = set(arrays)
        self._left = n_objects
        self._build = build
        self._depth = 0
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "int": int,
            "float": float,
            "tuple": lambda value: tuple(self._list(value)),
            "dict": self._named,
            "pairs": lambda value: {self.node(k): self.node(v) for k, v in value},
            "rows": self._rows,
            "tuples": lambda value: [*zip(*map(self._list, value), strict=True)],
            "records": self._records,
            "arrays": self._split,
            "strings": self._strings,
            "numbers": lambda name: self._take(name).tolist(),
            "scalars": lambda name: list(self._take(name)),
            "scalar": lambda value: self.node(value)[()],
            "array": lambda name: self._arrays[name],
            "turned": lambda value: self._arrays[value[0]].transpose(value[1]),
            "text": self._text,
            "objects": self._objects,
            "sparse": self._sparse,
            "generator": self._generator,
            "random_state": self._random_state,
            "record": self._record,
            "estimator": self._estimator,
        }

    def node(self, value: Any) -> Any:
        self._spend(1)
        if isinstance(value, list):
            return self._list(value)
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("too deep")
        found = self._kinds[kind](content)
        self._depth -= 1
        return found

    def _spend(self, n: int) -> None:
        self._left -= n
        if self._left < 0:
            raise ValueError("more objects than a file of this size needs")

    def _column(self, name: str) -> NDArray:
        """What a list is made of. No two lists share one: a small file would fill the memory."""
        self._unread.remove(name)
        return self._arrays[name]

    def _take(self, name: str) -> NDArray:
        """A column with one entry for each entry of the list."""
        array = self._column(name)
        if array.ndim != 1:
            raise ValueError("a column has one axis")
        self._spend(len(array))
        return array

    def _list(self, value: Any) -> list:
        if isinstance(value, dict):
            found = self.node(value)
            if not isinstance(found, list):
                raise TypeError("not a list")
            return found
        return [self.node(each) for each in value]

    def _named(self, value: dict[str, Any]) -> dict[str, Any]:
        return {name: self.node(each) for name, each in value.items()}

    def _rows(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        columns = {name: self._list(column) for name, column in value.items()}
        self._spend(_n_objects_of_rows(columns))
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row)) for row in rows]

    def _split(self, value: list) -> list[NDArray]:
        flat, shapes = map(self._column, value)
        if shapes.ndim != 2 or shapes.dtype != np.int64 or shapes.min(initial=0) < 0:
            raise ValueError("not the shapes of arrays")
        self._spend(2 * len(shapes) + shapes.size)
        sizes = [math.prod(shape) for shape in shapes.tolist()]
        if sum(sizes) != flat.size:
            raise ValueError("not the shapes of these arrays")
        ends = np.cumsum(sizes).tolist()
        return [
            flat[end - size : end].reshape(shape)
            for size, end, shape in zip(sizes, ends, shapes.tolist())
        ]

    def _strings(self, value: list) -> list[str]:
        data, lengths = self._column(value[0]).tobytes(), self._take(value[1])
        ends = np.cumsum(lengths)
        if lengths.dtype != np.int64 or lengths.min(initial=0) < 0 or ends[-1] != len(data):
            raise ValueError("not the lengths of these texts")
        spans = zip((ends - lengths).tolist(), ends.tolist())
        return [data[start:end].decode("utf-8", "surrogatepass") for start, end in spans]

    def _text(self, value: list) -> NDArray:
        kind, letters = value[0], self._arrays[value[1]]
        if (kind, letters.dtype) not in (("U", np.uint32), ("S", np.uint8)):
            raise TypeError("not a text")
        if kind == "U" and letters.max(initial=0) > sys.maxunicode:
            raise ValueError("not a letter")
        return letters.reshape(-1).view(f"{kind}{letters.shape[-1]}").reshape(letters.shape[:-1])

    def _objects(self, value: list) -> NDArray:
        shape, content = value[0], self._list(value[1])
        out = np.empty(len(content), dtype=object)
        out[:] = content
        return out.reshape(shape)

    def _sparse(self, value: list) -> Any:
        shape, *parts = self.node(value[1])
        found = (csr_array if value[0] else csr_matrix)(tuple(parts), shape=shape)
        found.check_format(full_check=True)
        return found

    def _generator(self, value: Any) -> np.random.Generator:
        state = _checked_state(self.node(value))
        bits = getattr(np.random, state["bit_generator"])(0)
        bits.state = state
        return np.random.Generator(bits)

    def _random_state(self, value: Any) -> np.random.RandomState:
        found = np.random.RandomState(0)
        found.set_state(_checked_state(self.node(value)))
        return found

    def _record(self, value: list) -> Any:
        return _make(_class(value[0]), self._named(value[1]))

    def _records(self, value: list) -> list:
        cls = _class(value[0])
        return [_make(cls, row) for row in self._rows(value[1])]

    def _estimator(self, value: list) -> Any:
        if self._build is None:
            raise TypeError("no place for an estimator")
        name, parameters, found = value
        build = self._build(name)  # first, since the records of its family are loaded by that
        return build(self._named(parameters), self._named(found))


def _n_objects_of_rows(columns: Mapping[str, list]) -> int:
    return (3 + len(columns)) * len(next(iter(columns.values())))


def _same_names(values: Iterable[dict]) -> bool:
    names = {tuple(value) for value in values}
    return len(names) == 1 and all(type(name) is str for name in next(iter(names)))


def _same_kind(values: Iterable[NDArray]) -> bool:
    kinds = {(value.dtype, value.ndim, value.flags.c_contiguous) for value in values}
    dtype, _, contiguous = next(iter(kinds))
    return len(kinds) == 1 and contiguous and dtype.kind in _PLAIN and dtype.itemsize <= 8


def is_record(cls: Any) -> bool:
    """Whether a class is a dataclass or a named tuple of this package."""
    return (
        isinstance(cls, type)
        and cls.__module__.startswith("regbayes.")
        and (is_dataclass(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields")))
    )


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _class(name: str) -> Any:
    """A record of this package, among those that are loaded already."""
    module, _, short = name.rpartition(".")
    cls: Any = vars(sys.modules[module]).get(short) if module in sys.modules else None
    if not is_record(cls) or cls.__module__ != module:
        raise FileError(
            f"the file names {name}, which this version of regbayes does not have.\n"
            "To mend it: use the version that wrote the file."
        )
    return cls


def _make(cls: Any, given: dict[str, Any]) -> Any:
    values = _defaults(cls) | given
    if values.keys() != set(_field_names(cls)):  # a new field has a default, for old files to load
        raise ValueError(f"the fields of {cls.__name__} are others")
    if not hasattr(cls, "__dataclass_fields__"):
        return tuple.__new__(cls, (values[name] for name in _field_names(cls)))
    found: Any = object.__new__(cls)  # as pickle does: without running __init__
    vars(found).update(values)
    return found


def _checked_state(state: dict[str, Any]) -> dict[str, Any]:
    """numpy reads at `pos` without asking."""
    if state["bit_generator"] not in _GENERATORS or not 0 <= state["state"].get("pos", 0) <= 624:
        raise ValueError("not the state of a generator")
    return state


def _field_names(cls: Any) -> list[str]:
    return [field.name for field in fields(cls)] if is_dataclass(cls) else list(cls._fields)


def _defaults(cls: Any) -> dict[str, Any]:
    if not is_dataclass(cls):
        return cls._field_defaults
    return {field.name: field.default for field in fields(cls) if field.default is not MISSING}
