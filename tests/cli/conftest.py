"""Small files, a small model, and a way to run a command and see all that it says."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from regbayes.cli import main

QUICK = ("--n-draws", "6", "--burn-in", "6", "--n-chains", "1", "--quiet")


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, stdout and stderr."""

    def go(*arguments):
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        said = capsys.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return go


@pytest.fixture
def run_json(run):
    """Run a command that must succeed, with --json; the object."""

    def go(*arguments):
        done = run(*arguments, "--json")
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    return go


def make_table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    kind = np.where(x[:, 0] > 0, "up", "down")
    return pd.DataFrame({"x": x[:, 0], "z": x[:, 1], "kind": kind})


def make_steps():
    """Eight sequences whose label follows the observation's sign, and one for each sequence."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"id": np.repeat([*"abcdefgh"], 12), "t": [*range(12)] * 8})
    state = np.repeat(rng.integers(2, size=32), 3)
    table["x"] = 4.0 * state + rng.normal(size=96)
    table["phase"] = np.where(state, "move", "rest")
    table["who"] = np.repeat(["ann", "bob"] * 4, 12)
    table["x2"] = table["x"] * (table["who"] == "ann") + rng.normal(size=96)
    return table


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    make_table().to_csv(path, index=False)
    return path


@pytest.fixture
def steps(tmp_path):
    path = tmp_path / "steps.csv"
    make_steps().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Model files: of a table, and of steps."""
    folder = tmp_path_factory.mktemp("models")
    make_table().to_csv(folder / "table.csv", index=False)
    make_steps().to_csv(folder / "steps.csv", index=False)
    of_table, of_steps = folder / "table.model", folder / "steps.model"
    common = [*QUICK, "--json"]
    assert (
        main(["fit", f"{folder}/table.csv", "--label", "kind", "-o", f"{of_table}", *common]) == 0
    )
    roles = ["--label", "phase", "--sequence-id", "id", "--time", "t", "--ignore", "who,x2"]
    assert main(["fit", f"{folder}/steps.csv", *roles, "-o", f"{of_steps}", *common]) == 0
    return SimpleNamespace(table=of_table, steps=of_steps)
