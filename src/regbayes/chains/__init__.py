"""The only sampling loop: chains in threads, progress by callbacks, draws kept in a trace."""

from regbayes.chains._progress import Watch, watched
from regbayes.chains._run import draw_seed, run, streams
from regbayes.chains._trace import Trace

__all__ = ["Trace", "Watch", "draw_seed", "run", "streams", "watched"]
