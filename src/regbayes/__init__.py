"""Latent-variable models that find their own size and learn with a margin.

posterior ∝ prior × likelihood × margin
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "chains",
    "data",
    "datasets",
    "hmm",
    "margin",
    "mixture",
    "plot",
    "priors",
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
    if name in __all__:
        return import_module(f"regbayes.{name}")
    raise AttributeError(f"module 'regbayes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
