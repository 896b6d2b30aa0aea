"""iSVM: its expectations against Monte Carlo, its updates against the objective, its manners."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln, log_softmax
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from regbayes.margin.crammer_singer import crammer_singer
from regbayes.mixture import InfiniteSVM, variational
from regbayes.priors import (
    Fixed,
    GammaPrior,
    NormalInverseGamma,
    NormalInverseWishart,
    mean_field,
)

FAMILIES = [NormalInverseGamma, NormalInverseWishart]


def xor(n=120, seed=0):
    """Two far clusters in which the classes lie the opposite way round."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1, 1], n)
    X = np.column_stack([5 * side, np.zeros(n)]) + rng.standard_normal((n, 2))
    return X, np.where(X[:, 1] * side > 0, "up", "down")


def make_model(family=NormalInverseGamma, K=4, n=40, concentration=None, **options):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3)) * [1.0, 2.0, 0.5] + 3 * rng.integers(2, size=(n, 1))
    y = rng.integers(3, size=n)
    prior = mean_field.make_prior(family.from_data(X, 0.3, None, 0.7))
    blocks, X1 = variational.make_inputs(X, prior, fit_intercept=True)
    alpha = GammaPrior(2.0, 1.5) if concentration is None else concentration
    return variational.Model(blocks, X1, y, 3, prior, alpha, K, **options)


