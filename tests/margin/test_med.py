"""Maximum entropy discrimination: primal against dual, differences, a general solver, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize
from sklearn.exceptions import ConvergenceWarning

from regbayes.margin import med

TIGHT = {"tol": -1.0}  # never reached: it goes on as far as rounding lets it


def blobs(n, m, n_classes, seed=0, apart=1.0):
    """Some samples of every class, which overlap unless far apart; the last feature is constant."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    centres = apart * rng.standard_normal((n_classes, m - 1))
    return np.column_stack([centres[codes] + rng.standard_normal((n, m - 1)), np.ones(n)]), codes


def penalty(v):
    """r, written out."""
    return v - 1 - np.log(v) if v > 1 else 0.0


def primal(weights, features, codes, C, margin):
    """The objective from its definition."""
    total = 0.5 * np.sum(weights**2)
    for x, code in zip(features, codes):
        for k in range(len(weights)):
            if k != code:
                total += penalty(C * (margin - (weights[code] - weights[k]) @ x))
    return total


def binary_dual(features, signs, C, margin):
    """max sum a lam + log(1 - lam / c) - |sum lam y phi|^2 / 2 by a general solver."""
    signed = signs[:, None] * features

    def minus(lam):
        w = lam @ signed
        value = margin * lam.sum() + np.log1p(-lam / C).sum() - 0.5 * w @ w
        return -value, -(margin - 1 / (C - lam) - signed @ w)

    found = minimize(
        minus,
        np.full(len(signs), 0.5 * C),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, C * (1 - 1e-9))] * len(signs),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000},
    )
    return found.x, -found.fun


# ---------------------------------------------------------------------------------------- terms


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 4),
    C=st.floats(0.1, 100),
    margin=st.floats(0.1, 10),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_terms_are_those_of_the_definition(seed, n_classes, C, margin):
    rng = np.random.default_rng(seed)
    scores, codes = margin * rng.standard_normal((6, n_classes)), rng.integers(n_classes, size=6)
    losses, multipliers = med.margin_terms(scores, codes, C, margin)
    for s, code in enumerate(codes):
        for k in range(n_classes):
            u = margin - scores[s, code] + scores[s, k]
            lam = max(0.0, C - 1 / u) if k != code and u > 0 else 0.0
            np.testing.assert_allclose(multipliers[s, k], lam, rtol=1e-9, atol=1e-9 * C)
            expected = penalty(C * u) if k != code else 0.0
            np.testing.assert_allclose(losses[s, k], expected, rtol=1e-9, atol=1e-9)
    assert (multipliers >= 0).all()
    assert (multipliers < C).all()  # a multiplier of C would ask for a margin of minus infinity


@pytest.mark.parametrize("n_classes", [2, 4])
def test_pull_is_minus_the_slope_of_the_loss(n_classes):
    rng = np.random.default_rng(0)
    scores, codes = rng.standard_normal((7, n_classes)), rng.integers(n_classes, size=7)

    def loss(flat):
        return med.margin_terms(flat.reshape(scores.shape), codes, 5.0, 1.3)[0].sum()

    def slope(flat):
        multipliers = med.margin_terms(flat.reshape(scores.shape), codes, 5.0, 1.3)[1]
        return -med.pull(multipliers, codes).ravel()

    assert check_grad(loss, slope, scores.ravel()) < 1e-5
    pull = med.pull(med.margin_terms(scores, codes, 5.0, 1.3)[1], codes)
    np.testing.assert_allclose(pull.sum(axis=1), 0.0, atol=1e-12)
    assert (np.take_along_axis(pull, codes[:, None], axis=1) >= 0).all()


# -------------------------------------------------------------------------------------- optimum


CASES = [(12, 3, 2, 5.0, 1.0), (15, 4, 3, 2.0, 0.7), (10, 25, 3, 20.0, 1.0), (8, 8, 4, 1.5, 2.0)]


@pytest.mark.parametrize(("n", "m", "n_classes", "C", "margin"), CASES)
def test_optimum_is_that_of_the_definition(n, m, n_classes, C, margin):
    features, codes = blobs(n, m, n_classes)
    found = med.solve(features, codes, n_classes, C, margin, **TIGHT)
    loss = primal(found.weights, features, codes, C, margin)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-10)

    def objective(flat):
        return primal(flat.reshape(n_classes, m), features, codes, C, margin)

    # Convex: if no difference leads down, nothing does.
    gradient = [
        (objective(found.weights.ravel() + step) - objective(found.weights.ravel() - step)) / 2e-8
        for step in 1e-8 * np.eye(n_classes * m)
    ]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5 * C)
    rng = np.random.default_rng(1)
    for size in (1e-2, 0.1, 1.0):
        assert objective(found.weights.ravel() + size * rng.standard_normal(n_classes * m)) > loss


