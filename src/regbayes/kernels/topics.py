"""Topics of tokens, compiled: two sweeps of Gibbs sampling, each with a margin or without.

Token i is word `words[i]`; document d is tokens `starts[d]:starts[d + 1]`. The proportions of the
documents are integrated out. Their topics phi are either drawn (`draw_topics`, then
`draw_assignments`), or stand at their means given the last sweep (`settle`):

    z_i = k | rest  ∝  (n_dk + alpha_k) phi[w_i, k] x exp(-2 c h(y_d, scores of d if z_i = k)),

with the counts n_dk of the other tokens of d. Either way documents do not see each other in a
sweep: they are worked on in threads, each token with random numbers of its own, so that nothing
depends on the number of threads. A token's work is a sum over the topics that have its word. The
margin is a test (Metropolis) of what the other factors propose.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc

from regbayes.kernels._jit import kernel
from regbayes.kernels.random import draw_gamma, draw_log_gamma
from regbayes.kernels.threads import in_threads

_N_STREAMS = 16  # of random numbers for the topics: blocks of words, whatever the threads
# A Gamma variable below this is taken for zero: its share of a topic is below 1e-7, as much as
# single precision loses. Topics too light for that are drawn whole, see `_draw_light_topic`.
_FLOOR = 1e-9
_LIGHT = 0.01
_EXP_MINUS_1 = math.exp(-1.0)


class Corpus(NamedTuple):
    """Tokens by document, and where the tokens of each word are."""

    words: np.ndarray  # [n_tokens] int32
    starts: np.ndarray  # [n_documents + 1]
    by_word: np.ndarray  # [n_tokens] int32: those of word w are by_word[word_starts[w]:...]
    word_starts: np.ndarray  # [n_words + 1]

    @property
    def n_words(self):
        return len(self.word_starts) - 1

    @property
    def n_documents(self):
        return len(self.starts) - 1


class Topics(NamedTuple):
    """phi: for every word, the topics that have it and its shares of them."""

    cells: np.ndarray  # [V, K] uint32, the first `sizes[w]` of a row in use
    shares: np.ndarray  # [V, K] float32
    sizes: np.ndarray  # [V]


class WordTopics(NamedTuple):
    """Which topics the words have and how often, `sizes[w]` of them from `starts[w]` on."""

    cells: np.ndarray  # uint32, in the order in which the tokens have them
    counts: np.ndarray  # float64
    starts: np.ndarray  # [V]
    sizes: np.ndarray  # [V]


class Margins(NamedTuple):
    """Labels (-1: none), and the classifier: scores are (shares of topics, 1) @ weights."""

    y: np.ndarray  # [n_documents]
    weights: np.ndarray  # [K + 1, L]; L = 0 without labels
    c: float
    ell: float


def make_corpus(indptr, indices, counts, n_words):
    """Tokens of documents given as counts of words, row by row.

    Examples
    --------
    >>> corpus = make_corpus(np.array([0, 2, 3]), np.array([1, 0, 1]), np.array([2, 1, 1]), 2)
    >>> corpus.words, corpus.starts
    (array([1, 1, 0, 1], dtype=int32), array([0, 3, 4]))
    >>> corpus.by_word, corpus.word_starts
    (array([2, 0, 1, 3], dtype=int32), array([0, 1, 4]))
    """
    words = np.repeat(indices, counts).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(counts)])[indptr].astype(np.int64)
    by_word = np.argsort(words, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(words, minlength=n_words))
    return Corpus(words, starts, by_word, np.concatenate([[0], ends]))


def empty_topics(n_words, n_topics):
    """Room for topics, for :func:`draw_topics` to fill."""
    shape = n_words, n_topics
    return Topics(
        np.empty(shape, dtype=np.uint32),
        np.empty(shape, dtype=np.float32),
        np.zeros(n_words, dtype=np.int64),
    )


def draw_topics(rng, corpus, z, beta, base, topics, n_threads=1):
    """phi | z, beta into `topics`: column k is Dirichlet(beta + base[:, k] + counts[:, k]).

    Parameters
    ----------
    rng : numpy.random.Generator
    corpus : Corpus
    z : ndarray of int32 of shape (n_tokens,)
    beta : float
    base : ndarray of shape (V, K) or (0, 0)
        Counts from elsewhere.
    topics : Topics
    n_threads : int

    Examples
    --------
    >>> corpus = make_corpus(np.array([0, 2]), np.array([0, 1]), np.array([3, 3]), 2)
    >>> topics, none = empty_topics(2, 2), np.empty((0, 0))
    >>> z = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    >>> draw_topics(np.random.default_rng(0), corpus, z, 1e-3, none, topics)
    >>> dense(topics).round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    found = count_word_topics(corpus, z, topics.cells.shape[1], n_threads)
    draw_topics_given(rng, found, beta, base, topics, n_threads)


