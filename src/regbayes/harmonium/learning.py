"""Learning: epochs of Adam on mini-batches, or rounds of quasi-Newton on all rows as in 002.

Both lower ``mean_d [CF_d + margin_d] + |mu|^2 / 2n + weight_decay |W|^2 / 2`` and set q(v) from the
features that the rows are expected to have (002, Section III-C). Adam takes the sub-gradient of the
margin for `mu` too; the quasi-Newton rounds solve for it by the SVM of Crammer & Singer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from regbayes.chains import Watch
from regbayes.data import ViewRows
from regbayes.harmonium import energy
from regbayes.harmonium.energy import Array, Batch, Model, Parameters
from regbayes.harmonium.margins import MultiClassMargin
from regbayes.kernels.descent import adam
from regbayes.margin import crammer_singer
from regbayes.priors import BetaBernoulli, IndianBuffet

Prior = IndianBuffet | BetaBernoulli
CHUNK = 512  # rows that are reconstructed at once: no view is dense beyond them
ROUNDS = 20  # of the sticks' update, which is a slow fixed point and costs next to nothing


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
    tol: float = 1e-4


@dataclass(frozen=True)
class State:
    """What an epoch changes; the arrays of `params`, `first` and `second` are changed in place."""

    params: Parameters
    sticks: Array | None  # Beta parameters of q(v)
    log_odds: Array | None  # tau2 - tau1 by them
    present: Array  # expected rows with each feature
    n_seen: float  # among so many
    first: Parameters  # moments of Adam
    second: Parameters
    t: int = 0


def init(
    model: Model, settings: Settings, rows: ViewRows, n_features: int, dtype: Any, rng: Any
) -> State:
    """Random weights, of a size at which the activations of a typical row are about 1/2.

    From tiny ones the units stay tied and the margin has nothing to choose from: so `mu` starts
    at random too.
    """
    n_outputs = 0 if model.margin is None else model.margin.n_outputs
    means = [_column_means(array, view) for array, view in zip(rows.arrays, model.views)]
    squares = sum(_mean_square(array) for array in rows.arrays)
    size = 0.5 / np.sqrt(max(squares, 1e-12))

    def normal(scale: float, *shape: int) -> Array:
        return (scale * rng.standard_normal(shape)).astype(dtype)

    params = Parameters(
        tuple(normal(size, len(mean), n_features) for mean in means),
        tuple(view.first_bias(mean).astype(dtype) for view, mean in zip(model.views, means)),
        np.zeros(n_features, dtype),
        np.zeros(len(means), dtype),
        np.zeros(1, dtype),
        normal(0.3, n_features, n_outputs),
        np.zeros(n_outputs, dtype),
    )
    zeros = [params.like([np.zeros_like(array) for array in params]) for _ in range(2)]
    sticks = None if settings.prior is None else settings.prior.start(n_features)
    state = State(params, sticks, None, np.zeros(n_features), 0.0, *zeros)
    return replace(state, log_odds=_log_odds(settings.prior, sticks, dtype))


def epoch(
    model: Model,
    settings: Settings,
    state: State,
    rows: ViewRows,
    target: NDArray | None,
    rng: np.random.Generator,
    rate: Callable[[float], float] = lambda share: 1.0,
) -> State:
    """One pass of Adam over all rows in random order; `rate` tells the step by the share done."""
    params, log_odds, t = state.params, state.log_odds, state.t
    dtype = params.beta.dtype.type
    order = rng.permutation(rows.n)
    present = np.zeros_like(state.present)
    keep = dtype(1.0 - settings.dropout)
    for start in range(0, rows.n, settings.batch_size):
        chosen = order[start : start + settings.batch_size]
        batch = make_batch(model, params, log_odds, rows, target, chosen)
        if settings.input_dropout:
            batch = _drop_inputs(batch, settings.input_dropout, rng)
        dropped = None
        if settings.dropout and model.margin is not None:
            shape = (len(chosen), len(params.beta))
            dropped = (rng.random(shape, dtype=dtype) < keep) / keep
        gradient, units = energy.gradient(model, params, batch, log_odds, dropped=dropped)
        gradient.mu[...] += params.mu / dtype(rows.n)
        present += units.present.sum(axis=0)
        t += 1
        step = settings.learning_rate * rate(start / rows.n)
        _update(state, gradient, t, step, settings.weight_decay)
    return replace(state, present=present, n_seen=float(rows.n), t=t)


def _update(state: State, gradient: Parameters, t: int, step: float, decay: float) -> None:
    rate, correction = step / (1 - 0.9**t), 1 / np.sqrt(1 - 0.999**t)
    n_views = len(gradient.weights)
    arrays = zip(state.params, gradient, state.first, state.second)
    for i, (parameter, slope, first, second) in enumerate(arrays):
        shrink = 1.0 - step * decay if i < n_views else 1.0
        slope = np.ascontiguousarray(slope).ravel()
        adam(
            parameter.ravel(), slope, first.ravel(), second.ravel(),
            rate, shrink, (0.1, 0.001), correction,
        )  # fmt: skip


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
        first=state.first.take(order),
        second=state.second.take(order),
        present=present,
        sticks=sticks,
        log_odds=_log_odds(prior, sticks, state.params.beta.dtype),
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
    moving = [array for array in params]
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
        options={"maxiter": 20},
    )
    params = unpack(found.x)
    _, _, present = evaluate(model, settings, params, state.log_odds, rows, target)
    return replace(state, params=params, present=present, n_seen=float(rows.n))


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
    return replace(params, mu=np.ascontiguousarray(svm.weights[:, :-1].T), intercept=svm.weights[:, -1])


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
    value += 0.5 * settings.weight_decay * sum(float(np.sum(W**2)) for W in params.weights)
    outputs = ((total.mu, params.mu), (total.intercept, params.intercept))
    for slope, array in outputs:
        slope += array / n
        value += float(np.sum(array**2)) / (2 * n)
    return value, total, present


def make_batch(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    rows: ViewRows,
    target: NDArray | None,
    chosen: Any,
) -> Batch:
    """Some rows, with what is missing among them inferred."""
    some = rows.take(chosen)
    dtype = params.beta.dtype
    batch = Batch(
        tuple(None if x is None else x.astype(dtype, copy=False) for x in some.arrays),
        some.totals,
        None if target is None else target[chosen],
    )
    if any(rows.gaps):
        batch = infer_missing(model, params, log_odds, batch, rows.gaps, some.n)
    return batch


def infer_missing(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    batch: Batch,
    gaps: tuple[bool, ...],
    n: int,
    rounds: int = 10,
) -> Batch:
    """Mean field between the units and the inputs that are not known, from the views' means."""
    filled, unknown = list(batch.views), []
    for v, (x, gap) in enumerate(zip(batch.views, gaps)):
        if gap:
            shape = n, len(params.biases[v])
            dense = np.full(shape, np.nan, params.beta.dtype) if x is None else _dense(x).copy()
            filled[v], holes = dense, np.isnan(dense)
            unknown.append((v, holes))
    first = view_means_of_nothing(model, params, batch.totals, n)
    for v, holes in unknown:
        filled[v][holes] = first[v][holes]
    for _ in range(rounds):
        _, units = energy.expect_units(model, params, filled, log_odds)
        means = energy.view_means(model, params, units.mean, batch.totals)
        for v, holes in unknown:
            filled[v][holes] = means[v][holes]
    return batch._replace(views=tuple(filled))


