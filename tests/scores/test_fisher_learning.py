"""FKL: scores, covariances and objective against sums over paths, the gradient, its manners."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from regbayes.hmm import CategoricalHMM, GaussianHMM
from regbayes.scores import fisher_learning
from regbayes.scores import tilts as tilts_of
from regbayes.scores._fisher_learning import FisherKernelLearning
from regbayes.testing import sequence_checks
from tests.enumeration.test_chain_statistics import (
    KINDS,
    enumerate_paths,
    random_case,
    statistics_of_paths,
)

LENGTHS = (3, 1, 5, 2, 4, 4, 3)
CODES = np.array([0, 2, 1, 2, 0, 0, 1])


def make_problem(kind="symbols", topology="dense", scaling="variance", n_laws=1, segments=1, **to):
    """One law, or some, of two states for sequences of three classes."""
    cases = [random_case(seed, kind, 2, topology, LENGTHS, False) for seed in range(n_laws)]
    rng = np.random.default_rng(0)
    model = fisher_learning.make_model(
        [case[0] for case in cases], cases[0][1], CODES, scaling, 3.0, 2.0, 0.0, rng, segments
    )
    return replace(model, **to)


def random_tilts(model, seed=0, scale=0.3):
    rng = np.random.default_rng(seed)
    return scale * rng.standard_normal((len(model.laws), len(model.laws[0].names)))


def paths_of(kind, model, tilts, law, s, segments=1):
    """Mean and covariances of the statistics of a sequence, over all of its paths."""
    values, starts = model.batch.values, model.batch.starts
    here = slice(starts[s], starts[s + 1])
    law, tilt = model.laws[law], np.tile(tilts[law], (segments, 1))
    evidence = law.emission.log_likelihoods(values, law.parameters)[here]
    mean, *_, q = enumerate_paths(kind, law, values[here], evidence, tilt, segments)
    _, T = statistics_of_paths(kind, 2, values[here], segments)
    centred = (T - mean).reshape(len(T), -1)
    return mean, (centred * np.asarray(q, float)[:, None]).T @ centred


def order_or_noise(n, seed):
    """a's and b's in runs or in turns; c's and d's, in long stretches, say nothing."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(n) % 2
    for code in y:
        x, which, loud = [], rng.integers(2), rng.integers(2)
        for _ in range(50):
            if rng.random() < 0.5:
                x.append("ab"[which])
                which ^= rng.random() < (0.8 if code else 0.2)
            else:
                loud ^= rng.random() < 0.05
                x.append("cd"[loud])
        X.append(np.array(x))
    return X, y


# ----------------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segments", [1, 2])
def test_scores_and_covariances_are_those_of_all_paths(kind, segments):
    model = make_problem(kind, segments=segments)
    tilts = random_tilts(model)
    raw = tilts_of.expected_statistics(model.laws, tilts, model.batch, segments)
    directions = np.random.default_rng(1).standard_normal(raw[:, 0].shape)
    directions[2] = 0.0
    found = tilts_of.covariances(model.laws[0], model.batch, tilts[0], directions, raw[:, 0], 1)
    for s in range(len(LENGTHS)):
        mean, covariance = paths_of(kind, model, tilts, 0, s, segments)
        np.testing.assert_allclose(raw[s, 0], mean, atol=1e-10)
        expected = (covariance @ directions[s].ravel()).reshape(segments, -1).sum(axis=0)
        np.testing.assert_allclose(found[s], expected, rtol=1e-6, atol=1e-7)


