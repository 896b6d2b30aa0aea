"""Sequences: ragged batches in any of the usual layouts, with labels for steps or for sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names

from regbayes.data._table import check_classes

ID = "sequence_id"


@dataclass(frozen=True)
class SequenceTags:
    """What a sequence estimator takes and gives: the answer of its method `_sequence_tags()`.

    `regbayes.testing.check_sequence_estimator` chooses its checks and its data by it.

    Parameters
    ----------
    labels : {"none", "step", "sequence"}, default="none"
        Nothing, a label for every step, or one for a whole sequence.
    values : {"continuous", "categorical", "count"}, default="continuous"
        Real vectors, symbols, or non-negative integers.
    missing_steps : bool, default=True
        Steps that are NaN (or None) are taken.
    missing_labels : bool, default=False
        Partly labelled sequences are taken.

    Examples
    --------
    >>> SequenceTags(labels="step").values
    'continuous'
    """

    labels: Literal["none", "step", "sequence"] = "none"
    values: Literal["continuous", "categorical", "count"] = "continuous"
    missing_steps: bool = True
    missing_labels: bool = False


class SequenceMixin:
    """What every sequence estimator inherits: `lengths` is no metadata to be routed.

    It belongs to one stacked array; pipelines and searches, which route, pass lists.
    """

    __metadata_request__fit: ClassVar = {"lengths": UNUSED}
    __metadata_request__predict: ClassVar = {"lengths": UNUSED, "causal": UNUSED}
    __metadata_request__predict_proba: ClassVar = {"lengths": UNUSED, "causal": UNUSED}
    __metadata_request__decision_function: ClassVar = {"lengths": UNUSED}
    __metadata_request__transform: ClassVar = {"lengths": UNUSED}
    __metadata_request__score: ClassVar = {"lengths": UNUSED}


@dataclass(frozen=True, eq=False)
class Sequences:
    """A batch of ragged sequences, one after another in a single array.

    Parameters
    ----------
    values : ndarray
        Of shape (n_steps, n_features), with rows of NaN for unobserved steps; for symbols of shape
        (n_steps,), their places among the `categories`, -1 for unobserved steps.
    starts : ndarray of int64 of shape (n_sequences + 1,)
        Sequence ``i`` is ``values[starts[i]:starts[i + 1]]``.
    categories : ndarray, optional
        The symbols, sorted.
    stacked : bool, default=False
        Whether the caller gave the sequences as one array, and wants answers so.
    ids : ndarray, optional
        The `sequence_id` of every sequence of a DataFrame.
    rows : ndarray of int, optional
        The DataFrame's row that every step came from.

    Examples
    --------
    >>> batch = Sequences(np.arange(5.0)[:, None], np.array([0, 2, 5]))
    >>> len(batch), batch.n_steps
    (2, 5)
    >>> batch.give_back(np.array(["a", "b", "c", "d", "e"]))
    [array(['a', 'b'], dtype='<U1'), array(['c', 'd', 'e'], dtype='<U1')]
    """

    values: NDArray
    starts: NDArray
    categories: NDArray | None = None
    stacked: bool = False
    ids: NDArray | None = None
    rows: NDArray | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_steps(self) -> int:
        """Steps of all sequences together."""
        return int(self.starts[-1])

    @property
    def sizes(self) -> NDArray:
        """Steps of every sequence."""
        return np.diff(self.starts)

    def take(self, indices: NDArray) -> Sequences:
        """Some of the sequences, as a list of their own.

        Parameters
        ----------
        indices : ndarray of int or of bool

        Examples
        --------
        >>> batch = Sequences(np.arange(5.0)[:, None], np.array([0, 2, 5]))
        >>> batch.take(np.array([1])).values.ravel()
        array([2., 3., 4.])
        """
        chosen = np.arange(len(self))[indices]
        sizes = self.sizes[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        return Sequences(self.values[rows], starts, self.categories)

    def give_back(self, per_step: NDArray) -> list[NDArray] | NDArray:
        """Results for every step, in the layout in which the caller gave the sequences.

        A list, or a 3-D array, gets a list with an array for each sequence. One stacked array gets
        one stacked array, and a DataFrame gets one in the order of its rows.

        Parameters
        ----------
        per_step : ndarray of shape (n_steps, ...)

        Returns
        -------
        list of ndarray, or ndarray of the shape of `per_step`
        """
        if len(per_step) != self.n_steps:
            raise ValueError(f"{len(per_step)} results for {self.n_steps} steps")
        if not self.stacked:
            return np.split(per_step, self.starts[1:-1])
        if self.rows is None:
            return per_step
        back = np.empty_like(per_step)
        back[self.rows] = per_step
        return back


def check_sequences(
    estimator: Any,
    X: Any,
    lengths: Any = None,
    *,
    values: Literal["continuous", "categorical", "count"] = "continuous",
    reset: bool = True,
    allow_missing: bool = True,
    categories: NDArray | None = None,
    unknown: Literal["error", "missing"] = "error",
) -> Sequences:
    """Check sequences in any layout; sets or compares the estimator's features.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_`, and `feature_names_in_` from a DataFrame.
    X : list of arrays, array or DataFrame
        A list (tuple, object array) of arrays of shape (n_steps, n_features) or (n_steps,), of
        nested lists or of DataFrames; an array of shape (n_sequences, n_steps, n_features); one
        array of shape (n_steps, n_features), which is one sequence or, with `lengths`, many; a
        DataFrame whose rows have a column or an index level `sequence_id`. Rows of a sequence keep
        their order, need not be together, and sequences are in order of their first row.
    lengths : array-like of int, optional
        Lengths of the sequences that are stacked in one array.
    values : {"continuous", "categorical", "count"}, default="continuous"
    reset : bool, default=True
        True when fitting; False compares with what the estimator was fitted on.
    allow_missing : bool, default=True
        Take steps that are not observed: NaN (in any feature) or None.
    categories : ndarray, optional
        Symbols known from training. Without, they are found.
    unknown : {"error", "missing"}, default="error"
        What any other symbol is: a mistake, or a step that is not observed.

    Returns
    -------
    Sequences
        In memory of its own: the caller's is never changed.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> batch = check_sequences(BaseEstimator(), [[[1, 2], [3, 4]], [[5, None]]])
    >>> batch.values
    array([[ 1.,  2.],
           [ 3.,  4.],
           [nan, nan]])
    >>> batch.starts
    array([0, 2, 3])
    >>> check_sequences(BaseEstimator(), [["b", "a"], ["b"]], values="categorical").values
    array([1, 0, 1])
    """
    batch = _take_apart(X, lengths)
    convert = _symbols if values == "categorical" else _numbers
    arrays = [convert(part, _place(batch.ids, i)) for i, part in enumerate(batch.parts)]
    _check_features(estimator, batch, [array.shape[1] for array in arrays], reset)
    starts = np.cumsum([0] + [len(array) for array in arrays], dtype=np.int64)
    stack = np.ascontiguousarray(np.concatenate(arrays))
    at = partial(_step_place, batch.ids, starts)
    missing = _is_missing(stack) if values == "categorical" else np.isnan(stack)
    if reset:
        _check_observed(missing)
    unobserved = missing.any(axis=1)
    if unobserved.any() and not allow_missing:
        raise _error(
            f"X has missing values (NaN or None), first at {at(unobserved.argmax())}",
            f"fill them in or drop those steps: {type(estimator).__name__} does not take them",
        )
    if values == "categorical":
        remedy = ', or all such steps by unknown="missing"' * hasattr(estimator, "unknown")
        stack, categories = _encode(stack[:, 0], unobserved, categories, unknown, remedy, at)
    else:
        _check_range(stack, values, at)
        stack[unobserved] = np.nan
        categories = None
    return Sequences(stack, starts, categories, batch.stacked, batch.ids, batch.rows)


def check_step_labels(
    sequences: Sequences,
    y: Any,
    *,
    allow_missing: bool = True,
    classes: NDArray | None = None,
    part: bool = False,
) -> tuple[NDArray, NDArray]:
    """Check one label for every step; returns the classes, and each label's place among them.

    Parameters
    ----------
    sequences : Sequences
    y : list of arrays, or array
        In the layout of the sequences: an array or list for each; for a 3-D array a 2-D one; for a
        stacked array or a DataFrame one label for each row. Labels of any one type.
    allow_missing : bool, default=True
        Take labels that are unknown: None, NaN or, among numbers, -1; None in the place of an
        array for a whole sequence. Otherwise -1 is a class like any other.
    classes : ndarray, optional
        Classes known from training. Without, they are found.
    part : bool, default=False
        There are more sequences elsewhere: that these have one class, or none, is no error.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    codes : ndarray of int64 of shape (n_steps,)
        -1 where the label is unknown, and -2 where it is none of the `classes` given.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> batch = check_sequences(BaseEstimator(), [[0.5, 1.5], [2.5]])
    >>> check_step_labels(batch, [["rest", None], ["move"]])
    (array(['move', 'rest'], dtype='<U4'), array([ 1, -1,  0]))
    """
    labels = _labels_of_steps(sequences, y)
    missing = _is_missing(labels)
    if not allow_missing and missing.any():
        raise _error(
            f"y has no label at {_step_place(sequences.ids, sequences.starts, missing.argmax())}",
            "label every step, or cut the sequences where their labels end",
        )
    if allow_missing:
        missing[~missing] = labels[~missing] == -1
    if classes is not None:
        return _known(labels, missing, classes)
    return _found(labels, missing) if part else _classes(labels, missing)


def check_sequence_labels(
    sequences: Sequences, y: Any, *, classes: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """Check one label for every sequence; returns the classes, and each label's place among them.

    Parameters
    ----------
    sequences : Sequences
    y : array-like of shape (n_sequences,)
        Labels of any one type. A pandas Series whose index is called `sequence_id` is aligned with
        the ids of a DataFrame.
    classes : ndarray, optional
        Classes known from training. Without, they are found.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    codes : ndarray of int64 of shape (n_sequences,)
        -2 where the label is none of the `classes` given.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> batch = check_sequences(BaseEstimator(), [[0.5, 1.5], [2.5]])
    >>> check_sequence_labels(batch, ["walk", "run"])
    (array(['run', 'walk'], dtype='<U4'), array([1, 0]))
    """
    _check_given(y, "sequence")
    index: Any = getattr(y, "index", None)
    if sequences.ids is not None and getattr(index, "name", None) == ID and index.is_unique:
        y = y.reindex(sequences.ids)  # groupby sorts the ids, and ours are in order of appearance
    labels = np.atleast_1d(np.array(y, dtype=object))
    if labels.ndim > 1 or any(map(_is_container, labels)):
        raise _error(
            "y must have one label for each sequence, and it has arrays",
            "pass a flat list or array, as long as the list of sequences",
        )
    if len(labels) != len(sequences):
        raise _error(
            f"y has {len(labels)} labels, but X has {len(sequences)} sequences",
            "pass one label for each sequence",
        )
    missing = _is_missing(labels)
    if missing.any():
        raise _error(
            f"y has no label for {_place(sequences.ids, missing.argmax())}",
            "label every sequence, or drop those that have no label",
        )
    return _classes(labels, missing) if classes is None else _known(labels, missing, classes)


# Layouts.


@dataclass(frozen=True)
class _Batch:
    parts: list[Any]  # an array-like for each sequence
    named: Any = ()  # what scikit-learn reads the names of the features from
    stacked: bool = False
    ids: NDArray | None = None
    rows: NDArray | None = None


def _take_apart(X: Any, lengths: Any) -> _Batch:
    _check_dense(X, "X")
    if hasattr(X, "iloc"):
        return _take_frame_apart(X.to_frame() if X.ndim == 1 else X, lengths)
    if hasattr(X, "to_pandas"):
        raise _error("X is a data frame, but not of pandas", "pass X.to_pandas()", TypeError)
    if not isinstance(X, (list, tuple)):
        X = np.asarray(X)
        of_arrays = X.dtype == object and any(map(_is_container, X.ravel()))
        if X.ndim in (1, 2) and not of_arrays:
            starts = _check_lengths(lengths, len(X))
            return _Batch(np.split(X, starts[1:-1]), stacked=True)
        if X.ndim != (1 if of_arrays else 3):
            raise _error(
                f"X has {X.ndim} dimensions",
                "pass a list of arrays of shape (n_steps, n_features)",
            )
    if lengths is not None:
        raise _error(
            "lengths goes with one stacked array, and X has its sequences apart already",
            "drop lengths; padding is cut away by [x[:n] for x, n in zip(X, lengths)]",
        )
    if len(X) == 0:
        raise _error("X has no sequences", "pass at least one")
    parts = [part.drop(columns=ID, errors="ignore") if _is_frame(part) else part for part in X]
    frames = [part for part in parts if _is_frame(part)]
    for i, part in enumerate(parts):
        if frames and list(getattr(part, "columns", ())) != list(frames[0].columns):
            raise _error(
                f"the columns of sequence {i} are not {list(frames[0].columns)}, as of the others",
                "give all sequences the same columns in the same order",
            )
    return _Batch(parts, frames[0] if frames else ())


def _take_frame_apart(frame: Any, lengths: Any) -> _Batch:
    if ID in frame.columns:
        ids, frame = frame[ID], frame.drop(columns=ID)
    elif ID in frame.index.names:
        ids = frame.index.get_level_values(ID)
    elif lengths is not None:
        starts = _check_lengths(lengths, len(frame))
        return _Batch(np.split(np.asarray(frame), starts[1:-1]), frame, stacked=True)
    else:
        raise _error(
            f"X is a DataFrame without a column or an index level {ID!r}",
            f"rename the column that tells the sequences apart, X.rename(columns={{...: {ID!r}}}), "
            "or pass lengths=, for a single sequence lengths=[len(X)]",
        )
    if lengths is not None:
        raise _error(f"X has {ID!r}, and lengths is given too", "drop one of them")
    codes, unique = ids.factorize()
    if len(codes) == 0:
        raise _error("X has no sequences", "pass at least one")
    if codes.min() < 0:
        raise _error(
            f"{ID!r} is missing in row {codes.argmin()}", "give every row the id of its sequence"
        )
    rows = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    parts = np.split(np.asarray(frame)[rows], ends[:-1])
    return _Batch(parts, frame, stacked=True, ids=np.asarray(unique), rows=rows)


def _check_lengths(lengths: Any, n_rows: int) -> NDArray:
    if n_rows == 0:
        raise _error("X has no steps", "pass at least one")
    array = np.asarray([n_rows] if lengths is None else lengths)
    remedy = "pass the number of steps of each sequence: [len(x) for x in sequences]"
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _error(f"lengths must be a list of integers, not {lengths!r}", remedy)
    if (array <= 0).any():
        at = (array <= 0).argmax()
        raise _error(
            f"lengths must be positive, and that of sequence {at} is {array[at]}",
            "drop empty sequences, with their labels",
        )
    if array.sum() != n_rows:
        raise _error(f"lengths sum to {array.sum()}, but X has {n_rows} rows", remedy)
    return np.cumsum([0, *array])


def _check_features(estimator: Any, batch: _Batch, widths: list[int], reset: bool) -> None:
    expected = widths[0] if reset else estimator.n_features_in_
    for i, width in enumerate(widths):
        if width != expected:
            other = "sequence 0 has" if reset else f"{type(estimator).__name__} is expecting"
            raise _error(
                f"{_place(batch.ids, i)} has {width} features, but {other} {expected} features",
                "give every sequence the shape (n_steps, n_features), with the same features in "
                "the same order as in training; a single sequence x goes as [x]",
            )
    _check_feature_names(estimator, batch.named, reset=reset)
    if reset:
        estimator.n_features_in_ = expected


# Values.


def _numbers(part: Any, place: str) -> NDArray:
    _check_dense(part, place)
    try:
        array = np.asarray(part)
        if array.dtype == object:
            array = np.where(_is_missing(array), np.nan, array)
        if array.dtype.kind in "cmM":
            raise TypeError(f"{array.dtype} is not a type of real numbers")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise _error(
            f"{place} is not an array of real numbers: {error}",
            "give every step the same number of features, and encode text, for example with "
            "sklearn.preprocessing.OrdinalEncoder",
        ) from error
    return _columns(array, place)


def _symbols(part: Any, place: str) -> NDArray:
    _check_dense(part, place)
    # As objects, for numpy would turn the list ["a", nan] into text.
    array = _columns(np.array(part, dtype=object), place)
    if array.shape[1] != 1:
        raise _error(
            f"{place} has {array.shape[1]} features, and symbols have one",
            "pass a list with a 1-D array of symbols for each sequence",
        )
    return array


def _columns(array: NDArray, place: str) -> NDArray:
    """A sequence of scalars as one column; what is no sequence is refused."""
    if array.ndim == 0:
        raise _error(
            f"{place} is a single value, {array.item()!r}",
            "pass a list of sequences, a single sequence x as [x], and text as list(text)",
        )
    if array.ndim > 2:
        raise _error(f"{place} has {array.ndim} dimensions", "pass one row for each step")
    if len(array) == 0:
        raise _error(f"{place} is empty", "drop it, with its labels")
    if array.size == 0:
        raise _error(f"{place} has 0 features", "pass at least one column")
    return array.reshape(len(array), -1)


def _check_observed(missing: NDArray) -> None:
    if missing.all(axis=0).any():
        raise _error(
            f"feature {missing.all(axis=0).argmax()} is missing at every step of every sequence",
            "drop this column, or look why it is never observed",
        )
    if missing.any(axis=1).all():
        raise _error(
            "no step has all its features: a step with a NaN counts as not observed",
            "fill the gaps, or drop the columns that have most of them",
        )


def _check_range(stack: NDArray, values: str, at: Callable[[Any], str]) -> None:
    if np.isinf(stack).any():
        step, feature = np.argwhere(np.isinf(stack))[0]
        raise _error(
            f"X contains infinity, first at {at(step)}, feature {feature}",
            "replace infinite values (they often come from a division by zero or a logarithm of "
            "zero); NaN marks a step as not observed",
        )
    if values == "count":
        wrong = (stack < 0) | (stack % 1 > 0)
        if wrong.any():
            step, feature = np.argwhere(wrong)[0]
            raise _error(
                f"X has {stack[step, feature]} at {at(step)}, feature {feature}: not a count",
                "pass non-negative integers, or choose a model of continuous values",
            )


# Names: symbols and labels.


def _encode(
    symbols: NDArray,
    missing: NDArray,
    categories: NDArray | None,
    unknown: str,
    remedy: str,
    at: Callable[[Any], str],
) -> tuple[NDArray, NDArray]:
    known = _one_kind(symbols[~missing], "X", "symbols")
    if categories is None:
        return _sorted_codes(known, missing, "X")
    codes = np.full(len(symbols), -1, dtype=np.int64)
    places = {symbol: code for code, symbol in enumerate(categories.tolist())}
    for step, symbol in zip(np.flatnonzero(~missing), known.tolist()):
        if symbol not in places and unknown == "error":
            some = ", ".join(map(repr, list(places)[:10])) + ", ..." * (len(places) > 10)
            raise _error(
                f"X has the symbol {symbol!r} at {at(step)}, which training did not have ({some})",
                "train on sequences with all symbols, or mark the step as not observed by None"
                + remedy,
            )
        codes[step] = places.get(symbol, -1)
    return codes, categories


def _labels_of_steps(sequences: Sequences, y: Any) -> NDArray:
    """Labels as they are, in the order of the steps."""
    _check_given(y, "step")
    if not isinstance(y, (list, tuple)):
        y = np.atleast_1d(np.asarray(y))
    whole = not sequences.stacked and all(each is None for each in y)  # sequences without labels
    if whole or any(map(_is_container, y)):
        return np.concatenate(_labels_of_each(sequences, y))
    if not sequences.stacked:
        raise _error(
            "y must have a label for each step, in an array for each sequence",
            "pass a list of arrays, each as long as its sequence",
        )
    if len(y) != sequences.n_steps:
        raise _error(
            f"y has {len(y)} labels, but X has {sequences.n_steps} steps",
            "pass one label for each row of X",
        )
    labels = np.array(y, dtype=object)
    return labels if sequences.rows is None else labels[sequences.rows]


def _labels_of_each(sequences: Sequences, y: Any) -> list[NDArray]:
    if len(y) != len(sequences):
        raise _error(
            f"y has labels for {len(y)} sequences, but X has {len(sequences)} sequences",
            "pass an array of labels for each sequence; a column of labels as y.ravel()",
        )
    parts = []
    for i, (part, length) in enumerate(zip(y, np.diff(sequences.starts))):
        labels = np.array([None] * length if part is None else part, dtype=object)
        if labels.shape != (length,):
            raise _error(
                f"y has labels of shape {labels.shape} for {_place(sequences.ids, i)}, "
                f"which has {length} steps",
                "pass one label for each step, None for those that have none",
            )
        parts.append(labels)
    return parts


def _classes(labels: NDArray, missing: NDArray) -> tuple[NDArray, NDArray]:
    if missing.all():
        raise _error("y has no labels at all", "label some steps of two classes or more")
    classes, codes = _found(labels, missing)
    check_classes(classes, len(codes))
    return classes, codes


def _found(labels: NDArray, missing: NDArray) -> tuple[NDArray, NDArray]:
    if missing.all():
        return np.empty(0, dtype=object), np.full(len(labels), -1, dtype=np.int64)
    codes, classes = _sorted_codes(_one_kind(labels[~missing], "y", "classes"), missing, "y")
    return classes, codes


def _known(labels: NDArray, missing: NDArray, classes: NDArray) -> tuple[NDArray, NDArray]:
    codes = np.full(len(labels), -1, dtype=np.int64)
    places = {name: code for code, name in enumerate(classes.tolist())}
    names = _one_kind(labels[~missing], "y", "classes")
    codes[~missing] = [places.get(name, -2) for name in names.tolist()]
    return classes, codes


def _sorted_codes(names: NDArray, missing: NDArray, whose: str) -> tuple[NDArray, NDArray]:
    codes = np.full(len(missing), -1, dtype=np.int64)
    try:
        unique, codes[~missing] = np.unique(names, return_inverse=True)
    except TypeError as error:
        raise _error(f"{whose} cannot be sorted: {error}", "use numbers or text") from error
    return codes, unique


def _one_kind(names: NDArray, whose: str, what: str) -> NDArray:
    """Objects that name something, as an array of the type that they have in common."""
    examples = {type(name): name for name in names}.values()
    for name in filter(_is_container, examples):
        raise _error(f"{whose} must name {what}, and has {name!r}", "one value for each step")
    kinds = {_kind(name): name for name in examples}
    if len(kinds) > 1:
        raise _error(
            f"{whose} mixes {' and '.join(f'{kind} ({name!r})' for kind, name in kinds.items())}",
            "make all of one type, for example by str",
        )
    if "text" in kinds:
        return names.astype(str)
    if "truth" in kinds:
        return names.astype(bool)
    if "number" not in kinds:
        return names
    numbers = np.array(names.tolist())
    if numbers.dtype.kind == "f" and not np.all(
        (numbers == np.floor(numbers)) & np.isfinite(numbers)
    ):
        raise _error(
            f"{whose} must name {what}, and has continuous values",
            "cut them into bins, for example with sklearn.preprocessing.KBinsDiscretizer",
        )
    return numbers


def _kind(name: Any) -> str:
    if isinstance(name, (bool, np.bool_)):
        return "truth"
    if isinstance(name, Real):
        return "number"
    return "text" if isinstance(name, str) else type(name).__name__


# Small words.


def _error(wrong: str, remedy: str, kind: type[Exception] = ValueError) -> Exception:
    return kind(f"{wrong}.\nTo mend it: {remedy}.")


def _check_dense(X: Any, place: str) -> None:
    if issparse(X):
        raise _error(f"{place} is sparse", "pass a dense array, by .toarray()", TypeError)


def _check_given(y: Any, whose: str) -> None:
    if y is None:
        raise _error("this estimator requires y to be passed", f"pass a label for each {whose}")


def _place(ids: NDArray | None, sequence: Any) -> str:
    name = "" if ids is None else f" ({ID} {ids[sequence]!s})"
    return f"sequence {sequence}{name}"


def _step_place(ids: NDArray | None, starts: NDArray, step: Any) -> str:
    sequence = np.searchsorted(starts, step, side="right") - 1
    return f"{_place(ids, sequence)}, step {step - starts[sequence]}"


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _is_container(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


@np.vectorize(otypes=[bool])
def _is_missing(value: Any) -> bool:
    # By name, for pandas' NA is not to be compared and pandas not to be imported.
    return type(value).__name__ in {"NoneType", "NAType", "NaTType"} or (
        not _is_container(value) and value != value
    )
