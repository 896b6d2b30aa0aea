"""From symbols to words: what a symbol and those before it spell."""

from __future__ import annotations

import itertools
from collections import Counter
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from regbayes.data._features import _SequenceTransformer
from regbayes.data._sequences import Sequences, SequenceTags, check_sequences


class SequenceWords(_SequenceTransformer):
    """Write sequences of symbols in words: every step becomes the symbols that end with it.

    A hidden Markov model of words knows what follows what, however few its states; with one state
    its scores are counts of words. For DNA and proteins.

    Parameters
    ----------
    length : int, default=3
        Symbols of a word; at the beginning of a sequence they are fewer.
    min_count : int, default=1
        Words that training has less often become the empty word, as do those it does not have.
        With 1 there are no empty words in training: give the model ``unknown="missing"``.
    step : int, default=1
        From one symbol of a word to the next: with 2 it has every other symbol, for what goes
        with what at a distance, as along the turns of a protein's helix.

    Attributes
    ----------
    symbols_ : ndarray of str
        Those of training. Words have spaces between them if some have more than one letter.
    words_ : ndarray of str
        Those that training has often enough, sorted.
    n_features_in_ : int

    Examples
    --------
    >>> from regbayes.data import SequenceWords
    >>> words = SequenceWords(2).fit([list("abab"), list("abb")])
    >>> words.transform([list("abab"), list("ba")])
    [array(['a', 'ab', 'ba', 'ab'], dtype='<U2'), array(['', 'ba'], dtype='<U2')]
    """

    _parameter_constraints: ClassVar[dict] = {
        "length": [Interval(Integral, 1, None, closed="left")],
        "step": [Interval(Integral, 1, None, closed="left")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, length: int = 3, min_count: int = 1, step: int = 1):
        self.length = length
        self.min_count = min_count
        self.step = step

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> SequenceWords:
        """Find the words.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
            Sequences of symbols in any layout.
        y : ignored
        lengths : array-like of int, optional

        Returns
        -------
        self
        """
        sequences = check_sequences(self, X, lengths, values="categorical")
        self.symbols_ = np.array(self._names(sequences), dtype=np.str_)
        counts = Counter(word for word in self._spell(sequences) if word is not None)
        self.words_ = np.array(
            sorted(word for word, n in counts.items() if n >= self.min_count), dtype=np.str_
        )
        return self

    def transform(self, X: Any, lengths: Any = None) -> list[NDArray] | NDArray:
        """The word of every step.

        Parameters
        ----------
        X : list of arrays, array or DataFrame
        lengths : array-like of int, optional

        Returns
        -------
        list of ndarray, or ndarray
            In the layout of `X`: words; an array with steps whose word is not wholly observed is
            of objects, and has None for them.
        """
        check_is_fitted(self)
        sequences = check_sequences(self, X, lengths, values="categorical", reset=False)
        known = set(self.words_.tolist())
        spelt = self._spell(sequences)
        found = np.array([w if w is None or w in known else "" for w in spelt], dtype=object)
        parts = sequences.give_back(found)
        return [*map(_plain, parts)] if isinstance(parts, list) else _plain(parts)

    def _spell(self, sequences: Sequences) -> list[str | None]:
        """The word that ends at each step; None where a symbol of it is not observed."""
        known = self.symbols_.tolist()
        between = "" if all(len(symbol) == 1 for symbol in known) else " "
        letters = self._names(sequences)
        new = {code for code, letter in enumerate(letters) if letter not in set(known)}
        codes, out = sequences.values.tolist(), list[str | None]()
        for start, end in itertools.pairwise(sequences.starts.tolist()):
            for t in range(start, end):
                first = max(t - (self.length - 1) * self.step, start + (t - start) % self.step)
                part = codes[first : t + 1 : self.step]
                if -1 in part:
                    out.append(None)
                elif new.isdisjoint(part):
                    out.append(between.join([letters[code] for code in part]))
                else:
                    out.append("")
        return out

    @staticmethod
    def _names(sequences: Sequences) -> list[str]:
        assert sequences.categories is not None
        return [str(symbol) for symbol in sequences.categories]

    def _sequence_tags(self) -> SequenceTags:
        return SequenceTags(labels="none", values="categorical", missing_steps=True)


def _plain(words: NDArray) -> NDArray:
    """Of strings, if none is missing."""
    return words if any(word is None for word in words.flat) else words.astype(np.str_)
