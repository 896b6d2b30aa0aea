"""LM-HMM: its objective against sums over paths, its gradient against differences, its manners."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils import get_tags

from regbayes.hmm import CategoricalHMM, GaussianHMM, LargeMarginHMM, large_margin
from regbayes.testing import sequence_checks
from tests.enumeration.test_chain_statistics import (
    KINDS,
    TOPOLOGIES,
    enumerate_paths,
    random_case,
)

LENGTHS = (3, 1, 5, 2, 4)
CODES = np.array([0, 2, 1, 2, 0])


def make_model(kind="symbols", topology="dense", n_classes=3, C=3.0, margin=0.7, gaps=True):
    """Classes with laws of their own, all for the sequences of the first; and log p(x_t | k)."""
    cases = [random_case(seed, kind, 2, topology, LENGTHS, gaps) for seed in range(n_classes)]
    laws = [case[0] for case in cases]
    sequences = cases[0][1]
    codes = np.minimum(CODES, n_classes - 1)
    return large_margin.Model(laws, sequences, codes, C, margin)


def random_tilts(model, seed=0, scale=0.3):
    rng = np.random.default_rng(seed)
    return scale * rng.standard_normal((len(model.laws), len(model.laws[0].names)))


def few_against_loud(n, seed):
    """Few a's and b's tell the class; c's and d's are many, and vary from sequence to sequence."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(n) % 2
    for code in y:
        quiet = np.array([0.12, 0.04]) if code else np.array([0.04, 0.12])
        loud = rng.beta(0.5, 0.5)
        rest = (1 - quiet.sum()) * np.array([loud, 1 - loud])
        X.append(rng.choice(list("abcd"), size=60, p=[*quiet, *rest]))
    return X, y


