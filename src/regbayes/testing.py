"""Checks for estimators of sequences: what scikit-learn's `check_estimator` asks of tables.

scikit-learn's own checks pass 2-D arrays with a row for each sample, and a sequence estimator
takes ragged lists. These pass sequences, in every layout, and look for the same manners.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline

from regbayes.data import SequenceTags

__all__ = ["check_sequence_estimator", "sequence_checks"]


def check_sequence_estimator(
    estimator: Any, *, on_skip: Callable[[str, str], None] | None = None
) -> None:
    """Run all checks that apply to a sequence estimator, and stop at the first that fails.

    The estimator has a method ``_sequence_tags()``, and these signatures: ``fit(X, y=None,
    lengths=None)``, ``predict(X, lengths=None)`` and alike ``predict_proba``,
    ``decision_function``, ``decode``, ``transform``; ``score(X, y=None)``; ``sample(n_steps)``.
    All but `fit` may be absent.

    Parameters
    ----------
    estimator : estimator
        Not fitted; it is cloned, never changed. The data are tiny, but there are more than a
        hundred fits: ask a sampler for few sweeps.
    on_skip : callable(name, reason), optional
        Told of every check that does not apply.

    Raises
    ------
    AssertionError
        With the name of the check and what it expects.

    See Also
    --------
    sequence_checks : the same, one by one.

    Examples
    --------
    >>> class AboveMean(BaseEstimator):
    ...     def _sequence_tags(self):
    ...         return SequenceTags(labels="none")
    ...     def fit(self, X, y=None, lengths=None):
    ...         self.mean_ = np.mean(np.concatenate(X), axis=0)
    ...         return self
    ...     def predict(self, X, lengths=None):
    ...         return [(x > self.mean_).all(axis=1) for x in X]
    >>> check_sequence_estimator(AboveMean())
    Traceback (most recent call last):
    AssertionError: AboveMean fails check_stacked_array: One stacked array ...
    """
    case = _Case(estimator)
    for check, needs in _CHECKS:
        lacking = [need for need in needs if not case.has(need)]
        try:
            if lacking:
                raise SkipTest(f"needs {' and '.join(lacking)}")
            _run(check, case)
        except SkipTest as skip:
            if on_skip is not None:
                on_skip(check.__name__, str(skip))


def sequence_checks(estimator: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """The checks that apply to a sequence estimator, one by one: for `pytest.mark.parametrize`.

    Parameters
    ----------
    estimator : estimator
        As in `check_sequence_estimator`.

    Yields
    ------
    name : str
    check : callable()
        Raises AssertionError, or `unittest.SkipTest` when an optional package is not there.

    Examples
    --------
    A test for each check::

        @pytest.mark.parametrize(("name", "check"), sequence_checks(MyEstimator()))
        def test_manners(name, check):
            check()
    """
    case = _Case(estimator)
    for check, needs in _CHECKS:
        if all(map(case.has, needs)):
            yield check.__name__, partial(_run, check, case)


# What the checks are made of.


@dataclass(frozen=True)
class _Case:
    """The estimator, and data of the kind that it takes."""

    estimator: Any

    def __post_init__(self) -> None:
        if not hasattr(self.estimator, "_sequence_tags"):
            raise TypeError(
                f"{type(self.estimator).__name__} has no method _sequence_tags; give it one that "
                "returns a regbayes.data.SequenceTags"
            )

    @cached_property
    def tags(self) -> SequenceTags:
        return self.estimator._sequence_tags()

    @cached_property
    def params(self) -> dict[str, Any]:
        return self.estimator.get_params(deep=False)

    def has(self, need: str) -> bool:
        tags = self.tags
        kinds = {
            "labels": tags.labels != "none",
            "labels of steps": tags.labels == "step",
            "answers for steps": tags.labels != "sequence",
            "numbers": tags.values != "categorical",
            "real numbers": tags.values == "continuous",
            "symbols": tags.values == "categorical",
            "counts": tags.values == "count",
            "missing steps": tags.missing_steps,
            "no missing steps": not tags.missing_steps,
            "missing labels": tags.missing_labels,
            "no missing labels": not tags.missing_labels,
            "n_jobs": "n_jobs" in self.params,
            "random_state": "random_state" in self.params,
        }
        return kinds[need] if need in kinds else hasattr(self.estimator, need)

    def new(self, **params: Any) -> Any:
        model = clone(self.estimator)
        seed = {"random_state": 0} if self.has("random_state") else {}
        return model.set_params(**seed | params)

    def data(
        self,
        lengths: tuple[int, ...] = (8, 5, 11, 6, 9, 7),
        n_classes: int = 2,
        n_features: int = 2,
    ) -> tuple[list[NDArray], Any]:
        """Sequences, and labels as the estimator takes them; every half has all classes."""
        rng = np.random.default_rng(0)
        X: list[NDArray] = []
        y: list[Any] = []
        for i, length in enumerate(lengths):
            if self.tags.labels == "sequence":
                classes = np.full(length, i % n_classes)
                y.append(i % n_classes)
            else:
                classes = (np.arange(length) // 2 + i) % n_classes
                y.append(classes)
            shape = (length, n_features)
            if self.tags.values == "categorical":
                X.append(2 * classes + np.arange(length) % 2)
            elif self.tags.values == "count":
                X.append(rng.poisson(2 + 5 * classes[:, None], shape).astype(float))
            else:  # in eighths, which any float holds
                X.append(4 * classes[:, None] + np.round(8 * rng.standard_normal(shape)) / 8)
        return X, np.array(y) if self.tags.labels == "sequence" else y

    def fit(self, X: Any, y: Any, model: Any = None, **lengths: Any) -> Any:
        model = self.new() if model is None else model
        return model.fit(X, **lengths) if self.tags.labels == "none" else model.fit(X, y, **lengths)

    @cached_property
    def _fitted(self) -> Any:
        return self.fit(*self.data())

    def fitted(self) -> tuple[Any, list[NDArray], Any]:
        # Copied, so that no check sees what another did; a copy costs less than a fit.
        return copy.deepcopy(self._fitted), *self.data()

    def methods(self) -> list[str]:
        names = ("predict", "predict_proba", "decision_function", "decode", "transform")
        return [name for name in names if hasattr(self.estimator, name)]

    def per_step(self) -> list[str]:
        """Methods with an answer for every step."""
        if self.tags.labels == "sequence":
            return [name for name in self.methods() if name == "decode"]
        return [name for name in self.methods() if name != "transform"]

    def answers(self, model: Any, X: Any, **lengths: Any) -> dict[str, NDArray]:
        return {name: _flat(getattr(model, name)(X, **lengths)) for name in self.methods()}

    def answers_of_fit(
        self, X: Any, y: Any, model: Any = None, **lengths: Any
    ) -> dict[str, NDArray]:
        """Fit and answer for the same sequences."""
        return self.answers(self.fit(X, y, model, **lengths), X, **lengths)

    def score(self, model: Any, X: Any, y: Any) -> Any:
        return model.score(X) if self.tags.labels == "none" else model.score(X, y)

    def assert_usable(self, model: Any, X: Any) -> None:
        """Finite answers, one for each step or sequence, and predictions that are classes."""
        for name, answer in self.answers(model, X).items():
            if name != "transform":
                expected = sum(map(len, X)) if name in self.per_step() else len(X)
                assert len(answer) == expected, (
                    f"{name} gives {len(answer)} answers, not {expected}"
                )
            if answer.dtype.kind == "f":
                assert np.isfinite(answer).all(), f"{name} gives values that are not finite"
            if name == "predict" and self.tags.labels != "none":
                assert np.isin(answer, model.classes_).all(), "predict gives what is no class"

    def assert_accepted(self, X: Any, y: Any) -> None:
        self.assert_usable(self.fit(X, y), X)

    def assert_same_as_list(
        self, X: Any, y: Any, other_X: Any, other_y: Any, rows: Any = slice(None), **lengths: Any
    ) -> None:
        """Another form of the same data gives the answers that the list gives."""
        expected = self.answers_of_fit(X, y)
        for name in self.per_step():
            expected[name] = expected[name][rows]
        _assert_same(self.answers_of_fit(other_X, other_y, **lengths), expected)

    def stacked(self, y: Any) -> Any:
        """Labels for sequences that are stacked."""
        return np.concatenate(y) if self.tags.labels == "step" else y

    def with_gaps(self, X: list[NDArray]) -> list[NDArray]:
        """The same sequences, some steps not observed."""
        X = [x.astype(object if self.tags.values == "categorical" else float) for x in X]
        X[0][2] = X[1][0] = X[1][-1] = None
        return X

    def is_refused(self, X: Any, y: Any, *words: str, **lengths: Any) -> None:
        """Neither `fit` nor any other method takes these sequences."""
        _refused(lambda: self.fit(X, y, **lengths), *words)
        model, _, _ = self.fitted()
        for name in self.methods():
            _refused(partial(getattr(model, name), X, **lengths), *words)


_CHECKS: list[tuple[Callable[[_Case], None], tuple[str, ...]]] = []


def _check(*needs: str) -> Callable[[Callable[[_Case], None]], Callable[[_Case], None]]:
    """Add a check for estimators that have all these needs."""

    def add(check: Callable[[_Case], None]) -> Callable[[_Case], None]:
        _CHECKS.append((check, needs))
        return check

    return add


def _run(check: Callable[[_Case], None], case: _Case) -> None:
    try:
        check(case)
    except SkipTest:
        raise
    except Exception as error:
        what = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(
            f"{type(case.estimator).__name__} fails {check.__name__}: {check.__doc__}\n"
            f"{what}{error}"
        ) from error


def _flat(answer: Any) -> NDArray:
    return np.concatenate(answer) if isinstance(answer, list) else np.asarray(answer)


def _assert_same(
    found: dict[str, NDArray], expected: dict[str, NDArray], rtol: float = 0.0
) -> None:
    for name, answer in expected.items():
        if rtol and answer.dtype.kind == "f":
            np.testing.assert_allclose(found[name], answer, rtol, rtol, err_msg=f"in {name}")
        else:
            np.testing.assert_array_equal(found[name], answer, err_msg=f"in {name}")


def _refused(call: Callable[[], Any], *words: str) -> None:
    try:
        call()
    except (ValueError, TypeError) as error:
        message = str(error)
    else:
        raise AssertionError("no error was raised")
    for word in words:
        assert word.lower() in message.lower(), f"the error does not say {word!r}: {message}"


def _frame(X: list[NDArray]) -> tuple[Any, NDArray, NDArray]:
    """A long DataFrame, and the sequence and the step of its rows."""
    try:
        import pandas as pd
    except ImportError:
        raise SkipTest("needs pandas") from None
    values = np.concatenate([x.reshape(len(x), -1) for x in X])
    sequence = np.repeat(np.arange(len(X)), [len(x) for x in X])
    step = np.concatenate([np.arange(len(x)) for x in X])
    frame = pd.DataFrame(values, columns=list("abc")[: values.shape[1]])
    # Ids that sort the other way round: their order must be that of appearance.
    return frame.assign(sequence_id=[f"id{9 - i}" for i in sequence]), sequence, step


class _Reversed(TransformerMixin, BaseEstimator):
    """A transformer of sequences, to stand before the estimator in a pipeline."""

    def fit(self, X: Any, y: Any = None) -> Any:
        return self

    def transform(self, X: Any) -> list[NDArray]:
        return [x[::-1] for x in X]

    def __sklearn_is_fitted__(self) -> bool:
        return True


# Layouts in.


@_check()
def check_tuple(case: _Case) -> None:
    """A tuple of arrays is taken as a list of them."""
    X, y = case.data()
    case.assert_same_as_list(X, y, tuple(X), y if case.tags.labels == "sequence" else tuple(y))


@_check()
def check_nested_lists(case: _Case) -> None:
    """Nested lists are taken as lists of arrays."""
    X, y = case.data()
    case.assert_same_as_list(X, y, [x.tolist() for x in X], [labels.tolist() for labels in y])


@_check()
def check_object_array(case: _Case) -> None:
    """An object array of arrays is taken as a list of them."""
    X, y = case.data()
    array = np.empty(len(X), dtype=object)
    array[:] = X
    case.assert_same_as_list(X, y, array, y)


@_check()
def check_stacked_array(case: _Case) -> None:
    """One stacked array with `lengths` is taken as a list of arrays."""
    X, y = case.data()
    lengths = [len(x) for x in X]
    case.assert_same_as_list(X, y, np.concatenate(X), case.stacked(y), lengths=lengths)


@_check()
def check_lengths_as_array(case: _Case) -> None:
    """`lengths` may be an array of any integer type."""
    X, y = case.data()
    lengths = np.array([len(x) for x in X], dtype=np.uint8)
    case.assert_same_as_list(X, y, np.concatenate(X), case.stacked(y), lengths=lengths)


@_check()
def check_three_dimensions(case: _Case) -> None:
    """A 3-D array is taken as a list of sequences of equal length."""
    X, y = case.data(lengths=(6,) * 6)
    case.assert_same_as_list(X, y, np.stack([x.reshape(6, -1) for x in X]), np.stack(y))


@_check("answers for steps")
def check_one_array_is_one_sequence(case: _Case) -> None:
    """An array without `lengths` is one sequence."""
    X, y = case.data(lengths=(12,))
    case.assert_same_as_list(X, y, X[0], y[0])


@_check()
def check_predicting_for_one_array(case: _Case) -> None:
    """A fitted estimator takes one array without `lengths` as one sequence."""
    model, X, _ = case.fitted()
    _assert_same(case.answers(model, X[1]), case.answers(model, [X[1]]))


@_check("numbers")
def check_one_feature(case: _Case) -> None:
    """1-D arrays are sequences with one feature."""
    X, y = case.data(n_features=1)
    case.assert_same_as_list(X, y, [x[:, 0] for x in X], y)


@_check("symbols")
def check_symbols_in_a_column(case: _Case) -> None:
    """Symbols in a column are taken as those in a row."""
    X, y = case.data()
    case.assert_same_as_list(X, y, [x[:, None] for x in X], y)


@_check("symbols")
def check_symbols_of_text(case: _Case) -> None:
    """What symbols are called does not matter."""
    X, y = case.data()
    names = np.array(["a", "bb", "c", "dd"])
    case.assert_same_as_list(X, y, [names[x] for x in X], y)
    case.assert_same_as_list(X, y, [names[x].astype(object) for x in X], y)


@_check()
def check_frame_with_id_column(case: _Case) -> None:
    """A long DataFrame with a column `sequence_id` is taken as a list of arrays."""
    X, y = case.data()
    frame, _, _ = _frame(X)
    case.assert_same_as_list(X, y, frame, case.stacked(y))


@_check()
def check_frame_with_id_in_index(case: _Case) -> None:
    """A long DataFrame with an index level `sequence_id` is taken as a list of arrays."""
    X, y = case.data()
    frame, _, step = _frame(X)
    case.assert_same_as_list(X, y, frame.set_index("sequence_id"), case.stacked(y))
    frame = frame.assign(step=step).set_index(["sequence_id", "step"])
    case.assert_same_as_list(X, y, frame, case.stacked(y))


@_check()
def check_frame_with_scattered_rows(case: _Case) -> None:
    """Rows of a sequence need not be together, and answers come in the order of the rows."""
    X, y = case.data()
    frame, sequence, step = _frame(X)
    rows = np.lexsort((sequence, step))
    labels = case.stacked(y)[rows] if case.tags.labels == "step" else y
    case.assert_same_as_list(X, y, frame.iloc[rows], labels, rows=rows)


@_check()
def check_list_of_frames(case: _Case) -> None:
    """DataFrames in a list are taken as arrays, and a column `sequence_id` is no feature."""
    X, y = case.data()
    frame, sequence, _ = _frame(X)
    frames = [frame[sequence == i] for i in range(len(X))]
    case.assert_same_as_list(X, y, frames, y)
    case.assert_same_as_list(X, y, [f.drop(columns="sequence_id") for f in frames], y)


@_check("labels of steps")
def check_labels_in_a_series(case: _Case) -> None:
    """Labels of a DataFrame's rows may be a Series, whose index does not matter."""
    X, y = case.data()
    frame, _, _ = _frame(X)
    labels = frame.assign(label=case.stacked(y))["label"].iloc[::-1].reset_index(drop=True)
    case.assert_same_as_list(X, y, frame, labels.iloc[::-1])


