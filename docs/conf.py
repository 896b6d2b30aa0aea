"""Sphinx: Markdown pages, the interface from docstrings, a gallery that runs, the results."""

import re
import sys
from pathlib import Path

import regbayes

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import code_lines

from experiments import comparison

project = "regbayes"
author = "regbayes maintainers"
release = version = regbayes.__version__
html_theme = "furo"
html_title = f"regbayes {release}"
exclude_patterns = ["_build", "gallery_src"]
templates_path = ["_templates"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # numpydoc tells them
numpydoc_show_class_members = False  # the template lists them
sphinx_gallery_conf = {
    "examples_dirs": "gallery_src",
    "gallery_dirs": "gallery",
    "remove_config_comments": True,
    "write_computation_times": False,
    "show_memory": False,
}


def plain_roles(app, what, name, obj, options, lines):
    """Docstrings that come from scikit-learn refer to its pages, which are not here."""
    lines[:] = [re.sub(r":(?:ref|term):`([^`<]+?)(?: <[^>]*>)?`", r"\1", line) for line in lines]


def setup(app):
    (HERE / "compares.md").write_text(comparison.page(), encoding="utf-8")
    app.connect("source-read", code_lines.add_lines)
    app.connect("autodoc-process-docstring", plain_roles)
