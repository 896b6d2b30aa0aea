"""Which models there are, which suits the data, and their parameters as text."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from regbayes.cli._problem import Problem, suggest

# Family of each model; one whose family is not installed is left out.
_FAMILIES = {
    "GibbsInfiniteSVM": "mixture",
    "DPMultinomialLogit": "mixture",
    "InfiniteSVM": "mixture",
    "MaxMarginInfiniteHMM": "hmm",
    "MarkovSwitchingMED": "hmm",
    "InfiniteHMM": "hmm",
    "MaxMarginScoreClassifier": "scores",
    "MaxMarginTopics": "topics",
    "InfiniteMaxMarginHarmonium": "harmonium",
    "MaxMarginHarmonium": "harmonium",
}
_SCALED = ("mixture", "hmm", "scores")
# Parameters that are options of their own.
_OWN = {"random_state": "--seed", "checkpoint": "--checkpoint", "verbose": "--quiet"}
_NOT_HERE = ("callbacks", "warm_start")


class Proposal(NamedTuple):
    """A model, why, and what it needs to be told about the data."""

    name: str
    reason: str
    parameters: dict[str, Any]


def available() -> list[str]:
    """Names of the models of this installation."""
    return [name for name in _FAMILIES if find_spec(f"regbayes.{_FAMILIES[name]}") is not None]


def find(name: str) -> type:
    """The class of a model."""
    if name not in available():
        raise Problem(f"there is no model '{name}'", suggest(name, available(), "the models are"))
    return getattr(import_module(f"regbayes.{_FAMILIES[name]}"), name)


def wants_scaling(name: str, parameters: dict[str, Any]) -> bool:
    """Counts, and views with laws of their own, are left as they are."""
    return _FAMILIES[name] in _SCALED and parameters.get("emission") != "poisson"


def propose(
    content: str, n_features: int, views: bool, sequences: bool, labels: str | None, counts: bool
) -> Proposal:
    """A model for data of this shape.

    Parameters
    ----------
    content : {"numbers", "symbols", "documents"}
    n_features : int
    views, sequences, counts : bool
        Whether there are several views, sequences, and whether numbers are all counts.
    labels : {"row", "step", "sequence"} or None
        What has a label.

    Examples
    --------
    >>> propose("numbers", 4, False, True, "step", False).name
    'MaxMarginInfiniteHMM'
    """
    symbols = {"emission": "categorical"} if content == "symbols" else {}
    if views:
        return _if_there(
            "InfiniteMaxMarginHarmonium", "several views of each item, and labels", "--views"
        )
    if content == "documents":
        return _if_there("MaxMarginTopics", "a column of text, and a label for each", "its column")
    if sequences and labels is None:
        return Proposal(
            "InfiniteHMM", "sequences without labels: it finds states and their number", symbols
        )
    if sequences and labels == "step":
        return Proposal("MaxMarginInfiniteHMM", "the label changes within sequences", symbols)
    if sequences:
        return Proposal(
            "MaxMarginScoreClassifier", "every sequence has one label from start to end", {}
        )
    if labels is None:
        raise Problem(
            "a table without labels and without sequences has no model here",
            "name the column to predict by --label, or the one of the sequences by --sequence-id",
        )
    if counts and n_features >= 50 and "MaxMarginTopics" in available():
        return Proposal("MaxMarginTopics", f"{n_features} columns of counts, and labels", {})
    return Proposal(
        "GibbsInfiniteSVM", "a table with labels: it finds sub-populations with own rules", {}
    )


def _if_there(name: str, reason: str, what: str) -> Proposal:
    if name not in available():
        raise Problem(
            f"{reason} ask for {name}, which this version of regbayes does not have",
            f"update regbayes, or leave out {what}",
        )
    return Proposal(name, reason, {})


def split_extra(tokens: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Arguments, and options with their values, from what the parser did not know.

    Examples
    --------
    >>> split_extra(["a.csv", "--n-draws", "50", "--C=2"])
    (['a.csv'], {'n-draws': '50', 'C': '2'})
    """
    arguments, options = [], {}
    rest = iter(tokens)
    for token in rest:
        if not token.startswith("-"):
            arguments.append(token)
            continue
        name, equals, value = token.lstrip("-").partition("=")
        if not equals:
            value = next(rest, "")
            if not value:
                raise Problem(f"the option --{name} has no value", f"write --{name}=VALUE")
        options[name] = value
    return arguments, options


def read_parameters(name: str, options: dict[str, str], own: Sequence[str]) -> dict[str, Any]:
    """Values of a model's parameters, from options; `own` are the command's other options."""
    known = parameters_of(find(name))
    found = {}
    for option, text in options.items():
        parameter = option.replace("-", "_")
        if parameter in _OWN:
            raise Problem(
                f"--{option} is set in another way here", f"use {_OWN[parameter]}, see --help"
            )
        if parameter not in known:
            there = [f"--{each.replace('_', '-')}" for each in known]
            raise Problem(
                f"{name} has no parameter '{option}'",
                suggest(f"--{option}", [*there, *own], "there are"),
            )
        found[parameter] = read_value(text)
    return found


def check_options(options: Sequence[str], own: Sequence[str]) -> None:
    """Refuse options that are nearly ones of the command, before any data are read."""
    for option in options:
        close = get_close_matches(f"--{option}", own, n=1, cutoff=0.75)
        if close:
            raise Problem(f"there is no option --{option}", f"did you mean '{close[0]}'?")


def parameters_of(cls: Any) -> dict[str, Any]:
    """Parameters that may be options, and their defaults."""
    return {
        name: each.default
        for name, each in inspect.signature(cls).parameters.items()
        if name not in _OWN and name not in _NOT_HERE
    }


def read_value(text: str) -> Any:
    """A Python literal, true, false or none in any case, or else text.

    Examples
    --------
    >>> [read_value(text) for text in ("50", "1,0.1", "full", "none", "True")]
    [50, (1, 0.1), 'full', None, True]
    """
    words = {"none": None, "null": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def make(name: str, parameters: dict[str, Any], seed: int, quiet: bool, checkpoint: Any) -> Any:
    """The estimator, not fitted."""
    cls = find(name)
    taken = inspect.signature(cls).parameters
    more = {"random_state": seed, "verbose": not quiet, "checkpoint": checkpoint}
    return cls(**parameters, **{key: value for key, value in more.items() if key in taken})
