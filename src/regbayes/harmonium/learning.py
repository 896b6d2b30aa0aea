"""Learning: epochs of Adam on mini-batches, or rounds of quasi-Newton on all rows as in 002.

Both lower ``mean_d [CF_d + margin_d] + |mu|^2 / 2n + weight_decay |W|^2 / 2`` and set q(v) from the
features that the rows are expected to have (002, Section III-C). Adam takes the sub-gradient of the
margin for `mu` too; the quasi-Newton rounds solve for it by the SVM of Crammer & Singer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from regbayes import chains
from regbayes.chains import Watch
from regbayes.data import ViewRows
from regbayes.harmonium import energy
from regbayes.harmonium.energy import Array, Batch, Model, Parameters
from regbayes.harmonium.margins import MultiClassMargin
from regbayes.kernels.descent import adam
from regbayes.margin import crammer_singer
from regbayes.priors import BetaBernoulli, IndianBuffet

Prior = IndianBuffet | BetaBernoulli
Slope = Callable[..., tuple[Parameters, Any]]
_DTYPES = {"adam": np.float32, "lbfgs": np.float64}
CHUNK = 512  # rows that are reconstructed at once: no view is dense beyond them
LOG_VARIANCE_BOUND = 10.0
ROUNDS = 5  # of the sticks' update, which is a slow fixed point


@dataclass(frozen=True)
class Settings:
    """How to learn: what the estimators' parameters of the same names say."""

    prior: Prior | None = None
    batch_size: int = 200
    learning_rate: float = 3e-3
    max_iter: int = 30
    dropout: float = 0.0
    input_dropout: float = 0.0
    weight_decay: float = 0.0
    hide_views: float = 0.0  # share of rows that learn without one of their views
    tol: float | None = None  # change of the objective, relative, at which to stop
    patience: int = 10  # epochs without progress on the rows held out


@dataclass(frozen=True)
class State:
    """What an epoch changes; the arrays of `params` and `moments` are changed in place."""

    params: Parameters
    sticks: Array | None  # Beta parameters of q(v)
    log_odds: Array | None  # tau2 - tau1 by them
    present: Array  # expected rows with each feature
    n_seen: float  # among so many
    moments: Moments
    view_rates: tuple[float, ...]  # steps of the weights of each view, relative


@dataclass(frozen=True)
class Moments:
    """Running averages of a gradient and of its squares, over `t` steps (Kingma & Ba 2015)."""

    first: Parameters
    second: Parameters
    t: int = 0

    @classmethod
    def of(cls, params: Parameters) -> Moments:
        first, second = (params.like([np.zeros_like(a) for a in params]) for _ in range(2))
        return cls(first, second)

    def step(
        self,
        params: Parameters,
        gradient: Parameters,
        rate: float,
        decay: float,
        view_rates: tuple[float, ...],
        moving: Sequence[bool] | None = None,
    ) -> Moments:
        """Move `params` in place, or those of its arrays that are `moving`; the weights W also
        shrink by ``rate * decay``."""
        t, n_views = self.t + 1, len(view_rates)
        length, correction = rate / (1 - 0.9**t), 1 / np.sqrt(1 - 0.999**t)
        for i, (values, slope, first, second) in enumerate(
            zip(params, gradient, self.first, self.second)
        ):
            if values.size and (moving is None or moving[i]):
                shrink = 1.0 - rate * decay if i < n_views else 1.0
                pace = length * view_rates[i] if i < n_views else length
                adam(
                    values.ravel(), slope.ravel(), first.ravel(), second.ravel(),
                    pace, shrink, (0.1, 0.001), correction,
                )  # fmt: skip
        return Moments(self.first, self.second, t)


class Learnt(NamedTuple):
    """What :func:`learn` returns."""

    state: State
    objective: NDArray  # of a sample of rows, at the start and after every epoch
    validation: NDArray  # loss on the rows held out, after every epoch
    converged: bool


@dataclass(frozen=True)
class Course:
    """Where learning stands: all that the next epoch or round depends on."""

    state: State
    shown: NDArray  # the rows on which the objective is measured
    value: float  # of the objective
    change: float = np.inf  # of it, by the last epoch
    n_done: int = 0
    best: State | None = None  # by the rows held out
    losses: tuple[float, ...] = ()  # on them, after every epoch


