"""Tables on results pages."""

from collections.abc import Sequence


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table.

    Examples
    --------
    >>> print(table(["", "accuracy"], [["SVM", "85.0 ± 7.1"]]))
    |  | accuracy |
    | --- | --- |
    | SVM | 85.0 ± 7.1 |
    """
    lines = [titles, ["---"] * len(titles), *rows]
    # A bar inside a cell would end it.
    return "\n".join(f"| {' | '.join(c.replace('|', '/') for c in line)} |" for line in lines)
