"""Every command, on data that are as they should be."""

import functools
import json
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import regbayes
from regbayes.cli import _models, main
from regbayes.cli._fit import OPTIONS, Request, prepare, split
from regbayes.data import TableModel
from regbayes.mixture import gibbs
from tests.cli.conftest import QUICK, make_steps, make_table

STEPS = ("--label", "phase", "--sequence-id", "id", "--time", "t", "--ignore", "who,x2")


def test_fit_a_table(run_json, table, tmp_path):
    out = tmp_path / "a.model"
    told = run_json("fit", table, "--label", "kind", "-o", out, *QUICK)
    assert told["model"] == "GibbsInfiniteSVM"
    assert (told["training_rows"], told["held_out_rows"], told["features"]) == (30, 10, 2)
    assert told["accuracy"] > 0.7
    assert told["baselines"]["largest class"] < told["baselines"]["linear SVM"]
    model = regbayes.load(out)
    assert isinstance(model, TableModel)
    assert model.estimator_.n_draws == 6
    assert told["found"] == {"n_components": model.estimator_.n_components_}
    assert model.facts["accuracy"] == told["accuracy"]


def test_fit_says_what_it_does(run, table):
    done = run("fit", "--n-draws=4", table, "--set", "burn_in=4", "--label", "kind")
    assert done.code == 0
    for each in ("GibbsInfiniteSVM", "30 rows to train on", "random forest", "chain 0", "-o FILE"):
        assert each in done.out


def test_all_is_fitted_when_asked(run_json, table, tmp_path):
    told = run_json("fit", table, "--label", "kind", "--all", *QUICK)
    assert (told["training_rows"], told["held_out_rows"]) == (40, 0)
    assert "accuracy" not in told


def test_steps_are_labelled_and_time_is_sorted(run_json, models, tmp_path):
    shuffled = make_steps().sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "new.csv", index=False)
    told = run_json("predict", models.steps, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert (told["answers"], told["unit"]) == (96, "step")
    assert told["accuracy"] > 0.8
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out.columns) == ["id", "t", "predicted", "probability"]
    assert out["id"].tolist() == shuffled["id"].tolist()
    # The order of rows does not matter when there is a time.
    model = regbayes.load(models.steps)
    expected = pd.Series(model.predict(make_steps())).loc[shuffled.index]
    assert out["predicted"].tolist() == expected.tolist()


def test_whole_sequences(run_json, run, steps, tmp_path):
    out = tmp_path / "who.model"
    options = ["--label", "who", "--sequence-id", "id", "--ignore", "phase,t"]
    small = ["--learn", "never", "--segments", "1", "--cv", "2", "--C", "3"]
    told = run_json("fit", steps, *options, *small, "-o", out)
    assert told["model"] == "MaxMarginScoreClassifier"
    assert told["sequences"] == 8
    answers = pd.read_csv(_text(run("predict", out, steps)))
    assert answers["id"].tolist() == [*"abcdefgh"]
    assert set(answers["predicted"]) <= {"ann", "bob"}


def test_states_without_labels(run_json, run, steps, tmp_path):
    out = tmp_path / "states.model"
    options = ["--sequence-id", "id", "--time", "t", "--ignore", "who,x2,phase"]
    told = run_json("fit", steps, *options, "-o", out, *QUICK)
    assert told["model"] == "InfiniteHMM"
    assert np.isfinite(told["held_out_log_density_per_step"])
    states = pd.read_csv(_text(run("predict", out, steps)))["predicted"]
    assert states.between(0, told["found"]["n_states"] - 1).all()
    assert len(states) == 96


def test_symbols(run_json, tmp_path):
    table = make_steps()
    table["x"] = np.where(table["x"] > 2, "hi", "lo")
    table.to_csv(tmp_path / "s.csv", index=False)
    told = run_json("fit", tmp_path / "s.csv", *STEPS, *QUICK, "-o", tmp_path / "s.model")
    assert told["model"] == "MaxMarginInfiniteHMM"
    model = regbayes.load(tmp_path / "s.model")
    assert model.estimator_.emission == "categorical"
    assert run_json("predict", tmp_path / "s.model", tmp_path / "s.csv")["accuracy"] > 0.8
    small = ["--learn", "never", "--segments", "1", "--cv", "2", "--C", "3"]
    whole = ["--label", "who", "--sequence-id", "id", "--ignore", "phase,t,x2"]
    told = run_json("fit", tmp_path / "s.csv", *whole, *small)
    assert told["baselines"].keys() == {"largest class", "linear SVM", "random forest"}


