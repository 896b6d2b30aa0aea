"""Whatever is wrong with the input: exit code 2, one sentence with the remedy, no traceback."""

import os

import numpy as np
import pandas as pd
import pytest

import regbayes
from regbayes.mixture import GibbsInfiniteSVM
from tests.cli.conftest import make_steps, make_table

STEPS = ("--label", "phase", "--sequence-id", "id", "--time", "t", "--ignore", "who,x2")


def edited(make, edit):
    """A CSV of a table that was changed."""

    def write(path):
        table = make()
        table = edit(table)
        table.to_csv(path, index=False)

    return write


def text(content):
    return lambda path: path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


def cell(column, row, value):
    def edit(table):
        table[column] = table[column].astype(object)
        table.loc[row, column] = value
        return table

    return edit


def whole(column, value):
    return lambda table: table.assign(**{column: value})


good = edited(make_table, lambda table: table)
good_steps = edited(make_steps, lambda table: table)

# What the file is, the options of fit, and what the sentence must say.
FITS = {
    "column that is not there": (good, ["--label", "kid"], ["no column 'kid'", "mean 'kind'?"]),
    "id that is not there": (
        good,
        ["--label", "kind", "--sequence-id", "subject"],
        ["no column 'subject' for --sequence-id", "the columns are"],
    ),
    "mixed types": (
        edited(make_table, cell("x", 6, "n.a!")),
        ["--label", "kind"],
        ["column 'x' mixes numbers and text: row 7 has 'n.a!'", "--ignore x"],
    ),
    "one class": (
        edited(make_table, whole("kind", "up")),
        ["--label", "kind"],
        ["one class only, 'up'", "another"],
    ),
    "empty file": (text(""), ["--label", "kind"], ["is empty", "export"]),
    "header only": (text("x,kind\n"), ["--label", "kind"], ["no rows", "export"]),
    "not UTF-8": (
        text("x,kind\n1,caf\xe9\n2,b\n".encode("latin1")),
        ["--label", "kind"],
        ["not in UTF-8", "iconv"],
    ),
    "rows of unlike length": (
        text("x,kind\n1,a\n2,b,c,d\n"),
        ["--label", "kind"],
        ["not alike", "line 3", "as many fields as the header"],
    ),
    "more fields than names": (
        text("x,kind\n1,a,9\n2,b,9\n"),
        ["--label", "kind"],
        ["more fields than its header", "a name"],
    ),
    "a column twice": (
        text("x,x,kind\n1,2,a\n"),
        ["--label", "kind"],
        ["two columns 'x'", "rename"],
    ),
    "binary": (text(bytes(range(256)) * 9), ["--label", "kind"], ["to mend it"]),
    "duplicated steps": (
        edited(make_steps, cell("t", 5, 4)),
        STEPS,
        ["row 6 has the same 'id' and 't'", "drop"],
    ),
    "unsorted, without a time": (
        edited(make_steps, lambda table: table.sort_values("t")),
        ["--label", "phase", "--sequence-id", "id", "--ignore", "who,x2,t"],
        ["are not together", "--time"],
    ),
    "no time": (edited(make_steps, cell("t", 3, None)), STEPS, ["row 4 has no time", "fill"]),
    "time in words": (
        edited(make_steps, lambda table: table.assign(t="noon")),
        STEPS,
        ["neither numbers nor dates", "2024-01-31"],
    ),
    "time without sequences": (
        good_steps,
        ["--label", "phase", "--time", "t"],
        ["--time without --sequence-id", "name the column"],
    ),
    "no id": (edited(make_steps, cell("id", 3, None)), STEPS, ["row 4 has no sequence", "fill"]),
    "no label": (
        edited(make_table, cell("kind", 8, None)),
        ["--label", "kind"],
        ["1 rows have no label in 'kind', the first of them row 9", "drop"],
    ),
    "no labels at all": (
        edited(make_table, whole("kind", np.nan)),
        ["--label", "kind"],
        ["'kind' is empty", "--label"],
    ),
    "a measurement as label": (
        good,
        ["--label", "x", "--ignore", "kind"],
        ["40 different values", "cut"],
    ),
    "missing feature": (
        edited(make_table, cell("z", 2, np.nan)),
        ["--label", "kind"],
        ["'z' has no value in row 3", "fill the gaps"],
    ),
    "empty feature": (
        edited(make_table, whole("z", np.nan)),
        ["--label", "kind"],
        ["'z' is empty", "--ignore z"],
    ),
    "infinite": (
        edited(make_table, cell("z", 2, np.inf)),
        ["--label", "kind"],
        ["'z' is infinite in row 3", "replace"],
    ),
    "text as a feature": (
        edited(make_table, whole("city", "Oslo")),
        ["--label", "kind"],
        ["'city' holds text, such as 'Oslo'", "--ignore city"],
    ),
    "no features": (
        good,
        ["--label", "kind", "--ignore", "x,z"],
        ["no column is left", "--ignore"],
    ),
    "no label, no sequences": (good, ["--ignore", "kind"], ["without labels", "--label"]),
    "label ignored": (
        good,
        ["--label", "kind", "--ignore", "kind"],
        ["'kind' is given to --label and to --ignore", "of its own"],
    ),
    "label as id": (
        good_steps,
        ["--label", "id", "--sequence-id", "id"],
        ["'id' is given to --label and to --sequence-id", "of its own"],
    ),
    "unknown model": (
        good,
        ["--label", "kind", "--model", "GibsInfiniteSVM"],
        ["no model 'GibsInfiniteSVM'", "mean 'GibbsInfiniteSVM'?"],
    ),
    "unknown parameter": (
        good,
        ["--label", "kind", "--n-draw", "5"],
        ["no parameter 'n-draw'", "mean '--n-draws'?"],
    ),
    "mistyped option": (good, ["--lable", "kind"], ["mean '--label'?"]),
    "bad value": (
        good,
        ["--label", "kind", "--n-draws", "-5"],
        ["'n_draws' parameter", "Got -5", "regbayes inspect GibbsInfiniteSVM"],
    ),
    "value of another kind": (
        good,
        ["--label", "kind", "--n-draws", "many"],
        ["'n_draws' parameter", "Got 'many'", "regbayes inspect"],
    ),
    "value that only fit refuses": (
        good,
        ["--label", "kind", "--nu", "1,2,3"],
        ["nu", "regbayes inspect GibbsInfiniteSVM"],
    ),
    "no value": (
        good,
        ["--label", "kind", "--n-draws"],
        ["--n-draws has no value", "--n-draws=VALUE"],
    ),
    "seed as a parameter": (good, ["--label", "kind", "--random-state", "3"], ["use --seed"]),
    "--set without a value": (
        good,
        ["--label", "kind", "--set", "C"],
        ["--set has 'C'", "n_draws=50"],
    ),
    "two files": (good, ["other.csv", "--label", "kind"], ["reads one file", "name one"]),
    "test share": (good, ["--label", "kind", "--test-share", "1.5"], ["1.5", "between 0 and 1"]),
    "test share in words": (
        good,
        ["--label", "kind", "--test-share", "half"],
        ["--test-share", "--help"],
    ),
    "sequences missing": (
        good,
        ["--label", "kind", "--model", "MaxMarginInfiniteHMM"],
        ["reads sequences", "--sequence-id"],
    ),
    "labels missing": (
        good,
        ["--ignore", "kind", "--model", "InfiniteSVM"],
        ["learns from labels", "--label"],
    ),
    "labels not wanted": (
        good_steps,
        [*STEPS, "--model", "InfiniteHMM"],
        ["takes no labels", "--ignore phase"],
    ),
    "steps labelled, one for each wanted": (
        good_steps,
        [*STEPS, "--model", "MaxMarginScoreClassifier"],
        ["changes within sequences", "MaxMarginInfiniteHMM"],
    ),
    "one sequence": (
        edited(make_steps, whole("id", "a")),
        ["--label", "phase", "--sequence-id", "id", "--ignore", "who,x2,t"],
        ["too little to hold any out", "--all"],
    ),
    "view without columns": (
        good,
        ["--label", "kind", "--views", "a=x*,b=q*"],
        ["no column matches the pattern q*", "the columns are"],
    ),
    "one view": (good, ["--label", "kind", "--views", "a=x*"], ["one view only", "two or more"]),
    "view of the label": (
        good,
        ["--label", "kind", "--views", "a=x*,b=k*"],
        ["'kind' is given to --label and to --views", "leave it out"],
    ),
    "views ill written": (
        good,
        ["--label", "kind", "--views", "x*"],
        ["--views has 'x*'", "write"],
    ),
    "output in no folder": (
        good,
        ["--label", "kind", "-o", "nowhere/a.model"],
        ["no folder nowhere", "make it"],
    ),
    "output a folder": (good, ["--label", "kind", "-o", "."], [". is a folder", "name a file"]),
}