def test_objective_is_that_of_all_paths():
    model = make_problem(n_laws=2)
    tilts = random_tilts(model)
    raw = [
        np.concatenate([paths_of("symbols", model, tilts, law, s)[0][0] for law in range(2)])
        for s in range(len(LENGTHS))
    ]
    features = model.scaler(np.array(raw), np.array(LENGTHS))
    expected = 0.5 * np.sum(tilts**2)
    for s, (f, code) in enumerate(zip(features, CODES)):
        near = [np.exp(-model.beta * np.sum((f - g) ** 2)) for g in features]
        others = [t for t in range(len(LENGTHS)) if t != s]
        right = sum(near[t] for t in others if CODES[t] == code)
        expected += model.C * (1 - right / sum(near[t] for t in others))
    np.testing.assert_allclose(fisher_learning.objective(model, tilts)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topology", ["dense", "left to right"])
@pytest.mark.parametrize("scaling", ["none", "length", "variance"])
def test_gradient_is_that_of_differences(kind, topology, scaling):
    _assert_gradient(make_problem(kind, topology, scaling))


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_segments_and_many_laws(kind):
    training = np.array([True, True, True, False, True, True, True])
    _assert_gradient(make_problem(kind, n_laws=2, segments=2, training=training))


def _assert_gradient(model):
    tilts = random_tilts(model)
    _, gradient = fisher_learning.objective(model, tilts)

    def difference(at, step):
        one = np.zeros_like(tilts)
        one[at] = step
        ahead, behind = (fisher_learning.objective(model, tilts + s * one)[0] for s in (1, -1))
        return (ahead - behind) / (2 * step)

    for at in np.ndindex(tilts.shape):
        # Without the cubic term, which is large for squares of observations.
        expected = (4 * difference(at, 1e-4) - difference(at, 2e-4)) / 3
        np.testing.assert_allclose(gradient[at], expected, rtol=1e-6, atol=1e-6, err_msg=str(at))


def test_neighbours():
    rng = np.random.default_rng(0)
    features, codes = rng.standard_normal((8, 3)), rng.integers(2, size=8)
    shares = fisher_learning.choices(features, 0.7)
    assert (shares.diagonal() == 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    errors, slopes = fisher_learning.neighbour_errors(features, codes, 0.7)
    np.testing.assert_allclose(errors, [s[codes != c].sum() for s, c in zip(shares, codes)])
    for at in np.ndindex(features.shape):
        sums = []
        for sign in (1, -1):
            moved = features.copy()
            moved[at] += sign * 1e-6
            sums.append(fisher_learning.neighbour_errors(moved, codes, 0.7)[0].sum())
        np.testing.assert_allclose(slopes[at], (sums[0] - sums[1]) / 2e-6, atol=1e-8)


def test_nearest_neighbour_is_the_limit():
    rng = np.random.default_rng(0)
    features, codes = rng.standard_normal((20, 2)), rng.integers(2, size=20)
    errors, _ = fisher_learning.neighbour_errors(features, codes, 1e6)
    _, order = KNeighborsClassifier(2).fit(features, codes).kneighbors(features)
    np.testing.assert_allclose(errors, codes[order[:, 1]] != codes, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_perplexity(unit):
    features = unit * np.random.default_rng(0).standard_normal((50, 4))
    beta = fisher_learning.find_beta(features, 7.0)
    shares = fisher_learning.choices(features, beta)
    entropy = -np.sum(np.where(shares > 0, shares * np.log(np.maximum(shares, 1e-300)), 0)) / 50
    np.testing.assert_allclose(np.exp(entropy), 7.0, rtol=1e-6)


def test_few_or_equal_samples_have_neighbours():
    for features in (np.ones((4, 2)), np.eye(2), np.zeros((3, 0)), np.eye(3)):
        assert np.isfinite(fisher_learning.find_beta(features, 10.0))


def test_a_share_of_each_class_is_left_out():
    codes = np.array([0] * 10 + [1] * 4 + [2])
    out = ~fisher_learning.leave_out(codes, 0.3, np.random.default_rng(0))
    assert np.bincount(codes[out], minlength=3).tolist() == [3, 1, 0]
    most = ~fisher_learning.leave_out(codes, 0.99, np.random.default_rng(0))
    assert np.bincount(codes[most], minlength=3).tolist() == [9, 3, 0]
    assert fisher_learning.leave_out(codes, 0.0, np.random.default_rng(0)).all()


def test_rare_scores_have_a_ridge():
    raw = np.column_stack([np.arange(10.0), 1e-6 * np.arange(10.0), np.ones(10)])
    scaler = fisher_learning.ridged_scaler(raw, np.ones(10), "variance")
    assert scaler.kept.tolist() == [True, True, False]
    assert scaler.unit.max() < 20 * scaler.unit.min()
    deviation = np.arange(10).std()
    np.testing.assert_allclose(scaler.unit, deviation * np.sqrt([1.005, 0.005]))


def test_the_best_round_is_kept():
    training = np.array([True, True, True, True, True, False, False])
    model = make_problem(C=30.0, training=training)
    found = fisher_learning.solve(model, 20, 3)
    assert len(found.validation) == len(found.objective)
    np.testing.assert_allclose(
        fisher_learning.validate(model, found.tilts), found.validation.min(), rtol=1e-12
    )
    assert len(found.validation) - 1 - found.validation.argmin() <= 3
    assert (np.diff(found.objective) <= 0).all()


def test_validation_is_of_neighbours_in_training():
    training = np.array([True, True, True, True, True, False, False])
    model = make_problem(training=training)
    tilts = random_tilts(model)
    raw = tilts_of.expected_statistics(model.laws, tilts, model.batch).reshape(len(LENGTHS), -1)
    features = model.scaler(raw, np.array(LENGTHS))
    wrong = []
    for s in (5, 6):
        near = np.exp(-model.beta * np.sum((features[:5] - features[s]) ** 2, axis=1))
        wrong.append(near[CODES[:5] != CODES[s]].sum() / near.sum())
    np.testing.assert_allclose(fisher_learning.validate(model, tilts), np.mean(wrong))


# ------------------------------------------------------------------------------------- estimator


def test_neighbours_are_better_in_the_space_that_was_learnt():
    X, y = order_or_noise(80, 0)
    new_X, new_y = order_or_noise(100, 100)
    hmm = CategoricalHMM(2, random_state=0)
    shares = []
    for C in (1e-9, 1.0):
        scores = FisherKernelLearning(hmm, C=C, random_state=0)
        model = make_pipeline(scores, KNeighborsClassifier(1)).fit(X, y)
        shares.append(model.score(new_X, new_y))
    assert shares[0] < 0.75
    assert shares[1] > 0.9
    assert scores.objective_[-1] < 0.5 * scores.objective_[0]
    assert scores.validation_.min() < 0.5 * scores.validation_[0]


def test_without_learning_scores_are_expected_statistics():
    X, y = order_or_noise(20, 0)
    hmm = CategoricalHMM(2, random_state=0)
    scores = FisherKernelLearning(hmm, C=1e-12, scaling="none", random_state=0)
    found = scores.fit_transform(X, y)
    law, batch = scores.laws_[0], scores.model_.read(X)
    names = [f"all|d/d({name})" for name in law.names]
    kept = np.isin(names, scores.get_feature_names_out())
    expected = law.expect(batch).statistics[:, 0, kept]
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("segments", [1, 2])
def test_names(per_class, segments):
    X, y = order_or_noise(20, 0)
    hmm = CategoricalHMM(2, random_state=0)
    scores = FisherKernelLearning(hmm, per_class, segments, n_iter=3, random_state=0)
    found = scores.fit_transform(X, y)
    names = scores.get_feature_names_out()
    assert found.shape == (20, len(names)) == (20, len(set(names)))
    assert scores.tilts_.shape == (1 + per_class, len(scores.laws_[0].names))
    place = "[1]" if segments == 2 else ""
    assert f"{'1' if per_class else 'all'}{place}|d/d(0>1)" in names
    np.testing.assert_array_equal(scores.transform(X), found)


def test_without_validation_all_sequences_train():
    X, y = order_or_noise(20, 0)
    hmm = CategoricalHMM(2, random_state=0)
    scores = FisherKernelLearning(hmm, n_iter=4, validation_fraction=0.0).fit(X, y)
    assert len(scores.validation_) == 0
    assert scores.n_iter_ == 4
    assert (np.diff(scores.objective_) <= 0).all()
    assert all(later < earlier for earlier, later in pairwise(scores.objective_))


def test_a_class_may_have_one_sequence():
    X = [list("abab"), list("ba"), ["c"], list("aab"), ["a", None]]
    scores = FisherKernelLearning(CategoricalHMM(2, random_state=0), random_state=0)
    assert np.isfinite(scores.fit_transform(X, [0, 0, 1, 2, 2])).all()
    assert scores.classes_.tolist() == [0, 1, 2]


def test_equal_sequences_have_no_scores():
    scores = FisherKernelLearning(CategoricalHMM(2, random_state=0), random_state=0)
    with pytest.raises(ValueError, match="no score varies"):
        scores.fit([list("ab")] * 6, [0, 1] * 3)


def test_threads_change_nothing():
    X, y = order_or_noise(40, 0)
    hmm = CategoricalHMM(2, random_state=0)
    found = [
        FisherKernelLearning(hmm, n_iter=10, random_state=0, n_jobs=n).fit_transform(X, y)
        for n in (1, 2, 3)
    ]
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_labels_are_needed():
    assert get_tags(FisherKernelLearning(CategoricalHMM())).target_tags.required
    with pytest.raises(ValueError, match="pass a label for each sequence"):
        FisherKernelLearning(CategoricalHMM()).fit([list("ab"), list("ba")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": object()}, "'model' parameter"),
        ({"C": 0}, "'C' parameter"),
        ({"scaling": "sqrt"}, "'scaling' parameter"),
        ({"perplexity": 1.0}, "'perplexity' parameter"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
    ],
)
def test_errors_name_the_culprit(options, message):
    X, y = order_or_noise(4, 0)
    for method in ("fit", "fit_transform"):
        model = FisherKernelLearning(**{"model": CategoricalHMM(1), **options})
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(X, y)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{type(hmm).__name__}-{name}")
        for hmm in (
            CategoricalHMM(2, n_iter=5, random_state=0),
            GaussianHMM(2, n_iter=5, random_state=0),
        )
        for name, check in sequence_checks(FisherKernelLearning(hmm, n_iter=3))
    ],
)
def test_manners(check):
    check()