def view_means_of_nothing(model: Model, params: Parameters, totals: Any, n: int) -> tuple:
    """What the views look like when no unit speaks."""
    return energy.view_means(model, params, np.zeros((n, len(params.beta)), params.beta.dtype), totals)


def transform(model: Model, params: Parameters, log_odds: Array | None, rows: ViewRows) -> Array:
    """E[z h | x] of all rows."""
    out = np.empty((rows.n, len(params.beta)), params.beta.dtype)
    for start in range(0, rows.n, CHUNK):
        chosen = slice(start, min(start + CHUNK, rows.n))
        batch = make_batch(model, params, log_odds, rows, None, chosen)
        out[chosen] = energy.expect_units(model, params, batch.views, log_odds)[1].mean
    return out


def prune(state: State, features: Array, threshold: float = 0.01) -> tuple[Parameters, Array]:
    """Switch off features that hardly differ from row to row; what they always say is a bias.

    Returns the parameters, and the numbers of the features that are left.
    """
    params, average, spread = state.params, features.mean(axis=0), features.std(axis=0)
    used = spread > threshold * spread.max(initial=0.0)
    used[np.argmax(spread)] = True
    idle = np.where(used, 0.0, average).astype(params.beta.dtype)
    params = replace(
        params,
        biases=tuple(bias + W @ idle for bias, W in zip(params.biases, params.weights)),
        intercept=params.intercept + idle @ params.mu,
    )
    kept = np.flatnonzero(used)
    return params.take(kept), kept


def sample(
    model: Model,
    params: Parameters,
    log_odds: Array | None,
    start: tuple[Array, ...],
    totals: tuple[Array | None, ...],
    n_steps: int,
    rng: np.random.Generator,
) -> tuple[Array, ...]:
    """Gibbs sampling: units given views, views given units."""
    views, variance = start, np.exp(params.log_unit_variance)
    for _ in range(n_steps):
        a = energy.activations(params, views)
        features = model.units.draw(a, log_odds, variance, rng)
        views = tuple(
            view.draw(natural, s, total, rng)
            for view, natural, s, total in zip(
                model.views, energy.naturals(params, features), np.exp(params.log_variances), totals
            )
        )
    return views


def _drop_inputs(batch: Batch, share: float, rng: np.random.Generator) -> Batch:
    """Leave out inputs at random, the others grow: activations stay what they are on average."""

    def drop(values: Array) -> Array:
        kind = values.dtype.type
        return values * ((rng.random(values.shape, dtype=kind) >= share) / kind(1 - share))

    views = tuple(
        type(x)((drop(x.data), x.indices, x.indptr), shape=x.shape) if sparse.issparse(x) else drop(x)
        for x in batch.views
    )
    return batch._replace(views=views)


def _log_odds(prior: Prior | None, sticks: Array | None, dtype: Any) -> Array | None:
    return None if prior is None else prior.log_odds(sticks).astype(dtype)


def _dense(x: Any) -> Array:
    return x.toarray() if sparse.issparse(x) else x


def _column_means(array: Any, view: Any) -> Array:
    if sparse.issparse(array):
        filled = array.copy()
        filled.data = np.nan_to_num(filled.data)
        return np.asarray(filled.mean(axis=0), dtype=np.float64).ravel()
    known = np.maximum((~np.isnan(array)).sum(axis=0), 1)
    return np.nansum(array, axis=0, dtype=np.float64) / known


def _mean_square(array: Any) -> float:
    values = array.data if sparse.issparse(array) else array
    return float(np.nansum(values.astype(np.float64) ** 2)) / array.shape[0]
