"""The margin term: the Gibbs-augmented classifier and the Crammer-Singer solver."""

from regbayes.margin.gibbs import GibbsClassifier, check_scale

__all__ = ["GibbsClassifier", "check_scale"]
