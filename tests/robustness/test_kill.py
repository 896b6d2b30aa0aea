"""kill -9 at random moments, in the middle of writes among them: the result is the same bits."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def survive(name, n_kills, seed, folder):
    command = [sys.executable, "-m", "tests.robustness.nursery", name, n_kills, seed, folder]
    # A child that is forked after OpenMP had threads waits for them for ever.
    alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    out = subprocess.run(
        list(map(str, command)), check=False, capture_output=True, text=True, env=alone,
        timeout=900,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.mark.parametrize("name", ["GibbsInfiniteSVM", "InfiniteMaxMarginHarmonium"])
def test_a_few_kills(tmp_path, name):
    counts = survive(name, 4, 0, tmp_path)
    assert counts["runs"] >= 1
    assert counts["write"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "GibbsInfiniteSVM",
        "MaxMarginInfiniteHMM",
        "MarkovSwitchingMED",
        "InfiniteSVM",
        "GaussianHMM",
        "MaxMarginTopics",
        "InfiniteMaxMarginHarmonium",
        "MaxMarginScore",
        "LargeMarginHMM",
    ],
)
def test_a_hundred_kills(tmp_path, name):
    counts = survive(name, 100, 1, tmp_path)
    assert counts["write"] + counts["clock"] >= 100
    assert min(counts["write"], counts["clock"]) >= 20
