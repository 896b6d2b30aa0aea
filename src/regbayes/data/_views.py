"""Views: several descriptions of the same items, dense or CSR, each with its own distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from regbayes.data._table import check_classes, check_names_classes, remedies

#: Standard deviations from the mean beyond which a Gaussian input counts as just far.
VIEW_BOUND = 6.0
MOST_COUNTED = 2**31 - 1
_LEAST = np.finfo(float).tiny  # a spread below the smallest normal number is none


class Views:
    """Named views of the same items that scikit-learn's splitters can cut into rows.

    Estimators take a plain dict as well; `cross_val_score` and `GridSearchCV` need this.

    Parameters
    ----------
    views : mapping of name to array or CSR matrix
        As many rows in each.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.data import Views
    >>> items = Views({"image": np.zeros((5, 3)), "tags": np.ones((5, 2))})
    >>> items, items[[0, 2]].shape, items["tags"].shape
    (Views(5 items: image (3), tags (2)), (2, 5), (5, 2))
    """

    def __init__(self, views: Mapping[str, Any]) -> None:
        self._views = {name: _indexable(view) for name, view in views.items()}
        _check_lengths(self._views)

    def __len__(self) -> int:
        return next(iter(self._views.values())).shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Items, and columns of all views together."""
        return len(self), sum(view.shape[1] for view in self._views.values())

    def __getitem__(self, key: Any) -> Any:
        """A view by its name, or all views of some rows."""
        if isinstance(key, str):
            return self._views[key]
        rows = key[0] if isinstance(key, tuple) else key  # scikit-learn asks for X[rows, ...]
        return Views({name: view[rows] for name, view in self._views.items()})

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def items(self) -> Any:
        return self._views.items()

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} ({view.shape[1]})" for name, view in self.items())
        return f"Views({len(self)} items: {parts})"


class ViewRows(NamedTuple):
    """Rows of views as models read them: float32, in the model's units; NaN is to be inferred."""

    arrays: tuple[Any, ...]  # dense or CSR; None for a view that is absent altogether
    totals: tuple[NDArray | None, ...]  # of the rows of count views
    gaps: tuple[bool, ...]  # whether a view has anything to infer
    usual: tuple[NDArray, ...]  # means of the columns in training
    n: int

    def take(self, rows: Any) -> ViewRows:
        return ViewRows(
            tuple(None if array is None else array[rows] for array in self.arrays),
            tuple(None if total is None else total[rows] for total in self.totals),
            self.gaps,
            self.usual,
            len(range(*rows.indices(self.n))) if isinstance(rows, slice) else len(rows),
        )


