"""What estimators with a label for every step share."""

from __future__ import annotations

from typing import Any

import numpy as np

from regbayes.data import check_step_labels


class StepLabeller:
    """Adds `score` to an estimator with `classes_`, `_new_sequences` and `_answers`.

    `_answers(sequences)` are the places among `classes_` of the labels of all steps.
    """

    def score(self: Any, X: Any, y: Any, lengths: Any = None) -> float:
        """Share of labelled steps that are predicted right.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        y : list of arrays, or array
            A label for every step; those of None, NaN or -1 are left out.
        lengths : array-like of int, optional

        Returns
        -------
        float
        """
        sequences = self._new_sequences(X, lengths)
        _, truth = check_step_labels(sequences, y, classes=self.classes_)
        return float(np.mean((self._answers(sequences) == truth)[truth != -1]))
