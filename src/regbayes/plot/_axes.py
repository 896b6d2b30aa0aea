"""The one place that makes a new Axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "0.25"  # lines and outlines
ACCENT = "tab:blue"


def axes_or_new(ax: Axes | None) -> Axes:
    """`ax`, or a new one in a figure of its own."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "regbayes[plot]"') from error
    return plt.subplots(layout="constrained")[1]
