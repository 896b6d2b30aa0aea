"""Data sets that are drawn, or ship with the package."""

import csv

import numpy as np
import pytest

from regbayes.datasets import _subpopulations, _walks, load_walks, make_subpopulations


def test_no_single_line_can_separate_the_table_but_three_do():
    table = make_subpopulations(2000, random_state=1)
    X, y = table.data, table.target
    offset = X - _subpopulations._CENTERS[table.groups]
    angles = _subpopulations._ANGLES
    direction = np.column_stack([np.cos(angles), np.sin(angles)])[table.groups]
    np.testing.assert_array_equal(y == "yes", (offset * direction).sum(axis=1) > 0)
    best = max(
        np.mean((X @ [np.cos(a), np.sin(a)] > b) == (y == "yes"))
        for a in np.linspace(0, 2 * np.pi, 60)
        for b in np.linspace(-8, 8, 33)
    )
    assert best < 0.75


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.random.default_rng(3), np.random.RandomState]
)
def test_tables_are_drawn_from_any_random_state(make):
    table = make_subpopulations(50, random_state=make())
    assert table.data.shape == (50, 2)
    if make() == 3:
        np.testing.assert_array_equal(table.data, make_subpopulations(50, random_state=3).data)


def test_no_table_without_rows():
    with pytest.raises(ValueError, match="at least 1"):
        make_subpopulations(0)


def test_walks_are_those_that_were_drawn():
    walks = load_walks()
    found = [
        [w, *map(float, step), str(label)]
        for w, (steps, labels) in enumerate(zip(walks.data, walks.target))
        for step, label in zip(steps, labels)
    ]
    assert found == _walks.draw_walks(np.random.default_rng(0))
    assert [len(steps) for steps in walks.data] == [len(labels) for labels in walks.target]
    assert all(set(labels) <= set(walks.target_names) for labels in walks.target)


def test_walks_as_a_pair_are_the_same():
    X, y = load_walks(return_X_y=True)
    for found, expected in zip((X, y), (load_walks().data, load_walks().target)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_walks_can_be_told_by_their_neighbours():
    """Not from a step alone, for an arm passes the middle whatever one does."""
    from sklearn.linear_model import LogisticRegression

    X, y = load_walks(return_X_y=True)
    alone = LogisticRegression(max_iter=1000).fit(np.concatenate(X[:4]), np.concatenate(y[:4]))
    accuracy = alone.score(np.concatenate(X[4:]), np.concatenate(y[4:]))
    assert 0.5 < accuracy < 0.9


def test_the_file_is_a_table():
    import regbayes.datasets as datasets

    file = next(p for p in datasets.__path__) + "/tables/walks.csv"
    with open(file, encoding="utf-8") as opened:
        assert next(csv.reader(opened)) == ["walk", "forward", "up", "turn", "activity"]
