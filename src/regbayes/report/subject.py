"""A fitted model and data, as the sections of a report read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from regbayes.data import Sequences, check_sequence_labels, check_sequences, check_step_labels

# Attributes of fitted models that hold the number of their parts, and what those are called.
_SIZES = {
    "n_components_": "component",
    "n_states_": "state",
    "n_topics_": "topic",
    "n_features_": "feature",
}


@dataclass(eq=False)
class Subject:
    """What a report is about. Answers, states and so on are found when a section asks for them.

    Parameters
    ----------
    model : fitted estimator
        A pipeline's last part is the model, and the rest prepares its data.
    X, y, lengths
        As the model takes them; `y` may be None.
    feature_names : sequence of str, default=None
    """

    model: Any
    X: Any
    y: Any = None
    lengths: Any = None
    feature_names: Any = None
    whole: Any = field(init=False)

    def __post_init__(self) -> None:
        self.whole = self.model
        if isinstance(self.model, Pipeline):
            self.model = self.whole[-1]
        check_is_fitted(self.model)

    # Data.

    @cached_property
    def inputs(self) -> Any:
        """What the model itself sees: X, prepared by the parts of a pipeline before it."""
        if isinstance(self.whole, Pipeline) and len(self.whole) > 1:
            return self.whole[:-1].transform(self.X)
        return self.X

    @property
    def labels_are_of(self) -> str:
        """What has a label: "row", "step" or "sequence"."""
        if not hasattr(self.model, "_sequence_tags"):
            return "row"
        return "sequence" if self.model._sequence_tags().labels == "sequence" else "step"

    @cached_property
    def sequences(self) -> Sequences | None:
        """The sequences as the user gave them; None for a table."""
        if not hasattr(self.model, "_sequence_tags"):
            return None
        first = self.whole[0] if isinstance(self.whole, Pipeline) else self.model
        kind: Any = "continuous"
        if hasattr(first, "_sequence_tags"):
            kind = getattr(first, "_kind", first._sequence_tags().values)
        known = getattr(first, "categories_", None)
        return check_sequences(
            BaseEstimator(), self.X, self.lengths, values=kind, categories=known, unknown="missing"
        )

    @cached_property
    def values(self) -> NDArray | None:
        """Numbers by row or step in the user's units; None for symbols, sparse and other data."""
        if self.sequences is not None:
            return None if self.symbols is not None else self.sequences.values
        if issparse(self.X):
            return None
        try:
            table = np.asarray(self.X, dtype=float)
        except (TypeError, ValueError):  # views, text, or columns that the pipeline encodes
            return None
        return table if table.ndim == 2 else None

    @cached_property
    def seen(self) -> NDArray | None:
        """As `values`, but of what the model sees at the end of a pipeline."""
        if self.inputs is self.X or self.values is None:
            return self.values
        if self.sequences is None:
            return self.inputs if isinstance(self.inputs, np.ndarray) else None
        if self.model._sequence_tags().values == "categorical":
            return None
        return check_sequences(BaseEstimator(), self.inputs, self.lengths).values

    @property
    def symbols(self) -> NDArray | None:
        """The symbols of categorical sequences."""
        return None if self.sequences is None else self.sequences.categories

    @cached_property
    def n_items(self) -> int:
        """Rows, steps or sequences: as many as there are answers."""
        if self.sequences is not None:
            return (
                len(self.sequences) if self.labels_are_of == "sequence" else self.sequences.n_steps
            )
        views = list(self.X.values()) if isinstance(self.X, dict) else [self.X]
        first = views[0]
        return int(first.shape[0]) if hasattr(first, "shape") else len(first)

    @cached_property
    def names(self) -> list[str]:
        """What the columns of `values` are called."""
        if self.values is None:
            return [] if self.feature_names is None else [str(name) for name in self.feature_names]
        n = self.values.shape[1]
        given = self.feature_names
        if given is None:
            given = getattr(self.whole, "feature_names_in_", None)
        if given is None and self.sequences is None:
            given = getattr(self.X, "columns", None)
        if given is None:
            return [f"input {i}" for i in range(n)]
        if len(given) != n:
            raise ValueError(
                f"feature_names has {len(given)} names, but X has {n} columns.\n"
                "To mend it: pass one name for each column, in their order."
            )
        return [str(name) for name in given]

    def item_name(self, item: int) -> str:
        """Where an item is: its row, its sequence, or its step in a sequence."""
        if self.sequences is None:
            index = getattr(self.X, "index", None)
            return f"row {item if index is None else index[item]}"
        if self.labels_are_of == "sequence":
            return self.sequence_name(item)
        at = int(np.searchsorted(self.sequences.starts, item, side="right")) - 1
        return f"{self.sequence_name(at)}, step {item - self.sequences.starts[at]}"

    def sequence_name(self, at: int) -> str:
        ids = None if self.sequences is None else self.sequences.ids
        return f"sequence {at if ids is None else ids[at]}"

    # Labels and answers.

    @property
    def is_classifier(self) -> bool:
        return hasattr(self.model, "classes_") and hasattr(self.model, "predict")

    @cached_property
    def _labels(self) -> tuple[NDArray, NDArray] | None:
        if self.y is None:
            return None
        known = self.model.classes_ if self.is_classifier else None
        if self.sequences is not None:
            check = check_sequence_labels if self.labels_are_of == "sequence" else check_step_labels
            return check(self.sequences, self.y, classes=known)
        labels = np.asarray(self.y)
        if labels.shape != (self.n_items,):
            raise ValueError(
                f"y has shape {labels.shape}, but X has {self.n_items} rows.\n"
                "To mend it: pass one label for each row."
            )
        if known is None:
            if labels.dtype.kind == "f":  # a number to predict, no label
                return None
            return np.unique(labels, return_inverse=True)
        codes = np.full(len(labels), -2)
        for code, name in enumerate(known):
            codes[labels == name] = code
        return known, codes

    @property
    def classes(self) -> list[str]:
        """Names of the labels."""
        if self.is_classifier:
            return [str(name) for name in self.model.classes_]
        return [] if self._labels is None else [str(name) for name in self._labels[0]]

    @property
    def truth(self) -> NDArray | None:
        """Places of the labels among the classes; negative where there is none that is known."""
        return None if self._labels is None else self._labels[1]

    @cached_property
    def shares(self) -> NDArray | None:
        """Probabilities of the classes, if the model has any."""
        if not self.is_classifier or not hasattr(self.model, "predict_proba"):
            return None
        return self._ask("predict_proba")

    @cached_property
    def scores(self) -> NDArray | None:
        """Scores of the classes: probabilities if there are any, otherwise decision values."""
        if self.shares is not None or not self.is_classifier:
            return self.shares
        if not hasattr(self.model, "decision_function"):
            return None
        scores = self._ask("decision_function")
        return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores

    @cached_property
    def answers(self) -> NDArray | None:
        """Places of the answers among the classes."""
        if not self.is_classifier:
            return None
        if self.shares is not None:
            return self.shares.argmax(axis=1)
        given = self._ask("predict")
        return np.searchsorted(self.model.classes_, given)

    # Parts: components, states, topics, features.

    @property
    def part(self) -> str:
        """What the parts of the model are called."""
        for name, part in _SIZES.items():
            if hasattr(self.model, name):
                return part
        if hasattr(self.model, "decode"):
            return "state"
        return "topic" if hasattr(self.model, "top_words") else "feature"

    @property
    def n_parts(self) -> int | None:
        for name in (*_SIZES, "n_states", "n_topics"):  # found, or given
            if hasattr(self.model, name):
                return int(getattr(self.model, name))
        return None

    @cached_property
    def parts(self) -> NDArray | None:
        """The component or state of every row or step; None if the model has none."""
        for method in ("predict_component", "decode"):
            if hasattr(self.model, method):
                return self._ask(method).astype(int)
        return None

    def _ask(self, method: str) -> NDArray:
        """Results for all rows, steps or sequences, in the order of `values`."""
        more = {} if self.lengths is None else {"lengths": self.lengths}
        found = getattr(self.model, method)(self.inputs, **more)
        if isinstance(found, list):
            return np.concatenate(found)
        batch = self.sequences
        if batch is not None and batch.rows is not None and self.labels_are_of == "step":
            return found[batch.rows]
        return np.asarray(found)
