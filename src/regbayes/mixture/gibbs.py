"""Collapsed Gibbs sampling for DP mixtures of classifiers: GiSVM and dpMNL.

    z ~ CRP(alpha),  x | z = k ~ N(mu_k, Sigma_k),  (mu, Sigma) ~ NIW,  w_k ~ N(shared, nu^2 I)

times the label factor of component z: the margin (GiSVM; Zhang, Zhu & Zhang 2014, Section 4.1) or
a softmax (dpMNL; Shahbaba & Neal 2009). The Gaussians are integrated out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regbayes.kernels.labels import LabelTerm, draw_all_label_weights
from regbayes.kernels.mixture import (
    Base,
    Components,
    Table,
    add_iterated_votes,
    add_votes,
    assign,
    collect_all,
    log_base_density,
    log_joint_data,
    nearest_components,
)
from regbayes.margin import GibbsClassifier
from regbayes.priors import (
    DirichletProcess,
    Fixed,
    GammaPrior,
    NormalInverseGamma,
    NormalInverseWishart,
)


@dataclass(frozen=True)
class Model:
    """What stays fixed over a chain."""

    table: Table
    base: Base
    classifier: GibbsClassifier
    concentration: Fixed | GammaPrior
    max_components: int
    n_init: int = 10
    weight_passes: int = 1


@dataclass(frozen=True)
class State:
    """What a sweep changes. Only the first `n_components` rows of `components` are in use."""

    z: NDArray[np.int64]
    components: Components
    n_components: int
    term: LabelTerm
    alpha: float


def init(model: Model, rng: np.random.Generator) -> State:
    """Random assignments to a few components (000, end of Section 4.1)."""
    n_points, n_features = model.table.X.shape
    n_start = min(model.n_init, model.max_components, n_points)
    _, z = np.unique(rng.integers(n_start, size=n_points), return_inverse=True)
    n_components = int(z.max()) + 1
    term = model.classifier.init()
    components = Components(
        counts=np.zeros(n_components, dtype=np.int64),
        mean=np.zeros((n_features, n_components)),
        factor=np.zeros((*model.base.factor.shape, n_components)),
        constant=np.zeros(n_components),
        log_size=np.zeros(n_components),
        weights=model.classifier.draw_prior_weights(rng, term, n_components),
    )
    state = State(z.astype(np.int64), components, n_components, term, model.concentration.mean)
    return draw_weights(model, rng, state)


def step(model: Model, rng: np.random.Generator, state: State) -> State:
    """One sweep; every line is one conditional."""
    state = draw_assignments(model, rng, state)  # Eqs. 17, 18
    state = draw_weights(model, rng, state)  # Eqs. 19-23
    state = draw_term(model, rng, state)  # the shared weights and the scale
    return draw_alpha(model, rng, state)  # Escobar & West (1995)


def draw_assignments(model: Model, rng: np.random.Generator, state: State) -> State:
    """z | weights, datum by datum; the Gaussians are integrated out."""
    z, components, n_components = state.z.copy(), state.components, state.n_components
    collect_all(model.table.X, z, n_components, components, model.base)
    done = 0
    while done < len(z):
        if n_components == len(components.counts):
            room = min(2 * n_components, model.max_components)
            components = _resized(components, max(room, n_components + 1))
        done, n_components = assign(
            rng,
            done,
            model.table,
            z,
            n_components,
            components,
            model.base,
            state.term,
            state.alpha,
            model.max_components,
        )
        if done < 0:
            raise FloatingPointError(
                "the density of a datum under every component is not a number; scale the inputs "
                "(for example with sklearn.preprocessing.StandardScaler) or lower C"
            )
    return replace(state, z=z, components=components, n_components=n_components)


def draw_weights(model: Model, rng: np.random.Generator, state: State) -> State:
    """weights | z, by augmentation (margin) or elliptical slices (softmax)."""
    for _ in range(model.weight_passes):
        draw_all_label_weights(
            rng,
            model.table.X1,
            model.table.y,
            state.z,
            state.components.weights[: state.n_components],
            state.term,
        )
    return state


def draw_term(model: Model, rng: np.random.Generator, state: State) -> State:
    """shared, nu | weights."""
    weights = state.components.weights[: state.n_components]
    return replace(state, term=model.classifier.draw_term(rng, state.term, weights))


def draw_alpha(model: Model, rng: np.random.Generator, state: State) -> State:
    """alpha | number of components."""
    alpha = model.concentration.draw_concentration(
        state.alpha, state.n_components, len(state.z), rng
    )
    return replace(state, alpha=alpha)


def record(model: Model, state: State) -> Mapping[str, Any]:
    """What a draw keeps: sizes and assignments to look at, the rest to predict with."""
    used = _resized(state.components, state.n_components)
    return {
        "n_components": state.n_components,
        "alpha": state.alpha,
        "nu": state.term.nu,
        "log_joint": log_joint(model, state),
        "z": state.z.astype(np.int32),
        "shared_weights": state.term.mean,
        "shared_nu": state.term.mean_nu,
        **used._asdict(),
    }


def recall(
    classifier: GibbsClassifier, draw: Mapping[str, Any]
) -> tuple[Components, LabelTerm, float]:
    """Components, label term and concentration of a recorded draw."""
    # Arrays of a memory-mapped model are read-only, another type to numba: it would compile anew.
    arrays = {key: np.require(value, requirements="W") for key, value in draw.items()}
    components = Components(*(arrays[name] for name in Components._fields))
    term = classifier.term(draw["nu"], arrays["shared_weights"], draw["shared_nu"])
    return components, term, draw["alpha"]


def predict_marginal(
    table: Table, base: Base, classifier: GibbsClassifier, draws: Sequence[Mapping[str, Any]]
) -> NDArray:
    """Votes of all draws, every component weighed by its exact posterior probability."""
    votes = np.zeros((len(table.X), classifier.n_classes))
    for draw in draws:
        components, term, alpha = recall(classifier, draw)
        add_votes(table, components, base, term, alpha, votes)
    return votes


def predict_iterated(
    table: Table,
    base: Base,
    classifier: GibbsClassifier,
    draws: Sequence[Mapping[str, Any]],
    n_rounds: int,
    rng: np.random.Generator,
) -> NDArray:
    """Votes of all draws by the paper's alternation of states and answers (Section 4.3)."""
    votes = np.zeros((len(table.X), classifier.n_classes))
    for draw in draws:
        components, term, alpha = recall(classifier, draw)
        add_iterated_votes(rng, table, components, base, term, alpha, n_rounds, votes)
    return votes


