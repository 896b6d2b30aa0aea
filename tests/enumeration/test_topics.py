"""The topic samplers against the exact posterior over the topics of a few tokens."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from regbayes.kernels.topics import make_corpus
from regbayes.margin import GibbsClassifier
from regbayes.priors import AsymmetricDirichlet, Fixed, GammaPrior, HierarchicalProportions
from regbayes.topics import gibbs
from tests.helpers import assert_pmf
from tests.mutants import TOPIC_CHAIN, mutant

V = 3
WORDS = [[0, 0, 1], [1, 2, 2]]  # of two documents
Y = np.array([0, 1])


def corpus():
    rows = [np.bincount(words, minlength=V) for words in WORDS]
    indices = np.concatenate([np.flatnonzero(row) for row in rows])
    indptr = np.cumsum([0] + [np.count_nonzero(row) for row in rows])
    return make_corpus(indptr, indices, np.concatenate([r[r > 0] for r in rows]), V)


def log_dirichlet_multinomial(counts, concentration):
    """Of sequences; concentration (..., n) broadcasts against counts (n,)."""
    total = concentration.sum(axis=-1)
    each = gammaln(concentration + counts) - gammaln(concentration)
    return gammaln(total) - gammaln(total + counts.sum()) + each.sum(axis=-1)


def log_words(z, K, betas):
    """log p(w | z, beta) for every beta, with phi integrated out."""
    words, out = np.concatenate(WORDS), np.zeros(len(betas))
    for k in range(K):
        counts = np.bincount(words[z == k], minlength=V)
        out += log_dirichlet_multinomial(counts, np.repeat(betas[:, None], V, axis=1))
    return out


def log_topics(z, K, alphas):
    """log p(z | alpha) for every row of alphas."""
    parts = np.split(z, np.cumsum([len(words) for words in WORDS])[:-1])
    return sum(log_dirichlet_multinomial(np.bincount(p, minlength=K), alphas) for p in parts)


def log_margins_given(z, K, weights, classifier):
    total = 0.0
    for part, label in zip(np.split(z, [len(WORDS[0])]), Y):
        x = np.append(np.bincount(part, minlength=K) / len(part), 1.0)
        scores = weights @ x
        rival = np.delete(scores, label).max()
        total -= 2 * classifier.C * max(0.0, classifier.cost + rival - scores[label])
    return total


def log_margins(z, K, classifier):
    """log of the integral over the weights of two classes: two documents have two differences."""
    x = np.array(
        [np.append(np.bincount(p, minlength=K) / len(p), 1.0) for p in np.split(z, [len(WORDS[0])])]
    )
    values, vectors = np.linalg.eigh(2 * classifier.nu**2 * x @ x.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    grid = np.linspace(-8, 8, 321)
    standard = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    gaps = standard @ root.T  # score of class 0 minus score of class 1, of each document
    log_weight = -0.5 * (standard**2).sum(axis=-1)
    for d, sign in enumerate(np.where(Y == 0, 1, -1)):
        log_weight = log_weight - 2 * classifier.C * np.maximum(
            0.0, classifier.cost - sign * gaps[..., d]
        )
    return logsumexp(log_weight)


def gamma_nodes(prior, n=60):
    """Points and weights under a concentration's law."""
    if isinstance(prior, Fixed):
        return np.array([prior.value]), np.zeros(1)
    x, w = np.polynomial.legendre.leggauss(n)
    u = 0.5 * (x + 1)
    return stats.gamma.ppf(u, prior.shape, scale=1 / prior.rate), np.log(w)


def alpha_nodes(prior, K):
    if isinstance(prior, HierarchicalProportions):  # K = 3, shares on the triangle
        x, w = np.polynomial.legendre.leggauss(40)
        u, v = np.meshgrid(0.5 * (x + 1), 0.5 * (x + 1), indexing="ij")
        shares = np.stack([u, (1 - u) * v, (1 - u) * (1 - v)], axis=-1).reshape(-1, 3)
        log_weight = np.log(np.outer(w, w) * (1 - u)).ravel()
        log_weight += ((prior.gamma.value / K - 1) * np.log(shares)).sum(axis=1)
        return prior.total.value * shares, log_weight
    points, log_weights = gamma_nodes(prior.prior)
    if isinstance(prior.prior, Fixed):
        return np.full((1, K), points[0]), np.zeros(1)
    grid = np.array(list(itertools.product(points, repeat=K)))
    return grid, np.array([sum(pair) for pair in itertools.product(log_weights, repeat=K)])


