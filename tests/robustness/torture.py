"""Inputs that break things: tables, sequences of numbers and of symbols, documents, views.

Each is a function without arguments that makes a :class:`Case`, so that nothing large is made
before it is asked for.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, csr_matrix


class Case(NamedTuple):
    """What to fit, and what to ask then; `X` again unless `new` is something else."""

    X: Any
    y: Any = None  # a label for each row, document or sequence
    steps: Any = None  # labels of the steps, of sequences
    new: Any = None


Inputs = dict[str, Callable[[], Case]]
MANY = 10_000
HUGE, TINY = 1e150, 1e-150

# Labels that any kind of input may come with, as a function of their number.

LABELS: dict[str, Callable[[int], Any]] = {
    "unicode labels": lambda n: np.resize(["größe", "データ", "a\u0301", "🙂"], n),
    "labels that are spaces and empty": lambda n: np.resize(["", " ", "  "], n),
    "labels of mixed types": lambda n: np.resize(np.array([1, "one", 2.5, None], dtype=object), n),
    "numbers and text as labels": lambda n: [1, "a"] * (n // 2),
    "bool labels": lambda n: np.arange(n) % 2 == 0,
    "whole floats as labels": lambda n: np.arange(n) % 3 * 1.0,
    "fractions as labels": lambda n: np.linspace(0.1, 0.9, n),
    "labels at 1e150": lambda n: np.linspace(-HUGE, HUGE, n),
    "huge integers as labels": lambda n: np.resize([2**62, -(2**62), 0], n),
    "negative labels": lambda n: np.resize([-7, -1, 3], n),
    "NaN labels": lambda n: np.where(np.arange(n) % 5 == 0, np.nan, np.arange(n) % 2),
    "infinite labels": lambda n: np.where(np.arange(n) % 5 == 0, np.inf, np.arange(n) % 2),
    "a single class": lambda n: np.full(n, "only"),
    "a class with one member": lambda n: np.where(np.arange(n) == 3, "rare", "common"),
    "every sample a class of its own": lambda n: np.arange(n),
    "labels in a column": lambda n: (np.arange(n) % 2)[:, None],
    "labels of too few": lambda n: np.arange(n - 1) % 2,
    "no labels": lambda n: None,
}


def blobs(n: int = 24, n_columns: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, n_columns)) + 2.0 * y[:, None], y


X, Y = blobs()
X.flags.writeable = Y.flags.writeable = False


def _changed(change: Callable[[Any], Any], y: Any = Y) -> Callable[[], Case]:
    return lambda: Case(change(X.copy()), y)


def _asked(new: Callable[[Any], Any]) -> Callable[[], Case]:
    return lambda: Case(X, Y, new=new(X.copy()))


def _set(table: Any, place: Any, value: Any) -> Any:
    table[place] = value
    return table


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


# Changes of a table of numbers that keep it one: those of a sequence's steps too.

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "a constant column": lambda x: _set(x, (slice(None), 1), 7.0),
    "constant columns": lambda x: np.full_like(x, 3.0),
    "all zeros": np.zeros_like,
    "negative zeros": lambda x: np.where(x > 0, 0.0, -0.0),
    "collinear columns": lambda x: np.column_stack([x, x[:, :1], 2 * x[:, :1] - 3 * x[:, 1:2]]),
    "values at 1e150": lambda x: HUGE * x,
    "values at 1e-150": lambda x: TINY * x,
    "values at 1e300": lambda x: 1e300 * x,
    "huge and tiny columns": lambda x: x * np.resize([HUGE, TINY, 1.0], x.shape[1]),
    "one far outlier": lambda x: _set(x, (0, 0), 1e12),
    "an outlier at 1e150": lambda x: _set(x, (0, 0), HUGE),
    "an outlier at the largest number": lambda x: _set(x, (0, 0), np.finfo(float).max),
    "both ends of the numbers": lambda x: _set(
        _set(x, (0, 0), np.finfo(float).max), (1, 0), -np.finfo(float).max
    ),
    "duplicate rows": lambda x: x[np.arange(len(x)) // 4 * 4],
    "all rows alike": lambda x: np.repeat(x[:1], len(x), axis=0),
    "alike but for rounding": lambda x: 1.0 + 1e-16 * x,
    "far from zero": lambda x: 1e9 + x,
    "so far that it is rounded": lambda x: 1e17 + x,
    "subnormal numbers": lambda x: 5e-324 * np.round(10 * x),
    "the smallest number, once": lambda x: _set(np.zeros_like(x), (0, 0), 5e-324),
    "NaN": lambda x: _set(x, (2, 1), np.nan),
    "a column of NaN": lambda x: _set(x, (slice(None), 1), np.nan),
    "nothing but NaN": lambda x: np.full_like(x, np.nan),
    "infinity": lambda x: _set(x, (2, 1), np.inf),
    "minus infinity": lambda x: _set(x, (2, 1), -np.inf),
    "objects that are numbers": lambda x: x.astype(object),
    "objects that are text": lambda x: np.where(x > 0, "high", "low").astype(object),
    "objects of both kinds": lambda x: _set(x.astype(object), (0, 0), "text"),
    "integers beyond int64": lambda x: _set(x.astype(object), (0, 0), 2**70),
    "huge integers": lambda x: (x * 2**60).astype(np.int64),
    "small integers": lambda x: x.astype(np.int8),
    "truth values": lambda x: x > 0,
    "complex numbers": lambda x: x + 1j,
    "dates": lambda x: x.astype("datetime64[D]"),
    "float32": lambda x: x.astype(np.float32),
    "float32 near its end": lambda x: (x * 1e37).astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "long double": lambda x: x.astype(np.longdouble),
    "Fortran order": np.asfortranarray,
    "read-only": _read_only,
    "every second row of another": lambda x: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x: x[::-1],
    "another byte order": lambda x: x.astype(">f8"),
    "lists": lambda x: x.tolist(),
    "one column": lambda x: x[:, :1],
    "more columns than rows": lambda x: np.repeat(x, 20, axis=1) + np.arange(20 * x.shape[1]) * 0.1,
}

TABLES: Inputs = {
    **{name: _changed(change) for name, change in NUMBERS.items()},
    **{name: (lambda make=make: Case(X, make(len(X)))) for name, make in LABELS.items()},
    "one row": lambda: Case(X[:1], Y[:1]),
    "two rows": lambda: Case(X[:2], Y[:2]),
    "two rows of one class": lambda: Case(X[:3:2], Y[:3:2]),
    "two rows that are the same": lambda: Case(X[[0, 0]], Y[:2]),
    "three rows": lambda: Case(X[:3], Y[:3]),
    "no rows": lambda: Case(X[:0], Y[:0]),
    "no columns": lambda: Case(X[:, :0], Y),
    "one dimension": lambda: Case(X[:, 0], Y),
    "three dimensions": lambda: Case(X[:, :, None], Y),
    "nothing": lambda: Case(None, Y),
    "labels against all evidence": lambda: Case(np.repeat(X[:12], 2, axis=0), Y),
    "one against sixty": lambda: Case(np.vstack([X[:1]] + [X[1:] + 0.1] * 3), [1] + [0] * 69),
    "10,000 classes": lambda: Case(np.repeat(X, MANY // 24 + 1, axis=0)[:MANY], np.arange(MANY)),
    "a hundred classes": lambda: Case(np.repeat(X, 9, axis=0)[:200], np.arange(200) % 100),
    "CSR": lambda: Case(csr_array(np.maximum(X, 0)), Y),
    "CSR matrix of nothing": lambda: Case(csr_matrix(X.shape), Y),
    "CSR at 1e150": lambda: Case(csr_array(HUGE * np.maximum(X, 0)), Y),
    "asked about 1e300": _asked(lambda x: 1e300 * x),
    "asked about subnormal numbers": _asked(lambda x: 5e-324 * np.round(10 * x)),
    "asked about NaN": _asked(lambda x: _set(x, (0, 0), np.nan)),
    "asked about no rows": _asked(lambda x: x[:0]),
    "asked about other columns": _asked(lambda x: x[:, :2]),
    "asked about one row": _asked(lambda x: x[:1]),
    "asked about integers": _asked(lambda x: x.astype(int)),
}  # fmt: skip

# Sequences. Eight of three features, half of them of either class; a label for every step.

LENGTHS = (5, 9, 1, 7, 12, 3, 8, 6)


def steps_of(parts: Any) -> list[Any]:
    """Labels of steps that tell where they are."""
    return [np.where(np.arange(len(part)) % 4 < 2, "low", "high") for part in parts]


def walks(n_features: int = 3, lengths: Any = LENGTHS, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal((n, n_features)) + 3.0 * (np.arange(n) % 4 < 2)[:, None] + 2 * (i % 2)
        for i, n in enumerate(lengths)
    ]


def _sequences(parts: Any, y: Any = None, steps: Any = None, new: Any = None) -> Case:
    labels = np.arange(len(parts)) % 2 if y is None else y
    return Case(parts, labels, steps_of(parts) if steps is None else steps, new)


def _each(change: Callable[[Any], Any]) -> Callable[[], Case]:
    """The change of all steps together, cut into sequences again."""

    def make() -> Case:
        parts = walks()
        stack = change(np.vstack(parts))
        ends = np.cumsum(LENGTHS)
        new = [stack[end - n : end] for end, n in zip(ends, LENGTHS)]
        return Case(new, np.arange(len(parts)) % 2, steps_of(parts))

    return make


def _of_sequences(make: Callable[[int], Any]) -> Callable[[], Case]:
    """Labels of sequences, and of their steps."""

    def case() -> Case:
        parts = walks()
        ends, n = np.cumsum(LENGTHS), sum(LENGTHS)
        steps = make(n)
        if steps is not None:
            steps = [steps[end - k : end] for end, k in zip(ends, LENGTHS)]
        return Case(parts, make(len(parts)), steps)

    return case


SEQUENCES: Inputs = {
    **{name: _each(change) for name, change in NUMBERS.items()},
    **{name: _of_sequences(make) for name, make in LABELS.items()},
    "one sequence": lambda: _sequences(walks()[:1]),
    "two sequences": lambda: _sequences(walks()[:2]),
    "one sequence of one step": lambda: _sequences(walks()[2:3]),
    "sequences of one step": lambda: _sequences(walks(lengths=[1] * 8)),
    "sequences of two steps": lambda: _sequences(walks(lengths=[2] * 8)),
    "an empty sequence among others": lambda: _sequences([*walks(), np.empty((0, 3))]),
    "empty sequences": lambda: _sequences([np.empty((0, 3))] * 4),
    "no sequences": lambda: Case([], [], []),
    "nothing": lambda: Case(None, None, None),
    "a very long sequence": lambda: _sequences(walks(lengths=[20_000, 5, 5, 5])),
    "the same sequence many times": lambda: _sequences(walks()[:1] * 8),
    "the same sequence under two labels": lambda: _sequences(walks()[:1] * 2),
    "unlike numbers of features": lambda: _sequences([*walks()[:3], walks(2)[3]]),
    "no features": lambda: _sequences([np.empty((5, 0))] * 4),
    "one array": lambda: Case(walks()[4], None, steps_of(walks()[4:5])[0]),
    "four dimensions": lambda: Case(np.zeros((2, 3, 4, 5)), [0, 1], None),
    "steps that are not observed": lambda: _sequences(
        [_set(part, 0, np.nan) for part in walks()]
    ),
    "a sequence that is not observed": lambda: _sequences(
        [np.full((4, 3), np.nan), *walks()]
    ),
    "one state and then another, for ever": lambda: _sequences(
        [np.repeat([[0.0] * 3, [50.0] * 3], 30, axis=0)] * 4
    ),
    "10,000 classes": lambda: _sequences(
        walks(1, lengths=[2] * MANY), np.arange(MANY), [[2 * i, 2 * i + 1] for i in range(MANY)]
    ),
    "a hundred classes": lambda: _sequences(
        walks(1, lengths=[2] * 200), np.arange(200) % 100, [[i % 100, 5] for i in range(200)]
    ),
    "labels of another length": lambda: _sequences(walks(), steps=[part[1:] for part in walks()]),
    "asked about an empty sequence": lambda: _sequences(walks(), new=[np.empty((0, 3))]),
    "asked about no sequences": lambda: _sequences(walks(), new=[]),
    "asked about one step": lambda: _sequences(walks(), new=walks(lengths=[1])),
    "asked about 1e300": lambda: _sequences(walks(), new=[1e300 * part for part in walks()]),
    "asked about nothing observed": lambda: _sequences(walks(), new=[np.full((3, 3), np.nan)]),
    "asked about a very long sequence": lambda: _sequences(walks(), new=walks(lengths=[20_000])),
    "asked about other features": lambda: _sequences(walks(), new=walks(2)),
}  # fmt: skip

# Symbols.


def words(alphabet: Any = "abc", lengths: Any = LENGTHS, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    letters = np.array([*alphabet, None], dtype=object)[:-1]
    return [
        letters[np.sort(rng.integers(len(letters), size=n)) if i % 2 else
                rng.integers(len(letters), size=n)].tolist()
        for i, n in enumerate(lengths)
    ]  # fmt: skip


def _words(alphabet: Any, **rest: Any) -> Callable[[], Case]:
    return lambda: _sequences(words(alphabet), **rest)


SYMBOLS: Inputs = {
    "plain": _words("abc"),
    **{
        name: (lambda make=make: _of_sequences(make)()._replace(X=words()))
        for name, make in LABELS.items()
    },
    "one symbol": _words("a"),
    "two symbols": _words("ab"),
    "integers": lambda: _sequences([np.array(part) for part in words(range(3))]),
    "integers with gaps": _words([0, 7, 10**6]),
    "huge integers": _words([2**62, -(2**62), 0]),
    "integers beyond int64": _words([2**70, 1, 2]),
    "negative integers": _words([-5, -1, 3]),
    "whole floats": _words([0.0, 1.0, 2.0]),
    "negative zeros": _words([0.0, -0.0, 1.0]),
    "fractions": _words([0.5, 1.5]),
    "infinite symbols": _words([0.0, np.inf]),
    "NaN for a step": lambda: _sequences([[np.nan, *part] for part in words()]),
    "None for a step": lambda: _sequences([[None, *part] for part in words()]),
    "nothing but None": lambda: _sequences([[None] * 3] * 4),
    "a sequence of None": lambda: _sequences([[None] * 3, *words()]),
    "truth values": _words([True, False]),
    "unicode": _words(["größe", "データ", "a\u0301", "🙂"]),
    "lone surrogates": _words(["\ud800", "b"]),
    "empty text": _words(["", " ", "a"]),
    "very long text": _words(["a" * 10_000, "b"]),
    "bytes": _words([b"a", b"b"]),
    "text and numbers": _words(["a", 1]),
    "pairs": _words([("a", 1), ("b", 2)]),
    "text instead of lists": lambda: _sequences(["aabb", "abab"] * 3),
    "a symbol for every step": lambda: _sequences(
        [list(range(10 * i, 10 * i + n)) for i, n in enumerate(LENGTHS)]
    ),
    "10,000 symbols": lambda: _sequences([list(range(i, MANY, 4)) for i in range(4)]),
    "10,000 classes": lambda: _sequences(
        words("ab", lengths=[2] * MANY), np.arange(MANY),
        [[2 * i, 2 * i + 1] for i in range(MANY)],
    ),
    "a hundred classes": lambda: _sequences(
        words("ab", lengths=[2] * 200), np.arange(200) % 100, [[i % 100, 5] for i in range(200)]
    ),
    "one sequence": lambda: _sequences(words()[:1]),
    "two sequences": lambda: _sequences(words()[:2]),
    "sequences of one step": lambda: _sequences(words(lengths=[1] * 8)),
    "one step": lambda: _sequences([["a"]]),
    "an empty sequence among others": lambda: _sequences([*words(), []]),
    "empty sequences": lambda: _sequences([[]] * 4),
    "no sequences": lambda: Case([], [], []),
    "nothing": lambda: Case(None, None, None),
    "a very long sequence": lambda: _sequences(words(lengths=[20_000, 5, 5, 5])),
    "the same sequence many times": lambda: _sequences(words()[:1] * 8),
    "a symbol that occurs once": lambda: _sequences([["z", *words()[0]], *words()[1:]]),
    "one state and then another, for ever": lambda: _sequences([["a"] * 40 + ["b"] * 40] * 4),
    "asked about a new symbol": _words("abc", new=[["z"]]),
    "asked about another type": _words("abc", new=[[1, 2]]),
    "asked about an empty sequence": _words("abc", new=[[]]),
    "asked about nothing observed": _words("abc", new=[[None, None]]),
    "asked about a very long sequence": _words("abc", new=[["a", "b"] * 10_000]),
}  # fmt: skip

# Documents.


def counts(n: int = 24, n_words: int = 6, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    rates = np.where(np.arange(n)[:, None] % 2 == (np.arange(n_words) < n_words // 2), 2.0, 0.3)
    return rng.poisson(rates)


def _counted(change: Callable[[Any], Any]) -> Callable[[], Case]:
    return lambda: Case(change(counts()), Y)


DOCUMENTS: Inputs = {
    "plain": _counted(lambda x: x),
    **{name: (lambda make=make: Case(counts(), make(24))) for name, make in LABELS.items()},
    **{
        name: _counted(NUMBERS[name])
        for name in (
            "all zeros", "all rows alike", "duplicate rows", "read-only", "Fortran order", "lists",
            "one column", "backwards", "a constant column", "constant columns", "truth values",
            "every second row of another", "objects that are text", "complex numbers", "dates",
        )
    },
    "floats": _counted(lambda x: x.astype(float)),
    "float32": _counted(lambda x: x.astype(np.float32)),
    "int8": _counted(lambda x: x.astype(np.int8)),
    "objects": _counted(lambda x: x.astype(object)),
    "fractions": _counted(lambda x: x / 3),
    "subnormal numbers": _counted(lambda x: 5e-324 * x),
    "values at 1e-150": _counted(lambda x: TINY * x),
    "negative zeros": _counted(lambda x: np.where(x > 0, x, -0.0)),
    "negative counts": _counted(lambda x: x - 1),
    "NaN": _counted(lambda x: _set(x.astype(float), (0, 0), np.nan)),
    "infinity": _counted(lambda x: _set(x.astype(float), (0, 0), np.inf)),
    "values at 1e150": _counted(lambda x: HUGE * x),
    "a count of two thousand million": _counted(lambda x: _set(x, (0, 0), 2**31 - 1)),
    "counts of a thousand million": _counted(lambda x: x * 10**9),
    "counts beyond int64": _counted(lambda x: _set(x.astype(object), (0, 0), 2**70)),
    "a document of 100,000 words": _counted(lambda x: _set(x, (0, 0), 100_000)),
    "empty documents": _counted(lambda x: _set(x, slice(0, 8), 0)),
    "one document": lambda: Case(counts()[:1], Y[:1]),
    "two documents": lambda: Case(counts()[:2], Y[:2]),
    "one document of one word": lambda: Case([[1]], [0]),
    "one word, once": _counted(lambda x: _set(np.zeros_like(x), (0, 0), 1)),
    "documents of one word": lambda: Case(np.eye(6, dtype=int)[np.arange(24) % 6], Y),
    "a word that never occurs": _counted(lambda x: _set(x, (slice(None), 2), 0)),
    "no documents": lambda: Case(counts()[:0], Y[:0]),
    "no words": lambda: Case(counts()[:, :0], Y),
    "one dimension": lambda: Case(counts()[:, 0], Y),
    "nothing": lambda: Case(None, Y),
    "CSR": _counted(csr_array),
    "CSR matrix": _counted(csr_matrix),
    "CSR with stored zeros": lambda: Case(
        csr_array((np.zeros(3, int), np.arange(3), np.array([0, 1, 2, 3])), shape=(3, 6)),
        [0, 1, 0],
    ),
    "CSR with an entry twice": lambda: Case(
        csr_matrix((np.ones(4), np.array([0, 0, 1, 2]), np.array([0, 2, 4])), shape=(2, 3)),
        [0, 1],
    ),
    "10,000 words": lambda: Case(csr_array(np.eye(24, MANY, dtype=int)), Y),
    "10,000 classes": lambda: Case(np.tile(counts(10), (MANY // 10, 1)), np.arange(MANY)),
    "a hundred classes": lambda: Case(np.tile(counts(10), (20, 1)), np.arange(200) % 100),
    "one against sixty": lambda: Case(counts(61), [1] + [0] * 60),
    "asked about empty documents": lambda: Case(counts(), Y, new=np.zeros((3, 6), int)),
    "asked about a long document": lambda: Case(counts(), Y, new=np.full((1, 6), 10_000)),
    "asked about other words": lambda: Case(counts(), Y, new=counts()[:, :3]),
    "asked about no documents": lambda: Case(counts(), Y, new=counts()[:0]),
    "asked about NaN": lambda: Case(counts(), Y, new=np.full((2, 6), np.nan)),
}  # fmt: skip

# Views, by name.


def views(**change: Any) -> dict[str, Any]:
    return {"image": X.copy(), "words": counts() > 0, **change}


def _views(new: Any = None, **change: Any) -> Callable[[], Case]:
    return lambda: Case(views(**change), Y, new=new)


VIEWS: Inputs = {
    "plain": _views(),
    **{
        f"image: {name}": (lambda change=change: Case(views(image=change(X.copy())), Y))
        for name, change in NUMBERS.items()
    },
    "an empty view": _views(tags=np.empty((24, 0))),
    "no views": lambda: Case({}, Y),
    "views of no rows": lambda: Case({"a": X[:0], "b": X[:0]}, Y[:0]),
    "views of one row": lambda: Case({"a": X[:1], "b": X[:1]}, Y[:1]),
    "unlike numbers of rows": _views(tags=np.zeros((7, 2))),
    "a view whose name is no text": lambda: Case({1: X, 2: X}, Y),
    "a view that is constant": _views(tags=np.ones((24, 4))),
    "a view of zeros": _views(tags=np.zeros((24, 4))),
    "a view twice": _views(again=X.copy()),
    "a sparse view": _views(tags=csr_array(counts())),
    "an empty sparse view": _views(tags=csr_array((24, 4))),
    "a wide view": _views(tags=np.tile(X, (1, 300))),
    "a view of text": _views(tags=np.full((24, 1), "a", dtype=object)),
    "a view of None": _views(tags=None),
    "rows without a view": _views(tags=_set(X.copy(), slice(0, 6), np.nan)),
    "asked without a view": _views(new={"image": X}),
    "asked about a view more": _views(new=views(more=X)),
    "asked about a table": _views(new=X),
    "asked about no rows": _views(new={"image": X[:0], "words": counts()[:0]}),
}  # fmt: skip
