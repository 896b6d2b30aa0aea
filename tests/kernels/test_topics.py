"""The kernels of the topic models, one by one, against the laws they claim."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaincc

from regbayes.kernels.topics import (
    _FLOOR,
    Margins,
    _draw_above_floor,
    count_seats,
    count_words,
    dense,
    draw_assignments,
    draw_topics,
    empty_topics,
    make_corpus,
    settle,
    sum_log_rests,
)
from tests.helpers import assert_law, assert_pmf

NO_COUNTS = np.empty((0, 0))


def corpus_of(rows):
    rows = np.asarray(rows)
    places = np.nonzero(rows)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(rows, axis=1))])
    return make_corpus(indptr, places[1], rows[places], rows.shape[1])


def nobody(n_topics):
    return Margins(np.empty(0, dtype=np.int64), np.zeros((n_topics + 1, 0)), 0.0, 0.0)


@pytest.mark.parametrize("beta", [0.01, 0.3, 1.0])
def test_gamma_above_the_floor(beta):
    rng = np.random.default_rng(0)
    draws = [_draw_above_floor(rng, beta, _FLOOR**beta) for _ in range(20_000)]
    above = gammaincc(beta, _FLOOR)
    assert min(draws) >= 0.999 * _FLOOR
    assert_law(draws, lambda x: 1 - gammaincc(beta, x) / above)


@pytest.mark.parametrize("beta", [0.02, 0.4, 2.5])
@pytest.mark.parametrize("based", [False, True])
def test_topics_are_dirichlet(beta, based):
    """Shares of one word are Beta, whether the word has counts or not."""
    corpus = corpus_of([[3, 0, 0, 1]])
    z = np.array([0, 0, 1, 1], dtype=np.int32)
    base = np.array([[0.5, 0.0], [0.0, 2.0], [0.0, 0.0], [1.0, 0.0]]) if based else NO_COUNTS
    counts = np.array([[2.0, 1.0], [0, 0], [0, 0], [0, 1.0]]) + (base if based else 0.0)
    rng, topics = np.random.default_rng(1), empty_topics(4, 2)
    draws = []
    for _ in range(4_000):
        draw_topics(rng, corpus, z, beta, base, topics)
        draws.append(dense(topics))
    draws = np.array(draws)
    np.testing.assert_allclose(draws.sum(axis=1), 1, rtol=1e-5)
    shapes = counts + beta
    for w, k in ((0, 0), (3, 1), (2, 0)):
        law = stats.beta(shapes[w, k], shapes[:, k].sum() - shapes[w, k])
        # Single precision and the floor blur what is next to 0 and to 1.
        low, high = 1e-6, 1 - 1e-6
        seen = np.clip(draws[:, w, k], low, high)
        inside = seen[(seen > low) & (seen < high)]
        p_low, p_high = law.cdf([low, high])
        assert abs(np.mean(seen <= low) - p_low) < 5 * np.sqrt(0.25 / len(seen))
        if len(inside) > 200:
            assert_law(inside, lambda x, law=law, a=p_low, b=p_high: (law.cdf(x) - a) / (b - a))


def test_a_topic_without_words_is_drawn_whole():
    """With few words and a small beta hardly any Gamma variable is above the floor."""
    corpus, topics = corpus_of([[1, 0]]), empty_topics(2, 2)
    z, rng = np.zeros(1, dtype=np.int32), np.random.default_rng(2)
    draws = []
    for _ in range(4_000):
        draw_topics(rng, corpus, z, 0.003, NO_COUNTS, topics)
        draws.append(dense(topics)[:, 1])
    draws = np.array(draws)
    np.testing.assert_allclose(draws.sum(axis=1), 1, rtol=1e-5)
    # Beta(b, b) for small b is 0 or 1, as likely.
    assert abs(np.mean(draws[:, 0] > 0.5) - 0.5) < 0.04
    assert np.mean((draws[:, 0] > 0.01) & (draws[:, 0] < 0.99)) < 0.05


@pytest.mark.parametrize("n_topics", [3, 40])
def test_a_fast_sweep_has_the_conditional_of_the_counts(n_topics):
    """Of the one token in a document: (n_wk + beta) alpha_k / (n_k + V beta), without itself."""
    rows = np.array([[1, 0, 0], [2, 1, 0], [1, 1, 3], [0, 2, 2]])
    corpus, rng = corpus_of(rows), np.random.default_rng(3)
    start = rng.integers(3, size=len(corpus.words)).astype(np.int32)
    alpha, beta = rng.uniform(0.2, 1.0, n_topics), 0.4
    counts = np.zeros((3, n_topics))
    np.add.at(counts, (corpus.words, start), 1)
    inverse = 1 / (counts.sum(axis=0) + 3 * beta)
    counts[0, start[0]] -= 1
    law = alpha * (counts[0] + beta) * inverse
    drawn = []
    for _ in range(20_000):
        z = start.copy()
        settle(rng, corpus, z, alpha, beta, nobody(n_topics))
        drawn.append(z[0])
    assert_pmf(np.array(drawn), law / law.sum())


def test_a_fast_sweep_sees_the_other_tokens_of_the_document():
    rows = np.array([[1, 1], [3, 0]])
    corpus, rng = corpus_of(rows), np.random.default_rng(4)
    alpha, beta = np.array([0.3, 0.5]), 0.2
    start = np.array([0, 1, 0, 0, 1], dtype=np.int32)
    counts = np.zeros((2, 2))
    np.add.at(counts, (corpus.words, start), 1)
    inverse = 1 / (counts.sum(axis=0) + 2 * beta)
    law = np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        without = counts.copy()
        without[0, start[0]] -= 1
        first = (alpha + np.eye(2)[start[1]]) * (without[0] + beta) * inverse
        without = counts.copy()
        without[1, start[1]] -= 1
        second = (alpha + np.eye(2)[i]) * (without[1] + beta) * inverse
        law[i, j] = first[i] / first.sum() * second[j] / second.sum()
    drawn = []
    for _ in range(20_000):
        z = start.copy()
        settle(rng, corpus, z, alpha, beta, nobody(2))
        drawn.append(2 * z[0] + z[1])
    assert_pmf(np.array(drawn), law.ravel())


@pytest.mark.parametrize("labelled", [False, True])
def test_sweeps_do_not_depend_on_threads(labelled):
    rng = np.random.default_rng(5)
    corpus = corpus_of(rng.poisson(0.3, (40, 200)))
    start = rng.integers(5, size=len(corpus.words)).astype(np.int32)
    margins = nobody(5)
    if labelled:
        y = rng.integers(3, size=40)
        margins = Margins(y, rng.standard_normal((6, 3)), 5.0, 1.0)
    found = []
    for n_threads in (1, 3):
        stream, z, topics = np.random.default_rng(6), start.copy(), empty_topics(200, 5)
        for _ in range(3):
            settle(stream, corpus, z, np.full(5, 0.1), 0.1, margins, n_threads)
            draw_topics(stream, corpus, z, 0.1, NO_COUNTS, topics, n_threads)
            draw_assignments(stream, corpus, z, np.full(5, 0.1), topics, margins, n_threads)
        seats = count_seats(corpus, z, 5, n_threads)
        found.append((z, dense(topics), *seats))
    for one, three in zip(*found):
        np.testing.assert_array_equal(one, three)


def test_counts_of_seats_and_words():
    rng = np.random.default_rng(7)
    corpus = corpus_of(rng.poisson(1.5, (6, 4)))
    z = rng.integers(3, size=len(corpus.words)).astype(np.int32)
    by_topic, by_word = count_seats(corpus, z, 3)
    table, words = np.zeros((6, 3), dtype=int), np.zeros((4, 3), dtype=int)
    document = np.repeat(np.arange(6), np.diff(corpus.starts))
    np.add.at(table, (document, z), 1)
    np.add.at(words, (corpus.words, z), 1)
    for n in range(by_topic.shape[1]):
        np.testing.assert_array_equal(by_topic[:, n], (table > n).sum(axis=0))
    for n in range(len(by_word)):
        assert by_word[n] == (words > n).sum()
    cells, counts = count_words(corpus, z, 3)
    back = np.zeros(12, dtype=int)
    back[cells] = counts
    np.testing.assert_array_equal(back.reshape(4, 3), words)


def test_rests_are_logs_of_beta_variables():
    rng = np.random.default_rng(8)
    draws = [sum_log_rests(rng, 0.7, np.array([4.0])) for _ in range(10_000)]
    assert_law(np.exp(-np.array(draws)), stats.beta(0.7, 4.0).cdf)
    assert sum_log_rests(rng, 1.0, np.zeros(3)) == 0.0


def test_the_margin_is_a_test_of_proposals():
    """One token, two topics and classes: log-odds are those of words plus those of the margin."""
    corpus, rng = corpus_of([[1]]), np.random.default_rng(9)
    topics = empty_topics(1, 2)
    topics.cells[0], topics.shares[0], topics.sizes[0] = [0, 1], [0.3, 0.7], 2
    weights = np.array([[0.4, 0.0], [0.0, 0.5], [0.1, 0.0]])
    margins = Margins(np.array([1]), weights, 1.5, 1.0)
    alpha = np.array([0.6, 0.2])
    losses = [max(0.0, 1.0 + (weights[k] + weights[2]) @ [1, -1]) for k in range(2)]
    odds = np.log(0.2 * 0.7) - np.log(0.6 * 0.3) - 2 * 1.5 * (losses[1] - losses[0])
    z, drawn = np.zeros(1, dtype=np.int32), []
    for _ in range(20_000):
        for _ in range(3):
            draw_assignments(rng, corpus, z, alpha, topics, margins)
        drawn.append(z[0])
    assert_pmf(np.array(drawn), [1 - expit(odds), expit(odds)])
