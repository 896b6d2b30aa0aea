"""The Crammer-Singer solver against a general QP solver, LIBLINEAR, and its own certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from regbayes.kernels.svm import project_simplex
from regbayes.margin.crammer_singer import crammer_singer


def solve(X, y, n_classes, seed=0, **options):
    return crammer_singer(X, y, n_classes, rng=np.random.default_rng(seed), **options)


def objective(weights, X, y, C=1.0, cost=1.0):
    """The primal, written out from the definition; `C` may be one number for each row."""
    C = np.broadcast_to(C, len(X))
    total = 0.5 * np.sum(weights**2)
    for x, label, c in zip(X, y, C):
        losses = [
            (k != label) * cost + (weights[k] - weights[label]) @ x for k in range(len(weights))
        ]
        total += c * max(losses)
    return total


def epigraph_optimum(X, y, n_classes, C=1.0, cost=1.0):
    """The optimal value by SLSQP on the primal QP in weights and slacks."""
    n, m = X.shape
    size = n_classes * m
    rows, offsets = [], []
    for d in range(n):
        for k in range(n_classes):  # slack_d - (w_k - w_label)·x_d - cost [k != label] >= 0
            row = np.zeros(size + n)
            row[k * m : (k + 1) * m] -= X[d]
            row[y[d] * m : (y[d] + 1) * m] += X[d]
            row[size + d] = 1.0
            rows.append(row)
            offsets.append(-cost * (k != y[d]))
    rows, offsets = np.array(rows), np.array(offsets)
    scale = n * C * cost  # the value at zero weights: SLSQP wants numbers about one
    found = minimize(
        lambda v: (0.5 * v[:size] @ v[:size] + C * v[size:].sum()) / scale,
        np.append(np.zeros(size), np.full(n, cost)),
        jac=lambda v: np.append(v[:size], np.full(n, C)) / scale,
        constraints={"type": "ineq", "fun": lambda v: rows @ v + offsets, "jac": lambda v: rows},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success, found.message
    return found.fun * scale


def blobs(n, m, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    centres = rng.standard_normal((n_classes, m))
    return centres[y] + rng.standard_normal((n, m)), y


def assert_feasible(multipliers, y, C):
    C = np.broadcast_to(C, len(y))
    own = np.arange(len(y)), y
    mass = -multipliers
    mass[own] += C
    assert (mass >= 0).all()
    np.testing.assert_allclose(mass.sum(axis=1), C, rtol=1e-10)  # a thousand classes round


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("cost", [1.0, 7.0])
@pytest.mark.parametrize(("n", "m", "n_classes"), [(6, 2, 3), (5, 9, 2), (6, 3, 4)])
def test_optimum_is_that_of_a_general_solver(n, m, n_classes, C, cost):
    X, y = blobs(n, m, n_classes)
    svm = solve(X, y, n_classes, C=C, cost=cost, tol=1e-10, max_iter=100_000)
    assert svm.converged
    assert svm.objective == pytest.approx(epigraph_optimum(X, y, n_classes, C, cost), rel=1e-6)
    assert svm.objective == pytest.approx(objective(svm.weights, X, y, C, cost), rel=1e-12)


def test_two_points_by_hand():
    """x = 1 and -1: w = (u, -u) minimises u^2 + 2 C max(0, cost - 2 u)."""
    X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    wide, narrow = solve(X, y, 2, C=10.0, cost=3.0), solve(X, y, 2, C=0.1, cost=3.0)
    np.testing.assert_allclose(wide.weights, [[1.5], [-1.5]], rtol=1e-3)
    np.testing.assert_allclose(narrow.weights, [[0.2], [-0.2]], rtol=1e-3)
    np.testing.assert_allclose(narrow.multipliers, [[0.1, -0.1], [-0.1, 0.1]], rtol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("C", [1e-2, 1.0])
def test_agrees_with_liblinear_on_digits(n_classes, C):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    X, y = X[:400] / 16, y[:400]
    svm = solve(X, y, n_classes, C=C)
    peer = LinearSVC(
        multi_class="crammer_singer",
        fit_intercept=False,
        C=C,
        tol=1e-6,
        max_iter=10_000,
        random_state=0,
    ).fit(X, y)
    # For two classes scikit-learn gives w_1 - w_0, and at the optimum w_0 = -w_1.
    theirs = np.vstack([-peer.coef_ / 2, peer.coef_ / 2]) if n_classes == 2 else peer.coef_
    assert svm.objective == pytest.approx(objective(theirs, X, y, C), rel=1e-3)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize(("n", "m"), [(60, 5), (60, 90)])  # without and with the Gram matrix
def test_gap_bounds_the_distance_to_the_optimum(n, m, tol):
    X, y = blobs(n, m, 4)
    best = solve(X, y, 4, tol=1e-11, max_iter=100_000).objective
    svm = solve(X, y, 4, tol=tol, max_iter=100_000)
    assert svm.converged
    assert 0 < svm.dual_gap <= tol * svm.objective
    assert -1e-10 * best <= svm.objective - best <= svm.dual_gap
    # The gap is primal minus dual; the dual is cost * (the labels' multipliers) - |W|^2 / 2.
    dual = svm.multipliers[np.arange(n), y].sum() - 0.5 * np.sum(svm.weights**2)
    assert svm.dual_gap == pytest.approx(svm.objective - dual, rel=1e-6, abs=1e-12)


def test_multipliers_meet_the_kkt_conditions():
    X, y = blobs(80, 6, 3)
    svm = solve(X, y, 3, C=0.3, cost=2.0, tol=1e-10, max_iter=100_000)
    np.testing.assert_allclose(svm.multipliers.T @ X, svm.weights)
    assert_feasible(svm.multipliers, y, 0.3)
    mass = 0.3 * np.eye(3)[y] - svm.multipliers
    g = X @ svm.weights.T + 2.0 * (1 - np.eye(3)[y])
    short = g.max(axis=1, keepdims=True) - g
    assert short[mass > 1e-3].max() < 1e-3  # mass only where the loss is worst
    assert (mass > 1e-3).sum() > len(y)  # and on more than one class in some rows


def test_gram_is_only_a_shortcut():
    X, y = blobs(50, 8, 3)
    slow, fast = solve(X, y, 3), solve(X, y, 3, gram=X @ X.T)
    assert fast.n_iter == slow.n_iter
    np.testing.assert_allclose(fast.weights, slow.weights, rtol=1e-6, atol=1e-9)


def test_a_sample_weight_counts_rows():
    X, y = blobs(30, 4, 3)
    weight = np.random.default_rng(1).integers(0, 3, size=30)
    weighted = solve(X, y, 3, sample_weight=weight, tol=1e-9, max_iter=100_000)
    repeated = solve(
        np.repeat(X, weight, axis=0), np.repeat(y, weight), 3, tol=1e-9, max_iter=100_000
    )
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-3)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)
    assert not weighted.multipliers[weight == 0].any()


def test_warm_start_saves_sweeps():
    X, y = blobs(150, 50, 5)
    cold = solve(X, y, 5)
    moved = X + 0.001 * np.random.default_rng(1).standard_normal(X.shape)
    assert solve(X, y, 5, warm_start=cold.multipliers).n_iter == 1
    near = solve(moved, y, 5, warm_start=cold.multipliers)
    assert near.converged
    assert near.n_iter < 0.75 * solve(moved, y, 5).n_iter


def test_warm_start_may_be_infeasible_and_is_not_written_to():
    X, y = blobs(40, 3, 3)
    start = np.random.default_rng(0).standard_normal((40, 3))
    kept = start.copy()
    svm = solve(X, y, 3, C=0.1, warm_start=start)
    assert svm.converged
    assert_feasible(svm.multipliers, y, 0.1)
    np.testing.assert_array_equal(start, kept)


def test_same_generator_same_answer_and_no_global_state():
    X, y = blobs(40, 3, 3)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second, other = solve(X, y, 3), solve(X, y, 3), solve(X, y, 3, seed=1)
    np.testing.assert_array_equal(first.weights, second.weights)
    assert not np.array_equal(first.weights, other.weights)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def degenerate(name):
    X, y = blobs(40, 4, 3)
    if name == "duplicate rows, contradicting labels":
        return np.tile(X[:5], (8, 1)), y, 3
    if name == "zero rows":
        X[::3] = 0.0
    elif name == "only zero rows":
        X[:] = 0.0
    elif name == "tiny rows":
        X[::3] *= 1e-170
    elif name == "constant features":
        X[:, 1:3] = 5.0
    elif name == "one class present":
        y[:] = 1
    elif name == "a thousand classes":
        return X, y * 400, 1000
    elif name == "one row":
        return X[:1], y[:1], 3
    elif name == "no rows":
        return X[:0], y[:0], 3
    elif name == "more columns than rows":
        return np.tile(X, (1, 30)) / 10, y, 3
    return X, y, 3


@pytest.mark.parametrize(
    "name",
    [
        "duplicate rows, contradicting labels",
        "zero rows",
        "only zero rows",
        "tiny rows",
        "constant features",
        "one class present",
        "a thousand classes",
        "one row",
        "no rows",
        "more columns than rows",
    ],
)
def test_degenerate_inputs_converge(name):
    X, y, n_classes = degenerate(name)
    svm = solve(X, y, n_classes, tol=1e-3, max_iter=5000)
    assert svm.converged
    assert np.isfinite(svm.weights).all()
    assert_feasible(svm.multipliers, y, 1.0)
    assert svm.objective == pytest.approx(objective(svm.weights, X, y), rel=1e-9)


def test_says_when_it_has_not_converged():
    X, y = blobs(60, 5, 4)
    svm = solve(X, y, 4, C=100.0, tol=1e-12, max_iter=2)
    assert (svm.converged, svm.n_iter) == (False, 2)
    assert svm.dual_gap > 1e-12 * svm.objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [1.0, 2.0]}, "shape"),
        ({"X": [[1.0], [np.nan]]}, "impute"),
        ({"X": [[1.0], [1e200]]}, "scale"),
        ({"y": [0, 2]}, "n_classes"),
        ({"y": [0, -1]}, "n_classes"),
        ({"y": [0.0, 1.0]}, "integer"),
        ({"y": [0]}, "integer"),
        ({"n_classes": 1, "y": [0, 0]}, "n_classes"),
        ({"C": 0.0}, "C must"),
        ({"cost": np.inf}, "cost"),
        ({"sample_weight": [1.0, -1.0]}, "negative"),
        ({"gram": np.eye(3)}, "gram"),
        ({"warm_start": np.zeros((2, 3))}, "warm_start"),
    ],
)
def test_errors_name_the_culprit(change, message):
    good = {"X": [[1.0], [-1.0]], "y": [0, 1], "n_classes": 2}
    arguments = {**good, **change, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        crammer_singer(**arguments)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_contract(data):
    """Whatever the data: finite, feasible, no worse than zero weights, and an honest gap."""
    n, m = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 15))
    n_classes = data.draw(st.integers(2, 5))
    X = data.draw(arrays(np.float64, (n, m), elements=st.floats(-1e3, 1e3)))
    y = data.draw(arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    C, cost = data.draw(st.floats(1e-3, 1e3)), data.draw(st.floats(1e-2, 1e2))
    svm = solve(X, y, n_classes, C=C, cost=cost, max_iter=200)
    assert np.isfinite(svm.weights).all()
    assert_feasible(svm.multipliers, y, C)
    np.testing.assert_allclose(svm.multipliers.sum(axis=1), 0.0, atol=1e-12 * C)
    assert svm.dual_gap >= 0
    if svm.converged:
        assert svm.objective <= objective(np.zeros((n_classes, m)), X, y, C, cost) * (1 + 1.1e-4)


@settings(max_examples=100, deadline=None)
@given(
    point=arrays(np.float64, st.integers(1, 8), elements=st.floats(-1e9, 1e9)),
    mass=st.floats(1e-3, 1e3),
)
def test_projection_onto_the_simplex(point, mass):
    """Against the definition by sorting (Crammer & Singer 2001, Section 6)."""
    down = np.sort(point - point.max())[::-1]
    thresholds = (np.cumsum(down) - mass) / np.arange(1, len(down) + 1)
    threshold = thresholds[down > thresholds][-1]
    expected = np.maximum(0.0, point - point.max() - threshold)
    projected = point.copy()
    project_simplex(projected, mass)
    np.testing.assert_allclose(projected, expected, rtol=1e-9, atol=1e-9 * mass)
    assert projected.sum() == pytest.approx(mass)
