"""Geweke (2004): the sweep of the topic models leaves their joint distribution as it is.

The joint is  p0(alpha, beta, phi, z, w, nu, weights) prod_d phi(y_d | shares of d, weights), and
the last factor is not normalised over y; so the prior side has importance weights, and the other
side alternates the sweep under test with exact updates of words and labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import logsumexp

from regbayes.kernels.topics import Corpus, dense
from regbayes.margin import GibbsClassifier
from regbayes.priors import GammaPrior
from regbayes.topics import gibbs
from tests.mutants import TOPIC_CHAIN, mutant

V, K, L = 3, 2, 3
STARTS = np.array([0, 4, 7])
DOCUMENT = np.repeat([0, 1], [4, 3])
ALPHA, BETA = (4.0, 5.0), (4.0, 6.0)
TOTAL, GAMMA = (5.0, 4.0), (6.0, 3.0)


@dataclass(frozen=True)
class Setting:
    labels: bool = True
    hierarchical: bool = False
    nu: float | tuple[float, float] = (6.0, 9.0)
    C: float = 0.7
    cost: float = 1.3

    @property
    def classifier(self):
        return GibbsClassifier(L, K + 1, self.C, self.cost, self.nu)


def log_labels(scores, setting):
    """log of the label factor for every label: scores (..., L) -> (..., L)."""
    out = np.zeros_like(scores)
    if setting.labels:
        for j in range(L):
            rival = np.delete(scores, j, axis=-1).max(axis=-1)
            out[..., j] = -2 * setting.C * np.maximum(0, setting.cost + rival - scores[..., j])
    return out


def inputs(z):
    """Shares of topics in the two documents and the constant, (..., 2, K + 1)."""
    of_topic = z[..., None] == np.arange(K)
    parts = [of_topic[..., d == DOCUMENT, :].mean(axis=-2) for d in range(2)]
    table = np.stack(parts, axis=-2)
    return np.concatenate([table, np.ones((*table.shape[:-1], 1))], axis=-1)


def describe(alpha, beta, nu, z, w, weights, y):
    """Statistics that do not know the names of topics; a leading axis of draws."""
    same = z[:, :, None] == z[:, None, :]
    scores = np.einsum("nlm,ndm->ndl", weights, inputs(z))
    own = np.take_along_axis(scores, y[:, :, None], axis=2)[:, :, 0]
    gap = own - scores.mean(axis=2)
    total = alpha.sum(axis=1)
    columns = {
        "log sum alpha": np.log(total),
        "sum alpha": total,
        "uneven alpha": (alpha**2).sum(axis=1) / total**2,
        "log beta": np.log(beta),
        "beta^2": beta**2,
        "log nu": np.log(nu),
        "together, one document": same[:, 0, 1],
        "together, two documents": same[:, 0, 5],
        "all together": same.all(axis=(1, 2)),
        "first document in one": same[:, :4, :4].all(axis=(1, 2)),
        "together alpha": same[:, 0, 1] * total,
        "word": (w == 0).mean(axis=1),
        "same word": w[:, 0] == w[:, 1],
        "same word, two documents": w[:, 0] == w[:, 5],
        "same word, together": (w[:, 0] == w[:, 5]) & same[:, 0, 5],
        "same word, beta": (w[:, 0] == w[:, 5]) * beta,
        "three words": (w[:, 0] == w[:, 5]) & (w[:, 1] == w[:, 5]),
        "own score": own.mean(axis=1),
        "gap": gap.mean(axis=1),
        "gap^2": (gap**2).mean(axis=1),
        "right": (scores.argmax(axis=2) == y).mean(axis=1),
        "label": (y == 0).mean(axis=1),
        "same label": y[:, 0] == y[:, 1],
        "same label, together": (y[:, 0] == y[:, 1]) & same[:, 0, 5],
        "|w|^2": (weights**2).sum(axis=(1, 2)),
        "intercept": weights[:, 0, K],
        "w w'": weights[:, 0, 0] * weights[:, 1, 0],
    }
    return {name: np.asarray(column, dtype=float) for name, column in columns.items()}


def simulate_prior(setting, n, rng):
    if setting.hierarchical:
        total = rng.gamma(TOTAL[0], 1 / TOTAL[1], n)
        gamma = rng.gamma(GAMMA[0], 1 / GAMMA[1], n)
        shares = rng.standard_gamma((gamma / K)[:, None], (n, K))
        alpha = total[:, None] * shares / shares.sum(axis=1, keepdims=True)
    else:
        alpha = rng.gamma(ALPHA[0], 1 / ALPHA[1], (n, K))
    beta = rng.gamma(BETA[0], 1 / BETA[1], n)
    nu = np.full(n, 1.0)
    if setting.labels:
        fixed = not isinstance(setting.nu, tuple)
        nu = (
            np.full(n, setting.nu)
            if fixed
            else np.sqrt(setting.nu[1] / rng.gamma(setting.nu[0], size=n))
        )
    theta = rng.standard_gamma(np.repeat(alpha[:, None], 2, axis=1))
    theta /= theta.sum(axis=2, keepdims=True)
    phi = rng.standard_gamma(np.broadcast_to(beta[:, None, None], (n, K, V)))
    phi /= phi.sum(axis=2, keepdims=True)
    z = (theta[:, DOCUMENT].cumsum(axis=2) < rng.random((n, 7, 1))).sum(axis=2).clip(max=K - 1)
    of_token = phi[np.arange(n)[:, None], z]
    w = (of_token.cumsum(axis=2) < rng.random((n, 7, 1))).sum(axis=2).clip(max=V - 1)
    weights = nu[:, None, None] * rng.standard_normal((n, L, K + 1)) * setting.labels
    y = rng.integers(L, size=(n, 2))
    factors = log_labels(np.einsum("nlm,ndm->ndl", weights, inputs(z)), setting)
    log_w = np.take_along_axis(factors, y[:, :, None], axis=2)[:, :, 0].sum(axis=1)
    share = np.exp(log_w - logsumexp(log_w))
    columns = describe(alpha, beta, nu, z, w, weights, y)
    means = {name: float(share @ c) for name, c in columns.items()}
    errors = {n: float(np.sqrt(share**2 @ (c - means[n]) ** 2)) for n, c in columns.items()}
    return means, errors


def corpus_of(words):
    ends = np.cumsum(np.bincount(words, minlength=V))
    by_word = np.argsort(words, kind="stable")
    return Corpus(words.astype(np.int32), STARTS, by_word, np.concatenate([[0], ends]))


def successive(setting, n, rng, module=gibbs):
    """The chain that alternates the sweep under test with w, y given the rest."""
    w, y = rng.integers(V, size=7), rng.integers(L, size=2)
    proportions = module.AsymmetricDirichlet(GammaPrior(*ALPHA))
    if setting.hierarchical:
        proportions = module.HierarchicalProportions(GammaPrior(*TOTAL), GammaPrior(*GAMMA))
    state, kept = None, []
    for _ in range(n):
        labels = module.Labels(y, setting.classifier) if setting.labels else None
        model = module.Model(corpus_of(w), K, proportions, GammaPrior(*BETA), labels)
        state = module.init(model, rng) if state is None else state
        state = module.step(model, rng, state)
        phi = dense(state.topics)
        w = (rng.random((7, 1)) > phi[:, state.z].cumsum(axis=0).T).sum(axis=1).clip(max=V - 1)
        weights = state.weights if setting.labels else np.zeros((L, K + 1))
        factors = log_labels(inputs(state.z) @ weights.T, setting)
        y = (factors + rng.gumbel(size=factors.shape)).argmax(axis=1)
        nu = state.term.nu if setting.labels else 1.0
        alpha = state.proportions.alpha
        kept.append((alpha.copy(), state.beta, nu, state.z.copy(), w, weights.copy(), y))
    return describe(*(np.array(column) for column in zip(*kept)))


def z_scores(setting, n_prior, n_chain, seed, module=gibbs):
    rng = np.random.default_rng(seed)
    means, errors = simulate_prior(setting, n_prior, rng)
    columns = successive(setting, n_chain, rng, module)
    scores = {}
    for name, column in columns.items():
        batches = column[: len(column) // 50 * 50].reshape(50, -1).mean(axis=1)
        spread = np.hypot(batches.std(ddof=1) / np.sqrt(50), errors[name])
        if spread > 1e-9:  # a scale that is fixed has nothing to show
            scores[name] = (column.mean() - means[name]) / spread
    return scores


def worst(scores):
    name = max(scores, key=lambda key: abs(scores[key]))
    return name, scores[name]


SETTINGS = {
    "margin": Setting(),
    "no labels": Setting(labels=False),
    "hierarchical": Setting(hierarchical=True, nu=1.1),
}


@pytest.mark.parametrize("name", ["margin"])
def test_sweep_leaves_the_joint_invariant(name):
    scores = z_scores(SETTINGS[name], 200_000, 6_000, seed=1)
    assert len(scores) >= 20
    assert abs(worst(scores)[1]) < 4, worst(scores)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_sweep_leaves_the_joint_invariant_closely(name):
    scores = z_scores(SETTINGS[name], 2_000_000, 60_000, seed=2)
    assert len(scores) >= 15
    assert abs(worst(scores)[1]) < 4, worst(scores)


KERNEL, PRIOR, SWEEP = (TOPIC_CHAIN[i] for i in (0, 1, 3))
BUGS = {
    "a token counts for its own topic": (KERNEL, "weight[old] -= 1.0", "weight[old] -= 0.5"),
    "alpha halved": (KERNEL, "weight = alpha.copy()  #", "weight = 0.5 * alpha  #"),
    "the margin without its two": (KERNEL, "math.exp(-2.0 * margins.c", "math.exp(-margins.c"),
    "scores of counts, not of shares": (
        KERNEL,
        "scores[j] = scores[j] / max(starts[d + 1] - starts[d], 1) + weights[-1, j]",
        "scores[j] = scores[j] + weights[-1, j]",
    ),
    "no Gamma variable above one": (
        KERNEL,
        "rng.random() * (1.0 - least + beta * _EXP_MINUS_1)",
        "rng.random() * (1.0 - least)",
    ),
    "beta forgotten beside counts": (
        KERNEL,
        "draw_gamma(rng, beta + counts[k])",
        "draw_gamma(rng, counts[k])",
    ),
    "tables one customer late": (
        PRIOR,
        "alpha[:, None] / (alpha[:, None] + customers)",
        "alpha[:, None] / (alpha[:, None] + customers + 1)",
    ),
    "alpha without its tables": (PRIOR, "self.prior.shape + m)", "self.prior.shape)"),
    "beta of one word": (SWEEP, "model.beta.rate + n_words * sum", "model.beta.rate + sum"),
    # Without `draw_phi` in every other sweep nothing shows, and little is wrong: words that were
    # drawn from the old topics tell beta what they are.
    "topics of twice the beta": (
        SWEEP,
        "return draw_phi(model, rng, state)  # phi | z, beta",
        "doubled = replace(state, beta=2.0 * state.beta)\n"
        "    return replace(draw_phi(model, rng, doubled), beta=state.beta)",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_caught(bug, tmp_path):
    """Three tries of growing length: a bug must show itself by |z| > 6."""
    module = mutant(TOPIC_CHAIN, *BUGS[bug], tmp_path)
    for n_chain in (4_000, 16_000, 64_000):
        scores = z_scores(Setting(nu=0.9), 500_000, n_chain, 3, module)
        if abs(worst(scores)[1]) > 6:
            return
    pytest.fail(f"nothing shows: {worst(scores)}")


@pytest.mark.slow
def test_a_bug_in_the_hierarchy_is_caught(tmp_path):
    """The tables of tables, forgotten: shares of topics would follow the documents too closely."""
    old, new = "tables + gamma / n_topics, shares", "2.0 * tables + gamma / n_topics, shares"
    module = mutant(TOPIC_CHAIN, PRIOR, old, new, tmp_path)
    scores = z_scores(Setting(labels=False, hierarchical=True), 200_000, 6_000, 3, module)
    assert abs(worst(scores)[1]) > 6
