"""Figures as data: what to draw, what to say about it, and the same numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Figure = dict[str, Any]


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Figure:
    """Rows whose first cell is their heading."""
    return {"kind": "table", "caption": caption, "columns": list(columns), "rows": list(rows)}


def _drawn(kind: str, caption: str, alt: str, data: dict, numbers: Figure) -> Figure:
    return {"kind": kind, "caption": caption, "alt": alt, "data": data, "table": numbers}


def bars(
    caption: str,
    labels: Sequence[Any],
    values: Sequence[float],
    x: str,
    y: str,
    colored: Sequence[int] | None = None,
) -> Figure:
    """A bar for each label; `colored` are numbers of states, whose colours they take."""
    largest = int(np.argmax(values))
    alt = f"Bars: {y} by {x}. The highest is {labels[largest]} with {values[largest]:.3g}."
    data = {"labels": list(labels), "values": list(values), "x": x, "y": y, "colored": colored}
    return _drawn("bars", caption, alt, data, table(caption, [x, y], list(zip(labels, values))))


def lines(
    caption: str, series: dict[str, tuple[NDArray, NDArray]], x: str, y: str, **more: Any
) -> Figure:
    """A line for each series of x and y."""
    ends = "; ".join(
        f"{name} from {ys[0]:.4g} to {ys[-1]:.4g}" for name, (_, ys) in series.items() if len(ys)
    )
    data = {
        "series": [{"name": name, "x": xs, "y": ys} for name, (xs, ys) in series.items()],
        "x": x,
        "y": y,
        **more,
    }
    rows = [
        [name, xs[i], ys[i]]
        for name, (xs, ys) in series.items()
        for i in np.unique(np.linspace(0, len(xs) - 1, min(len(xs), 25)).astype(int))
    ]
    return _drawn(
        "lines", caption, f"Lines: {y} by {x}. {ends}.", data, table(caption, ["line", x, y], rows)
    )


def matrix(
    caption: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: NDArray,
    names: tuple[str, str, str],
    texts: Sequence[Sequence[str]] | None = None,
    largest: float | None = None,
) -> Figure:
    """Cells by row and column, the darker the larger; `names` of rows, columns and values."""
    of_rows, of_columns, of_values = names
    i, j = divmod(int(np.nanargmax(np.abs(values))), values.shape[1])
    alt = (
        f"Table in colours: {of_values} by {of_rows} and {of_columns}. The strongest is "
        f"{rows[i]} with {columns[j]}: {values[i, j]:.3g}."
    )
    data = {
        "rows": list(rows),
        "columns": list(columns),
        "values": values,
        "texts": texts,
        "rowsName": of_rows,
        "columnsName": of_columns,
        "valuesName": of_values,
        "max": largest,
    }
    cells = values if texts is None else texts
    numbers = table(
        caption, [of_rows, *columns], [[name, *row] for name, row in zip(rows, list(cells))]
    )
    return _drawn("matrix", caption, alt, data, numbers)


def graph(caption: str, nodes: list[dict], moves: list[tuple[int, int, float]]) -> Figure:
    """Nodes on a circle, and arrows between them."""
    data = {"nodes": nodes, "edges": [{"from": i, "to": j, "p": p} for i, j, p in moves]}
    rows: list[list] = [[node["name"], node["name"], node["stay"]] for node in nodes]
    rows += [[nodes[i]["name"], nodes[j]["name"], p] for i, j, p in moves]
    likely = "; ".join(
        f"from {nodes[i]['name']} to {nodes[j]['name']} {p:.2f}"
        for i, j, p in sorted(moves, key=lambda move: -move[2])[:6]
    )
    alt = f"Graph of states and the moves between them. Likeliest: {likely or 'none'}."
    return _drawn("graph", caption, alt, data, table(caption, ["from", "to", "probability"], rows))


def signal(caption: str, data: dict, numbers: Figure) -> Figure:
    """Sequences with lines, and strips of states and labels."""
    strips = ", ".join(strip["name"] for strip in data["strips"])
    n, n_lines = len(data["sequences"]), len(data["lines"])
    alt = f"{n} sequences with {n_lines} signals and strips: {strips}."
    return _drawn("signal", caption, alt, data, numbers)
