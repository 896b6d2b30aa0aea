"""Tables: a 2-D array of numbers, with one label for each row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

MOST_MARGINS = 50_000_000  # 0.4 GB in every array of them

_REMEDIES = {
    "Input y contains NaN": "give every row a label, or drop the rows that have none",
    "contains NaN": (
        "fill the gaps, for example with sklearn.impute.SimpleImputer in a Pipeline, or drop "
        "those rows"
    ),
    "contains infinity": (
        "replace infinite values (they often come from a division by zero or a logarithm of "
        "zero), or scale the column down"
    ),
    "inconsistent numbers of samples": "pass one label for each row of X",
    "0 sample(s)": "pass at least one row",
    "0 feature(s)": "pass at least one column",
    "Expected 2D array": "one row for each sample and one column for each feature",
    "features, but": "pass the columns that the model was trained on, in their order",
    "Unknown label type": (
        "y must name classes; cut a continuous target into bins, for example with "
        "sklearn.preprocessing.KBinsDiscretizer"
    ),
    "y should be a 1d array": "pass one label for each row; a column of them as y.ravel()",
    "requires y to be passed": "pass the labels of the training rows as y",
    "Found array with dim": "one row for each sample: X.reshape(len(X), -1) flattens the rest",
    "could not convert string": (
        "encode text columns, for example with sklearn.preprocessing.OneHotEncoder"
    ),
    "Sparse data was passed": "pass X.toarray()",
    "Complex data not supported": "pass the real and the imaginary part as columns of their own",
}


@contextmanager
def remedies() -> Iterator[None]:
    """Add to scikit-learn's message what to do about it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        for symptom, remedy in _REMEDIES.items():
            if symptom in str(error):
                raise type(error)(f"{error}\nTo mend it: {remedy}.") from error
        raise


def check_labelled_table(estimator: Any, X: Any, y: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Check training data; returns X, the classes, and each label's place among them.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> X, classes, labels = check_labelled_table(BaseEstimator(), [[0.0], [1.0]], ["b", "a"])
    >>> classes, labels
    (array(['a', 'b'], dtype='<U1'), array([1, 0]))
    """
    with remedies():
        X, y = validate_data(estimator, X, y, dtype=np.float64, order="C")
    return X, *encode_labels(y)


def encode_labels(y: NDArray) -> tuple[NDArray, NDArray]:
    """The classes, two or more, and each label's place among them."""
    check_names_classes(y)
    classes, labels = np.unique(y, return_inverse=True)
    check_classes(classes, len(y))
    return classes, labels.astype(np.int64)


def check_names_classes(y: NDArray) -> None:
    """Refuse labels that are numbers of a scale."""
    with remedies(), np.errstate(invalid="ignore"):  # it tries whether they are integers
        check_classification_targets(y)


def check_classes(classes: NDArray, n_samples: int) -> None:
    """Refuse what is no choice, and what has more margins than there is room and time for."""
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes[0]}, and a classifier needs two.\nTo mend it: check "
            "that the split or the filter before this did not leave a class out; where labels may "
            "be missing -1 means unknown, so call classes -1 and 1 otherwise."
        )
    if len(classes) * n_samples > MOST_MARGINS:
        raise ValueError(
            f"y has {len(classes)} classes and {n_samples} labels; with a margin for each pair of "
            f"them, there is room for {MOST_MARGINS:g} pairs.\nTo mend it: check that y names "
            "classes and no rows, merge rare classes, or fit to fewer rows."
        )


def check_new_table(estimator: Any, X: Any) -> NDArray:
    """Check data to predict for: as many columns as in training, finite numbers."""
    with remedies():
        return validate_data(estimator, X, dtype=np.float64, order="C", reset=False)


def check_size(X: NDArray, most: float = 1e100) -> None:
    """Refuse numbers whose products, or sums, do not exist, where they are not scaled inside."""
    largest = np.fmax.reduce(np.abs(X), axis=None, initial=0.0)  # NaN is not observed
    if largest > most:
        raise ValueError(
            f"X has values up to {largest:g}, too large to compute with.\nTo mend it: scale the "
            "columns, for example with sklearn.preprocessing.MaxAbsScaler."
        )


@dataclass(frozen=True)
class Frame:
    """Coordinates in which a table is centred and its columns have a root mean square of one.

    One unit for all columns keeps their proportions, as `SVC(gamma="scale")` does: only the choice
    of units of the whole table stops to matter, and huge or tiny numbers stop to overflow.

    Examples
    --------
    >>> frame = Frame.of(np.array([[1e200], [3e200]]))
    >>> frame.enter(np.array([[2e200], [4e200]]))
    array([[0.],
           [2.]])
    """

    center: NDArray
    unit: float

    @classmethod
    def of(cls, X: NDArray) -> Frame:
        # Divided first, so that the squares of huge or tiny numbers exist.
        largest = np.abs(X).max() or 1.0
        small = X / largest
        center = small.mean(axis=0)
        spread = float(np.sqrt(np.mean((small - center) ** 2)))
        if spread <= 1e-15 * len(X):  # nothing but rounding: a constant table
            spread = 1.0
        # Below the smallest normal number all is alike.
        return cls(center * largest, max(spread * largest, np.finfo(float).tiny))

    def enter(self, X: NDArray) -> NDArray:
        """`X` in these coordinates, at most 1e100 from the centre: beyond, all is equally far."""
        with np.errstate(over="ignore"):
            return np.clip((X - self.center) / self.unit, -1e100, 1e100)