def exact(model, weights=None):
    K = model.n_topics
    alphas, log_a = alpha_nodes(model.proportions, K)
    betas, log_b = gamma_nodes(model.beta)
    log_p = []
    for code in itertools.product(range(K), repeat=sum(map(len, WORDS))):
        z = np.array(code)
        value = logsumexp(log_a + log_topics(z, K, alphas))
        value += logsumexp(log_b + log_words(z, K, betas))
        if model.labels is not None and weights is not None:
            value += log_margins_given(z, K, weights, model.labels.classifier)
        elif model.labels is not None:
            value += log_margins(z, K, model.labels.classifier)
        log_p.append(value)
    return np.exp(np.array(log_p) - logsumexp(log_p))


def canonical(z):
    """Topics by order of appearance: their names mean nothing unless weights are given."""
    _, first, names = np.unique(z, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[names]


def labels(n_classes, K, **options):
    return gibbs.Labels(Y, GibbsClassifier(n_classes, K + 1, **options))


FIXED = AsymmetricDirichlet(Fixed(0.4))
CASES = {
    "no labels": gibbs.Model(corpus(), 3, FIXED, Fixed(0.3)),
    "alpha and beta learned": gibbs.Model(
        corpus(), 2, AsymmetricDirichlet(GammaPrior(2.0, 3.0)), GammaPrior(2.0, 4.0)
    ),
    "hierarchical": gibbs.Model(
        corpus(), 3, HierarchicalProportions(Fixed(1.5), Fixed(6.0)), Fixed(0.6)
    ),
    "margin": gibbs.Model(
        corpus(), 2, FIXED, Fixed(0.5), labels(2, 2, C=1.5, cost=1.2, nu=1.3)
    ),
    "margin, three classes, weights given": gibbs.Model(
        corpus(), 3, FIXED, Fixed(0.5), labels(3, 3, C=0.8, cost=1.0, nu=1.0)
    ),
    "margin, hierarchical": gibbs.Model(
        corpus(), 3, HierarchicalProportions(Fixed(1.5), Fixed(6.0)), Fixed(0.6),
        labels(2, 3, C=1.0, cost=1.0, nu=2.0),
    ),
}  # fmt: skip


def check(case, n_draws, thin, module=gibbs):
    model, weights = CASES[case], None
    rng = np.random.default_rng(5)
    state = module.init(model, rng)
    if "given" in case:
        weights = np.array([[1.0, -1.5, 0.5, 0.0], [-1.0, 2.0, 0.0, 0.3], [0.5, 0.0, 1.0, -0.2]])
        state = replace(state, weights=weights)
    codes = list(itertools.product(range(model.n_topics), repeat=len(state.z)))
    named = (lambda z: tuple(z)) if weights is not None else lambda z: tuple(canonical(z))
    places = {code: i for i, code in enumerate(dict.fromkeys(named(code) for code in codes))}
    expected = np.zeros(len(places))
    np.add.at(expected, [places[named(code)] for code in codes], exact(model, weights))
    drawn = np.empty(n_draws, dtype=np.int64)
    for i in range(n_draws):
        for _ in range(thin):
            if weights is None:
                state = module.step(model, rng, state)
            else:
                state = module.draw_phi(model, rng, module.draw_z(model, rng, state))
        drawn[i] = places[named(state.z)]
    assert_pmf(drawn, expected)


@pytest.mark.parametrize("case", ["no labels", "margin", "hierarchical"])
def test_topics_follow_the_exact_posterior(case):
    check(case, n_draws=4_000, thin=3)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_topics_follow_the_exact_posterior_closely(case):
    check(case, n_draws=100_000, thin=8)


@pytest.mark.slow
def test_scores_that_are_not_moved_on_are_caught(tmp_path):
    """A bug that hides from Geweke's test, whose weights vary: with given ones it shows."""
    old, new = "    scores[:] = proposed\n", "    proposed[0] += 0.0\n"
    module = mutant(TOPIC_CHAIN, TOPIC_CHAIN[0], old, new, tmp_path)
    with pytest.raises(AssertionError):
        check("margin, three classes, weights given", n_draws=100_000, thin=2, module=module)
