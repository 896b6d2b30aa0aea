"""Seeded bugs: the library again, with one expression changed, compiled afresh.

A statistical test proves nothing until it has been seen to fail. `mutant` re-executes a chain of
modules in which one line has been replaced, and hands back the last of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

# In order of their imports: a change in one must reach all that come after it.
MIXTURE_CHAIN = (
    "regbayes.kernels.margin",
    "regbayes.kernels.labels",
    "regbayes.kernels.mixture",
    "regbayes.margin.gibbs",
    "regbayes.margin",
    "regbayes.mixture.gibbs",
)
# By the module that is changed: only what depends on it has to be compiled again.
HMM_CHAINS = {
    chain[0]: chain
    for chain in [
        ("regbayes.kernels.chain", "regbayes.kernels.batch", "regbayes.hmm.beam"),
        (
            "regbayes.kernels.hdp",
            "regbayes.priors.hierarchical",
            "regbayes.priors",
            "regbayes.hmm.beam",
        ),
        ("regbayes.priors.hierarchical", "regbayes.priors", "regbayes.hmm.beam"),
        ("regbayes.kernels.votes", "regbayes.hmm.beam"),
        ("regbayes.hmm.beam",),
        ("regbayes.kernels.emissions", "regbayes.hmm.emissions"),
    ]
}
TOPIC_CHAIN = (
    "regbayes.kernels.topics",
    "regbayes.priors.proportions",
    "regbayes.priors",
    "regbayes.topics.gibbs",
)


def mutant(chain: tuple[str, ...], module: str, old: str, new: str, folder: Path) -> ModuleType:
    """The last module of `chain` when `old` reads `new` in `module`."""
    kept = {name: importlib.import_module(name) for name in chain}
    start = chain.index(module)
    try:
        for name in chain[start:]:
            source = Path(str(kept[name].__file__)).read_text()
            if name == module:
                assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {name}"
                source = source.replace(old, new)
            path = folder / f"{name}.py"
            path.write_text(source)
            is_package = hasattr(kept[name], "__path__")
            spec = importlib.util.spec_from_file_location(
                name, path, submodule_search_locations=[] if is_package else None
            )
            assert spec is not None
            assert spec.loader is not None
            fresh = importlib.util.module_from_spec(spec)
            sys.modules[name] = fresh
            spec.loader.exec_module(fresh)
        return sys.modules[chain[-1]]
    finally:
        sys.modules.update(kept)
