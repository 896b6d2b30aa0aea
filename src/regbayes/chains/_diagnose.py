"""Have the chains met, and are there enough draws?

References
----------
- Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021). Rank-normalization, folding, and
  localization: an improved R-hat. Bayesian Analysis 16(2).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from regbayes.chains._trace import Trace

# Below the first the chains agree, above the second they clearly do not: `fit` warns.
AGREE, APART = 1.01, 1.5
FEW = 20  # draws of a chain that tell nothing
ENOUGH = 100  # effective draws


def numbers(draw: Mapping[str, Any]) -> dict[str, float]:
    """What a draw has one number of. Names of states or components do not matter to these."""
    return {
        name: float(value)
        for name, value in draw.items()
        if isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    }


def r_hat(chains: Sequence[Sequence[float]] | NDArray) -> float:
    """Rank-normalised split R-hat, of the places and of the spread; NaN if it has no meaning.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(r_hat(rng.normal(size=(2, 100))) < 1.05 < r_hat([rng.normal(size=9), np.arange(9)]))
    True
    """
    lengths = [len(chain) for chain in chains if len(chain)]
    half = min(lengths, default=0) // 2
    if half < 2:
        return np.nan
    draws = np.array([chain[: min(lengths)] for chain in chains if len(chain)], dtype=float)
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    if not np.isfinite(split).all() or np.ptp(split) == 0:
        return np.nan
    folded = np.abs(split - np.median(split))
    return max(_plain_r_hat(_normal_scores(split)), _plain_r_hat(_normal_scores(folded)))


def _normal_scores(draws: NDArray) -> NDArray:
    ranks = rankdata(draws).reshape(draws.shape)
    return ndtri((ranks - 3 / 8) / (draws.size + 1 / 4))


def _plain_r_hat(draws: NDArray) -> float:
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = draws.mean(axis=1).var(ddof=1)
    if within == 0:
        return np.inf if between > 0 else np.nan
    return float(np.sqrt((n - 1) / n + between / within))


@dataclass(frozen=True)
class Quantity:
    """How well one quantity is known: R-hat, and effective draws of its bulk and its tails."""

    r_hat: float
    ess_bulk: float
    ess_tail: float


@dataclass(frozen=True)
class Diagnosis:
    """What :meth:`SamplerMixin.diagnose` finds.

    Attributes
    ----------
    quantities : dict of str to Quantity
    verdict : str
        What to do.
    good : bool
        Whether there is nothing to do.
    """

    quantities: dict[str, Quantity]
    verdict: str
    good: bool

    def __str__(self) -> str:
        rows = [f"{'':16}{'R-hat':>8}{'ESS bulk':>10}{'ESS tail':>10}"]
        rows += [
            f"{name:16}{q.r_hat:8.3f}{q.ess_bulk:10.0f}{q.ess_tail:10.0f}"
            for name, q in self.quantities.items()
        ]
        return "\n".join([*rows, self.verdict])


class SamplerMixin:
    """What every sampler can say about its chains."""

    def diagnose(self: Any) -> Diagnosis:
        """Whether the chains agree, and whether there are enough draws.

        R-hat and effective sample sizes of the numbers in `trace_`: how many parts there are,
        the joint density, concentrations. They do not depend on how the parts are called. Needs
        ArviZ (``pip install "regbayes[arviz]"``).

        Returns
        -------
        Diagnosis
        """
        check_is_fitted(self)
        return diagnose(self.trace_)


def diagnose(trace: Trace) -> Diagnosis:
    """See :meth:`SamplerMixin.diagnose`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> trace = Trace([[{"x": x} for x in rng.normal(size=500)] for _ in range(2)])
    >>> print(diagnose(trace))
                       R-hat  ESS bulk  ESS tail
    x                  1.002       999       987
    The chains agree, and there are enough draws.
    """
    import arviz

    found = {}
    for name in numbers(trace.chains[0][0]):
        draws = trace[name].astype(float)
        if np.ptp(draws) == 0 or not np.isfinite(draws).all():
            continue  # fixed by the user, or nothing to say
        bulk, tail = (float(arviz.ess(draws, method=method)) for method in ("bulk", "tail"))
        found[name] = Quantity(r_hat(draws), bulk, tail)
    return Diagnosis(found, *_judge(trace, found))


def _judge(trace: Trace, found: Mapping[str, Quantity]) -> tuple[str, bool]:
    if trace.n_draws < FEW or not found:
        return f"{trace.n_draws} draws of a chain tell nothing: keep {FEW} or more.", False
    worst = max(found, key=lambda name: found[name].r_hat)
    if found[worst].r_hat > APART:
        return (
            f"The chains disagree about {worst} (R-hat {found[worst].r_hat:.2f}): run twice as "
            "long, with burn_in and n_draws doubled, and look at plot_trace.",
            False,
        )
    rarest = min(found, key=lambda name: min(found[name].ess_bulk, found[name].ess_tail))
    least = min(found[rarest].ess_bulk, found[rarest].ess_tail)
    factor = max(2, int(np.ceil(ENOUGH / max(least, 1.0))))
    times = "twice" if factor == 2 else f"{factor} times"
    if least < ENOUGH:
        return (
            f"Run {times} as long: of {len(trace)} draws, {least:.0f} are worth something for "
            f"{rarest}.",
            False,
        )
    if found[worst].r_hat > AGREE:
        return f"Run twice as long: the R-hat of {worst} is still above {AGREE}.", False
    if trace.n_chains == 1:
        return "One chain agrees with itself; run two or more to be sure.", False
    return "The chains agree, and there are enough draws.", True


def warn_when_apart(trace: Trace, name: str) -> None:
    """Warn if the chains of a fit disagree about how many parts there are.

    Or about the joint density, if their number is fixed. In runs as short as the defaults, scales
    and concentrations often do, which hardly matters to predictions; `diagnose` tells of them.
    """
    if trace.n_chains < 2 or trace.n_draws < FEW:
        return
    seen = numbers(trace.chains[0][0])
    sizes = [key for key in seen if key.startswith("n_")]
    values = {key: r_hat(trace[key]) for key in sizes or seen.keys() & {"log_joint"}}
    for key, value in values.items():
        if value > APART:
            warnings.warn(
                f"the chains of {name} disagree about {key}: R-hat is {value:.2f}, and close to 1 "
                "if they agree. Raise burn_in and n_draws; diagnose() says more.",
                ConvergenceWarning,
                stacklevel=6,
            )
