"""The loops: sampling, variational rounds; their threads, progress, checkpoints and draws."""

from regbayes.chains._checkpoint import CHECKPOINT, Checkpoint, CheckpointError
from regbayes.chains._descend import Descent, backtrack, descend
from regbayes.chains._diagnose import Diagnosis, Quantity, SamplerMixin, diagnose, r_hat
from regbayes.chains._progress import Watch, watched
from regbayes.chains._run import draw_seed, each, run, run_for, spare_threads, streams
from regbayes.chains._trace import Trace

__all__ = [
    "CHECKPOINT",
    "Checkpoint",
    "CheckpointError",
    "Descent",
    "Diagnosis",
    "Quantity",
    "SamplerMixin",
    "Trace",
    "Watch",
    "backtrack",
    "descend",
    "diagnose",
    "draw_seed",
    "each",
    "r_hat",
    "run",
    "run_for",
    "spare_threads",
    "streams",
    "watched",
]
