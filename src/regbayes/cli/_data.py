"""Data sets of the library as files, and experiments of a checkout."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from regbayes.cli._problem import Problem, suggest


def listing() -> dict[str, str]:
    """Data sets by name, each with what it is."""
    from regbayes import datasets

    return {
        name.partition("_")[2]: (inspect.getdoc(getattr(datasets, name)) or "").partition("\n")[0]
        for name in datasets.__all__
        if name.startswith(("fetch_", "make_", "load_"))
    }


def as_table(name: str, seed: int = 0) -> Any:
    """A data set as a DataFrame: a row for each sample, or for each step of a sequence."""
    from regbayes import datasets

    short = name.removeprefix("fetch_").removeprefix("make_").removeprefix("load_")
    if short not in listing():
        raise Problem(f"there is no data set '{name}'", suggest(short, listing(), "there are"))
    functions = [f"{kind}_{short}" for kind in ("fetch", "make", "load")]
    function = next(getattr(datasets, each) for each in functions if each in datasets.__all__)
    seeded = "random_state" in inspect.signature(function).parameters
    try:
        return to_frame(function(random_state=seed) if seeded else function())
    except datasets.DatasetError as error:
        if "To mend it" in str(error):
            raise
        raise Problem(
            f"{short} cannot be had: {' '.join(str(error).split())}",
            "connect to the network, or set REGBAYES_DATA to a folder that has it",
        ) from error


def to_frame(bunch: Any) -> Any:
    """Columns `sequence_id`, `time` if there are sequences, the features, and `label`.

    Counts of words become a column `text`, in which every word stands as often as it was counted;
    columns of a view begin with its name.
    """
    import pandas
    from scipy.sparse import issparse

    data, target = bunch.data, bunch.target
    if issparse(data):
        words = np.array(_names(bunch, data.shape[1]), dtype=object)
        places = zip(data.indptr[:-1], data.indptr[1:])
        rows = (slice(start, end) for start, end in places)
        texts = [" ".join(np.repeat(words[data.indices[at]], data.data[at])) for at in rows]
        return pandas.DataFrame({"text": texts, "label": np.asarray(target)})
    if isinstance(data, dict):
        views = [pandas.DataFrame(view).add_prefix(f"{name}_") for name, view in data.items()]
        return pandas.concat(views, axis=1).assign(label=np.asarray(target))
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype != object:
        table = pandas.DataFrame(data, columns=_names(bunch, data.shape[1]))
        return table.assign(label=np.asarray(target))
    lengths = [len(part) for part in data]
    steps = np.concatenate([*data])
    if steps.ndim == 1 and steps.dtype.kind in "US":
        table = pandas.DataFrame({"symbol": steps})
    else:
        steps = steps.reshape(len(steps), -1)
        table = pandas.DataFrame(steps, columns=_names(bunch, steps.shape[1]))
    table.insert(0, "sequence_id", np.repeat(np.arange(len(lengths)), lengths))
    table.insert(1, "time", np.concatenate([np.arange(n) for n in lengths]))
    by_step = len(np.shape(target[0])) == 1
    labels = np.concatenate([*target]) if by_step else np.repeat(np.asarray(target), lengths)
    return table.assign(label=labels)


def _names(bunch: Any, n: int) -> list[str]:
    names = bunch.get("feature_names")
    if names is not None and len(names) == n:
        return [str(name) for name in names]
    return [f"x{i}" for i in range(n)]


def experiments() -> tuple[Path, list[str]]:
    """The root of the checkout, and the names of its experiments."""
    import regbayes

    for root in (Path.cwd(), Path(regbayes.__file__).resolve().parents[2]):
        names = sorted(file.stem for file in (root / "experiments").glob("[0-9][0-9][0-9]_*.py"))
        if names:
            return root, names
    raise Problem(
        "experiments are not part of the installed package",
        "run this in a checkout of the repository, or `make reproduce WHAT=...` there",
    )
