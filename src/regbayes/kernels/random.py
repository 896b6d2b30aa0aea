"""Random draws that stay right, positive and finite from 1e-300 to 1e300.

Every function takes a :class:`numpy.random.Generator` first and never touches global state.
Nothing is validated here; callers do that once, before the loop.

References
----------
.. [1] Michael, Schucany & Haas (1976). Generating random variates using transformations with
       multiple roots. The American Statistician 30(2).
.. [2] Antoniak (1974). Mixtures of Dirichlet processes. Annals of Statistics 2(6).
.. [3] Smith & Hocking (1972). Algorithm AS 53: Wishart variate generator. Applied Statistics 21.
.. [4] Teh, Jordan, Beal & Blei (2006). Hierarchical Dirichlet processes. JASA 101, appendix A.
"""

import math

import numpy as np

from regbayes.kernels._jit import kernel

_TINY = float(np.finfo(np.float64).tiny)  # smallest normal positive number
_HUGE = float(np.finfo(np.float64).max)


@kernel
def draw_inverse_gaussian(rng, mean, shape):
    """Draw from the inverse-Gaussian law IG(mean, shape) by the two-root transformation [1]_.

    With ``t = mean * chi2 / (2 * shape)`` the roots are ``mean / r`` and ``mean * r``,
    ``r = 1 + t + sqrt(t * (t + 2))``. The textbook form subtracts to get the small root and
    returns zero or less once ``mean`` exceeds about ``1e8 * shape``; this one only adds.

    Parameters
    ----------
    rng : numpy.random.Generator
    mean, shape : float
        Both positive and finite.

    Returns
    -------
    float
        Positive and finite; clamped only where the law itself leaves the range of floats.

    Examples
    --------
    >>> import numpy as np
    >>> x = draw_inverse_gaussian(np.random.default_rng(0), 1e300, 1.0)
    >>> 0.0 < x < np.inf
    True
    """
    normal = rng.standard_normal()
    chi2 = normal * normal
    t = 0.5 * min(mean / shape, _HUGE) * chi2
    if t > 1e16:
        # Lévy limit: r = 2t to the last bit, and the large root has probability below 1e-16.
        x = shape / chi2
    else:
        r = 1.0 + t + math.sqrt(t) * math.sqrt(t + 2.0)
        # 1 - u is never 0: an impossible large root stays impossible.
        if (1.0 - rng.random()) * (1.0 + r) < 1.0:
            x = mean * r
        else:
            x = mean / r
    return min(max(x, _TINY), _HUGE)


@kernel
def draw_log_gamma(rng, shape):
    """Draw the logarithm of a Gamma(shape, 1) variable; finite for shapes down to 1e-300.

    Below one, ``G(a) = G(a + 1) * U ** (1 / a)`` in logarithms, where ``-log U`` is exponential.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isfinite(draw_log_gamma(np.random.default_rng(0), 1e-300)))
    True
    """
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    boosted = math.log(rng.standard_gamma(shape + 1.0))
    return max(boosted - rng.standard_exponential() / shape, -_HUGE)


@kernel
def draw_gamma(rng, shape):
    """Draw from Gamma(shape, 1), floored at the smallest normal positive float.

    Examples
    --------
    >>> import numpy as np
    >>> draw_gamma(np.random.default_rng(0), 1e-300) > 0.0
    True
    """
    if shape >= 1.0:
        return max(rng.standard_gamma(shape), _TINY)
    return max(math.exp(draw_log_gamma(rng, shape)), _TINY)


@kernel
def draw_log_dirichlet(rng, concentration, out):
    """Fill `out` with the logarithm of a Dirichlet draw, normalised in log space.

    Parameters
    ----------
    rng : numpy.random.Generator
    concentration : ndarray of shape (K,)
        Non-negative, at least one positive. A zero entry gives ``-inf``.
    out : ndarray of shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(3)
    >>> draw_log_dirichlet(np.random.default_rng(0), np.array([1e-300, 1.0, 0.0]), out)
    >>> bool(np.isclose(np.exp(out).sum(), 1.0)), float(out[2])
    (True, -inf)
    """
    best = -np.inf
    for k in range(concentration.shape[0]):
        out[k] = draw_log_gamma(rng, concentration[k]) if concentration[k] > 0.0 else -np.inf
        best = max(best, out[k])
    total = 0.0
    for k in range(concentration.shape[0]):
        total += math.exp(out[k] - best)
    log_total = math.log(total)
    for k in range(concentration.shape[0]):
        # Two subtractions: best + log_total would swallow log_total when best is huge.
        out[k] = (out[k] - best) - log_total


@kernel
def draw_dirichlet(rng, concentration, out):
    """Fill `out` with a Dirichlet draw; see :func:`draw_log_dirichlet` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(2)
    >>> draw_dirichlet(np.random.default_rng(0), np.array([1e-300, 1e-300]), out)
    >>> float(out.sum())
    1.0
    """
    draw_log_dirichlet(rng, concentration, out)
    total = 0.0
    for k in range(out.shape[0]):
        out[k] = math.exp(out[k])
        total += out[k]
    for k in range(out.shape[0]):
        out[k] /= total


@kernel
def draw_categorical(rng, log_weights):
    """Draw an index with probability proportional to ``exp(log_weights)``.

    Weights of ``-inf`` are never drawn, and any common offset is harmless.

    Returns
    -------
    int
        The index, or -1 if there is no law to draw from: every weight is ``-inf``, some weight
        is NaN or ``+inf``, or there are none. Test for it before using it as an index.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draw_categorical(rng, np.array([-np.inf, -1e9, -np.inf]))
    1
    >>> draw_categorical(rng, np.array([-np.inf, -np.inf]))
    -1
    """
    return categorical_at(log_weights, rng.random())


