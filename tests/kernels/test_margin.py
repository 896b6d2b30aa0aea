"""The margin term and the softmax against their definitions: quadrature, rejection, grids."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from regbayes.kernels._jit import kernel
from regbayes.kernels.labels import LabelTerm
from regbayes.kernels.logit import draw_logit_weights, draw_new_logit_weights, log_logit
from regbayes.kernels.margin import (
    draw_new_weights,
    draw_weights,
    log_margin,
    log_new_evidence,
)
from tests.helpers import P_VALUE, assert_law, inverse_gaussian_cdf

SIZES = [
    pytest.param(8_000, id="fast"),
    pytest.param(100_000, marks=pytest.mark.slow, id="slow"),
]


def make_term(mean, c=1.0, ell=1.0, nu=1.0):
    return LabelTerm(False, float(c), float(ell), float(nu), np.array(mean, dtype=float), 1.0)


def some_mean(n_classes, n_inputs, size):
    return size * np.random.default_rng(n_classes).standard_normal((n_classes, n_inputs))


def hinge(scores, label, ell):
    """From the definition; scores are (..., L)."""
    rival = np.delete(scores, label, axis=-1).max(axis=-1)
    return np.maximum(0.0, ell + rival - scores[..., label])


def grid_cdf(grid, log_density):
    """Distribution function of a density known on a grid up to a constant."""
    density = np.exp(log_density - log_density.max())
    total = integrate.cumulative_trapezoid(density, grid, initial=0)
    return lambda x: np.interp(x, grid, total / total[-1])


# The pseudo-likelihood itself.


@pytest.mark.parametrize("label", [0, 1, 2])
def test_margin_is_the_hinge(label):
    scores = np.random.default_rng(0).normal(size=(3, 50))
    found = [log_margin(scores, k, label, 0.7, 1.3) for k in range(50)]
    np.testing.assert_allclose(found, -2 * 0.7 * hinge(scores.T, label, 1.3), atol=1e-14)
    assert 0 < np.sum(np.array(found) == 0) < 50
    assert log_margin(scores, 0, -1, 0.7, 1.3) == 0


@pytest.mark.parametrize("c", [0.01, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("u", [-20.0, -0.3, 0.0, 1e-3, 0.4, 2.0])
def test_augmentation_integrates_to_the_hinge(c, u):
    # w = v^2 removes the root at zero from the integral of (2 pi w)^-1/2 exp(-(w + c u)^2 / 2w).
    def integrand(v):
        return math.sqrt(2 / math.pi) * math.exp(-0.5 * (v + c * u / v) ** 2)

    ends = [0.0, math.sqrt(c * abs(u)), math.sqrt(c * abs(u)) + 1.0, 60.0]
    found = sum(integrate.quad(integrand, a, b, epsabs=1e-13)[0] for a, b in pairwise(ends))
    assert found == pytest.approx(math.exp(-2 * c * max(u, 0)), abs=1e-9)


@pytest.mark.parametrize(("c", "u"), [(0.5, 0.4), (2.0, -1.5)])
def test_inverse_of_the_augmentation_is_inverse_gaussian(c, u):
    grid = np.linspace(1e-4, 80, 400_001)
    cdf = grid_cdf(grid, -0.5 * np.log(grid) - (grid + c * u) ** 2 / (2 * grid))
    w = np.array([0.05, 0.3, 1.0, 3.0])
    np.testing.assert_allclose(
        1 - cdf(w), inverse_gaussian_cdf(1 / w, 1 / (c * abs(u)), 1.0), atol=1e-5
    )


# The evidence of a new component.


def reference_evidence(x, label, term):
    """log E[phi]: the own score in closed form (math.md, section 1), the rivals' maximum m on a
    fine grid. All in units of s, in logs."""
    s = term.nu * np.linalg.norm(x)
    centers = term.mean @ x / s
    rivals = np.delete(centers, label)
    m = np.linspace(-60, 60, 12_001)
    below = special.log_ndtr(m[:, None] - rivals)
    each = below.sum(axis=1, keepdims=True) - below + stats.norm.logpdf(m[:, None] - rivals)
    a = m + term.ell / s - centers[label]
    q = 2 * term.c * s
    b = q - a
    tilted = np.where(
        b > 0,
        -0.5 * a**2 + np.log(0.5 * special.erfcx(np.maximum(b, 0) / math.sqrt(2))),
        q * (0.5 * q - a) + special.log_ndtr(-b),
    )
    log_integrand = special.logsumexp(each, axis=1) + np.logaddexp(special.log_ndtr(-a), tilted)
    top = log_integrand.max()
    return top + math.log(integrate.trapezoid(np.exp(log_integrand - top), m))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [0.0, 1.0])
def test_evidence_is_the_integral_of_phi_over_all_scores(n_classes, size):
    """The raw definition on a grid of all L scores, where that is feasible."""
    x = np.array([0.7, -0.4])
    term = make_term(some_mean(n_classes, 2, size), c=0.8, ell=1.2, nu=1.5)
    grid = np.linspace(-7, 7, 101 if n_classes == 3 else 401)
    axes = np.meshgrid(*[grid] * n_classes, indexing="ij")
    scores = np.stack(axes, axis=-1) * term.nu * np.linalg.norm(x) + term.mean @ x
    log_p = stats.norm.logpdf(np.stack(axes, axis=-1)).sum(axis=-1)
    for label in range(n_classes):
        total = np.exp(log_p - 2 * term.c * hinge(scores, label, term.ell)).sum()
        expected = math.log(total * (grid[1] - grid[0]) ** n_classes)
        assert log_new_evidence(x, label, term) == pytest.approx(expected, abs=3e-3)
        assert reference_evidence(x, label, term) == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 27])
@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("length", [1e-3, 0.03, 1.0, 30.0, 1e3])
def test_evidence_agrees_with_quadrature_over_decades(n_classes, size, length):
    x = np.array([0.6, -0.8]) * length / 1.7
    for c in [1e-3, 0.1, 1.0, 31.0, 1e3]:
        term = make_term(some_mean(n_classes, 2, size), c=c, ell=0.9, nu=1.7)
        expected = reference_evidence(x, n_classes - 1, term)
        found = log_new_evidence(x, n_classes - 1, term)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7), c


def test_evidence_is_one_without_a_margin_and_a_probability_with_a_hard_one():
    x = np.array([0.3, 1.1])
    s = 0.8 * np.linalg.norm(x)
    zero = np.zeros((2, 2))
    assert log_new_evidence(x, 0, make_term(zero, c=1e-12, nu=0.8)) == pytest.approx(0, abs=1e-10)
    hard = log_new_evidence(x, 0, make_term(zero, c=1e9, ell=1.4, nu=0.8))
    assert hard == pytest.approx(special.log_ndtr(-1.4 / (s * math.sqrt(2))), rel=1e-6)
    # Without a cost, a hard margin asks only to be the largest of L exchangeable scores.
    tiny = make_term(np.zeros((7, 2)), c=1e9, ell=1e-12, nu=0.8)
    assert log_new_evidence(x, 3, tiny) == pytest.approx(-math.log(7), rel=1e-6)


def test_evidence_of_no_input_and_of_no_label():
    term = make_term(some_mean(3, 2, 1.0), c=0.7, ell=1.3)
    assert log_new_evidence(np.zeros(2), 1, term) == pytest.approx(-2 * 0.7 * 1.3)
    assert log_new_evidence(np.array([1e-5, 0.0]), 1, term) == pytest.approx(-1.82, abs=1e-4)
    assert log_new_evidence(np.ones(2), -1, term) == 0


def two_class_evidence(gap, s, c, ell):
    """In closed form: the difference of the two scores is N(gap, 2 s^2)."""
    spread, a = math.sqrt(2) * s, ell - gap
    b = 2 * c * spread - a / spread
    if b > 0:
        tilted = -0.5 * (a / spread) ** 2 + np.log(0.5 * special.erfcx(b / math.sqrt(2)))
    else:
        tilted = 2 * c * (c * spread**2 - a) + special.log_ndtr(-b)
    return np.logaddexp(special.log_ndtr(-a / spread), tilted)


@pytest.mark.parametrize("gap", [-1e4, -50.0, 0.0, 50.0, 1e4])
@pytest.mark.parametrize("c", [1e-4, 1.0, 1e4])
def test_evidence_holds_far_from_the_prior_mean(gap, c):
    for nu in [1e-4, 1e-2, 1.0, 1e2]:
        term = make_term([[gap, 0.0], [0.0, 0.0]], c=c, ell=0.9, nu=nu)
        expected = two_class_evidence(gap, nu, c, 0.9)
        found = log_new_evidence(np.array([1.0, 0.0]), 0, term)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7), nu


@pytest.mark.parametrize(
    "length",
    [
        1e-10,
        1e-16,
        1e-20,
        1e-170,
    ],
)
def test_evidence_of_a_tiny_input_is_that_of_none(length):
    term = make_term(some_mean(3, 2, 1.0), c=0.7, ell=1.3)
    found = log_new_evidence(length * np.array([0.6, -0.8]), 1, term)
    assert found == pytest.approx(-2 * 0.7 * 1.3, rel=1e-6)


@given(
    n_classes=st.integers(2, 30),
    c=st.floats(-6, 6),
    length=st.floats(-140, 100),
    nu=st.floats(-3, 3),
    ell=st.floats(-3, 3),
    size=st.sampled_from([0.0, 0.1, 3.0]),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_evidence_is_never_above_one_nor_not_a_number(n_classes, c, length, nu, ell, size):
    term = make_term(some_mean(n_classes, 2, size * 10**nu), 10**c, 10**ell, 10**nu)
    x = np.array([0.6, -0.8]) * 10**length
    found = log_new_evidence(x, 0, term)
    assert found <= 0
    # Jensen: log E[phi] >= -2 c E[h], and E[h] is at most this.
    noise = term.nu * np.linalg.norm(x) * (math.sqrt(2 * math.log(n_classes)) + 1.6)
    assert found >= -2 * term.c * (term.ell + np.ptp(term.mean @ x) + noise) * (1 + 1e-9)


# The weights of a new component.


@kernel
def many_new_weights(rng, x, label, term, out):
    log_evidence = log_new_evidence(x, label, term)
    for i in range(out.shape[0]):
        draw_new_weights(rng, x, label, term, log_evidence, out[i])


def new_weights(x, label, term, n, seed=0):
    out = np.empty((n, *term.mean.shape))
    many_new_weights(np.random.default_rng(seed), x, label, term, out)
    return out


X_NEW = np.array([0.8, -0.5, 1.0])


@pytest.mark.parametrize(
    ("n_classes", "c", "size"), [(2, 0.3, 0.0), (2, 2.0, 1.0), (3, 1.0, 0.7), (8, 0.8, 0.0)]
)
def test_new_weights_agree_with_plain_rejection(n_classes, c, size):
    rng = np.random.default_rng(1)
    term = make_term(some_mean(n_classes, 3, size), c=c, ell=0.8, nu=1.3)
    proposed = term.mean + term.nu * rng.standard_normal((400_000 // n_classes, n_classes, 3))
    phi = np.exp(-2 * c * hinge(proposed @ X_NEW, 1, term.ell))
    expected = proposed[rng.random(len(phi)) < phi]
    assert len(expected) > 5_000
    found = new_weights(X_NEW, 1, term, 20_000)
    directions = rng.standard_normal((5, n_classes, 3))
    for direction in [*directions, np.eye(n_classes)[1][:, None] * X_NEW]:
        sides = [np.tensordot(w, direction, 2) for w in (found, expected)]
        assert stats.ks_2samp(*sides).pvalue > P_VALUE
    top = [np.delete(w @ X_NEW, 1, axis=1).max(axis=1) for w in (found, expected)]
    assert stats.ks_2samp(*top).pvalue > P_VALUE
    # The evidence is the share of accepted proposals.
    error = math.sqrt(phi.var() / len(phi))
    assert abs(phi.mean() - math.exp(log_new_evidence(X_NEW, 1, term))) < 4 * error


@pytest.mark.parametrize("c", [0.1, 5.0, 60.0, 1e6])
@pytest.mark.parametrize("length", [0.05, 1.0, 40.0])
def test_new_scores_of_two_classes_follow_the_exact_law(c, length):
    """Also where rejection is hopeless: phi at the prior's mean is exp(-2 c)."""
    x = X_NEW / np.linalg.norm(X_NEW) * length
    term = make_term(some_mean(2, 3, 0.5), c=c)
    own, rival = (new_weights(x, 0, term, 20_000) @ x).T
    center, spread = (term.mean @ x)[0] - (term.mean @ x)[1], math.sqrt(2) * length
    # The sum of the scores keeps its prior, the difference is tilted by the hinge.
    assert_law(own + rival, stats.norm((term.mean @ x).sum(), spread).cdf)
    grid = np.sort(
        np.concatenate([np.linspace(-12, 40, 400_001), np.linspace(0.99, 1.01, 10_001)])
    ) * np.where(length > 1, length, 1)
    log_density = stats.norm.logpdf(grid, center, spread) - 2 * c * np.maximum(0, 1 - grid)
    assert_law(own - rival, grid_cdf(grid, log_density))
    if c == 1e6:
        assert np.all(own > rival + 1 - 1e-4)


