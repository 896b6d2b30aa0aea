"""Adam in one pass over the memory: five NumPy passes would cost more than a small batch."""

import numpy as np

from regbayes.kernels._jit import kernel


@kernel
def adam(parameter, gradient, first, second, rate, shrink, fresh, correction):
    """Step down `gradient`, in place; all arrays flat and of one dtype.

    Parameters
    ----------
    parameter, gradient, first, second : arrays of shape (n,)
        `first` and `second` are the running moments of the gradient.
    rate : float
        Step length, with the bias of `first` corrected already.
    shrink : float
        The parameter is multiplied by this first (decoupled weight decay; 1 for none).
    fresh : pair of floats
        Weights of the new gradient in the two moments, 1 - beta1 and 1 - beta2.
    correction : float
        1 / sqrt(1 - beta2^t).

    Examples
    --------
    >>> x, g, m, v = np.ones(3), np.array([1.0, -2.0, 0.0]), np.zeros(3), np.zeros(3)
    >>> adam(x, g, m, v, 0.01 / 0.1, 1.0, (0.1, 0.001), 1 / np.sqrt(0.001))
    >>> x.round(3)
    array([0.99, 1.01, 1.  ])
    """
    kind = parameter.dtype.type
    rate, shrink, correction = kind(rate), kind(shrink), kind(correction)
    fresh1, fresh2, floor = kind(fresh[0]), kind(fresh[1]), kind(1e-8)
    for i in range(parameter.shape[0]):
        g = gradient[i]
        m = first[i] + fresh1 * (g - first[i])
        v = second[i] + fresh2 * (g * g - second[i])
        first[i] = m
        second[i] = v
        parameter[i] = shrink * parameter[i] - rate * m / (np.sqrt(v) * correction + floor)
