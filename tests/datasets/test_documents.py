"""Fetching documents and scenes: small originals from a server here, and the filled data home."""

import dataclasses
import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from regbayes.datasets import (
    DatasetError,
    _documents,
    _scenes,
    fetch_movie_reviews,
    fetch_newsgroup_counts,
    fetch_ohsumed23,
    fetch_scene15,
    fetch_webkb4,
)
from regbayes.datasets._remote import Arrays, Lines, array_checksum, content_checksum
from tests.datasets.conftest import real


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def tarred(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


LISTING = "0\ttrain\tcourse\n1\ttest\tstuden\n2\ttrain\tstudent\n"
CORPUS = "b a b\nc\na c c\n"
REVIEWS = {
    "movie_reviews/neg/cv000_1.txt": "Bad, bad film! A",
    "movie_reviews/pos/cv912_2.txt": "good film",
    "movie_reviews/pos/cv100_3.txt": "good bad film",
    "movie_reviews/README": "",
}
NEWS = {
    "20news/train.data": "1 2 3\n1 1 1\n2 3 1\n",
    "20news/train.label": "1\n20\n",
    "20news/test.data": "1 3 2\n",
    "20news/test.label": "2\n",
}


def serve(monkeypatch, server, name, *bodies):
    """Point a data set to a server that has `bodies`, and expect what they hold."""
    dataset = getattr(_documents, name)
    sources = []
    for i, (source, body) in enumerate(zip(dataset.sources, bodies)):
        found = server.file(f"/{name}/{i}", (200, body))
        sources.append(dataclasses.replace(found, unpack=source.unpack))
    texts = [
        source.unpack(body if isinstance(body, bytes) else body.encode())
        for source, body in zip(dataset.sources, bodies)
    ]
    tables = {}
    for file, content in dataset.parse(*texts).items():
        table = dataset.tables[file]
        if isinstance(table, Lines):
            tables[file] = Lines(content_checksum({"line": content}))
        else:
            tables[file] = Arrays(table.types, array_checksum(table._typed(content)))
    changed = dataclasses.replace(dataset, sources=tuple(sources), tables=tables)
    monkeypatch.setattr(_documents, name, changed)


def test_webkb_is_parsed_and_kept(monkeypatch, server, tmp_path):
    serve(monkeypatch, server, "_WEBKB", LISTING, CORPUS)
    data = fetch_webkb4(data_home=tmp_path)
    assert data.feature_names.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(data.data.toarray(), [[1, 2, 0], [1, 0, 2], [0, 0, 1]])
    assert data.target.tolist() == ["course", "student", "student"]
    assert data.is_train.tolist() == [True, True, False]
    X, y = fetch_webkb4(subset="test", data_home=tmp_path, return_X_y=True)
    assert X.shape == (1, 3)
    assert y.tolist() == ["student"]
    asked = len(server.requests)
    fetch_webkb4(data_home=tmp_path, download_if_missing=False)
    assert len(server.requests) == asked
    with pytest.raises(ValueError, match="subset must be"):
        fetch_webkb4(subset="both")


def test_ohsumed_is_tokenised(monkeypatch, server, tmp_path):
    listing = "data/1\ttraining\tC01\ndata/2\ttest\tC23\n"
    serve(monkeypatch, server, "_OHSUMED", listing, "Heart-beat of a dog\nHeart, 2 dogs.\n")
    data = fetch_ohsumed23(data_home=tmp_path)
    assert data.feature_names.tolist() == ["beat", "dog", "dogs", "heart", "of"]
    assert data.target.tolist() == ["C01", "C23"]


def test_reviews_have_folds(monkeypatch, server, tmp_path):
    serve(monkeypatch, server, "_REVIEWS", zipped(REVIEWS))
    data = fetch_movie_reviews(data_home=tmp_path)
    assert data.feature_names.tolist() == ["bad", "film", "good"]
    assert data.folds.tolist() == [0, 1, 9]
    np.testing.assert_array_equal(data.data.toarray(), [[2, 1, 0], [1, 1, 1], [0, 1, 1]])
    assert data.target.tolist() == ["neg", "pos", "pos"]


def test_newsgroups_have_words(monkeypatch, server, tmp_path):
    serve(monkeypatch, server, "_NEWS", tarred(NEWS), "archive\nname\natheism\n")
    data = fetch_newsgroup_counts(data_home=tmp_path)
    np.testing.assert_array_equal(data.data.toarray(), [[1, 3, 0], [0, 0, 1], [0, 0, 2]])
    assert data.target.tolist() == ["alt.atheism", "talk.religion.misc", "comp.graphics"]
    assert data.feature_names.tolist() == ["archive", "name", "atheism"]
    kept = tmp_path / "20newsgroups" / "vocabulary.txt.gz"
    kept.write_bytes(gzip.compress(b"other\n"))
    with pytest.raises(DatasetError, match="damaged or of another version"):
        fetch_newsgroup_counts(data_home=tmp_path)


def test_bad_originals_are_refused(monkeypatch, server, tmp_path):
    for name, fetch, bodies, wrong in [
        ("_WEBKB", fetch_webkb4, (LISTING, "a\n"), "3 labels for 1 documents"),
        ("_WEBKB", fetch_webkb4, (LISTING.replace("course", "recipe"), CORPUS), "line 1"),
        ("_REVIEWS", fetch_movie_reviews, (b"no archive",), "not a whole zip"),
        ("_REVIEWS", fetch_movie_reviews, (zipped({"cv.txt": ""}),), "no review"),
        ("_NEWS", fetch_newsgroup_counts, (b"no archive", "a\n"), "not a whole tar"),
        ("_NEWS", fetch_newsgroup_counts, (tarred({"x": ""}), "a\n"), "missing in the archive"),
    ]:
        dataset = getattr(_documents, name)
        sources = tuple(
            dataclasses.replace(server.file(f"/bad/{i}", (200, body)), unpack=source.unpack)
            for i, (body, source) in enumerate(zip(bodies, dataset.sources))
        )
        monkeypatch.setattr(_documents, name, dataclasses.replace(dataset, sources=sources))
        with pytest.raises(DatasetError, match=f"(?s){wrong}.*Nothing was written"):
            fetch(data_home=tmp_path)
        monkeypatch.undo()
        monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_scenes_cannot_be_downloaded(tmp_path):
    with pytest.raises(DatasetError, match=r"(?s)visual_words.py.*bow240.npz"):
        fetch_scene15(data_home=tmp_path)
    with pytest.raises(ValueError, match="view must be"):
        fetch_scene15("words")
    with pytest.raises(ValueError, match="scenes must be"):
        fetch_scene15(scenes="ot")


@real("webkb4")
def test_the_real_texts():
    data = fetch_webkb4()
    assert data.data.shape == (4199, 7772)
    assert data.is_train.sum() == 2803


@real("ohsumed23")
def test_the_real_abstracts():
    assert fetch_ohsumed23(subset="test").data.shape == (4043, 31435)


@real("movie_reviews")
def test_the_real_reviews():
    data = fetch_movie_reviews()
    assert data.data.shape == (2000, 23797)
    assert np.bincount(data.folds).tolist() == [200] * 10


@real("20newsgroups")
def test_the_real_newsgroups():
    data = fetch_newsgroup_counts(subset="train")
    assert data.data.sum() == 2765300
    assert data.feature_names[0] == "archive"


@real("scene15")
@pytest.mark.parametrize("view", _scenes._FILES)
def test_the_real_scenes(view):
    data = fetch_scene15(view, scenes="ot8")
    n = data.data.shape[0] if hasattr(data.data, "shape") else len(data.data)
    assert n == len(data.target) == 2688
    assert len(data.target_names) == 8
    if view == "grid240":
        assert data.data[0].shape == (31, 31)
        counts = fetch_scene15(scenes="ot8").data[:5].toarray()
        for grid, row in zip(data.data, counts):
            np.testing.assert_array_equal(np.bincount(grid.ravel(), minlength=240), row)