# ----------------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topology", ["dense", "left to right"])
def test_objective_is_that_of_all_paths(kind, topology):
    model = make_model(kind, topology)
    tilts = random_tilts(model)
    values, starts = model.sequences.values, model.sequences.starts
    F = np.zeros((len(LENGTHS), 3))
    for c, (law, tilt) in enumerate(zip(model.laws, tilts)):
        evidence = law.emission.log_likelihoods(values, law.parameters)
        for s, (low, high) in enumerate(pairwise(starts)):
            found = enumerate_paths(
                kind, law, values[low:high], evidence[low:high], tilt[None, :], 1
            )
            F[s, c] = found[1]
    expected = 0.5 * np.sum(tilts**2)
    for f, code, length in zip(F, CODES, LENGTHS):
        rivals = np.log(sum(np.exp(f[c]) for c in range(3) if c != code))
        u = 0.7 - (f[code] - rivals) / length
        expected += 3.0 * (0.0 if u < 0 else u**2 / 0.14 if u < 0.07 else u - 0.035)
    found, _ = large_margin.objective(model, tilts)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    per_step = large_margin.scores(model.laws, tilts, model.sequences)
    np.testing.assert_allclose(per_step, F / np.array(LENGTHS)[:, None], rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient_is_that_of_differences(kind, topology, n_classes):
    model = make_model(kind, topology, n_classes, gaps=False)
    tilts = random_tilts(model)
    _, gradient = large_margin.objective(model, tilts)
    step = 1e-5
    for at in np.ndindex(tilts.shape):
        ahead, behind = tilts.copy(), tilts.copy()
        ahead[at] += step
        behind[at] -= step
        difference = large_margin.objective(model, ahead)[0]
        difference -= large_margin.objective(model, behind)[0]
        np.testing.assert_allclose(
            gradient[at], difference / (2 * step), rtol=1e-6, atol=1e-6, err_msg=str(at)
        )


def test_without_tilts_scores_are_log_likelihoods_per_step():
    X, y = few_against_loud(20, 0)
    model = LargeMarginHMM(CategoricalHMM(2, random_state=0), C=1e-12).fit(X, y)
    batch = model.model_.read(X)
    by_law = [law.expect(batch).log_likelihoods / 60 for law in model.laws_]
    np.testing.assert_allclose(model.decision_function(X), by_law[1] - by_law[0], atol=1e-9)


def test_rivals():
    scores = np.array([[1.0, 3.0], [-np.inf, 2.0]])
    gaps, slopes = large_margin.gaps_to_rivals(scores, np.array([0, 1]))
    assert gaps[0] == -2.0
    assert gaps[1] > 1e299  # no rival at all
    np.testing.assert_array_equal(slopes, [[1, -1], [0, 1]])
    many = np.log([[1.0, 2.0, 3.0, 4.0]])
    gaps, slopes = large_margin.gaps_to_rivals(many, np.array([2]))
    np.testing.assert_allclose(gaps, np.log(3 / 7))
    np.testing.assert_allclose(slopes, [[-1 / 7, -2 / 7, 1, -4 / 7]])


def test_hinge_is_smooth_and_a_hinge():
    u = np.linspace(-1, 2, 3001)
    losses, slopes = large_margin.hinge(u, 0.1)
    np.testing.assert_array_equal(losses[u <= 0], 0.0)
    np.testing.assert_allclose(losses[u >= 0.1], u[u >= 0.1] - 0.05)
    np.testing.assert_allclose(np.diff(losses) / 1e-3, (slopes[1:] + slopes[:-1]) / 2, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_solution_is_stationary(kind):
    model = make_model(kind, C=2.0)
    found = large_margin.solve(model, 500, 1e-13)
    assert found.converged
    assert (np.diff(found.objective) <= 0).all()
    value, gradient = large_margin.objective(model, found.tilts)
    assert value == pytest.approx(found.objective[-1])
    most = np.array([large_margin.ceilings(law) for law in model.laws])
    assert (found.tilts <= most).all()
    free = found.tilts < most - 1e-12
    assert np.abs(gradient[free]).max() < 1e-3 * model.C
    assert (gradient[~free] <= 1e-6).all()  # those at the ceiling would go higher


def test_squares_count_against_a_class():
    model = make_model("diagonal", C=1e4)
    found = large_margin.solve(model, 300, 1e-9)
    for law, tilt in zip(model.laws, found.tilts):
        squares = (law.natural() + tilt)[law.n_hidden :].reshape(2, -1)[:, 3:]
        assert squares.max() <= 0
    assert np.isinf(large_margin.ceilings(make_model("symbols").laws[0])).all()
    assert np.isinf(large_margin.ceilings(make_model("full").laws[0])).all()


def test_nothing_moves_where_margins_are_met():
    X = [list("ababab"), list("baba"), list("cdcd"), list("dcdcdc")]
    hmm = CategoricalHMM(2, random_state=0)
    model = LargeMarginHMM(hmm, C=100.0, margin=0.01).fit(X, [0, 0, 1, 1])
    assert model.n_iter_ == 0
    assert model.converged_
    np.testing.assert_array_equal(model.tilts_, 0.0)


def test_class_names_and_numbers_of_sequences_do_not_matter():
    """Twice the sequences with half the C is the same problem; classes may change places."""
    model = make_model("symbols")
    tilts = random_tilts(model)
    expected = large_margin.objective(model, tilts)
    twice = large_margin.Model(
        model.laws,
        model.sequences.take(np.tile(np.arange(5), 2)),
        np.tile(CODES, 2),
        model.C / 2,
        model.margin,
    )
    order = [2, 0, 1]
    moved = large_margin.Model(
        [model.laws[c] for c in order],
        model.sequences,
        np.argsort(order)[CODES],
        model.C,
        model.margin,
    )
    np.testing.assert_allclose(large_margin.objective(twice, tilts)[0], expected[0])
    np.testing.assert_allclose(large_margin.objective(twice, tilts)[1], expected[1])
    value, gradient = large_margin.objective(moved, tilts[order])
    np.testing.assert_allclose(value, expected[0])
    np.testing.assert_allclose(gradient, expected[1][order])


# ------------------------------------------------------------------------------------- estimator


def test_margin_mends_what_maximum_likelihood_gets_wrong():
    X, y = few_against_loud(60, 0)
    new_X, new_y = few_against_loud(200, 1)
    model = LargeMarginHMM(CategoricalHMM(1, random_state=0)).fit(X, y)
    plain = LargeMarginHMM(CategoricalHMM(1, random_state=0), C=1e-9).fit(X, y)
    assert plain.score(new_X, new_y) < 0.8
    assert model.score(new_X, new_y) > 0.88
    assert model.objective_[-1] < 0.7 * model.objective_[0]
    assert (np.diff(model.objective_) <= 0).all()
    assert len(model.objective_) == model.n_iter_ + 1


def test_real_values_of_three_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["low", "mid", "top"], 8)
    centers = {"low": -1.0, "mid": 0.0, "top": 1.0}
    X = [rng.normal([centers[label], 0], [0.5, 5.0], (rng.integers(1, 20), 2)) for label in y]
    model = LargeMarginHMM(GaussianHMM(2, random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (24, 3)
    best = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])
    assert model.tilts_.shape == (3, len(model.laws_[0].names))


def test_two_classes_have_one_column():
    X, y = few_against_loud(10, 0)
    model = LargeMarginHMM(CategoricalHMM(1, random_state=0)).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


def test_a_class_may_have_one_sequence_of_one_step():
    X = [list("abab"), list("ba"), ["c"], ["a", None, "b"]]
    model = LargeMarginHMM(CategoricalHMM(2, random_state=0)).fit(X, [0, 0, 1, 0])
    assert model.predict([["c"], ["a"], [None]])[:2].tolist() == [1, 0]
    assert np.isfinite(model.decision_function([["c"], ["a"], [None], ["c", "a"]])).all()


def test_new_symbols_are_the_model_s_business():
    X, y = [list("abab"), list("cdcd")], [0, 1]
    strict = LargeMarginHMM(CategoricalHMM(2, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="symbol 'z' at sequence 0, step 1"):
        strict.predict([["a", "z"]])
    tolerant = LargeMarginHMM(CategoricalHMM(2, random_state=0, unknown="missing")).fit(X, y)
    assert tolerant.predict([["a", "z"], ["z", "d"]]).tolist() == [0, 1]


def test_impossible_sequences_have_scores():
    """Without pseudocounts, a symbol of one class is impossible in another."""
    hmm = CategoricalHMM(2, random_state=0, symbol_concentration=0.0, pseudocount=0.0)
    model = LargeMarginHMM(hmm).fit([list("abab"), list("aab"), list("acac")], [0, 0, 1])
    scores = model.decision_function([list("ab"), list("ac"), list("bc")])
    assert np.isfinite(scores).all()
    assert scores[0] < 0 < scores[1]


def test_labels_of_a_frame_are_aligned_by_id():
    """A Series by `sequence_id` is sorted by groupby, while sequences are in order of rows."""
    frame = pd.DataFrame(
        {"sequence_id": ["q"] * 4 + ["b"] * 3 + ["a"] * 4, "x": list("abab" + "cdc" + "abba")}
    )
    labels = pd.Series({"a": "one", "b": "two", "q": "one"}).rename_axis("sequence_id")
    model = LargeMarginHMM(CategoricalHMM(2, random_state=0)).fit(frame, labels)
    assert model.predict(frame).tolist() == ["one", "two", "one"]
    assert model.score(frame, labels) == 1.0
    only = frame[frame["sequence_id"] == "b"]
    assert model.score(only, ["two"]) == 1.0
    assert model.score(only, ["one"]) == 0.0
    with pytest.raises(ValueError, match="2 labels, but X has 1 sequences"):
        model.score(only, ["two", "two"])


def test_threads_change_nothing():
    X, y = few_against_loud(30, 0)
    models = [
        LargeMarginHMM(CategoricalHMM(3, random_state=0), n_jobs=n).fit(X, y) for n in (1, 2, 3)
    ]
    for other in models[1:]:
        np.testing.assert_array_equal(other.tilts_, models[0].tilts_)
        np.testing.assert_array_equal(other.decision_function(X), models[0].decision_function(X))


def test_it_is_a_classifier():
    model = LargeMarginHMM(CategoricalHMM(1, random_state=0))
    assert get_tags(model).estimator_type == "classifier"
    assert not hasattr(model, "predict_proba")
    X, y = few_against_loud(40, 0)
    by_number, by_class = (cross_val_score(model, X, y, cv=cv) for cv in (2, StratifiedKFold(2)))
    np.testing.assert_array_equal(by_number, by_class)


def test_too_few_rounds_are_told():
    X, y = few_against_loud(20, 0)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 rounds; raise max_iter"):
        model = LargeMarginHMM(CategoricalHMM(2, random_state=0), max_iter=2).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": object()}, "'model' parameter"),
        ({"C": 0}, "'C' parameter"),
        ({"margin": -1.0}, "'margin' parameter"),
    ],
)
def test_errors_name_the_culprit(options, message):
    X, y = few_against_loud(4, 0)
    with pytest.raises(ValueError, match=message):
        LargeMarginHMM(**{"model": CategoricalHMM(1), **options}).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{type(hmm).__name__}-{name}")
        for hmm in (
            CategoricalHMM(2, n_iter=5, random_state=0),
            GaussianHMM(2, n_iter=5, random_state=0),
        )
        for name, check in sequence_checks(LargeMarginHMM(hmm, max_iter=5))
    ],
)
def test_manners(check):
    check()
