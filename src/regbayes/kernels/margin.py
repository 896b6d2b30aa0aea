"""The margin term, compiled: a label's pseudo-likelihood, the weights, and a new component.

With scores `f_y = weights[y]·x` a label `y` has the pseudo-likelihood (000, Section 4.1)

    phi(y | x, weights) = exp(-2 c h),    h = max(0, max_{j != y} (ell + f_j) - f_y),

and every class's weights have the prior N(mean[y], nu^2 I). A label of -1 is unknown and carries
no margin term. `x` brings its own constant when an intercept is wanted. `term` is a `LabelTerm`,
which holds c, ell, nu and mean.
"""

import math

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.linalg import cholesky, log_ndtr
from regbayes.kernels.random import draw_inverse_gaussian, draw_normal_precision

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_DROP = 45.0  # the quadrature leaves out what has fallen by exp(-45)
_SURE = 9.0  # and Phi(9) is 1
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_MOST_GAIN = 1e12  # a datum on its margin (1/w -> inf) pins its score to 1e-6, no closer


@kernel
def log_margin(scores, k, label, c, ell):
    """log phi(label | scores[:, k]) for one datum."""
    if label < 0:
        return 0.0
    rival = -np.inf
    for j in range(scores.shape[0]):
        if j != label and scores[j, k] > rival:
            rival = scores[j, k]
    return -2.0 * c * max(0.0, ell + rival - scores[label, k])


@kernel
def draw_weights(rng, X, y, members, weights, term):
    """One Gibbs pass over the class weights of one component, in place (000, Eqs. 20-23).

    `members` are the component's rows of `X`. Each class is drawn given the others by the
    augmentation of Polson & Scott (2011). The printed Eq. 23 has `rho + c w kappa` where
    `c zeta + kappa w` is meant.
    """
    n_classes, n_features = weights.shape
    scores = member_scores(X, members, weights)
    precision = np.empty((n_features, n_features))
    linear = np.empty(n_features)
    for label in range(n_classes):
        start_pull(term, label, linear, precision)
        add_pull(rng, X, y, members, scores, label, term, linear, precision)
        cholesky(precision, precision)
        draw_normal_precision(rng, linear, precision, weights[label])
        for i in range(members.shape[0]):
            scores[i, label] = 0.0
            for m in range(n_features):
                scores[i, label] += weights[label, m] * X[members[i], m]


@kernel
def member_scores(X, members, weights):
    """Scores of a component's members by its weights, of shape (n_members, L)."""
    scores = np.zeros((members.shape[0], weights.shape[0]))
    for i in range(members.shape[0]):
        for j in range(weights.shape[0]):
            for m in range(weights.shape[1]):
                scores[i, j] += weights[j, m] * X[members[i], m]
    return scores


@kernel
def start_pull(term, label, linear, precision):
    """What the prior says about the weights of a class in a component."""
    prior_precision = 1.0 / (term.nu * term.nu)
    precision[:] = 0.0
    for m in range(linear.shape[0]):
        precision[m, m] = prior_precision
        linear[m] = prior_precision * term.mean[label, m]


@kernel
def add_pull(rng, X, y, members, scores, label, term, linear, precision):
    """Add what members of a component say about the weights of a class, given those of the others.

    `scores[i, j]` are those of `members[i]`. Only the lower half of `precision` is added to.
    """
    c, n_features = term.c, X.shape[1]
    for i in range(members.shape[0]):
        d = members[i]
        if y[d] < 0:
            continue
        zeta = -np.inf
        for j in range(scores.shape[1]):
            if j != label:
                zeta = max(zeta, scores[i, j] + (0.0 if j == y[d] else term.ell))
        kappa = 1.0
        if label != y[d]:
            kappa = -1.0
            zeta -= term.ell
        # Eq. 22: 1/w ~ IG(1 / (c |u|), 1), u = kappa (zeta - f)
        u = abs(zeta - scores[i, label])
        inverse_w = draw_inverse_gaussian(rng, 1.0 / max(c * u, 1e-300), 1.0)
        inverse_w = min(inverse_w, _MOST_GAIN / (c * c))
        # Eq. 23: linear term c (kappa w + c zeta) / w, precision c^2 / w
        pull = c * (kappa + c * zeta * inverse_w)
        gain = c * c * inverse_w
        for a in range(n_features):
            if X[d, a] == 0.0:  # shares of topics mostly are
                continue
            linear[a] += pull * X[d, a]
            for b in range(a + 1):
                precision[a, b] += gain * X[d, a] * X[d, b]


