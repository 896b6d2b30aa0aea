"""The multinomial logit of dpMNL, compiled: softmax likelihood and its weights.

The prior of every class's weights is N(0, nu^2 I), exchangeable over the labels, so a label's
evidence under a new component is exactly 1 / L whatever `x` is.
"""

import math

import numpy as np

from regbayes.kernels._jit import kernel


@kernel
def log_logit(scores, k, label):
    """log softmax(scores[:, k])[label] for one datum; 0 when the label is unknown (-1)."""
    if label < 0:
        return 0.0
    top = -np.inf
    for j in range(scores.shape[0]):
        top = max(top, scores[j, k])
    mass = 0.0
    for j in range(scores.shape[0]):
        mass += math.exp(scores[j, k] - top)
    return scores[label, k] - top - math.log(mass)


@kernel
def _log_likelihood(scores, y, members):
    total = 0.0
    for i in range(members.shape[0]):
        total += log_logit(scores, i, y[members[i]])
    return total


@kernel
def draw_logit_weights(rng, X, y, members, weights, nu):
    """One pass of elliptical slice sampling (Murray, Adams & MacKay 2010), class by class.

    Exact, rejection-free and without a step size: it only asks for a Gaussian prior.
    """
    n_classes, n_features = weights.shape
    n_members = members.shape[0]
    scores = np.zeros((n_classes, n_members))
    for i in range(n_members):
        for j in range(n_classes):
            for m in range(n_features):
                scores[j, i] += weights[j, m] * X[members[i], m]
    direction = np.empty(n_features)
    old, new = np.empty(n_members), np.zeros(n_members)
    log_likelihood = _log_likelihood(scores, y, members)
    for label in range(n_classes):
        for m in range(n_features):
            direction[m] = nu * rng.standard_normal()
        for i in range(n_members):
            old[i] = scores[label, i]
            new[i] = 0.0
            for m in range(n_features):
                new[i] += direction[m] * X[members[i], m]
        threshold = log_likelihood - rng.standard_exponential()
        angle = 2.0 * math.pi * rng.random()
        low, high = angle - 2.0 * math.pi, angle
        while True:
            for i in range(n_members):
                scores[label, i] = math.cos(angle) * old[i] + math.sin(angle) * new[i]
            log_likelihood = _log_likelihood(scores, y, members)
            # An angle of 0 is where it stands now, which rounding must not refuse.
            if log_likelihood > threshold or high - low < 1e-12:
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * rng.random()
        for m in range(n_features):
            weights[label, m] = math.cos(angle) * weights[label, m] + math.sin(angle) * direction[m]


@kernel
def draw_new_logit_weights(rng, x, label, nu, weights):
    """Weights of a new component given its first datum: prior draws until one is accepted."""
    scores = np.empty((weights.shape[0], 1))
    while True:
        for j in range(weights.shape[0]):
            scores[j, 0] = 0.0
            for m in range(weights.shape[1]):
                weights[j, m] = nu * rng.standard_normal()
                scores[j, 0] += weights[j, m] * x[m]
        if -rng.standard_exponential() < log_logit(scores, np.int64(0), label):
            return