def test_labels_may_be_missing_at_steps(run_json, tmp_path):
    table = make_steps()
    table.loc[::5, "phase"] = None
    table.loc[7, "x"] = np.nan
    table.to_csv(tmp_path / "gaps.csv", index=False)
    told = run_json("fit", tmp_path / "gaps.csv", *STEPS, *QUICK)
    assert told["accuracy"] > 0.6


def test_labels_that_mean_nothing_are_not_predicted(run_json, tmp_path):
    # An accuracy far above chance here would be a leak of the held-out labels.
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"x": rng.normal(size=400), "kind": rng.permutation(["a", "b"] * 200)})
    table.to_csv(tmp_path / "noise.csv", index=False)
    told = run_json("fit", tmp_path / "noise.csv", "--label", "kind", "--test-share", "0.5", *QUICK)
    assert abs(told["accuracy"] - 0.5) < 4 * 0.5 / np.sqrt(200)


def test_parquet_and_other_separators(run_json, table, tmp_path):
    pytest.importorskip("pyarrow")
    make_table().to_parquet(tmp_path / "t.parquet")
    make_table().to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    make_table().to_csv(tmp_path / "t.csv.gz", sep=";", index=False)
    found = [
        run_json("fit", tmp_path / name, "--label", "kind", *QUICK)["accuracy"]
        for name in ("t.parquet", "t.tsv", "t.csv.gz", "table.csv")
    ]
    assert len(set(found)) == 1


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_split_keeps_sequences_whole_and_classes_in_proportion(steps, table, share):
    frame, model, _ = prepare(Request(str(steps), label="who", sequence_id="id", ignore=["phase"]))
    train, new = split(model, frame, share, seed=0)
    assert not set(train["id"]) & set(new["id"])
    assert len(train) + len(new) == len(frame)
    assert new["who"].value_counts().nunique() == 1
    frame, model, _ = prepare(Request(str(table), label="kind"))
    train, new = split(model, frame, share, seed=0)
    for kind, n in frame["kind"].value_counts().items():
        assert abs((new["kind"] == kind).sum() - share * n) <= 0.5


def test_a_row_model_of_grouped_rows_never_sees_a_held_out_group(steps):
    request = Request(
        str(steps), "GibbsInfiniteSVM", "phase", "id", ignore=["who", "t"], test_share=0.25
    )
    frame, model, _ = prepare(request)
    assert model.unit == "row"
    train, new = split(model, frame, 0.25, seed=0)
    assert not set(train["id"]) & set(new["id"])
    assert model.features == ["x", "x2"]


PROPOSALS = [
    (("numbers", 4, False, False, "row", False), "GibbsInfiniteSVM"),
    (("numbers", 4, False, True, "step", False), "MaxMarginInfiniteHMM"),
    (("symbols", 1, False, True, "sequence", False), "MaxMarginScoreClassifier"),
    (("numbers", 4, False, True, None, False), "InfiniteHMM"),
    (("documents", 1, False, False, "row", False), "MaxMarginTopics"),
    (("numbers", 90, False, False, "row", True), "MaxMarginTopics"),
    (("numbers", 9, True, False, "row", False), "InfiniteMaxMarginHarmonium"),
]


@pytest.mark.parametrize(("shape", "name"), PROPOSALS)
def test_what_is_proposed(shape, name, monkeypatch):
    monkeypatch.setattr(_models, "available", lambda: list(_models._FAMILIES))
    assert _models.propose(*shape).name == name


def test_every_model_that_is_there_can_be_found():
    for name in _models.available():
        assert _models.find(name).__name__ == name


def test_no_parameter_is_taken_for_a_mistyped_option():
    for name in _models.available():
        parameters = _models.parameters_of(_models.find(name))
        options = [each.replace("_", "-") for each in parameters if each != "model"]
        _models.check_options(options, OPTIONS)