@kernel
def draw_shared_weights(rng, weights, nu, top_nu, out):
    """The mean of the components' weights `[K, L, M]` given them, under N(0, top_nu^2 I)."""
    n_components = weights.shape[0]
    precision = n_components / (nu * nu) + 1.0 / (top_nu * top_nu)
    for j in range(out.shape[0]):
        for m in range(out.shape[1]):
            total = 0.0
            for k in range(n_components):
                total += weights[k, j, m]
            noise = rng.standard_normal() / math.sqrt(precision)
            out[j, m] = total / (nu * nu * precision) + noise


# A new component, in closed form but for one integral. Since exp(-2 c h) is the chance that an
# exponential slack of rate 2c exceeds h, phi averaged over the prior of the weights is the chance
# that (own score + slack) exceeds every rival score + ell. Own score + slack is an exponentially
# modified Gaussian, so with t its value in units of s = nu |x| from the own score's mean,
#
#     evidence = integral of  EMG(t; q) prod_{j != y} Phi(t + gap_j) dt,    q = 2 c s,
#     gap_j = (mean score of y - ell - mean score of j) / s,
#
# whose integrand is log-concave. This is 000's Eq. 18 without its importance sampling.


@kernel
def _log_mills(x):
    """log of (1 - Phi(x)) / density(x)."""
    if x < 20.0:
        return log_ndtr(-x) + 0.5 * x * x + _LOG_SQRT_2PI
    z = 1.0 / (x * x)
    return math.log1p(-z * (1.0 - z * (3.0 - z * (15.0 - z * (105.0 - z * 945.0))))) - math.log(x)


@kernel
def _log_tilted(t, q):
    """log of exp(-q t + q^2 / 2) Phi(t - q); q times this is the EMG density."""
    if q > t:  # rearranged: the terms above cancel when q is large
        return -0.5 * t * t - _LOG_SQRT_2PI + _log_mills(q - t)
    return q * (0.5 * q - t) + log_ndtr(t - q)


@kernel
def _log_slack_density(t, q, gaps):
    total = math.log(q) + _log_tilted(t, q)
    for j in range(gaps.shape[0]):
        total += log_ndtr(t + gaps[j])
    return total


@kernel
def _slack_mode(q, gaps, sure):
    """Where the integrand peaks: between the EMG's own peak and where every Phi is 1."""
    low, high = -1.0, max(sure, 45.0)
    golden = 0.6180339887498949
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left = _log_slack_density(left, q, gaps)
    at_right = _log_slack_density(right, q, gaps)
    while high - low > 1e-4:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _log_slack_density(left, q, gaps)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _log_slack_density(right, q, gaps)
        if left >= right:  # no closer in floating point
            break
    return 0.5 * (low + high)


@kernel
def _edge(mode, peak, step, q, gaps):
    edge = mode + step
    while _log_slack_density(edge, q, gaps) > peak - _DROP:
        edge += step
        step *= 1.2
    return edge


@kernel
def _score_gaps(x, label, term, gaps):
    """Fill `gaps`, in units of s unless it is negligible; returns s, or 0, and the own mean score.

    A datum next to the origin has scores that do not vary: its evidence is phi at their means.
    """
    square = 0.0
    for m in range(x.shape[0]):
        square += x[m] * x[m]
    s = term.nu * math.sqrt(square)
    own = 0.0
    for m in range(x.shape[0]):
        own += term.mean[label, m] * x[m]
    i = 0
    for j in range(term.mean.shape[0]):
        if j != label:
            score = 0.0
            for m in range(x.shape[0]):
                score += term.mean[j, m] * x[m]
            gaps[i] = own - term.ell - score
            i += 1
    if s <= 1e-9 * np.abs(gaps).max():
        return 0.0, own
    gaps /= s
    return s, own