def draw_topics_given(rng, found, beta, base, topics, n_threads=1):
    """The same by the counts of tokens, a `WordTopics`."""
    n_words, n_topics = topics.cells.shape
    n_streams = min(_N_STREAMS, 1 + n_words // 64)
    edges = np.linspace(0, n_words, n_streams + 1).astype(np.int64)
    blocks = np.arange(len(edges))
    # By numbers from `rng`, not by its `spawn`: the count of children is no part of its state, and
    # a chain that goes on from a checkpoint would draw others.
    streams = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(blocks) - 1)]
    totals = np.zeros((len(blocks) - 1, n_topics))
    # How many cells in a row stay below the floor is geometric: an exponential, rounded down.
    rate = -math.log(max(gammainc(beta, _FLOOR), 1e-300))

    def draw(low, high):
        for b in range(low, high):
            _draw_cells(
                streams[b], edges[b], edges[b + 1], found, beta, rate, base, topics, totals[b]
            )  # fmt: skip

    in_threads(draw, blocks, n_threads)
    sums = totals.sum(axis=0)
    for k in np.flatnonzero(sums < _LIGHT):
        sums[k] = _draw_light_topic(rng, k, beta, topics)
    _normalize(1.0 / sums, topics)


@kernel
def _draw_cells(rng, low, high, found, beta, rate, base, topics, totals):
    """Gamma variables of the words `low` to `high`, not normalised; their sums by topic."""
    cells, shares, sizes = topics.cells, topics.shares, topics.sizes
    n_topics = cells.shape[1]
    counts = np.zeros(n_topics)
    own = np.zeros(n_topics)  # totals of other blocks are in the same line of the cache
    least = _FLOOR**beta
    for w in range(low, high):
        n = 0
        if base.shape[0] > 0:
            for k in range(n_topics):
                if base[w, k] > 0.0:
                    counts[k] = base[w, k]
                    cells[w, n] = k
                    n += 1
        for i in range(found.starts[w], found.starts[w] + found.sizes[w]):
            k = found.cells[i]
            if counts[k] == 0.0:
                cells[w, n] = k
                n += 1
            counts[k] += found.counts[i]
        size = n
        k = int(min(rng.standard_exponential() / rate, 1e9))
        while k < n_topics:  # cells without counts, those above the floor
            if counts[k] == 0.0:
                cells[w, size] = k
                shares[w, size] = _draw_above_floor(rng, beta, least)
                size += 1
            k += 1 + int(min(rng.standard_exponential() / rate, 1e9))
        for i in range(n):
            k = cells[w, i]
            shares[w, i] = draw_gamma(rng, beta + counts[k])
            counts[k] = 0.0
        for i in range(size):
            own[cells[w, i]] += shares[w, i]
        sizes[w] = size
    for k in range(n_topics):
        totals[k] = own[k]


@kernel
def _draw_above_floor(rng, beta, least):
    """Gamma(beta) given that it is above the floor, where `least` is the floor to the beta.

    By rejection, for beta <= 1: below one from x^(beta - 1), above from exp(-x). For larger beta
    the floor is never met.
    """
    if beta > 1.0:
        return draw_gamma(rng, beta)
    while True:
        at = least + rng.random() * (1.0 - least + beta * _EXP_MINUS_1)
        test = rng.random()
        if at < 1.0:
            x = math.exp(math.log(at) / beta)
            if test < 1.0 - x or test < math.exp(-x):
                return x
        else:
            x = 1.0 + rng.standard_exponential()
            if test < math.exp((beta - 1.0) * math.log(x)):
                return x