@pytest.mark.parametrize("label", [-1, 0])
def test_new_weights_keep_their_prior_where_the_datum_is_silent(label):
    term = make_term(some_mean(3, 3, 1.0), c=20.0, nu=0.6)
    direction = np.array([1.0, 1.6, 0.0]) if label >= 0 else X_NEW  # orthogonal to the datum
    found = new_weights(X_NEW, label, term, 20_000) @ direction
    for j in range(3):
        law = stats.norm(term.mean[j] @ direction, 0.6 * np.linalg.norm(direction))
        assert_law(found[:, j], law.cdf)
    assert abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.03


# The weights of a component given its members.


@kernel
def weight_chain(rng, X, y, members, term, thin, out):
    weights = np.zeros(term.mean.shape)
    for i in range(out.shape[0]):
        for _ in range(thin):
            if term.softmax:
                draw_logit_weights(rng, X, y, members, weights, term.nu)
            else:
                draw_weights(rng, X, y, members, weights, term)
        out[i] = weights


X_MEMBERS = np.array([[0.9], [-0.4], [99.0], [1.5], [-1.1], [7.0]])
MEMBERS = np.array([0, 1, 3, 4, 5])  # row 2 belongs elsewhere
Y_MEMBERS = {2: np.array([0, 1, 1, 0, 1, -1]), 3: np.array([0, 1, 1, 2, 1, -1])}  # row 5: unknown


