"""Priors: frozen dataclasses that know their posterior, their draws and their predictive law."""

from regbayes.priors.concentration import Fixed, GammaPrior, as_concentration_prior
from regbayes.priors.dirichlet import Dirichlet
from regbayes.priors.dirichlet_process import DirichletProcess
from regbayes.priors.gaussian import gaussian_prior
from regbayes.priors.hierarchical import HierarchicalDirichlet, Transitions
from regbayes.priors.indian_buffet import BetaBernoulli, IndianBuffet
from regbayes.priors.normal_inverse_gamma import NormalInverseGamma
from regbayes.priors.normal_inverse_wishart import NormalInverseWishart
from regbayes.priors.proportions import (
    AsymmetricDirichlet,
    HierarchicalProportions,
    Proportions,
)
from regbayes.priors.stick_breaking import StickBreaking

__all__ = [
    "AsymmetricDirichlet",
    "BetaBernoulli",
    "Dirichlet",
    "DirichletProcess",
    "Fixed",
    "GammaPrior",
    "HierarchicalDirichlet",
    "HierarchicalProportions",
    "IndianBuffet",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "Proportions",
    "StickBreaking",
    "Transitions",
    "as_concentration_prior",
    "gaussian_prior",
]
