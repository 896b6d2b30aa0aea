"""Descriptions of steps and symbols for them: known values, invariances, gaps, company."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from regbayes.data import SequenceFeatures, SequenceQuantizer, check_sequences
from regbayes.testing import sequence_checks

RNG = np.random.default_rng(0)
X = [RNG.standard_normal((n, 2)).cumsum(axis=0) for n in (30, 1, 12, 25)]
LENGTHS = [len(x) for x in X]
USES = ("positions", "velocities", "both", "shapes")
NAN = np.nan


def quantizer(n_symbols=5, **options):
    return SequenceQuantizer(n_symbols, random_state=0, **options)


def features(X, lengths=None, **options):
    return SequenceFeatures(**options).fit_transform(X, lengths=lengths)


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)


# The contract of sequence estimators, but for what it asks of a `transform` that has one row for
# each sequence: ours has one for each step.
OF_WHOLE_SEQUENCES = {"check_frame_with_scattered_rows"}
OF_FINITE_ANSWERS = {"check_missing_steps", "check_unobserved_sequence"}  # NaN stays NaN
CASES = [
    pytest.param(check, id=f"{label}-{name}")
    for label, model, others in (
        ("features", SequenceFeatures(use="both", center=True, scale=True), OF_FINITE_ANSWERS),
        ("quantizer", SequenceQuantizer(4), set()),
        ("forms", SequenceQuantizer(6, use="both", center=True, scale=True), set()),
        ("shapes", SequenceQuantizer(6, use="shapes", window=2), set()),
    )
    for name, check in sequence_checks(model)
    if name not in OF_WHOLE_SEQUENCES | others
]


@pytest.mark.parametrize("check", CASES)
def test_sequence_contract(check):
    check()


# Layouts.


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", [SequenceFeatures, SequenceQuantizer])
def test_layouts_agree(kind, use):
    def model():
        options = {"use": use, "center": True, "scale": True}
        return kind(**options) if kind is SequenceFeatures else quantizer(**options)

    expected = model().fit_transform(X)
    assert isinstance(expected, list)
    stack = np.concatenate(expected)
    assert_same(model().fit_transform(tuple(x.tolist() for x in X)), expected)
    # Where sequences end matters, so `fit_transform` has to pass `lengths` on.
    found = model().fit_transform(np.concatenate(X), lengths=LENGTHS)
    np.testing.assert_array_equal(found, stack)
    frame = pd.DataFrame(np.concatenate(X), columns=["a", "b"])
    frame["sequence_id"] = np.repeat(["z", "y", "x", "w"], LENGTHS)
    np.testing.assert_array_equal(model().fit_transform(frame), stack)
    step = np.concatenate([np.arange(n) for n in LENGTHS])
    rows = np.argsort(step, kind="stable")
    np.testing.assert_array_equal(model().fit_transform(frame.iloc[rows]), stack[rows])
    cube = np.stack([X[0], X[0][::-1]])
    assert_same(model().fit_transform(cube), model().fit_transform(list(cube)))


def test_symbols_are_integers_of_one_dimension():
    model = quantizer().fit(X)
    for x, symbols in zip(X, model.transform(X)):
        assert symbols.shape == (len(x),)
        assert symbols.dtype == np.int64
    assert set(np.concatenate(model.transform(X))) == set(range(5))
    assert model.n_symbols_ == 5
    assert model.n_features_in_ == 2
    assert model.codebook_.shape == (5, 2)


# Descriptions of known sequences.


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([0, 2, 4, 6], [2, 2, 2, 2]),
        ([1, 2, 4, 7], [1, 1, 2, 3]),
        ([5, 5], [0, 0]),
        ([3], [0]),
        ([NAN], [NAN]),
        ([0, 1, NAN, 5, 7, 10], [1, 1, NAN, 2, 2, 3]),  # after a gap, as at the beginning
        ([0, 1, NAN, 5, NAN, 9], [1, 1, NAN, NAN, NAN, NAN]),  # no neighbour, no velocity
        ([NAN, 1, 4], [NAN, 3, 3]),
    ],
)
def test_velocities(x, expected):
    others = [np.array([7.0, 9.0]), np.array(x, dtype=float), np.array([1.0])]
    found = features(others, use="velocities")
    np.testing.assert_array_equal(found[1][:, 0], expected)
    np.testing.assert_array_equal(found[0], [[2], [2]])
    np.testing.assert_array_equal(found[2], [[0]])


@pytest.mark.parametrize(("window", "offsets"), [
    (1, [-1, 0, 1]),
    (3, [-3, -2, -1, 0, 1, 2, 3]),
    (15, [-15, -13, -11, -9, -7, -5, -3, -1, 0, 1, 3, 5, 7, 9, 11, 13, 15]),
])  # fmt: skip
def test_shapes_are_the_values_about_a_step(window, offsets):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 2)) for n in (1, 4, 30)]
    for x, found in zip(X, features(X, use="shapes", window=window), strict=True):
        assert found.shape == (len(x), 2 * len(offsets))
        for t, shape in enumerate(found):
            values = np.array([x[min(max(t + o, 0), len(x) - 1)] for o in offsets])
            np.testing.assert_allclose(shape.reshape(-1, 2), values - values.mean(axis=0))


def test_shapes_of_a_contour_go_round():
    """Where a contour starts does not matter, whatever the window."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 2))
    for window in (1, 3, 20):
        options = {"use": "shapes", "window": window, "closed": True}
        here, there = features([x, np.roll(x, 4, axis=0)], **options)
        np.testing.assert_allclose(np.roll(here, 4, axis=0), there, atol=1e-12)
    wrapped = features([x], use="shapes", window=1, closed=True)[0]
    values = x[[8, 0, 1]]
    np.testing.assert_allclose(wrapped[0].reshape(3, 2), values - values.mean(axis=0))


