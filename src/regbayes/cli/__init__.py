"""The command line: ``regbayes``. Heavy packages are imported by the command that needs them."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence

from regbayes.cli._problem import Problem

__all__ = ["Problem", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code.

    0 is success; 2 is bad input, with a sentence on stderr that says the remedy; 1 is a bug.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process, if none are given.
    """
    try:
        from regbayes.cli._app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "click"):
            raise
        return _refuse('the command line needs typer.\nTo mend it: pip install "regbayes[cli]".')
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        # The code of an early exit, such as --help's; None after a command.
        return app(given or ["--help"], prog_name="regbayes", standalone_mode=False) or 0
    except KeyboardInterrupt:
        sys.stderr.write("regbayes: interrupted\n")
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # of click, wherever typer keeps it
            return _refuse(f"{error.format_message()}\nTo mend it: see regbayes --help.")
        if type(error).__name__ == "Abort":
            return 130
        if _says_remedy(error):
            return _refuse(str(error))
        traceback.print_exc()
        sys.stderr.write("regbayes: this is a bug; the lines above are what its report needs\n")
        return 1


def _says_remedy(error: Exception) -> bool:
    """Errors of the library that are about its input say how to mend it."""
    return isinstance(error, (Problem, ValueError, OSError)) and "To mend it:" in str(error)


def _refuse(message: str) -> int:
    """One line, in one sentence."""
    what, _, remedy = message.partition("To mend it:")
    sentence = " ".join(f"{what.rstrip(' .' + chr(10))}; to mend it: {remedy}".split())
    sys.stderr.write(f"regbayes: {re.sub(r'[.]*$', '', sentence)}.\n".replace("?.\n", "?\n"))
    return 2