class Task(Protocol):
    """What to learn from which rows: a record, so that a checkpoint knows it again."""

    @property
    def settings(self) -> Settings: ...

    def start(self, rng: np.random.Generator) -> tuple[State, NDArray]:
        """The first state, and the rows to measure the objective on."""

    def epoch(
        self, rng: np.random.Generator, state: State, rate: Callable[[float], float]
    ) -> State:
        """One pass; `rate` tells how the step falls from 1 to 0 by the share of it done."""

    def measure(self, state: State, shown: NDArray) -> float:
        """The objective."""

    def validate(self, state: State) -> float | None:
        """The loss on the rows held out, if there are any."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Features of rows, and with a margin what they say about the target."""

    model: Model
    settings: Settings
    rows: ViewRows
    target: NDArray | None
    n_features: int
    solver: str = "adam"
    held_out: tuple[ViewRows, NDArray | None] | None = None

    def start(self, rng: np.random.Generator) -> tuple[State, NDArray]:
        n, dtype = self.rows.n, _DTYPES[self.solver]
        state = init(self.model, self.settings, self.rows, self.n_features, dtype, rng)
        some = np.sort(rng.permutation(n)[:200]) if self.solver == "adam" else np.arange(n)
        return state, some

    def epoch(
        self, rng: np.random.Generator, state: State, rate: Callable[[float], float]
    ) -> State:
        what = self.model, self.settings, state, self.rows, self.target, rng
        state = epoch(*what, rate) if self.solver == "adam" else quasi_newton(*what)
        return update_sticks(self.settings.prior, state)

    def measure(self, state: State, shown: NDArray) -> float:
        return _measure(self.model, self.settings, state, self.rows, self.target, shown)

    def validate(self, state: State) -> float | None:
        if self.held_out is None:
            return None
        return validation_loss(self.model, state, *self.held_out)


def learn(task: Task, seed: int, watch: Watch | None = None) -> Learnt:
    """Epochs or rounds until they are done, settle, or the rows held out say that it is enough.

    Adam's steps shorten to nothing over the epochs. With rows held out the best epoch is kept.
    """
    settings = task.settings

    def begin(rng: np.random.Generator) -> Course:
        state, shown = task.start(rng)
        return Course(state, shown, task.measure(state, shown))

    found = chains.descend(
        begin,
        partial(advance, task),
        lambda course: course.value,
        settled=partial(is_enough, settings),
        max_iter=settings.max_iter,
        random_state=seed,
        watch=watch,
        advice=None,
    )
    course = found.state
    best = course.state if course.best is None else course.best
    return Learnt(best, found.objective, np.array(course.losses), found.converged)


def advance(task: Task, rng: np.random.Generator, course: Course) -> Course:
    """One epoch or round, and what came of it."""
    rate = partial(_rate_left, course.n_done, task.settings.max_iter)
    state = task.epoch(rng, course.state, rate)
    value, loss = task.measure(state, course.shown), task.validate(state)
    best, losses = course.best, course.losses
    if loss is not None:
        losses = (*losses, loss)
        best = _copy(state) if loss <= min(losses) else best
    change, n_done = abs(course.value - value), course.n_done + 1
    return Course(state, course.shown, value, change, n_done, best, losses)


def is_enough(settings: Settings, course: Course) -> bool:
    """Whether the objective has settled, or the rows held out have not gained for long."""
    if settings.tol is not None and course.change <= settings.tol * abs(course.value):
        return True
    losses = course.losses
    return bool(losses) and len(losses) - int(np.argmin(losses)) > settings.patience


def _rate_left(done: int, max_iter: int, share: float) -> float:
    return 1 - (done + share) / max_iter


def validation_loss(model: Model, state: State, rows: ViewRows, target: NDArray | None) -> float:
    """Share of wrong labels, mean loss of numbers, or the contrastive divergence."""
    params, log_odds = state.params, state.log_odds
    if model.margin is None:
        batch = make_batch(model, params, log_odds, rows, None, slice(0, rows.n))
        return energy.objective(model, params, batch, log_odds)[0]
    scores = transform(model, params, log_odds, rows) @ params.mu + params.intercept
    if isinstance(model.margin, MultiClassMargin):
        return float(np.mean(scores.argmax(axis=1) != target))
    losses, _ = model.margin.losses(scores, np.asarray(target))
    return float(losses.mean())


