"""How new documents get their labels: topics that words show by themselves, tuned to a margin.

Topics were drawn with the labels in sight, and new documents have none; shares of topics that the
words of a document settle among themselves know the training documents by heart. A *reading* takes
words one by one: word w shows the topics q_w, out of context,

    q_w(k) ∝ q0_w(k) exp(tilt_wk),    q0_w(k) = (1 - doubt) alpha_k phi_kw / sum + doubt / K,

a document shows r_d = sum_w x_dw q_w, with x_d its words by sublinear tf-idf and of unit length,
and its scores are f_d = eta r_d + b. Tilts and classifier minimise

    J = sum_d r(c u_d) + |eta Q'|^2 / 2 + |b|^2 / 2 + stay sum_w KL(q_w || q0_w),

the margin loss of :mod:`regbayes.margin.med`, a prior on what *words* say for the classes (on eta
alone, a topic of few rare words would be as cheap as one that generalises), and what keeps topics
where the sampler left them. With G_w the derivative of the first two terms by the weights of word
w, J is stationary where tilt_wk = -G_w . eta_k / stay: as in the max-margin score space, the
posterior of hidden topics is tilted by multipliers times weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import rel_entr, softmax
from threadpoolctl import threadpool_limits

from regbayes.data import Documents
from regbayes.margin import med
from regbayes.topics.gibbs import Summary

_DOUBT = 0.6  # the share of a word that no topic may claim before the margin has spoken
_TOL = 1e-3  # a round that lowers J by less than this share of it is the last
_MANY_STEPS, _STEPS = 100, 20  # of L-BFGS in the first round, and in those after it
_TILTS = 10  # steps of a round along the tilts


class Reading(NamedTuple):
    """What one chain makes of words, and what that says for the classes."""

    topics: NDArray  # q [V, K]; rows sum to one
    weights: NDArray  # eta and b, [L, K + 1]
    usual: NDArray  # r of the documents of the fit, their mean [K]

    def evidence(self, inputs: Any) -> NDArray:
        """r_d less what is usual: words that say nothing show all topics a little."""
        return inputs @ self.topics - self.usual

    def scores(self, inputs: Any) -> NDArray:
        """f_d of all documents."""
        return inputs @ (self.topics @ self.weights[:, :-1].T) + self.weights[:, -1]


def word_weights(documents: Documents) -> NDArray:
    """Inverse document frequencies; zero for words that no document has."""
    seen = np.bincount(documents.counts.indices, minlength=documents.n_words)
    return np.where(seen > 0, 1 + np.log((1 + len(documents)) / (1 + seen)), 0.0)


def as_inputs(documents: Documents, weights: NDArray) -> csr_array:
    """Words by sublinear tf-idf, each document of unit length."""
    table = documents.counts
    data = (1 + np.log(table.data)) * weights[table.indices]
    rows = np.repeat(np.arange(len(documents)), np.diff(table.indptr))
    lengths = np.sqrt(np.bincount(rows, data**2, minlength=len(documents)))
    data /= np.where(lengths > 0, lengths, 1.0)[rows]
    return csr_array((data, table.indices, table.indptr), shape=table.shape)


def out_of_context(summary: Summary) -> NDArray:
    """q0: the topics of every word by the chain's means, with doubt."""
    joint = summary.alpha * summary.phi
    return (1 - _DOUBT) * joint / joint.sum(axis=1, keepdims=True) + _DOUBT / joint.shape[1]


class Task(NamedTuple):
    """Labelled documents, the weight of their margins, and that of the sampled topics."""

    inputs: csr_array
    y: NDArray
    n_classes: int
    C: float
    stay: float

    def loss(self, reading: Reading) -> tuple[float, NDArray, NDArray]:
        """J without the divergence, and its derivatives by the weights of words and by b."""
        words = reading.topics @ reading.weights[:, :-1].T
        intercepts = reading.weights[:, -1]
        losses, multipliers = med.margin_terms(self.inputs @ words + intercepts, self.y, self.C)
        pull = med.pull(multipliers, self.y)
        value = losses.sum() + 0.5 * np.sum(words**2) + 0.5 * np.sum(intercepts**2)
        return float(value), words - self.inputs.T @ pull, intercepts - pull.sum(axis=0)