@pytest.mark.parametrize(("n", "m", "n_classes", "C", "margin"), CASES)
def test_multipliers_certify_the_optimum(n, m, n_classes, C, margin):
    """KKT: weights are sums of samples, multipliers those of their margins; no duality gap."""
    features, codes = blobs(n, m, n_classes)
    found = med.solve(features, codes, n_classes, C, margin, **TIGHT)
    lam = found.multipliers
    pull = med.pull(lam, codes)
    np.testing.assert_allclose(found.weights, pull.T @ features, atol=1e-5 * C)
    scores = features @ found.weights.T
    u = margin - np.take_along_axis(scores, codes[:, None], axis=1) + scores
    others = np.arange(n_classes) != codes[:, None]
    active = others & (lam > 0)
    np.testing.assert_allclose(u[active], 1 / (C - lam[active]), rtol=1e-9)  # E[g] = a - 1/(c-lam)
    assert (u[others & (lam == 0)] <= 1 / C + 1e-12).all()
    assert (lam[~others] == 0).all()
    assert active.any()
    dual = np.sum(margin * lam + np.log1p(-lam / C)) - 0.5 * np.sum((pull.T @ features) ** 2)
    assert found.loss - dual < 1e-6 * max(1.0, found.loss)
    assert found.loss - dual > -1e-9 * max(1.0, found.loss)


@pytest.mark.parametrize("C", [0.5, 2.0, 30.0])
@pytest.mark.parametrize("margin", [0.5, 2.0])
def test_two_classes_are_the_binary_problem(C, margin):
    """With w_1 = -w_0 = v, |w_0|^2 + |w_1|^2 = |w|^2 for w = sqrt(2) v, whose margins have the
    features sqrt(2) phi: the paper's dual in these has the same multipliers and optimum."""
    features, codes = blobs(14, 3, 2)
    signs = np.where(codes == 1, 1.0, -1.0)
    found = med.solve(features, codes, 2, C, margin, **TIGHT)
    lam = found.multipliers[np.arange(14), 1 - codes]
    best, value = binary_dual(np.sqrt(2) * features, signs, C, margin)
    assert abs(found.loss - value) < 1e-6
    np.testing.assert_allclose(lam, best, atol=1e-4 * C)
    np.testing.assert_allclose(found.weights[0], -found.weights[1], atol=1e-6)
    np.testing.assert_allclose(found.weights[1], (lam * signs) @ features, atol=1e-5)  # Eq. 22
    u = margin - 2 * signs * (features @ found.weights[1])
    np.testing.assert_allclose(lam, np.maximum(0, C - 1 / np.maximum(u, 1e-300)), atol=1e-5 * C)


def test_the_printed_dual_has_no_bound():
    """Without the barrier (001, Eq. 19 as printed) a sample on the wrong side has no multiplier."""
    features, codes = np.array([[1.0], [0.9], [-1.0]]), np.array([1, 0, 0])
    signed = np.where(codes == 1, 1.0, -1.0)[:, None] * features

    def printed(lam):
        return lam.sum() - 0.5 * np.sum((lam @ signed) ** 2)

    wrong_side = np.array([0.9, 1.0, 0.0])  # their features cancel
    assert printed(1e6 * wrong_side) > 1e6
    found = med.solve(features, codes, 2, C=7.0)
    assert 5 < found.multipliers.max() < 7


@pytest.mark.parametrize(
    ("n", "m", "n_classes", "C"), [(40, 6, 2, 5), (40, 6, 3, 5), (10, 25, 3, 20), (20, 3, 2, 100)]
)
def test_default_tolerance_is_enough(n, m, n_classes, C):
    """Also where all samples have their margin, and the way down ends at a wall of slope C."""
    features, codes = blobs(n, m, n_classes)
    loose = med.solve(features, codes, n_classes, C)
    tight = med.solve(features, codes, n_classes, C, **TIGHT)
    assert 0 <= loose.loss - tight.loss + 1e-12 < 1e-6 * tight.loss
    np.testing.assert_allclose(loose.weights, tight.weights, atol=1e-3)


# ------------------------------------------------------------------------------- roads to there


def test_many_features_are_turned_into_few():
    """The span of the samples holds the weights: the same as with columns of zeros, turned."""
    features, codes = blobs(12, 30, 3)
    found = med.solve(features, codes, 3, 10.0, **TIGHT)
    rows = np.vstack([features, np.zeros((20, 30))])  # samples without features weigh nothing,
    flat = med.solve(rows, np.append(codes, np.zeros(20, int)), 3, 10.0, **TIGHT)  # but cost
    constant = 20 * 2 * penalty(10.0)
    np.testing.assert_allclose(found.loss, flat.loss - constant, rtol=1e-8)
    np.testing.assert_allclose(found.weights, flat.weights, atol=1e-5)
    np.testing.assert_allclose(found.multipliers, flat.multipliers[:12], atol=1e-4)


