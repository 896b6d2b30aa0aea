"""Pages of results say what was measured, what was not, and nothing else."""

import json

import pytest

from experiments import comparison
from experiments.__main__ import available
from experiments.papers import OUTDATED, OWN, PAPERS, Result


def write(folder, page, scores, *, quick=False, commit="abc"):
    cells = [
        {"row": row, "scores": {"accuracy": value}, "fit_seconds": 2.0}
        for row, values in scores.items()
        for value in values
    ]
    raw = {"quick": quick, "notes": "A note.", "cells": cells}
    raw["environment"] = {"date": "today", "commit": commit}
    (folder / f"{page}.json").write_text(json.dumps(raw), encoding="utf-8")
    (folder / f"{page}.md").write_text("# page", encoding="utf-8")


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "experiments" / "results"
    folder.mkdir(parents=True)
    return folder


REPORTED = {"GiSVM": {"accuracy": "80.0 ± 1.0"}, "iSVM": {"accuracy": "70"}}
RESULT = Result("table", "data", REPORTED, alike=True, ours="GiSVM")


def test_measured_beside_reported(results):
    write(results, "table", {"GiSVM": [0.80, 0.82], "linear SVM": [0.9, 0.9], "optimum": [1, 1]})
    lines = "\n".join(comparison._result(RESULT, results)).splitlines()
    assert "|  | here | accuracy | paper, accuracy | Δ | fit s |" in lines
    assert "| GiSVM | ours | 81.0 ± 1.4 | 80.0 ± 1.0 | +1.0 | 2 |" in lines
    assert "| linear SVM | peer | 90.0 ± 0.0 |  |  | 2 |" in lines
    assert "| optimum | bound | 100.0 ± 0.0 |  |  | 2 |" in lines
    assert "| iSVM | not run |  | 70 |  |  |" in lines
    assert "A note." in lines


def test_figures_of_other_data_have_no_difference(results):
    write(results, "table", {"GiSVM": [0.8]})
    other = Result("table", "data", REPORTED, alike=False)
    assert "Δ" not in "\n".join(comparison._result(other, results))


def test_quick_runs_and_old_code_are_no_results(results, monkeypatch):
    assert "Not run in full" in "\n".join(comparison._result(RESULT, results))
    write(results, "table", {"GiSVM": [0.8]}, quick=True)
    assert comparison.read(RESULT, results) is None
    monkeypatch.setitem(OUTDATED, "table", "old")
    write(results, "table", {"GiSVM": [0.8]}, commit="old")
    assert "Not run again" in "\n".join(comparison._result(RESULT, results))
    write(results, "table", {"GiSVM": [0.8]}, commit="new")
    assert comparison.read(RESULT, results) is not None


def test_summary_names_the_best_of_each(results):
    write(results, "table", {"GiSVM": [0.7], "iSVM": [0.8], "linear SVM": [0.6], "MNL": [0.9]})
    measured = comparison.read(RESULT, results)
    summary = comparison._summary(RESULT, measured)
    assert summary == ["GiSVM", "70.0", "80.0 ± 1.0", "iSVM 80.0", "MNL 90.0"]


def test_every_experiment_is_listed_once_and_exists():
    tables = [table for paper in PAPERS for table in paper.tables]
    assert {table.experiment for table in tables} <= set(available())
    pages = [r.page for table in tables for r in table.results if r.page] + [r.page for r in OWN]
    assert len(pages) == len(set(pages))
    listed = {table.experiment for table in tables} | {page[:10] for page in pages}
    assert {name for name in available() if not name.startswith(tuple(listed))} == set()


def test_every_result_is_on_the_page():
    page = comparison.page()
    folder = comparison.ROOT / "experiments" / "results"
    pages = {r.page for paper in PAPERS for table in paper.tables for r in table.results}
    pages |= {r.page for r in OWN}
    written = {file.stem for file in folder.glob("*.md") if not file.stem.endswith("_quick")}
    assert written - pages == set()
    assert "_quick" not in page


def test_readme_is_up_to_date():
    text = (comparison.ROOT / "README.md").read_text(encoding="utf-8")
    inside = text.split(comparison.BEGIN)[1].split(comparison.END)[0].strip()
    assert inside == comparison.readme_part().strip(), "run `make readme`"
