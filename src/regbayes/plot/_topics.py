"""Pictures of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from regbayes.plot._axes import ACCENT, INK, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_topic_words(
    top_words: Any,
    weights: Any,
    classes: Any = None,
    shares: Any = None,
    n_topics: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Topics as bars with their words; with classes, in the colour of the one they speak for most.

    Parameters
    ----------
    top_words : array-like of str of shape (n_topics, n_words)
        Such as :meth:`regbayes.topics.LatentDirichlet.top_words`.
    weights : array-like of shape (n_topics,) or (n_classes, n_topics)
        How common the topics are; or what each says for each class, such as `topic_weights_`.
    classes : array-like of shape (n_classes,), default=None
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
    >>> words = [["sun", "sea"], ["ice", "snow"]]
    >>> ax = plot_topic_words(words, [[2, -1], [-2, 1]], ["warm", "cold"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['sun sea', 'ice snow']
    >>> [float(bar.get_width()) for bar in ax.patches]
    [2.0, 1.0]
    >>> ax = plot_topic_words(words, [0.3, 0.7])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['ice snow', 'sun sea']
    """
    weights = np.asarray(weights, dtype=np.float64)
    names = [] if classes is None else [str(name) for name in classes]
    if weights.shape != (*[len(names)] * bool(names), len(top_words)):
        raise ValueError(
            f"weights have the shape {weights.shape}, but there are {len(names)} classes and "
            f"{len(top_words)} topics; pass a number for each topic, or such a row for each class."
        )
    weights = np.atleast_2d(weights)
    if shares is not None:
        weights = weights * np.asarray(shares)
    best, length = weights.argmax(axis=0), weights.max(axis=0)
    order = np.argsort(-length, kind="stable")[:n_topics]
    ax = axes_or_new(ax)
    from matplotlib import colormaps

    colors = colormaps["tab10"]
    for k in np.unique(best[order]):  # classes in their order
        places = np.flatnonzero(best[order] == k)
        color, name = (colors(int(k) % 10), names[k]) if names else (ACCENT, None)
        ax.barh(places, length[order[places]], color=color, label=name)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set(yticks=range(len(order)), xlabel="weight" if shares is None else "weight × share")
    ax.set_yticklabels([" ".join(map(str, top_words[k])) for k in order])
    ax.invert_yaxis()
    if names:
        ax.legend(loc="lower right", frameon=False)
    return ax
