"""Fetching: from a server on this machine that serves files in the published formats."""

import dataclasses
import os
import socket
from pathlib import Path

import numpy as np
import pytest

from regbayes.datasets import (
    DatasetError,
    _parkinsons,
    _protein_folds,
    fetch_parkinsons,
    fetch_protein_folds,
    get_data_home,
)
from regbayes.datasets._protein_descriptors import AMINO_ACIDS, PROPERTIES, composition
from regbayes.datasets._remote import RemoteFile, Table, content_checksum, write_atomically
from tests.datasets.conftest import DATA, real

# ------------------------------------------------------------------ a small published Parkinsons


def parkinsons_original(n_records=6, seed=0):
    rng = np.random.default_rng(seed)
    lines = [",".join(["name", *_parkinsons._FEATURES[:16], "status", *_parkinsons._FEATURES[16:]])]
    for i in range(n_records):
        cells = [f"{value:.5f}" for value in rng.normal(size=22)]
        name = f"phon_R01_S{1 + i // 2:02d}_{1 + i % 2}"
        lines.append(",".join([name, *cells[:16], str(i % 3 % 2), *cells[16:]]))
    return "\n".join(lines) + "\n"


TRAIN_ORIGINAL = """\
---------------------------------------------------
3 protein sequences. FOLD(1) ... FOLD(27) denotes
             FOLD(2) here refers to fold index 3.
---------------------------------------------------


FOLD(1)  Globm-like(alpha)
>1HBG  \nACDE\x20
FG
>1DHX  (1P2Z)
XACCA
FOLD  (2) CYTOCHROME C (ALPHA)
>1CYI_2\nMKV LA
"""
TEST_ORIGINAL = "FOLD (2)CYTOCHROME\n>1HBG\nWYWY\n"


def redirect(monkeypatch, module, sources, *, checksums_of=None):
    """Point a data set to `sources`; with `checksums_of`, expect what those originals hold."""
    dataset = dataclasses.replace(module._DATASET, sources=tuple(sources))
    if checksums_of is not None:
        columns = dataset.parse(*checksums_of)
        tables = {
            name: Table(table.types, content_checksum(columns[name]))
            for name, table in dataset.tables.items()
        }
        dataset = dataclasses.replace(dataset, tables=tables)
    monkeypatch.setattr(module, "_DATASET", dataset)


# ------------------------------------------------------------------------------- the data home


def test_data_home_is_argument_then_environment_then_default(monkeypatch, tmp_path):
    monkeypatch.setenv("REGBAYES_DATA", str(tmp_path / "from_environment"))
    assert get_data_home(tmp_path / "given") == tmp_path / "given"
    assert get_data_home() == tmp_path / "from_environment"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REGBAYES_DATA", "")
    assert get_data_home() == tmp_path / "regbayes_data"
    monkeypatch.delenv("REGBAYES_DATA")
    assert get_data_home() == tmp_path / "regbayes_data"


def test_atomic_write_leaves_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "table.csv"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_checksum_sees_content_only():
    table = Table({"name": str, "size": float}, content_checksum({"name": ["a"], "size": [1.5]}))
    assert table.read("name,size\na,1.5\n") == table.read("size,name,other\r\n1.500,a,?\r\n")
    with pytest.raises(ValueError, match="SHA-256"):
        table.read("name,size\na,1.25\n")


# ---------------------------------------------------------------------------------- downloading


def test_download_writes_the_table_and_is_done_once(monkeypatch, tmp_path, server):
    text = parkinsons_original()
    redirect(monkeypatch, _parkinsons, [server.file("/p", (200, text))], checksums_of=[text])
    bunch = fetch_parkinsons(data_home=tmp_path / "new")
    assert bunch.data.shape == (6, 22)
    assert list(bunch.groups) == ["S01", "S01", "S02", "S02", "S03", "S03"]
    assert list(bunch.target) == [0, 1, 0, 0, 1, 0]
    assert bunch.records[0] == "phon_R01_S01_1"
    first = dict(zip(*(line.split(",") for line in text.splitlines()[:2])))
    assert bunch.data[0].tolist() == [float(first[name]) for name in bunch.feature_names]

    X, y = fetch_parkinsons(data_home=tmp_path / "new", return_X_y=True, download_if_missing=False)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    assert server.requests == ["/p"]
    assert os.listdir(tmp_path / "new" / "parkinsons") == ["parkinsons.csv"]


