"""The loops: sampling, rounds that descend; their threads, progress, checkpoints and draws."""

from regbayes.chains._checkpoint import CHECKPOINT, Checkpoint, CheckpointError
from regbayes.chains._descend import Descent, backtrack, descend, descend_each
from regbayes.chains._diagnose import Diagnosis, Quantity, SamplerMixin, diagnose, r_hat
from regbayes.chains._minimize import Minimum, minimize
from regbayes.chains._progress import Watch, watched
from regbayes.chains._replay import Replay
from regbayes.chains._run import draw_seed, each, run, run_for, spare_threads, streams
from regbayes.chains._trace import Trace

__all__ = [
    "CHECKPOINT",
    "Checkpoint",
    "CheckpointError",
    "Descent",
    "Diagnosis",
    "Minimum",
    "Quantity",
    "Replay",
    "SamplerMixin",
    "Trace",
    "Watch",
    "backtrack",
    "descend",
    "descend_each",
    "diagnose",
    "draw_seed",
    "each",
    "minimize",
    "r_hat",
    "run",
    "run_for",
    "spare_threads",
    "streams",
    "watched",
]