def test_options_that_are_suggested_exist(run):
    shown = run("fit", "--help").out
    assert set(re.findall(r"--[a-z][-a-z]*", shown)) >= set(OPTIONS)


class Crash(Exception):
    pass


def test_resume_ends_as_if_nothing_had_happened(run, run_json, table, tmp_path, monkeypatch):
    options = ["--label", "kind", "--n-draws", "30", "--burn-in", "40", "--n-chains", "1"]
    whole = run_json("fit", table, *options, "-o", tmp_path / "whole.model")
    usual, calls = gibbs.step, []

    @functools.wraps(usual)
    def step(*arguments, **more):
        calls.append(1)
        if len(calls) > 60:
            raise Crash("the machine died")
        return usual(*arguments, **more)

    folder = tmp_path / "run.ckpt"
    monkeypatch.setattr(gibbs, "step", step)
    done = run("fit", table, *options, "-o", tmp_path / "again.model", "--checkpoint", folder, "-q")
    assert done.code == 1  # not the user's fault
    assert "Crash" in done.err
    monkeypatch.setattr(gibbs, "step", usual)
    monkeypatch.chdir("/")  # paths of the request do not depend on where it is
    told = run_json("resume", folder)
    assert told["accuracy"] == whole["accuracy"]
    shares = [
        regbayes.load(tmp_path / name).predict_proba(make_table())
        for name in ("whole.model", "again.model")
    ]
    np.testing.assert_array_equal(*shares)


def test_inspect(run, run_json, models):
    told = run_json("inspect", models.table)
    assert told["model"] == "GibbsInfiniteSVM"
    assert told["classes"] == ["down", "up"]
    assert told["features"] == ["x", "z"]
    assert told["parameters"]["n_draws"] == 6
    assert "accuracy" in told["training"]
    assert told["diagnosis"]
    assert "down, up" in run("inspect", models.table).out
    named = run_json("inspect", "GibbsInfiniteSVM")
    assert named["parameters"]["--n-draws"] == "100"
    assert "--random-state" not in named["parameters"]


def test_datasets(run, run_json, tmp_path):
    known = run_json("datasets")
    assert {"parkinsons", "switching_labels"} <= known.keys()
    assert all(known.values())
    assert "parkinsons" in run("datasets").out
    told = run_json("datasets", "make_switching_labels", "-o", tmp_path / "s.csv")
    table = pd.read_csv(tmp_path / "s.csv")
    assert list(table.columns) == told["columns"] == ["sequence_id", "time", "x0", "label"]
    data = regbayes.datasets.make_switching_labels(random_state=0)
    assert table["label"].tolist() == np.concatenate(data.target).tolist()
    np.testing.assert_allclose(table["x0"], np.concatenate(data.data).ravel())


def test_counts_become_texts_and_views_columns():
    from scipy.sparse import csr_matrix
    from sklearn.utils import Bunch

    from regbayes.cli._data import to_frame

    counts = csr_matrix([[2, 0, 1], [0, 1, 0]])
    words = Bunch(data=counts, target=["x", "y"], feature_names=["sea", "tea", "bee"])
    assert to_frame(words).to_dict("list") == {"text": ["sea sea bee", "tea"], "label": ["x", "y"]}
    views = Bunch(data={"px": np.eye(2), "tag": np.zeros((2, 1))}, target=[0, 1])
    assert list(to_frame(views).columns) == ["px_0", "px_1", "tag_0", "label"]


def test_report(run, run_json, models, table, tmp_path, monkeypatch):
    seen = {}

    def write_report(model, X, y=None, path=None, **more):
        seen.update(model=model, X=X, y=y, path=path, **more)

    fake = ModuleType("regbayes.report")
    fake.write_report = write_report
    monkeypatch.setitem(sys.modules, "regbayes.report", fake)
    assert run_json("report", models.table, table, "-o", tmp_path / "r.html") == {
        "output": str(tmp_path / "r.html")
    }
    assert seen["feature_names"] == ["x", "z"]
    assert seen["X"].shape == (40, 2)
    assert seen["y"].tolist() == make_table()["kind"].tolist()
    monkeypatch.setitem(sys.modules, "regbayes.report", None)
    done = run("report", models.table, table)
    assert done.code == 2
    assert "pip install" in done.err


