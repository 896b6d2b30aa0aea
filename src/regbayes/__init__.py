"""Latent-variable models that find their own size and learn with a margin.

posterior ∝ prior × likelihood × margin
"""

from importlib import import_module
from typing import Any

from regbayes._version import __version__

__all__ = [
    "__version__",
    "chains",
    "data",
    "datasets",
    "harmonium",
    "hmm",
    "load",
    "margin",
    "mixture",
    "persistence",
    "plot",
    "priors",
    "report",
    "save",
    "scores",
    "testing",
    "topics",
    "warmup",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: `import regbayes` should cost nothing.
    if name == "warmup":
        from regbayes._warmup import warmup

        return warmup
    if name in ("save", "load"):
        return getattr(import_module("regbayes.persistence"), name)
    if name in __all__:
        return import_module(f"regbayes.{name}")
    raise AttributeError(f"module 'regbayes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
