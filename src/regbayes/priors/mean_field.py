"""What mean field asks of the priors: posteriors by fractional counts, expectations, divergences.

References
----------
- Blei & Jordan (2006). Variational inference for Dirichlet process mixtures. Bayesian
  Analysis 1(1).
- Murphy (2007). Conjugate Bayesian analysis of the Gaussian distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln, multigammaln

from regbayes.priors._common import Array
from regbayes.priors.concentration import Fixed, GammaPrior
from regbayes.priors.normal_inverse_gamma import NormalInverseGamma
from regbayes.priors.normal_inverse_wishart import NormalInverseWishart


class Gaussians(NamedTuple):
    """Normal-inverse-Wishart laws of K components, the coordinates in B independent blocks of m.

    A full covariance is one block of all coordinates, a diagonal one as many blocks of one; no law
    of the inputs at all is no block.
    """

    mean: Array  # (K, B, m)
    strength: Array  # (K,)
    df: Array  # (K,)
    scale: Array  # (K, B, m, m)


def make_prior(prior: NormalInverseWishart | NormalInverseGamma | None) -> Gaussians:
    """The prior of a component in blocks, as one law that broadcasts over components."""
    if prior is None:
        return Gaussians(np.zeros((1, 0, 1)), np.ones(1), np.ones(1), np.ones((1, 0, 1, 1)))
    if isinstance(prior, NormalInverseWishart):
        mean, scale = prior.mean[None, None], prior.scale[None, None]
    else:
        mean, scale = prior.mean[None, :, None], prior.scale[None, :, None, None]
    return Gaussians(mean, np.array([prior.strength]), np.array([prior.df]), scale)


def make_blocks(X: Array, prior: Gaussians) -> Array:
    """The inputs as the Gaussians read them, of shape (B, n, m)."""
    n_blocks, size = prior.mean.shape[1:]
    return X[:, : n_blocks * size].reshape(len(X), n_blocks, size).swapaxes(0, 1)


def posterior(prior: Gaussians, blocks: Array, r: Array) -> Gaussians:
    """The conjugate update by points that count r_dk (Murphy 2007, Section 9)."""
    counts = r.sum(axis=0)
    strength = prior.strength + counts
    tiny = np.finfo(np.float64).tiny  # an empty component has no average and needs none
    shares = r / np.maximum(counts, tiny)
    average = np.einsum("dk,bdi->kbi", shares, blocks, optimize=True)
    shift = average - prior.mean
    spread = np.empty((len(counts), *prior.scale.shape[1:]))
    for k, weight in enumerate(r.T):  # about the average: no cancellation
        centred = blocks - average[k, :, None]
        spread[k] = centred.swapaxes(1, 2) @ (weight[:, None] * centred)
    pull = (prior.strength * counts / strength)[:, None, None, None]
    return Gaussians(
        prior.mean + (counts / strength)[:, None, None] * shift,
        strength,
        prior.df + counts,
        prior.scale + spread + pull * shift[..., :, None] * shift[..., None, :],
    )


def log_density(blocks: Array, q: Gaussians) -> Array:
    """E_q[log N(x_d | mu_k, Sigma_k)], shape (n, K)."""
    n_blocks, n, size = blocks.shape
    distance = np.empty((n, len(q.df)))
    for k, root in enumerate(np.linalg.cholesky(q.scale)):
        white = np.linalg.solve(root, (blocks - q.mean[k, :, None]).swapaxes(1, 2))
        distance[:, k] = np.square(white).sum(axis=(0, 1))
    log_precision = n_blocks * (multidigamma(q.df, size) + size * np.log(2)) - log_det(q.scale)
    constant = log_precision - n_blocks * size * (np.log(2 * np.pi) + 1 / q.strength)
    return 0.5 * (constant - q.df * distance)


def kl_gaussians(q: Gaussians, p: Gaussians) -> float:
    """KL(q || p), summed over components; `p` is one law for all."""
    n_blocks, size = q.mean.shape[1:]
    shift = q.mean - p.mean
    precision = np.linalg.inv(q.scale)
    trace = np.einsum("kbij,xbji->k", precision, p.scale)
    distance = np.einsum("kbi,kbij,kbj->k", shift, precision, shift, optimize=True)
    ratio = p.strength / q.strength
    means = n_blocks * size * (ratio - 1 - np.log(ratio)) + p.strength * q.df * distance
    covariances = (
        2 * n_blocks * (multigammaln_each(p.df, size) - multigammaln_each(q.df, size))
        + n_blocks * (q.df - p.df) * multidigamma(q.df, size)
        + p.df * (log_det(q.scale) - log_det(p.scale))
        + q.df * (trace - n_blocks * size)
    )
    return float(0.5 * np.sum(means + covariances))


def expected_log_sticks(sticks: Array) -> tuple[Array, Array]:
    """E[log v_k] and E[log (1 - v_k)] for k < K; the last stick takes all that is left.

    `sticks` has shape (..., K, 2), Beta parameters.
    """
    a, b = np.moveaxis(sticks[..., :-1, :], -1, 0)
    return digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)


def kl_sticks(sticks: Array, alpha: Fixed | GammaPrior) -> float:
    """E[log q(v) - log p(v | alpha)], p = Beta(1, alpha), summed over all sticks."""
    (a, b), (log_v, log_rest) = np.moveaxis(sticks[..., :-1, :], -1, 0), expected_log_sticks(sticks)
    entropy = betaln(a, b) - (a - 1) * log_v - (b - 1) * log_rest
    return float(-np.sum(entropy + expected_log(alpha) + (alpha.mean - 1) * log_rest))


def posterior_concentration(prior: Fixed | GammaPrior, sticks: Array) -> Fixed | GammaPrior:
    """The update of q(alpha) (Blei & Jordan 2006, appendix)."""
    if isinstance(prior, Fixed):
        return prior
    _, log_rest = expected_log_sticks(sticks)
    return GammaPrior(prior.shape + log_rest.size, prior.rate - log_rest.sum())


def expected_log(alpha: Fixed | GammaPrior) -> float:
    if isinstance(alpha, Fixed):
        return float(np.log(alpha.value))
    return float(digamma(alpha.shape) - np.log(alpha.rate))


def kl_gamma(q: Fixed | GammaPrior, p: Fixed | GammaPrior) -> float:
    if isinstance(q, Fixed) or isinstance(p, Fixed):
        return 0.0
    return float(
        (q.shape - p.shape) * digamma(q.shape)
        - gammaln(q.shape)
        + gammaln(p.shape)
        + p.shape * np.log(q.rate / p.rate)
        + q.shape * (p.rate / q.rate - 1)
    )


def multigammaln_each(df: Array, size: int) -> Array:
    return np.array([multigammaln(value / 2, size) for value in df])


def multidigamma(df: Array, size: int) -> Array:
    """The derivative of the log of the multivariate gamma function at df / 2."""
    return digamma((df[:, None] - np.arange(size)) / 2).sum(axis=1)


def log_det(scale: Array) -> Array:
    """Log determinant of each component's blocks together."""
    return np.linalg.slogdet(scale)[1].sum(axis=1)
