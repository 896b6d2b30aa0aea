"""The mixture's sampler against the exact posterior over partitions of a few points."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from regbayes.kernels._jit import kernel
from regbayes.kernels.labels import draw_all_label_weights
from regbayes.kernels.mixture import assign, collect_all
from regbayes.margin import GibbsClassifier
from regbayes.mixture import gibbs
from regbayes.priors import DirichletProcess, Fixed, NormalInverseGamma, NormalInverseWishart


def partitions(n: int) -> list[tuple[int, ...]]:
    """All partitions of n points, as restricted growth strings."""
    return [
        s
        for s in itertools.product(range(n), repeat=n)
        if s[0] == 0 and all(s[i] <= max(s[:i]) + 1 for i in range(1, n))
    ]


def label_log_likelihood(scores: np.ndarray, label: int, model: GibbsClassifier) -> np.ndarray:
    """Written from the definition; scores are (..., L)."""
    if model.softmax:
        return scores[..., label] - logsumexp(scores, axis=-1)
    rivals = np.delete(scores, label, axis=-1).max(axis=-1)
    return -2 * model.C * np.maximum(0.0, model.cost + rivals - scores[..., label])


def log_label_evidence(X1: np.ndarray, y: np.ndarray, model: GibbsClassifier, mean) -> float:
    """log of the integral of prod phi over the weights, by quadrature on a grid.

    Only differences to the last class matter, so there are (L - 1) * M dimensions: two here. The
    differences are correlated: w_j - w_L has covariance nu^2 (I + 1 1').
    """
    n_classes, n_inputs = mean.shape
    grid = np.linspace(-8.0, 8.0, 401)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log_weight = stats.norm.logpdf(a) + stats.norm.logpdf(b) + 2 * np.log(grid[1] - grid[0])
    difference = model.nu * np.linalg.cholesky(np.eye(n_classes - 1) + 1.0)
    standard = np.stack([a, b], axis=-1).reshape(*a.shape, n_classes - 1, n_inputs)
    weights = np.einsum("ij,...jm->...im", difference, standard) + (mean[:-1] - mean[-1])
    total = log_weight
    for x, label in zip(X1, y):
        scores = np.concatenate([weights @ x, np.zeros((*a.shape, 1))], axis=-1)
        total = total + label_log_likelihood(scores, label, model)
    return float(logsumexp(total))


def exact_posterior(X, X1, y, prior, classifier, mean, alpha, max_components):

    @functools.cache
    def log_block(*members):
        rows = list(members)
        labels = log_label_evidence(X1[rows], y[rows], classifier, mean)
        return prior.log_marginal(X[rows]) + labels

    log_p = []
    for partition in partitions(len(X)):
        z = np.array(partition)
        value = DirichletProcess(alpha).log_partition_probability(z)
        value += sum(log_block(*np.flatnonzero(z == k)) for k in np.unique(z))
        log_p.append(value if z.max() < max_components else -np.inf)
    return np.exp(np.array(log_p) - logsumexp(log_p))


@kernel
def sample_partitions(rng, table, z, n, components, base, term, alpha, most, thin, codes):
    """The two updates of `gibbs.step` in a compiled loop, one code for each partition drawn."""
    n_points = z.shape[0]
    names = np.empty(n_points, dtype=np.int64)
    for i in range(codes.shape[0]):
        for _ in range(thin):
            collect_all(table.X, z, n, components, base)
            _, n = assign(rng, 0, table, z, n, components, base, term, alpha, most)
            draw_all_label_weights(rng, table.X1, table.y, z, components.weights[:n], term)
        names[:] = -1
        fresh = 0
        code = 0
        for d in range(n_points):
            if names[z[d]] < 0:
                names[z[d]] = fresh
                fresh += 1
            code = code * n_points + names[z[d]]
        codes[i] = code


X2 = np.array([[0.3, -0.8], [0.5, 1.1], [-1.2, 0.4], [0.1, -0.2], [1.4, 0.9]])
X1D = X2[:, :1].copy()

CASES = {
    # name: X, y, covariance, classifier, pooled weights?, max_components
    "margin, two classes, intercept": (X1D[:4], [0, 1, 1, 0], "full", {"C": 1.3, "nu": 1.5}, 0, 5),
    "margin, three classes": (X1D, [0, 2, 1, 1, 0], "full", {"C": 0.7, "cost": 1.5}, 0, 5),
    "margin, pooled weights": (X1D[:4], [0, 2, 1, 1], "full", {"C": 0.9, "nu": 0.8}, 1, 5),
    "margin, two inputs": (X2, [0, 1, 1, 0, 1], "full", {"C": 2.0, "nu": 1.2}, 0, 5),
    "margin, diagonal": (X2[:4], [0, 1, 1, 0], "diag", {"C": 0.5, "nu": 2.0}, 0, 5),
    "margin, at most two components": (X1D[:4], [0, 1, 1, 0], "full", {"C": 1.0}, 0, 2),
    "softmax, two inputs": (X2, [0, 1, 1, 0, 1], "full", {"softmax": True, "nu": 3.0}, 0, 5),
}


def chi_square(case: str, n_draws: int, thin: int) -> float:
    X, labels, covariance, options, pooled, most = CASES[case]
    y = np.array(labels, dtype=np.int64)
    n, m = X.shape
    family = NormalInverseWishart if covariance == "full" else NormalInverseGamma
    scale = 0.5 * np.eye(m) if covariance == "full" else np.full(m, 0.5)
    prior = family(np.zeros(m), 0.3, m + 1.5, scale)
    base = gibbs.make_base(prior)
    n_classes = y.max() + 1
    intercept = n_classes == 2 and m == 1
    table = gibbs.make_table(X, y, base, fit_intercept=intercept)
    classifier = GibbsClassifier(n_classes, table.X1.shape[1], **options)
    mean = np.zeros((n_classes, table.X1.shape[1]))
    if pooled:
        mean[:] = np.linspace(-0.7, 0.9, mean.size).reshape(mean.shape)
    alpha = 1.2
    exact = exact_posterior(X, table.X1, y, prior, classifier, mean, alpha, most)

    rng = np.random.default_rng(20140621)
    model = gibbs.Model(table, base, classifier, Fixed(alpha), most)
    state = gibbs.init(model, rng)
    components = gibbs._resized(state.components, 8)
    codes = np.empty(n_draws, dtype=np.int64)
    sample_partitions(
        rng,
        table,
        state.z,
        state.n_components,
        components,
        base,
        classifier.term(classifier.nu, mean, 1.0),
        alpha,
        most,
        thin,
        codes,
    )
    places = {}
    for index, partition in enumerate(partitions(n)):
        code = 0
        for name in partition:
            code = code * n + name
        places[code] = index
    drawn, counts = np.unique(codes, return_counts=True)
    observed = np.zeros(len(exact))
    observed[[places[code] for code in drawn]] = counts
    assert observed[exact == 0].sum() == 0
    expected = exact * n_draws
    rare = expected < 5
    if rare.any() and expected[rare].sum() > 0:
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    else:
        observed, expected = observed[~rare], expected[~rare]
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("case", ["margin, two classes, intercept", "margin, pooled weights"])
def test_partitions_follow_the_exact_posterior(case):
    assert chi_square(case, n_draws=20_000, thin=5) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_partitions_follow_the_exact_posterior_closely(case):
    assert chi_square(case, n_draws=100_000, thin=10) > 1e-4
