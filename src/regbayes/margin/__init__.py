"""The margin term: the Gibbs-augmented classifier and the Crammer-Singer solver."""

from regbayes.margin.crammer_singer import CrammerSingerSolution, crammer_singer
from regbayes.margin.gibbs import GibbsClassifier, check_scale

__all__ = ["CrammerSingerSolution", "GibbsClassifier", "check_scale", "crammer_singer"]
