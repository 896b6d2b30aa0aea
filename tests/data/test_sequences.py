"""Ragged batches: one result from every layout, errors that say where and how to mend it."""

import subprocess
import sys
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator

from regbayes.data import (
    Sequences,
    check_sequence_labels,
    check_sequences,
    check_step_labels,
)

RNG = np.random.default_rng(0)
X = [RNG.standard_normal((n, 2)) for n in (4, 2, 3)]
LENGTHS = [4, 2, 3]
STACK = np.concatenate(X)
SYMBOLS = [["b", "a", "c", "a"], ["c", "c"], ["a", "b", "b"]]
LABELS = [[0, 1, 1, 0], [1, 1], [0, 0, 1]]


def check(X, lengths=None, **options):
    return check_sequences(BaseEstimator(), X, lengths, **options)


def frame_of(X, **columns):
    """A long DataFrame; ids sort the other way round than they appear."""
    ids = np.repeat([f"id{9 - i}" for i in range(len(X))], [len(x) for x in X])
    values = np.concatenate([np.reshape(x, (len(x), -1)) for x in X])
    names = list("abcdefgh")[: values.shape[1]]
    return pd.DataFrame(values, columns=names).assign(sequence_id=ids, **columns)


def with_item(item, at=1):
    return [item if i == at else x for i, x in enumerate(X)]


def with_value(value, dtype=float):
    """The batch with one value changed, in sequence 1, step 1, feature 0."""
    other = X[1].astype(dtype)
    other[1, 0] = value
    return with_item(other)


# Layouts.