def _measure(
    model: Model,
    settings: Settings,
    state: State,
    rows: ViewRows,
    target: NDArray | None,
    shown: NDArray,
) -> float:
    value = 0.0
    for part in np.array_split(shown, -(-len(shown) // CHUNK)):
        batch = make_batch(model, state.params, state.log_odds, rows, target, part)
        parts = energy.objective(model, state.params, batch, state.log_odds)
        value += sum(parts) * len(part) / len(shown)
    return value + _penalty(settings, state.params, rows.n)


def _penalty(settings: Settings, params: Parameters, n: int) -> float:
    weights = sum(float(np.sum(W**2)) for W in params.weights)
    outputs = float(np.sum(params.mu**2) + np.sum(params.intercept**2))
    return 0.5 * settings.weight_decay * weights + outputs / (2 * n)


def _copy(state: State) -> State:
    """Epochs change the parameters in place."""
    return replace(state, params=state.params.like([array.copy() for array in state.params]))


def init(
    model: Model, settings: Settings, rows: ViewRows, n_features: int, dtype: Any, rng: Any
) -> State:
    """Random weights, of a size at which the activations of a typical row are about 1/2.

    From tiny ones the units stay tied and the margin has nothing to choose from: so `mu` starts
    at random too.
    """
    sums, squares = ([_mean_row(array, power) for array in rows.arrays] for power in (1, 2))
    return begin(model, settings, rows.usual, rows.n, sums, squares, n_features, dtype, rng)


def begin(
    model: Model,
    settings: Settings,
    usual: tuple[Array, ...],
    n: int,
    sums: Any,
    squares: Any,
    n_features: int,
    dtype: Any,
    rng: Any,
) -> State:
    """`init` by the means of the columns, and of the sums and squares of rows, of each view."""
    n_outputs = 0 if model.margin is None else model.margin.n_outputs
    # Adam's steps are alike for all weights, so a view of a thousand columns would move the
    # activations a hundred times as fast as one of ten, and drown it.
    sums, squares = np.maximum(sums, 1e-12), np.maximum(squares, 1e-12)
    sizes = 0.5 / np.sqrt(len(squares) * squares)
    view_rates = tuple((sums.min() / sums).tolist())

    def normal(scale: float, *shape: int) -> Array:
        return (scale * rng.standard_normal(shape)).astype(dtype)

    params = Parameters(
        tuple(normal(size, len(m), n_features) for size, m in zip(sizes, usual)),
        tuple(view.first_bias(mean).astype(dtype) for view, mean in zip(model.views, usual)),
        np.zeros(n_features, dtype),
        np.zeros(len(usual), dtype),
        np.zeros(1, dtype),
        normal(0.3, n_features, n_outputs),
        np.zeros(n_outputs, dtype),
    )
    moments = Moments.of(params)
    if settings.prior is None:
        return State(params, None, None, np.zeros(n_features), 0.0, moments, view_rates)
    # As if the rows had had the features at the prior's rate: its expected log odds are far lower,
    # and from there nothing starts.
    sticks = settings.prior.start(n_features)
    present = n * settings.prior.expected(n_features)
    state = State(params, sticks, None, present, float(n), moments, view_rates)
    for _ in range(4):
        state = update_sticks(settings.prior, state)
    return state


def epoch(
    model: Model,
    settings: Settings,
    state: State,
    rows: ViewRows,
    target: NDArray | None,
    rng: np.random.Generator,
    rate: Callable[[float], float] = lambda share: 1.0,
    slope: Slope | None = None,
) -> State:
    """One pass of Adam over all rows in random order; `rate` tells the step by the share done.

    `slope` is :func:`batch_slope`, or does the same where the rows are.
    """
    params, log_odds, moments = state.params, state.log_odds, state.moments
    dtype = params.beta.dtype.type
    slope = batch_slope if slope is None else slope
    order = rng.permutation(rows.n)
    present = np.zeros_like(state.present)
    variances = () if model.learn_variance else (params.log_variances, params.log_unit_variance)
    moving = [all(array is not each for each in variances) for array in params]
    for start in range(0, rows.n, settings.batch_size):
        chosen = order[start : start + settings.batch_size]
        gradient, found = slope(model, settings, params, log_odds, rows, target, chosen, rng)
        if model.margin is not None:
            gradient.mu[...] += params.mu / dtype(rows.n)
            gradient.intercept[...] += params.intercept / dtype(rows.n)
        present += found
        length = settings.learning_rate * rate(start / rows.n)
        decay, rates = settings.weight_decay, state.view_rates
        moments = moments.step(params, gradient, length, decay, rates, moving)
    # A feature that has found nothing yet is rare, and would be held for rarer at once: so q(v)
    # follows by a step, over a quarter of the learning.
    forget = min(1.0, 4.0 / settings.max_iter)
    present = (1 - forget) * state.present + forget * present
    return replace(state, present=present, n_seen=float(rows.n), moments=moments)


def batch_slope(
    model: Model,
    settings: Settings,
    params: Parameters,
    log_odds: Array | None,
    rows: ViewRows,
    target: NDArray | None,
    chosen: NDArray,
    rng: np.random.Generator,
) -> tuple[Parameters, Any]:
    """The gradient of the mean over some rows, and how many are expected to have each feature."""
    dtype = params.beta.dtype.type
    hidden = None
    if settings.hide_views and len(model.views) > 1:
        hidden = rng.integers(len(model.views), size=len(chosen))
        hidden[rng.random(len(chosen)) >= settings.hide_views] = -1
    batch = make_batch(model, params, log_odds, rows, target, chosen, hidden)
    if settings.input_dropout:
        batch = _drop_inputs(batch, settings.input_dropout, rng)
    dropped = None
    if settings.dropout and model.margin is not None:
        shape, keep = (len(chosen), len(params.beta)), dtype(1.0 - settings.dropout)
        dropped = (rng.random(shape, dtype=dtype) < keep) / keep
    gradient, units = energy.gradient(model, params, batch, log_odds, dropped=dropped)
    return gradient, 0.0 if settings.prior is None else units.present.sum(axis=0)


def update_sticks(prior: Prior | None, state: State) -> State:
    """Common features first, as the buffet has them; then q(v) (Doshi-Velez et al. 2009)."""
    if prior is None:
        return state
    order = np.argsort(-state.present, kind="stable")
    present, sticks = state.present[order], state.sticks
    for _ in range(ROUNDS):
        sticks = prior.posterior(present, state.n_seen, sticks)
    return replace(
        state,
        params=state.params.take(order),
        moments=replace(
            state.moments,
            first=state.moments.first.take(order),
            second=state.moments.second.take(order),
        ),
        present=present,
        sticks=sticks,
        log_odds=prior.log_odds(sticks).astype(state.params.beta.dtype),
    )


def quasi_newton(
    model: Model,
    settings: Settings,
    state: State,
    rows: ViewRows,
    target: NDArray | None,
    rng: np.random.Generator,
) -> State:
    """A round as in 002, Section V-C: `mu` by an SVM, then the other parameters by L-BFGS."""
    params = state.params
    solved = isinstance(model.margin, MultiClassMargin)
    if solved:
        params = solve_margin(model, params, state.log_odds, rows, target, rng)
    # Solved ones wait for the next SVM.
    moving = list(params)
    n_moving = len(moving) - (2 if solved else 0)
    sizes = np.cumsum([array.size for array in moving[:n_moving]])

    def unpack(flat: Array) -> Parameters:
        parts = np.split(flat, sizes[:-1])
        new = [part.reshape(array.shape) for part, array in zip(parts, moving)]
        return params.like([*new, *moving[n_moving:]])

    def value_and_slope(flat: Array) -> tuple[float, Array]:
        value, slope, _ = evaluate(model, settings, unpack(flat), state.log_odds, rows, target)
        return value, np.concatenate([part.ravel() for part in list(slope)[:n_moving]])

    found = optimize.minimize(
        value_and_slope,
        np.concatenate([array.ravel() for array in moving[:n_moving]]),
        jac=True,
        method="L-BFGS-B",
        bounds=_bounds_of_variances(params, n_moving) if model.learn_variance else None,
        options={"maxiter": 20},
    )
    params = unpack(found.x)
    _, _, present = evaluate(model, settings, params, state.log_odds, rows, target)
    return replace(state, params=params, present=present, n_seen=float(rows.n))


def _bounds_of_variances(params: Parameters, n_moving: int) -> optimize.Bounds:
    """None but for the logarithms of variances: that of a constant view would fall for ever."""
    free = [np.full(array.size, np.inf) for array in params]
    for i in (2 * len(params.weights) + 1, 2 * len(params.weights) + 2):
        free[i][:] = LOG_VARIANCE_BOUND
    most = np.concatenate(free[:n_moving])
    return optimize.Bounds(-most, most)


def solve_margin(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    rows: ViewRows,
    target: NDArray | None,
    rng: np.random.Generator,
) -> Parameters:
    """`mu` and the intercept by the SVM on the expected features, a constant beside them."""
    margin = model.margin
    assert isinstance(margin, MultiClassMargin)
    features = transform(model, params, log_odds, rows)
    svm = crammer_singer(
        np.column_stack([features, np.ones(rows.n)]), target, margin.n_outputs,
        rng=rng, C=margin.C, cost=margin.cost, tol=1e-3, max_iter=200,
    )  # fmt: skip
    return replace(
        params, mu=np.ascontiguousarray(svm.weights[:, :-1].T), intercept=svm.weights[:, -1]
    )


def evaluate(
    model: Model,
    settings: Settings,
    params: Parameters,
    log_odds: Array | None,
    rows: ViewRows,
    target: NDArray | None,
) -> tuple[float, Parameters, Array]:
    """The objective, its exact gradient, and the expected rows with each feature; by chunks."""
    n = rows.n
    total = params.like([np.zeros_like(array) for array in params])
    value, present = 0.0, np.zeros(len(params.beta))
    for start in range(0, n, CHUNK):
        chosen = np.arange(start, min(start + CHUNK, n))
        share = len(chosen) / n
        batch = make_batch(model, params, log_odds, rows, target, chosen)
        value += share * sum(energy.objective(model, params, batch, log_odds))
        gradient, units = energy.gradient(model, params, batch, log_odds, exact=True)
        for sum_, part in zip(total, gradient):
            sum_ += share * part
        present += units.present.sum(axis=0)
    for slope, W in zip(total.weights, params.weights):
        slope += settings.weight_decay * W
    total.mu[...] += params.mu / n
    total.intercept[...] += params.intercept / n
    return value + _penalty(settings, params, n), total, present


def make_batch(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    rows: ViewRows,
    target: NDArray | None,
    chosen: Any,
    hidden: NDArray | None = None,
) -> Batch:
    """Some rows, with what is missing inferred; `hidden` has a view that each row shall lack."""
    some = rows.take(chosen)
    dtype = params.beta.dtype
    batch = Batch(
        tuple(None if x is None else x.astype(dtype, copy=False) for x in some.arrays),
        some.totals,
        None if target is None else target[chosen],
    )
    if hidden is None and not any(rows.gaps):
        return batch
    holes: dict[int, Array] = {}
    filled = list(batch.views)
    for v, (x, usual) in enumerate(zip(batch.views, rows.usual)):
        if rows.gaps[v] or hidden is not None:
            dense = np.full((some.n, len(usual)), np.nan, dtype) if x is None else _dense(x).copy()
            if hidden is not None:
                dense[hidden == v] = np.nan
            filled[v], holes[v] = dense, np.isnan(dense)
            dense[holes[v]] = np.broadcast_to(usual, dense.shape)[holes[v]]
    return infer_missing(model, params, log_odds, batch._replace(views=tuple(filled)), holes)


def infer_missing(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    batch: Batch,
    holes: dict[int, Array],
    rounds: int = 3,
) -> Batch:
    """Mean field between the units and the inputs that are not known, which starts at their means
    in training. More rounds forget the inputs that are known (decision 015)."""
    for _ in range(rounds):
        _, units = energy.expect_units(model, params, batch.views, log_odds)
        means = energy.view_means(model, params, units.mean, batch.totals)
        for v, where in holes.items():
            batch.views[v][where] = means[v][where]
    return batch


def transform(model: Model, params: Parameters, log_odds: Array | None, rows: ViewRows) -> Array:
    """E[z h | x] of all rows."""
    out = np.empty((rows.n, len(params.beta)), params.beta.dtype)
    for start in range(0, rows.n, CHUNK):
        chosen = slice(start, min(start + CHUNK, rows.n))
        batch = make_batch(model, params, log_odds, rows, None, chosen)
        out[chosen] = energy.expect_units(model, params, batch.views, log_odds)[1].mean
    return out


def go_on(
    model: Model,
    settings: Settings,
    state: State,
    rows: ViewRows,
    target: NDArray | None,
    rng: np.random.Generator,
) -> State:
    """An epoch over other rows, at the full rate."""
    share = rows.n / max(state.n_seen, 1.0)
    state = replace(state, present=state.present * share)
    state = epoch(model, settings, state, rows, target, rng)
    return update_sticks(settings.prior, state)


class Finished(NamedTuple):
    """What predictions need, in double precision, and what the training rows look like by it."""

    params: Parameters
    log_odds: Array | None
    features: Array  # of the training rows
    spreads: tuple[Array, ...]  # standard deviations of the columns of the views


def finish(model: Model, state: State, rows: ViewRows, threshold: float = 0.01) -> Finished:
    """Switch off features that hardly differ from row to row; what they always say is a bias.

    Only models with a prior on features do; those that go have less than `threshold` of the
    standard deviation of the liveliest.
    """
    params, log_odds = in_double(state)
    features = transform(model, params, log_odds, rows)
    params, log_odds, used = switch_off(
        params, log_odds, features.mean(axis=0), features.std(axis=0), threshold
    )
    spreads = tuple(_column_spreads(array) for array in rows.arrays)
    return Finished(params, log_odds, features[:, used], spreads)


def in_double(state: State) -> tuple[Parameters, Array | None]:
    """Parameters and log odds, in double precision."""
    params = state.params.like([array.astype(np.float64) for array in state.params])
    return params, None if state.log_odds is None else state.log_odds.astype(np.float64)


def switch_off(
    params: Parameters, log_odds: Array | None, mean: Array, spread: Array, threshold: float = 0.01
) -> tuple[Parameters, Array | None, Array]:
    """`finish` by means and standard deviations of the features; also, which are left."""
    if log_odds is None:
        return params, None, np.ones(len(mean), dtype=bool)
    used = spread >= threshold * spread.max()
    idle = np.where(used, 0.0, mean)
    params = replace(
        params,
        biases=tuple(bias + W @ idle for bias, W in zip(params.biases, params.weights)),
        intercept=params.intercept + idle @ params.mu,
    ).take(used)
    return params, log_odds[used], used


def reconstruct(
    model: Model, params: Parameters, log_odds: Array | None, rows: ViewRows
) -> tuple[Array, ...]:
    """Expected inputs given the expected features."""
    features = transform(model, params, log_odds, rows)
    return energy.view_means(model, params, features, rows.totals)


def sample(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    usual: tuple[Array, ...],
    totals: tuple[Array | None, ...],
    n: int,
    n_steps: int,
    rng: np.random.Generator,
) -> tuple[Array, ...]:
    """Gibbs sampling: units given views, views given units; from the mean of training."""
    views = tuple(np.tile(mean.astype(params.beta.dtype), (n, 1)) for mean in usual)
    variances, unit_variance = np.exp(params.log_variances), np.exp(params.log_unit_variance)
    for _ in range(n_steps):
        a = energy.activations(params, views)
        features = model.units.draw(a, log_odds, unit_variance, rng)
        views = tuple(
            view.draw(natural, s, total, rng)
            for view, natural, s, total in zip(
                model.views, energy.naturals(params, features), variances, totals
            )
        )
    return views


def _drop_inputs(batch: Batch, share: float, rng: np.random.Generator) -> Batch:
    """Leave out inputs at random, the others grow: activations stay what they are on average."""

    def drop(values: Array) -> Array:
        kind = values.dtype.type
        return values * ((rng.random(values.shape, dtype=kind) >= share) / kind(1 - share))

    views = tuple(
        type(x)((drop(x.data), x.indices, x.indptr), shape=x.shape)
        if sparse.issparse(x)
        else drop(x)
        for x in batch.views
    )
    return batch._replace(views=views)


def _dense(x: Any) -> Array:
    return x.toarray() if sparse.issparse(x) else x


def _column_spreads(array: Any) -> Array:
    if not sparse.issparse(array):
        known = ~np.isnan(array)  # maybe nowhere in a column
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, array, 0.0).sum(axis=0, dtype=np.float64) / count
        return np.sqrt(np.where(known, (array - mean) ** 2, 0.0).sum(axis=0) / count)
    mean = np.asarray(array.mean(axis=0), dtype=np.float64).ravel()
    square = np.asarray(array.multiply(array).mean(axis=0), dtype=np.float64).ravel()
    return np.sqrt(np.maximum(np.nan_to_num(square - mean**2), 0.0))


def _mean_row(array: Any, power: int) -> float:
    """Mean over rows of the sum of a power of their sizes."""
    values = array.data if sparse.issparse(array) else array
    return float(np.nansum(np.abs(values, dtype=np.float64) ** power)) / array.shape[0]
