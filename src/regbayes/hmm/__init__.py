"""Sequences with hidden states, as many as the data ask for."""

from regbayes.hmm._estimators import InfiniteHMM, MaxMarginInfiniteHMM

__all__ = ["InfiniteHMM", "MaxMarginInfiniteHMM"]
