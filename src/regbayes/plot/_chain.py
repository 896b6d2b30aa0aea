"""Pictures of hidden states along sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from regbayes.plot._axes import INK, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_states(strips: Any, ax: Axes | None = None) -> Axes:
    """Strips of states (or labels) along a sequence, a colour for each state.

    Parameters
    ----------
    strips : array-like of int of shape (n_steps,), or mapping of name to such
        One strip, or several under each other with their names.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_states({"truth": [0, 0, 1, 1], "found": [0, 1, 1, 1]})
    >>> ax.images[0].get_array().tolist()
    [[0, 0, 1, 1], [0, 1, 1, 1]]
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['truth', 'found']
    """
    named = strips if isinstance(strips, Mapping) else {"": strips}
    lengths = {name: len(strip) for name, strip in named.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the strips have unequal lengths, {lengths}; cut them to the same steps.")
    image = np.array([np.asarray(strip, dtype=int) for strip in named.values()])
    ax = axes_or_new(ax)
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Ten strong colours, then their ten light ones; further states take them again.
    pairs = colormaps["tab20"]
    colors = ListedColormap([pairs(i) for i in (*range(0, 20, 2), *range(1, 20, 2))])
    ax.imshow(image % 20, aspect="auto", interpolation="nearest", cmap=colors, vmin=0, vmax=19)
    for edge in range(1, len(image)):
        ax.axhline(edge - 0.5, color="white", linewidth=2)
    ax.set(xlabel="step", yticks=range(len(image)), yticklabels=list(named))
    return ax


def plot_signal(X: Any, strips: Any, ax: Axes | None = None, names: Any = None) -> Axes:
    """A signal, with strips of states (or labels) under it, on one axis of steps.

    Parameters
    ----------
    X : array-like of shape (n_steps, n_features) or (n_steps,)
        One sequence.
    strips : array-like of int of shape (n_steps,), or mapping of name to such
        As for :func:`plot_states`.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default. The strips are in an inset below it.
    names : array-like of str of shape (n_features,), default=None
        For a legend.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_signal([0.1, 0.2, 5.0, 5.1], {"state": [0, 0, 1, 1]})
    >>> ax.lines[0].get_ydata().tolist()
    [0.1, 0.2, 5.0, 5.1]
    >>> ax.child_axes[0].images[0].get_array().tolist()
    [[0, 0, 1, 1]]
    """
    signal = np.asarray(X, dtype=float).reshape(len(X), -1)
    named = strips if isinstance(strips, Mapping) else {"": strips}
    n_steps = len(next(iter(named.values())))
    if n_steps != len(signal):
        raise ValueError(
            f"the signal has {len(signal)} steps and the strips have {n_steps}; cut them to the "
            "same steps."
        )
    ax = axes_or_new(ax)
    height = 0.12 * len(named)
    under = ax.inset_axes((0, -0.04 - height, 1, height), sharex=ax)
    plot_states(named, under)
    lines = ax.plot(signal, linewidth=0.9)
    if names is not None:
        ax.legend(lines, names, frameon=False)
    ax.tick_params(labelbottom=False)
    ax.set_xlim(-0.5, len(signal) - 0.5)
    return ax


def plot_transitions(matrix: Any, ax: Axes | None = None) -> Axes:
    """A transition matrix as an image, with the probabilities of at least a tenth written in.

    Parameters
    ----------
    matrix : array-like of shape (n_states, n_states)
        Rows sum to one: ``model.transitions_``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_transitions([[0.95, 0.05], [0.5, 0.5]])
    >>> [text.get_text() for text in ax.texts]
    ['.95', '.50', '.50']
    """
    matrix = np.asarray(matrix, dtype=float)
    ax = axes_or_new(ax)
    image = ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    for (i, j), p in np.ndenumerate(matrix):
        if p >= 0.1:
            shade = "white" if p > 0.5 else INK
            ax.text(j, i, f"{p:.2f}".lstrip("0"), ha="center", va="center", color=shade)
    ticks = range(len(matrix))
    ax.set(xlabel="next state", ylabel="state", xticks=ticks, yticks=ticks)
    bar = ax.figure.colorbar(image, ax=ax, label="probability")
    bar.outline.set_edgecolor(INK)
    return ax
