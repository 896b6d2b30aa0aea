"""The law of a concentration parameter: fixed, or Gamma with its auxiliary-variable update.

References
----------
- Escobar & West (1995). Bayesian density estimation and inference using mixtures. JASA 90.
- Teh, Jordan, Beal & Blei (2006). Hierarchical Dirichlet processes. JASA 101, appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from regbayes.kernels.random import draw_concentration, draw_gamma
from regbayes.priors._common import check_positive, is_positive


@dataclass(frozen=True)
class GammaPrior:
    """Gamma prior with density proportional to ``x ** (shape - 1) * exp(-rate * x)``.

    Examples
    --------
    >>> import numpy as np
    >>> prior = GammaPrior(shape=2.0, rate=4.0)
    >>> prior.mean
    0.5
    >>> prior.draw_concentration(1.0, 3, 100, np.random.default_rng(0)) > 0
    True
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", check_positive(self.shape, "shape"))
        object.__setattr__(self, "rate", check_positive(self.rate, "rate"))

    @property
    def mean(self) -> float:
        return self.shape / self.rate

    def draw(self, rng: np.random.Generator) -> float:
        return _draw_gamma(rng, self.shape, self.rate)

    def log_density(self, x: Any) -> Any:
        """Log density, elementwise; ``-inf`` for ``x <= 0``."""
        x = np.asarray(x, dtype=np.float64)
        safe = np.where(x > 0, x, 1.0)
        value = (
            self.shape * np.log(self.rate)
            - gammaln(self.shape)
            + (self.shape - 1) * np.log(safe)
            - self.rate * safe
        )
        return np.where(x > 0, value, -np.inf)[()]

    def draw_concentration(
        self, alpha: float, n_components: int, n_points: Any, rng: np.random.Generator
    ) -> float:
        """One Gibbs update of a DP concentration given the number of components.

        Parameters
        ----------
        alpha : float
            Current value.
        n_components : int
            Occupied components; with several groups, their tables in total.
        n_points : int or array of int
            Points, or points of each group when several Dirichlet processes share ``alpha``
            (Teh et al. 2006). One group is the update of Escobar and West (1995).
        rng : numpy.random.Generator

        Returns
        -------
        float
        """
        sizes = np.atleast_1d(np.asarray(n_points, dtype=np.float64))
        n_groups = int(np.count_nonzero(sizes))
        if n_components < n_groups:
            raise ValueError(
                f"n_components={n_components} is less than the {n_groups} non-empty group(s); "
                "each has at least one component. Count the occupied components (tables)."
            )
        return draw_concentration(rng, alpha, self.shape, self.rate, n_components, sizes)


@dataclass(frozen=True)
class Fixed:
    """A known concentration, with the interface of :class:`GammaPrior`.

    Examples
    --------
    >>> import numpy as np
    >>> Fixed(2.0).draw(np.random.default_rng(0))
    2.0
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_positive(self.value, "value"))

    @property
    def mean(self) -> float:
        return self.value

    def draw(self, rng: np.random.Generator) -> float:
        return self.value

    def log_density(self, x: Any) -> Any:
        """Zero at the value and ``-inf`` elsewhere: the law is a point mass."""
        return np.where(np.asarray(x) == self.value, 0.0, -np.inf)[()]

    def draw_concentration(
        self, alpha: float, n_components: int, n_points: Any, rng: np.random.Generator
    ) -> float:
        return self.value


def as_concentration_prior(value: Any, name: str) -> Fixed | GammaPrior:
    """Read a user's concentration: a number fixes it, a ``(shape, rate)`` pair is a Gamma prior.

    Parameters
    ----------
    value : float or pair of float
    name : str
        The user's name for the parameter, for the error message.

    Examples
    --------
    >>> as_concentration_prior(2, "alpha")
    Fixed(value=2.0)
    >>> as_concentration_prior((1, 0.5), "alpha")
    GammaPrior(shape=1.0, rate=0.5)
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if is_positive(value):
        return Fixed(value)
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_positive, value)):
        return GammaPrior(*value)
    raise ValueError(
        f"{name} must be a positive number, which fixes it, or a (shape, rate) pair of positive "
        f"numbers, its Gamma prior; got {value!r}. For example {name}=1.0 or {name}=(1.0, 1.0)."
    )


def _draw_gamma(rng: np.random.Generator, shape: float, rate: float) -> float:
    # A rate above 1 could push a floored draw to zero.
    return max(draw_gamma(rng, shape) / rate, float(np.finfo(np.float64).tiny))
