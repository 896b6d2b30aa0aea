"""Small dense linear algebra on lower Cholesky factors, and two log densities built on it.

Factors are C-contiguous arrays whose leading ``M x M`` block is used, ``M`` being the length of
the vector argument; the strict upper triangle is never read. The loops are explicit: for the
small ``M`` of a mixture component a call to BLAS costs more than the arithmetic.

References
----------
.. [1] Golub & Van Loan (2013). Matrix Computations, 4th ed., section 6.5.
.. [2] Dongarra, Moler, Bunch & Stewart (1979). LINPACK Users' Guide, chapter 10 (dchdd).
.. [3] Abramowitz & Stegun (1964). Handbook of Mathematical Functions, 26.2.12.
"""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel

_LOG_PI = math.log(math.pi)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
# A downdate that removes all but this fraction of the determinant leaves only rounding error.
_LEAST_FRACTION = 64.0 * float(np.finfo(np.float64).eps)


@kernel
def cholesky(matrix, out):
    """Write the lower Cholesky factor of `matrix` into `out`; the upper triangle becomes zero.

    Parameters
    ----------
    matrix : ndarray of shape (M, M)
        Symmetric; only its lower triangle is read.
    out : ndarray of shape (>= M, >= M)
        May be `matrix` itself.

    Returns
    -------
    bool
        False, with `out` half written, if the matrix is not positive definite and finite.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty((2, 2))
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]), out)
    True
    >>> out
    array([[2., 0.],
           [1., 1.]])
    """
    m = matrix.shape[0]
    for i in range(m):
        for j in range(i + 1):
            s = matrix[i, j]
            for k in range(j):
                s -= out[i, k] * out[j, k]
            if j < i:
                out[i, j] = s / out[j, j]
            elif 0.0 < s < np.inf:  # False for NaN too
                out[i, i] = math.sqrt(s)
            else:
                return False
        for j in range(i + 1, m):
            out[i, j] = 0.0
    return True


@kernel
def cholesky_update(chol, vector):
    """Turn the factor of ``A`` into the factor of ``A + vector vector'`` by rotations [1]_.

    `vector` is destroyed.

    Examples
    --------
    >>> import numpy as np
    >>> chol = np.array([[3.0]])
    >>> cholesky_update(chol, np.array([4.0]))
    >>> chol
    array([[5.]])
    """
    m = vector.shape[0]
    for k in range(m):
        r = math.hypot(chol[k, k], vector[k])
        c = chol[k, k] / r
        s = vector[k] / r
        chol[k, k] = r
        for i in range(k + 1, m):
            kept = chol[i, k]
            chol[i, k] = c * kept + s * vector[i]
            vector[i] = c * vector[i] - s * kept


@kernel
def cholesky_downdate(chol, vector):
    """Turn the factor of ``A`` into the factor of ``A - vector vector'`` [2]_.

    `vector` is destroyed. The relative error grows as ``eps * det(A) / det(A - vector vector')``;
    after many downdates, refactorise.

    Returns
    -------
    bool
        False if the difference is not positive definite to working precision. `chol` is then
        exactly as it was: the factor of ``A``.

    Examples
    --------
    >>> import numpy as np
    >>> chol = np.array([[5.0]])
    >>> cholesky_downdate(chol, np.array([3.0])), chol.round(12)
    (True, array([[4.]]))
    >>> cholesky_downdate(chol, np.array([4.0]))
    False
    """
    m = vector.shape[0]
    solve_lower(chol, vector)
    rho = 1.0  # det(A - vv') / det(A)
    for k in range(m):
        rho -= vector[k] * vector[k]
    if not rho > _LEAST_FRACTION:
        return False
    alpha = math.sqrt(rho)
    for k in range(m - 1, -1, -1):
        r = math.hypot(alpha, vector[k])
        c = alpha / r
        s = vector[k] / r
        alpha = r
        vector[k] = 0.0  # spent: from here on it carries row k of the rotated last column
        for i in range(k, m):
            carry = vector[i]
            vector[i] = c * carry + s * chol[i, k]
            chol[i, k] = c * chol[i, k] - s * carry
    return True


