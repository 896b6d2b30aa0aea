"""The only sampling loop."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from regbayes.chains._progress import Watch, watched
from regbayes.chains._trace import Trace

State = TypeVar("State")
Init = Callable[[np.random.Generator], State]
Step = Callable[[np.random.Generator, State], State]
Record = Callable[[State], Mapping[str, Any]]


def draw_seed(random_state: Any) -> int:
    """An integer seed from anything scikit-learn takes as `random_state`, or a generator.

    Examples
    --------
    >>> draw_seed(7)
    7
    """
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
) -> Trace:
    """Run `n_chains` chains of `burn_in + n_draws * thin` sweeps and keep every `thin`-th draw.

    Parameters
    ----------
    init : callable(rng) -> state
    step : callable(rng, state) -> state
        One sweep. It may change `state` in place: `record` copies what it keeps.
    record : callable(state) -> mapping of name to number or array
        What a draw consists of.
    n_jobs : int, optional
        Chains run in threads, since compiled steps release the GIL. The result is the same for
        any number of them.
    watch : Watch, optional
        Where progress is told; a callback that answers True ends its chain early.

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
    n_sweeps = burn_in + n_draws * thin
    watch = Watch() if watch is None else watch

    def chain(index: int, rng: np.random.Generator) -> list[Mapping[str, Any]]:
        # A checkpoint will hold exactly what lives here: state, rng, sweep and draws.
        draws = []
        with watch.chain(index, n_sweeps) as tell:
            state = init(rng)
            for sweep in range(n_sweeps):
                state = step(rng, state)
                if sweep >= burn_in and (sweep - burn_in + 1) % thin == 0:
                    draws.append(record(state))
                if tell():
                    break
        # A chain that was stopped before its first draw still has a state to show.
        return draws or [record(state)]

    # Threads for BLAS would fight with the threads of the chains.
    with threadpool_limits(limits=1, user_api="blas"):
        chains = Parallel(n_jobs=n_jobs, backend="threading")(
            delayed(chain)(index, rng) for index, rng in enumerate(streams(random_state, n_chains))
        )
    return Trace(chains)


def run_for(estimator: Any, init: Init, step: Step, record: Record, seed: int) -> Trace:
    """`run`, with the words that the constructors of all samplers share, and their progress."""
    with watched(estimator, estimator.n_chains) as watch:
        return run(
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
        )
