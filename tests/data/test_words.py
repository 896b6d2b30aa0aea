"""Words of symbols: what is spelt, what is rare, what is missing, in every layout."""

import numpy as np
import pandas as pd
import pytest

from regbayes.data import SequenceWords
from regbayes.hmm import CategoricalHMM
from regbayes.scores import Preprocessed, SufficientStatisticsScore


def letters(*texts):
    return [np.array(list(text)) for text in texts]


@pytest.mark.parametrize("length", [1, 2, 3, 9])
def test_words_are_the_symbols_that_end_with_a_step(length):
    texts = "abcab", "b", "ccab"
    for text, words in zip(texts, SequenceWords(length).fit_transform(letters(*texts))):
        wanted = [text[max(0, t - length + 1) : t + 1] for t in range(len(text))]
        assert words.tolist() == wanted


def test_symbols_of_a_word_may_be_apart():
    words = SequenceWords(2, step=3).fit_transform(letters("abcdefg", "ab"))
    assert words[0].tolist() == ["a", "b", "c", "ad", "be", "cf", "dg"]
    assert words[1].tolist() == ["a", "b"]
    longer = SequenceWords(3, step=2).fit_transform(letters("abcdef"))
    assert longer[0].tolist() == ["a", "b", "ac", "bd", "ace", "bdf"]


def test_rare_and_unseen_words_are_empty():
    model = SequenceWords(2, min_count=2).fit(letters("ababc"))
    assert model.words_.tolist() == ["ab"]
    assert model.transform(letters("abx", "ca"))[0].tolist() == ["", "ab", ""]
    assert model.transform(letters("ca"))[0].tolist() == ["", ""]


def test_unobserved_symbols_leave_no_word():
    words = SequenceWords(2).fit_transform([np.array(["a", None, "b", "a"], dtype=object)])[0]
    assert words.tolist() == ["a", None, None, "ba"]


def test_long_symbols_are_set_apart():
    words = SequenceWords(2).fit([[1, 10, 1]])
    assert words.transform([[1, 10, 1]])[0].tolist() == ["1", "1 10", "10 1"]


def test_a_new_symbol_is_never_taken_for_two_old_ones():
    words = SequenceWords(2).fit([[1, 0, 1]])
    assert words.transform([[1, 0]])[0].tolist() == ["1", "10"]
    assert words.transform([[10]])[0].tolist() == [""]


def test_layouts_come_back():
    stacked = np.array(list("abcab"))[:, None]
    words = SequenceWords(2).fit(stacked, lengths=[3, 2])
    assert words.transform(stacked, lengths=[3, 2]).tolist() == ["a", "ab", "bc", "a", "ab"]
    frame = pd.DataFrame({"sequence_id": [1, 2, 1], "letter": ["a", "a", "b"]})
    assert SequenceWords(2).fit(frame).transform(frame).tolist() == ["a", "a", "ab"]


@pytest.mark.parametrize("bad", [{"length": 0}, {"min_count": 0}, {"length": 1.5}, {"step": 0}])
def test_bad_parameters_are_told(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SequenceWords(**bad).fit(letters("ab"))


def test_scores_of_one_state_count_words():
    X = letters("abab", "aab", "bbb", "bba")
    model = Preprocessed(SequenceWords(2), CategoricalHMM(1, unknown="missing"))
    scores = SufficientStatisticsScore(model, per_class=False, scaling="none").fit(X)
    names = scores.get_feature_names_out().tolist()
    found = scores.transform(X)
    for word in ("ab", "bb"):
        column = next(i for i, name in enumerate(names) if name.endswith(word))
        counts = [sum(x[t - 1] + x[t] == word for t in range(1, len(x))) for x in X]
        np.testing.assert_allclose(found[:, column], counts)
