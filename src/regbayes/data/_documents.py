"""Documents: counts of words, a row for each document."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from regbayes.data._table import encode_labels, remedies

_MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Documents:
    """A batch of documents.

    Parameters
    ----------
    counts : csr_array of int64 of shape (n_documents, n_words)
        Without stored zeros.

    Examples
    --------
    >>> batch = Documents(csr_array(np.array([[2, 1], [0, 0], [0, 5]])))
    >>> len(batch), batch.n_tokens, batch.sizes
    (3, 8, array([3, 1, 5]))
    >>> batch.take(np.array([2])).counts.toarray()
    array([[0, 5]])
    """

    counts: Any
    ids: None = None  # documents are known by their rows

    def __len__(self) -> int:
        return self.counts.shape[0]

    @property
    def n_words(self) -> int:
        return self.counts.shape[1]

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents together."""
        return int(self.counts.data.sum())

    @property
    def sizes(self) -> NDArray:
        """Tokens of every document; one for an empty document, whose shares are then zero."""
        return np.maximum(np.asarray(self.counts.sum(axis=1)).ravel(), 1)

    def take(self, indices: NDArray) -> Documents:
        """Some of the documents."""
        return Documents(self.counts[np.arange(len(self))[indices]])


def check_documents(estimator: Any, X: Any, *, reset: bool = True) -> Documents:
    """Check counts of words; sets or compares the estimator's features.

    Parameters
    ----------
    estimator : estimator
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Whole numbers, not negative. Fractions are rounded up, with a warning: a word that is there
        at all is there once. Rows of zeros are empty documents, and are taken.
    reset : bool, default=True
        True when fitting; False compares with what the estimator was fitted on.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> check_documents(BaseEstimator(), [[0, 2], [1, 0]]).sizes
    array([2, 1])
    """
    with remedies():
        X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=reset)
    return _counted(estimator, X)


def check_labelled_documents(
    estimator: Any, X: Any, y: Any
) -> tuple[Documents, NDArray, NDArray[np.int64]]:
    """Check training data; returns documents, the classes, and each label's place among them.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> batch, classes, codes = check_labelled_documents(BaseEstimator(), [[2], [1]], ["b", "a"])
    >>> classes, codes
    (array(['a', 'b'], dtype='<U1'), array([1, 0]))
    """
    with remedies():
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    return _counted(estimator, X), *encode_labels(y)


def _counted(estimator: Any, X: Any) -> Documents:
    table = csr_array(X, copy=True)
    table.sum_duplicates()
    if table.nnz and table.data.min() < 0:
        at = int(np.argmin(table.data))
        row = int(np.searchsorted(table.indptr, at, side="right")) - 1
        raise ValueError(
            f"Negative values in data passed to {type(estimator).__name__}: row {row}, column "
            f"{table.indices[at]} is {table.data[at]:g}, and counts of words are not negative.\n"
            "To mend it: pass counts, for example of "
            "sklearn.feature_extraction.text.CountVectorizer; do not centre or scale them."
        )
    if table.data.sum() > _MOST_TOKENS:
        raise ValueError(
            f"X counts {table.data.sum():g} words, the largest count is {table.data.max():g}, and "
            "a topic is drawn for each of them.\nTo mend it: pass counts of words, not scaled "
            "values, and a part of a corpus of this size."
        )
    whole = np.ceil(table.data - 1e-9)
    if not np.allclose(whole, table.data, rtol=0, atol=1e-9):
        warnings.warn(
            "X has fractions, and counts of words are whole numbers: they are rounded up. Pass "
            "counts, for example of CountVectorizer, and not tf-idf or shares.",
            DataConversionWarning,
            stacklevel=4,
        )
    table.data = whole.astype(np.int64)
    table.eliminate_zeros()
    return Documents(table)
