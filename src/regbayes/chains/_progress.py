"""What a loop tells to others, and what it hears from them: callbacks, checkpoints, Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from sklearn.callback import AutoPropagatedCallback

from regbayes.chains._checkpoint import Logbook, as_checkpoint, identify
from regbayes.chains._replay import Replay

Look = Callable[[], Mapping[str, Any]]


def in_this_process() -> bool:
    """Whether joblib works in threads, as it does here unless `parallel_config` says otherwise."""
    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False))


class Watch:
    """Tells an estimator's callbacks about chains and sweeps, and keeps its checkpoints.

    Parameters
    ----------
    estimator : estimator, optional
        Without one, nobody is told.
    context : CallbackContext, optional
    checkpoint : path or Checkpoint, optional
    """

    def __init__(self, estimator: Any = None, context: Any = None, checkpoint: Any = None) -> None:
        self._estimator = estimator
        self._context = context
        self.checkpoint = as_checkpoint(checkpoint)
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether the user asked all chains to end."""
        return self._stop.is_set()

    @property
    def idle(self) -> bool:
        """Whether nobody wants to be told, and nothing is to be kept."""
        return self._context is None and self.checkpoint is None

    def logbook(self, step: Callable, seed: int) -> Logbook | None:
        """The files of the run, if it has any."""
        if self.checkpoint is None:
            return None
        return Logbook(self.checkpoint, identify(self._estimator, step, seed))

    def replay(self, *data: Any, seed: int = 0) -> Replay:
        """For a fit to `data` whose loop is not ours: calls that are kept as those of chain 0."""
        bound: Any = Replay  # to the data, which tell whose run it is
        logbook = self.logbook(partial(bound, data), seed)
        return Replay(None if logbook is None else logbook.open(0))

    @contextmanager
    def chain(self, index: int, n_sweeps: int) -> Iterator[Callable[..., bool]]:
        """A chain of `n_sweeps`; yields a function to call after each, True when to stop.

        It takes a function that says what the chain looks like, by names and numbers. Callbacks
        whose `on_fit_task_end` has the keyword `metadata` find it there, as ``metadata["look"]``.
        """
        if self._context is None:
            yield lambda look=dict: self.stopped
            return
        chain = self._context.subcontext(task_name="chain", task_id=index, max_subtasks=n_sweeps)
        chain.call_on_fit_task_begin(estimator=self._estimator)

        def tell(look: Look = dict) -> bool:
            sweep = chain.subcontext(task_name="sweep")
            sweep.call_on_fit_task_begin(estimator=self._estimator)
            done = sweep.call_on_fit_task_end(estimator=self._estimator, metadata={"look": look})
            return done or self.stopped

        yield tell
        chain.call_on_fit_task_end(estimator=self._estimator)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The first Ctrl-C ends the chains after their sweep; the second is an error, as ever."""
        usual = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        ours = main and usual is signal.default_int_handler
        if not ours or not in_this_process():  # chains elsewhere would not hear of it
            yield
            return

        def stop(number: int, frame: Any) -> None:
            if self.stopped:
                signal.default_int_handler(number, frame)
            self._stop.set()

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)
        if self.stopped:
            warnings.warn(
                "Ctrl-C ended this fit early, with what it had found so far. To go on, fit again "
                "with the same checkpoint, or with warm_start=True where there is one.",
                stacklevel=6,
            )


class Bar:
    """A callback: a bar for every chain, with what the chain looks like beside it."""

    def __init__(self, seconds: float = 0.25) -> None:
        self._seconds = seconds  # between two looks
        self._tasks: dict[int, TaskID] = {}
        self._looked: dict[int, float] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[look]}"),
        )
        self._bars.start()

    def teardown(self, estimator: Any, context: Any) -> None:
        self._bars.stop()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.task_name == "chain":
            name, total = f"chain {context.task_id}", context.max_subtasks
            self._tasks[context.task_id] = self._bars.add_task(name, total=total, look="")

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any) -> None:
        if context.task_name == "chain":  # it may have ended early
            self._bars.update(self._tasks[context.task_id], completed=1, total=1)
        elif context.task_name == "sweep":
            chain, now = context.parent.task_id, time.monotonic()
            self._bars.advance(self._tasks[chain])
            last = context.task_id + 1 == context.parent.max_subtasks
            if last or now - self._looked.get(chain, -np.inf) >= self._seconds:
                self._looked[chain] = now
                self._bars.update(self._tasks[chain], look=_in_words(metadata["look"]()))


def _in_words(look: Mapping[str, float]) -> str:
    """How many parts there are, how good it is, and whether the chains agree."""
    shown = {"log_joint", "objective", "r_hat"}
    return ", ".join(
        f"{name} {value:.5g}"
        for name, value in look.items()
        if (name in shown or name.startswith("n_")) and np.isfinite(value)
    )


@contextmanager
def watched(estimator: Any, n_chains: int) -> Iterator[Watch]:
    """Watch a fit: its callbacks, a progress bar when `verbose`, its checkpoint, and Ctrl-C.

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
        callbacks.append(Bar())
    checkpoint = getattr(estimator, "checkpoint", None)
    try:
        estimator.set_callbacks(*callbacks)
        context = estimator._init_callback_context(max_subtasks=n_chains, sequential_subtasks=False)
        watch = Watch(estimator, context if callbacks else None, checkpoint)
        if callbacks:
            context.call_on_fit_task_begin(estimator=estimator)
        with watch.listening():
            yield watch
        if callbacks:
            context.call_on_fit_task_end(estimator=estimator)
    finally:
        estimator.set_callbacks(*kept)
