"""The Gibbs-augmented multi-class classifier that every max-margin family shares.

Each component `k` (cluster, state, document...) has weights `w[k, y] ~ N(shared[y], nu^2 I)`, and
a label the pseudo-likelihood of :mod:`regbayes.kernels.margin`. With `shared_nu` the components
are partially pooled: `shared[y] ~ N(0, shared_nu^2 I)` is learned, and a component departs from it
only as far as its members ask. Without it, `shared` is zero: the papers' model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.labels import LabelTerm
from regbayes.kernels.margin import draw_shared_weights
from regbayes.kernels.random import draw_gamma
from regbayes.priors import GammaPrior, as_concentration_prior


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
    shared_nu : float or None
        Scale of the shared weights; None for the papers' model without them.
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
    shared_nu: float | None = None
    softmax: bool = False

    def term(self, nu: float, shared_weights: NDArray) -> LabelTerm:
        """The label term at these values, for the kernels."""
        return LabelTerm(self.softmax, float(self.C), float(self.cost), float(nu), shared_weights)  # type: ignore[arg-type]

    def init(self) -> LabelTerm:
        """The start of a chain: the precision at its prior mean, no shared weights yet."""
        nu = np.sqrt(self.nu[1] / self.nu[0]) if isinstance(self.nu, tuple) else self.nu
        return self.term(nu, np.zeros((self.n_classes, self.n_inputs)))

    def draw_prior_weights(self, rng: np.random.Generator, term: LabelTerm, n: int) -> NDArray:
        """Weights of `n` components from their prior."""
        return term.mean + term.nu * rng.standard_normal((n, self.n_classes, self.n_inputs))

    def draw_term(self, rng: np.random.Generator, term: LabelTerm, weights: NDArray) -> LabelTerm:
        """The shared weights, then the scale, given the weights `[K, L, M]` of the components."""
        mean, nu = term.mean, term.nu
        if self.shared_nu is not None:
            mean = np.empty_like(mean)
            draw_shared_weights(rng, weights, nu, self.shared_nu, mean)
        if isinstance(self.nu, tuple):
            shape = self.nu[0] + 0.5 * weights.size
            rate = self.nu[1] + 0.5 * np.square(weights - mean).sum()
            nu = float(np.sqrt(rate / draw_gamma(rng, shape)))
        return term._replace(mean=mean, nu=nu)

    def log_prior(self, term: LabelTerm, weights: NDArray) -> float:
        """log density of the weights and of the shared weights."""
        total = _log_normal(weights - term.mean, term.nu)
        if self.shared_nu is not None:
            total += _log_normal(term.mean, self.shared_nu)
        return total


def _log_normal(deviations: NDArray, scale: float) -> float:
    squares = np.square(deviations).sum() / scale**2
    return float(-0.5 * squares - deviations.size * np.log(scale * np.sqrt(2.0 * np.pi)))


def check_scale(nu: Any, name: str) -> float | tuple[float, float]:
    """Read a user's scale of weights: a number, or the (shape, rate) of 1 / nu^2."""
    prior = as_concentration_prior(nu, name)
    return (prior.shape, prior.rate) if isinstance(prior, GammaPrior) else prior.value
