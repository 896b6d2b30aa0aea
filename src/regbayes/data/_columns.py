"""Tables whose columns have names and roles, for any estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


class Arranged(NamedTuple):
    """A table as an estimator takes it.

    Parameters
    ----------
    inputs : array, list of arrays or dict of arrays
        A table, sequences or views.
    labels : array, list of arrays or None
    rows : ndarray of int
        The table's row that every step came from.
    starts : ndarray of int
        Sequence ``i`` is ``rows[starts[i]:starts[i + 1]]``; without sequences, each row is one.
    """

    inputs: Any
    labels: Any
    rows: NDArray
    starts: NDArray


class TableModel(BaseEstimator):
    """An estimator and the columns it reads: fits DataFrames, and predicts for them.

    Columns are found by their names, rows of a sequence are sorted by time, and numbers are
    standardised. This is what the command line saves.

    Parameters
    ----------
    estimator : estimator
        Of tables, of sequences or of views.
    features : list of str
        Columns that it reads: numbers; or a single one of symbols or documents.
    label : str, default=None
        Column of the labels.
    sequence_id, time : str, default=None
        Columns that say which sequence a row belongs to, and where in it. Without `time` rows are
        in order.
    content : {"numbers", "symbols", "documents"}, default="numbers"
        Documents become counts of the words that several have.
    views : dict of str to list of str, default=None
        Features of each view, for estimators that read several.
    scale : bool, default=True
        Standardise numbers.
    facts : dict, default=None
        Whatever should be known about the training; not used.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    scaler_ : StandardScaler
    words_ : list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from regbayes.data import TableModel
    >>> from regbayes.mixture import GibbsInfiniteSVM
    >>> table = pd.DataFrame({"height": [1.0, 1.1, 7.0, 7.2], "kind": ["low", "low", "up", "up"]})
    >>> sampler = GibbsInfiniteSVM(n_draws=20, burn_in=20, random_state=0)
    >>> model = TableModel(sampler, ["height"], label="kind").fit(table)
    >>> model.predict(table)
    array(['low', 'low', 'up', 'up'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "features": [list],
        "label": [str, None],
        "sequence_id": [str, None],
        "time": [str, None],
        "content": [StrOptions({"numbers", "symbols", "documents"})],
        "views": [dict, None],
        "scale": ["boolean"],
        "facts": [dict, None],
    }

    def __init__(
        self,
        estimator,
        features,
        label=None,
        sequence_id=None,
        time=None,
        *,
        content="numbers",
        views=None,
        scale=True,
        facts=None,
    ):
        self.estimator = estimator
        self.features = features
        self.label = label
        self.sequence_id = sequence_id
        self.time = time
        self.content = content
        self.views = views
        self.scale = scale
        self.facts = facts

    @property
    def unit(self) -> Literal["row", "step", "sequence"]:
        """What gets an answer: a row of a table, a step of a sequence, or a whole sequence."""
        tags = getattr(self.estimator, "_sequence_tags", None)
        if tags is None:
            return "row"
        return "sequence" if tags().labels == "sequence" else "step"

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> TableModel:
        """Fit to the rows of a DataFrame.

        Parameters
        ----------
        X : DataFrame
            With the columns that were named.
        y : None
            Ignored; labels are a column.

        Returns
        -------
        self
        """
        if self.content == "documents":
            counter = _counter(min_df=min(2, len(X)))
            self.words_ = counter.fit(X[self.features[0]]).get_feature_names_out().tolist()
        elif self.content == "numbers" and self.scale:
            self.scaler_ = StandardScaler().fit(self._numbers(X))
        self.estimator_ = clone(self.estimator)
        table = self.arrange(X)
        if self.label is None:
            self.estimator_.fit(table.inputs)
        else:
            self.estimator_.fit(table.inputs, table.labels)
        return self

    def predict(self, X: Any) -> NDArray:
        """Answers for a DataFrame.

        Parameters
        ----------
        X : DataFrame

        Returns
        -------
        ndarray of shape (n_rows,) or (n_sequences,)
            One for each row; or for each sequence, in the order of their first rows.
        """
        return self._answers(X, "predict")

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray:
        """Shares of the classes, for estimators that have them.

        Parameters
        ----------
        X : DataFrame

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_sequences, n_classes)
        """
        return self._answers(X, "predict_proba")

    def arrange(self, table: Any) -> Arranged:
        """A DataFrame as the fitted estimator takes it.

        Parameters
        ----------
        table : DataFrame
            Labels are read if the column is there.

        Returns
        -------
        Arranged
        """
        rows, starts = self._order(table)
        values = self._values(table)[rows]
        labels: Any = None
        if self.label is not None and self.label in table:
            labels = _plain(table[self.label])[rows]
        if self.unit == "row":
            if self.views is not None:
                places = {name: i for i, name in enumerate(self.features)}
                values = {
                    view: values[:, [places[name] for name in names]]
                    for view, names in self.views.items()
                }
            return Arranged(values, labels, rows, starts)
        if labels is not None:
            one = self.unit == "sequence"
            labels = labels[starts[:-1]] if one else np.split(labels, starts[1:-1])
        return Arranged(np.split(values, starts[1:-1]), labels, rows, starts)

    def _answers(self, table: Any, method: str) -> NDArray:
        check_is_fitted(self, "estimator_")
        arranged = self.arrange(table)
        found = getattr(self.estimator_, method)(arranged.inputs)
        if self.unit == "sequence":
            return np.asarray(found)
        stacked = np.concatenate(found) if self.unit == "step" else np.asarray(found)
        back = np.empty_like(stacked)
        back[arranged.rows] = stacked
        return back

    def _order(self, table: Any) -> tuple[NDArray, NDArray]:
        """Rows sequence by sequence, these by their first row, and each in order of time."""
        if self.unit == "row":
            return np.arange(len(table)), np.arange(len(table) + 1)
        n = len(table)
        ids = np.zeros(n) if self.sequence_id is None else _plain(table[self.sequence_id])
        _, first, member = np.unique(ids, return_index=True, return_inverse=True)
        time = np.arange(n) if self.time is None else table[self.time].rank().to_numpy()
        rows = np.lexsort((time, first[member]))
        sizes = np.unique(first[member], return_counts=True)[1]
        return rows, np.concatenate([[0], np.cumsum(sizes)])

    def _values(self, table: Any) -> Any:
        if self.content == "symbols":
            return _plain(table[self.features[0]])
        if self.content == "documents":
            return _counter(vocabulary=self.words_).transform(table[self.features[0]])
        numbers = self._numbers(table)
        return self.scaler_.transform(numbers) if self.scale else numbers

    def _numbers(self, table: Any) -> NDArray:
        return table[self.features].to_numpy(dtype=np.float64)


def _counter(**options: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import

    return CountVectorizer(token_pattern=r"[^\W\d_]{2,}", **options)


def _plain(column: Any) -> NDArray:
    """A column as an array of numbers, of text, or, with gaps, of objects."""
    missing = column.isna().to_numpy()
    values = np.array(column.tolist(), dtype=object)
    values[missing] = None
    return values if missing.any() else np.array(values.tolist())
