"""Pictures of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from regbayes.plot._axes import INK, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_topics(
    top_words: Any,
    weights: Any,
    classes: Any,
    shares: Any = None,
    n_topics: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Topics as bars with their words, coloured by the class that they speak for most.

    Parameters
    ----------
    top_words : array-like of str of shape (n_topics, n_words)
        Of :meth:`regbayes.topics.MaxMarginTopics.top_words`.
    weights : array-like of shape (n_classes, n_topics)
        What each topic says for each class, such as `topic_weights_`.
    classes : array-like of shape (n_classes,)
    shares : array-like of shape (n_topics,), default=None
        How much of one document each topic is: bars then are what the document gets from them.
    n_topics : int, default=12
        At most this many, the longest bars.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_topics([["sun", "sea"], ["ice", "snow"]], [[2, -1], [-2, 1]], ["warm", "cold"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['sun sea', 'ice snow']
    >>> [float(bar.get_width()) for bar in ax.patches]
    [2.0, 1.0]
    """
    weights = np.asarray(weights, dtype=np.float64)
    if shares is not None:
        weights = weights * np.asarray(shares)
    if weights.shape != (len(classes), len(top_words)):
        raise ValueError(
            f"weights have the shape {weights.shape}, but there are {len(classes)} classes and "
            f"{len(top_words)} topics."
        )
    best, length = weights.argmax(axis=0), weights.max(axis=0)
    order = np.argsort(-length, kind="stable")[:n_topics]
    ax = axes_or_new(ax)
    from matplotlib import colormaps

    colors = colormaps["tab10"]
    named = set()
    for place, k in enumerate(order):
        label = None if best[k] in named else str(classes[best[k]])
        named.add(best[k])
        ax.barh(place, float(length[k]), color=colors(int(best[k]) % 10), label=label)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set(yticks=range(len(order)), xlabel="weight" if shares is None else "weight × share")
    ax.set_yticklabels([" ".join(map(str, top_words[k])) for k in order])
    ax.invert_yaxis()
    ax.legend(loc="lower right", frameon=False)
    return ax
