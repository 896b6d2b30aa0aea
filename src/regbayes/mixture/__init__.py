"""DP mixtures of classifiers: sub-populations found, a classifier in each."""

from regbayes.mixture._estimators import DPMultinomialLogit, GibbsInfiniteSVM

__all__ = ["DPMultinomialLogit", "GibbsInfiniteSVM"]
