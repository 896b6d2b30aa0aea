"""Where a function is: names in the mathematics get the file and line that they have today."""

import functools
import importlib
import inspect
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "regbayes"
FOLDERS = "kernels|priors|margin|chains|data|mixture|hmm|topics|scores|harmonium"
NAME = re.compile(rf"`((?:{FOLDERS})(?:\.\w+)+)`")


@functools.cache
def line_of(name: str) -> tuple[str, int]:
    """File and first line of `kernels.margin.draw_weights`, of a class, or of a method.

    Examples
    --------
    >>> file, line = line_of("kernels.margin.draw_weights")
    >>> file, (SOURCE / file).read_text().splitlines()[line - 1][:16]
    ('kernels/margin.py', 'def draw_weights')
    """
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["regbayes", *parts[:n]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[n:]:
            found = getattr(found, attribute)
        break
    found = getattr(found, "py_func", found)  # of a compiled function
    if isinstance(found, property):
        found = found.fget
    file = Path(inspect.getsourcefile(found)).relative_to(SOURCE)
    if inspect.ismodule(found):
        return str(file), 1
    lines, first = inspect.getsourcelines(found)
    decorated = next(i for i, line in enumerate(lines) if re.match(r"\s*(def|class) ", line))
    return str(file), first + decorated


def add_lines(app, docname, source):
    """Sphinx asks this when it reads a page; a name that is no more fails the build."""
    if not docname.startswith("mathematics/"):
        return

    def located(match: re.Match) -> str:
        file, line = line_of(match[1])
        return f"`{match[1]}` ({file}:{line})"

    # In tables only: text is for reading.
    lines = source[0].split("\n")
    source[0] = "\n".join(NAME.sub(located, x) if x.startswith("|") else x for x in lines)
