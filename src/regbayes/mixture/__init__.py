"""DP mixtures of classifiers: sub-populations found, a classifier in each."""

from regbayes.mixture._estimators import DPMultinomialLogit, GibbsInfiniteSVM
from regbayes.mixture._infinite_svm import InfiniteSVM

__all__ = ["DPMultinomialLogit", "GibbsInfiniteSVM", "InfiniteSVM"]