@kernel
def _draw_light_topic(rng, k, beta, topics):
    """All cells of a topic that has little above the floor; returns its new sum.

    Below the floor the density is x^(beta - 1): the floor times U^(1 / beta).
    """
    cells, shares, sizes = topics.cells, topics.shares, topics.sizes
    n_words = cells.shape[0]
    place = np.empty(n_words, dtype=np.int64)
    logs = np.empty(n_words)
    for w in range(n_words):
        place[w] = -1
        for i in range(sizes[w]):
            if cells[w, i] == k:
                place[w] = i
        if place[w] >= 0:
            logs[w] = math.log(shares[w, place[w]])
        else:
            logs[w] = math.log(_FLOOR) - rng.standard_exponential() / beta
            place[w] = sizes[w]
            cells[w, sizes[w]] = k
            sizes[w] += 1
    best = logs.max()
    total = 0.0
    for w in range(n_words):
        shares[w, place[w]] = math.exp(logs[w] - best)
        total += shares[w, place[w]]
    return total


@kernel
def _normalize(scales, topics):
    cells, shares, sizes = topics.cells, topics.shares, topics.sizes
    for w in range(cells.shape[0]):
        for i in range(sizes[w]):
            shares[w, i] *= scales[cells[w, i]]


def dense(topics):
    """phi as an array of shape (V, K)."""
    out = np.zeros(topics.cells.shape)
    for w, size in enumerate(topics.sizes):
        out[w, topics.cells[w, :size]] = topics.shares[w, :size]
    return out


def draw_assignments(rng, corpus, z, alpha, topics, margins, n_threads=1):
    """z | phi, alpha and the labels, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    corpus : Corpus
    z : ndarray of int32 of shape (n_tokens,)
    alpha : ndarray of shape (K,)
    topics : Topics
    margins : Margins
    n_threads : int
    """
    uniforms, tests = _uniforms(rng, len(z), margins)

    def draw(low, high):
        _draw_documents(
            low, high, corpus.words, corpus.starts, z, alpha, topics, margins, uniforms, tests
        )

    in_threads(draw, corpus.starts, n_threads)


def _uniforms(rng, n, margins):
    return rng.random(n), rng.random(n if margins.weights.shape[1] else 0)


@kernel
def _draw_documents(low, high, words, starts, z, alpha, topics, margins, uniforms, tests):
    cells, shares, sizes = topics.cells, topics.shares, topics.sizes
    n_classes = margins.weights.shape[1]
    scores, proposed = np.empty(n_classes), np.empty(n_classes)
    sums = np.empty(alpha.shape[0])
    weight = alpha.copy()  # n_dk + alpha_k
    for d in range(low, high):
        for i in range(starts[d], starts[d + 1]):
            weight[z[i]] += 1.0
        label = _start_scores(d, starts, z, margins, scores)
        for i in range(starts[d], starts[d + 1]):
            w, old = words[i], np.uint32(z[i])
            weight[old] -= 1.0
            total = 0.0
            for j in range(sizes[w]):
                total += weight[cells[w, j]] * shares[w, j]
                sums[j] = total
            new = cells[w, _place(sums, sizes[w], uniforms[i] * total)]
            if label >= 0 and new != old:
                size = starts[d + 1] - starts[d]
                new = _test(old, new, label, size, margins, tests[i], scores, proposed)
            weight[new] += 1.0
            z[i] = new
        for i in range(starts[d], starts[d + 1]):
            weight[z[i]] = alpha[z[i]]


@kernel
def _place(sums, size, target):
    """How many of the rising `sums` are at most `target`, but for the last of them.

    There is no early exit: it would be a branch that no processor can foresee.
    """
    j = 0
    for i in range(size - 1):
        j += sums[i] <= target
    return j


@kernel
def _start_scores(d, starts, z, margins, scores):
    """Scores of document d, if it has a label, which is returned."""
    n_classes = scores.shape[0]
    if n_classes == 0 or margins.y[d] < 0:
        return -1
    weights = margins.weights
    scores[:] = 0.0
    for i in range(starts[d], starts[d + 1]):
        for j in range(n_classes):
            scores[j] += weights[z[i], j]
    for j in range(n_classes):
        scores[j] = scores[j] / max(starts[d + 1] - starts[d], 1) + weights[-1, j]
    return margins.y[d]