def test_reproduce(run, run_json, monkeypatch, tmp_path):
    assert "000_table1" in run_json("reproduce")["experiments"]
    called = []

    def started(command, **options):
        called.append(command[1:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", started)
    assert run("reproduce", "000_table1", "--quick").code == 0
    assert called == [["-m", "experiments", "000_table1", "--quick"]]


def test_demo(run, monkeypatch, tmp_path):
    import regbayes.demo

    called = []
    monkeypatch.setattr(regbayes.demo, "main", lambda path, quick: called.append((path, quick)))
    assert run("demo", "--quick", "-o", tmp_path / "d.png").code == 0
    assert called == [(tmp_path / "d.png", True)]


def test_version_and_help(run):
    assert run("--version").out == f"regbayes {regbayes.__version__}\n"
    assert run().out == run("--help").out
    assert "--sequence-id" in run("fit", "--help").out


def test_without_typer_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "regbayes.cli._app", raising=False)
    assert main(["--help"]) == 2
    assert 'pip install "regbayes[cli]"' in capsys.readouterr().err


def test_help_imports_nothing_heavy():
    look = (
        "import json, sys; from regbayes.cli import main; code = main(['--help']); "
        "print(json.dumps([code, *sorted(sys.modules)]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    code, *modules = json.loads(done.stderr)
    assert code == 0
    assert "datasets" in done.stdout
    assert not {"numba", "sklearn", "pandas", "numpy", "scipy", "matplotlib"} & set(modules)


def _text(done):
    from io import StringIO

    assert done.code == 0, done.err
    return StringIO(done.out)


def test_dates_sort_the_steps(run_json, tmp_path):
    table = make_steps()
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(table["t"], unit="D")
    table["t"] = days.dt.strftime("%Y-%m-%d")
    told = []
    for name, frame in {"a": table, "b": table.sort_values("t", ascending=False)}.items():
        frame = frame.sort_values("id", kind="stable")  # sequences in the same order
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        told.append(run_json("fit", tmp_path / f"{name}.csv", *STEPS, *QUICK)["accuracy"])
    assert told[0] == told[1]


def test_parquet_without_pyarrow(run, tmp_path, monkeypatch):
    def read(path):
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", read)
    (tmp_path / "a.parquet").write_bytes(b"")
    done = run("fit", tmp_path / "a.parquet", "--label", "kind")
    assert done.code == 2
    assert 'pip install "regbayes[parquet]"' in done.err


def test_documents(run_json, tmp_path):
    pytest.importorskip("regbayes.topics")
    rng = np.random.default_rng(0)
    words = {"space": ["orbit", "moon", "rocket"], "sport": ["puck", "goal", "team"]}
    kinds = ["space", "sport"] * 20
    texts = [" ".join(rng.choice([*words[kind], "the", "and"], 15)) for kind in kinds]
    path = tmp_path / "texts.csv"
    pd.DataFrame({"text": texts, "kind": kinds}).to_csv(path, index=False)
    small = ["--n-topics", "4", "--n-draws", "4", "--burn-in", "6", "--n-chains", "1"]
    out = tmp_path / "texts.model"
    told = run_json("fit", path, "--label", "kind", *small, "-o", out)
    assert told["model"] == "MaxMarginTopics"
    assert run_json("predict", out, path)["accuracy"] > 0.9


def test_views(run_json, tmp_path):
    pytest.importorskip("regbayes.harmonium")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    image = rng.normal(size=(120, 4)) + 2 * np.eye(3, 4)[y]
    tags = (rng.random((120, 3)) < 0.2 + 0.6 * np.eye(3)[y]).astype(int)
    columns = {f"px{j}": image[:, j] for j in range(4)} | {f"w{j}": tags[:, j] for j in range(3)}
    path, out = tmp_path / "views.csv", tmp_path / "views.model"
    pd.DataFrame(columns).assign(kind=np.array([*"abc"])[y]).to_csv(path, index=False)
    views = ["--views", "image=px*,words=w*", "--max-features", "50"]
    told = run_json("fit", path, "--label", "kind", *views, "-o", out)
    assert told["model"] == "InfiniteMaxMarginHarmonium"
    assert run_json("predict", out, path)["accuracy"] > 0.8