@st.composite
def batches(draw, values):
    """A ragged batch: floats with gaps, counts with gaps, or symbols with gaps."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    if values == "categorical":
        item = st.sampled_from(["a", "bb", "c", None])
        batch = [draw(st.lists(item, min_size=n, max_size=n)) for n in lengths]
        batch[0][0] = "a"
        return [np.array(x, dtype=object) for x in batch]
    n_features = draw(st.integers(1, 3))
    number = st.integers(0, 9).map(float) if values == "count" else st.floats(-1e300, 1e300)
    row = st.lists(number | st.just(np.nan), min_size=n_features, max_size=n_features)
    batch = [np.array(draw(st.lists(row, min_size=n, max_size=n))) for n in lengths]
    batch[0][0] = 1.0  # something is observed
    return batch


def layouts(batch):
    """The same batch in every layout: how to pass it, and the rows that answers come in."""
    lengths = [len(x) for x in batch]
    stack = np.concatenate(batch)
    n = len(stack)
    frame = frame_of(batch)
    step = np.concatenate([np.arange(m) for m in lengths])
    sequence = np.repeat(np.arange(len(batch)), lengths)
    scattered = np.lexsort((sequence, step))
    objects = np.empty(len(batch), dtype=object)
    objects[:] = batch
    apart = {
        "tuple": tuple(batch),
        "nested lists": [x.tolist() for x in batch],
        "nested tuples": [tuple(map(tuple, x)) if x.ndim > 1 else tuple(x) for x in batch],
        "object array": objects,
        "arrays of objects": [x.astype(object) for x in batch],
        "columns": [x.reshape(len(x), -1) for x in batch],
        "frames": [frame[sequence == i] for i in range(len(batch))],
        "frames without ids": [
            frame[sequence == i].drop(columns="sequence_id") for i in range(len(batch))
        ],
        "reversed views": [x[::-1].copy()[::-1] for x in batch],
        "Fortran order": [np.asfortranarray(x) for x in batch],
    }
    for name, form in apart.items():
        yield name, form, None, None
    yield "stacked", stack, lengths, np.arange(n)
    yield "stacked, lengths in an array", stack, np.array(lengths, dtype=np.uint8), np.arange(n)
    yield "frame with lengths", frame.drop(columns="sequence_id"), lengths, np.arange(n)
    yield "id column", frame, None, np.arange(n)
    yield "id in the index", frame.set_index("sequence_id"), None, np.arange(n)
    indexed = frame.assign(step=step).set_index(["step", "sequence_id"])
    yield "id among index levels", indexed, None, np.arange(n)
    yield "scattered rows", frame.iloc[scattered], None, scattered
    if len(set(lengths)) == 1:
        yield "3-D", np.stack([x.reshape(len(x), -1) for x in batch]), None, None
    if len(batch) == 1:
        yield "one array", stack, None, np.arange(n)


@pytest.mark.parametrize("values", ["continuous", "categorical", "count"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_layout_gives_the_same_sequences_and_gets_answers_in_its_own(values, data):
    batch = data.draw(batches(values))
    expected = check(batch, values=values)
    assert expected.starts.tolist() == np.cumsum([0] + [len(x) for x in batch]).tolist()
    answers = np.arange(2 * expected.n_steps).reshape(-1, 2)
    for name, form, lengths, rows in layouts(batch):
        found = check(form, lengths, values=values)
        np.testing.assert_array_equal(found.values, expected.values, err_msg=name)
        np.testing.assert_array_equal(found.starts, expected.starts, err_msg=name)
        if values == "categorical":
            np.testing.assert_array_equal(found.categories, expected.categories)
        back = found.give_back(answers)
        if rows is None:
            assert isinstance(back, list), name
            assert [len(part) for part in back] == [len(x) for x in batch]
            back, rows = np.concatenate(back), np.arange(expected.n_steps)
        assert isinstance(back, np.ndarray), name
        np.testing.assert_array_equal(back, answers[rows], err_msg=name)


@pytest.mark.parametrize("values", ["continuous", "categorical", "count"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_what_is_not_observed_is_not_observed_at_all(values, data):
    batch = data.draw(batches(values))
    found = check(batch, values=values).values
    if values == "categorical":
        unobserved = np.array([symbol is None for x in batch for symbol in x])
        np.testing.assert_array_equal(found == -1, unobserved)
    else:
        unobserved = np.isnan(np.concatenate(batch)).any(axis=1)
        assert np.isnan(found[unobserved]).all()
        np.testing.assert_array_equal(found[~unobserved], np.concatenate(batch)[~unobserved])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 3))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_answers_of_any_shape_come_back(lengths, n_axes):
    batch = check([np.zeros((n, 1)) for n in lengths])
    answers = RNG.standard_normal((sum(lengths), *[2] * n_axes))
    np.testing.assert_array_equal(np.concatenate(batch.give_back(answers)), answers)
    with pytest.raises(ValueError, match="results for"):
        batch.give_back(answers[1:])


def test_one_array_is_one_sequence():
    batch = check(STACK)
    assert len(batch) == 1
    assert batch.n_steps == 9
    assert isinstance(batch.give_back(np.arange(9)), np.ndarray)
    assert check(STACK[:, 0]).values.shape == (9, 1)
    assert len(check([STACK])) == 1
    assert isinstance(check([STACK]).give_back(np.arange(9)), list)


def test_a_list_of_flat_lists_is_a_list_of_sequences_with_one_feature():
    batch = check([[1.0, 2.0], [3.0, 4.0]])
    assert batch.values.shape == (4, 1)
    assert batch.starts.tolist() == [0, 2, 4]


def test_frames_give_their_ids_in_order_of_appearance():
    assert check(frame_of(X)).ids.tolist() == ["id9", "id8", "id7"]
    numbered = frame_of(X).assign(sequence_id=[7, 7, 3, 3, 7, 7, 5, 5, 3])
    batch = check(numbered)
    assert batch.ids.tolist() == [7, 3, 5]
    np.testing.assert_array_equal(batch.values, STACK[[0, 1, 4, 5, 2, 3, 8, 6, 7]])


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "boolean", "object"])
def test_missing_values_of_pandas_are_not_observed(dtype):
    frame = pd.DataFrame({"sequence_id": [1, 1, 2], "a": pd.array([1, None, 0], dtype=dtype)})
    np.testing.assert_array_equal(check(frame).values, [[1], [np.nan], [0]])
    np.testing.assert_array_equal(check([frame["a"]]).values, [[1], [np.nan], [0]])
    np.testing.assert_array_equal(check(frame, values="categorical").values, [1, -1, 0])


def test_a_series_is_a_frame_of_one_column():
    series = frame_of([[1.0, 2.0], [3.0]]).set_index("sequence_id")["a"]
    batch = check(series)
    assert batch.starts.tolist() == [0, 2, 3]
    text = pd.Series(["x", "y", None], dtype="string")
    assert check(text, [1, 2], values="categorical").values.tolist() == [0, 1, -1]


# Memory.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f8", np.int8, np.uint64, bool])
def test_any_type_of_number_becomes_float64(dtype):
    batch = [np.array([[1, 0], [0, 1]], dtype=dtype), np.array([[1, 1]], dtype=dtype)]
    found = check(batch).values
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [1, 1]])


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda path: [np.asfortranarray(x) for x in X], id="Fortran"),
        pytest.param(lambda path: [np.repeat(x, 2, axis=1)[:, ::2] for x in X], id="strided"),
        pytest.param(lambda path: [np.frombuffer(x.tobytes()).reshape(-1, 2) for x in X], id="ro"),
        pytest.param(lambda path: np.load(path, mmap_mode="r")[None], id="memory map"),
        pytest.param(lambda path: np.load(path, mmap_mode="r"), id="stacked memory map"),
        pytest.param(lambda path: np.asfortranarray(STACK), id="stacked Fortran"),
    ],
)
def test_the_result_has_good_memory_of_its_own(form, tmp_path):
    np.save(tmp_path / "X.npy", STACK)
    given = form(tmp_path / "X.npy")
    found = check(given).values
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert type(found) is np.ndarray
    assert not any(np.shares_memory(found, part) for part in given)
    np.testing.assert_array_equal(found, STACK)


def test_gaps_are_not_made_in_the_callers_memory():
    table = STACK.copy()
    table[3, 0] = np.nan
    check(table)
    assert table[3, 1] == STACK[3, 1]


def test_arrays_do_not_need_pandas():
    code = (
        "import sys; sys.modules['pandas'] = None;"  # which makes its import fail
        "import numpy as np; from sklearn.base import BaseEstimator;"
        "from regbayes.data import check_sequences, check_step_labels;"
        "batch = check_sequences(BaseEstimator(), [np.zeros((2, 1)), [[1.0]]]);"
        "print(check_step_labels(batch, [[1, None], [0]])[1])"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "[ 1 -1  0]"


# What the estimator remembers.


def test_the_estimator_remembers_its_features():
    estimator = BaseEstimator()
    check_sequences(estimator, frame_of(X))
    assert estimator.n_features_in_ == 2
    assert estimator.feature_names_in_.tolist() == ["a", "b"]
    check_sequences(estimator, frame_of(X), reset=False)
    with pytest.raises(ValueError, match="feature names"):
        check_sequences(estimator, frame_of(X).rename(columns={"a": "z"}), reset=False)
    with pytest.raises(ValueError, match="same order"):
        check_sequences(estimator, frame_of(X)[["b", "a", "sequence_id"]], reset=False)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        check_sequences(estimator, X, reset=False)
    check_sequences(estimator, [x[:, :1] for x in X])
    assert estimator.n_features_in_ == 1
    assert not hasattr(estimator, "feature_names_in_")


def test_names_of_features_are_strings_or_none_at_all():
    estimator = BaseEstimator()
    check_sequences(
        estimator, frame_of(X).rename(columns={"a": 0, "b": 1}).set_index("sequence_id")
    )
    assert not hasattr(estimator, "feature_names_in_")


def test_symbols_are_places_among_those_of_training():
    estimator = BaseEstimator()
    batch = check_sequences(estimator, SYMBOLS, values="categorical")
    assert batch.values.tolist() == [1, 0, 2, 0, 2, 2, 0, 1, 1]
    assert batch.values.dtype == np.int64
    assert batch.categories.tolist() == ["a", "b", "c"]
    assert estimator.n_features_in_ == 1
    options = {"values": "categorical", "reset": False, "categories": batch.categories}
    later = check_sequences(estimator, [["c", None, np.nan], ["a"]], **options)
    assert later.values.tolist() == [2, -1, -1, 0]
    assert later.categories is batch.categories
    all_missing = check_sequences(estimator, [[None, None]], **options)
    assert all_missing.values.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("symbols", "categories"),
    [
        ([[3, -1], [3]], [-1, 3]),
        ([[3.0, np.nan], [1.0]], [1, 3]),
        ([[True, False], [True]], [False, True]),
        ([np.array(["x", "yy"]), np.array(["zzz"])], ["x", "yy", "zzz"]),
        ([np.array([0, 1], dtype=np.uint8), np.array([2.0])], [0, 1, 2]),
        ([["a", np.nan], ["b", None]], ["a", "b"]),
    ],
)
def test_symbols_may_have_any_one_type(symbols, categories):
    assert check(symbols, values="categorical").categories.tolist() == categories


def check_new(symbols, estimator=None, **options):
    """Symbols for a model that knows a and b."""
    estimator = BaseEstimator() if estimator is None else estimator
    known = check_sequences(estimator, [["b", "a"]], values="categorical").categories
    options = {"values": "categorical", "reset": False, "categories": known, **options}
    return check_sequences(estimator, symbols, **options)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "z", "aa", None]), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    )
)
def test_unknown_symbols_may_be_taken_for_unobserved_steps(symbols):
    found = check_new(symbols, unknown="missing")
    assert found.values.tolist() == [
        {"a": 0, "b": 1}.get(symbol, -1) for x in symbols for symbol in x
    ]
    assert found.categories.tolist() == ["a", "b"]
    if any(symbol in ("z", "aa") for x in symbols for symbol in x):
        with pytest.raises(ValueError, match="which training did not have"):
            check_new(symbols)
    else:
        np.testing.assert_array_equal(check_new(symbols).values, found.values)


def test_without_known_symbols_none_is_unknown():
    found = check(SYMBOLS, values="categorical", unknown="missing")
    assert found.values.tolist() == [1, 0, 2, 0, 2, 2, 0, 1, 1]


def test_symbols_of_another_type_are_unknown_too():
    assert check_new([[0, 1], [2]], unknown="missing").values.tolist() == [-1, -1, -1]


def test_an_unknown_symbol_is_an_error_that_names_the_option_of_estimators_that_have_it():
    class Lenient(BaseEstimator):
        def __init__(self, unknown="error"):
            self.unknown = unknown

    for estimator, has in ((Lenient(), True), (BaseEstimator(), False)):
        with pytest.raises(ValueError, match="the symbol 'z' at sequence 0, step 1") as caught:
            check_new([["a", "z"]], estimator)
        assert "To mend it: " in str(caught.value)
        assert ('unknown="missing"' in str(caught.value)) == has


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=8),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_some_of_the_sequences_are_sequences(lengths, chosen):
    batch = check([i + np.arange(n)[:, None] / 10 for i, n in enumerate(lengths)])
    assert batch.sizes.tolist() == lengths
    chosen = [i % len(lengths) for i in chosen]
    some = batch.take(np.array(chosen, dtype=int))
    assert len(some) == len(chosen)
    assert some.sizes.tolist() == [lengths[i] for i in chosen]
    for i, part in zip(chosen, some.give_back(some.values)):
        np.testing.assert_array_equal(part, i + np.arange(lengths[i])[:, None] / 10)
    mask = np.isin(np.arange(len(lengths)), chosen)
    np.testing.assert_array_equal(batch.take(mask).values, batch.take(np.flatnonzero(mask)).values)


# Errors: what is passed, what is wrong, what to do.

NAN = np.full((3, 2), np.nan)
BAD = [
    pytest.param([], {}, "X has no sequences", "at least one", id="empty list"),
    pytest.param(np.zeros((0, 2)), {}, "no steps", "at least one", id="no rows"),
    pytest.param(np.zeros((0, 3, 2)), {}, "no sequences", "at least one", id="empty 3-D"),
    pytest.param(frame_of(X)[:0], {}, "no sequences", "at least one", id="empty frame"),
    pytest.param(with_item(X[1][:0]), {}, "sequence 1 is empty", "drop it", id="empty sequence"),
    pytest.param(with_item([]), {}, "sequence 1 is empty", "drop it", id="empty list in list"),
    pytest.param(
        with_item(X[1][:, :0]), {}, "sequence 1 has 0 features", "one column", id="0 feat"
    ),
    pytest.param(
        with_item(X[1][:, :1]),
        {},
        "sequence 1 has 1 features, but sequence 0 has 2 features",
        "(n_steps, n_features)",
        id="other features",
    ),
    pytest.param(with_value(np.inf), {}, "sequence 1, step 1, feature 0", "replace", id="infinity"),
    pytest.param(with_value(-np.inf), {}, "contains infinity", "replace infinite", id="-infinity"),
    pytest.param(with_value("x", object), {}, "sequence 1 is not", "OrdinalEncoder", id="text"),
    pytest.param(with_item(["x", "y"]), {}, "could not convert string", "encode", id="strings"),
    pytest.param(with_value(1j, complex), {}, "complex128", "To mend it", id="complex"),
    pytest.param(
        with_value(1j, object), {}, "sequence 1 is not", "To mend it", id="complex object"
    ),
    pytest.param(
        with_item([[1, 2], [3]]), {}, "sequence 1 is not", "same number", id="ragged rows"
    ),
    pytest.param(
        with_value(10**400, object), {}, "sequence 1 is not", "To mend it", id="too large"
    ),
    pytest.param(
        with_item(np.array(["2020-01-01"], "M8[D]")), {}, "datetime64", "To mend it", id="dates"
    ),
    pytest.param(with_item(X[1][None]), {}, "sequence 1 has 3 dim", "one row", id="3-D in list"),
    pytest.param([1.0, 2.0], {}, "sequence 0 is a single value, 1.0", "[x]", id="flat list"),
    pytest.param(np.array(3.0), {}, "0 dimensions", "list of arrays", id="0-D"),
    pytest.param(3.0, {}, "0 dimensions", "list of arrays", id="scalar"),
    pytest.param(None, {}, "0 dimensions", "list of arrays", id="None"),
    pytest.param("text", {}, "0 dimensions", "list of arrays", id="str"),
    pytest.param({"a": X[0]}, {}, "0 dimensions", "list of arrays", id="dict"),
    pytest.param(np.zeros((2, 2, 2, 2)), {}, "4 dimensions", "list of arrays", id="4-D"),
    pytest.param(sparse.csr_array(X[0]), {}, "X is sparse", "toarray", id="sparse"),
    pytest.param(
        with_item(sparse.csr_array(X[1])), {}, "sequence 1 is sp", "toarray", id="sparse 1"
    ),
    pytest.param([NAN], {}, "feature 0 is missing at every step", "drop this column", id="nan"),
    pytest.param([[[1, None], [None, 1]]], {}, "no step has all", "fill the gaps", id="all gaps"),
    pytest.param(
        with_value(np.nan),
        {"allow_missing": False},
        "missing values (NaN or None), first at sequence 1, step 1",
        "BaseEstimator does not take them",
        id="gap",
    ),
    # lengths
    pytest.param(STACK, {"lengths": [4, 4]}, "sum to 8, but X has 9 rows", "len(x)", id="sum"),
    pytest.param(STACK, {"lengths": [9, 0]}, "of sequence 1 is 0", "drop empty", id="zero"),
    pytest.param(STACK, {"lengths": [10, -1]}, "of sequence 1 is -1", "drop empty", id="negative"),
    pytest.param(STACK, {"lengths": [4.0, 5.0]}, "list of integers", "len(x)", id="float"),
    pytest.param(STACK, {"lengths": [True] * 9}, "list of integers", "len(x)", id="bool"),
    pytest.param(STACK, {"lengths": 9}, "list of integers", "len(x)", id="number"),
    pytest.param(STACK, {"lengths": []}, "list of integers", "len(x)", id="no lengths"),
    pytest.param(X, {"lengths": LENGTHS}, "sequences apart", "drop lengths", id="list, lengths"),
    pytest.param(STACK[None], {"lengths": [9]}, "apart", "padding", id="3-D, lengths"),
    # frames
    pytest.param(
        frame_of(X).drop(columns="sequence_id"), {}, "without a column", "rename", id="no id"
    ),
    pytest.param(pd.Series([1.0]), {}, "without a column", "lengths=[len(X)]", id="series, no id"),
    pytest.param(frame_of(X), {"lengths": LENGTHS}, "lengths is given", "drop one", id="both"),
    pytest.param(
        frame_of(X).assign(sequence_id=[1, 1, None] * 3),
        {},
        "missing in row 2",
        "id of",
        id="NA id",
    ),
    pytest.param(
        frame_of(X)[["sequence_id"]], {}, "(sequence_id id9) has 0 f", "one", id="only id"
    ),
    pytest.param(
        frame_of(with_value(np.inf)),
        {},
        "sequence 1 (sequence_id id8), step 1",
        "",
        id="inf in frame",
    ),
    pytest.param(
        [frame_of(X[:1]), frame_of(X[:1]).rename(columns={"b": "z"})],
        {},
        "columns of sequence 1 are not ['a', 'b']",
        "same columns",
        id="columns",
    ),
    pytest.param([frame_of(X[:1]), X[1]], {}, "columns of sequence 1", "same", id="frame, array"),
    # counts
    pytest.param(
        [[0], [2, -1]], {"values": "count"}, "-1.0 at sequence 1, step 1", "non-neg", id="-1"
    ),
    pytest.param([[1, 2.5]], {"values": "count"}, "2.5 at sequence 0, step 1", "non-neg", id="2.5"),
    # symbols
    pytest.param(
        [["a"], [1]], {"values": "categorical"}, "mixes text ('a') and number (1)", "str", id="mix"
    ),
    pytest.param(["ab"], {"values": "categorical"}, "single value, 'ab'", "list(text)", id="word"),
    pytest.param([[0.5]], {"values": "categorical"}, "continuous", "KBinsDiscretizer", id="real"),
    pytest.param(STACK, {"values": "categorical"}, "2 features", "1-D array", id="2-D symbols"),
    pytest.param([[None]], {"values": "categorical"}, "every step", "drop", id="no symbols"),
    pytest.param([[[1], [2, 3]]], {"values": "categorical"}, "[2, 3]", "one", id="ragged symbols"),
    pytest.param(
        [["a", "b"], ["a", "z"]],
        {"values": "categorical", "categories": np.array(["a", "b"])},
        "the symbol 'z' at sequence 1, step 1, which training did not have ('a', 'b')",
        "None",
        id="unknown symbol",
    ),
    pytest.param(
        [[0]],
        {"values": "categorical", "categories": np.array(["a", "b"])},
        "the symbol 0",
        "None",
        id="symbol of another type",
    ),
]


@pytest.mark.parametrize(("batch", "options", "wrong", "remedy"), BAD)
def test_bad_sequences_are_refused_with_a_remedy(batch, options, wrong, remedy):
    with pytest.raises((ValueError, TypeError)) as caught:
        check(batch, **options)
    assert wrong in str(caught.value)
    assert "To mend it: " in str(caught.value)
    assert remedy in str(caught.value)


def test_new_sequences_have_the_features_of_training():
    estimator = BaseEstimator()
    check_sequences(estimator, X)
    for new in ([x[:, :1] for x in X], STACK[:, :1], [STACK[0]]):
        with pytest.raises(ValueError) as caught:
            check_sequences(estimator, new, reset=False)
        assert "sequence 0 has 1 features, but BaseEstimator is expecting 2" in str(caught.value)
        assert "a single sequence x goes as [x]" in str(caught.value)


def test_a_frame_of_another_library_is_refused():
    class Other:
        def to_pandas(self):
            return frame_of(X)

    with pytest.raises(TypeError, match=r"To mend it: pass X.to_pandas\(\)"):
        check(Other())


def test_new_sequences_may_be_wholly_unobserved():
    estimator = BaseEstimator()
    check_sequences(estimator, X)
    assert np.isnan(check_sequences(estimator, [NAN], reset=False).values).all()


# Labels of steps.


def coded(y, batch=X, **options):
    return check_step_labels(check(batch), y, **options)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=st.data())
def test_labels_in_every_layout_give_the_same_codes(data):
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    names = data.draw(
        st.sampled_from([["no", "yes", None], [3, 7, None], [-5, 2, -1], [False, True, None]])
    )
    y = [data.draw(st.lists(st.sampled_from(names), min_size=n, max_size=n)) for n in lengths]
    y = [[names[0], names[1]], *y]  # two classes at least
    batch = [np.zeros((len(labels), 1)) for labels in y]
    flat = [label for labels in y for label in labels]
    classes, codes = coded(y, batch)
    assert classes.tolist() == names[:2]
    known = np.array([label is not None and label != -1 for label in flat])
    np.testing.assert_array_equal(codes == -1, ~known)
    assert classes[codes[known]].tolist() == [label for label, k in zip(flat, known) if k]

    stacked = check(np.concatenate(batch), [len(labels) for labels in y])
    frame = frame_of(batch, label=pd.Series(flat, dtype=object))
    order = np.argsort(frame.groupby("sequence_id").cumcount(), kind="stable")
    forms = [
        (check(batch), [np.array(labels, dtype=object) for labels in y]),
        (check(batch), tuple(map(tuple, y))),
        (check(batch), [pd.Series(labels) for labels in y]),
        (stacked, flat),
        (stacked, np.array(flat, dtype=object)),
        (check(frame.drop(columns="label")), frame["label"]),
        (check(frame.drop(columns="label").iloc[order]), frame["label"].iloc[order]),
    ]
    for sequences, labels in forms:
        found_classes, found = check_step_labels(sequences, labels)
        np.testing.assert_array_equal(found_classes, classes)
        np.testing.assert_array_equal(found, codes)
        assert found.dtype == np.int64


def test_labels_of_a_3d_array_are_a_2d_array():
    batch = check(np.zeros((3, 2, 1)))
    assert check_step_labels(batch, np.array([[0, 1], [1, 1], [0, 0]]))[1].tolist() == [
        0, 1, 1, 1, 0, 0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([[1.0, 2.0, np.nan, 1.0], [1.0, 1.0], [2.0, 2.0, 2.0]], [1, 2]),
        ([[1, 2, -1, 1], [1, 1], [2, 2, 2]], [1, 2]),
        ([[1, 2, pd.NA, 1], [1, 1], [2, 2, 2]], [1, 2]),
        ([["1", "2", np.nan, "1"], ["1", "1"], ["2", "2", "2"]], ["1", "2"]),
        ([np.array([1, 2, np.nan, 1]), np.array([1, 1]), np.array([2, 2, 2])], [1, 2]),
    ],
)
def test_any_mark_of_a_missing_label_is_understood(labels, classes):
    found, codes = coded(labels)
    assert found.tolist() == classes
    assert codes.tolist() == [0, 1, -1, 0, 0, 0, 1, 1, 1]


def test_a_whole_sequence_may_be_unlabelled():
    assert coded([LABELS[0], None, LABELS[2]])[1].tolist() == [0, 1, 1, 0, -1, -1, 0, 0, 1]


def test_minus_one_is_a_class_where_labels_may_not_be_missing():
    y = [[-1, 1, 1, -1], [1, 1], [1, 1, -1]]
    classes, codes = coded(y, allow_missing=False)
    assert classes.tolist() == [-1, 1]
    assert codes.tolist() == [0, 1, 1, 0, 1, 1, 1, 1, 0]
    with pytest.raises(ValueError, match=r"only one class, 1, (.|\n)* -1 means unknown"):
        coded(y)


def test_labels_may_be_coded_by_the_classes_of_training():
    classes = np.array(["a", "b", "c"])
    found, codes = coded([["c", "a", None, "z"], ["a", "a"], None], classes=classes)
    assert found is classes
    assert codes.tolist() == [2, 0, -1, -2, 0, 0, -1, -1, -1]


class Colour(Enum):
    RED = 1
    BLUE = 2


FIRST = [0, 1, 1, 0]
BAD_LABELS = [
    pytest.param(None, "requires y to be passed", "label for each step", id="no y"),
    pytest.param([FIRST, [1], [0, 0, 1]], "(1,) for sequence 1, which has 2", "None", id="short"),
    pytest.param([FIRST, [[1], [1]], [0, 0, 1]], "(2, 1) for sequence 1", "one label", id="column"),
    pytest.param([FIRST, [1, 1]], "2 sequences, but X has 3", "each sequence", id="too few"),
    pytest.param([0, 1, 0], "a label for each step", "list of arrays", id="one per sequence"),
    pytest.param(np.zeros(9), "a label for each step", "list of arrays", id="stacked"),
    pytest.param(3, "a label for each step", "list of arrays", id="scalar"),
    pytest.param([[1] * 4, [1] * 2, [1] * 3], "only one class, 1", "leave a class out", id="one"),
    pytest.param([[None] * 4, [None] * 2, [None] * 3], "no labels at all", "some steps", id="none"),
    pytest.param([FIRST, ["a", "b"], [0, 0, 1]], "mixes number (", "one type", id="mixed"),
    pytest.param([FIRST, [True, False], [0] * 3], "mixes number (", "one type", id="bool"),
    pytest.param([[0.5] * 4, [1.5] * 2, [1] * 3], "must name classes", "KBins", id="continuous"),
    pytest.param([[np.inf] * 4, [1] * 2, [2] * 3], "must name classes", "KBins", id="infinite"),
    pytest.param([FIRST, [1, [2, 3]], [0] * 3], "has [2, 3]", "To mend it", id="nested"),
    pytest.param(
        [[Colour.RED] * 4, [Colour.BLUE] * 2, [Colour.RED] * 3], "sorted", "numbers", id="enum"
    ),
]


@pytest.mark.parametrize(("y", "wrong", "remedy"), BAD_LABELS)
def test_bad_labels_of_steps_are_refused_with_a_remedy(y, wrong, remedy):
    with pytest.raises(ValueError) as caught:
        coded(y)
    assert wrong in str(caught.value)
    assert "To mend it: " in str(caught.value)
    assert remedy in str(caught.value)


def test_stacked_labels_are_as_many_as_rows():
    batch = check(STACK, LENGTHS)
    with pytest.raises(ValueError, match="y has 8 labels, but X has 9 steps"):
        check_step_labels(batch, np.zeros(8))
    with pytest.raises(ValueError, match=r"9 sequences, but X has 3 (.|\n)*y.ravel\(\)"):
        check_step_labels(batch, np.zeros((9, 1)))


def test_a_missing_label_that_is_not_taken_is_placed():
    with pytest.raises(ValueError, match="no label at sequence 1, step 1"):
        coded([FIRST, [1, None], [0, 0, 1]], allow_missing=False)
    with pytest.raises(ValueError, match="no label at sequence 2, step 0"):
        coded([FIRST, [1, 0], [None, 0, 1]], allow_missing=False)


# Labels of sequences.


@pytest.mark.parametrize("names", [["a", "b"], [False, True], [-1, 1], [-5, 2], [1.0, 2.0]])
@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series])
def test_labels_of_sequences_are_places_among_the_classes(names, form):
    y = form([names[1], names[0], names[1]])
    classes, codes = check_sequence_labels(check(X), y)
    assert classes.tolist() == names
    assert codes.tolist() == [1, 0, 1]


def test_a_series_with_ids_is_aligned_with_the_frame():
    frame = frame_of(X, label=np.repeat(["no", "yes", "yes"], LENGTHS))
    y = frame.groupby("sequence_id")["label"].first()
    assert y.tolist() == ["yes", "yes", "no"]  # sorted by id
    batch = check(frame.drop(columns="label"))
    assert check_sequence_labels(batch, y)[1].tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match=r"no label for sequence 1 \(sequence_id id8\)"):
        check_sequence_labels(batch, y.drop("id8"))
    with pytest.raises(ValueError, match="9 labels, but X has 3 sequences"):
        check_sequence_labels(batch, frame.set_index("sequence_id")["label"])


@pytest.mark.parametrize(
    ("y", "wrong", "remedy"),
    [
        pytest.param(None, "requires y", "each sequence", id="no y"),
        pytest.param([0, 1], "2 labels, but X has 3 sequences", "one label", id="too few"),
        pytest.param(LABELS, "one label for each sequence", "flat", id="labels of steps"),
        pytest.param(np.zeros((3, 1)), "one label for each sequence", "flat", id="column"),
        pytest.param([0, None, 1], "no label for sequence 1", "drop those", id="missing"),
        pytest.param([0, np.nan, 1], "no label for sequence 1", "drop those", id="NaN"),
        pytest.param([1, 1, 1], "only one class, 1", "leave a class out", id="one class"),
        pytest.param([0.5, 1.5, 2.5], "must name classes", "KBins", id="continuous"),
        pytest.param([0, "a", 1], "mixes", "one type", id="mixed"),
    ],
)
def test_bad_labels_of_sequences_are_refused_with_a_remedy(y, wrong, remedy):
    with pytest.raises(ValueError) as caught:
        check_sequence_labels(check(X), y)
    assert wrong in str(caught.value)
    assert "To mend it: " in str(caught.value)
    assert remedy in str(caught.value)


def test_sequences_can_be_made_by_hand():
    batch = Sequences(np.zeros((3, 1)), np.array([0, 1, 3]))
    assert len(batch) == 2
    assert [part.tolist() for part in batch.give_back(np.arange(3))] == [[0], [1, 2]]
