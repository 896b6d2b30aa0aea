"""What the sampled HMMs share on scikit-learn's side: all but the labels, and no mathematics."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from regbayes import chains
from regbayes.data import (
    Frame,
    ReportMixin,
    SequenceMixin,
    Sequences,
    SequenceTags,
    check_sequences,
)
from regbayes.hmm import beam, prediction
from regbayes.hmm._steps import clusters, observed_steps
from regbayes.hmm.emissions import (
    COVARIANCES,
    CategoricalEmission,
    Emission,
    NoEmission,
    PoissonEmission,
    gaussian_emission,
)
from regbayes.priors import (
    HierarchicalDirichlet,
    as_concentration_prior,
)

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
Values = Literal["continuous", "categorical", "count"]
_VALUES: dict[str | None, Values] = {"categorical": "categorical", "poisson": "count"}


class Start(NamedTuple):
    """How the first states of a chain are found: the parameters of these names."""

    init: str
    n_states: int
    n_label_states: int


def _has_emission(self: Any) -> bool:
    if self.emission is None:
        raise AttributeError(
            "a model with emission=None has no law of the observations to sample from; fit one "
            "with an emission"
        )
    return True


class _InfiniteChain(
    ReportMixin, chains.SamplerMixin, SequenceMixin, CallbackSupportMixin, BaseEstimator
):
    """What the sampled HMMs share: all but the labels."""

    _parameter_constraints: ClassVar[dict] = {
        "emission": [StrOptions({"gaussian", "diag", "categorical", "poisson"})],
        "alpha": [_POSITIVE, tuple, list],
        "gamma": [_POSITIVE, tuple, list],
        "stickiness": [Interval(Real, 0, 1, closed="left"), tuple, list],
        "init": [StrOptions({"kmeans", "random"})],
        "n_init_states": [_COUNT],
        "beam_width": [Interval(Real, 0, 1, closed="right")],
        "mean_strength": [_POSITIVE],
        "covariance_df": [_POSITIVE, None],
        "covariance_scale": [_POSITIVE],
        "symbol_concentration": [_POSITIVE],
        "n_draws": [_COUNT],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [_COUNT],
        "n_chains": [_COUNT],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [_COUNT, Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "warm_start": ["boolean"],
        "checkpoint": chains.CHECKPOINT,
    }

    def decode(self, X: Any, lengths: Any = None) -> Any:
        """The most likely path of states in `best_draw_`, whatever the labels.

        Numbers agree with `states_` and with the rows of the arrays in `best_draw_`.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional
            Lengths of the sequences, when they are stacked in one array.

        Returns
        -------
        list of ndarray of int, or ndarray
            In the layout of `X`.
        """
        sequences = self._new_sequences(X, lengths)
        path = prediction.most_likely_states(self._questions(sequences), self._emission, self._best)
        return sequences.give_back(path)

    @available_if(_has_emission)
    def sample(self, n_steps: int = 100, random_state: Any = None) -> tuple[NDArray, NDArray]:
        """A new sequence from the posterior predictive law.

        Parameters
        ----------
        n_steps : int, default=100
        random_state : int, RandomState, Generator or None

        Returns
        -------
        X : ndarray of shape (n_steps, n_features), or of n_steps symbols
        states : ndarray of int of shape (n_steps,)
            Numbers are those of the draw that was picked.
        """
        check_is_fitted(self)
        rng = np.random.default_rng(chains.draw_seed(random_state))
        draws = list(self.trace_)
        draw = prediction.recall(draws[rng.integers(len(draws))], self._emission)
        X, z = prediction.sample(n_steps, self._emission, draw, rng)
        if self.emission == "categorical":
            X = self.categories_[X]
        elif self.emission != "poisson":
            X = X * self._frame.unit + self._frame.center
        return X, z

    @property
    def means_(self) -> NDArray:
        """Means of the states of `best_draw_` (gaussian, diag, poisson), in the units of X."""
        check_is_fitted(self)
        if self.emission == "poisson":
            return self.best_draw_["rates"]
        if self.emission not in ("gaussian", "diag"):
            raise AttributeError(f"the states of emission={self.emission!r} have no means")
        return self.best_draw_["means"] * self._frame.unit + self._frame.center

    @property
    def covariances_(self) -> NDArray:
        """Covariances of the states of `best_draw_` (gaussian; variances for diag)."""
        check_is_fitted(self)
        if self.emission == "gaussian":
            factors = self.best_draw_["factors"] * self._frame.unit
            return factors @ factors.transpose(0, 2, 1)
        if self.emission == "diag":
            return np.square(self.best_draw_["deviations"] * self._frame.unit)
        raise AttributeError(f"the states of emission={self.emission!r} have no covariances")

    @property
    def transitions_(self) -> NDArray:
        """Transition matrix of `best_draw_`."""
        check_is_fitted(self)
        return self._best.matrix

    @property
    def start_(self) -> NDArray:
        """Probabilities of the first state in `best_draw_`."""
        check_is_fitted(self)
        return self._best.start

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(values=_VALUES.get(self.emission, "continuous"))

    def _sample(self, sequences: Sequences, codes: NDArray | None) -> None:
        """Set up the model, run the chains, pick the draw to look at."""
        self._frame = _frame(sequences, self._values)
        observed = observed_steps(sequences) if self._values != "categorical" else sequences.values
        self._emission = self._make_emission(observed, len(observed))
        new = self._questions(sequences)
        labels = None
        if codes is not None:
            self._classifier = self._make_classifier(new.inputs.shape[1])
            labels = beam.Labels(new.inputs, codes, self._classifier)
        model = beam.Model(
            new.X,
            new.starts,
            self._emission,
            self._make_prior(),
            labels,
            self.beam_width,
            chains.spare_threads(self.n_jobs, self.n_chains),  # work on sequences
        )
        self._run(
            partial(beam.init, model, partial(_first_states, self._start, new.inputs, codes)),
            partial(beam.step, model),
            partial(beam.record, model),
        )
        self.states_ = sequences.give_back(self.best_draw_["z"])

    def _run(self, init: Any, step: Any, record: Any) -> None:
        self._seed = chains.draw_seed(self.random_state, self.checkpoint)
        self.trace_ = chains.run_for(self, init, step, record, self._seed)
        self.best_draw_ = self.trace_.typical("n_states")
        self.n_states_ = self.best_draw_["n_states"]

    def _make_prior(self) -> HierarchicalDirichlet:
        return HierarchicalDirichlet(
            as_concentration_prior(self.alpha, "alpha"),
            as_concentration_prior(self.gamma, "gamma"),
            _check_stickiness(self.stickiness),
        )

    @property
    def _start(self) -> Start:
        return Start(self.init, self.n_init_states, getattr(self, "n_label_states", 1))

    @property
    def _values(self) -> Values:
        return self._sequence_tags().values

    @property
    def _n_symbols(self) -> int:
        return len(self.categories_)

    @property
    def _best(self) -> prediction.Recalled:
        return prediction.recall(
            self.best_draw_, self._emission, getattr(self, "_classifier", None)
        )

    def _make_emission(self, observed: NDArray, n: int) -> Emission:
        """Its prior is about the means and variances of the `n` steps that were observed."""
        if self.emission is None:
            return NoEmission()
        if self.emission == "categorical":
            return CategoricalEmission(self._n_symbols, self.symbol_concentration)
        if self.emission == "poisson":
            rate = 1.0 / np.maximum(observed.mean(axis=0), 1.0 / n)
            return PoissonEmission(np.ones_like(rate), rate)
        return gaussian_emission(
            self._frame.enter(observed),
            COVARIANCES[self.emission],
            self.mean_strength,
            self.covariance_df,
            self.covariance_scale,
        )

    def _questions(self, sequences: Sequences) -> prediction.Questions:
        values = sequences.values
        if self._values == "categorical":
            inputs = np.eye(self._n_symbols)[values] * (values >= 0)[:, None]
            return prediction.Questions(values, sequences.starts, _with_constant(inputs))
        framed = self._frame.enter(values)
        # An unobserved step is the centre of the data to a classifier.
        inputs = _with_constant(np.nan_to_num(framed))
        X = values if self._values == "count" else framed
        return prediction.Questions(X, sequences.starts, inputs)

    def _new_sequences(self, X: Any, lengths: Any) -> Sequences:
        check_is_fitted(self)
        return check_sequences(
            self,
            X,
            lengths,
            values=self._values,
            reset=False,
            categories=getattr(self, "categories_", None),
        )

    def _check_training(self, X: Any, lengths: Any) -> Sequences:
        sequences = check_sequences(self, X, lengths, values=self._values)
        if sequences.categories is not None:
            self.categories_ = sequences.categories
        return sequences


def _first_states(
    start: Start, inputs: NDArray, codes: NDArray | None, rng: np.random.Generator
) -> NDArray:
    n_steps, n_states = len(inputs), min(start.n_states, len(inputs))
    if start.init == "random":
        return rng.integers(n_states, size=n_steps)
    if start.init == "labels" and codes is not None:
        guess = rng.choice(codes[codes >= 0], size=n_steps)
        labels = np.where(codes >= 0, codes, guess)
        return _parts_of(labels, inputs, start.n_label_states, rng)
    return clusters(inputs, inputs, n_states, rng)


def _parts_of(labels: NDArray, inputs: NDArray, n_parts: int, rng: np.random.Generator) -> NDArray:
    """Every label's steps in `n_parts` clusters."""
    if n_parts == 1:
        return labels
    states = np.empty_like(labels)
    for label in np.unique(labels):
        own = labels == label
        parts = clusters(inputs[own], inputs[own], n_parts, rng)
        states[own] = label * n_parts + parts
    return np.unique(states, return_inverse=True)[1]


def _frame(sequences: Sequences, values: Values) -> Frame:
    if values == "categorical":  # symbols have no units
        return Frame(np.zeros(1), 1.0)
    return Frame.of(observed_steps(sequences))


def _with_constant(inputs: NDArray) -> NDArray:
    return np.ascontiguousarray(np.column_stack([inputs, np.ones(len(inputs))]))


def _check_stickiness(value: Any) -> float | tuple[float, float]:
    if isinstance(value, Real):
        return float(value)
    if len(value) == 2 and all(isinstance(v, Real) and 0 < float(v) < np.inf for v in value):
        return float(value[0]), float(value[1])
    raise ValueError(
        f"stickiness must be a number in [0, 1), or a pair (a, b) of positive numbers, its Beta "
        f"prior; got {value!r}. For example stickiness=0.5 or stickiness=(1.0, 1.0)."
    )