# Layouts out.


@_check()
def check_list_in_list_out(case: _Case) -> None:
    """A list of sequences gets a list with an array for each, or an answer for each."""
    model, X, _ = case.fitted()
    _assert_lists(case, model, X, [len(x) for x in X])


@_check()
def check_three_dimensions_in_list_out(case: _Case) -> None:
    """A 3-D array gets a list with an array for each sequence."""
    X, y = case.data(lengths=(6,) * 6)
    array = np.stack([x.reshape(6, -1) for x in X])
    _assert_lists(case, case.fit(X, y), array, [6] * 6)


@_check()
def check_stacked_in_stacked_out(case: _Case) -> None:
    """One stacked array gets one stacked array."""
    model, X, _ = case.fitted()
    for name in case.per_step():
        answer = getattr(model, name)(np.concatenate(X), lengths=[len(x) for x in X])
        assert isinstance(answer, np.ndarray), f"{name} gives a {type(answer).__name__}"
        assert len(answer) == sum(map(len, X)), f"{name} gives {len(answer)} rows"


@_check()
def check_frame_in_stacked_out(case: _Case) -> None:
    """A DataFrame gets one array, with a row for each of its rows."""
    model, X, _ = case.fitted()
    frame, _, _ = _frame(X)
    model = case.fit(frame, case.stacked(case.data()[1]))
    for name in case.per_step():
        answer = getattr(model, name)(frame)
        assert isinstance(answer, np.ndarray), f"{name} gives a {type(answer).__name__}"
        assert len(answer) == len(frame), f"{name} gives {len(answer)} rows"


