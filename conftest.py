"""What all tests and doctests share."""

import sys
from pathlib import Path

import pytest

import regbayes.kernels._jit as jit


def pytest_configure(config):
    """Compiled test code must not outlive the kernels that were compiled into it."""
    jit.forget_stale_code(Path(__file__).parent / "tests")


@pytest.fixture(autouse=True)
def _close_figures():
    """Pictures of one test are not open in the next: matplotlib complains of more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
