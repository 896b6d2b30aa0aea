"""The prior of a component's Gaussian, from the words that all mixtures share."""

from __future__ import annotations

from numpy.typing import NDArray

from regbayes.priors import NormalInverseGamma, NormalInverseWishart


def component_prior(
    X: NDArray, covariance: str, strength: float, df: float | None, scale: float
) -> NormalInverseWishart | NormalInverseGamma:
    """A prior centred on the data; `df` is that of one feature, whatever their number."""
    if covariance == "diag":
        return NormalInverseGamma.from_data(X, strength, df, scale)
    df = None if df is None else df + X.shape[1] - 1
    return NormalInverseWishart.from_data(X, strength, df, scale)
