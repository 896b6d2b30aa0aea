"""The Gibbs-augmented multi-class classifier that every max-margin family shares.

Each component `k` (cluster, state, document...) has weights `w[k, y] ~ N(shared[y], nu^2 I)`, and
a label the pseudo-likelihood of :mod:`regbayes.kernels.margin`. With `shared_nu` the components
are partially pooled: `shared[y] ~ N(0, shared_nu^2 I)` is learned, and a component departs from it
only as far as its members ask. Without it, `shared` is zero: the papers' model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.labels import LabelTerm
from regbayes.kernels.margin import draw_shared_weights
from regbayes.kernels.random import draw_gamma
from regbayes.priors import GammaPrior, as_concentration_prior

MOST_INPUTS = 2000  # a draw of weights takes seconds then


@dataclass(frozen=True)
class GibbsClassifier:
    """What is fixed about the classifiers of all components; a `LabelTerm` is what is not.

    Parameters
    ----------
    n_classes, n_inputs : int
        Labels, and inputs with the constant if there is one.
    C : float
        Weight of the margin, `c` in the papers.
    cost : float
        Cost of a wrong label, `ell`.
    nu : float or (shape, rate)
        Scale of the weights about `shared`; a pair is a Gamma prior on the precision 1 / nu^2.
    shared_nu : float, (shape, rate) or None
        The same for the shared weights; None for the papers' model without them.
    softmax : bool
        A multinomial logit in place of the margin (dpMNL).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> classifier = GibbsClassifier(n_classes=3, n_inputs=2, shared_nu=10.0)
    >>> term = classifier.init()
    >>> weights = classifier.draw_prior_weights(rng, term, 5)
    >>> weights.shape
    (5, 3, 2)
    >>> classifier.draw_term(rng, term, weights).mean.shape
    (3, 2)
    """

    n_classes: int
    n_inputs: int
    C: float = 1.0
    cost: float = 1.0
    nu: float | tuple[float, float] = 1.0
    shared_nu: float | tuple[float, float] | None = None
    softmax: bool = False

    def __post_init__(self) -> None:
        if not self.softmax and self.n_inputs > MOST_INPUTS:
            raise ValueError(
                f"The margin would see {self.n_inputs} inputs, and draws weights by matrices of so "
                f"many rows and columns; there is time for {MOST_INPUTS}.\nTo mend it: choose or "
                "project columns (SelectKBest, PCA), merge rare symbols, or ask for fewer topics."
            )

    def term(self, nu: float, shared_weights: NDArray, shared_nu: float) -> LabelTerm:
        """The label term at these values, for the kernels."""
        return LabelTerm(
            self.softmax,
            float(self.C),
            float(self.cost),
            float(nu),
            shared_weights,
            float(shared_nu),
        )

    def init(self) -> LabelTerm:
        """The start of a chain: the precisions at their prior means, no shared weights yet."""
        shared_weights = np.zeros((self.n_classes, self.n_inputs))
        shared_nu = 1.0 if self.shared_nu is None else self.shared_nu
        return self.term(_start(self.nu), shared_weights, _start(shared_nu))

    def draw_prior_weights(self, rng: np.random.Generator, term: LabelTerm, n: int) -> NDArray:
        """Weights of `n` components from their prior."""
        return term.mean + term.nu * rng.standard_normal((n, self.n_classes, self.n_inputs))

    def draw_term(self, rng: np.random.Generator, term: LabelTerm, weights: NDArray) -> LabelTerm:
        """The shared weights, then the scale, given the weights `[K, L, M]` of the components."""
        if self.shared_nu is not None:
            mean = np.empty_like(term.mean)
            draw_shared_weights(rng, weights, term.nu, term.mean_nu, mean)
            term = term._replace(mean=mean, mean_nu=_draw_scale(rng, self.shared_nu, mean))
        return term._replace(nu=_draw_scale(rng, self.nu, weights - term.mean))

    def log_prior(self, term: LabelTerm, weights: NDArray) -> float:
        """log density of the weights and of the shared weights."""
        total = _log_normal(weights - term.mean, term.nu)
        if self.shared_nu is not None:
            total += _log_normal(term.mean, term.mean_nu)
        return total


def _start(scale: float | tuple[float, float]) -> float:
    return math.sqrt(scale[1] / scale[0]) if isinstance(scale, tuple) else scale


def _draw_scale(
    rng: np.random.Generator, scale: float | tuple[float, float], deviations: NDArray
) -> float:
    """The scale of N(0, scale^2) given draws from it, if it is not fixed."""
    if not isinstance(scale, tuple):
        return scale
    shape = scale[0] + 0.5 * deviations.size
    rate = scale[1] + 0.5 * float(np.square(deviations).sum())
    return math.sqrt(rate / draw_gamma(rng, shape))


def _log_normal(deviations: NDArray, scale: float) -> float:
    squares = np.square(deviations).sum() / scale**2
    return float(-0.5 * squares - deviations.size * np.log(scale * np.sqrt(2.0 * np.pi)))


def check_scale(nu: Any, name: str) -> float | tuple[float, float]:
    """Read a user's scale of weights: a number, or the (shape, rate) of 1 / nu^2."""
    prior = as_concentration_prior(nu, name)
    return (prior.shape, prior.rate) if isinstance(prior, GammaPrior) else prior.value
