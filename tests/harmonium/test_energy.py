"""The mathematics: every gradient by finite differences, every posterior by quadrature."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.special import expit, softmax

from regbayes.harmonium import energy
from regbayes.harmonium.energy import Batch, Model, Parameters
from regbayes.harmonium.margins import InsensitiveMargin, MultiClassMargin
from regbayes.harmonium.units import (
    BernoulliView,
    BinaryUnits,
    CountView,
    GaussianView,
    RealUnits,
)

KINDS = {"gaussian": GaussianView(), "bernoulli": BernoulliView(), "count": CountView()}
LOG_ODDS = np.array([0.7, -0.4, -1.5])
MARGINS = {
    "none": None,
    "classes": MultiClassMargin(3, C=1.7, cost=0.8),
    "numbers": InsensitiveMargin(C=0.9, epsilon=0.1),
}


def problem(kinds, units, margin=None, n=7, n_columns=4, n_units=3, learn_variance=False, seed=0):
    rng = np.random.default_rng(seed)
    draw = {
        "gaussian": lambda: rng.standard_normal((n, n_columns)),
        "bernoulli": lambda: (rng.random((n, n_columns)) < 0.4).astype(float),
        "count": lambda: rng.poisson(1.5, (n, n_columns)).astype(float),
    }
    views = tuple(draw[kind]() for kind in kinds)
    totals = tuple(x.sum(axis=1) if k == "count" else None for k, x in zip(kinds, views))
    target = rng.integers(3, size=n) if isinstance(margin, MultiClassMargin) else rng.random(n)
    n_outputs = 0 if margin is None else margin.n_outputs

    def some(*shape):
        return 0.4 * rng.standard_normal(shape)

    params = Parameters(
        tuple(some(n_columns, n_units) for _ in kinds),
        tuple(some(n_columns) for _ in kinds),
        some(n_units),
        some(len(kinds)) if learn_variance else np.zeros(len(kinds)),
        some(1) if learn_variance else np.zeros(1),
        2.5 * some(n_units, n_outputs),
        some(n_outputs),
    )
    model = Model(tuple(KINDS[k] for k in kinds), units, margin, learn_variance)
    return model, params, Batch(views, totals, target)


def differences(f, params, step=1e-6):
    """The gradient of f, entry by entry."""
    out = []
    for i, array in enumerate(params):
        slope = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                moved = [a.copy() for a in params]
                moved[i][place] += sign * step
                sides.append(f(params.like(moved)))
            slope[place] = (sides[0] - sides[1]) / (2 * step)
        out.append(slope)
    return params.like(out)


def free_energy(model, params, views, log_odds, means_of=None):
    """F(x) with every term written out; the square of a reconstruction counts its variance."""
    total = 0.0
    for v, (view, x) in enumerate(zip(model.views, views)):
        total = total - x @ params.biases[v]
        if isinstance(view, GaussianView):
            squares = (x**2).sum(axis=1)
            if means_of is not None:
                squares = squares + x.shape[1] * np.exp(means_of.log_variances[v])
            total = total + squares / (2 * np.exp(params.log_variances[v]))
    a = params.beta + sum(x @ W for x, W in zip(views, params.weights))
    variance = np.exp(params.log_unit_variance)
    if isinstance(model.units, BinaryUnits):
        log_z = np.log1p(np.exp(a + (0 if log_odds is None else log_odds)))
    elif log_odds is None:
        log_z = variance * a**2 / 2
    else:
        log_z = np.log1p(np.exp(log_odds + variance * a**2 / 2))
    return total - log_z.sum(axis=1)


CASES = list(
    itertools.product(
        [["bernoulli"], ["gaussian"], ["count"], ["gaussian", "bernoulli", "count"]],
        [BinaryUnits(), RealUnits()],
        [None, LOG_ODDS],
        MARGINS,
    )
)


def assert_close(found, expected):
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("kinds", "units", "log_odds", "margin"), CASES, ids=str)
def test_gradient_of_what_contrastive_divergence_descends(kinds, units, log_odds, margin):
    # The reconstruction is held fixed, features are dropped as in training.
    model, params, batch = problem(kinds, units, MARGINS[margin], learn_variance=True)
    dropped = np.random.default_rng(1).choice([0.0, 2.0], (7, 3))
    _, hidden = energy.expect_units(model, params, batch.views, log_odds)
    x1 = energy.view_means(model, params, hidden.mean, batch.totals)

    def f(p):
        contrast = free_energy(model, p, batch.views, log_odds)
        contrast = contrast - free_energy(model, p, x1, log_odds, means_of=params)
        if model.margin is None:
            return contrast.mean()
        _, now = energy.expect_units(model, p, batch.views, log_odds)
        losses, _ = model.margin.losses((now.mean * dropped) @ p.mu + p.intercept, batch.target)
        return contrast.mean() + losses.mean()

    found, _ = energy.gradient(model, params, batch, log_odds, dropped=dropped)
    assert_close(found, differences(f, params))


@pytest.mark.parametrize(("kinds", "units", "log_odds", "margin"), CASES, ids=str)
def test_gradient_when_the_reconstruction_moves(kinds, units, log_odds, margin):
    model, params, batch = problem(kinds, units, MARGINS[margin], learn_variance=True)
    found, _ = energy.gradient(model, params, batch, log_odds, exact=True)
    expected = differences(lambda p: sum(energy.objective(model, p, batch, log_odds)), params)
    assert_close(found, expected)


@pytest.mark.parametrize("units", [BinaryUnits(), RealUnits()], ids=str)
def test_reconstructions_at_their_bound_have_no_slope(units):
    model, params, batch = problem(["gaussian"], units)
    strong = params.like([6 * a for a in params])
    _, hidden = energy.expect_units(model, strong, batch.views, LOG_ODDS)
    x1 = energy.view_means(model, strong, hidden.mean, batch.totals)[0]
    assert (np.abs(x1) == 6.0).any()
    found, _ = energy.gradient(model, strong, batch, LOG_ODDS, exact=True)
    expected = differences(lambda p: sum(energy.objective(model, p, batch, LOG_ODDS)), strong)
    for f, e in zip(found.weights + found.biases, expected.weights + expected.biases):
        np.testing.assert_allclose(f, e, rtol=1e-4, atol=1e-5)


def test_variances_that_are_fixed_have_no_gradient():
    model, params, batch = problem(["gaussian"], RealUnits())
    found, _ = energy.gradient(model, params, batch, LOG_ODDS, exact=True)
    assert not found.log_variances.any()
    assert not found.log_unit_variance.any()


def test_contrast_is_the_divergence_that_the_paper_defines():
    # KL(q0 || p) - KL(q1 || p) by enumeration of binary x and z; log Z of p cancels.
    model, params, batch = problem(["bernoulli"], BinaryUnits(), n=1, n_columns=3, n_units=2)
    odds = LOG_ODDS[:2]
    W, bias = params.weights[0], params.biases[0]

    def divergence(qx, qz):
        total = 0.0
        for x in itertools.product([0, 1], repeat=3):
            for z in itertools.product([0, 1], repeat=2):
                x_, z_ = np.array(x), np.array(z)
                q = np.prod(np.where(x_, qx, 1 - qx)) * np.prod(np.where(z_, qz, 1 - qz))
                log_p = bias @ x_ + (params.beta + odds) @ z_ + x_ @ W @ z_
                if q > 0:
                    total += q * (np.log(q) - log_p)
        return total

    x0 = batch.views[0][0]
    nu0 = expit(params.beta + odds + x0 @ W)
    x1 = expit(bias + W @ nu0)
    nu1 = expit(params.beta + odds + x1 @ W)
    expected = divergence(x0, nu0) - divergence(x1, nu1)
    assert energy.objective(model, params, batch, odds)[0] == pytest.approx(expected, rel=1e-12)
    assert expected > 0


@pytest.mark.parametrize("a", [-2.0, -0.3, 0.0, 1.4])
@pytest.mark.parametrize("odds", [-1.2, 0.9])
def test_posterior_of_a_real_unit_by_quadrature(a, odds):
    s = 0.7

    def density(h, z):
        return np.exp(z * odds + z * a * h - h**2 / (2 * s))

    mass = [quad(density, -30, 30, args=(z,))[0] for z in (0, 1)]
    mean = quad(lambda h: h * density(h, 1), -30, 30)[0] / sum(mass)
    units = RealUnits().expect(np.array([[a]]), np.array([odds]), s)
    assert units.present[0, 0] == pytest.approx(mass[1] / sum(mass), rel=1e-8)
    assert units.mean[0, 0] == pytest.approx(mean, rel=1e-8, abs=1e-12)
    log_z = RealUnits().log_partition(np.array([[a]]), np.array([odds]), s)[0, 0]
    assert log_z == pytest.approx(np.log(sum(mass) / mass[0]), rel=1e-8)


@pytest.mark.parametrize("units", [BinaryUnits(), RealUnits()], ids=str)
@pytest.mark.parametrize("odds", [None, -0.8])
def test_slopes_of_units(units, odds):
    a, s, step = np.linspace(-3, 3, 13)[:, None], np.array([0.6]), 1e-6
    odds = None if odds is None else np.array([odds])
    found = units.expect(a, odds, s)
    up, down = (units.expect(a + d, odds, s).mean for d in (step, -step))
    slope = units.slope(a, found, s)
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-6, atol=1e-8)
    up, down = (units.log_partition(a + d, odds, s) for d in (step, -step))
    np.testing.assert_allclose(found.mean, (up - down) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_views_mean_is_the_slope_of_their_log_partition(kind):
    view, rng = KINDS[kind], np.random.default_rng(0)
    natural, s, total = rng.standard_normal((2, 3)), 0.8, np.array([5.0, 9.0])
    for n in range(3):
        step = 1e-6 * (np.arange(3) == n)
        up, down = (view.log_partition(natural + d, s, total) for d in (step, -step))
        mean = view.mean(natural.copy(), s, total)[:, n]
        np.testing.assert_allclose(mean, (up - down) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_a_view_have_its_mean(kind):
    view, rng = KINDS[kind], np.random.default_rng(0)
    natural = np.tile([0.3, -1.0, 0.8], (20_000, 1))
    total = np.full(20_000, 6.0)
    draws = view.draw(natural, 0.5, total, rng)
    expected = view.mean(natural[:1].copy(), 0.5, total[:1])[0]
    np.testing.assert_allclose(draws.mean(axis=0), expected, atol=6 * 2.5 / np.sqrt(20_000))
    if kind == "count":
        assert (draws.sum(axis=1) == 6).all()
        np.testing.assert_allclose(expected, 6 * softmax(natural[0]))


@pytest.mark.parametrize("units", [BinaryUnits(), RealUnits()], ids=str)
def test_draws_of_units_have_their_mean(units):
    rng, a = np.random.default_rng(0), np.tile([0.4, -1.1], (40_000, 1))
    odds, s = np.array([0.2, -0.5]), 1.3
    draws = units.draw(a, odds, s, rng)
    np.testing.assert_allclose(
        draws.mean(axis=0), units.expect(a[:1], odds, s).mean[0], atol=6 * 1.5 / np.sqrt(40_000)
    )


def test_sparse_views_have_the_gradient_of_dense_ones():
    model, params, batch = problem(["bernoulli", "count"], BinaryUnits(), MARGINS["classes"])
    thin = batch._replace(views=tuple(sparse.csr_array(x) for x in batch.views))
    for exact in (False, True):
        dense, _ = energy.gradient(model, params, batch, LOG_ODDS, exact=exact)
        csr, _ = energy.gradient(model, params, thin, LOG_ODDS, exact=exact)
        for d, c in zip(dense, csr):
            np.testing.assert_allclose(c, d, rtol=1e-12, atol=1e-14)
    dense, csr = (energy.objective(model, params, b, LOG_ODDS) for b in (batch, thin))
    np.testing.assert_allclose(csr, dense, rtol=1e-12)


def test_margin_losses_by_hand():
    scores = np.array([[2.0, 1.5, 0.0], [0.0, 3.0, 1.0]])
    losses, slope = MultiClassMargin(3, C=2.0, cost=1.0).losses(scores, np.array([0, 2]))
    np.testing.assert_allclose(losses, [1.0, 6.0])
    np.testing.assert_allclose(slope, [[-2, 2, 0], [0, 2, -2]])
    right, slope = MultiClassMargin(3, C=2.0, cost=1.0).losses(scores, np.array([0, 1]))
    assert right[1] == 0
    assert not slope[1].any()
    losses, slope = InsensitiveMargin(C=2.0, epsilon=0.5).losses(
        np.array([[1.0], [0.2], [-2.0]]), np.array([0.0, 0.0, 0.0])
    )
    np.testing.assert_allclose(losses, [1.0, 0.0, 3.0])
    np.testing.assert_allclose(slope.ravel(), [2.0, 0.0, -2.0])
