"""Whole sequences as points of a score space, made by a generative model and read by a margin."""

from regbayes.scores._fisher_learning import FisherKernelLearning
from regbayes.scores._maps import (
    FisherScore,
    FreeEnergyScore,
    PosteriorDivergenceScore,
    SufficientStatisticsScore,
    TOPScore,
)
from regbayes.scores._max_margin import MaxMarginScore

__all__ = [
    "FisherKernelLearning",
    "FisherScore",
    "FreeEnergyScore",
    "MaxMarginScore",
    "PosteriorDivergenceScore",
    "SufficientStatisticsScore",
    "TOPScore",
]
