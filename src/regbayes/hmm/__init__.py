"""Sequences with hidden states, as many as the data ask for."""

from regbayes.hmm._finite import CategoricalHMM, GaussianHMM
from regbayes.hmm._infinite_hmm import InfiniteHMM
from regbayes.hmm._large_margin import LargeMarginHMM
from regbayes.hmm._markov_switching import MarkovSwitchingMED
from regbayes.hmm._max_margin import MaxMarginInfiniteHMM

__all__ = [
    "CategoricalHMM",
    "GaussianHMM",
    "InfiniteHMM",
    "LargeMarginHMM",
    "MarkovSwitchingMED",
    "MaxMarginInfiniteHMM",
]
