"""Progress, by scikit-learn's callback protocol."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.callback import AutoPropagatedCallback, ProgressBar


class Watch:
    """Tells an estimator's callbacks about chains and sweeps; without an estimator, nobody."""

    def __init__(self, estimator: Any = None, context: Any = None) -> None:
        self._estimator = estimator
        self._context = context

    @contextmanager
    def chain(self, index: int, n_sweeps: int) -> Iterator[Callable[[], bool]]:
        """A chain of `n_sweeps`; yields a function to call after each, True when to stop."""
        if self._context is None:
            yield lambda: False
            return
        chain = self._context.subcontext(task_name="chain", task_id=index, max_subtasks=n_sweeps)
        chain.call_on_fit_task_begin(estimator=self._estimator)

        def tell() -> bool:
            sweep = chain.subcontext(task_name="sweep")
            sweep.call_on_fit_task_begin(estimator=self._estimator)
            return sweep.call_on_fit_task_end(estimator=self._estimator)

        yield tell
        chain.call_on_fit_task_end(estimator=self._estimator)


@contextmanager
def watched(estimator: Any, n_chains: int) -> Iterator[Watch]:
    """Watch a fit: its `callbacks`, those of `set_callbacks`, and a progress bar when `verbose`.

    To be used inside a `fit` decorated by :func:`sklearn.callback.with_callbacks`.
    """
    kept = getattr(estimator, "_skl_callbacks", [])
    callbacks = [*kept, *(estimator.callbacks or [])]
    inside = hasattr(estimator, "_parent_callback_ctx")  # of a Pipeline, a search...
    if inside and any(isinstance(own, AutoPropagatedCallback) for own in estimator.callbacks or []):
        raise TypeError(
            "a callback that spreads by itself, such as ProgressBar, belongs to the outermost "
            "estimator: call set_callbacks on the Pipeline or the search instead"
        )
    if estimator.verbose and not inside:
        callbacks.append(ProgressBar())
    try:
        estimator.set_callbacks(*callbacks)
        context = estimator._init_callback_context(max_subtasks=n_chains, sequential_subtasks=False)
        if not callbacks:
            yield Watch()
            return
        context.call_on_fit_task_begin(estimator=estimator)
        yield Watch(estimator, context)
        context.call_on_fit_task_end(estimator=estimator)
    finally:
        estimator.set_callbacks(*kept)