@dataclass(frozen=True)
class ViewReader:
    """Names, distributions and units of the views of a training set.

    The columns of a Gaussian view are centred and get a variance of one; those of a sparse one are
    not centred, so that zeros stay zeros.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    centers: tuple[NDArray, ...]
    scales: tuple[NDArray, ...]
    means: tuple[NDArray, ...]  # of the columns, in these units
    totals: tuple[float, ...]  # mean total of a row, for count views
    plain: bool
    missing: str

    @classmethod
    def learn(
        cls, estimator: Any, X: Any, visible: Any, missing: str
    ) -> tuple[ViewReader, ViewRows]:
        """Read training data: a table, or views by name.

        Examples
        --------
        >>> from sklearn.base import BaseEstimator
        >>> reader, rows = ViewReader.learn(
        ...     BaseEstimator(), {"a": [[0, 1], [1, 1]], "b": [[2.5], [0.5]]}, "auto", "error")
        >>> reader.kinds, rows.arrays[1].ravel()
        (('bernoulli', 'gaussian'), array([ 1., -1.], dtype=float32))
        """
        arrays = _check_arrays(estimator, X, missing, reset=True)
        names = tuple(arrays)
        if isinstance(visible, Mapping) and set(visible) != set(names):
            raise ValueError(
                f"visible has distributions for {sorted(visible)}, but the views are "
                f"{sorted(names)}.\nTo mend it: name each view once."
            )
        asked = [visible[name] if isinstance(visible, Mapping) else visible for name in names]
        kinds = tuple(
            _guess_kind(array) if kind == "auto" else kind
            for kind, array in zip(asked, arrays.values())
        )
        for name, kind, array in zip(names, kinds, arrays.values()):
            _check_values(name, kind, array)
        units = [_units(kind, array) for kind, array in zip(kinds, arrays.values())]
        centers, scales = zip(*units)
        totals = tuple(
            float(np.nanmean(_row_sums(array))) if kind == "count" else 0.0
            for kind, array in zip(kinds, arrays.values())
        )
        means = tuple(
            _column_means(array, center, scale)
            for array, (center, scale) in zip(arrays.values(), units)
        )
        reader = cls(names, kinds, centers, scales, means, totals, not _is_named(X), missing)
        return reader, reader._enter(arrays)

    def read(self, estimator: Any, X: Any) -> ViewRows:
        """Read new data; views may be absent if they are to be inferred."""
        named = _is_named(X)
        if named == self.plain:
            raise ValueError(
                f"the model was fitted on {'a table' if self.plain else 'views by name'}, and X "
                f"is {'a dict of views' if named else 'a table'}.\nTo mend it: pass X in the "
                "layout of the training data."
            )
        if named:
            unknown = [name for name in X if name not in self.names]
            if unknown:
                raise ValueError(
                    f"there is no view {', '.join(map(repr, unknown))}; the model was fitted on "
                    f"{', '.join(map(repr, self.names))}.\nTo mend it: rename the view or leave "
                    "it out."
                )
            absent = [name for name in self.names if name not in X]
            if absent and self.missing != "infer":
                raise ValueError(
                    f"the view {', '.join(map(repr, absent))} is missing.\nTo mend it: pass it, "
                    'or make the model with missing="infer".'
                )
        arrays = _check_arrays(estimator, X, self.missing, reset=False)
        for name, kind, center in zip(self.names, self.kinds, self.centers):
            if name in arrays:
                found = arrays[name].shape[1]
                if found != len(center):
                    raise ValueError(
                        f"view {name!r} has {found} columns, but {len(center)} in training.\n"
                        "To mend it: pass the columns that the model was trained on, in order."
                    )
                _check_values(name, kind, arrays[name])
        return self._enter(arrays)

    def _enter(self, arrays: Mapping[str, Any]) -> ViewRows:
        n = next(iter(arrays.values())).shape[0]
        ready: list[Any] = []
        totals: list[NDArray | None] = []
        gaps = []
        for name, kind, center, scale, usual in zip(
            self.names, self.kinds, self.centers, self.scales, self.totals
        ):
            array = arrays.get(name)
            total = None
            if kind == "count":
                total = np.full(n, usual, dtype=np.float32)
                if array is not None:
                    sums = _row_sums(array)
                    total = np.where(np.isnan(sums), usual, sums).astype(np.float32)
            if array is not None and kind == "gaussian":
                array = _standardize(array, center, scale)
            ready.append(None if array is None else array.astype(np.float32))
            totals.append(total)
            gaps.append(array is None or bool(np.isnan(_stored(array)).any()))
        return ViewRows(tuple(ready), tuple(totals), tuple(gaps), self.means, n)

    def usual_totals(self, n: int) -> tuple[NDArray | None, ...]:
        """Totals of `n` new rows of the count views: the mean of training."""
        return tuple(
            np.full(n, total) if kind == "count" else None
            for kind, total in zip(self.kinds, self.totals)
        )

    def leave(self, arrays: tuple[NDArray, ...]) -> Any:
        """Dense arrays of all views in the units of the training data, in its layout."""
        out = {
            name: np.asarray(array, dtype=np.float64) * scale + center
            for name, array, center, scale in zip(self.names, arrays, self.centers, self.scales)
        }
        return out[self.names[0]] if self.plain else out


def _is_named(X: Any) -> bool:
    # SciPy's matrices by keys are mappings too.
    return isinstance(X, (Mapping, Views)) and not sparse.issparse(X)


def _indexable(view: Any) -> Any:
    return view.tocsr() if sparse.issparse(view) else np.asarray(view)


def _check_lengths(arrays: Mapping[str, Any]) -> None:
    if not arrays:
        raise ValueError("there is no view at all.\nTo mend it: pass a dict of name to array.")
    lengths = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"views have different numbers of rows: {lengths}.\nTo mend it: row i of every view "
            "describes item i; fill a row with NaN where an item lacks the view."
        )


def _check_arrays(estimator: Any, X: Any, missing: str, *, reset: bool) -> dict[str, Any]:
    finite = "allow-nan" if missing == "infer" else True
    options: dict[str, Any] = {
        "accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": finite,
    }  # fmt: skip
    try:
        with remedies():
            if not _is_named(X):
                return {"x": validate_data(estimator, X, reset=reset, **options)}
            arrays = {}
            for name, view in X.items():
                if not isinstance(name, str):
                    raise ValueError(
                        f"a view's name must be text, got {name!r}.\nTo mend it: rename the view, "
                        f"for example {f'view {name}'!r}."
                    )
                arrays[name] = check_array(view, input_name=f"view {name!r}", **options)
    except ValueError as error:
        if "contains NaN" in str(error) and "Input y" not in str(error):
            error.add_note('Or make the model with missing="infer": it then infers the gaps.')
        raise
    _check_lengths(arrays)
    if reset:
        estimator.n_features_in_ = sum(array.shape[1] for array in arrays.values())
    return arrays


def _stored(array: Any) -> NDArray:
    return array.data if sparse.issparse(array) else array


def _row_sums(array: Any) -> NDArray:
    return np.asarray(array.sum(axis=1), dtype=np.float64).ravel()


def _guess_kind(array: Any) -> str:
    values = _stored(array)
    return "bernoulli" if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all() else "gaussian"


def _check_values(name: str, kind: str, array: Any) -> None:
    values = _stored(array)
    values = values[~np.isnan(values)]
    if kind == "bernoulli" and not np.isin(values, (0.0, 1.0)).all():
        raise ValueError(
            f"view {name!r} is Bernoulli, but has values other than 0 and 1.\nTo mend it: say "
            'where a 1 begins, for example (X > 0), or choose "gaussian" or "count" for it.'
        )
    if kind == "count" and (values > MOST_COUNTED).any():
        raise ValueError(
            f"view {name!r} has a count of {values.max():g}, more than anything is counted.\n"
            'To mend it: pass counts as they were counted, or choose "gaussian" for this view.'
        )
    if kind == "count" and (values < 0).any():
        raise ValueError(
            f"view {name!r} has negative counts.\nTo mend it: pass counts as they were counted, "
            'not centred or log-transformed, or choose "gaussian" for this view.'
        )


def _units(kind: str, array: Any) -> tuple[NDArray, NDArray]:
    """Centre and scale of each column; 0 and 1 but for Gaussian views."""
    zeros, ones = np.zeros(array.shape[1]), np.ones(array.shape[1])
    if kind != "gaussian":
        return zeros, ones
    largest = np.nanmax(np.abs(_stored(array)), initial=0.0) or 1.0  # so that no square overflows
    if sparse.issparse(array):
        small = array.multiply(1.0 / largest).tocsr()
        mean = np.asarray(small.mean(axis=0)).ravel()
        square = np.asarray(small.multiply(small).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0)) * largest
        return zeros, np.where(spread >= _LEAST, spread, 1.0)
    small = array / largest
    known = ~np.isnan(small)
    count = np.maximum(known.sum(axis=0), 1)
    center = np.where(known, small, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (small - center) ** 2, 0.0).sum(axis=0) / count)
    constant = (spread <= 1e-15 * len(small)) | (spread * largest < _LEAST)
    return center * largest, np.where(constant, 1.0, spread * largest)


def _column_means(array: Any, center: NDArray, scale: NDArray) -> NDArray:
    """Of what is known, in the units of a view; a sparse row that is missing counts as zeros."""
    largest = np.nanmax(np.abs(_stored(array)), initial=0.0) or 1.0  # so that no sum overflows
    if sparse.issparse(array):
        known = array.multiply(1.0 / largest).tocsr()
        known.data = np.nan_to_num(known.data)
        mean = np.asarray(known.mean(axis=0), dtype=np.float64).ravel()
    else:
        n_known = np.maximum((~np.isnan(array)).sum(axis=0), 1)
        mean = np.nansum(array / largest, axis=0, dtype=np.float64) / n_known
    return (mean * largest - center) / scale


def _standardize(array: Any, center: NDArray, scale: NDArray) -> Any:
    if sparse.issparse(array):
        scaled = array.multiply(1.0 / scale).tocsr()
        scaled.data = np.clip(scaled.data, -VIEW_BOUND, VIEW_BOUND)
        return scaled
    with np.errstate(over="ignore"):
        return np.clip((array - center) / scale, -VIEW_BOUND, VIEW_BOUND)


def check_class_labels(
    estimator: Any, X: Any, y: Any, classes: Any = None
) -> tuple[NDArray, NDArray]:
    """Classes, and each label's place among them; `classes` are those known before, if any.

    Examples
    --------
    >>> check_class_labels(None, [[0.0], [1.0]], ["b", "a"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0]))
    """
    y = read_labels(estimator, X, y)
    if classes is None:
        classes = np.unique(y)
    check_classes(classes, len(y))
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y has labels that are not among the classes: {unknown[:5].tolist()}.\n"
            "To mend it: name all classes in the first call of partial_fit."
        )
    return classes, np.searchsorted(classes, y).astype(np.int64)


def read_labels(estimator: Any, X: Any, y: Any) -> NDArray:
    """Labels of the items, however many classes they have."""
    with remedies():
        y = _check_target(estimator, X, y)
    check_names_classes(y)
    return y


def check_numbers(estimator: Any, X: Any, y: Any) -> NDArray:
    """The target of a regression: one finite number for each item."""
    with remedies():
        y = _check_target(estimator, X, y)
        return check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")


def _check_target(estimator: Any, X: Any, y: Any) -> NDArray:
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    any_view = next((view for _, view in X.items()), []) if _is_named(X) else X
    check_consistent_length(any_view, y)
    return y
