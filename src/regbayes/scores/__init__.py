"""Whole sequences as points of a score space, made by a generative model and read by a margin."""

from regbayes.scores._classifier import MaxMarginScoreClassifier
from regbayes.scores._fisher_learning import FisherKernelLearning
from regbayes.scores._maps import (
    FisherScore,
    FreeEnergyScore,
    PosteriorDivergenceScore,
    SufficientStatisticsScore,
    TOPScore,
)
from regbayes.scores._margin_classifier import MarginClassifier
from regbayes.scores._max_margin import MaxMarginScore
from regbayes.scores._preprocessed import Preprocessed
from regbayes.scores._side_by_side import SideBySide

__all__ = [
    "FisherKernelLearning",
    "FisherScore",
    "FreeEnergyScore",
    "MarginClassifier",
    "MaxMarginScore",
    "MaxMarginScoreClassifier",
    "PosteriorDivergenceScore",
    "Preprocessed",
    "SideBySide",
    "SufficientStatisticsScore",
    "TOPScore",
]