@kernel
def _test(old, new, label, size, margins, test, scores, proposed):
    """The new topic of a token if the margin lets it have it, else the old one."""
    weights = margins.weights
    for j in range(scores.shape[0]):
        proposed[j] = scores[j] + (weights[new, j] - weights[old, j]) / size
    loss = _hinge(proposed, label, margins.ell) - _hinge(scores, label, margins.ell)
    if loss > 0.0 and test >= math.exp(-2.0 * margins.c * loss):
        return old
    scores[:] = proposed
    return new


@kernel
def _hinge(scores, label, ell):
    rival = -np.inf
    for j in range(scores.shape[0]):
        if j != label:
            rival = max(rival, scores[j])
    return max(0.0, ell + rival - scores[label])


def settle(rng, corpus, z, alpha, beta, margins, n_threads=1):
    """A fast sweep towards good topics, in place.

    phi is at its mean given the assignments before the sweep, without the token itself:

        z_i = k  ∝  (n_dk + alpha_k) (n_wk + beta) / (n_k + V beta).

    This is the collapsed sampler (Griffiths & Steyvers 2004) with the counts of words one sweep
    late. It finds good topics in as few sweeps as that one, where drawn topics need twice as many;
    but it does not leave the posterior as it is, and must not be the last word of a chain.

    Parameters
    ----------
    rng, corpus, z, alpha, beta, margins, n_threads
        As in :func:`draw_topics` and :func:`draw_assignments`.
    """
    found = count_word_topics(corpus, z, len(alpha), n_threads)
    settle_given(rng, corpus, z, alpha, beta, margins, found, n_threads)


def settle_given(rng, corpus, z, alpha, beta, margins, found, n_threads=1):
    """The same by counts that may be those of more documents than these."""
    inverse = 1.0 / (topic_totals(found, len(alpha)) + corpus.n_words * beta)
    prior = np.cumsum(alpha * inverse)
    uniforms, tests = _uniforms(rng, len(z), margins)

    def draw(low, high):
        _settle_documents(
            low, high, corpus.words, corpus.starts, found.starts, z, alpha, beta, inverse,
            prior, found.cells, found.counts, found.sizes, margins, uniforms, tests,
        )  # fmt: skip

    in_threads(draw, corpus.starts, n_threads)


def count_words(corpus, z, n_topics, n_threads=1):
    """The pairs of a word and a topic with tokens, as word * n_topics + topic, and their counts.

    Examples
    --------
    >>> corpus = make_corpus(np.array([0, 2]), np.array([0, 1]), np.array([1, 3]), 2)
    >>> count_words(corpus, np.array([1, 1, 0, 1], dtype=np.int32), 2)
    (array([1, 3, 2]), array([1, 2, 1], dtype=int32))
    """
    return as_pairs(count_word_topics(corpus, z, n_topics, n_threads), n_topics)


def as_pairs(found, n_topics):
    """`WordTopics` as the pairs of :func:`count_words`."""
    words, used = _used(found)
    return words * n_topics + found.cells[used], found.counts[used].astype(np.int32)


def _used(found):
    """Words, and where their cells are."""
    words = np.repeat(np.arange(len(found.sizes)), found.sizes)
    first = np.cumsum(found.sizes) - found.sizes
    return words, np.arange(len(words)) + (found.starts - first)[words]


def without_gaps(found):
    """`WordTopics` with one word after the other, to travel."""
    _, used = _used(found)
    starts = np.cumsum(found.sizes) - found.sizes
    return WordTopics(found.cells[used], found.counts[used], starts, found.sizes)


def merge_word_topics(one, other, n_topics):
    """The counts of the tokens of both, those of `one` first.

    Examples
    --------
    >>> words = make_corpus(np.array([0, 2]), np.array([0, 1]), np.array([1, 3]), 2)
    >>> one = count_word_topics(words, np.array([1, 1, 0, 1], dtype=np.int32), 2)
    >>> other = count_word_topics(words, np.zeros(4, dtype=np.int32), 2)
    >>> as_pairs(merge_word_topics(one, other, 2), 2)
    (array([1, 0, 3, 2]), array([1, 1, 2, 4], dtype=int32))
    """
    room = one.sizes + other.sizes
    starts = np.cumsum(room) - room
    cells, counts = np.empty(room.sum(), dtype=np.uint32), np.empty(room.sum())
    sizes = np.empty_like(room)
    _merge_cells(one, other, n_topics, starts, cells, counts, sizes)
    return without_gaps(WordTopics(cells, counts, starts, sizes))


