"""Documents as counts of words, one label for each: web pages, abstracts, reviews, newsgroups."""

import io
import os
import re
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.utils import Bunch

from regbayes.datasets._remote import (
    BAD_ARCHIVE,
    Arrays,
    Lines,
    NamedArrays,
    RemoteDataset,
    RemoteFile,
    as_text,
)

_TEXT_GCN = (
    "https://raw.githubusercontent.com/yao8839836/text_gcn/962223652e9bb164ac2d83cd09fc7b8845ce860b"
)
_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28"

# ------------------------------------------------------------------------------- counts and arrays


def _letters(text: str) -> list[str]:
    """Lower case, runs of two letters or more."""
    return re.findall("[a-z]{2,}", text.lower())


def _counts(documents: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> NamedArrays:
    """A CSR matrix of counts, its columns in the order of the vocabulary."""
    place = {word: i for i, word in enumerate(vocabulary)}
    data, indices, indptr = [], [], [0]
    for words in documents:
        known = np.array([place[word] for word in words if word in place], dtype=np.int64)
        columns, counts = np.unique(known, return_counts=True)
        indices.append(columns)
        data.append(counts)
        indptr.append(indptr[-1] + len(columns))
    shape = np.array([len(documents), len(vocabulary)])
    return {
        "data": np.concatenate(data),
        "indices": np.concatenate(indices),
        "indptr": np.array(indptr),
        "shape": shape,
    }


def _vocabulary(documents: Iterable[Sequence[str]], min_documents: int) -> list[str]:
    seen: dict[str, int] = {}
    for words in documents:
        for word in set(words):
            seen[word] = seen.get(word, 0) + 1
    return sorted(word for word, times in seen.items() if times >= min_documents)


def _prefixed(prefix: str, arrays: NamedArrays) -> NamedArrays:
    return {f"{prefix}_{name}": array for name, array in arrays.items()}


def _matrix(arrays: NamedArrays, prefix: str) -> csr_matrix:
    data, indices, indptr, shape = (
        arrays[f"{prefix}_{name}"] for name in ("data", "indices", "indptr", "shape")
    )
    parts = data.astype(np.int64), indices.astype(np.int32), indptr
    return csr_matrix(parts, shape=tuple(shape))


def _types(text: str, train: str = "<u2", test: str | None = "|u1") -> dict[str, str]:
    """Of the arrays in an npz file, with the given types of words and counts."""
    types = {"vocab": text} if text else {}
    for prefix, counts in (("train", train), ("test", test)):
        if counts:
            types |= {
                f"{prefix}_data": counts,
                f"{prefix}_indices": "<u2",
                f"{prefix}_indptr": "<i4",
                f"{prefix}_shape": "<i8",
                f"y_{prefix}": "|u1",
            }
    return types


# ------------------------------------------------------- listed sets: a label file, a line for each


def _parse_listed(
    classes: Sequence[str], tokenize: Any, listing: str, corpus: str
) -> dict[str, NamedArrays]:
    """From lines of name, part and label, and as many lines of text."""
    lines, texts = listing.splitlines(), corpus.splitlines()
    if len(lines) != len(texts):
        raise ValueError(f"{len(lines)} labels for {len(texts)} documents")
    documents: dict[str, list] = {"train": [], "test": []}
    labels: dict[str, list] = {"train": [], "test": []}
    for number, (line, text) in enumerate(zip(lines, texts), start=1):
        fields = line.split("\t")
        # Some labels lack their last letter.
        found = [i for i, name in enumerate(classes) if fields[-1] and name.startswith(fields[-1])]
        if len(fields) != 3 or len(found) != 1:
            raise ValueError(f"line {number}, {line[:40]!r}, is no name, part and label")
        part = "train" if "train" in fields[1] else "test"
        documents[part].append(tokenize(text))
        labels[part].append(found[0])
    vocabulary = _vocabulary([*documents["train"], *documents["test"]], 1)
    arrays: NamedArrays = {"vocab": np.array(vocabulary)}
    for part in documents:
        arrays |= _prefixed(part, _counts(documents[part], vocabulary))
        arrays[f"y_{part}"] = np.array(labels[part])
    return {"data.npz": arrays}


def _bunch(
    arrays: NamedArrays, classes: Sequence[str], descr: str, subset: str, vocab: Any
) -> Bunch:
    """Documents of one part, or of both, the training part first."""
    parts = ["train", "test"] if subset == "all" else [subset]
    matrices = [_matrix(arrays, part) for part in parts]
    codes = np.concatenate([arrays[f"y_{part}"] for part in parts])
    is_train = np.repeat([part == "train" for part in parts], [m.shape[0] for m in matrices])
    return Bunch(
        data=vstack(matrices, format="csr"),
        target=np.array(classes)[codes],
        is_train=is_train,
        feature_names=np.asarray(vocab),
        target_names=list(classes),
        DESCR=descr,
    )


def _check_subset(subset: str) -> None:
    if subset not in ("train", "test", "all"):
        raise ValueError(f"subset must be 'train', 'test' or 'all', got {subset!r}.")


# ------------------------------------------------------------------------------------------ WebKB

_WEBKB_CLASSES = ("course", "faculty", "project", "student")

_WEBKB_DESCR = """\
WebKB, four classes
-------------------
4199 web pages of universities: of courses, faculty, projects and students; counts of 7772 stems
without stop words, in the published split of 2803 and 1396.

Source: CMU World Wide Knowledge Base project, prepared by A. Cardoso-Cachopo; the copy of
github.com/yao8839836/text_gcn, in which 31 labels lack their last letter. For research.
Reference: M. Craven et al., "Learning to extract symbolic knowledge from the World Wide Web",
AAAI 1998. A. Cardoso-Cachopo, "Improving methods for single-label text categorization", PhD thesis,
Lisbon (2007).
"""

_WEBKB = RemoteDataset(
    folder="webkb4",
    tables={
        "data.npz": Arrays(
            _types("<U17"), "f8a30927ca87bd43e092d56af5a95235c24c9d8447978019105c2d12fa36bbfe"
        )
    },
    sources=(
        RemoteFile(_TEXT_GCN + "/data/WebKB.txt"),
        RemoteFile(_TEXT_GCN + "/data/corpus/WebKB.txt"),
    ),
    parse=partial(_parse_listed, _WEBKB_CLASSES, str.split),
)


def fetch_webkb4(
    *,
    subset: str = "all",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load web pages of universities (counts of words, four classes), downloading if necessary.

    =================   ====================
    Classes                                4
    Documents                    2803 + 1396
    Words                         7772 stems
    =================   ====================

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        A part of the published split, or both, the training part first.
    data_home : str or path-like, default=None
        Where data sets are kept; see `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise a `DatasetError` (an OSError) when the data is not in `data_home`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: csr_matrix of counts (n_documents, 7772); ``target`` (n_documents,) of class
        names; ``is_train`` (n_documents,), ``feature_names``, ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_webkb4
    >>> fetch_webkb4(subset="train").data.shape  # doctest: +SKIP
    (2803, 7772)
    """
    _check_subset(subset)
    arrays = _WEBKB.load(data_home, download_if_missing)["data.npz"]
    bunch = _bunch(arrays, _WEBKB_CLASSES, _WEBKB_DESCR, subset, arrays["vocab"])
    return (bunch.data, bunch.target) if return_X_y else bunch


# ---------------------------------------------------------------------------------------- OHSUMED

_OHSUMED_CLASSES = tuple(f"C{i:02d}" for i in range(1, 24))

_OHSUMED_DESCR = """\
OHSUMED, 23 diseases, one for each document
-------------------------------------------
7400 abstracts of 1991 in MEDLINE that have exactly one of 23 categories of cardiovascular diseases
(MeSH, C01 to C23); counts of 31435 words (lower case, runs of two letters or more), in the split of
3357 and 4043 that graph networks for text use.

Source: OHSUMED, Joachims' selection of categories; the copy of github.com/yao8839836/text_gcn. For
research.
References: W. Hersh et al., "OHSUMED: an interactive retrieval evaluation and new large test
collection for research", SIGIR 1994. L. Yao, C. Mao, Y. Luo, "Graph convolutional networks for text
classification", AAAI 2019.
"""

_OHSUMED = RemoteDataset(
    folder="ohsumed23",
    tables={
        "data.npz": Arrays(
            _types("<U30", train="|u1"),
            "098374ccd27709f598c5ef443de220ab3cde49d45a3c1e523c718d182b2e71b7",
        )
    },
    sources=(
        RemoteFile(_TEXT_GCN + "/data/ohsumed.txt"),
        RemoteFile(_TEXT_GCN + "/data/corpus/ohsumed.txt"),
    ),
    parse=partial(_parse_listed, _OHSUMED_CLASSES, _letters),
)


def fetch_ohsumed23(
    *,
    subset: str = "all",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load medical abstracts (counts of words, 23 classes), downloading if necessary.

    =================   ====================
    Classes                               23
    Documents                    3357 + 4043
    Words                              31435
    =================   ====================

    Parameters
    ----------
    subset, data_home, download_if_missing, return_X_y
        As for :func:`fetch_webkb4`.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: csr_matrix of counts (n_documents, 31435); ``target`` (n_documents,) of "C01" to
        "C23"; ``is_train`` (n_documents,), ``feature_names``, ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_ohsumed23
    >>> fetch_ohsumed23(subset="test").data.shape  # doctest: +SKIP
    (4043, 31435)
    """
    _check_subset(subset)
    arrays = _OHSUMED.load(data_home, download_if_missing)["data.npz"]
    bunch = _bunch(arrays, _OHSUMED_CLASSES, _OHSUMED_DESCR, subset, arrays["vocab"])
    return (bunch.data, bunch.target) if return_X_y else bunch


# ---------------------------------------------------------------------------------- movie reviews

_REVIEW_CLASSES = ("neg", "pos")

_REVIEWS_DESCR = """\
Movie reviews, polarity 2.0
---------------------------
1000 positive and 1000 negative reviews; counts of 23797 words (lower case, runs of two letters or
more, in two reviews or more). `folds` holds the ten published folds, by the first digit of the
number of a review.

Source: B. Pang and L. Lee, http://www.cs.cornell.edu/people/pabo/movie-review-data/; the copy of
nltk_data. No licence is stated.
Reference: B. Pang, L. Lee, "A sentimental education", ACL 2004.
"""


def _unzip_texts(content: bytes) -> dict[str, str]:
    """Texts of a zip archive by their paths."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {
                member.filename: archive.read(member).decode("utf-8", "replace")
                for member in archive.infolist()
                if member.filename.endswith(".txt")
            }
    except BAD_ARCHIVE as error:
        raise ValueError(f"not a whole zip archive ({error})") from error


def _parse_reviews(texts: dict[str, str]) -> dict[str, NamedArrays]:
    documents, labels, folds = [], [], []
    for path, text in sorted(texts.items()):
        found = re.search(r"(neg|pos)/cv(\d)\d\d_", path)
        if not found:
            raise ValueError(f"{path} is no review of the archive")
        documents.append(_letters(text))
        labels.append(_REVIEW_CLASSES.index(found[1]))
        folds.append(int(found[2]))
    vocabulary = _vocabulary(documents, 2)
    arrays: NamedArrays = {"vocab": np.array(vocabulary), "y_train": np.array(labels)}
    arrays |= _prefixed("train", _counts(documents, vocabulary))
    arrays["fold"] = np.array(folds)
    return {"data.npz": arrays}


_REVIEWS = RemoteDataset(
    folder="movie_reviews",
    tables={
        "data.npz": Arrays(
            {**_types("<U20", train="|u1", test=None), "fold": "|u1"},
            "ade528199da09810e94ab0e0031762a4169fe4d4b3f46803f96b010befde9843",
        )
    },
    sources=(RemoteFile(_NLTK + "/packages/corpora/movie_reviews.zip", unpack=_unzip_texts),),
    parse=_parse_reviews,
)


def fetch_movie_reviews(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load movie reviews (counts of words, positive or negative), downloading if necessary.

    =================   ====================
    Classes                                2
    Documents                           2000
    Words                              23797
    =================   ====================

    Parameters
    ----------
    data_home, download_if_missing, return_X_y
        As for :func:`fetch_webkb4`.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: csr_matrix of counts (2000, 23797); ``target`` (2000,) of "neg" and "pos";
        ``folds`` (2000,) of 0 to 9, ``feature_names``, ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_movie_reviews
    >>> fetch_movie_reviews().data.shape  # doctest: +SKIP
    (2000, 23797)
    """
    arrays = _REVIEWS.load(data_home, download_if_missing)["data.npz"]
    data, target = _matrix(arrays, "train"), np.array(_REVIEW_CLASSES)[arrays["y_train"]]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        folds=arrays["fold"],
        feature_names=arrays["vocab"],
        target_names=list(_REVIEW_CLASSES),
        DESCR=_REVIEWS_DESCR,
    )


# ------------------------------------------------------------------------------------- newsgroups

_GROUPS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med",
    "sci.space", "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast",
    "talk.politics.misc", "talk.religion.misc",
)  # fmt: skip

_NEWS_DESCR = """\
20 Newsgroups by date, counts of words
--------------------------------------
18774 messages of 20 newsgroups; counts of 61188 words as J. Rennie processed them (the files for
Matlab), split by date into 11269 and 7505.

Source: http://qwone.com/~jason/20Newsgroups/, 20news-bydate-matlab.tgz. No licence is stated.
Reference: K. Lang, "NewsWeeder: learning to filter netnews", ICML 1995.
"""


def _untar_texts(content: bytes) -> dict[str, str]:
    """Texts of a compressed tar archive by their names without folders."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            files = {m.name: archive.extractfile(m) for m in archive.getmembers() if m.isfile()}
            return {Path(name).name: as_text(file.read()) for name, file in files.items() if file}
    except (*BAD_ARCHIVE, tarfile.TarError) as error:
        raise ValueError(f"not a whole tar archive ({error})") from error


def _parse_news(texts: dict[str, str], vocabulary: str) -> dict[str, Any]:
    """From lines of document, word and count, all from one, and a line for each label."""
    words = vocabulary.splitlines()
    arrays: NamedArrays = {}
    for part in ("train", "test"):
        missing = {f"{part}.data", f"{part}.label"} - set(texts)
        if missing:
            raise ValueError(f"{sorted(missing)} missing in the archive")
        labels = np.array(texts[f"{part}.label"].split(), dtype=np.int64) - 1
        rows, columns, counts = (
            np.array(texts[f"{part}.data"].split(), dtype=np.int64).reshape(-1, 3).T
        )
        shape = len(labels), len(words)
        table = csr_matrix((counts, (rows - 1, columns - 1)), shape=shape)
        table.sort_indices()
        arrays |= {
            f"{part}_data": table.data,
            f"{part}_indices": table.indices,
            f"{part}_indptr": table.indptr,
            f"{part}_shape": np.array(shape),
            f"y_{part}": labels,
        }
    return {"20news_bydate_counts.npz": arrays, "vocabulary.txt.gz": words}


_NEWS = RemoteDataset(
    folder="20newsgroups",
    tables={
        "20news_bydate_counts.npz": Arrays(
            _types("", train="<u2", test="<u2"),
            "86bf4c2e3addaa309b7baf537538491e4ae2a14d10a346a7de910bdb05a2e493",
        ),
        "vocabulary.txt.gz": Lines(
            "a2078f06af5ea6fbd34c119621327fe0a9d55d11035737cb963a636e334908a2"
        ),
    },
    sources=(
        RemoteFile(
            "http://qwone.com/~jason/20Newsgroups/20news-bydate-matlab.tgz", unpack=_untar_texts
        ),
        RemoteFile("http://qwone.com/~jason/20Newsgroups/vocabulary.txt"),
    ),
    parse=_parse_news,
)


def fetch_newsgroup_counts(
    *,
    subset: str = "all",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load 20 Newsgroups as counts of words, downloading if necessary.

    scikit-learn's `fetch_20newsgroups` has the texts; these are the counts that papers on topic
    models and harmoniums use.

    =================   ====================
    Classes                               20
    Documents                   11269 + 7505
    Words                              61188
    =================   ====================

    Parameters
    ----------
    subset, data_home, download_if_missing, return_X_y
        As for :func:`fetch_webkb4`.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        ``data``: csr_matrix of counts (n_documents, 61188); ``target`` (n_documents,) of names of
        groups; ``is_train`` (n_documents,), ``feature_names``, ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from regbayes.datasets import fetch_newsgroup_counts
    >>> fetch_newsgroup_counts(subset="train").data.shape  # doctest: +SKIP
    (11269, 61188)
    """
    _check_subset(subset)
    loaded = _NEWS.load(data_home, download_if_missing)
    bunch = _bunch(
        loaded["20news_bydate_counts.npz"], _GROUPS, _NEWS_DESCR, subset,
        loaded["vocabulary.txt.gz"],
    )  # fmt: skip
    return (bunch.data, bunch.target) if return_X_y else bunch
