"""From sections to one HTML file that needs nothing else."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from regbayes._version import __version__
from regbayes.report.sections import Section, make_sections
from regbayes.report.subject import Subject


def write_report(
    model: Any,
    X: Any,
    y: Any = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    title: str | None = None,
    feature_names: Sequence[str] | None = None,
    lengths: Any = None,
) -> Path:
    """Write one HTML page about a fitted model: what it learned, how sure it is, where it fails.

    The file needs no network. It has the signals with their states, what the states, components
    or topics mean, how many there are and whether the chains agree, which labels are confused,
    whether probabilities can be trusted, and the items that the model is least sure of. What a
    model or the data do not have is left out.

    Parameters
    ----------
    model : fitted estimator
        Of this library, or a pipeline that ends in one; other classifiers get a shorter page.
    X : table or sequences
        As the model takes them, preferably not those that it was trained on.
    y : labels, default=None
        Without them, nothing is said about right and wrong.
    path : path, default="report.html"
    title : str, default=None
    feature_names : sequence of str, default=None
        What the columns of `X` are called; by default as in a DataFrame, or by number.
    lengths : array-like of int, optional
        Lengths of the sequences, when they are stacked in one array.

    Returns
    -------
    Path
        Of the file.

    Notes
    -----
    The page holds parts of the data: the first sequences, the rows or steps in its tables.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from regbayes.mixture import InfiniteSVM
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = InfiniteSVM(max_components=3, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report(model, X, y, f"{folder}/iris.html").read_text(encoding="utf-8")
    >>> "petal length (cm)" in page, "Confusion" in page
    (True, True)
    """
    subject = Subject(model, X, y, lengths, feature_names)
    name = type(subject.model).__name__
    path = Path(path)
    page = make_page(make_sections(subject), title or f"What {name} learned", name)
    path.write_text(page, encoding="utf-8")
    return path


def make_page(sections: Sequence[Section], title: str, model_name: str) -> str:
    """The HTML text of a page."""
    figures: list[dict] = []
    parts = {name: _source(f"page.{kind}") for name, kind in (("style", "css"), ("script", "js"))}
    body = "\n".join(_section(section, figures) for section in sections)
    links = "".join(
        f'<li><a href="#{section.id}">{escape(section.short)}</a></li>' for section in sections
    )
    parts |= {f"{name}_hash": _hash(text) for name, text in parts.items()}
    parts |= {
        "title": escape(title),
        "subtitle": escape(f"A report on a fitted {model_name}"),
        "links": links,
        "sections": body,
        "figures": _json(figures),
        "footer": escape(f"Written by regbayes {__version__}. This page loads nothing."),
    }
    # Once through the template: what is put in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _source("page.html"))


def _source(name: str) -> str:
    return files("regbayes.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's policy calls the one script and the one style that it lets in."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _section(section: Section, figures: list[dict]) -> str:
    inside = "".join(f"<p>{escape(text)}</p>" for text in section.text)
    inside += "".join(_figure(figure, figures) for figure in section.figures)
    heading = f'<h2 id="{section.id}-title">{escape(section.title)}</h2>'
    start = f'<section id="{section.id}" aria-labelledby="{section.id}-title">'
    return f"{start}{heading}{inside}</section>"


def _figure(figure: dict, figures: list[dict]) -> str:
    if figure["kind"] == "table":
        return _table(figure, hidden_caption=False)
    figures.append({key: figure[key] for key in ("kind", "alt", "data")})
    caption = f"<figcaption>{escape(figure['caption'])}</figcaption>"
    numbers = _table(figure["table"], hidden_caption=True)
    return (
        f'<figure data-figure="{len(figures) - 1}">{caption}<div class="chart"></div>'
        f"<details><summary>The same as a table</summary>{numbers}</details></figure>"
    )


def _table(figure: dict, hidden_caption: bool) -> str:
    caption = escape(figure["caption"])
    shown = "" if hidden_caption else f'<p class="note">{caption}</p>'
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in figure["columns"])
    rows = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{_cell(cell)}</th>' if i == 0 else f"<td>{_cell(cell)}</td>"
            for i, cell in enumerate(row)
        )
        + "</tr>"
        for row in figure["rows"]
    )
    # A region that scrolls must be reachable by keyboard.
    return (
        f'{shown}<div class="table" tabindex="0" role="region" aria-label="{caption}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}" if np.isfinite(value) else "–"
    return "–" if value is None else escape(str(value))


def _json(value: Any) -> str:
    """JSON that is no HTML, whatever the names in it."""
    text = json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    """Python's numbers and lists; five digits are enough for a picture; NaN is null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value if isinstance(value, (int, str)) or value is None else str(value)