class State(NamedTuple):
    """Where the rounds stand."""

    reading: Reading
    log_first: NDArray  # log q0
    tilts: NDArray  # [V, K]
    value: float  # J
    pace: float  # how far towards their target the tilts went last


def begin(task: Task, first: NDArray) -> State:
    """The best classifier of the sampled topics q0."""
    n_topics = first.shape[1]
    reading = Reading(first, np.zeros((task.n_classes, n_topics + 1)), np.zeros(n_topics))
    reading, value = fit_weights(task, reading, _MANY_STEPS)
    return State(reading, np.log(first), np.zeros_like(first), value, 0.1)


def step(task: Task, state: State) -> State:
    """Topics of words given the classifier, then the classifier given the topics."""
    state = fit_tilts(task, state)
    reading, value = fit_weights(task, state.reading, _STEPS)
    return state._replace(reading=reading, value=value + divergence(task, state))


def fit_weights(task: Task, reading: Reading, n_steps: int) -> tuple[Reading, float]:
    """A better classifier of what words show, and J without the divergence: convex in it."""
    shape = reading.weights.shape

    def slope(flat: NDArray) -> tuple[float, NDArray]:
        value, by_words, by_intercepts = task.loss(reading._replace(weights=flat.reshape(shape)))
        return value, np.column_stack([by_words.T @ reading.topics, by_intercepts]).ravel()

    found = minimize(
        slope, reading.weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": n_steps}
    )
    return reading._replace(weights=found.x.reshape(shape)), float(found.fun)


def fit_tilts(task: Task, state: State) -> State:
    """Steps of the tilts to where J would be stationary; one that would raise it is halved."""

    def look(tilts: NDArray) -> tuple[State, NDArray]:
        topics = softmax(state.log_first + tilts, axis=1)
        there = state._replace(reading=state.reading._replace(topics=topics), tilts=tilts)
        value, by_words, _ = task.loss(there.reading)
        return there._replace(value=value + divergence(task, there)), by_words

    here, by_words = look(state.tilts)
    pace = state.pace
    for _ in range(_TILTS):
        target = -(by_words @ here.reading.weights[:, :-1]) / task.stay
        ahead = look(here.tilts + pace * (target - here.tilts))
        while ahead[0].value > here.value and pace > 1e-6:
            pace /= 2
            ahead = look(here.tilts + pace * (target - here.tilts))
        if ahead[0].value > here.value:
            break
        (here, by_words), pace = ahead, min(1.0, 1.3 * pace)
    return here._replace(pace=pace)


def divergence(task: Task, state: State) -> float:
    """The last term of J."""
    return task.stay * float(np.sum(rel_entr(state.reading.topics, np.exp(state.log_first))))


def tune(task: Task, summary: Summary, n_rounds: int) -> tuple[Reading, Summary]:
    """The reading of a chain, and its topics as the reading sees them."""
    with threadpool_limits(1, user_api="blas"):  # the same bits for any number of them
        state = begin(task, out_of_context(summary))
        for _ in range(n_rounds):
            last, state = state.value, step(task, state)
            if last - state.value < _TOL * state.value:
                break
    usual = np.asarray((task.inputs @ state.reading.topics).mean(axis=0))
    reading = state.reading._replace(usual=usual)
    weights = reading.weights.copy()
    weights[:, -1] += weights[:, :-1] @ usual  # beside `evidence`, which is less by as much
    return reading, tilted(summary, state.tilts, weights)


def tilted(summary: Summary, tilts: NDArray, weights: NDArray) -> Summary:
    """Topics whose words are tilted, with as many words of each kind, and of all, as before."""
    joint = summary.alpha * summary.phi  # p(w, k), but for a constant
    share = joint * np.exp(tilts - tilts.max(axis=1, keepdims=True))
    share *= joint.sum(axis=1, keepdims=True) / share.sum(axis=1, keepdims=True)
    alpha = share.sum(axis=0)
    return Summary(alpha, share / alpha, weights)
