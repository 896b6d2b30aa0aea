"""What is wrong with the user's input, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class Problem(Exception):
    """Bad input. Both parts are clauses without a full stop.

    Examples
    --------
    >>> print(Problem("the file is empty", "export it again"))
    the file is empty.
    To mend it: export it again.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}.\nTo mend it: {remedy}.")


def suggest(name: str, known: Iterable[str], what: str) -> str:
    """A remedy for a name that is not known.

    Examples
    --------
    >>> suggest("lable", ["label", "x"], "the columns are")
    "did you mean 'label'? the columns are label, x"
    """
    listed = [str(each) for each in known]
    shown = ", ".join(listed[:20]) + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")
    by_small = {each.lower(): each for each in listed}
    close = get_close_matches(name.lower(), by_small, n=1, cutoff=0.5)
    question = f"did you mean '{by_small[close[0]]}'? " if close else ""
    return f"{question}{what} {shown}"
