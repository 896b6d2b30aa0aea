"""Pictures of labels: which are confused, and which features go with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from regbayes.plot._axes import INK, axes_or_new
from regbayes.plot.prepare import confusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 20  # rows or columns whose cells still have room for a number


def plot_confusion(y_true: Any, y_pred: Any, ax: Axes | None = None) -> Axes:
    """How often a label is answered by each other: the shares of a row sum to one.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_items,)
        True labels and answers; for labels of steps, those of all sequences together.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_confusion(["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"])
    >>> ax.images[0].get_array().tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    >>> [text.get_text() for text in ax.texts]
    ['1', '1', '0', '2']
    """
    truth, answers = np.asarray(y_true), np.asarray(y_pred)
    if truth.shape != answers.shape or truth.ndim != 1 or not len(truth):
        raise ValueError(
            f"labels have shape {truth.shape} and answers {answers.shape}; pass a label and an "
            "answer for each item, those of sequences after np.concatenate."
        )
    names, codes = np.unique(np.concatenate([truth, answers]), return_inverse=True)
    counts, shares = confusion(codes[: len(truth)], codes[len(truth) :], len(names))
    ax = axes_or_new(ax)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(names) <= _FEW:
        for (i, j), n in np.ndenumerate(counts):
            shade = "white" if shares[i, j] > 0.5 else INK
            ax.text(j, i, str(n), ha="center", va="center", color=shade)
    ticks = range(len(names))
    ax.set(xlabel="answer", ylabel="label", xticks=ticks, yticks=ticks)
    ax.set_xticklabels(names, rotation=90 if len(names) > 5 else 0)
    ax.set_yticklabels(names)
    ax.figure.colorbar(image, ax=ax, label="share of the label").outline.set_edgecolor(INK)
    return ax


def plot_activations(
    activations: Any, classes: Any, ax: Axes | None = None, names: Any = None
) -> Axes:
    """What the features are in each class, a row for each class.

    Colours say how far above or below the mean of the classes a feature is.

    Parameters
    ----------
    activations : array-like of shape (n_classes, n_features)
        Mean features of the classes, such as ``model.class_activations_``.
    classes : array-like of shape (n_classes,)
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.
    names : array-like of shape (n_features,), default=None
        What the features are called; numbers by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_activations([[0.9, 3.0], [0.1, 5.0]], ["cat", "dog"])
    >>> ax.images[0].get_array().round(1).tolist()  # as far from the mean of the classes
    [[0.4, -1.0], [-0.4, 1.0]]
    """
    values = np.asarray(activations, dtype=float)
    if values.ndim != 2 or len(values) != len(classes):
        raise ValueError(
            f"activations have shape {values.shape}, for {len(classes)} classes; pass a row for "
            "each class and a column for each feature."
        )
    ax = axes_or_new(ax)
    centred = values - values.mean(axis=0)
    far = np.abs(centred).max() or 1.0
    image = ax.imshow(centred, cmap="RdBu_r", vmin=-far, vmax=far, aspect="auto")
    ax.set(xlabel="feature", ylabel="class", yticks=range(len(classes)))
    ax.set_yticklabels(classes)
    if names is not None:
        ax.set_xticks(range(len(names)), names, rotation=90)
    bar = ax.figure.colorbar(image, ax=ax, label="above or below the mean of the classes")
    bar.outline.set_edgecolor(INK)
    return ax
