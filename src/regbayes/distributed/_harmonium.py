"""Harmoniums over shards of rows: the epochs of :mod:`regbayes.harmonium.learning`, with gradients
from where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks

from regbayes import _files, chains
from regbayes.data import ViewReader, ViewRows
from regbayes.data._views import _check_arrays, _guess_kind, _is_named, read_labels
from regbayes.distributed._partitions import all_classes
from regbayes.distributed._shards import Place, Shards, without_callbacks
from regbayes.harmonium import energy, learning
from regbayes.harmonium._base import FeatureClassifier, make_settings


@dataclass(frozen=True)
class Shard:
    """What a worker holds: some of the rows."""

    rows: ViewRows
    place: Place
    target: NDArray | None = None  # places of labels among the classes

    def own(self, chosen: NDArray) -> NDArray:
        """Those of the chosen rows that are here, by their place here."""
        here = chosen - self.place.before
        return here[(here >= 0) & (here < self.rows.n)]


@dataclass(frozen=True)
class Course:
    """Where learning stands."""

    state: learning.State
    shown: NDArray  # rows on which the objective is measured
    n_done: int


class Rows(NamedTuple):
    """What the epochs ask of rows that are elsewhere."""

    n: int


class Sums(NamedTuple):
    """Sums over rows: of what is to be a mean, and of them."""

    n: int
    total: list[Any]


def add(one: Sums, other: Sums) -> Sums:
    """Over the rows of both."""
    return Sums(one.n + other.n, [a + b for a, b in zip(one.total, other.total)])


def step(
    shards: Shards,
    model: energy.Model,
    settings: learning.Settings,
    rng: np.random.Generator,
    course: Course,
) -> Course:
    """An epoch of mini-batches, whose gradients are sums over the shards."""
    slope = partial(slope_over, shards)
    rate = partial(learning._rate_left, course.n_done, settings.max_iter)
    rows: Any = Rows(shards.n_items)
    state = learning.epoch(model, settings, course.state, rows, None, rng, rate, slope)
    state = learning.update_sticks(settings.prior, state)
    return Course(state, course.shown, course.n_done + 1)


def slope_over(
    shards: Shards,
    model: energy.Model,
    settings: learning.Settings,
    params: energy.Parameters,
    log_odds: NDArray | None,
    rows: Any,
    target: Any,
    chosen: NDArray,
    rng: np.random.Generator,
) -> tuple[energy.Parameters, Any]:
    """:func:`regbayes.harmonium.learning.batch_slope` of rows that are elsewhere."""
    units = settings.dropout and model.margin is not None
    random = settings.input_dropout or settings.hide_views or units
    seed = int(rng.integers(2**63)) if random else 0
    message = model, settings, params, log_odds, chosen, seed
    n, (present, *total) = shards.ask(own_slope, message, add)
    dtype = params.beta.dtype
    return params.like([(part / n).astype(dtype) for part in total]), present


def objective(
    shards: Shards, model: energy.Model, settings: learning.Settings, course: Course
) -> float:
    params, log_odds = course.state.params, course.state.log_odds
    n, (value,) = shards.ask(own_objective, (model, params, log_odds, course.shown), add)
    return value / n + learning._penalty(settings, params, shards.n_items)


# On the workers.


def own_slope(shard: Shard, _: None, message: Any) -> Sums:
    model, settings, params, log_odds, chosen, seed = message
    own = shard.own(chosen)
    if len(own) == 0:
        return Sums(0, [np.zeros(len(params.beta)), *(np.zeros(a.shape) for a in params)])
    rng = np.random.default_rng([seed, shard.place.before])
    slope, present = learning.batch_slope(
        model, settings, params, log_odds, shard.rows, shard.target, own, rng
    )
    return Sums(len(own), [present, *(len(own) * a.astype(np.float64) for a in slope)])


def own_objective(shard: Shard, _: None, message: Any) -> Sums:
    model, params, log_odds, shown = message
    own = shard.own(shown)
    if len(own) == 0:
        return Sums(0, [0.0])
    batch = learning.make_batch(model, params, log_odds, shard.rows, shard.target, own)
    return Sums(len(own), [len(own) * sum(energy.objective(model, params, batch, log_odds))])


def look(shard: Shard, _: None, message: Any) -> Sums:
    """Sums and squares of the features; of classes, numbers of members and their features."""
    model, params, log_odds = message
    features = learning.transform(model, params, log_odds, shard.rows)
    found = [features.sum(axis=0), np.sum(features**2, axis=0)]
    if shard.target is not None:
        members = np.eye(model.margin.n_outputs)[shard.target]
        found += [members.sum(axis=0), members.T @ features]
    return Sums(len(features), found)


# scikit-learn's side.


class Summary(NamedTuple):
    """What the client has to know of a view in a shard."""

    n: int
    kind: str
    is_sparse: bool
    means: NDArray  # of the columns
    squares: NDArray  # about them


class Read(NamedTuple):
    """The views of a partition, whether they have no names, its columns and theirs; labels."""

    arrays: dict[str, Any]
    plain: bool
    n_features: int
    names: Any
    labels: NDArray | None


def read(part: Any, target: Any, estimator: Any) -> Read:
    own = without_callbacks(estimator)
    arrays = _check_arrays(own, part, "error", reset=True)
    labels = read_labels(own, part, target) if isinstance(own, FeatureClassifier) else None
    names = getattr(own, "feature_names_in_", None)
    return Read(arrays, not _is_named(part), own.n_features_in_, names, labels)


def summarize(found: Read) -> tuple[Any, ...]:
    arrays, plain, n_features, names, labels = found
    views = {}
    for name, array in arrays.items():
        mean = np.asarray(array.mean(axis=0), dtype=np.float64).ravel()
        is_sparse = sparse.issparse(array)
        if is_sparse:
            square = np.asarray(array.multiply(array).sum(axis=0), dtype=np.float64).ravel()
            square -= array.shape[0] * mean**2
        else:
            square = np.sum((array - mean) ** 2, axis=0)
        views[name] = Summary(array.shape[0], _guess_kind(array), is_sparse, mean, square)
    classes = None if labels is None else np.unique(labels)
    digest = _files.digest(arrays if labels is None else [arrays, labels])
    return views, plain, n_features, names, classes, digest


def enter(found: Read, reader: ViewReader, classes: NDArray | None, place: Place) -> Shard:
    codes = None
    if classes is not None and found.labels is not None:
        codes = np.searchsorted(classes, found.labels.astype(classes.dtype)).astype(np.int64)
    return Shard(reader._enter(found.arrays), place, codes)


def row_sums(shard: Shard, _: None, message: None) -> Sums:
    """Of sizes and squares of the entries of a row, by view."""
    means = [[learning._mean_row(a, power) for a in shard.rows.arrays] for power in (1, 2)]
    return Sums(shard.rows.n, [shard.rows.n * np.array(each) for each in means])


@with_callbacks
@_fit_context(prefer_skip_nested_validation=True)
def fit(estimator: Any, client: Any, parts: list[Any], targets: list[Any]) -> Any:
    """Learn features, with the rows where they are, and a classifier if there are labels."""
    _check(estimator)
    own = without_callbacks(estimator)
    tables = [
        client.submit(read, part, target, own, pure=False) for part, target in zip(parts, targets)
    ]
    summaries = client.gather([client.submit(summarize, each, pure=False) for each in tables])
    views = [summary[0] for summary in summaries]
    if len({str([(n, len(v.means)) for n, v in view.items()]) for view in views}) > 1:
        raise ValueError(
            "the partitions of X have different columns.\nTo mend it: give all of them the same "
            "columns, in the same order."
        )
    _, plain, estimator.n_features_in_, names, _, _ = summaries[0]
    if names is not None:
        estimator.feature_names_in_ = names
    reader, spreads = _reader(views, estimator.visible, plain)
    estimator._reader = reader
    sizes = np.array([next(iter(view.values())).n for view in views])
    margin, classes = None, None
    if isinstance(estimator, FeatureClassifier):
        classes = all_classes([summary[-2] for summary in summaries], int(sizes.max()))
        estimator.classes_ = classes
        margin = estimator._margin()
    places = [Place(int(n), int(sizes.sum())) for n in np.cumsum(sizes) - sizes]
    data = [
        client.submit(enter, table, reader, classes, place, pure=False)
        for table, place in zip(tables, places)
    ]
    del tables
    shards = Shards([summary[-1] for summary in summaries], sizes, client, data)
    n, (sums, squares) = shards.ask(row_sums, None, add)
    model = estimator._model = estimator._make_model(margin)
    settings = make_settings(estimator, shards.n_items)

    def init(rng: np.random.Generator) -> Course:
        usual, width = reader.means, estimator._width
        state = learning.begin(
            model, settings, usual, n, sums / n, squares / n, width, np.float32, rng
        )
        return Course(state, np.sort(rng.permutation(n)[:200]), 0)

    with chains.watched(estimator, 1) as watch:
        found = chains.descend(
            init,
            partial(step, shards, model, settings),
            partial(objective, shards, model, settings),
            max_iter=settings.max_iter,
            tol=-np.inf,
            random_state=estimator.random_state,
            watch=watch,
            advice=None,
        )
    estimator._rng = chains.streams(estimator.random_state, 1)[0]  # for partial_fit
    estimator._state = found.state.state
    estimator.objective_, estimator.n_iter_ = found.objective, len(found.objective) - 1
    estimator.converged_ = found.converged
    params, log_odds = learning.in_double(estimator._state)
    _, (total, squares, *of_classes) = shards.ask(look, (model, params, log_odds), add)
    mean = total / n
    spread = np.sqrt(np.maximum(squares / n - mean**2, 0.0))
    params, log_odds, used = learning.switch_off(params, log_odds, mean, spread)
    estimator._keep(params, log_odds, spreads, mean[used])
    if of_classes:
        members, sums = of_classes
        estimator.class_activations_ = sums[:, used] / members[:, None]
    return estimator


def _check(estimator: Any) -> None:
    for name, value in (("solver", "adam"), ("early_stopping", False), ("missing", "error")):
        if getattr(estimator, name) != value:
            raise ValueError(
                f"rows on many machines are learnt from by mini-batches of all rows, without gaps, "
                f"and {name}={getattr(estimator, name)!r} asks for more.\n"
                f"To mend it: set {name}={value!r}."
            )


def _reader(
    views: list[dict[str, Summary]], visible: Any, plain: bool
) -> tuple[ViewReader, tuple[NDArray, ...]]:
    """Distributions and units of the views by their sums; spreads of the columns in these units."""
    names = tuple(views[0])
    kinds, centers, scales, means, totals, spreads = [], [], [], [], [], []
    for name in names:
        some = [view[name] for view in views]
        asked = visible[name] if isinstance(visible, dict) else visible
        guess = "bernoulli" if all(v.kind == "bernoulli" for v in some) else "gaussian"
        kind = guess if asked == "auto" else asked
        n = np.array([v.n for v in some], dtype=float)[:, None]
        each = np.array([v.means for v in some])
        mean = np.sum(n * each, axis=0) / n.sum()
        square = np.sum([v.squares for v in some], axis=0) + np.sum(n * (each - mean) ** 2, axis=0)
        deviation = np.sqrt(np.maximum(square, 0.0) / n.sum())
        center, scale = np.zeros_like(mean), np.ones_like(mean)
        if kind == "gaussian":
            center = center if some[0].is_sparse else mean
            # Nothing but rounding: a constant column.
            scale = np.where(deviation > 1e-15 * n.sum() * np.abs(mean), deviation, 1.0)
        kinds.append(kind)
        centers.append(center)
        scales.append(scale)
        means.append((mean - center) / scale)
        totals.append(float(mean.sum()) if kind == "count" else 0.0)
        spreads.append(deviation / scale)
    reader = ViewReader(
        names,
        tuple(kinds),
        tuple(centers),
        tuple(scales),
        tuple(means),
        tuple(totals),
        plain,
        "error",
    )
    return reader, tuple(spreads)