@kernel
def categorical_at(log_weights, uniform):
    """The index at quantile `uniform` of the law of :func:`draw_categorical`.

    Examples
    --------
    >>> import numpy as np
    >>> categorical_at(np.log([0.25, 0.5, 0.25]), 0.3)
    1
    """
    best = -np.inf
    for k in range(log_weights.shape[0]):
        best = max(best, log_weights[k])
    total = 0.0
    for k in range(log_weights.shape[0]):
        total += math.exp(log_weights[k] - best)
    if not total > 0.0:  # also when total is NaN, which is what -inf - -inf makes of it
        return -1
    threshold = uniform * total
    cumulative = 0.0
    last = -1
    for k in range(log_weights.shape[0]):
        weight = math.exp(log_weights[k] - best)
        if weight > 0.0:
            cumulative += weight
            last = k
            if cumulative > threshold:
                return k
    return last  # uniform * total rounded up to total


@kernel
def shuffle(rng, order):
    """Any order, in place, all of them as likely; rng.shuffle takes numba 8 s to compile.

    Examples
    --------
    >>> import numpy as np
    >>> order = np.arange(5)
    >>> shuffle(np.random.default_rng(0), order)
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]
    """
    for i in range(order.shape[0] - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]


@kernel
def draw_table_count(rng, n, concentration):
    """Draw the number of tables taken by `n` customers of a Chinese restaurant process [2]_.

    Customer ``i`` (from 0) opens a table with probability ``concentration / (concentration + i)``,
    so the first always does.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draw_table_count(rng, 0, 1.0), draw_table_count(rng, 1000, 1e-300)
    (0, 1)
    """
    tables = 1 if n > 0 else 0
    for i in range(1, n):
        # 1 - u again: u = 0 would open a table whatever the concentration.
        if (1.0 - rng.random()) * (concentration + i) <= concentration:
            tables += 1
    return tables


@kernel
def draw_concentration(rng, alpha, shape, rate, n_tables, sizes):
    """One update of a DP concentration under Gamma(shape, rate), given tables and group sizes [4]_.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draw_concentration(rng, 1.0, 1.0, 1.0, 3, np.array([100.0])) > 0.0
    True
    """
    shape += n_tables
    for n in sizes:
        if n > 0:
            # -log eta, eta ~ Beta(alpha + 1, n), without rounding eta to 0 or 1.
            odds = draw_log_gamma(rng, n) - draw_log_gamma(rng, alpha + 1.0)
            rate += max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))
            # s ~ Bernoulli(n / (n + alpha)); Escobar & West sum it out, the target is the same.
            shape -= 1.0 if rng.random() * (n + alpha) < n else 0.0
    # A rate above 1 could push a floored draw to zero.
    return max(draw_gamma(rng, shape) / rate, _TINY)


@kernel
def draw_normal_precision(rng, linear, chol, out):
    """Draw from N(P^-1 linear, P^-1) into `out`, where ``P = chol @ chol.T``.

    One forward and one back substitution: ``out = L'^-1 (L^-1 linear + z)``.

    Parameters
    ----------
    rng : numpy.random.Generator
    linear : ndarray of shape (M,)
    chol : ndarray of shape (>= M, >= M)
        Lower Cholesky factor of the precision; only the lower triangle is read.
    out : ndarray of shape (M,)
        May be `linear` itself.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(2)
    >>> draw_normal_precision(np.random.default_rng(0), np.full(2, 3e16), 1e8 * np.eye(2), out)
    >>> out.round(6)
    array([3., 3.])
    """
    m = linear.shape[0]
    for i in range(m):
        s = linear[i]
        for j in range(i):
            s -= chol[i, j] * out[j]
        out[i] = s / chol[i, i]
    for i in range(m):
        out[i] += rng.standard_normal()
    for i in range(m - 1, -1, -1):
        out[i] /= chol[i, i]
        for j in range(i):  # by rows of chol, to read memory in order
            out[j] -= chol[i, j] * out[i]


@kernel
def draw_inverse_wishart(rng, df, chol_scale, out_chol):
    """Fill `out_chol` with the lower Cholesky factor of an inverse-Wishart draw, IW(df, S).

    Here ``S = chol_scale @ chol_scale.T``. Bartlett's decomposition [3]_ in reversed order: if
    ``L`` is lower triangular with standard normals below the diagonal and
    ``L[i, i]**2 ~ chi2(df - M + 1 + i)``, then ``L' L ~ W(df, I)`` and ``A = chol_scale L^-1`` is
    lower triangular with ``A A' ~ IW(df, S)``: the factor comes without a factorisation.

    Parameters
    ----------
    rng : numpy.random.Generator
    df : float
        Greater than M - 1.
    chol_scale, out_chol : ndarray of shape (M, M)
        The strict upper triangle of `out_chol` is set to zero. They may be the same array.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty((2, 2))
    >>> draw_inverse_wishart(np.random.default_rng(0), 1e12, 1e6 * np.eye(2), out)
    >>> bool(np.allclose(out @ out.T, np.eye(2), atol=1e-4))
    True
    """
    m = chol_scale.shape[0]
    bartlett = np.empty((m, m))
    for i in range(m):
        for j in range(i):
            bartlett[i, j] = rng.standard_normal()
        bartlett[i, i] = math.sqrt(2.0 * draw_gamma(rng, 0.5 * (df - m + 1 + i)))
    for i in range(m):  # row i of A solves A[i] L = C[i], from the diagonal leftwards
        for j in range(i, -1, -1):
            s = chol_scale[i, j]
            for k in range(j + 1, i + 1):
                s -= out_chol[i, k] * bartlett[k, j]
            out_chol[i, j] = s / bartlett[j, j]
        for j in range(i + 1, m):
            out_chol[i, j] = 0.0