def _assert_lists(case: _Case, model: Any, X: Any, lengths: list[int]) -> None:
    for name in case.methods():
        answer = getattr(model, name)(X)
        assert len(answer) == len(X), f"{name} gives {len(answer)} answers for {len(X)} sequences"
        if name in case.per_step():
            assert isinstance(answer, list), f"{name} gives a {type(answer).__name__}, not a list"
            found = [len(part) for part in answer]
            assert found == lengths, f"{name} gives lengths {found}, not {lengths}"


# Memory and number types.


@_check("numbers")
def check_float32(case: _Case) -> None:
    """The type of the floats does not matter."""
    X, y = case.data()
    case.assert_same_as_list(X, y, [x.astype(np.float32) for x in X], y)


@_check()
def check_integers(case: _Case) -> None:
    """The type of the integers does not matter."""
    X, y = case.data()
    X = [np.abs(8 * x).astype(np.int64) for x in X]
    for kind in (np.int32, np.uint16, np.float64):
        case.assert_same_as_list(X, y, [x.astype(kind) for x in X], y)


@_check()
def check_byte_order(case: _Case) -> None:
    """Numbers may be in the byte order of another machine."""
    X, y = case.data()
    case.assert_same_as_list(X, y, [x.astype(x.dtype.newbyteorder()) for x in X], y)