@kernel
def _merge_cells(one, other, n_topics, starts, cells, counts, sizes):
    place = np.full(n_topics, -1, dtype=np.int64)
    for w in range(starts.shape[0]):
        end = starts[w]
        for part in (one, other):
            for i in range(part.starts[w], part.starts[w] + part.sizes[w]):
                k = part.cells[i]
                if place[k] < 0:
                    place[k] = end
                    cells[end] = k
                    counts[end] = 0.0
                    end += 1
                counts[place[k]] += part.counts[i]
        for i in range(starts[w], end):
            place[cells[i]] = -1
        sizes[w] = end - starts[w]


def topic_totals(found, n_topics):
    """Tokens of the topics."""
    _, used = _used(found)
    return np.bincount(found.cells[used], found.counts[used], minlength=n_topics)


def word_seats(found):
    """[n]: the pairs of a word and a topic with more than n tokens."""
    _, used = _used(found)
    sizes = np.bincount(found.counts[used].astype(np.int64))
    return sizes[:0:-1].cumsum()[::-1]


def count_word_topics(corpus, z, n_topics, n_threads=1):
    """Topics of the words, a `WordTopics` with room for every token."""
    cells = np.empty(len(z), dtype=np.uint32)
    counts = np.empty(len(z))
    starts, sizes = np.empty((2, corpus.n_words), dtype=np.int64)

    def count(low, high):
        _count_cells(
            low, high, corpus.by_word, corpus.word_starts, z, n_topics, cells, counts, starts, sizes
        )

    in_threads(count, corpus.word_starts, n_threads)
    return WordTopics(cells, counts, starts, sizes)


@kernel
def _count_cells(low, high, by_word, word_starts, z, n_topics, cells, counts, starts, sizes):
    """The topics of the words `low` to `high`, and how often they have each.

    One word after the other: what a thread has found is read by all, and travels in fewer lines of
    their caches than if every word kept room for all its tokens.
    """
    place = np.full(n_topics, -1, dtype=np.int64)
    end = word_starts[low]
    for w in range(low, high):
        first = end
        for t in range(word_starts[w], word_starts[w + 1]):
            k = z[by_word[t]]
            if place[k] < 0:
                place[k] = end
                cells[end] = k
                counts[end] = 0.0
                end += 1
            counts[place[k]] += 1.0
        for i in range(first, end):
            place[cells[i]] = -1
        starts[w], sizes[w] = first, end - first


@kernel
def _settle_documents(
    low, high, words, starts, word_starts, z, alpha, beta, inverse, prior, cells, counts, sizes,
    margins, uniforms, tests,
):  # fmt: skip
    """Three sums as in SparseLDA (Yao, Mimno & McCallum 2009).

    Over the counts of the word; then, times beta, over the tokens of the document and over alpha.
    """
    n_topics, n_classes = alpha.shape[0], margins.weights.shape[1]
    scores, proposed = np.empty(n_classes), np.empty(n_classes)
    sums = np.empty(n_topics)
    weight = alpha * inverse  # (n_dk + alpha_k) / (n_k + V beta)
    for d in range(low, high):
        ours = 0.0
        for i in range(starts[d], starts[d + 1]):
            weight[z[i]] += inverse[z[i]]
            ours += inverse[z[i]]
        label = _start_scores(d, starts, z, margins, scores)
        for i in range(starts[d], starts[d + 1]):
            old = np.uint32(z[i])
            weight[old] -= inverse[old]
            ours -= inverse[old]
            first = word_starts[words[i]]
            last = first + sizes[words[i]] - 1
            total = 0.0
            for j in range(first, last + 1):
                total += weight[cells[j]] * counts[j]
                sums[j - first] = total
            everything = total + beta * (ours + prior[n_topics - 1])
            target = uniforms[i] * everything
            new = old
            while target < total:
                j = _place(sums, last - first + 1, target)
                new = cells[first + j]
                if new != old:
                    break
                target -= sums[j] - weight[old] * counts[first + j]
                if target >= weight[old]:
                    break
                # The token itself was drawn, which does not count: its place is a fresh uniform.
                target *= everything / weight[old]
            else:
                target = (target - total) / beta
                if target >= ours:
                    new = np.uint32(_first_above(prior, target - ours))
                else:
                    for j in range(starts[d], starts[d + 1]):
                        if j != i:
                            new = np.uint32(z[j])
                            target -= inverse[new]
                            if target < 0.0:
                                break
            if label >= 0 and new != old:
                size = starts[d + 1] - starts[d]
                new = _test(old, new, label, size, margins, tests[i], scores, proposed)
            weight[new] += inverse[new]
            ours += inverse[new]
            z[i] = new
        for i in range(starts[d], starts[d + 1]):
            weight[z[i]] = alpha[z[i]] * inverse[z[i]]


