"""Quasi-Newton: SciPy's L-BFGS, which cannot be taken up where it was left.

It does the same again, bit by bit, if it gets the same answers. So the answers are what a
checkpoint keeps: a fit that goes on runs from the start, in no time as far as it had come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from regbayes.chains._progress import Watch
from regbayes.chains._replay import Replay


class Minimum(NamedTuple):
    """What :func:`minimize` returns: where, the objective at the start and after every round."""

    x: NDArray
    objective: NDArray
    converged: bool


def minimize(
    function: Callable[[NDArray], tuple[float, NDArray]],
    start: NDArray,
    *,
    max_iter: int,
    tol: float,
    upper: NDArray | None = None,
    look: Callable[[NDArray], bool] = lambda x: False,
    memory: int = 10,
    ask: Replay | None = None,
    watch: Watch | None = None,
) -> Minimum:
    """L-BFGS from `start`, until a round lowers the objective by less than `tol` of it.

    Parameters
    ----------
    function : callable(x) -> (float, ndarray)
        The objective and its gradient, in the shape of `start`.
    upper : ndarray, optional
        Bounds from above.
    look : callable(x) -> bool
        Called after every round; True ends the search.
    memory : int
        Pairs of steps and gradients that stand for the curvature.
    ask : Replay, optional
        Through which `function` is called; `look` may use it too.
    watch : Watch, optional
        Where progress is told, but not that of rounds which are repeated.

    Examples
    --------
    >>> found = minimize(lambda x: (np.sum((x - 3.0) ** 2), 2 * (x - 3.0)), np.zeros((2, 2)),
    ...                  max_iter=10, tol=1e-9)
    >>> found.converged, found.x.round(6)
    (True, array([[3., 3.],
           [3., 3.]]))
    """
    ask = Replay(None) if ask is None else ask
    watch = Watch() if watch is None else watch

    def flat_function(flat: NDArray) -> tuple[float, NDArray]:
        value, gradient = ask(function, flat.reshape(start.shape).copy())
        return value, gradient.ravel()

    trace = [float(flat_function(start.ravel())[0])]
    with watch.chain(0, max_iter) as tell:

        def after_round(intermediate_result: Any) -> None:
            trace.append(float(intermediate_result.fun))
            is_new = ask.fresh
            ended = look(intermediate_result.x.reshape(start.shape).copy())
            if (is_new and tell(lambda: {"objective": trace[-1]})) or ended:
                raise StopIteration

        found = optimize.minimize(
            flat_function,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=None if upper is None else optimize.Bounds(-np.inf, upper.ravel()),
            callback=after_round,
            options={"maxiter": max_iter, "ftol": tol, "gtol": 0.0, "maxcor": memory, "maxls": 50},
        )
    ask.keep()
    converged = bool(found.nit < max_iter) and not watch.stopped
    return Minimum(found.x.reshape(start.shape), np.array(trace), converged)