@_check("numbers")
def check_fortran_order(case: _Case) -> None:
    """Arrays may be in Fortran's order."""
    X, y = case.data()
    case.assert_same_as_list(X, y, [np.asfortranarray(x) for x in X], y)


@_check()
def check_strided_views(case: _Case) -> None:
    """Arrays may be views with gaps."""
    X, y = case.data()
    case.assert_same_as_list(X, y, [np.repeat(x, 2, axis=0)[::2] for x in X], y)


@_check()
def check_read_only(case: _Case) -> None:
    """Memory that is read only is enough."""
    X, y = case.data()
    expected = case.answers_of_fit(X, y)
    for array in [*X, *(y if isinstance(y, list) else [y])]:
        array.flags.writeable = False
    _assert_same(case.answers_of_fit(X, y), expected)


@_check()
def check_memory_map(case: _Case) -> None:
    """Arrays may lie in files."""
    X, y = case.data()
    lengths = [len(x) for x in X]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, np.concatenate(X))
        mapped = np.load(path, mmap_mode="r")
        case.assert_same_as_list(X, y, mapped, case.stacked(y), lengths=lengths)
        parts = np.split(mapped, np.cumsum(lengths)[:-1])
        case.assert_same_as_list(X, y, parts, y)
        del mapped, parts  # some systems do not delete files that are open


@_check()
def check_inputs_are_unchanged(case: _Case) -> None:
    """No method changes what it is given."""
    X, y = case.data()
    X = case.with_gaps(X) if case.tags.missing_steps else X
    given = copy.deepcopy((X, y))
    model = case.fit(X, y)
    assert joblib.hash((X, y)) == joblib.hash(given), "fit changes its input"
    for name in case.methods():
        getattr(model, name)(X)
        assert joblib.hash((X, y)) == joblib.hash(given), f"{name} changes its input"
    case.fit(np.concatenate(X), case.stacked(y), lengths=[len(x) for x in X])
    assert joblib.hash((X, y)) == joblib.hash(given), "fit changes its input"


# Manners of an estimator.


@_check()
def check_init_does_no_work(case: _Case) -> None:
    """The constructor stores its parameters as they are, and nothing else."""
    given = {name: object() for name in case.params}
    model = type(case.estimator)(**given)
    for name, value in given.items():
        assert getattr(model, name) is value, f"__init__ changes the parameter {name}"
    extra = set(vars(model)) - set(given)
    assert not extra, f"__init__ sets {sorted(extra)}"


@_check()
def check_params_round_trip(case: _Case) -> None:
    """`set_params` takes what `get_params` gives, and refuses other names."""
    model = case.new()
    params = model.get_params(deep=False)
    again = type(model)(**params).set_params(**params)
    assert joblib.hash(again.get_params()) == joblib.hash(model.get_params())
    _refused(lambda: case.new().set_params(no_such_parameter=1), "no_such_parameter")


@_check()
def check_fit_leaves_params(case: _Case) -> None:
    """`fit` does not change parameters."""
    X, y = case.data()
    model = case.new()
    before = joblib.hash(model.get_params())
    case.fit(X, y, model)
    assert joblib.hash(model.get_params()) == before