@kernel
def _first_above(sums, target):
    """The place of the first of the rising `sums` above `target`, or the last."""
    low, high = 0, sums.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


def count_seats(corpus, z, n_topics, n_threads=1):
    """How many restaurants have an n-th customer, for the counts of tables.

    Returns
    -------
    by_topic : ndarray of shape (K, most tokens of a topic in a document)
        [k, n]: the documents with more than n tokens of topic k.
    by_word : ndarray
        [n]: the pairs of a word and a topic with more than n tokens.

    Examples
    --------
    >>> corpus = make_corpus(np.array([0, 2, 3]), np.array([1, 0, 1]), np.array([2, 1, 1]), 2)
    >>> by_topic, by_word = count_seats(corpus, np.array([0, 0, 1, 1], dtype=np.int32), 2)
    >>> by_topic, by_word
    (array([[1, 1],
           [2, 0]]), array([3, 1]))
    """
    most = int(np.diff(corpus.word_starts).max(initial=0))
    word_parts = []  # sums of whole numbers, in any order

    def by_word(low, high):
        word_parts.append(
            _word_seats(low, high, corpus.by_word, corpus.word_starts, z, n_topics, most)
        )

    in_threads(by_word, corpus.word_starts, n_threads)
    seats = sum(word_parts)
    return topic_seats(corpus, z, n_topics, n_threads), seats[: np.count_nonzero(seats)]


def topic_seats(corpus, z, n_topics, n_threads=1):
    """[k, n]: the documents with more than n tokens of topic k."""
    longest = int(np.diff(corpus.starts).max(initial=0))
    parts = []

    def by_document(low, high):
        parts.append(_document_seats(low, high, corpus.starts, z, n_topics, longest))

    in_threads(by_document, corpus.starts, n_threads)
    seats = sum(parts)
    return seats[:, : int(seats.any(axis=0).sum())]


@kernel
def _document_seats(low, high, starts, z, n_topics, longest):
    seats = np.zeros((n_topics, longest), dtype=np.int64)
    taken = np.zeros(n_topics, dtype=np.int64)
    for d in range(low, high):
        for i in range(starts[d], starts[d + 1]):
            seats[z[i], taken[z[i]]] += 1
            taken[z[i]] += 1
        for i in range(starts[d], starts[d + 1]):
            taken[z[i]] = 0
    return seats


@kernel
def _word_seats(low, high, by_word, word_starts, z, n_topics, most):
    seats = np.zeros(most, dtype=np.int64)
    taken = np.zeros(n_topics, dtype=np.int64)
    for w in range(low, high):
        for t in range(word_starts[w], word_starts[w + 1]):
            k = z[by_word[t]]
            seats[taken[k]] += 1
            taken[k] += 1
        for t in range(word_starts[w], word_starts[w + 1]):
            taken[z[by_word[t]]] = 0
    return seats


@kernel
def count_topics(starts, z, out):
    """Add to `out[d, k]` the tokens of topic k in document d."""
    for d in range(starts.shape[0] - 1):
        for i in range(starts[d], starts[d + 1]):
            out[d, z[i]] += 1.0


@kernel
def sum_log_rests(rng, total, sizes):
    """Sum of -log q_d with q_d ~ Beta(total, sizes[d]), over the sizes that are not zero.

    Given these, a concentration with Gamma(total) / Gamma(total + n) in its law is conjugate.
    """
    out = 0.0
    for n in sizes:
        if n > 0:
            odds = draw_log_gamma(rng, n) - draw_log_gamma(rng, total)
            out += max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))
    return out
