"""What a user meets first: the import is light, and nothing compiles twice."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

import regbayes
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM


def test_importing_the_package_loads_nothing_heavy():
    code = "import regbayes, sys; print(sorted({'numba', 'sklearn', 'scipy'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in regbayes.__all__:
        assert getattr(regbayes, name) is not None
    assert set(dir(regbayes)) == set(regbayes.__all__)
    with pytest.raises(AttributeError, match="no attribute 'mixtures'"):
        regbayes.mixtures  # noqa: B018


PACKAGES = sorted(set(regbayes.__all__) - {"__version__", "load", "save", "warmup"})


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_its_place_in_the_reference(package):
    page = Path(__file__).parent.parent / "docs" / "api.md"
    public = set(importlib.import_module(f"regbayes.{package}").__all__)
    assert public <= set(page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("family", [GibbsInfiniteSVM, DPMultinomialLogit, InfiniteSVM])
def test_a_second_fit_compiles_nothing(family):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    model = family(random_state=0)
    model.fit(X, X[:, 0] > 0).predict(X)
    with event.install_recorder("numba:compile") as recorder:
        model.fit(X, X[:, 1] > 0).predict(X)
    assert not recorder.buffer