def test_products_may_be_shared():
    features, codes = blobs(30, 50, 3)
    some = np.arange(0, 30, 2)
    gram = med.products(features)[np.ix_(some, some)]
    alone = med.solve(features[some], codes[some], 3, 5.0, **TIGHT)
    shared = med.solve(features[some], codes[some], 3, 5.0, gram=gram, **TIGHT)
    np.testing.assert_allclose(shared.weights, alone.weights, atol=1e-9)
    assert med.products(features[:, :20]).size == 0


@pytest.mark.parametrize("n_features", [50, 4])
@pytest.mark.parametrize("C", [5.0, 1000.0])  # with the last one the interior point method helps
def test_a_problem_may_be_about_some_of_the_samples(n_features, C):
    features, codes = blobs(30, n_features, 3)
    some = np.random.default_rng(0).permutation(30)[:18]
    given = some.copy()
    alone = med.solve(features[some], codes[some], 3, C, **TIGHT)
    among = med.solve(features, codes, 3, C, samples=some, **TIGHT)
    np.testing.assert_allclose(among.loss, alone.loss, rtol=1e-8)
    np.testing.assert_allclose(among.weights, alone.weights, atol=1e-4 * abs(alone.weights).max())
    assert not np.delete(among.multipliers, some, axis=0).any()
    np.testing.assert_array_equal(some, given)
    again = med.solve(features, codes, 3, C, start=among.multipliers, samples=some, **TIGHT)
    np.testing.assert_allclose(again.loss, alone.loss, rtol=1e-8)


def test_samples_may_repeat_themselves():
    """Then the span has fewer dimensions than there are samples."""
    features, codes = blobs(4, 12, 2)
    twice = med.solve(np.repeat(features, 2, axis=0), np.repeat(codes, 2), 2, 5.0, **TIGHT)
    assert np.isfinite(twice.weights).all()
    np.testing.assert_allclose(twice.multipliers[::2], twice.multipliers[1::2], atol=1e-6)
    pull = med.pull(twice.multipliers, np.repeat(codes, 2))
    expected = pull.T @ np.repeat(features, 2, axis=0)
    np.testing.assert_allclose(twice.weights, expected, atol=1e-5)


@pytest.mark.parametrize("m", [4, 40])
def test_where_it_starts_does_not_matter(m):
    features, codes = blobs(20, m, 3)
    cold = med.solve(features, codes, 3, 5.0, **TIGHT)
    rng = np.random.default_rng(0)
    others = np.arange(3) != codes[:, None]
    for start in (cold.multipliers, others * rng.uniform(0, 9, (20, 3))):  # some are above C
        warm = med.solve(features, codes, 3, 5.0, start=start, **TIGHT)
        np.testing.assert_allclose(warm.loss, cold.loss, rtol=1e-9)
        np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-5)
    again = med.solve(features, codes, 3, 5.0, start=cold.multipliers, max_iter=1)
    np.testing.assert_allclose(again.weights, cold.weights, atol=1e-5)  # there is nothing to do


# --------------------------------------------------------------------------------------- limits


def test_large_weights_are_the_hard_margin():
    features, codes = blobs(20, 3, 2, seed=2, apart=6.0)
    signs = np.where(codes == 1, 1.0, -1.0)
    signed = signs[:, None] * features
    svm = minimize(
        lambda w: 0.5 * w @ w,
        np.zeros(3),
        jac=lambda w: w,
        constraints={"type": "ineq", "fun": lambda w: signed @ w - 1, "jac": lambda w: signed},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert svm.success
    off = []
    for C in (1e1, 1e2, 1e4):
        weights = med.solve(features, codes, 2, C, **TIGHT).weights
        w = weights[1] - weights[0]
        off.append(1 - w @ svm.x / np.linalg.norm(w) / np.linalg.norm(svm.x))
    assert off[0] > 10 * off[2]
    assert off[2] < 1e-6
    np.testing.assert_allclose(w, svm.x, rtol=0.02)
    assert (signed @ w > 0.99).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_weights_ask_for_nothing(n_classes):
    """With c a <= 1 the expected margin of the prior, a - 1/c, is not above zero."""
    features, codes = blobs(20, 4, n_classes)
    for C, margin in ((1.0, 1.0), (0.2, 5.0), (0.5, 1.0)):
        found = med.solve(features, codes, n_classes, C, margin)
        assert not found.weights.any()
        assert not found.multipliers.any()
        assert found.loss == 0
    assert med.solve(features, codes, n_classes, 1.1).weights.any()


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(5, 2), (6, 3), (4, 9)]),
    n_classes=st.integers(2, 3),
    C=st.sampled_from([0.5, 3.0, 1e3]),
    unit=st.sampled_from([1e-3, 1.0, 1e3]),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_multipliers_stay_below_C(seed, shape, n_classes, C, unit):
    features, codes = blobs(*shape, n_classes, seed)
    found = med.solve(unit * features, codes, n_classes, C)
    assert np.isfinite(found.weights).all()
    assert (found.multipliers >= 0).all()
    assert (found.multipliers < C).all()
    at_zero = len(codes) * (n_classes - 1) * penalty(C)
    assert found.loss <= at_zero * (1 + 1e-12)


