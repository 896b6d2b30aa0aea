"""The margin term: the Gibbs-augmented classifier, the Crammer-Singer solver, averages of it."""

from regbayes.margin.averaged import AveragedFit, average_scores, fit_averaged, label_evidence
from regbayes.margin.crammer_singer import CrammerSingerSolution, crammer_singer
from regbayes.margin.gibbs import GibbsClassifier, check_scale

__all__ = [
    "AveragedFit",
    "CrammerSingerSolution",
    "GibbsClassifier",
    "average_scores",
    "check_scale",
    "crammer_singer",
    "fit_averaged",
    "label_evidence",
]
