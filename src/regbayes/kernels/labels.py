"""What a component says about a label: a margin (GiSVM, M2iHMM, MedLDA) or a softmax (dpMNL)."""

import math
from typing import NamedTuple

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.linalg import cholesky
from regbayes.kernels.logit import draw_logit_weights, draw_new_logit_weights, log_logit
from regbayes.kernels.margin import (
    add_pull,
    draw_new_weights,
    draw_weights,
    log_margin,
    log_new_evidence,
    member_scores,
    start_pull,
)
from regbayes.kernels.random import draw_normal_precision


class LabelTerm(NamedTuple):
    """The factor of a label, and the prior N(mean[y], nu^2 I) of a component's weights."""

    softmax: bool  # else the margin; its weights have a prior mean of zero
    c: float
    ell: float
    nu: float
    mean: np.ndarray  # [L, M], itself N(0, mean_nu^2 I) when the components share it
    mean_nu: float


@kernel
def log_label(scores, k, label, term):
    """log of a label's factor under `scores[:, k]`, at most 0; 0 when it is unknown (-1)."""
    if term.softmax:
        return log_logit(scores, k, label)
    return log_margin(scores, k, label, term.c, term.ell)


@kernel
def add_log_labels(scores, n, label, term, out):
    """Add `log_label` under each of the first `n` columns of `scores` to `out`."""
    c, ell = term.c, term.ell  # numbers, since handing on the term would cost more than the rest
    if term.softmax:
        for k in range(n):
            out[k] += log_logit(scores, k, label)
    else:
        for k in range(n):
            out[k] += log_margin(scores, k, label, c, ell)


@kernel
def log_label_evidence(x, label, term):
    """log of that factor averaged over the prior of the weights."""
    if term.softmax:
        return 0.0 if label < 0 else -math.log(term.mean.shape[0])
    return log_new_evidence(x, label, term)


@kernel
def draw_label_weights(rng, X, y, members, weights, term):
    """One pass over the weights of a component given its members, in place."""
    if term.softmax:
        draw_logit_weights(rng, X, y, members, weights, term.nu)
    else:
        draw_weights(rng, X, y, members, weights, term)


@kernel
def draw_new_label_weights(rng, x, label, term, log_evidence, weights):
    """The weights of a new component given its first datum, into `weights`."""
    if term.softmax:
        draw_new_logit_weights(rng, x, label, term.nu, weights)
    else:
        draw_new_weights(rng, x, label, term, log_evidence, weights)


@kernel
def draw_all_label_weights(rng, X, y, z, weights, term):
    """One pass over the weights of every component given the assignments (000, Eqs. 19-23)."""
    members, ends = _by_component(z, weights.shape[0])
    for k in range(weights.shape[0]):
        draw_label_weights(rng, X, y, members[ends[k] : ends[k + 1]], weights[k], term)


@kernel
def add_all_pulls(rng, X, y, z, weights, label, term, linear, precision):
    """Add what the data say about one class's margins, to `linear[K, M]` and `precision[K, M, M]`.

    The part of :func:`draw_all_label_weights` that looks at data, so that they may be in many
    places: given the sums over all of them, :func:`draw_pulled_weights` is the rest.
    """
    members, ends = _by_component(z, weights.shape[0])
    for k in range(weights.shape[0]):
        own = members[ends[k] : ends[k + 1]]
        scores = member_scores(X, own, weights[k])
        add_pull(rng, X, y, own, scores, label, term, linear[k], precision[k])


@kernel
def draw_pulled_weights(rng, label, term, linear, precision, weights):
    """Draw a class's weights in every component, given the sums of :func:`add_all_pulls`."""
    pull, matrix = np.empty(linear.shape[1]), np.empty(precision.shape[1:])
    for k in range(weights.shape[0]):
        start_pull(term, label, pull, matrix)
        pull += linear[k]
        matrix += precision[k]
        cholesky(matrix, matrix)
        draw_normal_precision(rng, pull, matrix, weights[k, label])


@kernel
def _by_component(z, n_components):
    """`members[ends[k]:ends[k + 1]]` have component k, in their order."""
    members = np.empty(z.shape[0], dtype=np.int64)
    ends = np.zeros(n_components + 1, dtype=np.int64)
    for d in range(z.shape[0]):
        ends[z[d] + 1] += 1
    for k in range(n_components):
        ends[k + 1] += ends[k]
    starts = ends[:n_components].copy()
    for d in range(z.shape[0]):
        members[starts[z[d]]] = d
        starts[z[d]] += 1
    return members, ends
