"""The only sampling loop."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from regbayes.chains._checkpoint import (
    CheckpointError,
    Page,
    Progress,
    fingerprint,
    stored_seed,
)
from regbayes.chains._diagnose import numbers, r_hat, warn_when_apart
from regbayes.chains._progress import Watch, in_this_process, watched
from regbayes.chains._trace import Ends, Trace

State = TypeVar("State")
Init = Callable[[np.random.Generator], State]
Step = Callable[[np.random.Generator, State], State]
Record = Callable[[State], Mapping[str, Any]]

logger = logging.getLogger("regbayes")


def draw_seed(random_state: Any, checkpoint: Any = None) -> int:
    """An integer seed from anything scikit-learn takes as `random_state`, or a generator.

    A run without a `random_state` that has a `checkpoint` already goes on with its seed.

    Examples
    --------
    >>> draw_seed(7)
    7
    """
    if random_state is None:
        stored = stored_seed(checkpoint)
        if stored is not None:
            return stored
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def streams(random_state: Any, n: int) -> list[np.random.Generator]:
    """One independent generator for each chain, so that results do not depend on scheduling.

    Examples
    --------
    >>> [int(rng.integers(10)) for rng in streams(0, 3)] == [
    ...     int(rng.integers(10)) for rng in streams(0, 3)]
    True
    """
    seeds = np.random.SeedSequence(draw_seed(random_state)).spawn(n)
    return [np.random.default_rng(seed) for seed in seeds]


def run(
    init: Init,
    step: Step,
    record: Record,
    *,
    n_draws: int = 100,
    burn_in: int = 100,
    thin: int = 1,
    n_chains: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    watch: Watch | None = None,
    warm_start: bool = False,
    before: Trace | None = None,
) -> Trace:
    """Run `n_chains` chains of `burn_in + n_draws * thin` sweeps and keep every `thin`-th draw.

    Parameters
    ----------
    init : callable(rng) -> state
    step : callable(rng, state) -> state
        One sweep. It may change `state` in place: `record` copies what it keeps. To be known again
        by a checkpoint, it is bound to its data by :func:`functools.partial`.
    record : callable(state) -> mapping of name to number or array
        What a draw consists of; it must not use random numbers.
    n_jobs : int, optional
        Chains run in threads, since compiled steps release the GIL, or where
        :func:`joblib.parallel_config` says: then they write their checkpoints, but nobody is told
        about their sweeps, and Ctrl-C is an error as ever. The result is always the same.
    watch : Watch, optional
        Where progress is told and checkpoints are kept; a callback that answers True ends its
        chain early.
    warm_start : bool
        Let the trace remember where its chains stand. Chains that are finished, in `before` or in
        the checkpoint, go on by `n_draws` more.
    before : Trace, optional
        The draws so far, from a run with `warm_start`.

    Returns
    -------
    Trace

    Examples
    --------
    >>> trace = run(
    ...     init=lambda rng: 0.0,
    ...     step=lambda rng, x: 0.5 * x + rng.standard_normal(),
    ...     record=lambda x: {"x": x},
    ...     n_draws=200, burn_in=10, n_chains=2, random_state=0)
    >>> trace["x"].shape
    (2, 200)
    """
    watch = Watch() if watch is None else watch
    seed = draw_seed(random_state)
    logbook = watch.logbook(step, seed)
    pages = [None if logbook is None else logbook.open(index) for index in range(n_chains)]
    begun = [None if page is None else page.progress for page in pages]
    data = fingerprint(step) if warm_start else None
    if warm_start and before is not None and not any(begun):
        begun = _ends_of(before, data, n_chains)
    n_sweeps = burn_in + n_draws * thin
    if warm_start and any(begun):
        n_sweeps = _aim(begun, n_draws * thin)
    plan = _Plan(init, step, record, n_sweeps, burn_in, thin)
    tasks = [
        (index, rng, here, page)
        for index, (rng, here, page) in enumerate(zip(streams(seed, n_chains), begun, pages))
    ]
    if in_this_process():
        draws_so_far: list[list[Mapping[str, Any]]] = [[] for _ in range(n_chains)]
        failures: list[BaseException] = []
        # Threads for BLAS would fight with the threads of the chains.
        with threadpool_limits(limits=1, user_api="blas"):
            ended = Parallel(n_jobs=n_jobs, require="sharedmem")(
                delayed(_chain_here)(plan, *task, watch, draws_so_far, failures) for task in tasks
            )
        if failures:
            raise failures[0]
    else:  # no memory maps: a step may change its state in place
        ended = Parallel(n_jobs=n_jobs, max_nbytes=None)(
            delayed(_chain_elsewhere)(plan, *task) for task in tasks
        )
    chains = [each for each in ended if each is not None]
    n_kept = (n_sweeps - burn_in) // thin  # a checkpoint may have more than are asked for
    # A chain that was stopped before its first draw still has a state to show.
    trace = Trace([each.kept[:n_kept] or [record(each.state)] for each in chains])
    if data is not None:
        places = [(each.state, each.rng, each.n_done, each.target) for each in chains]
        trace.ends = Ends(data, places)
    return trace


class _Plan(NamedTuple):
    """What all chains of a run have in common."""

    init: Init
    step: Step
    record: Record
    n_sweeps: int
    burn_in: int
    thin: int


def _chain(
    plan: _Plan,
    index: int,
    rng: np.random.Generator,
    here: Progress | None,
    page: Page | None,
    watch: Watch,
    draws_so_far: list[list[Mapping[str, Any]]],
    failures: list[BaseException],
) -> Progress | None:
    init, step, record, n_sweeps, burn_in, thin = plan
    if here is None and watch.stopped and index > 0:
        return None

    def look(draw: Mapping[str, Any]) -> dict[str, float]:
        return numbers(draw) | {"r_hat": r_hat([_log_joints(draws) for draws in draws_so_far])}

    n_left = n_sweeps - (0 if here is None else here.n_done)
    with watch.chain(index, max(n_left, 0)) as tell:
        if here is None:
            here = Progress(init(rng), rng, 0, n_sweeps)
        here.target = n_sweeps
        draws_so_far[index] = here.kept
        done = False
        while here.n_done < n_sweeps and not (done or failures):
            here.state = step(here.rng, here.state)
            here.n_done += 1
            drawn = here.n_done > burn_in and (here.n_done - burn_in) % thin == 0
            if drawn:
                here.kept.append(record(here.state))
            done = tell(lambda: look(here.kept[-1] if drawn else record(here.state)))  # noqa: B023
            if page is not None:
                page.keep(here, at_once=done or here.n_done == n_sweeps)
    logger.info("chain %d: %d sweeps, %d draws", index, here.n_done, len(here.kept))
    return here


def _chain_here(*task: Any) -> Progress | None:
    """In a thread. If it fails, the others end too: joblib would leave them alone, and a later run
    would find them at work in its checkpoint."""
    try:
        return _chain(*task)
    except BaseException as failure:
        task[-1].append(failure)
        return None


def _chain_elsewhere(
    plan: _Plan, index: int, rng: np.random.Generator, here: Progress | None, page: Page | None
) -> Progress | None:
    """In another process: the watch cannot come along."""
    with threadpool_limits(limits=1, user_api="blas"):
        return _chain(plan, index, rng, here, page, Watch(), [[] for _ in range(index + 1)], [])


def spare_threads(n_jobs: int | None, n_chains: int) -> int:
    """Threads that chains leave over, for each of them; none in other processes."""
    return max(1, effective_n_jobs(n_jobs) // n_chains) if in_this_process() else 1


def each(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    n_jobs: int | None = None,
    random_state: Any = None,
) -> list[Any]:
    """`function` of all items: in threads, or where :func:`joblib.parallel_config` says.

    A `random_state` that the calls share gives its numbers in order: then they follow one another.

    Examples
    --------
    >>> each(abs, [-1, 2])
    [1, 2]
    """
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return [function(item) for item in items]
    return Parallel(n_jobs=n_jobs, prefer="threads", max_nbytes=None)(
        delayed(function)(item) for item in items
    )


def run_for(estimator: Any, init: Init, step: Step, record: Record, seed: int) -> Trace:
    """`run`, with the words that the constructors of all samplers share, and their progress."""
    warm_start = getattr(estimator, "warm_start", False)
    with watched(estimator, estimator.n_chains) as watch:
        trace = run(
            init,
            step,
            record,
            n_draws=estimator.n_draws,
            burn_in=estimator.burn_in,
            thin=estimator.thin,
            n_chains=estimator.n_chains,
            random_state=seed,
            n_jobs=estimator.n_jobs,
            watch=watch,
            warm_start=warm_start,
            before=getattr(estimator, "trace_", None) if warm_start else None,
        )
    if not watch.stopped:
        warn_when_apart(trace, type(estimator).__name__)
    return trace


def _ends_of(before: Trace, data: str | None, n_chains: int) -> list[Progress | None]:
    if before.ends is None:
        warnings.warn(
            "warm_start=True finds no end to go on from, and starts anew: the last fit was not "
            "with warm_start=True.",
            stacklevel=6,
        )
        return [None] * n_chains
    if before.ends.data != data or len(before.ends.places) != n_chains:
        raise CheckpointError(
            "warm_start=True goes on with the same chains on the same data, and these are others.\n"
            "To mend it: fit with the data and parameters of the last fit, or with "
            "warm_start=False."
        )
    # Copies: if this run fails, what was found before stays as it is.
    return [
        Progress(*copy.deepcopy(place), kept=list(draws))
        for place, draws in zip(before.ends.places, before.chains)
    ]


def _aim(begun: list[Progress | None], n_more: int) -> int:
    """Sweeps to run: as many as were to be, and more if they have all been."""
    aim = max(each.target for each in begun if each is not None)
    finished = all(each is not None and each.n_done >= aim for each in begun)
    return aim + n_more if finished else aim


def _log_joints(draws: list[Mapping[str, Any]]) -> list[float]:
    return [draw["log_joint"] for draw in draws if "log_joint" in draw]