def grid_posterior(n_classes, term, n_points, reach=6.0):
    """The weights [L, 1] on a grid, and their posterior there, straight from the definition."""
    grid = np.linspace(-reach, reach, n_points)
    axes = np.meshgrid(*[grid] * n_classes, indexing="ij")
    w = np.stack(axes, axis=-1) * term.nu + term.mean[:, 0]
    log_p = stats.norm.logpdf(np.stack(axes, axis=-1)).sum(axis=-1)
    for d in MEMBERS[:-1]:
        scores, label = w * X_MEMBERS[d], Y_MEMBERS[n_classes][d]
        if term.softmax:
            log_p += scores[..., label] - special.logsumexp(scores, axis=-1)
        else:
            log_p -= 2 * term.c * hinge(scores, label, term.ell)
    p = np.exp(log_p - log_p.max())
    return grid, w, p / p.sum()


def check_chain(n_classes, term, n_draws, n_points):
    grid, w, p = grid_posterior(n_classes, term, n_points)
    out = np.empty((n_draws, n_classes, 1))
    rng = np.random.default_rng(5)
    weight_chain(rng, X_MEMBERS, Y_MEMBERS[n_classes], MEMBERS, term, 25, out)
    draws = out[:, :, 0]
    for j in range(n_classes):
        marginal = p.sum(axis=tuple(i for i in range(n_classes) if i != j))
        cdf = grid_cdf(grid * term.nu + term.mean[j, 0], np.log(np.maximum(marginal, 1e-300)))
        assert_law(draws[:, j], cdf)
    # Second moments see what the marginals do not: how the classes hang together.
    for a in range(n_classes):
        for b in range(a):
            product = draws[:, a] * draws[:, b]
            expected = np.sum(p * w[..., a] * w[..., b])
            z = (product.mean() - expected) / (product.std() / math.sqrt(n_draws))
            assert abs(z) < 4


