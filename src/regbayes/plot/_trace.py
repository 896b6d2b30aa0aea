"""Pictures of the draws of a sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regbayes.chains import Trace
from regbayes.plot._axes import ACCENT, INK, axes_or_new
from regbayes.plot.prepare import size_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_component_counts(trace: Trace, ax: Axes | None = None) -> Axes:
    """Posterior of the number of components, states or topics: bars, of which the mode stands out.

    Parameters
    ----------
    trace : Trace
        With such a number in every draw: ``n_components``, ``n_states``, ``n_topics``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from regbayes.chains import Trace
    >>> trace = Trace([[{"n_components": 3}, {"n_components": 3}, {"n_components": 4}]])
    >>> ax = plot_component_counts(trace)
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches]
    [0.67, 0.33]
    """
    name = size_name(trace)
    ax = axes_or_new(ax)
    numbers, shares = size_shares([draw[name] for draw in trace])
    colors = [ACCENT if share == shares.max() else "0.75" for share in shares]
    ax.bar(numbers, shares, color=colors)
    ax.set(xlabel=name.removeprefix("n_"), ylabel="posterior probability")
    ax.set_xticks(numbers[:: 1 + len(numbers) // 20])  # all, as long as they have room
    return ax


def size_name(trace: Trace) -> str:
    """What the draws call the number of their parts."""
    for name in trace.names:
        if name.startswith("n_"):
            return name
    raise ValueError(
        f"the draws have no number of parts, only {', '.join(trace.names)}; plot_trace draws these."
    )


def plot_trace(trace: Trace, name: str, ax: Axes | None = None) -> Axes:
    """One quantity against the draw, one line for each chain.

    Chains that have settled look alike and do not drift.

    Parameters
    ----------
    trace : Trace
    name : str
        A quantity that is a number in every draw, such as ``"log_joint"``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from regbayes.chains import Trace
    >>> trace = Trace([[{"alpha": 1.0}, {"alpha": 0.5}], [{"alpha": 0.7}, {"alpha": 0.9}]])
    >>> ax = plot_trace(trace, "alpha")
    >>> len(ax.lines), ax.get_ylabel()
    (2, 'alpha')
    """
    values = trace[name]
    if values.ndim != 2:
        raise ValueError(
            f"{name!r} is an array of shape {values.shape[2:]} in every draw; "
            "a line needs one number: choose another quantity, or plot `trace[name][..., i]`."
        )
    ax = axes_or_new(ax)
    for index, chain in enumerate(values):
        ax.plot(chain, linewidth=0.9, label=f"chain {index}")
    ax.set(xlabel="draw", ylabel=name)
    if len(values) > 1:
        ax.legend(frameon=False)
    return ax


def plot_co_assignment(trace: Trace, ax: Axes | None = None, order: Any = None) -> Axes:
    """Posterior probability that two rows share a component, an image of rows by rows.

    It needs no names of components, which may change from draw to draw. Crisp blocks are
    sub-populations that all draws agree on.

    Parameters
    ----------
    trace : Trace
        With the quantities ``z`` and, unless `order` is given, ``log_joint``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.
    order : array-like of int, default=None
        Rows in the order to be drawn. By default, by component of the draw of highest joint
        density, the largest component first.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from regbayes.chains import Trace
    >>> trace = Trace([[{"z": [0, 1, 0], "log_joint": -1.0}, {"z": [0, 0, 0], "log_joint": -2.0}]])
    >>> ax = plot_co_assignment(trace)
    >>> ax.images[0].get_array().tolist()
    [[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]
    """
    draws = [np.asarray(draw["z"]) for draw in trace]
    together = np.zeros((len(draws[0]), len(draws[0])))
    for z in draws:
        together += z[:, None] == z
    if order is None:
        order = _largest_first(np.asarray(max(trace, key=lambda draw: draw["log_joint"])["z"]))
    ax = axes_or_new(ax)
    image = ax.imshow(
        together[np.ix_(order, order)] / len(draws),
        cmap="Blues",
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    ax.set(xlabel="row", ylabel="row", xticks=[], yticks=[])
    bar = ax.figure.colorbar(image, ax=ax, label="probability of one component")
    bar.outline.set_edgecolor(INK)
    return ax


def _largest_first(z: NDArray) -> NDArray[np.intp]:
    """Rows by component, the largest component first."""
    _, names, sizes = np.unique(z, return_inverse=True, return_counts=True)
    return np.lexsort((names, -sizes[names]))
