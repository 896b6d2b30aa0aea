"""What a generative model offers to the score spaces, and all that they know about it.

A law p(x, h) = exp(alpha(theta) . T(x, h)) has hidden variables h and statistics T, the first
`n_hidden` of which are of h alone (001, Eq. 3). A tilt is a linear term in the statistics: with it,
posteriors are taken under q(h) ∝ p(x, h) exp(tilt . T(x, h)), which is a law of the same kind.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray


class Batch(Protocol):
    """Samples, as a law reads them."""

    def __len__(self) -> int: ...

    @property
    def sizes(self) -> NDArray:
        """How long each sample is."""

    def take(self, indices: NDArray) -> Batch:
        """Some of the samples."""


class Expected(Protocol):
    """Posterior expectations of a batch, of shape (n_samples, n_segments, ...)."""

    @property
    def statistics(self) -> NDArray: ...

    @property
    def log_likelihoods(self) -> NDArray: ...

    @property
    def entropies(self) -> NDArray: ...


class Law(Protocol):
    """An exponential family with hidden variables."""

    @property
    def names(self) -> list[str]:
        """What the statistics are called."""

    @property
    def n_hidden(self) -> int: ...

    def natural(self) -> NDArray:
        """alpha(theta)."""

    def expect(
        self,
        batch: Any,
        tilt: NDArray | None = None,
        segments: int = 1,
        entropies: bool = False,
        n_threads: int = 1,
    ) -> Expected:
        """Posterior statistics, by position in the sample, under a tilt if there is one.

        The tilt broadcasts to (n_samples, segments, n_statistics).
        """

    def gradient(self, statistics: NDArray) -> NDArray:
        """d log p / d theta from posterior statistics."""

    def pull_gradient(self, statistics: NDArray, directions: NDArray) -> NDArray:
        """d (v . gradient(T)) / d T for directions v, entry by entry, at these statistics T."""

    def maximize(self, totals: NDArray) -> Law:
        """The M-step."""


@runtime_checkable
class Differentiable(Protocol):
    """A law that knows the derivative of its expectations, and needs no difference of two."""

    def slope(
        self, batch: Any, statistics: NDArray, directions: NDArray, n_threads: int = 1
    ) -> NDArray:
        """d sum_s v_s . E[T_s] / d tilt, of a tilt that all samples share."""


class GenerativeModel(Protocol):
    """An estimator of laws: :class:`regbayes.hmm.CategoricalHMM` and its like."""

    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> Any:
        """Samples as a :class:`Batch`; with `reset`, decide on symbols and units."""

    def learn(self, batch: Any) -> Any:
        """The law of samples, by maximum likelihood."""