def test_transient_failures_are_tried_again(monkeypatch, tmp_path, server):
    text = parkinsons_original()
    # Busy, then cut off in the middle (fewer bytes than promised), then well.
    source = server.file("/p", (503, ""), (200, text[:200], len(text)), (200, text))
    redirect(monkeypatch, _parkinsons, [source], checksums_of=[text])
    assert fetch_parkinsons(data_home=tmp_path).data.shape == (6, 22)
    assert len(server.requests) == 3


def test_attempts_are_limited(monkeypatch, tmp_path, server):
    source = server.file("/p", (503, ""))
    redirect(monkeypatch, _parkinsons, [source])
    with pytest.raises(DatasetError, match="503"):
        fetch_parkinsons(data_home=tmp_path)
    assert len(server.requests) == source.attempts


def test_a_missing_page_is_final(monkeypatch, tmp_path, server):
    redirect(monkeypatch, _parkinsons, [server.file("/p", (404, ""))])
    with pytest.raises(DatasetError, match=r"404.*by hand"):
        fetch_parkinsons(data_home=tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda text: text[:-30], "has no|could not convert|SHA-256"),
        (lambda text: "\n".join(text.splitlines()[:-1]), "SHA-256"),
        (lambda text: text.replace("0.1", "0.2", 1), "SHA-256"),
        (lambda text: "<html>moved</html>", "missing"),
        (lambda text: "", "missing"),
        (lambda text: text.replace("phon_R01_S02_1", "phon"), "name of a recording"),
        (lambda text: text.encode() + b"\xff\xff", "utf-8"),
    ],
    ids=["cut", "short", "changed", "html", "empty", "name", "binary"],
)
def test_a_damaged_download_is_refused(monkeypatch, tmp_path, server, damage, complaint):
    text = parkinsons_original()
    assert damage(text) != text
    source = server.file("/p", (200, damage(text)))
    redirect(monkeypatch, _parkinsons, [source], checksums_of=[text])
    with pytest.raises(DatasetError, match=f"(?s)({complaint}).*Nothing was written"):
        fetch_parkinsons(data_home=tmp_path)
    assert os.listdir(tmp_path) == []


def test_no_network_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    # Nobody listens at that port any more.
    redirect(monkeypatch, _parkinsons, [RemoteFile(f"http://127.0.0.1:{port}/p", pause=0.01)])
    with pytest.raises(DatasetError, match=r"could not download.*REGBAYES_DATA"):
        fetch_parkinsons(data_home=tmp_path)


@pytest.mark.parametrize("fetch", [fetch_parkinsons, fetch_protein_folds])
def test_no_download_unless_allowed(tmp_path, fetch):
    with pytest.raises(OSError, match=r"not found.*download_if_missing=True"):
        fetch(data_home=tmp_path, download_if_missing=False)


def test_a_damaged_file_in_the_home_is_refused(monkeypatch, tmp_path, server):
    text = parkinsons_original()
    redirect(monkeypatch, _parkinsons, [server.file("/p", (200, text))], checksums_of=[text])
    fetch_parkinsons(data_home=tmp_path)
    path = tmp_path / "parkinsons" / "parkinsons.csv"
    path.write_text(path.read_text().replace("S03", "S02"))
    with pytest.raises(DatasetError, match="Delete the file"):
        fetch_parkinsons(data_home=tmp_path)
    path.unlink()
    assert fetch_parkinsons(data_home=tmp_path).data.shape == (6, 22)


# ------------------------------------------------------------------------------------- proteins


def test_protein_originals_are_understood(monkeypatch, tmp_path, server):
    sources = [server.file("/a", (200, TRAIN_ORIGINAL)), server.file("/b", (200, TEST_ORIGINAL))]
    redirect(monkeypatch, _protein_folds, sources, checksums_of=[TRAIN_ORIGINAL, TEST_ORIGINAL])
    bunch = fetch_protein_folds(data_home=tmp_path)
    assert list(bunch.proteins) == ["1HBG", "1DHX", "1CYI_2", "1HBG"]
    assert list(bunch.sequences) == ["ACDEFG", "XACCA", "MKVLA", "WYWY"]
    assert list(bunch.target) == [1, 1, 2, 2]
    assert list(bunch.split) == ["train", "train", "train", "test"]
    assert len(bunch.target_names) == 27
    assert bunch.data[1, :2].tolist() == [40, 40]  # X counts for the length
    folds = (tmp_path / "ding_dubchak_folds" / "folds.csv").read_text().splitlines()
    assert folds[1:3] == ["1,Globin-like(alpha),2,0", "2,CYTOCHROME C (ALPHA),1,1"]