def most_likely_component(
    table: Table, base: Base, classifier: GibbsClassifier, draw: Mapping[str, Any]
) -> NDArray[np.int64]:
    """The component of a draw that each datum most likely belongs to, whatever its label."""
    components, _, _ = recall(classifier, draw)
    return nearest_components(table, components, base)


def log_joint(model: Model, state: State) -> float:
    """log p(z, weights, shared, X) phi(y), up to constants: to watch convergence by."""
    weights = state.components.weights[: state.n_components]
    prior = DirichletProcess(state.alpha).log_partition_probability(state.z)
    prior += model.classifier.log_prior(state.term, weights)
    return prior + log_joint_data(
        model.table, state.z, state.n_components, state.components, model.base, state.term
    )


def make_base(prior: NormalInverseWishart | NormalInverseGamma) -> Base:
    """The prior of a component in the form the kernels read."""
    if isinstance(prior, NormalInverseWishart):
        factor = prior.chol_scale
    elif len(prior.mean) == 1:  # in one dimension the two are the same
        factor = np.sqrt(prior.scale)[:, None]
    else:
        factor = prior.scale[None, :]
    return Base(np.array(prior.mean), np.array(factor), float(prior.strength), float(prior.df))


def make_table(X: NDArray, y: NDArray[np.int64], base: Base, fit_intercept: bool) -> Table:
    """The data in the form the kernels read."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    X1 = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    return Table(X, np.ascontiguousarray(X1), y, log_base_density(X, base))


def _resized(components: Components, n: int) -> Components:
    """Copies of the arrays with room for `n` components."""

    def resized(array: NDArray, axis: int) -> NDArray:
        kept = np.take(array, np.arange(min(n, array.shape[axis])), axis)
        missing = [(0, 0)] * array.ndim
        missing[axis] = (0, n - kept.shape[axis])
        return np.ascontiguousarray(np.pad(kept, missing))

    return Components(
        counts=resized(components.counts, 0),
        mean=resized(components.mean, -1),
        factor=resized(components.factor, -1),
        constant=resized(components.constant, 0),
        log_size=resized(components.log_size, 0),
        weights=resized(components.weights, 0),
    )
