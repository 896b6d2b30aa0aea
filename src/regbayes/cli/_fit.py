"""Fitting to a file: roles of columns, a split, baselines, and what was found."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.cli import _models, _tables
from regbayes.cli._problem import Problem

_NOTE = "fit.json"  # in a checkpoint: how to go on


@dataclass(frozen=True)
class Request:
    """What `regbayes fit` was asked for; all that `regbayes resume` needs."""

    file: str
    model: str | None = None
    label: str | None = None
    sequence_id: str | None = None
    time: str | None = None
    views: str | None = None
    ignore: list[str] = field(default_factory=list)
    output: str | None = None
    test_share: float = 0.25
    use_all: bool = False
    seed: int = 0
    options: dict[str, str] = field(default_factory=dict)
    checkpoint: str | None = None

    def write(self) -> None:
        """Keep the request beside its checkpoint."""
        if self.checkpoint is None:
            return
        folder = Path(self.checkpoint)
        paths = {name: getattr(self, name) for name in ("file", "output", "checkpoint")}
        whole = {name: path and str(Path(path).resolve()) for name, path in paths.items()}
        text = json.dumps(asdict(self) | whole, indent=1)
        note = folder / _NOTE
        if note.exists() and note.read_text(encoding="utf-8") == text:
            return
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Problem(
                f"{folder} is not empty, and holds no checkpoint of this command",
                f"name another folder by --checkpoint, or go on by `regbayes resume {folder}`",
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            note.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Problem(f"{folder} cannot be written", "name another --checkpoint") from error

    @classmethod
    def read(cls, folder: Path) -> Request:
        """The request whose checkpoint this is."""
        note = folder / _NOTE
        if not note.is_file():
            raise Problem(
                f"{folder} is no checkpoint of `regbayes fit`",
                "name the folder that was given to --checkpoint",
            )
        try:
            return replace(cls(**json.loads(note.read_text("utf-8"))), checkpoint=str(folder))
        except (ValueError, TypeError) as error:
            raise Problem(f"{note} is damaged", "start anew, in another folder") from error


def prepare(request: Request) -> tuple[Any, Any, str]:
    """The table, a model of its columns that is not fitted, and the reason for that model."""
    if not 0 < request.test_share < 1:
        raise Problem(
            f"--test-share is {request.test_share:g}",
            "give a number between 0 and 1, such as 0.25, or --all to hold nothing out",
        )
    _models.check_options(list(request.options), OPTIONS)
    if request.model is not None:
        _models.read_parameters(request.model, request.options, OPTIONS)
    table = _tables.read_table(Path(request.file))
    roles = _tables.Roles(
        request.label, request.sequence_id, request.time, request.ignore, request.views
    )
    features, views = roles.check(table)
    in_sequences = request.sequence_id is not None
    if request.time is not None and not in_sequences:
        raise Problem("--time without --sequence-id", "name the column of the sequences as well")
    if request.sequence_id is not None:
        table = _tables.check_sequences(table, request.sequence_id, request.time)
    content = _tables.content_of(table, features, in_sequences)
    labels = _label_unit(table, request)
    counts = content == "numbers" and _are_counts(table, features)
    if request.model is None:
        name, reason, given = _models.propose(
            content, len(features), views is not None, in_sequences, labels, counts
        )
    else:
        name, reason = request.model, "it was asked for"
        takes_emission = "emission" in _models.parameters_of(_models.find(name))
        given = {"emission": "categorical"} if content == "symbols" and takes_emission else {}
    return table, _table_model(request, table, name, given, features, content, views), reason


def _table_model(
    request: Request,
    table: Any,
    name: str,
    given: dict[str, Any],
    features: list[str],
    content: Any,
    views: dict[str, list[str]] | None,
) -> Any:
    from regbayes.data import TableModel

    parameters = given | _models.read_parameters(name, request.options, OPTIONS)
    estimator = _models.make(name, parameters, request.seed, True, request.checkpoint)
    scale = content == "numbers" and views is None and _models.wants_scaling(name, parameters)
    model = TableModel(
        estimator,
        features,
        request.label,
        request.sequence_id,
        request.time,
        content=content,
        views=views,
        scale=scale,
    )
    check_parameters(estimator)
    tags = estimator._sequence_tags() if model.unit != "row" else None
    if tags is not None and request.sequence_id is None:
        raise Problem(f"{name} reads sequences", "name the column that says which by --sequence-id")
    if tags is None and content == "symbols":
        raise Problem(f"{name} reads no symbols", "leave --model out, to have one proposed")
    if content == "documents" and name != "MaxMarginTopics":
        raise Problem(f"{name} reads no documents", "leave --model out, to have one proposed")
    needs_label = tags is None or tags.labels != "none"
    if needs_label and request.label is None:
        raise Problem(f"{name} learns from labels", "name their column by --label")
    if not needs_label and request.label is not None:
        raise Problem(
            f"{name} takes no labels", f"put --ignore {request.label} in the place of --label"
        )
    if content == "numbers":
        _tables.check_numbers(table, features, tags is not None and tags.missing_steps)
    elif table[features[0]].isna().any():
        raise Problem(f"column '{features[0]}' has gaps", "fill them, or drop those rows")
    if request.label is not None:
        _tables.check_labels(table, request.label, tags is not None and tags.missing_labels)
        if model.unit == "sequence" and _label_unit(table, request) == "step":
            raise Problem(
                f"the label changes within sequences, and {name} gives one to each",
                "use --model MaxMarginInfiniteHMM, or give each sequence one label",
            )
    return model


def check_parameters(estimator: Any) -> None:
    """Refuse values now that `fit` would refuse."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise Problem(
            str(error).rstrip("."),
            f"see `regbayes inspect {type(estimator).__name__}` for the parameters",
        ) from error


