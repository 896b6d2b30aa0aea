"""The only loops of the variational methods: rounds that lower an objective, steps that do."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from regbayes.chains._checkpoint import Page, Progress
from regbayes.chains._progress import Watch, in_this_process
from regbayes.chains._run import Init, State, Step, draw_seed, each, streams

Best = TypeVar("Best")


class Descent(NamedTuple, Generic[Best]):
    """What :func:`descend` returns: a state, the objective along the way, whether it settled."""

    state: Best
    objective: np.ndarray
    converged: bool


def descend(
    init: Init,
    step: Step,
    objective: Callable[[State], float],
    *,
    finish: Step = lambda rng, state: state,
    max_iter: int = 100,
    tol: float = 1e-5,
    settled: Callable[[State], bool] | None = None,
    n_init: int = 1,
    random_state: Any = None,
    watch: Watch | None = None,
    advice: str | None = "raise max_iter or tol, or lower C",
) -> Descent[State]:
    """From `n_init` starts, go on until a round lowers the objective by less than `tol` of it.

    Parameters
    ----------
    init : callable(rng) -> state
    step : callable(rng, state) -> state
        One round, which does not raise the objective.
    objective : callable(state) -> float
    finish : callable(rng, state) -> state
        Applied to the last state.
    max_iter : int
        At most this many rounds; a warning says so when they were too few.
    settled : callable(state) -> bool, optional
        When to end, in the place of `tol`, for methods whose objective may rise.
    watch : Watch, optional
        Where progress is told and checkpoints are kept; a callback that answers True ends its
        start early.
    advice : str, optional
        What to do when the rounds were too few; None for methods that may well stop early.

    Returns
    -------
    Descent
        Of the start with the lowest objective: its last state, the objective at the start and
        after every round, and False if `max_iter` came first.

    Examples
    --------
    >>> found = descend(
    ...     init=lambda rng: rng.normal(),
    ...     step=lambda rng, x: x / 2,
    ...     objective=lambda x: 1 + x**2,
    ...     random_state=0)
    >>> bool(abs(found.state) < 0.01), found.converged
    (True, True)
    """
    watch = Watch() if watch is None else watch
    found: list[Descent[State]] = []
    for descent in descend_each(
        lambda rng, index: init(rng),
        step,
        objective,
        n_init,
        finish=finish,
        max_iter=max_iter,
        tol=tol,
        settled=settled,
        random_state=random_state,
        watch=watch,
    ):
        found.append(descent)
        if watch.stopped:
            break
    best = min(found, key=lambda descent: descent.objective[-1])
    if not best.converged and advice is not None and not watch.stopped:
        warnings.warn(
            f"the objective still falls after max_iter={max_iter} rounds; {advice}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return best


def descend_each(
    init: Callable[[np.random.Generator, int], State],
    step: Step,
    objective: Callable[[State], float],
    n: int,
    *,
    finish: Step = lambda rng, state: state,
    max_iter: int = 100,
    tol: float = 1e-5,
    settled: Callable[[State], bool] | None = None,
    random_state: Any = None,
    watch: Watch | None = None,
    n_jobs: int | None = 1,
) -> Iterator[Descent[State]]:
    """Descents one after the other, each with a stream and a checkpoint of its own.

    Parameters
    ----------
    init : callable(rng, index) -> state
        Where descent number `index` of `n` begins.
    step, objective, finish, max_iter, tol, settled, random_state, watch
        As in :func:`descend`.
    n_jobs : int, default=1
        So many at once, or as many as :func:`joblib.parallel_config` says, where it says, if None.
        With callbacks or a checkpoint, still one after the other.

    Examples
    --------
    >>> found = descend_each(
    ...     lambda rng, index: 8.0 * index, lambda rng, x: x / 2, lambda x: x**2, 2, max_iter=3)
    >>> [descent.state for descent in found]
    [0.0, 1.0]
    """
    watch = Watch() if watch is None else watch
    seed = draw_seed(random_state, watch.checkpoint)
    rounds = _Rounds(init, step, objective, finish, max_iter, tol, settled)
    if n_jobs != 1 and watch.idle:
        here = watch if in_this_process() else None  # it cannot travel
        numbered = list(enumerate(streams(seed, n)))
        yield from each(partial(_descent, rounds, watch=here), numbered, n_jobs)
        return
    logbook = watch.logbook(step, seed)
    for numbered_stream in enumerate(streams(seed, n)):
        page = None if logbook is None else logbook.open(numbered_stream[0])
        yield _descent(rounds, numbered_stream, page, watch)


class _Rounds(NamedTuple):
    """What :func:`descend_each` was told."""

    init: Callable[[np.random.Generator, int], Any]
    step: Step
    objective: Callable[[Any], float]
    finish: Step
    max_iter: int
    tol: float
    settled: Callable[[Any], bool] | None


def _descent(
    rounds: _Rounds,
    numbered: tuple[int, np.random.Generator],
    page: Page | None = None,
    watch: Watch | None = None,
) -> Descent[Any]:
    """One of them."""
    (index, rng), max_iter = numbered, rounds.max_iter
    watch = Watch() if watch is None else watch
    here = None if page is None else page.progress
    if here is not None and isinstance(here.state, Descent):  # it had come to its end
        return here.state
    with watch.chain(index, max_iter - (0 if here is None else here.n_done)) as tell:
        if here is None:
            first = rounds.init(rng, index)
            here = Progress((first, [rounds.objective(first)]), rng, 0, max_iter)
        state, trace = here.state
        done = stopped = False
        while here.n_done < max_iter and not (done or stopped):
            state = rounds.step(here.rng, state)
            trace.append(rounds.objective(state))
            here.state, here.n_done = (state, trace), here.n_done + 1
            if rounds.settled is None:
                done = bool(trace[-2] - trace[-1] <= rounds.tol * abs(trace[-1]))
            else:
                done = rounds.settled(state)
            stopped = tell(lambda: {"objective": trace[-1]})
            if page is not None and not done:
                page.keep(here, at_once=stopped)
        state = rounds.finish(here.rng, state)
        by_callback = stopped and not watch.stopped
        objectives = np.array([*trace[:-1], rounds.objective(state)])
        result = Descent(state, objectives, done or by_callback)
    if page is not None and (done or here.n_done == max_iter):
        here.state = result
        page.keep(here, at_once=True)
    return result


def backtrack(
    attempt: Callable[[float], State],
    objective: Callable[[State], float],
    state: State,
    rate: float,
) -> tuple[State, float]:
    """A step that lowers the objective, and its rate: twice the last one, halved until it does.

    Parameters
    ----------
    attempt : callable(rate) -> state
        The step at a rate of at most 1; small ones lead down unless `state` is a minimum.
    objective : callable(state) -> float
    state : state
        Where the step starts; it is returned, with a rate of 1, if no rate above 1e-3 will do.
    rate : float
        That of the last step.

    Examples
    --------
    >>> backtrack(lambda rate: 3.0 - 8.0 * rate, lambda x: x**2, 3.0, rate=1.0)
    (-1.0, 0.5)
    """
    before, rate = objective(state), min(1.0, 2.0 * rate)
    while rate > 1e-3:
        found = attempt(rate)
        if objective(found) < before:
            return found, rate
        rate /= 2
    return state, 1.0