def test_a_level_makes_flat_and_steep_bends_alike():
    bend = np.array([0.0, 1.0, 0.0])
    options = {"use": "shapes", "window": 1, "level": 1e-3}
    steep, flat, noise, huge, none = (
        features([size * bend], **options)[0][1] for size in (100.0, 1.0, 1e-9, 1e200, 0.0)
    )
    np.testing.assert_allclose(steep, flat, rtol=5e-3)
    np.testing.assert_allclose(huge, steep, rtol=1e-4)
    assert np.abs(noise).max() < 1e-5
    assert not none.any()
    plain = features([bend], use="shapes", window=1)[0][1]
    size = np.sqrt(np.mean(plain**2))
    np.testing.assert_allclose(flat, plain / (size + 1e-3))


def test_a_shape_with_a_gap_is_not_observed():
    x = np.array([1.0, 2.0, NAN, 4.0, 5.0, 6.0])
    found = features([x], use="shapes", window=1)[0]
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [0, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(np.isnan(found).any(axis=1), [0, 1, 1, 1, 0, 0])


def test_both_side_by_side():
    both = features(X, use="both")
    assert_same([x[:, :2] for x in both], X)
    assert_same([x[:, 2:] for x in both], features(X, use="velocities"))
    # A step without velocity is not observed, and says so in all columns.
    found = features([[0.0, 1.0, NAN, 5.0, NAN]], use="both")[0]
    np.testing.assert_array_equal(found, [[0, 1], [1, 1], [NAN] * 2, [NAN] * 2, [NAN] * 2])


def test_center_and_scale_of_known_sequences():
    x = np.array([[0.0, 10.0], [NAN, NAN], [2.0, 14.0]])
    deviations = np.array([[-1.0, -2.0], [NAN, NAN], [1.0, 2.0]])
    unit = np.sqrt((1 + 1 + 4 + 4) / 4)  # one for both features
    np.testing.assert_allclose(features([x], center=True)[0], deviations)
    np.testing.assert_allclose(features([x], scale=True)[0], x / unit)
    np.testing.assert_allclose(features([x], center=True, scale=True)[0], deviations / unit)
    ramp = np.array([0.0, 1.0, 2.0])
    found = features([ramp], use="velocities", scale=True)[0][:, 0]
    np.testing.assert_allclose(found, 1 / ramp.std())


def test_constant_sequences_are_left_alone():
    constant = np.full((7, 2), 0.1)
    rounding = constant * (1 + np.finfo(float).eps * (np.arange(7) % 2)[:, None])
    for x in (constant, rounding, np.zeros((3, 2)), X[1], np.full((2, 2), NAN)):
        np.testing.assert_array_equal(features([*X, x], scale=True)[-1], x)
    assert not features([constant], center=True, scale=True)[0].any()


def test_defaults_leave_sequences_as_they_are():
    assert_same(features(X), X)


# Invariances.


@pytest.mark.parametrize("use", USES)
def test_center_forgets_the_place(use):
    model = quantizer(use=use, center=True).fit(X)
    moved = [x + np.array([1e3 * i, -5.0]) for i, x in enumerate(X)]
    assert_same(model.transform(moved), model.transform(X))
    np.testing.assert_allclose(
        np.concatenate(features(moved, use=use, center=True)),
        np.concatenate(features(X, use=use, center=True)),
        atol=1e-9,
    )


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("center", [False, True])
def test_scale_forgets_the_size(use, center):
    some = [x for x in X if len(x) > 1]
    sizes = (1e-200, 3e5, 1e200)
    larger = [size * x for size, x in zip(sizes, some)]
    options = {"use": use, "center": center, "scale": True}
    np.testing.assert_allclose(
        np.concatenate(features(larger, **options)), np.concatenate(features(some, **options))
    )
    model = quantizer(**options).fit(some)
    assert_same(model.transform(larger), model.transform(some))


def test_shapes_keep_their_proportions():
    wide = np.array([[0.0, 0.0], [4.0, 1.0], [8.0, 0.0]])
    found = features([wide], center=True, scale=True)[0]
    np.testing.assert_allclose(np.ptp(found, axis=0)[0] / np.ptp(found, axis=0)[1], 8)


def test_standardize_forgets_units_of_features():
    other = [x * [1e6, 1e-3] + [5.0, -7.0] for x in X]
    assert_same(quantizer().fit_transform(other), quantizer().fit_transform(X))
    plain = quantizer(standardize=False)
    large = np.concatenate([1e6 * x[:, 0] for x in X])
    symbols = np.concatenate(plain.fit_transform(other))
    # The large feature alone decides: symbols are its intervals.
    assert (np.diff(symbols[np.argsort(large)]) >= 0).all()
    assert plain.deviations_[0] == plain.deviations_[1]
    # The unit of all features together does not matter even so.
    assert_same(plain.fit_transform([1e-9 * x for x in X]), plain.fit_transform(X))


# The codebook.


def test_symbols_are_the_nearest_entries():
    for standardize in (True, False):
        model = quantizer(9, use="both", scale=True, standardize=standardize).fit(X)
        entries = model.codebook_ * model.deviations_ + model.means_
        described = np.concatenate(features(X, use="both", scale=True))
        gaps = (described[:, None] - entries) / model.deviations_
        nearest = np.square(gaps).sum(axis=2).argmin(axis=1)
        np.testing.assert_array_equal(np.concatenate(model.transform(X)), nearest)
        # Each entry is the mean of its steps.
        means = [described[nearest == k].mean(axis=0) for k in range(9)]
        np.testing.assert_allclose(entries, means, atol=1e-9)


def test_repeated_steps_count_as_often_as_they_occur():
    model = quantizer(2).fit([np.repeat([0.0, 1.0, 10.0], [9, 1, 1])])
    entries = model.codebook_ * model.deviations_ + model.means_
    np.testing.assert_allclose(entries[:, 0], [0.1, 10])


def test_finds_clusters_in_their_order():
    centers = np.array([-20.0, 0.0, 5.0, 50.0])
    truth = [RNG.integers(4, size=40) for _ in range(3)]
    noisy = [centers[k] + 0.1 * RNG.standard_normal(40) for k in truth]
    assert_same(quantizer(4).fit_transform(noisy), truth)


def test_deterministic():
    one = quantizer(use="both").fit(X)
    two = quantizer(use="both").fit(X)
    np.testing.assert_array_equal(one.codebook_, two.codebook_)
    backwards = quantizer(use="both").fit(X[::-1])  # not even the order of sequences matters
    np.testing.assert_allclose(backwards.codebook_, one.codebook_, atol=1e-12)


@pytest.mark.parametrize("use", USES)
def test_few_distinct_steps(use):
    some = [np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quantizer(20, use=use).fit(some)
    described = features(some, use=use)
    expected = np.unique(np.concatenate(described), axis=0)
    assert model.n_symbols_ == len(expected)
    entries = model.codebook_ * model.deviations_ + model.means_
    np.testing.assert_allclose(entries, expected, atol=1e-10)
    for x, symbols in zip(described, model.transform(some)):
        np.testing.assert_allclose(expected[symbols], x)


def test_rounding_makes_no_symbols():
    ramps = [0.1 * np.arange(50), 7 - 0.3 * np.arange(20)]
    assert len({*np.diff(ramps[0])}) > 1
    model = quantizer(use="velocities").fit(ramps)
    assert model.n_symbols_ == 2
    assert_same(model.transform(ramps), [np.ones(50), np.zeros(20)])
    assert quantizer().fit([np.full(9, 0.1)]).n_symbols_ == 1


def test_rare_steps_of_very_many_are_not_left_out():
    x = np.zeros(50_000)
    x[[7, 30_000]] = 3.0, -2.0
    model = quantizer(3).fit([x])
    assert model.n_symbols_ == 3
    assert model.transform([x[[7, 8, 30_000]]])[0].tolist() == [2, 1, 0]


def test_very_many_steps():
    x = RNG.integers(4, size=60_000) * 10 + RNG.standard_normal(60_000)
    model = quantizer(4).fit([x])
    np.testing.assert_allclose(
        (model.codebook_ * model.deviations_ + model.means_)[:, 0], [0, 10, 20, 30], atol=0.1
    )
    assert_same(model.transform([x]), quantizer(4).fit_transform([x]))


# What is missing.


def test_unobserved_steps_become_none():
    gaps = [x.copy() for x in X]
    gaps[0][3] = NAN
    gaps[2][5, 1] = NAN  # one feature is enough
    gaps[1][:] = NAN
    model = quantizer().fit(gaps)
    symbols = model.transform(gaps)
    assert [s.dtype == object for s in symbols] == [True, True, True, False]
    for x, s in zip(gaps, symbols):
        np.testing.assert_array_equal(np.equal(s, None), np.isnan(x).any(axis=1))
    assert {type(s) for s in symbols[0]} == {int, type(None)}
    stacked = model.transform(np.concatenate(gaps), lengths=LENGTHS)
    np.testing.assert_array_equal(stacked, np.concatenate(symbols))
    # They count in no mean, and the others keep their symbols.
    dropped = [np.delete(gaps[0], 3, axis=0), np.delete(gaps[2], 5, axis=0), gaps[3]]
    np.testing.assert_array_equal(quantizer().fit(dropped).codebook_, model.codebook_)
    np.testing.assert_array_equal(model.transform(dropped)[0], np.delete(symbols[0], 3))


@pytest.mark.parametrize("use", USES)
def test_symbols_feed_models_of_symbols(use):
    gaps = [x.copy() for x in X]
    gaps[0][[3, 5]] = NAN
    symbols = quantizer(use=use).fit_transform(gaps)
    batch = check_sequences(BaseEstimator(), symbols, values="categorical")
    assert batch.categories.tolist() == [0, 1, 2, 3, 4]
    assert batch.categories.dtype.kind == "i"
    described = np.concatenate(features(gaps, use=use))
    np.testing.assert_array_equal(batch.values < 0, np.isnan(described[:, 0]))
    stack = np.concatenate(symbols)
    again = check_sequences(BaseEstimator(), stack, LENGTHS, values="categorical")
    np.testing.assert_array_equal(again.values, batch.values)


def test_no_velocity_at_all():
    gaps = [np.array([1.0, NAN, 2.0]), np.array([NAN, 3.0])]
    assert quantizer().fit(gaps).n_symbols_ == 3
    for use in ("velocities", "both", "shapes"):
        with pytest.raises(ValueError, match=r"no two in a row(.|\n)*positions"):
            quantizer(use=use).fit(gaps)


# In company.


class Histogram(TransformerMixin, BaseEstimator):
    """How often each symbol occurs, a row for each sequence."""

    def fit(self, X, y=None):
        self.batch_ = check_sequences(self, X, values="categorical")
        return self

    def transform(self, X):
        known = self.batch_.categories
        batch = check_sequences(self, X, values="categorical", reset=False, categories=known)
        parts = np.split(batch.values, batch.starts[1:-1])
        return np.array([np.bincount(p[p >= 0], minlength=len(known)) / len(p) for p in parts])


def test_pipeline_and_grid_search():
    rng = np.random.default_rng(1)
    # Saw teeth and waves; size and level say nothing.
    time = [np.arange(n) + rng.uniform(0, 9) for n in rng.integers(30, 60, size=24)]
    shapes = [t % 9 if i % 2 else np.sin(t / 2) for i, t in enumerate(time)]
    walks = [10 ** rng.uniform(-3, 3) * (x + rng.uniform(0, 9)) for x in shapes]
    y = np.arange(24) % 2
    walks[0][4] = NAN
    steps = quantizer(use="both", center=True, scale=True)
    pipeline = make_pipeline(steps, Histogram(), LinearSVC())
    grid = {"sequencequantizer__n_symbols": [2, 8]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(walks[:18], y[:18])
    assert search.score(walks[18:], y[18:]) == 1
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(walks), search.predict(walks))
    copied = clone(search.best_estimator_).fit(walks[:18], y[:18])
    np.testing.assert_array_equal(copied.predict(walks), search.predict(walks))


@pytest.mark.parametrize("use", USES)
def test_memory_and_number_types(use):
    eighths = [np.round(8 * x) / 8 for x in X]  # which any float holds
    expected = quantizer(use=use).fit_transform(eighths)
    for x in eighths:
        x.flags.writeable = False
    assert_same(quantizer(use=use).fit_transform(eighths), expected)
    found = quantizer(use=use).fit([x.astype(np.float32) for x in eighths])
    assert_same(found.transform([x.astype(np.float32) for x in eighths]), expected)
    assert found.codebook_.dtype == np.float64


def test_descriptions_are_memory_of_their_own():
    given = X[0].copy()
    found = features(given)
    found[:] = 0
    np.testing.assert_array_equal(given, X[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"use": "speed"}, "'use' parameter"),
        ({"center": "yes"}, "'center' parameter"),
        ({"scale": 2.5}, "'scale' parameter"),
        ({"standardize": None}, "'standardize' parameter"),
        ({"n_symbols": 0}, "'n_symbols' parameter"),
        ({"n_symbols": 2.5}, "'n_symbols' parameter"),
        ({"random_state": "seed"}, "'random_state' parameter"),
    ],
)
def test_wrong_parameters_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        SequenceQuantizer(**options).fit(X)