@kernel
def log_new_evidence(x, label, term):
    """log of E[phi(label | x, weights)] over the prior of the weights (000, Eq. 18)."""
    if label < 0:
        return 0.0
    gaps = np.empty(term.mean.shape[0] - 1)
    s, _ = _score_gaps(x, label, term, gaps)
    if s == 0.0:
        return -2.0 * term.c * max(0.0, -gaps.min())
    q = 2.0 * term.c * s
    sure = _SURE - gaps.min()
    mode = _slack_mode(q, gaps, sure)
    peak = _log_slack_density(mode, q, gaps)
    low = _edge(mode, peak, -0.5, q, gaps)
    high = min(_edge(mode, peak, 0.5, q, gaps), sure)
    total = 0.0
    if low < high:
        half = 0.5 * (high - low)
        for i in range(_NODES.shape[0]):
            t = low + half * (1.0 + _NODES[i])
            total += _NODE_WEIGHTS[i] * math.exp(_log_slack_density(t, q, gaps) - peak)
        total *= half
    # Beyond `sure` only the EMG is left, and its tail is known.
    tail = math.exp(log_ndtr(-sure) - peak) + math.exp(_log_tilted(sure, q) - peak)
    return min(0.0, peak + math.log(total + tail))


@kernel
def _draw_normal_above(rng, lower):
    """A standard normal above `lower` (Robert 1995)."""
    if lower < 0.4:
        while True:
            v = rng.standard_normal()
            if v > lower:
                return v
    rate = 0.5 * (lower + math.sqrt(lower * lower + 4.0))
    while True:
        v = lower + rng.standard_exponential() / rate
        if 2.0 * rng.standard_exponential() > (v - rate) * (v - rate):
            return v


@kernel
def draw_new_weights(rng, x, label, term, log_evidence, weights):
    """Weights of a new component given its first datum, exactly, into `weights`.

    Proposing from the prior and accepting with probability phi is exact too, but hopeless when
    exp(-2 c ell) is small. The integrand above is log-concave with a known integral, so the
    envelope of Devroye (1986, VII.2) accepts one proposal in four whatever c is.
    """
    n_classes, n_features = weights.shape
    for j in range(n_classes):
        for m in range(n_features):
            weights[j, m] = term.mean[j, m] + term.nu * rng.standard_normal()
    if label < 0:
        return
    gaps = np.empty(n_classes - 1)
    s, own_mean = _score_gaps(x, label, term, gaps)
    if s == 0.0:
        return
    q = 2.0 * term.c * s

    mode = _slack_mode(q, gaps, _SURE - gaps.min())
    peak = _log_slack_density(mode, q, gaps)
    height = 0.999 * math.exp(peak - log_evidence)  # a hair lower: the integral is numerical
    while True:
        offset, log_envelope = rng.random(), 0.0
        if rng.random() < 0.5:
            offset = 1.0 + rng.standard_exponential()
            log_envelope = 1.0 - offset
        t = mode + (offset if rng.random() < 0.5 else -offset) / height
        if -rng.standard_exponential() < _log_slack_density(t, q, gaps) - peak - log_envelope:
            break

    square = (s / term.nu) ** 2
    i = 0
    for j in range(n_classes):
        if j == label:  # own score given own score + slack: tilted, and below it
            score = own_mean + s * (q - _draw_normal_above(rng, q - t))
        else:  # a rival: below own score + slack - ell
            score = own_mean - term.ell - s * (gaps[i] + _draw_normal_above(rng, -t - gaps[i]))
            i += 1
        drawn = 0.0
        for m in range(n_features):
            drawn += weights[j, m] * x[m]
        for m in range(n_features):
            weights[j, m] += (score - drawn) / square * x[m]