@pytest.mark.parametrize("text", ["<html>", ">1HBG\nACD\n", "FOLD(1)\nACD\n", "FOLD(1)\n>X\nac\n"])
def test_protein_text_that_is_something_else(text):
    with pytest.raises(ValueError, match="cannot read"):
        _protein_folds._parse_sequences(text)


def test_unknown_features(tmp_path):
    with pytest.raises(ValueError, match="'composition' or 'all'"):
        fetch_protein_folds(data_home=tmp_path, features="secondary")


def test_every_property_divides_the_amino_acids():
    for groups in PROPERTIES.values():
        assert sorted("".join(groups)) == sorted(AMINO_ACIDS)


def test_composition_of_all_residues():
    np.testing.assert_allclose(composition(AMINO_ACIDS * 2), [5.0] * 20 + [40])


# ---------------------------------------------------------------------------------- real data


@real("parkinsons")
def test_parkinsons():
    bunch = fetch_parkinsons(download_if_missing=False)
    assert bunch.data.shape == (195, 22)
    assert np.bincount(bunch.target).tolist() == [48, 147]
    assert len(set(bunch.groups)) == 32
    assert len(set(bunch.records)) == 195
    # Nobody is both ill and healthy.
    assert len(set(zip(bunch.groups, bunch.target))) == 32


@real("parkinsons")
def test_parkinsons_from_its_original_format(monkeypatch, tmp_path, server):
    """The stored checksum holds for a download in UCI's format, which has no subject column."""
    lines = Path(DATA, "parkinsons", "parkinsons.csv").read_text().splitlines()
    original = "\n".join(line.split(",", 1)[1] for line in lines) + "\n"
    redirect(monkeypatch, _parkinsons, [server.file("/p", (200, original))])
    downloaded = fetch_parkinsons(data_home=tmp_path)
    np.testing.assert_array_equal(downloaded.data, fetch_parkinsons().data)


@real("ding_dubchak_folds")
def test_protein_folds_equal_the_features_beside_them():
    bunch = fetch_protein_folds(download_if_missing=False, features="all")
    stored = np.load(Path(DATA, "ding_dubchak_folds", "features.npz"))
    np.testing.assert_allclose(
        bunch.data, np.hstack([stored[name] for name in ("composition", *PROPERTIES)]), atol=1e-9
    )
    np.testing.assert_array_equal(bunch.target, stored["y"])
    np.testing.assert_array_equal(bunch.split, stored["split"])
    np.testing.assert_array_equal(bunch.proteins, stored["protein"])
    assert len(bunch.feature_names) == len(set(bunch.feature_names)) == 105
    assert fetch_protein_folds().data.shape == (694, 21)


@real("ding_dubchak_folds")
def test_protein_folds_from_their_original_format(monkeypatch, tmp_path, server):
    """Also shows that the fold names in the source are those of the checked folds.csv."""
    known = fetch_protein_folds()
    sources = []
    for split in ("train", "test"):
        lines = ["-" * 74, "FOLD(1) here refers to fold index 1,", "-" * 74, ""]
        for fold in range(1, 28):
            lines.append(f"FOLD ({fold}) whatever the header says")
            for i in np.flatnonzero((known.split == split) & (known.target == fold)):
                sequence = known.sequences[i]
                lines.append(f">{known.proteins[i]}  ")
                lines += [sequence[at : at + 60] for at in range(0, len(sequence), 60)]
        sources.append(server.file(f"/{split}", (200, "\n".join(lines))))
    redirect(monkeypatch, _protein_folds, sources)
    downloaded = fetch_protein_folds(data_home=tmp_path)
    np.testing.assert_array_equal(downloaded.data, known.data)
    assert downloaded.target_names == known.target_names
