"""The prior of a component's or a state's Gaussian, from the words that all estimators share."""

from __future__ import annotations

from numpy.typing import NDArray

from regbayes.priors.normal_inverse_gamma import NormalInverseGamma
from regbayes.priors.normal_inverse_wishart import NormalInverseWishart


def gaussian_prior(
    X: NDArray, covariance: str, strength: float, df: float | None, scale: float
) -> NormalInverseWishart | NormalInverseGamma:
    """A prior centred on the data; `df` is that of one feature, whatever their number.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_prior(np.eye(2), "full", 0.1, None, 1.0).df
    4.0
    """
    if covariance == "diag":
        return NormalInverseGamma.from_data(X, strength, df, scale)
    df = None if df is None else df + X.shape[1] - 1
    return NormalInverseWishart.from_data(X, strength, df, scale)
