"""The loops: sampling in threads, variational rounds, their progress, draws kept in a trace."""

from regbayes.chains._descend import Descent, backtrack, descend
from regbayes.chains._progress import Watch, watched
from regbayes.chains._run import draw_seed, run, run_for, streams
from regbayes.chains._trace import Trace

__all__ = [
    "Descent",
    "Trace",
    "Watch",
    "backtrack",
    "descend",
    "draw_seed",
    "run",
    "run_for",
    "streams",
    "watched",
]
