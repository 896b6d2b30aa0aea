"""GiSVM: one assignment sweep against NumPy's densities alone; the first fit against the second.

The sweep visits every datum in turn: takes it out of its component, weighs all components by
Student-t density, margin and size, draws one, and updates its Cholesky factor. The peer only
evaluates the same n x K Student-t densities, all at once, as one matrix product.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

from benchmarks.harness import Comparison, compare
from regbayes.margin import GibbsClassifier
from regbayes.mixture import gibbs
from regbayes.priors import Fixed, NormalInverseGamma, NormalInverseWishart


def student_t_densities(X: np.ndarray, state: gibbs.State, base: gibbs.Base) -> np.ndarray:
    """log Student-t density of every row under every component, shape (n, K)."""
    used, n_features = state.n_components, X.shape[1]
    counts = state.components.counts[:used]
    mean = state.components.mean[:, :used].T
    factor = np.moveaxis(state.components.factor[:, :, :used], 2, 0)
    k, dof = base.strength + counts, base.df + counts - n_features + 1
    inverse = np.linalg.inv(factor)
    whitened = X @ inverse.reshape(-1, n_features).T
    whitened = whitened.reshape(len(X), used, n_features)
    whitened -= np.einsum("kab,kb->ka", inverse, mean)
    distance = np.einsum("nka,nka->nk", whitened, whitened)
    constant = (
        gammaln((dof + n_features) / 2)
        - gammaln(dof / 2)
        - np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        - n_features / 2 * np.log(np.pi * (k + 1) / k)
    )
    return constant - (dof + n_features) / 2 * np.log1p(distance * (k / (k + 1)))


def diagonal_densities(X: np.ndarray, state: gibbs.State, base: gibbs.Base) -> np.ndarray:
    """The same for components with a diagonal covariance."""
    used = state.n_components
    counts = state.components.counts[:used]
    mean, scale = state.components.mean[:, :used].T, state.components.factor[0, :, :used].T
    k, dof = base.strength + counts, base.df + counts
    weighted = (k / (k + 1))[:, None] * (X[:, None, :] - mean) ** 2 / scale
    constant = X.shape[1] * (gammaln((dof + 1) / 2) - gammaln(dof / 2)) - 0.5 * (
        np.log(scale) + np.log(np.pi * (k + 1) / k)[:, None]
    ).sum(axis=1)
    return constant - (dof + 1) / 2 * np.log1p(weighted).sum(axis=2)


def sweep_problem(covariance: str, n: int, n_features: int = 10, n_clusters: int = 20):
    """A chain at rest on n points in 20 well-filled clusters."""
    rng = np.random.default_rng(0)
    z = rng.integers(n_clusters, size=n)
    X = 3.0 * rng.standard_normal((n_clusters, n_features))[z] + rng.standard_normal(
        (n, n_features)
    )
    y = (X[:, 0] > 0).astype(np.int64)
    family = NormalInverseWishart if covariance == "full" else NormalInverseGamma
    base = gibbs.make_base(family.from_data(X, 0.1, None, 0.1))
    table = gibbs.make_table(X, y, base, fit_intercept=True)
    classifier = GibbsClassifier(2, n_features + 1, shared_nu=1.0)
    model = gibbs.Model(table, base, classifier, Fixed(1.0), n, n_init=n_clusters)
    state = gibbs.init(model, rng)
    state.z[:] = z
    for _ in range(5):
        state = gibbs.step(model, rng, state)
    return model, state, rng


def compilations() -> int:
    """How many functions a second fit compiles, in a fresh interpreter with warm caches."""
    code = (
        "import numpy as np, numba, sys\n"
        "from regbayes.mixture import GibbsInfiniteSVM\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(60, 3)); y = X[:, 0] > 0\n"
        "model = GibbsInfiniteSVM(n_draws=5, burn_in=5, random_state=0)\n"
        "fit = lambda: model.fit(X, y).predict(X)\n"
        "fit()\n"
        "from numba.core import event\n"
        "with event.install_recorder('numba:compile') as recorder: fit()\n"
        "print(len(recorder.buffer))\n"
    )
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)


def run(quick: bool) -> list[Comparison]:
    n = 1000 if quick else 5000
    out = []
    for covariance, densities in (("full", student_t_densities), ("diag", diagonal_densities)):
        model, state, rng = sweep_problem(covariance, n)
        with threadpool_limits(limits=1):
            out.append(
                compare(
                    f"assignment sweep, {covariance}, n={n}, D=10, K={state.n_components}",
                    lambda m=model, s=state, r=rng: gibbs.draw_assignments(m, r, s),
                    "NumPy, the densities alone",
                    lambda m=model, s=state, f=densities: f(m.table.X, s, m.base),
                    target_ratio=3.0,
                    repeats=5 if quick else 21,
                )
            )
    print(f"a second fit compiles {compilations()} functions")
    return out
