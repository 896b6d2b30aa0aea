"""Errors that say what is wrong and how to mend it; coordinates that forget the units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from regbayes.data import Frame, check_labelled_table
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 2))
Y = (X[:, 0] > 0).astype(int)


def changed(value):
    table = X.copy()
    table[3, 1] = value
    return table


BAD = [
    # what is passed, what is wrong with it, what to do
    pytest.param(changed(np.nan), Y, "contains NaN", "SimpleImputer", id="NaN"),
    pytest.param(changed(np.inf), Y, "contains infinity", "replace infinite", id="infinite"),
    pytest.param(X[:0], Y[:0], "0 sample", "at least one row", id="no rows"),
    pytest.param(X[:, :0], Y, "0 feature", "at least one column", id="no columns"),
    pytest.param(X[:, 0], Y, "Expected 2D array", "one row for each sample", id="one dimension"),
    pytest.param(X[:, :, None], Y, "dim 3", "To mend it", id="three dimensions"),
    pytest.param(X, Y[:-1], "inconsistent numbers", "one label for each row", id="too few labels"),
    pytest.param(X, 0 * Y, "only one class", "did not leave a class out", id="one class"),
    pytest.param([["a", "b"]] * 30, Y, "convert string", "OneHotEncoder", id="text"),
    pytest.param(sparse.csr_array(X), Y, "Sparse data", "toarray", id="sparse"),
    pytest.param(X, X[:, 0], "continuous", "To mend it", id="continuous y"),
    pytest.param(X, None, "requires y", "To mend it", id="no y"),
    pytest.param(X, np.stack([Y, Y], 1), "1d array", "To mend it", id="2-D y"),
]


@pytest.mark.parametrize(("table", "labels", "wrong", "remedy"), BAD)
@pytest.mark.parametrize("family", [GibbsInfiniteSVM, DPMultinomialLogit, InfiniteSVM])
def test_bad_training_data_are_refused_with_a_remedy(family, table, labels, wrong, remedy):
    with pytest.raises((ValueError, TypeError)) as caught:
        family().fit(table, labels)
    assert wrong in str(caught.value)
    assert remedy in str(caught.value)


@pytest.fixture(scope="module")
def fitted():
    return GibbsInfiniteSVM(n_draws=3, burn_in=2, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("table", "wrong", "remedy"),
    [
        pytest.param(changed(np.nan), "contains NaN", "SimpleImputer", id="NaN"),
        pytest.param(changed(-np.inf), "contains infinity", "replace infinite", id="infinite"),
        pytest.param(X[0], "Expected 2D array", "one row for each sample", id="one row"),
        pytest.param(sparse.csr_array(X), "Sparse data", "toarray", id="sparse"),
        pytest.param(X[:, :1], "expecting 2 features", "To mend it", id="columns"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_component"])
def test_bad_new_data_are_refused_with_a_remedy(fitted, method, table, wrong, remedy):
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(fitted, method)(table)
    assert wrong in str(caught.value)
    assert remedy in str(caught.value)


def test_a_missing_label_has_a_remedy_of_its_own():
    with pytest.raises(ValueError) as caught:
        GibbsInfiniteSVM().fit(X, np.where(Y, 1.0, np.nan))
    assert "y contains NaN" in str(caught.value)
    assert "SimpleImputer" not in str(caught.value)


@pytest.mark.parametrize("labels", [["b", "a"], [True, False], [7, -7], [2.0, 1.0]])
def test_labels_are_places_among_the_classes(labels):
    table, classes, places = check_labelled_table(GibbsInfiniteSVM(), [[0], [1]], labels)
    assert table.dtype == np.float64
    assert table.flags.c_contiguous
    np.testing.assert_array_equal(classes, np.unique(labels))
    np.testing.assert_array_equal(classes[places], labels)


# The frame.


@given(
    scale=st.floats(-150, 150).map(lambda e: 10.0**e),
    shift=st.sampled_from([0.0, 1.0, -30.0]),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_frame_centres_and_scales_by_one_number(scale, shift):
    inside = Frame.of(scale * (X + shift)).enter(scale * (X + shift))
    np.testing.assert_allclose(inside.mean(axis=0), 0, atol=1e-12)
    assert np.sqrt(np.mean(inside**2)) == pytest.approx(1)
    np.testing.assert_allclose(inside, Frame.of(X).enter(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("power", [-500, -40, 40, 500])
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_answers_do_not_depend_on_the_units(power, covariance):
    """By a power of two, so that no bit of the data is lost."""
    model = GibbsInfiniteSVM(covariance=covariance, n_draws=10, burn_in=10, random_state=0)
    expected = model.fit(X, Y).predict_proba(X)
    found = model.fit(X * 2.0**power, Y).predict_proba(X * 2.0**power)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e300, 1e-300])
def test_a_constant_table_has_unit_one_and_does_not_move(value):
    table = np.full((7, 2), value)
    frame = Frame.of(table)
    assert frame.unit > 0
    np.testing.assert_allclose(frame.enter(table), 0, atol=1e-12)


def test_nothing_overflows():
    huge = np.array([[-1e308, 1e308], [1e308, -1e308], [1.7e308, 0.0]])
    inside = Frame.of(huge).enter(huge)
    assert np.isfinite(inside).all()
    assert np.sqrt(np.mean(inside**2)) == pytest.approx(1)
    assert np.abs(Frame.of(X * 1e-300).enter(X * 1e300)).max() == 1e100
