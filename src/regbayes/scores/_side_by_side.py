"""Several generative models of the same samples, each of which reads them in its own way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from regbayes.data import SequenceTags
from regbayes.scores.protocol import Batch, Expected, GenerativeModel, Law


class SideBySide(BaseEstimator):
    """Generative models whose statistics stand side by side in one score space.

    What one description of a sequence misses another may have: places and movements, or shapes on
    several scales. As a law of x it is the product of its parts, each of which has hidden variables
    of its own; so every score space can be built on it, and learnt with a margin.

    Parameters
    ----------
    models : list of models with `read` and `learn`
        Such as :class:`~regbayes.hmm.CategoricalHMM`, or :class:`Preprocessed` ones.

    Examples
    --------
    >>> import numpy as np
    >>> from regbayes.data import SequenceFeatures
    >>> from regbayes.hmm import GaussianHMM
    >>> from regbayes.scores import Preprocessed, SideBySide, SufficientStatisticsScore
    >>> places = GaussianHMM(2, random_state=0)
    >>> moves = Preprocessed(SequenceFeatures(use="velocities"), GaussianHMM(2, random_state=0))
    >>> X, y = [np.arange(5.0), np.ones(4), np.arange(9.0), np.zeros(5)], [1, 0, 1, 0]
    >>> scores = SufficientStatisticsScore(SideBySide([places, moves])).fit(X, y)
    >>> str(scores.get_feature_names_out()[0])
    '0|0.first:0'
    """

    def __init__(self, models):
        self.models = models

    def read(self, X: Any, lengths: Any = None, reset: bool = False) -> _Readings:
        """Samples as each of the models reads them.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
        reset : bool, default=False

        Returns
        -------
        Batch
        """
        if reset:
            if len(self.models) == 0:
                raise ValueError("models is empty.\nTo mend it: give at least one model.")
            self.models_: list[GenerativeModel] = [clone(model) for model in self.models]
        return _Readings([model.read(X, lengths, reset) for model in self.models_])

    def learn(self, batch: _Readings) -> _Product:
        """The product of the models' laws.

        Parameters
        ----------
        batch : Batch
            What :meth:`read` gave.

        Returns
        -------
        Law
        """
        return _Product([model.learn(part) for model, part in zip(self.models_, batch.parts)])

    @property
    def n_features_in_(self) -> int:
        first: Any = self.models_[0]
        return first.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        first: Any = self.models_[0]
        return first.feature_names_in_

    def _sequence_tags(self) -> SequenceTags:
        first: Any = self.models[0]
        return replace(first._sequence_tags(), missing_steps=False)


@dataclass(frozen=True, eq=False)
class _Readings:
    """The samples as each model reads them."""

    parts: list[Batch]

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def ids(self) -> Any:
        first: Any = self.parts[0]  # labels are matched by them
        return first.ids

    @property
    def sizes(self) -> NDArray:
        return self.parts[0].sizes

    def take(self, indices: NDArray) -> _Readings:
        return _Readings([part.take(indices) for part in self.parts])


class _Expected(NamedTuple):
    statistics: NDArray
    log_likelihoods: NDArray
    entropies: NDArray


@dataclass(frozen=True, eq=False)
class _Product:
    """Independent laws of several readings; statistics of hidden variables come first."""

    laws: list[Law]

    @property
    def n_hidden(self) -> int:
        return sum(law.n_hidden for law in self.laws)

    @property
    def names(self) -> list[str]:
        return self._join([
            np.array([f"{i}.{name}" for name in law.names], dtype=object)
            for i, law in enumerate(self.laws)
        ]).tolist()  # fmt: skip

    def natural(self) -> NDArray:
        return self._join([law.natural() for law in self.laws])

    def expect(
        self,
        batch: _Readings,
        tilt: NDArray | None = None,
        segments: int = 1,
        entropies: bool = False,
        n_threads: int = 1,
    ) -> _Expected:
        tilts = [None] * len(self.laws) if tilt is None else self._split(tilt)
        found: list[Expected] = [
            law.expect(part, own, segments, entropies, n_threads)
            for law, part, own in zip(self.laws, batch.parts, tilts)
        ]
        return _Expected(
            self._join([one.statistics for one in found]),
            np.sum([one.log_likelihoods for one in found], axis=0),
            np.concatenate([one.entropies for one in found], axis=-1),
        )

    def gradient(self, statistics: NDArray) -> NDArray:
        parts = self._split(statistics)
        return self._join([law.gradient(part) for law, part in zip(self.laws, parts)])

    def pull_gradient(self, statistics: NDArray, directions: NDArray) -> NDArray:
        parts = zip(self.laws, self._split(statistics), self._split(directions))
        return self._join([law.pull_gradient(part, v) for law, part, v in parts])

    def maximize(self, totals: NDArray) -> _Product:
        parts = self._split(totals)
        return _Product([law.maximize(part) for law, part in zip(self.laws, parts)])

    def _join(self, parts: list[NDArray]) -> NDArray:
        ends = [law.n_hidden for law in self.laws]
        hidden = [part[..., :end] for part, end in zip(parts, ends)]
        return np.concatenate(hidden + [p[..., e:] for p, e in zip(parts, ends)], axis=-1)

    def _split(self, joined: NDArray) -> list[NDArray]:
        ends = np.cumsum([law.n_hidden for law in self.laws])
        hidden = np.split(joined[..., : ends[-1]], ends[:-1], axis=-1)
        sizes = [len(law.natural()) - law.n_hidden for law in self.laws]
        rest = np.split(joined[..., ends[-1] :], np.cumsum(sizes)[:-1], axis=-1)
        return [np.concatenate(pair, axis=-1) for pair in zip(hidden, rest)]