@_check()
def check_invalid_parameters_are_named(case: _Case) -> None:
    """A parameter that makes no sense is an error of `fit`, which names it."""
    X, y = case.data()
    for name in case.params:
        model = clone(case.estimator).set_params(**{name: object()})
        _refused(partial(case.fit, X, y, model), name)


@_check()
def check_clone(case: _Case) -> None:
    """The clone of a fitted estimator is not fitted, and learns the same."""
    X, y = case.data()
    model = case.fit(X, y)
    copied = clone(model)
    learnt = [name for name in vars(copied) if name.endswith("_") and not name.startswith("_")]
    assert not learnt, f"a clone has {learnt}"
    _assert_same(case.answers_of_fit(X, y, copied), case.answers(model, X))


@_check()
def check_repr(case: _Case) -> None:
    """Fitted or not, the estimator has a short text."""
    model, _, _ = case.fitted()
    for text in (repr(case.estimator), repr(model)):
        assert type(model).__name__ in text, text


@_check()
def check_pickle(case: _Case) -> None:
    """A pickled estimator gives the same answers."""
    model, X, _ = case.fitted()
    again = pickle.loads(pickle.dumps(model))
    _assert_same(case.answers(again, X), case.answers(model, X))


@_check()
def check_fit_returns_self(case: _Case) -> None:
    """`fit` returns the estimator."""
    X, y = case.data()
    model = case.new()
    assert case.fit(X, y, model) is model


@_check()
def check_fitted_names(case: _Case) -> None:
    """Public attributes that `fit` adds end with an underscore."""
    model, _, _ = case.fitted()
    added = set(vars(model)) - set(vars(case.new()))
    wrong = sorted(name for name in added if not name.startswith("_") and not name.endswith("_"))
    assert not wrong, f"fit adds {wrong}"


@_check()
def check_unfitted(case: _Case) -> None:
    """Without `fit` there is a NotFittedError."""
    X, _ = case.data()
    for name in case.methods():
        try:
            getattr(case.new(), name)(X)
        except NotFittedError:
            continue
        raise AssertionError(f"{name} answers before fit")


@_check()
def check_n_features_in(case: _Case) -> None:
    """`n_features_in_` is the number of features."""
    model, X, _ = case.fitted()
    expected = X[0].reshape(len(X[0]), -1).shape[1]
    assert model.n_features_in_ == expected, f"{model.n_features_in_}, not {expected}"


@_check()
def check_feature_names_in(case: _Case) -> None:
    """A DataFrame's columns are remembered, compared, and forgotten by the next fit."""
    X, y = case.data()
    frame, _, _ = _frame(X)
    model = case.fit(frame, case.stacked(y))
    assert list(model.feature_names_in_) == [c for c in frame.columns if c != "sequence_id"]
    for name in case.methods():
        other = frame.rename(columns={"a": "z"})
        _refused(partial(getattr(model, name), other), "feature names")
    case.fit(X, y, model)
    assert not hasattr(model, "feature_names_in_"), "the names of an earlier fit are still there"


@_check("random_state")
def check_fit_is_repeatable(case: _Case) -> None:
    """With the same `random_state`, a second fit gives the same answers."""
    X, y = case.data()
    model = case.fit(X, y)
    expected = case.answers(model, X)
    _assert_same(case.answers_of_fit(X, y), expected)
    _assert_same(case.answers_of_fit(X, y, model), expected)


@_check("random_state")
def check_random_states(case: _Case) -> None:
    """`random_state` may be an integer, a RandomState, a Generator or None."""
    X, y = case.data()
    for make in (lambda: 1, lambda: np.random.RandomState(1), lambda: np.random.default_rng(1)):
        expected = case.answers_of_fit(X, y, case.new(random_state=make()))
        _assert_same(case.answers_of_fit(X, y, case.new(random_state=make())), expected)
    case.assert_usable(case.fit(X, y, case.new(random_state=None)), X)


@_check("random_state")
def check_global_random_state(case: _Case) -> None:
    """With a seed, numpy's global random state is not touched."""
    before = joblib.hash(np.random.get_state())  # noqa: NPY002
    case.answers_of_fit(*case.data())
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002


@_check("n_jobs")
def check_n_jobs(case: _Case) -> None:
    """Answers are the same, to the last bit, for any number of jobs."""
    X, y = case.data()
    # One chain would leave nothing to do for a second job.
    chains = {"n_chains": 4} if "n_chains" in case.params else {}
    expected = case.answers_of_fit(X, y, case.new(n_jobs=1, **chains))
    for n_jobs in (2, 4):
        _assert_same(case.answers_of_fit(X, y, case.new(n_jobs=n_jobs, **chains)), expected)


@_check()
def check_refit_forgets(case: _Case) -> None:
    """A fit on other data leaves nothing of the first."""
    X, y = case.data(lengths=(4, 5, 6, 7), n_classes=2)
    other_X, other_y = case.data(n_classes=3, n_features=3)
    model = case.fit(other_X, other_y, case.fit(X, y))
    _assert_same(case.answers(model, other_X), case.answers_of_fit(other_X, other_y))
    assert model.n_features_in_ == (1 if case.tags.values == "categorical" else 3)


# Answers.


@_check("predict", "labels")
def check_predictions_are_classes(case: _Case) -> None:
    """`predict` gives members of `classes_`, of their type."""
    model, X, _ = case.fitted()
    case.assert_usable(model, X)
    assert _flat(model.predict(X)).dtype == model.classes_.dtype


