"""Sequences with hidden states, as many as the data ask for."""

from regbayes.hmm._estimators import InfiniteHMM, MaxMarginInfiniteHMM
from regbayes.hmm._finite import CategoricalHMM, GaussianHMM
from regbayes.hmm._markov_switching import MarkovSwitchingMED

__all__ = [
    "CategoricalHMM",
    "GaussianHMM",
    "InfiniteHMM",
    "MarkovSwitchingMED",
    "MaxMarginInfiniteHMM",
]