def rough_state(model, seed=0):
    """A state that no update has seen: every block is away from its minimum."""
    rng = np.random.default_rng(seed)
    state = variational.init(model, rng)
    log_r = log_softmax(rng.standard_normal(state.log_r.shape), axis=1)
    weights, multipliers, margin = variational.fit_weights(
        replace(model, sweeps=3000), rng, log_r, state.multipliers
    )
    gaussians = mean_field.posterior(model.prior, model.blocks, np.exp(log_r)[::-1])
    return replace(
        state,
        log_r=log_r,
        sticks=state.sticks * rng.uniform(0.5, 2, state.sticks.shape),
        gaussians=gaussians,
        weights=weights,
        multipliers=multipliers,
        margin=margin,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_expected_log_density_and_kl_agree_with_monte_carlo(family):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2)) @ [[1.0, 0.8], [0.0, 0.5]] + 1
    prior = family.from_data(X, 0.5, 5.0, 0.6)
    q, p = prior.posterior(X), mean_field.make_prior(prior)
    blocks, _ = variational.make_inputs(X, p, fit_intercept=False)
    ours = mean_field.posterior(p, blocks, np.ones((len(X), 1)))
    for array, expected in zip(ours, mean_field.make_prior(q)):
        np.testing.assert_allclose(array, expected)

    def log_densities():
        mu, covariance = q.draw(rng)
        covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
        return multivariate_normal(mu, covariance).logpdf(X)

    draws = np.array([log_densities() for _ in range(1500)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    found = mean_field.log_density(blocks, ours)[:, 0]
    assert np.all(np.abs(found - draws.mean(axis=0)) < 4 * error)
    # The bound is tight for an exact posterior: KL - E[log p(X | .)] = -log p(X).
    bound = mean_field.kl_gaussians(ours, p) - found.sum()
    assert bound == pytest.approx(-prior.log_marginal(X))


def test_fractional_counts_weigh_points():
    prior = mean_field.make_prior(NormalInverseWishart(np.zeros(2), 0.5, 4.0, np.eye(2)))
    X = np.random.default_rng(0).standard_normal((6, 2))
    blocks, _ = variational.make_inputs(X, prior, fit_intercept=False)
    twice, _ = variational.make_inputs(np.repeat(X, 2, axis=0), prior, fit_intercept=False)
    halves = mean_field.posterior(prior, twice, np.full((12, 1), 0.5))
    for a, b in zip(halves, mean_field.posterior(prior, blocks, np.ones((6, 1)))):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("alpha", [Fixed(0.7), GammaPrior(2.0, 3.0)])
def test_stick_terms_agree_with_monte_carlo(alpha):
    rng = np.random.default_rng(0)
    sticks = np.array([[3.0, 2.0], [1.5, 4.0], [2.0, 1.0]])
    v = rng.beta(*sticks[:2].T, size=(200_000, 2))
    log_pi = np.column_stack([np.log(v[:, 0]), np.log(v[:, 1]), 0 * v[:, 0]])
    log_pi[:, 1:] += np.log1p(-v).cumsum(axis=1)
    flat = mean_field.Gaussians(
        np.zeros((3, 1, 1)), np.ones(3), np.full(3, 2.0), np.ones((3, 1, 1, 1))
    )
    fit = variational.log_fit(np.zeros((1, 1, 1)), sticks, flat)[0]
    fit -= mean_field.log_density(np.zeros((1, 1, 1)), flat)[0]
    np.testing.assert_allclose(fit, log_pi.mean(axis=0), atol=0.02)

    a = np.full(len(v), 0.7) if isinstance(alpha, Fixed) else rng.gamma(2, 1 / 3, len(v))
    log_q = sum(
        (s - 1) * np.log(v[:, k]) + (t - 1) * np.log1p(-v[:, k]) - betaln(s, t)
        for k, (s, t) in enumerate(sticks[:2])
    )
    log_p = 2 * np.log(a) + (a - 1) * np.log1p(-v).sum(axis=1)
    kl = mean_field.kl_sticks(sticks, alpha)
    assert kl == pytest.approx(np.mean(log_q - log_p), abs=0.03)


def test_kl_of_gammas():
    q, p = GammaPrior(3.0, 2.0), GammaPrior(1.0, 0.5)
    draws = np.random.default_rng(0).gamma(3, 1 / 2, 200_000)
    expected = np.mean(q.log_density(draws) - p.log_density(draws))
    assert mean_field.kl_gamma(q, p) == pytest.approx(expected, abs=0.01)
    assert mean_field.kl_gamma(p, p) == pytest.approx(0)


@pytest.mark.parametrize("family", FAMILIES)
def test_closed_form_updates_are_minima(family):
    model = make_model(family)
    state = rough_state(model)
    rng = np.random.default_rng(3)

    def noise(array):
        return array * np.exp(0.05 * rng.standard_normal(array.shape))

    def shaken_gaussians(g):
        tilt = np.eye(g.scale.shape[-1]) + 0.05 * rng.standard_normal(g.scale.shape)
        return mean_field.Gaussians(
            g.mean + 0.05 * rng.standard_normal(g.mean.shape),
            noise(g.strength),
            noise(g.df),
            tilt @ g.scale @ tilt.swapaxes(-1, -2),
        )

    updates = {
        "sticks": (variational.update_sticks, lambda s: noise(s.sticks)),
        "alpha": (
            lambda s: variational.update_alpha(model, s),
            lambda s: GammaPrior(*noise(np.array([s.alpha.shape, s.alpha.rate]))),
        ),
        "gaussians": (
            lambda s: variational.update_gaussians(model, s),
            lambda s: shaken_gaussians(s.gaussians),
        ),
    }
    for name, (update, shake) in updates.items():
        before = variational.objective(model, state)
        state = update(state)
        least = variational.objective(model, state)
        assert least < before, name
        for _ in range(30):
            shaken = replace(state, **{name: shake(state)})
            assert variational.objective(model, shaken) > least, name


def test_sorting_helps_the_sticks():
    model = make_model(concentration=Fixed(2.0))
    state = rough_state(model)
    skewed = log_softmax(state.log_r + np.array([0.0, 1.0, 3.0, 0.5]), axis=1)
    state = variational.update_sticks(replace(state, log_r=skewed))
    ordered = variational.update_sticks(variational.sort_components(state))
    assert variational.objective(model, ordered) < variational.objective(model, state)
    sizes = np.exp(ordered.log_r).sum(axis=0)[:-1]
    assert np.all(np.diff(sizes) < 0)


@pytest.mark.parametrize("nu", [0.5, 2.0])
def test_weights_minimise_their_part_and_are_spanned_by_the_multipliers(nu):
    model = make_model(C=0.8, cost=1.5, nu=nu, sweeps=3000)
    state = rough_state(model)
    r, own = np.exp(state.log_r), (np.arange(len(model.y)), model.y)

    def part(weights):
        F = np.einsum("dk,dm,kym->dy", r, model.X1, weights)
        losses = F - F[own][:, None] + 1.5
        losses[own] = 0
        return np.sum(weights**2) / (2 * nu**2) + 2 * 0.8 * losses.max(axis=1).sum()

    assert part(state.weights) == pytest.approx(state.margin)
    spanned = nu**2 * np.einsum("dy,dk,dm->kym", state.multipliers, r, model.X1)
    np.testing.assert_allclose(spanned, state.weights, atol=1e-10)
    assert state.multipliers.max() <= 2 * 0.8 + 1e-12
    rng = np.random.default_rng(0)
    for _ in range(50):
        nearby = state.weights + 0.3 * nu * rng.standard_normal(state.weights.shape)
        assert part(nearby) > state.margin


def test_the_way_of_the_assignments_is_the_natural_gradient():
    # d/dt of the objective, minimised over the weights, along log r + t u is sum r u (log r -
    # target), for the target of the update: finite differences of whole SVMs agree.
    model = make_model(C=0.3, sweeps=20_000)
    state = rough_state(model)
    rng = np.random.default_rng(0)
    fit = variational.log_fit(model.blocks, state.sticks, state.gaussians)
    label_term = np.einsum("dy,dm,kym->dk", state.multipliers, model.X1, state.weights)
    r = np.exp(state.log_r)
    u = rng.standard_normal(r.shape) + label_term  # a way on which labels matter
    u -= np.sum(r * u, axis=1, keepdims=True)
    expected = np.sum(r * u * (state.log_r - fit - label_term))

    def value(t):
        log_r = log_softmax(state.log_r + t * u, axis=1)
        *_, margin = variational.fit_weights(model, rng, log_r, state.multipliers)
        return variational.local_objective(fit, log_r, margin)

    slope = (value(0.02) - value(-0.02)) / 0.04
    without_labels = np.sum(r * u * (state.log_r - fit))
    assert slope == pytest.approx(expected, abs=0.15)
    assert abs(slope - without_labels) > 1.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_no_update_raises_the_objective(family, C):
    model = make_model(family, C=C)
    rng = np.random.default_rng(0)
    state = rough_state(model)
    value, moved = variational.objective(model, state), 0
    updates = [
        variational.update_sticks,
        lambda s: variational.update_alpha(model, s),
        lambda s: variational.update_gaussians(model, s),
        lambda s: variational.update_assignments(model, rng, s),
        lambda s: variational.finish(model, rng, s),
    ]
    for _ in range(10):
        for update in updates:
            last, state = value, update(state)
            value = variational.objective(model, state)
            assert value <= last + 1e-9 * abs(last)
            moved += value < last
    assert moved > 20


def test_one_component_is_the_svm():
    X, y = load_iris(return_X_y=True)
    model = InfiniteSVM(C=0.7, cost=1.3, nu=2.0, max_components=1, random_state=0).fit(X, y)
    inputs = np.column_stack([model._frame.enter(X), np.ones(len(X))])
    rng = np.random.default_rng(0)
    svm = crammer_singer(inputs, y, 3, rng=rng, C=2 * 0.7 * 2.0**2, cost=1.3, tol=1e-4)
    np.testing.assert_allclose(model.weights_[0], svm.weights, atol=0.05)
    np.testing.assert_allclose(model.decision_function(X), inputs @ svm.weights.T, atol=0.1)
    assert model.n_components_ == 1


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_solves_what_one_linear_svm_cannot(covariance):
    X, y = xor()
    new, answers = xor(seed=1)
    assert LinearSVC().fit(X, y).score(new, answers) < 0.7
    model = InfiniteSVM(covariance=covariance, random_state=0).fit(X, y)
    assert model.score(new, answers) > 0.9
    assert model.converged_
    assert np.all(np.diff(model.objective_) <= 0)
    # No component has rows of both clusters.
    side = new[:, 0] > 0
    component = model.predict_component(new)
    assert not set(component[side]) & set(component[~side])


def test_answers_follow_the_scores():
    X, y = xor()
    model = InfiniteSVM(random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (len(X),)
    assert np.all((model.decision_function(X) > 0) == (model.predict(X) == model.classes_[1]))
    X, y = load_iris(return_X_y=True)
    model.fit(X, y)
    assert np.all(model.decision_function(X).argmax(axis=1) == model.predict(X))
    assert model.score(X, y) > 0.95
    assert model.counts_.sum() == pytest.approx(len(X))
    assert np.mean(model.labels_ == model.predict_component(X)) > 0.9


def test_same_seed_same_fit_and_more_starts_fit_no_worse():
    X, y = xor(60)
    first, second = (InfiniteSVM(random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.objective_, second.objective_)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    ends = {InfiniteSVM(random_state=seed).fit(X, y).objective_[-1] for seed in range(3)}
    assert len(ends) > 1
    best = InfiniteSVM(random_state=5, n_init=3).fit(X, y)
    assert best.objective_[-1] <= first.objective_[-1]


def test_stops_early_with_a_warning():
    X, y = xor(60)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = InfiniteSVM(max_iter=2, tol=0.0, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_clone_pickle_pipeline_and_grid():
    X, y = xor(60)
    pipeline = make_pipeline(StandardScaler(), InfiniteSVM(max_components=4, random_state=0))
    grid = GridSearchCV(pipeline, {"infinitesvm__C": [0.1, 1.0]}, cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), grid.predict(X))
    twin = clone(grid.best_estimator_).fit(X, y)
    np.testing.assert_array_equal(twin.predict(X), grid.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"alpha": (1.0,)}, "alpha must be"), ({"C": 0.0}, "'C' parameter"), ({}, "one class")],
)
def test_errors_name_the_culprit(options, message):
    X, y = xor(20)
    with pytest.raises(ValueError, match=message):
        InfiniteSVM(**options).fit(X, y if options else ["only"] * len(X))
