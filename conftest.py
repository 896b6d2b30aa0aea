"""Compiled test code must not outlive the kernels that were compiled into it."""

from pathlib import Path

import regbayes.kernels._jit as jit


def pytest_configure(config):
    jit.forget_stale_code(Path(__file__).parent / "tests")