def _label_unit(table: Any, request: Request) -> str | None:
    if request.label is None:
        return None
    if request.sequence_id is None:
        return "row"
    kinds = table.groupby(request.sequence_id)[request.label].nunique(dropna=False)
    return "sequence" if (kinds == 1).all() else "step"


def _are_counts(table: Any, features: list[str]) -> bool:
    values = table[features].to_numpy(dtype=np.float64)
    return bool((values >= 0).all() and (values % 1 == 0).all() and values.max() > 1)


def split(model: Any, table: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Training and held-out rows; sequences stay whole, and classes keep their shares."""
    rng = np.random.default_rng(seed)
    whole = np.arange(len(table))
    if model.sequence_id is not None:
        whole = table[model.sequence_id].factorize()[0]
    first = np.unique(whole, return_index=True)[1]
    kinds = np.zeros(len(first), dtype=int)
    if model.label is not None:
        by_first = table[model.label].iloc[first]
        same = table[model.label].groupby(whole).nunique(dropna=False).to_numpy() == 1
        if same.all():
            kinds = by_first.factorize()[0]
    held_out = np.zeros(len(first), dtype=bool)
    for kind in np.unique(kinds):  # a class of one stays in training
        members = rng.permutation(np.flatnonzero(kinds == kind))
        n = min(len(members) - 1, max(1, round(share * len(members))))
        held_out[members[:n]] = True
    if not held_out.any():
        raise Problem(
            "there is too little to hold any out: one item of each class",
            "add data, or fit to all by --all",
        )
    new = held_out[whole]
    train = table[~new].reset_index(drop=True)
    if model.label is not None and train[model.label].nunique() < 2:
        raise Problem(
            "the training part has one class only",
            "take another --seed or a smaller --test-share, or fit to all by --all",
        )
    return train, table[new].reset_index(drop=True)


def run(request: Request, quiet: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Fit, compare and save; returns what there is to tell."""
    import regbayes

    output = None if request.output is None else Path(request.output)
    _tables.check_output(output)
    table, model, reason = prepare(request)
    name = type(model.estimator).__name__
    say(f"[bold]{name}[/]: {reason}")
    train, new = table, None
    if not request.use_all:
        train, new = split(model, table, request.test_share, request.seed)
    request.write()
    if not quiet and "verbose" in model.estimator.get_params():
        model.estimator.set_params(verbose=True)
    begin = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        _fit_model(model, train)
    seconds = perf_counter() - begin
    notes = dict.fromkeys(" ".join(str(each.message).split()) for each in caught)
    if any(note.startswith("Ctrl-C") for note in notes) and request.checkpoint is not None:
        notes[f"`regbayes resume {request.checkpoint}` goes on"] = None
    if "verbose" in model.estimator.get_params():
        model.estimator.set_params(verbose=False)
        model.estimator_.set_params(verbose=False)
    facts: dict[str, Any] = {
        "model": name,
        "reason": reason,
        "unit": model.unit,
        "rows": len(table),
        "training_rows": len(train),
        "held_out_rows": 0 if new is None else len(new),
        "features": len(model.features),
        "found": sizes(model.estimator_),
        "seconds": round(seconds, 2),
        "notes": list(notes),
    }
    if model.sequence_id is not None:
        facts["sequences"] = int(table[model.sequence_id].nunique())
    if new is not None:
        facts |= compare(model, train, new, request.seed)
    model.facts = facts
    if output is not None:
        regbayes.save(model, output)
        facts = facts | {"output": str(output)}
    return facts


def _fit_model(model: Any, train: Any) -> None:
    """An error that the library raises itself is about what it was given; others are bugs."""
    try:
        model.fit(train)
    except (ValueError, TypeError) as error:
        frames = list(traceback.walk_tb(error.__traceback__))
        ours = frames[-1][0].f_globals["__name__"].startswith("regbayes.")
        if not ours or "To mend it" in str(error):
            raise
        name = type(model.estimator).__name__
        raise Problem(
            str(error).rstrip("."), f"see `regbayes inspect {name}` for the parameters"
        ) from error


def sizes(estimator: Any) -> dict[str, int]:
    """How many components, states, topics or features a fit found, unless it was told."""
    names = ("n_components", "n_states", "n_topics", "n_features")
    found = {name: getattr(estimator, f"{name}_", None) for name in names}
    return {
        name: int(value)
        for name, value in found.items()
        if value is not None and getattr(estimator, name, None) != value
    }


def compare(model: Any, train: Any, new: Any, seed: int) -> dict[str, Any]:
    """Held-out accuracy, beside that of simple baselines on the same split."""
    from sklearn.exceptions import ConvergenceWarning

    if model.label is None:
        steps = int(model.arrange(new).starts[-1])
        score = model.estimator_.score(model.arrange(new).inputs)
        return {"held_out_log_density_per_step": round(float(score) / steps, 4)}
    arranged, held_out = model.arrange(train), model.arrange(new)
    y, truth = _stack(model, arranged.labels), _stack(model, held_out.labels)
    answers = _stack(model, model.estimator_.predict(held_out.inputs))
    known, asked = _labelled(y), _labelled(truth)
    y, truth, answers = _typed(y[known]), _typed(truth[asked]), answers[asked]
    X, X_new = plain_features(model, arranged.inputs, held_out.inputs)
    X, X_new = X[known], X_new[asked]
    baselines = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, baseline in _baselines(seed).items():
            found = baseline.fit(X, y).predict(X_new)
            baselines[name] = round(float(np.mean(found == truth)), 4)
    return {"accuracy": round(float(np.mean(answers == truth)), 4), "baselines": baselines}


def _baselines(seed: int) -> dict[str, Any]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler
    from sklearn.svm import LinearSVC

    return {
        "largest class": DummyClassifier(),
        "linear SVM": make_pipeline(MaxAbsScaler(), LinearSVC(C=10.0, random_state=seed)),
        "random forest": RandomForestClassifier(100, random_state=seed),
    }


def _stack(model: Any, per_item: Any) -> NDArray:
    return np.concatenate(per_item) if model.unit == "step" else np.asarray(per_item)


def _labelled(y: NDArray) -> NDArray:
    if y.dtype.kind != "O":
        return np.ones(len(y), dtype=bool)
    return np.array([each is not None for each in y])


def _typed(y: NDArray) -> NDArray:
    return np.array(y.tolist())


def plain_features(model: Any, inputs: Any, new: Any) -> tuple[Any, Any]:
    """What a classifier of tables can read of the same items: a row for each.

    Steps are rows; whole sequences are ten points of each feature, its mean and its spread, or, of
    symbols, how often each of them and each pair comes.
    """
    if model.unit == "row":
        if model.views is None:
            return inputs, new
        return np.hstack([*inputs.values()]), np.hstack([*new.values()])
    if model.content == "symbols":
        return _symbol_features(model, inputs, new)
    if model.unit == "step":
        return np.nan_to_num(np.concatenate(inputs)), np.nan_to_num(np.concatenate(new))
    return np.array([*map(_curve, inputs)]), np.array([*map(_curve, new)])


def _curve(x: NDArray, n_points: int = 10) -> NDArray:
    x = np.nan_to_num(x)
    places = np.linspace(0, len(x) - 1, n_points)
    points = [np.interp(places, np.arange(len(x)), column) for column in x.T]
    return np.concatenate([*points, x.mean(axis=0), x.std(axis=0), [np.log(len(x))]])


def _symbol_features(model: Any, inputs: Any, new: Any) -> tuple[Any, Any]:
    from sklearn.feature_extraction import DictVectorizer

    reader = DictVectorizer()
    if model.unit == "step":
        found = [[{str(symbol): 1.0} for x in part for symbol in x] for part in (inputs, new)]
    else:
        found = [[_pairs(x) for x in part] for part in (inputs, new)]
    return reader.fit_transform(found[0]), reader.transform(found[1])


def _pairs(x: NDArray) -> dict[str, float]:
    counts: dict[str, float] = {}
    symbols = [str(symbol) for symbol in x]
    for key in [*symbols, *map("|".join, pairwise(symbols))]:
        counts[key] = counts.get(key, 0.0) + 1 / len(symbols)
    return counts


# The command's own options, for those who mistype one.
OPTIONS = (
    "--all",
    "--checkpoint",
    "--ignore",
    "--json",
    "--label",
    "--model",
    "--output",
    "--quiet",
    "--seed",
    "--sequence-id",
    "--set",
    "--test-share",
    "--time",
    "--views",
)
