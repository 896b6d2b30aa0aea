"""A classifier of two features, seen from above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regbayes.plot._axes import INK, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RESOLUTION = 100  # cells to a side


def plot_decision_regions(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Regions of the classes, the points, and the components of a mixture.

    A region is the paler the less sure the model is. Ellipses are the components of the draw of
    highest joint density, two standard deviations wide; the smaller a component, the fainter.

    Parameters
    ----------
    model : fitted classifier
        Of two features. Without `predict_proba` the regions have one shade; without `best_draw_`
        there are no ellipses. So other classifiers can be drawn beside a mixture.
    X : array-like of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
    ax : matplotlib.axes.Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from regbayes.mixture import GibbsInfiniteSVM
    >>> X, y = make_blobs(60, random_state=0)
    >>> model = GibbsInfiniteSVM(n_draws=10, burn_in=10, random_state=0).fit(X, y)
    >>> ax = plot_decision_regions(model, X, y)
    >>> len(ax.patches) == len(model.best_draw_["counts"])
    True
    """
    names = list(getattr(model, "feature_names_in_", ["", ""]))
    points, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"X has shape {points.shape}, and a map needs two features; "
            "fit the model on two columns, or on two components of a PCA."
        )
    ax = axes_or_new(ax)
    colors = _colors(len(model.classes_))
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * np.where(high > low, high - low, 1.0)
    (x0, y0), (x1, y1) = low - margin, high + margin
    cells = (np.arange(_RESOLUTION) + 0.5) / _RESOLUTION
    ax.imshow(
        _shades(model, x0 + (x1 - x0) * cells, y0 + (y1 - y0) * cells, colors),
        extent=(x0, x1, y0, y1),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
    )
    for color, name in zip(colors, model.classes_):
        a, b = points[y == name].T
        ax.scatter(a, b, s=14, color=color, edgecolor="white", linewidth=0.3, label=name)
    if hasattr(model, "best_draw_"):
        _add_ellipses(model, ax)
    ax.set(xlim=(x0, x1), ylim=(y0, y1), xlabel=names[0], ylabel=names[1])
    ax.legend(loc="best")
    return ax


def _colors(n: int) -> NDArray:
    import matplotlib

    return matplotlib.colormaps["tab10" if n <= 10 else "turbo"].resampled(max(n, 10))(range(n))


def _shades(model: Any, x: NDArray, y: NDArray, colors: NDArray) -> NDArray:
    """The colours of the classes, mixed by vote share and then with white."""
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    if hasattr(model, "feature_names_in_"):
        import pandas

        grid = pandas.DataFrame(grid, columns=model.feature_names_in_)
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(grid)
    else:
        shares = model.predict(grid)[:, None] == model.classes_
    # Undecided is white, sure is a pale class colour.
    n = len(colors)
    sure = np.clip((shares.max(axis=1) - 1 / n) / (1 - 1 / n), 0, 1)[:, None]
    mixed = 1 - 0.4 * sure * (1 - shares @ colors[:, :3])
    return mixed.reshape(len(y), len(x), 3)


def _add_ellipses(model: Any, ax: Axes) -> None:
    from matplotlib.patches import Ellipse

    counts = model.best_draw_["counts"]
    for mean, covariance, n in zip(*component_shapes(model), counts):
        variances, axes = np.linalg.eigh(covariance)
        width, height = 4 * np.sqrt(variances)  # two standard deviations to either side
        ax.add_patch(
            Ellipse(
                mean,
                width,
                height,
                angle=np.degrees(np.arctan2(axes[1, 0], axes[0, 0])),
                fill=False,
                edgecolor=INK,
                linewidth=1.5,
                alpha=0.2 + 0.8 * float(n / counts.max()),
            )
        )


def component_shapes(model: Any) -> tuple[NDArray, NDArray]:
    """Posterior means (K, M) and expected covariances (K, M, M) of the components of `best_draw_`.

    In the units of the data. Where the expectation does not exist, as in a tiny component under
    a vague prior, the mode of the covariance stands in.
    """
    draw, frame, base = model.best_draw_, model._frame, model._base
    mean, factor = np.moveaxis(draw["mean"], -1, 0), np.moveaxis(draw["factor"], -1, 0)
    n_features = mean.shape[1]
    if factor.shape[1] == n_features:
        scale, size = factor @ factor.swapaxes(1, 2), n_features
    else:
        scale, size = factor[:, 0, :, None] * np.eye(n_features), 1
    df = base.df + draw["counts"]
    divisor = np.where(df > size + 1, df - size - 1, df + size + 1)
    return frame.center + frame.unit * mean, frame.unit**2 * scale / divisor[:, None, None]