@_check("predict_proba")
def check_probabilities(case: _Case) -> None:
    """Probabilities are not negative, sum to one, and have a column for each class."""
    model, X, _ = case.fitted()
    shares = _flat(model.predict_proba(X))
    assert shares.ndim == 2, f"they have {shares.ndim} dimensions"
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
    if case.tags.labels != "none":
        assert shares.shape[1] == len(model.classes_), f"{shares.shape[1]} columns"


@_check("predict", "predict_proba", "labels")
def check_prediction_is_most_probable(case: _Case) -> None:
    """`predict` gives the class of largest probability."""
    model, X, _ = case.fitted()
    shares = _flat(model.predict_proba(X))
    predicted = np.searchsorted(model.classes_, _flat(model.predict(X)))
    mine = np.take_along_axis(shares, predicted[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(mine, shares.max(axis=1), rtol=1e-9)


@_check()
def check_order_of_sequences(case: _Case) -> None:
    """Answers do not depend on the order of the sequences."""
    model, X, _ = case.fitted()
    order = [3, 0, 5, 1, 4, 2]
    for name in case.methods():
        answer, moved = getattr(model, name)(X), getattr(model, name)([X[i] for i in order])
        for i, part in zip(order, moved):
            _assert_same({name: np.asarray(part)}, {name: np.asarray(answer[i])}, rtol=1e-9)


@_check()
def check_company_of_sequences(case: _Case) -> None:
    """A sequence alone gets the answer that it gets among others."""
    model, X, _ = case.fitted()
    for name in case.methods():
        answer = getattr(model, name)(X)
        for x, part in zip(X, answer):
            alone = getattr(model, name)([x])[0]
            _assert_same({name: np.asarray(alone)}, {name: np.asarray(part)}, rtol=1e-9)


@_check()
def check_answers_are_repeatable(case: _Case) -> None:
    """A fitted estimator gives the same answers again."""
    model, X, _ = case.fitted()
    _assert_same(case.answers(model, X), case.answers(model, X))


@_check()
def check_answering_changes_nothing(case: _Case) -> None:
    """Answers leave the fitted estimator as it was."""
    model, X, _ = case.fitted()
    before = joblib.hash(vars(model))
    for name in case.methods():
        getattr(model, name)(X)
        assert joblib.hash(vars(model)) == before, f"{name} changes the fitted estimator"


@_check("score")
def check_score(case: _Case) -> None:
    """`score` is a finite number."""
    model, X, y = case.fitted()
    score = case.score(model, X, y)
    assert isinstance(score, float), f"it is a {type(score).__name__}"
    assert np.isfinite(score), f"it is {score}"


@_check("score")
def check_score_of_frame(case: _Case) -> None:
    """`score` takes a DataFrame as a list of arrays."""
    X, y = case.data()
    frame, _, _ = _frame(X)
    labels = case.stacked(y)
    assert case.score(case.fit(frame, labels), frame, labels) == case.score(case.fit(X, y), X, y)


@_check("score", "labels of steps", "missing labels")
def check_score_of_missing_labels(case: _Case) -> None:
    """Steps without a label do not count in `score`, where all right is 1."""
    model, X, y = case.fitted()
    for mark in (None, np.nan, -1):
        marked = []
        for labels, answer in zip(y, model.predict(X)):
            known = (labels == answer) & (np.arange(len(labels)) % 3 != 1)
            marked.append(np.where(known, labels, mark))
        score = case.score(model, X, marked)
        assert score == 1, f"{score}, with {mark} for labels that are not known"


@_check("decode")
def check_decode(case: _Case) -> None:
    """`decode` gives a state for each step: an integer, not negative."""
    model, X, _ = case.fitted()
    states = _flat(model.decode(X))
    assert states.dtype.kind in "iu", f"they are {states.dtype}"
    assert states.shape == (sum(map(len, X)),)
    assert (states >= 0).all()


@_check("sample")
def check_sample(case: _Case) -> None:
    """`sample(n)` gives n steps that the estimator takes, or a tuple that starts with them."""
    model, _, _ = case.fitted()
    drawn = model.sample(7)
    steps = drawn[0] if isinstance(drawn, tuple) else drawn
    assert len(steps) == 7, f"{len(steps)} steps, not 7"
    case.assert_usable(model, [steps])


# Odd data.


@_check("answers for steps")
def check_one_sequence(case: _Case) -> None:
    """One sequence is enough."""
    case.assert_accepted(*case.data(lengths=(12,)))


@_check()
def check_sequences_of_one_step(case: _Case) -> None:
    """Sequences may have one step."""
    case.assert_accepted(*case.data(lengths=(1,) * 6))


@_check()
def check_unlike_lengths(case: _Case) -> None:
    """Sequences may have very different lengths."""
    case.assert_accepted(*case.data(lengths=(1, 300, 5)))


@_check("numbers")
def check_constant_feature(case: _Case) -> None:
    """A feature may be constant."""
    X, y = case.data()
    for x in X:
        x[:, 1] = 3
    case.assert_accepted(X, y)


@_check()
def check_constant_data(case: _Case) -> None:
    """All steps may be equal."""
    X, y = case.data()
    case.assert_accepted([np.full_like(x, 3) for x in X], y)


@_check("real numbers")
def check_huge_units(case: _Case) -> None:
    """Values may be of the order of 1e8."""
    X, y = case.data()
    case.assert_accepted([1e8 * x for x in X], y)


@_check("real numbers")
def check_tiny_units(case: _Case) -> None:
    """Values may be of the order of 1e-8."""
    X, y = case.data()
    case.assert_accepted([1e-8 * x for x in X], y)


@_check("real numbers")
def check_far_from_zero(case: _Case) -> None:
    """Values may be far from zero compared with their spread."""
    X, y = case.data()
    case.assert_accepted([x + 1e6 for x in X], y)


@_check("real numbers")
def check_far_from_training(case: _Case) -> None:
    """Values to answer for may be far from those of training."""
    model, X, _ = case.fitted()
    case.assert_usable(model, [1e4 * x for x in X])


@_check("missing steps")
def check_missing_steps(case: _Case) -> None:
    """Steps that are not observed are taken, and get answers."""
    X, y = case.data()
    case.assert_accepted(case.with_gaps(X), y)


@_check("missing steps", "numbers")
def check_partly_missing_steps(case: _Case) -> None:
    """A step with one NaN is a step that is not observed."""
    X, y = case.data()
    partly = case.with_gaps(X)
    for x, gaps in zip(X, partly):
        gaps[:, 0] = x[:, 0]
    case.assert_same_as_list(case.with_gaps(X), y, partly, y)


@_check("missing steps")
def check_unobserved_sequence(case: _Case) -> None:
    """A sequence of which nothing is observed gets answers."""
    model, X, _ = case.fitted()
    X = case.with_gaps(X)
    X[2][:] = None
    case.assert_usable(model, X)
    case.assert_usable(model, X[2:3])


@_check("no missing steps")
def check_missing_steps_are_refused(case: _Case) -> None:
    """Steps that are not observed are an error that says where they are."""
    X, y = case.data()
    X = [X[2], *case.with_gaps(X)[:2], *X[3:]]
    case.is_refused(X, y, "sequence 1")


# Labels.


@_check("labels")
def check_labels_of_any_type(case: _Case) -> None:
    """Labels may be of any type, `classes_` are sorted, and names do not matter."""
    X, y = case.data()
    model = case.fit(X, y)
    expected = {name: a for name, a in case.answers(model, X).items() if name != "predict"}
    for names in ([3, 7], [-5, 2], [False, True], ["no", "yes"], [1.0, 2.0]):
        for kind in (None, object):
            classes = np.array(names, dtype=kind)
            labels = classes[y] if isinstance(y, np.ndarray) else [classes[codes] for codes in y]
            other = case.fit(X, labels)
            np.testing.assert_array_equal(other.classes_, names)
            found = case.answers(other, X)
            _assert_same(found, expected)
            if "predict" in found:
                codes = np.searchsorted(model.classes_, _flat(model.predict(X)))
                np.testing.assert_array_equal(found["predict"], classes[codes])


@_check("labels")
def check_five_classes(case: _Case) -> None:
    """There may be more than two classes."""
    X, y = case.data(lengths=(6,) * 10, n_classes=5)
    model = case.fit(X, y)
    assert list(model.classes_) == [0, 1, 2, 3, 4]
    case.assert_usable(model, X)


@_check("labels of steps", "missing labels")
def check_missing_labels(case: _Case) -> None:
    """Labels that are None, NaN or -1 are unknown, and no class."""
    X, y = case.data()
    unknown = [np.arange(len(codes)) % 3 == 1 for codes in y]
    forms = [
        [np.where(gone, None, codes) for codes, gone in zip(y, unknown)],
        [np.where(gone, np.nan, codes) for codes, gone in zip(y, unknown)],
        [np.where(gone, -1, codes) for codes, gone in zip(y, unknown)],
    ]
    model = case.fit(X, forms[0])
    assert list(model.classes_) == [0, 1], f"classes_ are {model.classes_}"
    for labels in forms[1:]:
        case.assert_same_as_list(X, forms[0], X, labels)


@_check("labels of steps", "missing labels")
def check_unlabelled_sequence(case: _Case) -> None:
    """A sequence may have no labels, if others have."""
    X, y = case.data()
    y[1] = np.full(len(X[1]), -1)
    case.assert_accepted(X, y)


@_check("labels of steps", "missing labels")
def check_no_labels_at_all(case: _Case) -> None:
    """Without any label there is an error."""
    X, _ = case.data()
    _refused(lambda: case.new().fit(X, [np.full(len(x), None) for x in X]), "label")


@_check("labels", "no missing labels")
def check_missing_labels_are_refused(case: _Case) -> None:
    """A label that is None is an error that says where it is."""
    X, y = case.data()
    if case.tags.labels == "step":
        y[1] = y[1].astype(object)
        y[1][2] = None
    else:
        y = y.astype(object)
        y[1] = None
    _refused(lambda: case.fit(X, y), "sequence 1")


# Errors.


@_check()
def check_no_sequences(case: _Case) -> None:
    """An empty list is an error."""
    case.is_refused([], [])


@_check()
def check_empty_sequence(case: _Case) -> None:
    """A sequence without steps is an error that says which."""
    X, y = case.data()
    X[1] = X[1][:0]
    if case.tags.labels == "step":
        y[1] = y[1][:0]
    case.is_refused(X, y, "sequence 1")


@_check("numbers")
def check_infinity(case: _Case) -> None:
    """An infinite value is an error that says where it is."""
    X, y = case.data()
    X[1][2, 0] = np.inf
    case.is_refused(X, y, "sequence 1", "inf")


@_check("numbers")
def check_text(case: _Case) -> None:
    """Text in the place of numbers is an error that says where it is."""
    X, y = case.data()
    case.is_refused([X[0], np.full(X[1].shape, "text"), *X[2:]], y, "sequence 1")


@_check("numbers")
def check_complex_numbers(case: _Case) -> None:
    """Complex numbers are an error."""
    X, y = case.data()
    case.is_refused([x + 1j for x in X], y, "complex")


@_check("numbers")
def check_sparse_matrix(case: _Case) -> None:
    """A sparse matrix is an error that says so."""
    X, y = case.data(lengths=(12,))
    case.is_refused(sparse.csr_array(X[0]), y, "sparse")


@_check("symbols")
def check_unknown_symbol(case: _Case) -> None:
    """A symbol that training did not have is an error that says which and where."""
    model, X, _ = case.fitted()
    X[1][2] = 99
    for name in case.methods():
        _refused(partial(getattr(model, name), X), "99", "sequence 1")


@_check("counts")
def check_values_that_are_no_counts(case: _Case) -> None:
    """Negative or fractional values are an error that says where they are."""
    for value in (-1, 0.5):
        X, y = case.data()
        X[1][2, 0] = value
        case.is_refused(X, y, str(value), "sequence 1")


@_check("numbers")
def check_unlike_features(case: _Case) -> None:
    """A sequence with another number of features is an error that says which."""
    X, y = case.data()
    X[1] = X[1][:, :1]
    case.is_refused(X, y, "sequence 1", "features")


@_check("numbers")
def check_features_of_training(case: _Case) -> None:
    """Other features than in training are an error."""
    model, _, _ = case.fitted()
    X, _ = case.data(n_features=3)
    for name in case.methods():
        _refused(partial(getattr(model, name), X), "3 features", "2 features")


@_check()
def check_wrong_lengths(case: _Case) -> None:
    """Lengths that do not sum to the rows, or are not positive integers, are an error."""
    X, y = case.data()
    n_steps = sum(map(len, X))
    for lengths in ([n_steps - 1], [n_steps, 1], [n_steps, 0], [n_steps + 1, -1], [float(n_steps)]):
        case.is_refused(np.concatenate(X), case.stacked(y), "lengths", lengths=lengths)


@_check()
def check_lengths_of_a_list(case: _Case) -> None:
    """`lengths` along with a list is an error."""
    X, y = case.data()
    case.is_refused(X, y, "lengths", lengths=[len(x) for x in X])


@_check()
def check_four_dimensions(case: _Case) -> None:
    """An array of four dimensions, or none, is an error."""
    _, y = case.data()
    case.is_refused(np.zeros((6, 5, 2, 2)), y)
    case.is_refused(3.0, y)


@_check()
def check_frame_without_id(case: _Case) -> None:
    """A DataFrame that does not tell its sequences apart is an error that says how to."""
    X, y = case.data()
    frame, _, _ = _frame(X)
    case.is_refused(frame.drop(columns="sequence_id"), case.stacked(y), "sequence_id")


@_check("labels")
def check_labels_are_given(case: _Case) -> None:
    """Without `y` there is an error."""
    X, _ = case.data()
    _refused(lambda: case.new().fit(X), "y ")


@_check("labels")
def check_number_of_labels(case: _Case) -> None:
    """A label too few is an error that says which sequence lacks it."""
    X, y = case.data()
    _refused(lambda: case.fit(X, y[:-1]), "sequences")
    if case.tags.labels == "step":
        y[1] = y[1][:-1]
        _refused(lambda: case.fit(X, y), "sequence 1")


@_check("labels")
def check_one_class(case: _Case) -> None:
    """One class is an error."""
    X, y = case.data(n_classes=1)
    _refused(lambda: case.fit(X, y), "class")


@_check("labels")
def check_continuous_labels(case: _Case) -> None:
    """Labels that are continuous are an error."""
    X, y = case.data()
    _refused(lambda: case.fit(X, [0.3 + 0.4 * labels for labels in y]), "y ")


# In company.


def _folds(case: _Case) -> tuple[list[NDArray], Any]:
    # scikit-learn keeps ragged lists as they are, with two exceptions. `cross_val_predict` makes
    # an array of the predictions and fails. And `cv=2` asks what kind of target a classifier has,
    # where nested lists of labels fail: so a labeller of steps is not to be a ClassifierMixin.
    X, y = case.data()
    if case.tags.labels == "none":
        return X, None
    return X, [labels.tolist() for labels in y] if case.tags.labels == "step" else y


@_check("score")
def check_cross_validation(case: _Case) -> None:
    """`cross_val_score` works, with ragged lists, for a number of folds and for a splitter."""
    X, y = _folds(case)
    for cv in (2, KFold(2)):
        scores = cross_val_score(case.new(), X, y, cv=cv, error_score="raise")
        assert np.isfinite(scores).all(), f"scores are {scores}"


@_check("score")
def check_grid_search(case: _Case) -> None:
    """`GridSearchCV` works with ragged lists, and answers as the estimator that it chose."""
    X, y = _folds(case)
    model = case.new()
    grid = {name: [value] for name, value in model.get_params(deep=False).items()}
    for cv in (2, KFold(2)):
        search = GridSearchCV(model, grid, cv=cv, error_score="raise").fit(X, y)
        assert np.isfinite(search.best_score_), f"the score is {search.best_score_}"
        _assert_same(case.answers(search.best_estimator_, X), case.answers_of_fit(X, y))


@_check()
def check_loop_over_folds(case: _Case) -> None:
    """Answers for sequences left out are what `cross_val_predict` would give."""
    X, y = case.data()
    for train, test in KFold(2).split(X):
        model = case.fit([X[i] for i in train], [y[i] for i in train])
        case.assert_usable(model, [X[i] for i in test])


@_check()
def check_pipeline(case: _Case) -> None:
    """The estimator works as the last step of a Pipeline."""
    X, y = case.data()
    pipeline = case.fit(X, y, Pipeline([("reversed", _Reversed()), ("model", case.new())]))
    expected = case.answers_of_fit(_Reversed().transform(X), y)
    for name in case.methods():
        if hasattr(pipeline, name):  # a Pipeline knows no `decode`
            _assert_same({name: _flat(getattr(pipeline, name)(X))}, {name: expected[name]})
