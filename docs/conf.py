"""Sphinx: Markdown pages, the interface from docstrings, a gallery that runs."""

import importlib
from pathlib import Path

import regbayes

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


def setup(app):
    """No public name without its place in the reference."""
    words = set((Path(__file__).parent / "api.md").read_text(encoding="utf-8").split())
    for package in sorted(set(regbayes.__all__) - {"__version__", "load", "save", "warmup"}):
        public = set(importlib.import_module(f"regbayes.{package}").__all__)
        if missing := sorted(public - words):
            raise ValueError(f"add {', '.join(missing)} of regbayes.{package} to docs/api.md")