def check(done, words):
    assert done.code == 2, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.count("\n") == 1
    assert done.err.startswith("regbayes: ")
    assert "; to mend it: " in done.err
    for each in words:
        assert each in done.err


def test_there_are_twenty():
    assert len(FITS) >= 20


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("machine", [False, True], ids=["words", "json"])
def test_fit(name, machine, run, tmp_path, monkeypatch):
    make, options, words = FITS[name]
    make(tmp_path / "data.csv")
    monkeypatch.chdir(tmp_path)
    # Unless the reason for a model was given before the fault was found, stdout is empty.
    done = run("fit", "data.csv", *options, *["--json"] * machine)
    if not machine and name in ("one sequence", "value that only fit refuses"):
        done.out = ""
    check(done, words)


FILES = {
    "no such file": ("absent.csv", None, ["no file", "regbayes datasets"]),
    "a folder": ("folder.csv", lambda path: path.mkdir(), ["is a folder", "in it"]),
    "a spreadsheet": ("data.xlsx", text("x"), ["neither CSV nor Parquet", "export"]),
    "no Parquet": ("data.parquet", text("x,kind\n1,a\n"), ["no Parquet file", ".csv"]),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name, run, tmp_path):
    if name == "no Parquet":
        pytest.importorskip("pyarrow")
    file, make, words = FILES[name]
    if make is not None:
        make(tmp_path / file)
    check(run("fit", tmp_path / file, "--label", "kind"), words)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permissions(run, table, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    done = run("fit", table, "--label", "kind", "-o", locked / "a.model")
    check(done, ["may not be written", "-o"])
    table.chmod(0)
    check(run("fit", table, "--label", "kind"), ["may not be read", "permissions"])


def test_permissions_as_root(run, table, models, monkeypatch):
    # Root is refused nothing, so the system's refusals are played.
    def refuse(*arguments, **more):
        raise PermissionError("no")

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        done = run("fit", table, "--label", "kind", "-o", table.with_suffix(".model"))
        check(done, ["may not be written", "-o"])
    with monkeypatch.context() as patch:
        patch.setattr(pd, "read_csv", refuse)
        check(run("fit", table, "--label", "kind"), ["may not be read", "permissions"])
    monkeypatch.setattr(regbayes, "load", refuse, raising=False)
    check(run("inspect", models.table), ["may not be read", "permissions"])


PREDICTIONS = {
    "columns missing": ("table", edited(make_table, lambda t: t[["x"]]), ["lacks 1", "z", "add"]),
    "id missing": ("steps", edited(make_steps, lambda t: t.drop(columns="id")), ["lacks 1", "id"]),
    "text for a number": (
        "table",
        edited(make_table, whole("x", "high")),
        ["holds text", "like the one"],
    ),
    "mixed": ("table", edited(make_table, cell("x", 0, "?!")), ["row 1 has '?!'", "correct"]),
    "gaps": ("table", edited(make_table, cell("x", 0, np.nan)), ["no value in row 1", "fill"]),
    "infinite": ("table", edited(make_table, cell("x", 0, -np.inf)), ["infinite", "replace"]),
    "duplicated steps": (
        "steps",
        edited(make_steps, cell("t", 5, 4)),
        ["row 6 has the same", "drop"],
    ),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predict(name, run, models, tmp_path):
    which, make, words = PREDICTIONS[name]
    make(tmp_path / "new.csv")
    done = run("predict", getattr(models, which), tmp_path / "new.csv")
    check(done, words)
    assert "--ignore" not in done.err  # predict has no such option


def test_model_files(run, table, tmp_path):
    check(run("predict", tmp_path / "absent", table), ["no file", "regbayes fit -o"])
    check(run("inspect", tmp_path), ["is a folder", "regbayes fit -o"])
    check(run("inspect", table), ["no file of regbayes", "get the file anew"])
    plain = tmp_path / "plain.model"
    regbayes.save(GibbsInfiniteSVM(), plain)
    check(run("inspect", plain), ["knows no names of columns", "regbayes.load"])


def test_checkpoints(run, table, tmp_path):
    check(run("resume", tmp_path), ["no checkpoint of `regbayes fit`", "--checkpoint"])
    (tmp_path / "fit.json").write_text("{")
    check(run("resume", tmp_path), ["damaged", "start anew"])
    done = run("fit", table, "--label", "kind", "--checkpoint", tmp_path, "--json")
    check(done, ["not empty", "regbayes resume"])


def test_names(run, tmp_path):
    check(run("datasets", "parkinson", "-o", tmp_path / "a.csv"), ["mean 'parkinsons'?"])
    check(run("datasets", "parkinsons"), ["writes a file", "-o parkinsons.csv"])
    check(run("reproduce", "000_tabel1"), ["mean '000_table1'?"])
    check(run("fti"), ["fti", "--help"])
    check(run("predict"), ["MODEL", "--help"])


def test_data_that_cannot_be_had(run, tmp_path, monkeypatch):
    import regbayes.datasets as datasets

    def fetch():
        raise datasets.DatasetError("the server is away")

    monkeypatch.setattr(datasets, "fetch_parkinsons", fetch)
    done = run("datasets", "parkinsons", "-o", tmp_path / "a.csv")
    check(done, ["the server is away", "REGBAYES_DATA"])