def test_an_absent_class_is_kept_away():
    features, codes = blobs(20, 4, 2)
    found = med.solve(features, codes, 3, 5.0)
    scores = features @ found.weights.T
    assert (scores[:, 2] < scores[:, :2].max(axis=1)).all()


# ------------------------------------------------------------------------------ a step of Newton


@pytest.mark.parametrize("n_classes", [2, 4])
def test_steps_are_those_of_the_slope_of_the_gradient(n_classes):
    """Products with the Hessian, and what solves its equations."""
    features, codes = blobs(30, 4, n_classes, seed=3)
    C, at = 5.0, 0.3 * np.random.default_rng(4).standard_normal((n_classes, 4))

    def gradient(flat):
        weights = flat.reshape(at.shape)
        multipliers = med.margin_terms(features @ weights.T, codes, C)[1]
        return (weights - med.pull(multipliers, codes).T @ features).ravel()

    h = 1e-6
    steps = h * np.eye(at.size)
    slopes = [(gradient(at.ravel() + d) - gradient(at.ravel() - d)) / (2 * h) for d in steps]
    multipliers = med.margin_terms(features @ at.T, codes, C)[1]
    curvatures = (C - multipliers) ** 2 * (multipliers > 0)
    factors = med._factors(features, codes, curvatures)
    system = med._System(features, codes, np.empty(0), curvatures, np.empty(0), factors)
    found = [system._hessian(row.reshape(at.shape)).ravel() for row in np.eye(at.size)]
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-4)
    right = at - at.mean(axis=0)
    np.testing.assert_allclose(system._hessian(system.solve(right)), right, atol=1e-6)


@pytest.mark.parametrize("C", [1.1, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", [(200, 6, 3, 0.3), (60, 100, 4, 0.1), (40, 5, 2, 9.0)])
def test_interior_points_end_what_creeps(C, shape):
    """Classes that overlap, few samples of many features, classes far apart."""
    n, m, n_classes, apart = shape
    features, codes = blobs(n, m, n_classes, seed=5, apart=apart)
    multipliers = med._interior(features, codes, n_classes, C, 1.0, 1e-7)
    assert (multipliers >= 0).all()
    assert (multipliers < C).all()
    weights = med.pull(multipliers, codes).T @ features
    loss = primal(weights, features, codes, C, 1.0)
    dual = np.sum(multipliers + np.log1p(-multipliers / C)) - 0.5 * np.sum(weights**2)
    assert loss - dual <= 1.1e-7 * loss


def test_sweeps_and_interior_points_agree(monkeypatch):
    features, codes = blobs(100, 6, 3, seed=6, apart=0.5)
    monkeypatch.setattr(med, "_MOST_CELLS", 0)
    swept = med.solve(features, codes, 3, 5.0, tol=1e-9, max_iter=100_000)
    inside = med._interior(features, codes, 3, 5.0, 1.0, 1e-9)
    np.testing.assert_allclose(med.pull(inside, codes).T @ features, swept.weights, atol=1e-4)


def test_a_problem_that_is_left_unsolved_is_said_to_be(recwarn):
    features, codes = blobs(60, 5, 3)
    med.solve(features, codes, 3, C=10.0)
    assert not [w for w in recwarn if w.category is ConvergenceWarning]
    with pytest.warns(ConvergenceWarning, match="not solved to 1e-06 of its loss after 1 sweeps"):
        med.solve(features, codes, 3, C=10.0, max_iter=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("far", [1e6, 1e12, 1e17])
def test_features_far_from_zero_are_solved_or_said_not_to_be(far, n_classes, recwarn):
    """Their Hessian is not positive to rounding, and a Cholesky factor of it need not exist."""
    features, codes = blobs(24, 4, n_classes)
    features[:, :-1] += far
    found = med.solve(features, codes, n_classes, C=10.0)
    assert np.isfinite(found.weights).all()
    nothing = med.margin_terms(np.zeros((24, n_classes)), codes, 10.0)[0].sum()
    told = any("centre them" in str(w.message) for w in recwarn)
    assert told == (found.loss > (1 + 1e-6) * nothing)
    assert not (told and far == 1e6)
