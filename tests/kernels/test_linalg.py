"""Kernels of linear algebra against NumPy and SciPy, and against exact arithmetic in the tails."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from regbayes.kernels import linalg as kl
from tests.helpers import random_covariance

SIZES = [1, 2, 3, 8, 30]


@pytest.fixture(params=SIZES)
def factor(request):
    matrix = random_covariance(np.random.default_rng(request.param), request.param)
    return matrix, np.linalg.cholesky(matrix)


def test_cholesky_is_numpys(factor):
    matrix, chol = factor
    out = np.full_like(matrix, np.nan)
    assert kl.cholesky(matrix, out)
    np.testing.assert_allclose(out, chol, rtol=1e-10, atol=1e-12)
    assert kl.cholesky(matrix, matrix)  # in place
    np.testing.assert_array_equal(matrix, out)


def test_cholesky_reads_the_lower_triangle_only(factor):
    matrix, chol = factor
    matrix[np.triu_indices_from(matrix, 1)] = np.nan
    out = np.empty_like(matrix)
    assert kl.cholesky(matrix, out)
    np.testing.assert_allclose(out, chol, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0]],
        [[-1.0]],
        [[np.nan]],
        [[np.inf]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, np.nan], [np.nan, 1.0]],
    ],
)
def test_cholesky_refuses(matrix):
    matrix = np.array(matrix)
    assert not kl.cholesky(matrix, np.empty_like(matrix))


def test_update_then_downdate(factor):
    matrix, chol = factor
    vector = np.random.default_rng(0).standard_normal(len(matrix))
    work = chol.copy()
    kl.cholesky_update(work, vector.copy())
    updated = np.linalg.cholesky(matrix + np.outer(vector, vector))
    np.testing.assert_allclose(work, updated, rtol=1e-10, atol=1e-12)
    assert kl.cholesky_downdate(work, vector.copy())
    np.testing.assert_allclose(work, chol, rtol=1e-8, atol=1e-10)


def test_only_the_leading_block_is_used(factor):
    """Buffers larger than M, with NaN beyond and above, give the same answers."""
    matrix, chol = factor
    m = len(matrix)
    big = np.full((m + 2, m + 2), np.nan)
    big[:m, :m][np.tril_indices(m)] = chol[np.tril_indices(m)]
    b = np.random.default_rng(1).standard_normal(m)

    kl.cholesky_update(big, b.copy())
    expected = np.linalg.cholesky(matrix + np.outer(b, b))
    np.testing.assert_allclose(
        big[:m, :m][np.tril_indices(m)], expected[np.tril_indices(m)], atol=1e-12
    )
    assert kl.cholesky_downdate(big, b.copy())
    x = b.copy()
    kl.solve_lower(big, x)
    np.testing.assert_allclose(np.tril(big[:m, :m]) @ x, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("stretch", [1.0, 1.0 + 1e-15, 1.5, 1e200, np.nan])
def test_downdate_that_would_lose_definiteness_changes_nothing(factor, stretch):
    """v' A^-1 v >= 1: there is no factor, and the old one survives to the last bit."""
    _, chol = factor
    before = chol.copy()
    direction = np.random.default_rng(2).standard_normal(len(chol))
    direction /= np.linalg.norm(direction)
    assert not kl.cholesky_downdate(chol, stretch * (chol @ direction))
    np.testing.assert_array_equal(chol, before)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0, 0.999), st.floats(-100, 100))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_downdate_inverts_update_at_any_scale(seed, m, length, log_scale):
    rng = np.random.default_rng(seed)
    chol = np.linalg.cholesky(random_covariance(rng, m)) * 10.0**log_scale
    a = rng.standard_normal(m)
    vector = chol @ (a * length / np.linalg.norm(a))
    work = chol.copy()
    assert kl.cholesky_downdate(work, vector.copy())
    kl.cholesky_update(work, vector.copy())
    np.testing.assert_allclose(work, chol, rtol=1e-9, atol=1e-10 * np.abs(chol).max())


def test_long_walk_of_updates_does_not_drift():
    """A mixture component gains and loses thousands of points between refactorisations."""
    rng = np.random.default_rng(3)
    points = rng.standard_normal((2_000, 4))
    chol = np.eye(4)
    for x in points:
        kl.cholesky_update(chol, x.copy())
    for x in points[:-5]:
        assert kl.cholesky_downdate(chol, x.copy())
    expected = np.eye(4) + points[-5:].T @ points[-5:]
    np.testing.assert_allclose(chol @ chol.T, expected, rtol=1e-9, atol=1e-9)


def test_solves_and_log_determinant(factor):
    matrix, chol = factor
    b = np.random.default_rng(4).standard_normal(len(matrix))
    x = b.copy()
    kl.solve_lower(chol, x)
    np.testing.assert_allclose(chol @ x, b, atol=1e-10)
    assert kl.log_det_cholesky(chol) == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)


@pytest.mark.parametrize("df", [0.1, 1.0, 7.5, 1e3, 1e6])
def test_student_t_is_scipys(factor, df):
    matrix, chol = factor
    m = len(matrix)
    rng = np.random.default_rng(5)
    mean, X = rng.standard_normal(m), 3 * rng.standard_normal((4, m))
    expected = stats.multivariate_t(mean, matrix, df=df).logpdf(X)
    out = np.empty(4)
    kl.log_student_t_rows(X, mean, chol, df, out)
    np.testing.assert_allclose(out, expected, rtol=1e-8)
    assert kl.log_student_t(X[0], mean, chol, df, np.empty(m)) == out[0]


def test_student_t_far_out_is_finite():
    far, zero = np.full(2, 1e150), np.zeros(2)
    value = kl.log_student_t(far, zero, np.eye(2), 3.0, np.empty(2))
    assert value == pytest.approx(-(3 + 2) * np.log(1e150), rel=1e-2)


def exact_log_ndtr(x):
    """log ndtr for x < -3 by the continued fraction of Mills' ratio, in sixty digits."""
    with localcontext() as context:
        context.prec = 60
        z = -Decimal(x)
        fraction = z
        for k in range(400, 0, -1):
            fraction = z + k / fraction
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
        return float(-z * z / 2 - (2 * pi).ln() / 2 - fraction.ln())


@pytest.mark.parametrize(
    "x", [-5.0, -9.9, -19.99, -20.0, -20.01, -25.0, -37.5, -38.5, -1e2, -1e4, -1e50, -1e150]
)
def test_log_ndtr_in_the_lower_tail(x):
    assert kl.log_ndtr(x) == pytest.approx(exact_log_ndtr(x), rel=1e-13)


def test_log_ndtr_is_scipys():
    x = np.linspace(-30, 37, 2_001)  # beyond, SciPy flushes subnormals to zero
    ours = np.array([kl.log_ndtr(value) for value in x])
    np.testing.assert_allclose(ours, special.log_ndtr(x), rtol=2e-12)


def test_log_ndtr_at_the_ends():
    assert kl.log_ndtr(np.inf) == 0.0
    assert kl.log_ndtr(-np.inf) == -np.inf
    assert np.isnan(kl.log_ndtr(np.nan))
