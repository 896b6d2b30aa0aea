"""Whole sequences as points of a score space, made by a generative model and read by a margin."""

from regbayes.scores._fisher_learning import FisherKernelLearning
from regbayes.scores._maps import (
    FisherScore,
    FreeEnergyScore,
    PosteriorDivergenceScore,
    SufficientStatisticsScore,
    TOPScore,
)

__all__ = [
    "FisherKernelLearning",
    "FisherScore",
    "FreeEnergyScore",
    "PosteriorDivergenceScore",
    "SufficientStatisticsScore",
    "TOPScore",
]
