"""What a build of the documentation would find wrong after minutes, in a second."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
MATHEMATICS = sorted((DOCS / "mathematics").glob("*.md"))
GALLERY = sorted((DOCS / "gallery_src").glob("*.py"))


@pytest.fixture(scope="module")
def code_lines():
    spec = importlib.util.spec_from_file_location("code_lines", DOCS / "code_lines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", MATHEMATICS, ids=lambda page: page.stem)
def test_names_beside_equations_are_those_of_the_code(page, code_lines):
    source = [page.read_text(encoding="utf-8")]
    rows = [line for line in source[0].split("\n") if line.startswith("|")]
    n_names = sum(len(code_lines.NAME.findall(row)) for row in rows)
    code_lines.add_lines(None, f"mathematics/{page.stem}", source)  # a name that is no more raises
    assert len(re.findall(r"\.py:\d+\)", source[0])) == n_names


def test_a_name_that_is_no_more_is_found(code_lines):
    with pytest.raises(AttributeError, match="draw_nothing"):
        code_lines.add_lines(None, "mathematics/x", ["| 1 | `kernels.margin.draw_nothing` |"])


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_the_gallery_imports_what_is_there(page):
    tree = ast.parse(page.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [(node.module, name.name) for node in imports for name in node.names]
    ours = [(module, name) for module, name in names if module.startswith("regbayes")]
    assert ours
    for module, name in ours:
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
