"""Harmoniums: features of tables, texts and several views, which count themselves."""

from regbayes.harmonium._discriminative_rbm import DiscriminativeRBM
from regbayes.harmonium._estimators import (
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
    MaxMarginHarmoniumRegressor,
)

__all__ = [
    "DiscriminativeRBM",
    "Harmonium",
    "InfiniteHarmonium",
    "InfiniteMaxMarginHarmonium",
    "MaxMarginHarmonium",
    "MaxMarginHarmoniumRegressor",
]