@pytest.mark.parametrize(
    ("n_classes", "c", "ell", "size"),
    [(2, 0.4, 1.0, 0.0), (2, 1.5, 0.6, 1.0), (3, 0.8, 1.3, 0.0), (3, 0.5, 1.0, 1.0)],
)
@pytest.mark.parametrize("n_draws", SIZES)
def test_weights_follow_their_exact_posterior(n_classes, c, ell, size, n_draws):
    term = make_term(some_mean(n_classes, 1, size), c=c, ell=ell, nu=1.4)
    check_chain(n_classes, term, n_draws, 601 if n_classes == 2 else 121)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("nu", [0.7, 3.0])
@pytest.mark.parametrize("n_draws", SIZES)
def test_logit_weights_follow_their_exact_posterior(n_classes, nu, n_draws):
    term = make_term(np.zeros((n_classes, 1)), nu=nu)._replace(softmax=True)
    check_chain(n_classes, term, n_draws, 601 if n_classes == 2 else 121)


def test_weights_without_known_labels_are_prior_draws():
    term = make_term([[1.0], [-2.0]], c=3.0, nu=0.5)
    out = np.empty((20_000, 2, 1))
    unknown = np.full(6, -1)
    weight_chain(np.random.default_rng(0), X_MEMBERS, unknown, MEMBERS, term, 1, out)
    assert_law(out[:, 0, 0], stats.norm(1.0, 0.5).cdf)
    assert_law(out[:, 1, 0], stats.norm(-2.0, 0.5).cdf)


