"""What is done with a model file: predict, inspect, report."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from regbayes.cli import _models, _tables
from regbayes.cli._fit import sizes
from regbayes.cli._problem import Problem


def load(path: Path) -> Any:
    """A model that `regbayes fit` saved."""
    import regbayes
    from regbayes.data import TableModel

    if path.is_dir():
        raise Problem(f"{path} is a folder", "name the file that `regbayes fit -o` wrote")
    if not path.exists():
        raise Problem(f"there is no file {path}", "name the file that `regbayes fit -o` wrote")
    try:
        model = regbayes.load(path)
    except PermissionError as error:
        raise Problem(f"{path} may not be read", "change its permissions, or copy it") from error
    if not isinstance(model, TableModel):
        raise Problem(
            f"{path} is a {type(model).__name__} that knows no names of columns",
            "use it from Python by regbayes.load, or fit again by `regbayes fit`",
        )
    return model


def read_for(model: Any, path: Path) -> Any:
    """A table with all that the model reads."""
    table = _tables.read_table(path)
    wanted = [*model.features, *(n for n in (model.sequence_id, model.time) if n is not None)]
    if model.unit == "row":
        wanted = model.features
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise Problem(
            f"{path} lacks {len(missing)} of the columns that the model reads: "
            f"{', '.join(missing[:5])}{', ...' * (len(missing) > 5)}",
            f"add them, under these names; the file has {', '.join(map(str, table.columns[:10]))}",
        )
    if model.unit != "row":
        table = _tables.check_sequences(table, model.sequence_id, model.time)
    if model.content == "numbers":
        _tables.require_numbers(table, model.features)
        tags = model.estimator._sequence_tags() if model.unit != "row" else None
        allow_missing = tags is not None and tags.missing_steps
        _tables.check_numbers(table, model.features, allow_missing, training=False)
        return table
    (name,) = model.features
    if table[name].isna().any():
        raise Problem(f"column '{name}' has gaps", "fill them, or drop those rows")
    return table.astype({name: str})


def predict(model: Any, table: Any) -> tuple[Any, dict[str, Any]]:
    """A table of answers, and facts about them."""
    import pandas

    shares = model.predict_proba(table) if hasattr(model, "predict_proba") else None
    answers = model.predict(table)
    named = [n for n in (model.sequence_id, model.time) if n is not None and n in table.columns]
    if model.unit == "sequence":
        found = table[[model.sequence_id]].drop_duplicates().reset_index(drop=True)
    else:
        found = table[named].copy() if named else pandas.DataFrame(index=table.index)
    found["predicted"] = answers
    if shares is not None:
        found["probability"] = np.asarray(shares).max(axis=1).round(6)
    facts: dict[str, Any] = {"answers": len(found), "unit": model.unit}
    if model.label is not None and model.label in table.columns:
        truth = table[model.label]
        if model.unit == "sequence":
            truth = truth[~table.duplicated(model.sequence_id)].reset_index(drop=True)
        known = truth.notna().to_numpy()
        if known.any():
            facts["accuracy"] = round(float(np.mean((truth.to_numpy() == answers)[known])), 4)
    return found, facts


def describe(model: Any) -> dict[str, Any]:
    """What a model is, and what it found."""
    from sklearn.base import BaseEstimator

    estimator = model.estimator_
    defaults = {n: p.default for n, p in inspect.signature(type(estimator)).parameters.items()}
    chosen = {n: v for n, v in estimator.get_params(deep=False).items() if _differs(v, defaults[n])}
    told = {
        "model": type(estimator).__name__,
        "parameters": {
            n: repr(v) if isinstance(v, BaseEstimator) else v for n, v in chosen.items()
        },
        "label": model.label,
        "classes": [*map(_item, getattr(estimator, "classes_", []))],
        "sequence_id": model.sequence_id,
        "time": model.time,
        "features": model.features,
        "views": model.views,
        "found": sizes(estimator),
        "training": {k: v for k, v in (model.facts or {}).items() if k not in ("model", "found")},
    }
    if hasattr(estimator, "diagnose"):
        told["diagnosis"] = _diagnosis(estimator)
    return told


def _differs(value: Any, default: Any) -> bool:
    return repr(value) != repr(default)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _diagnosis(estimator: Any) -> str:
    try:
        return " ".join(estimator.diagnose().verdict.split())
    except ImportError:
        return 'unknown: pip install "regbayes[arviz]" to know whether the chains agree'


def describe_class(name: str) -> dict[str, Any]:
    """A model's purpose and its parameters with their defaults."""
    cls = _models.find(name)
    return {
        "model": name,
        "about": (inspect.getdoc(cls) or "").partition("\n")[0],
        "parameters": {
            f"--{each.replace('_', '-')}": repr(default)
            for each, default in _models.parameters_of(cls).items()
        },
    }


def report(model: Any, table: Any, path: Path) -> None:
    """Write the page about a model and a table."""
    try:
        from regbayes.report import write_report
    except ImportError as error:
        raise Problem(
            f"the report cannot be written here ({error})",
            'pip install --upgrade "regbayes[report]"',
        ) from error

    arranged = model.arrange(table)
    write_report(
        model.estimator_,
        arranged.inputs,
        arranged.labels,
        path,
        title=f"{type(model.estimator_).__name__}: {model.label or 'hidden states'}",
        feature_names=model.words_ if model.content == "documents" else model.features,
    )
