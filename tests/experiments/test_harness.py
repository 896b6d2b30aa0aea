"""The harness for tables: same numbers as scikit-learn's own loop, resumable, and honest."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from experiments import __main__ as command_line
from experiments.harness import (
    Cell,
    Options,
    Row,
    as_differences,
    as_table,
    evaluate,
    keep_unfinished,
    paired_differences,
    run_table,
    size_found,
)
from regbayes.harmonium import InfiniteHarmonium

X, y = load_iris(return_X_y=True)
X = X[:, :2]  # hard enough that rows differ
SPLITS = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
METRICS = {"accuracy": accuracy_score, "macro F1": lambda a, b: f1_score(a, b, average="macro")}


class Majority(ClassifierMixin, BaseEstimator):
    """Predicts the most frequent class; notes each fit, and what it was given."""

    fits = []  # noqa: RUF012  (shared by clones on purpose)

    def __init__(self, fail=False, random_state=None):
        self.fail = fail
        self.random_state = random_state

    def fit(self, X, y, groups=None):
        if self.fail:
            raise ZeroDivisionError("asked to fail")
        Majority.fits.append({"n": len(X), "groups": groups, "seed": self.random_state})
        self.classes_, counts = np.unique(y, return_counts=True)
        self.majority_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.majority_)


@pytest.fixture(autouse=True)
def forget_fits():
    Majority.fits.clear()


@pytest.fixture
def options(tmp_path):
    return Options("000_test", results=tmp_path, command="python -m experiments 000_test")


def knn(seed):
    return KNeighborsClassifier(3)


def tree(seed):
    return DecisionTreeClassifier(max_depth=3, random_state=seed)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_are_those_of_cross_validate(tmp_path, n_jobs):
    options = Options("000_test", n_jobs=n_jobs, results=tmp_path)
    cells = evaluate([Row("knn", knn), Row("tree", tree)], X, y, SPLITS, METRICS, options=options)
    assert [(cell.row, cell.split) for cell in cells] == [
        (row, split) for row in ("knn", "tree") for split in range(3)
    ]
    scoring = {"accuracy": "accuracy", "macro F1": "f1_macro"}
    expected = cross_validate(knn(0), X, y, cv=SPLITS, scoring=scoring)
    for metric in METRICS:
        found = [cell.scores[metric] for cell in cells[:3]]
        np.testing.assert_allclose(found, expected[f"test_{metric}"])
    assert all(cell.fit_seconds > 0 and cell.predict_seconds > 0 for cell in cells)
    assert {cell.n_jobs for cell in cells} == {n_jobs}


def test_seed_depends_on_the_split_only(options):
    row = Row("majority", lambda seed: Majority(random_state=seed))
    evaluate([row], X, y, SPLITS, METRICS, options=options, seed=10)
    assert [fit["seed"] for fit in Majority.fits] == [10, 11, 12]


def test_finished_cells_are_not_run_again(options):
    rows = [Row("a", lambda seed: Majority()), Row("b", lambda seed: Majority(fail=True))]
    with pytest.raises(ZeroDivisionError) as failure:
        evaluate(rows, X, y, SPLITS, METRICS, options=options)
    assert failure.value.__notes__ == ["in row 'b', split 0"]
    assert len(Majority.fits) == 3

    mended = [rows[0], Row("b", lambda seed: Majority())]
    resumed = evaluate(mended, X, y, SPLITS, METRICS, options=options)
    assert len(Majority.fits) == 6  # only row b was run
    assert resumed == evaluate(mended, X, y, SPLITS, METRICS, options=options)
    assert len(Majority.fits) == 6

    fresh = Options(options.name, fresh=True, results=options.results)
    evaluate(mended, X, y, SPLITS, METRICS, options=fresh)
    assert len(Majority.fits) == 12


def test_a_machine_that_has_the_page_alone_goes_on_from_it(options, tmp_path):
    row = Row("majority", lambda seed: Majority(random_state=seed))
    run_table("A test", [row], X, y, SPLITS[:2], METRICS, options=options)
    elsewhere = Options(options.name, results=tmp_path / "elsewhere")
    elsewhere.results.mkdir()
    (options.results / "000_test.json").rename(elsewhere.results / "000_test.json")
    cells = evaluate([row], X, y, SPLITS, METRICS, options=elsewhere)
    assert [fit["seed"] for fit in Majority.fits] == [0, 1, 2]  # the first two on the first machine
    assert [cell.split for cell in cells] == [0, 1, 2]
    evaluate([row], X, y, SPLITS, METRICS, options=replace(elsewhere, fresh=True))
    assert len(Majority.fits) == 6
    third = Options(options.name, results=tmp_path / "third")
    third.results.mkdir()
    (elsewhere.results / "000_test.json").rename(third.results / "more_cells.json")
    evaluate([row], X, y, SPLITS[:2], METRICS, options=third, pages=["more_cells"])
    assert len(Majority.fits) == 6


def test_another_machine_goes_on_from_what_was_kept_of_a_stopped_run(options, tmp_path):
    rows = [Row("majority", lambda seed: Majority(random_state=seed))]
    stopped = evaluate(rows, X, y, SPLITS[:2], METRICS, options=options)
    (kept,) = keep_unfinished(tmp_path)
    there = replace(options, results=tmp_path / "there")
    there.results.mkdir()
    kept.rename(there.results / kept.name)
    evaluate(rows, X + 1, y, SPLITS[:1], METRICS, options=there)  # its own are added
    assert len(json.loads(keep_unfinished(there.results)[0].read_text())["cells"]) == 3
    Majority.fits.clear()
    cells = run_table("T", rows, X, y, SPLITS, METRICS, options=there)
    assert len(Majority.fits) == 1
    assert cells[:2] == stopped
    assert not (there.results / kept.name).exists()  # the page has its cells now


@pytest.mark.parametrize(
    "change",
    [
        {"X": X + 1},
        {"y": (y + 1) % 3},
        {"splits": [(test, train) for train, test in SPLITS]},
        {"code_version": "2"},
        {"seed": 5},
        {"metrics": {"accuracy": accuracy_score}},
        {"rows": [Row("other", lambda seed: Majority(random_state=seed))]},
        {"rows": [Row("a", lambda seed: Majority(random_state=-seed))]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_cell_is_run_again(options, change):
    same = {
        "rows": [Row("a", lambda seed: Majority(random_state=seed + 1))],
        "X": X,
        "y": y,
        "splits": SPLITS,
        "metrics": METRICS,
    }
    evaluate(**same, options=options)
    evaluate(**{**same, **change}, options=options)
    assert len(Majority.fits) == 6


def test_parameters_with_an_address_do_not_hinder_resuming(options):
    class Scorer:
        """Its representation holds an address."""

        def __call__(self, estimator, X, y):
            return estimator.score(X, y)

    def searched(seed):
        return GridSearchCV(Majority(), {"fail": [False]}, scoring=Scorer(), cv=2, refit=True)

    evaluate([Row("search", searched)], X, y, SPLITS, METRICS, options=options)
    before = len(Majority.fits)
    evaluate([Row("search", searched)], X, y, SPLITS, METRICS, options=options)
    assert len(Majority.fits) == before


def test_groups_reach_only_rows_that_ask(options):
    groups = np.arange(len(y)) % 6
    splits = list(GroupKFold(3).split(X, y, groups))
    rows = [
        Row("without", lambda seed: Majority()),
        Row("with", lambda seed: Majority(), pass_groups=True),
    ]
    evaluate(rows, X, y, splits, METRICS, options=options, groups=groups)
    assert [fit["groups"] is None for fit in Majority.fits] == [True] * 3 + [False] * 3
    for fit, (train, _) in zip(Majority.fits[3:], splits):
        np.testing.assert_array_equal(fit["groups"], groups[train])
    with pytest.raises(ValueError, match="groups="):
        evaluate(rows, X, y, splits, METRICS, options=options)


def test_bad_tables_are_refused(options):
    row = Row("a", knn)
    with pytest.raises(ValueError, match="more than once"):
        evaluate([row, row], X, y, SPLITS, METRICS, options=options)
    overlapping = [(np.arange(100), np.arange(99, 150))]
    with pytest.raises(ValueError, match="both train and test"):
        evaluate([row], X, y, overlapping, METRICS, options=options)


def test_results_page(options, capsys):
    search = Row("knn, searched", lambda seed: GridSearchCV(knn(0), {"n_neighbors": [1, 15]}, cv=3))
    cells = run_table(
        "Table 0: a test",
        [Row("tree", tree), search],
        X,
        y,
        SPLITS,
        METRICS,
        options=options,
        notes="Falls short because it is a test.",
        compare=[("tree", "knn, searched")],
    )
    page = (options.results / "000_test.md").read_text()
    accuracy = [100 * cell.scores["accuracy"] for cell in cells[:3]]
    assert f"| tree | {np.mean(accuracy):.1f} ± {np.std(accuracy, ddof=1):.1f} |" in page
    assert "n_neighbors=15 (" in page
    assert as_differences(cells, [("tree", "knn, searched")]) in page
    for part in ("# Table 0: a test", "3 split(s)", "n_jobs=1", "Falls short", "- numpy: "):
        assert part in page
    assert f"- command: {options.command}" in page
    raw = json.loads((options.results / "000_test.json").read_text())
    assert [Cell(**cell) for cell in raw["cells"]] == cells
    assert "| tree |" in capsys.readouterr().out


def make_cells(**rows):
    return [
        Cell(row, split, {"accuracy": score, "half": score / 2}, 1.0, 1.0)
        for row, scores in rows.items()
        for split, score in enumerate(scores)
    ]


@pytest.mark.parametrize("n_folds", [1, 2, 3])
def test_paired_differences_are_over_repeats(n_folds):
    a, b = np.random.default_rng(0).random((2, 6))
    cells = make_cells(b=b, a=a)
    repeats = [np.mean((a - b)[i : i + n_folds]) for i in range(0, 6, n_folds)]
    # In any order of the cells; the t statistic of SciPy is the mean over the standard error.
    for order in (cells, cells[::-1]):
        found = paired_differences(order, "a", "b", splits_per_repeat=n_folds)
        for metric, share in (("accuracy", 1.0), ("half", 0.5)):
            mean, error = found[metric]
            assert mean == pytest.approx(share * np.mean(a - b))
            assert mean / error == pytest.approx(stats.ttest_1samp(repeats, 0.0).statistic)


def test_differences_on_the_page():
    cells = make_cells(a=[0.8, 0.9, 0.7, 0.6], b=[0.7, 0.8, 0.7, 0.6])
    page = as_differences(cells, [("a", "b"), ("b", "a")], splits_per_repeat=2)
    assert "| a − b | +5.0 ± 5.0 | +2.5 ± 2.5 |" in page
    assert "| b − a | -5.0 ± 5.0 | -2.5 ± 2.5 |" in page
    assert "over 2 repeat(s) of 2 splits." in page
    assert "over 4 split(s)." in as_differences(cells, [("a", "b")])
    # One repeat has no error.
    assert "| a − b | +5.0 | +2.5 |" in as_differences(cells, [("a", "b")], 4)


def test_quick_results_are_kept_apart(tmp_path):
    options = Options("000_test", quick=True, results=tmp_path)
    run_table("A test", [Row("knn", knn)], X, y, SPLITS[:1], METRICS, options=options)
    assert {file.name for file in tmp_path.glob("*.*") if file.is_file()} == {
        "000_test_quick.md",
        "000_test_quick.json",
    }
    assert "not a result" in (tmp_path / "000_test_quick.md").read_text()


def test_one_split_has_no_deviation():
    assert "±" not in as_table([Cell("a", 0, {"accuracy": 0.5}, 1.0, 1.0)])


def test_a_model_that_finds_its_size_says_so():
    alone = Cell("given", 0, {"accuracy": 0.5}, 1.0, 1.0)
    found = [
        Cell("found", i, {"accuracy": 0.5}, 1.0, 1.0, size=size)
        for i, size in enumerate((7.0, 8.0))
    ]
    assert "size" not in as_table([alone])
    titles, _, first, second = as_table([alone, *found]).splitlines()
    assert titles.endswith("| size found |")
    assert first.endswith("|  |")
    assert second.endswith("| 7.5 |")
    X = np.random.default_rng(0).standard_normal((20, 3))
    assert size_found(InfiniteHarmonium(5, max_iter=2, random_state=0).fit(X)) <= 5
    assert size_found(DecisionTreeClassifier(max_features=2)) is None


def test_cells_of_another_commit_are_named(options):
    rows = [Row("knn", knn)]
    evaluate(rows, X, y, SPLITS, METRICS, options=options)
    for file in (options.results / ".work" / "000_test").iterdir():
        file.write_text(
            json.dumps(json.loads(file.read_text()) | {"commit": "abc123", "n_jobs": 7})
        )
    run_table("A test", rows, X, y, SPLITS, METRICS, options=options)
    page = (options.results / "000_test.md").read_text()
    assert "filled earlier, at commit abc123" in page
    assert "n_jobs=7" in page


def test_lists_of_sequences_are_data_too(options):
    """Sequence models take a list of arrays of different lengths."""

    class MeanLength(Majority):
        def fit(self, X, y, groups=None):
            return super().fit([len(sequence) for sequence in X], y)

    sequences = [np.zeros((1 + i % 4, 2)) for i in range(20)]
    labels = np.arange(20) % 2
    splits = list(ShuffleSplit(2, random_state=0).split(sequences))
    row = Row("length", lambda seed: MeanLength())
    cells = evaluate([row], sequences, labels, splits, METRICS, options=options)
    assert len(cells) == 2


@pytest.fixture
def two_experiments(tmp_path, monkeypatch):
    (tmp_path / "000_first.py").write_text('"""Table 1: first."""\n')
    (tmp_path / "001_second.py").write_text('"""Figure 1: second."""\n')
    (tmp_path / "helper.py").write_text("")
    monkeypatch.setattr(command_line, "FOLDER", tmp_path)


@pytest.mark.usefixtures("two_experiments")
@pytest.mark.parametrize(
    ("arguments", "complaint"), [(["nope"], "no experiment nope"), ([], "name")]
)
def test_unknown_experiments_are_refused_with_a_list(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as stop:
        command_line.main(arguments)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "000_first  Table 1: first." in said
    assert "001_second  Figure 1: second." in said
    assert "helper" not in said


@pytest.mark.usefixtures("two_experiments")
def test_list_and_run(monkeypatch, capsys):
    command_line.main(["--list"])
    assert "Figure 1" in capsys.readouterr().out

    asked = []

    class Experiment:
        run = staticmethod(asked.append)

    monkeypatch.setattr(command_line.importlib, "import_module", lambda name: Experiment)
    command_line.main(["all", "--quick", "--jobs", "2"])
    assert [(o.name, o.quick, o.fresh, o.n_jobs) for o in asked] == [
        ("000_first", True, False, 2),
        ("001_second", True, False, 2),
    ]
    assert asked[0].command == "python -m experiments all --quick --jobs 2"