@pytest.mark.parametrize("length", [1e-150, 1e-8, 1.0, 1e6])
@pytest.mark.parametrize("c", [1e-6, 1.0, 1e6])
def test_extreme_members_give_finite_weights(length, c):
    rng = np.random.default_rng(0)
    X = length * np.repeat(rng.standard_normal((5, 3)), 4, axis=0)  # duplicated rows
    y = rng.integers(-1, 3, 20)
    term = make_term(some_mean(3, 3, 1.0), c=c)
    out = np.empty((200, 3, 3))
    weight_chain(rng, X, y, np.arange(20), term, 1, out)
    assert np.isfinite(out).all()


@pytest.mark.parametrize(
    "length",
    [
        1e-150,
        1e-18,
        1e-8,
        1.0,
        1e6,
    ],
)
@pytest.mark.parametrize("c", [1e-6, 1.0, 1e6])
def test_an_extreme_first_datum_gives_finite_weights(length, c):
    term = make_term(some_mean(3, 3, 1.0), c=c)
    assert np.isfinite(new_weights(length * X_NEW, 1, term, 200)).all()


# The softmax.


def test_log_logit_is_log_softmax():
    scores = np.random.default_rng(0).normal(size=(4, 10)) * [1e-3, 1, 1, 1, 1, 10, 100, 1e3, 1, 1]
    expected = special.log_softmax(scores, axis=0)
    found = [[log_logit(scores, k, j) for k in range(10)] for j in range(4)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert log_logit(scores, 0, -1) == 0


@kernel
def many_new_logit_weights(rng, x, label, nu, out):
    for i in range(out.shape[0]):
        draw_new_logit_weights(rng, x, label, nu, out[i])


def test_new_logit_weights_follow_the_exact_law():
    x, nu = np.array([1.2, -0.7]), 1.5
    rng, out = np.random.default_rng(0), np.empty((20_000, 2, 2))
    many_new_logit_weights(rng, x, 1, nu, out)
    own, rival = (out @ x)[:, 1], (out @ x)[:, 0]
    spread = math.sqrt(2) * nu * np.linalg.norm(x)
    grid = np.linspace(-25, 25, 100_001)
    log_density = stats.norm.logpdf(grid, 0, spread) + special.log_expit(grid)
    assert_law(own - rival, grid_cdf(grid, log_density))
    assert_law(own + rival, stats.norm(0, spread).cdf)