@kernel
def solve_lower(chol, b):
    """Overwrite `b` with the solution of ``chol x = b``.

    Examples
    --------
    >>> import numpy as np
    >>> b = np.array([2.0, 5.0])
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 4.0]]), b)
    >>> b
    array([1., 1.])
    """
    for i in range(b.shape[0]):
        s = b[i]
        for j in range(i):
            s -= chol[i, j] * b[j]
        b[i] = s / chol[i, i]


@kernel
def log_det_cholesky(chol):
    """Log determinant of ``chol @ chol.T``, all of `chol` being used.

    Examples
    --------
    >>> import numpy as np
    >>> log_det_cholesky(np.eye(3))
    0.0
    """
    total = 0.0
    for i in range(chol.shape[0]):
        total += math.log(chol[i, i])
    return 2.0 * total


@kernel
def log_student_t(x, mean, chol, df, work):
    """Log density at `x` of the multivariate Student-t with scale matrix ``chol @ chol.T``.

    Parameters
    ----------
    x, mean, work : ndarray of shape (M,)
        `work` is scratch space.
    chol : ndarray of shape (>= M, >= M)
    df : float

    Examples
    --------
    >>> import numpy as np
    >>> zero, work = np.zeros(1), np.empty(1)
    >>> density = np.exp(log_student_t(zero, zero, np.eye(1), 1.0, work))  # a Cauchy's mode
    >>> bool(np.isclose(density, 1 / np.pi))
    True
    """
    m = x.shape[0]
    half_log_det = 0.0
    for i in range(m):
        work[i] = x[i] - mean[i]
        half_log_det += math.log(chol[i, i])
    solve_lower(chol, work)
    squared = 0.0
    for i in range(m):
        squared += work[i] * work[i]
    return (
        math.lgamma(0.5 * (df + m))
        - math.lgamma(0.5 * df)
        - 0.5 * m * (math.log(df) + _LOG_PI)
        - half_log_det
        - 0.5 * (df + m) * math.log1p(squared / df)
    )


@kernel
def log_student_t_rows(X, mean, chol, df, out):
    """Fill ``out[i]`` with :func:`log_student_t` of row ``i`` of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(2)
    >>> log_student_t_rows(np.zeros((2, 1)), np.zeros(1), np.eye(1), 1.0, out)
    >>> bool(np.allclose(np.exp(out), 1 / np.pi))
    True
    """
    work = np.empty(mean.shape[0])
    for i in range(X.shape[0]):
        out[i] = log_student_t(X[i], mean, chol, df, work)


@kernel
def log_ndtr(x):
    """Log of the standard normal distribution function, without underflow far in the tail.

    Examples
    --------
    >>> bool(abs(log_ndtr(0.0) - math.log(0.5)) < 1e-15), log_ndtr(-1e100) < -4e199
    (True, True)
    """
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * _SQRT_HALF))
    if x > -20.0:
        return math.log(0.5 * math.erfc(-x * _SQRT_HALF))
    # Mills' ratio [3]_: the term left out, 10395 z^6, is below 3e-12 of an answer below -200.
    z = 1.0 / (x * x)
    series = -z * (1.0 - z * (3.0 - z * (15.0 - z * (105.0 - z * 945.0))))
    return -0.5 * x * x - math.log(-x) - _HALF_LOG_TWO_PI + math.log1p(series)


@fused_kernel
def row_times_matrix(values, matrix, out):
    """`values @ matrix` into `out`, four rows at a time so that it stays in registers.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(2)
    >>> row_times_matrix(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [3.0, 1.0]]), out)
    >>> out
    array([7., 2.])
    """
    n = values.shape[0]
    m = out.shape[0]
    i = n % 4  # the rows that are left over go first, and take the place of zeros
    if i == 0:
        for j in range(m):
            out[j] = 0.0
    elif i == 1:
        a = values[0]
        for j in range(m):
            out[j] = a * matrix[0, j]
    elif i == 2:
        a, b = values[0], values[1]
        for j in range(m):
            out[j] = a * matrix[0, j] + b * matrix[1, j]
    else:
        a, b, c = values[0], values[1], values[2]
        for j in range(m):
            out[j] = (a * matrix[0, j] + b * matrix[1, j]) + c * matrix[2, j]
    while i < n:
        a, b, c, d = values[i], values[i + 1], values[i + 2], values[i + 3]
        for j in range(m):
            out[j] += (a * matrix[i, j] + b * matrix[i + 1, j]) + (
                c * matrix[i + 2, j] + d * matrix[i + 3, j]
            )
        i += 4
