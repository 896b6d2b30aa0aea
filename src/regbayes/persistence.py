"""Model files: fitted estimators that can be opened without running code."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from regbayes import _files
from regbayes._files import FileError

__all__ = ["ModelFileError", "load", "save"]

# Where the estimators that a file names are looked for, and nowhere else.
_FAMILIES = ("data", "harmonium", "hmm", "mixture", "scores", "topics")
_OF_SKLEARN = {
    "decomposition": ("PCA",),
    "linear_model": ("LogisticRegression",),
    "pipeline": ("Pipeline",),
    "preprocessing": (
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "RobustScaler",
        "StandardScaler",
    ),
    "svm": ("LinearSVC",),
}
# Parameters of a fit on this machine, which a file does not keep.
_LOCAL = frozenset({"callbacks", "checkpoint"})
# scikit-learn's notes: of callbacks, and of the routing of metadata.
_NOTES = frozenset(
    {"_skl_callbacks", "_callback_fit_ctx", "_parent_callback_ctx", "_metadata_request"}
)


class ModelFileError(FileError):
    """A model cannot be saved, or a file is no model that can be loaded."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator to a file that is opened without running code.

    Arrays are kept as safetensors and all else as JSON, with a checksum. Predictions of the loaded
    model are the same, bit by bit.

    Parameters
    ----------
    model : estimator
        Of this library; pipelines, scalers and linear classifiers of scikit-learn may be around it
        or inside.
    path : path
        Written atomically.

    See Also
    --------
    load

    Notes
    -----
    The parameters `callbacks` and `checkpoint` are not kept. What a file cannot hold, such as
    scikit-learn's trees, is an error; `pickle` still works.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import regbayes
    >>> from regbayes.hmm import CategoricalHMM
    >>> X = [list("aabbbaab"), list("abba"), list("bbbbaaaa")]
    >>> model = CategoricalHMM(n_states=2, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     regbayes.save(model, f"{folder}/letters.model")
    ...     again = regbayes.load(f"{folder}/letters.model")
    >>> again.score(X) == model.score(X)
    True
    """
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(
            f"a model file holds an estimator, and this is a {type(model).__name__}.\n"
            "To mend it: save the estimator; its trace_ goes along."
        )
    content = {"model": model, "sklearn": sklearn.__version__}
    try:
        _files.write(Path(path), "model", content, _describe)
        _files.sync_folder(Path(path).parent)
    except ModelFileError:
        raise
    except FileError as error:
        raise ModelFileError(f"{type(model).__name__} cannot be saved: {error}") from error


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save` wrote, of this release or an older one.

    No code in the file is run, nothing that it names is imported, and its sizes are checked before
    memory is taken. What is not as it should be is a :class:`ModelFileError`.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator

    Notes
    -----
    The checksum tells of accidents, not of malice: who can write the file can write the sum. A
    forged file cannot run code when it is opened, but it may hold a model that predicts nonsense
    or fails when it is used.
    """
    try:
        file = _files.read(Path(path), "model", _builder)
    except ModelFileError:
        raise
    except FileError as error:
        remedy = "" if "To mend it" in str(error) else ".\nTo mend it: get the file anew"
        raise ModelFileError(f"{error}{remedy}.") from error
    found = file.content
    if not isinstance(found, dict) or not isinstance(found.get("model"), BaseEstimator):
        raise ModelFileError(f"{path} holds no estimator.\nTo mend it: get the file anew.")
    if found.get("sklearn") != sklearn.__version__ and _has_sklearn(found["model"]):
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=type(found["model"]).__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=str(found.get("sklearn")),
            ),
            stacklevel=2,
        )
    return found["model"]


def _find(name: str) -> Any:
    """The class that is called so in files; None if there is none."""
    module, _, short = name.rpartition(".")
    if module in _FAMILIES:
        family = import_module(f"regbayes.{module}")
        found = getattr(family, short) if short in family.__all__ else None
        is_estimator = isinstance(found, type) and issubclass(found, BaseEstimator)
        return found if is_estimator else None
    part = module.removeprefix("sklearn.")
    if module != part and short in _OF_SKLEARN.get(part, ()):
        return getattr(import_module(module), short)
    return None


def _name(cls: type) -> str | None:
    """What a class is called in files; None if they do not hold it."""
    package, part, *_ = cls.__module__.split(".")
    name = f"{part}.{cls.__name__}" if package == "regbayes" else f"{package}.{part}.{cls.__name__}"
    return name if _find(name) is cls else None


def _describe(value: Any) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    if not isinstance(value, BaseEstimator):
        return None
    name = _name(type(value))
    if name is None:
        others = ", ".join(sorted(each for names in _OF_SKLEARN.values() for each in names))
        raise ModelFileError(
            f"model files do not hold {type(value).__module__}.{type(value).__qualname__}.\n"
            f"To mend it: use the estimators of regbayes and, of scikit-learn, {others}; or "
            "pickle, for files that only you open."
        )
    parameters = {k: v for k, v in value.get_params(deep=False).items() if k not in _LOCAL}
    found = {
        attribute: each
        for attribute, each in vars(value).items()
        if attribute not in _parameters(type(value)) and attribute not in _NOTES
    }
    return name, parameters, found


def _builder(name: str) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    cls = _find(name)
    if cls is None:
        raise ModelFileError(
            f"the file holds a {name}, which this version of regbayes does not load.\n"
            "To mend it: update regbayes, or use the version that wrote the file."
        )
    return partial(_build, name, cls)


def _build(name: str, cls: Any, parameters: dict[str, Any], found: dict[str, Any]) -> Any:
    defaults = _parameters(cls)
    if parameters.keys() - defaults.keys():
        raise ModelFileError(
            f"the file has parameters of {name} that this version of regbayes does not know: "
            f"{', '.join(sorted(parameters.keys() - defaults.keys()))}.\n"
            "To mend it: update regbayes, or use the version that wrote the file."
        )
    for attribute in found:
        if not attribute.isidentifier() or attribute in defaults or hasattr(cls, attribute):
            raise ValueError(f"{attribute!r} is no attribute that a fit finds")
    model = cls.__new__(cls)  # as pickle does: without running __init__
    vars(model).update(defaults | parameters | found)
    return model


def _parameters(cls: Any) -> dict[str, Any]:
    """The parameters of a class and their defaults; a file of an older release may lack some."""
    signature = inspect.signature(cls.__init__).parameters.values()
    return {each.name: each.default for each in signature if each.name != "self"}


def _has_sklearn(model: Any) -> bool:
    if isinstance(model, (list, tuple)):
        return any(map(_has_sklearn, model))
    if not isinstance(model, BaseEstimator):
        return False
    return type(model).__module__.startswith("sklearn.") or any(
        map(_has_sklearn, vars(model).values())
    )
