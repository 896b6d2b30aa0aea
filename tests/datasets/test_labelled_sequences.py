"""Sequences with one label each: originals made here are served by a server on this machine."""

import dataclasses
import hashlib
import io
import os
import zipfile
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from scipy.io import savemat

from regbayes.datasets import (
    DatasetError,
    _dna,
    _japanese_vowels,
    _profiles,
    _protein_sequences,
    _trajectories,
    fetch_character_trajectories,
    fetch_hill_valley,
    fetch_japanese_vowels,
    fetch_kinase_domains,
    fetch_libras,
    fetch_osuleaf,
    fetch_promoters,
    fetch_scope40,
    fetch_splice_junction,
)
from regbayes.datasets._remote import Arrays, array_checksum, content_checksum
from tests.datasets.conftest import DATA, real

# ------------------------------------------------------------------------- in the original formats


def letters_original(labelled, labels, unlabelled):
    """The two MATLAB files, from lists of (n, 3) arrays and the classes of the first."""

    def mat(**variables):
        content = io.BytesIO()
        savemat(content, variables, do_compression=True)
        return content.getvalue()

    def cells(sequences):
        array = np.empty((1, len(sequences)), object)
        array[0] = [np.array(frames, float).T for frames in sequences]
        return array

    return [
        mat(xtrain=cells(labelled), ytrain=np.array(labels, float)[None], key=["a", "b"]),
        mat(xtest=cells(unlabelled)),
    ]


def plain(number):
    """A decimal as UCI's files have it: no zeros at its end, no exponent."""
    return np.format_float_positional(number, trim="-")


def heights_original(X, y):
    """One file of Hill-Valley."""
    lines = [[*(f"X{i}" for i in range(1, 101)), "class"]]
    lines += [[*map(plain, row), str(label)] for row, label in zip(X, y)]
    return "".join(",".join(line) + "\r\n" for line in lines)


def vowels_original(utterances, *, between="\n"):
    """ae.train or ae.test."""
    return between.join(
        "".join(" ".join(f"{x:.6f}" for x in frame) + " \n" for frame in frames)
        for frames in utterances
    )


def libras_original(X, y):
    lines = (",".join([*map(plain, np.ravel(x)), str(label)]) for x, label in zip(X, y))
    return "".join(line + "\r\n" for line in lines)


def leaves_original(train, test):
    """The zip of the archive, from (series, classes) of either side."""
    files = {"OSULeaf.txt": "Outlines of leaves."}
    for name, (X, y) in {"TRAIN": train, "TEST": test}.items():
        lines = ["# one comment", "@problemName OSULeaf", "@classLabel true 1 2 3 4 5 6", "@data"]
        lines += [",".join(map(str, series)) + f":{label}" for series, label in zip(X, y)]
        files[f"OSULeaf_{name}.ts"] = "\n".join(lines) + "\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def dna_original(rows, *, blanks):
    """promoters.data (blanks="\\t\\t") or splice.data (spaces), from (class, name, sequence)."""
    return "".join(f"{label},{blanks}{name},{blanks}{seq}\n" for label, name, seq in rows)


def wrapped(sequence):
    return [sequence[at : at + 60] for at in range(0, len(sequence), 60)]


def kinases_original(rows):
    """FASTA from (name, group, family, subfamily, species, sequence)."""
    lines = []
    for name, group, family, subfamily, species, sequence in rows:
        kind = f"{group}:{family}:{subfamily}"
        lines.append(f'>{name} class={kind} gene={name[3:].split(".kin")[0]} species="{species}"')
        lines += [*wrapped(sequence), ""]
    return "\n".join(lines) + "\n"


def domains_original(rows):
    """FASTA from (sid, sccs, sequence)."""
    lines = []
    for sid, sccs, sequence in rows:
        lines += [f">{sid} {sccs} (A:2-130) Hemoglobin {{Clam [TaxId: 244486]}}"]
        lines += wrapped(sequence.lower())
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------- a few sequences of each

PEN = [np.array([[0, 0, 0], [1, 0, 2], [0, 0, 0], [0, 3, 0], [0, 0, 0]]) / 4, np.ones((2, 3))]

TERRAIN = np.arange(1, 301).reshape(3, 100) / 8

PROMOTERS = [("+", "S10", "tactagcaat"), ("-", "867", "atatgaacgt"), ("-", "19", "tattggct")]

JUNCTIONS = [
    ("EI", "ATRINS-DONOR-521", "CCAGCTGCAT"),
    ("IE", "HUMCYPIIE-ACCEPTOR-12121", "CTGAAATTTG"),
    ("N", "AGMKPNRSB-NEG-1", "CCNDAAATTT"),
    ("N", "HUMCYPIIE-NEG-12121", "CTGAAATTTG"),
]

KINASES = [
    ("Cc_CC1G_00654.kin_dom", "AGC", "AGC-Unique", "", "C.cinerea", "femirvlg-kgcag*" + "K" * 70),
    ("Cc_CC1G_05545.kin_dom", "Atypical", "HisK", "", "C.cinerea", " "),
    ("Dm_Taf250.kin_dom", "Atypical", "TAF1", "", "Fruit Fly", "Atypical"),
    ("Hs_X.kin_dom", "CMGC", "CDK", "CDC2", "Human", "not a kinase (see text)"),
    ("Hs_AKT1.kin_dom", "AGC", "Akt", "", "Human", "FEYLKXLG"),
    ("Mm_SRC.kin_dom", "TK", "Src", "", "Mouse", "LRLEVKLGQ"),
    ("Mm_MLKL.kin_dom", "TKL", "MLKL-Unique", "", "Mouse", "SVEELYCGE"),
]

DOMAINS = [
    ("d1dlwa_", "a.1.1.1", "SLFEQLGGQ" * 8),
    ("d1ecaa_", "a.1.1.2", "LSADQXSTV"),
    ("g1ab.1", "b.10.2.4", "MZKV"),
]


def frames(*shape):
    return np.random.default_rng(0).normal(size=shape).round(6)


def small_vowels():
    return [vowels_original(frames(n, 2, 12)) for n in (270, 370)]


class Case(NamedTuple):
    """A data set: its module, its name there, its function, and small originals of it."""

    module: ModuleType
    name: str
    fetch: Callable
    bodies: Callable


def smooth(**options):
    return fetch_hill_valley(noise=False, **options)


def terrain():
    return [heights_original(TERRAIN, [0, 1, 1]), heights_original(TERRAIN[:1] + 7, [1])]


CASES = {
    "letters": Case(
        _trajectories,
        "_CHARACTER_TRAJECTORIES",
        fetch_character_trajectories,
        lambda: letters_original(PEN, [2, 20], PEN[:1]),
    ),
    "noise": Case(_profiles, "_HILL_VALLEY_WITH_NOISE", fetch_hill_valley, terrain),
    "smooth": Case(_profiles, "_HILL_VALLEY_WITHOUT_NOISE", smooth, terrain),
    "vowels": Case(_japanese_vowels, "_DATASET", fetch_japanese_vowels, small_vowels),
    "libras": Case(
        _trajectories,
        "_LIBRAS",
        fetch_libras,
        lambda: [libras_original(frames(3, 45, 2)[[0, 1, 0, 2]], [1, 4, 1, 15])],
    ),
    "leaves": Case(
        _profiles,
        "_OSULEAF",
        fetch_osuleaf,
        lambda: [leaves_original((frames(2, 427), [6, 5]), (frames(1, 427), ["2.0"]))],
    ),
    "promoters": Case(
        _dna, "_PROMOTERS", fetch_promoters, lambda: [dna_original(PROMOTERS, blanks="\t\t")]
    ),
    "junctions": Case(
        _dna,
        "_SPLICE_JUNCTION",
        fetch_splice_junction,
        lambda: [dna_original(JUNCTIONS, blanks="      ")],
    ),
    "kinases": Case(
        _protein_sequences,
        "_KINASE_DOMAINS",
        fetch_kinase_domains,
        lambda: [kinases_original(KINASES)],
    ),
    "domains": Case(
        _protein_sequences,
        "_SCOPE40",
        fetch_scope40,
        lambda: [domains_original([(f"{sid:_<7}", *rest) for sid, *rest in DOMAINS])],
    ),
}

cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def serve(monkeypatch, server, case, bodies, *, checksums_of=None):
    """Let `server` answer with `bodies`; with `checksums_of`, expect what those originals hold."""
    dataset = getattr(case.module, case.name)
    sources = [
        dataclasses.replace(source, url=server.file(f"/{i}", (200, body)).url, pause=0.01)
        for i, (source, body) in enumerate(zip(dataset.sources, bodies, strict=True))
    ]
    dataset = dataclasses.replace(dataset, sources=tuple(sources))
    if checksums_of is not None:
        contents = (body if isinstance(body, bytes) else body.encode() for body in checksums_of)
        parsed = dataset.parse(*(s.unpack(c) for s, c in zip(sources, contents, strict=True)))
        tables = {}
        for name, table in dataset.tables.items():
            if isinstance(table, Arrays):
                sha256 = array_checksum(table._typed(parsed[name]))
            else:
                sha256 = content_checksum(parsed[name])
            tables[name] = dataclasses.replace(table, sha256=sha256)
        dataset = dataclasses.replace(dataset, tables=tables)
    monkeypatch.setattr(case.module, case.name, dataset)
    return dataset


def serve_small(monkeypatch, server, case):
    bodies = case.bodies()
    return serve(monkeypatch, server, case, bodies, checksums_of=bodies)


def words(sequences):
    return ["".join(sequence) for sequence in sequences]


# ------------------------------------------------------------------------------------- every one


def check(bunch):
    """What holds for every data set of labelled sequences."""
    assert len(bunch.data) == len(bunch.target) > 0
    if "feature_names" in bunch:
        for sequence in bunch.data:
            assert sequence.dtype == np.float64
            assert sequence.shape == (len(sequence), len(bunch.feature_names))
    else:
        assert {(sequence.dtype.str, sequence.ndim) for sequence in bunch.data} == {("<U1", 1)}
    if bunch.target.dtype.kind == "U":
        assert set(bunch.target) <= set(bunch.target_names)
    else:
        assert 0 <= bunch.target.min() <= bunch.target.max() <= len(bunch.target_names)
    for name, values in bunch.items():
        if isinstance(values, np.ndarray):
            assert len(values) == len(bunch.data), name


@cases
def test_download_is_done_once(monkeypatch, tmp_path, server, case):
    dataset = serve_small(monkeypatch, server, case)
    bunch = case.fetch(data_home=tmp_path)
    check(bunch)
    assert len(server.requests) == len(dataset.sources)
    assert sorted(os.listdir(tmp_path / dataset.folder)) == sorted(dataset.tables)

    X, y = case.fetch(data_home=tmp_path, return_X_y=True, download_if_missing=False)
    assert all(map(np.array_equal, X, bunch.data))
    assert np.array_equal(y, bunch.target)
    assert len(server.requests) == len(dataset.sources)


@cases
@pytest.mark.parametrize(
    "damage",
    [lambda body: body[: 3 * len(body) // 4], lambda body: b"", lambda body: b"<html>moved</html>"],
    ids=["cut", "empty", "html"],
)
def test_a_damaged_download_is_refused(monkeypatch, tmp_path, server, case, damage):
    bodies = case.bodies()
    last = bodies[-1] if isinstance(bodies[-1], bytes) else bodies[-1].encode()
    serve(monkeypatch, server, case, [*bodies[:-1], damage(last)], checksums_of=bodies)
    with pytest.raises(DatasetError, match=r"incomplete or has changed.*Nothing was written"):
        case.fetch(data_home=tmp_path)
    assert os.listdir(tmp_path) == []


@cases
def test_another_content_is_refused(monkeypatch, tmp_path, server, case):
    # The checksum is that of the real data.
    serve(monkeypatch, server, case, case.bodies())
    with pytest.raises(DatasetError, match=r"SHA-256.*Nothing was written"):
        case.fetch(data_home=tmp_path)


@cases
def test_no_download_unless_allowed(tmp_path, case):
    with pytest.raises(OSError, match=r"not found.*download_if_missing=True"):
        case.fetch(data_home=tmp_path, download_if_missing=False)


# ------------------------------------------------------------------------- character trajectories


def test_letters_are_trimmed(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["letters"])
    letters = fetch_character_trajectories(data_home=tmp_path)
    # A frame of zeros inside a letter stays.
    np.testing.assert_array_equal(letters.data[0], PEN[0][1:4])
    np.testing.assert_array_equal(letters.data[1], PEN[1])
    np.testing.assert_array_equal(letters.unlabelled[0], PEN[0][1:4])
    assert letters.target.tolist() == ["b", "z"]

    whole = fetch_character_trajectories(data_home=tmp_path, trim=False)
    assert all(map(np.array_equal, whole.data, PEN))
    np.testing.assert_array_equal(whole.unlabelled[0], PEN[0])


def test_matlab_files_that_are_something_else():
    cell = np.empty(1, object)
    cell[0] = np.ones((2, 5))
    good = np.empty(1, object)
    good[0] = np.ones((3, 5))
    with pytest.raises(ValueError, match="xtrain is missing"):
        _trajectories._parse_letters({"mixout": good}, {"xtest": good})
    with pytest.raises(ValueError, match=r"cell 1 has shape \(2, 5\), not \(3, n_frames\)"):
        _trajectories._parse_letters({"xtrain": cell, "ytrain": np.ones(1)}, {"xtest": good})
    with pytest.raises(ValueError, match="1 letters have 2 labels"):
        _trajectories._parse_letters({"xtrain": good, "ytrain": np.ones(2)}, {"xtest": good})


@real("character_trajectories")
def test_character_trajectories():
    letters = fetch_character_trajectories(download_if_missing=False)
    check(letters)
    counts = [83, 84, 66, 71, 96, 75, 57, 79, 67, 62, 66, 70, 57, 58, 65, 64, 90, 58, 68, 93]
    assert Counter(letters.target) == dict(zip(letters.target_names, counts))
    assert len(letters.unlabelled) == 1429
    lengths = [len(frames) for frames in letters.data + letters.unlabelled]
    assert (min(lengths), max(lengths)) == (60, 182)
    assert all(frames[0].any() and frames[-1].any() for frames in letters.data)

    whole = fetch_character_trajectories(trim=False)
    lengths = [len(frames) for frames in whole.data + whole.unlabelled]
    assert (min(lengths), max(lengths)) == (109, 205)
    path = os.path.join(DATA, "character_trajectories", "character_trajectories_labelled.npz")
    with np.load(path) as stored:
        assert letters.target_names == stored["letters"].tolist()


@real("character_trajectories")
def test_character_trajectories_from_their_original_format(monkeypatch, tmp_path, server):
    """The stored checksums hold for the MATLAB files."""
    whole = fetch_character_trajectories(trim=False)
    labels = [whole.target_names.index(letter) + 1 for letter in whole.target]
    bodies = letters_original(whole.data, labels, whole.unlabelled)
    serve(monkeypatch, server, CASES["letters"], bodies)
    assert len(fetch_character_trajectories(data_home=tmp_path).data) == 1429


# ------------------------------------------------------------------------------------ Hill-Valley


def test_hills_and_valleys(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["noise"])
    terrains = fetch_hill_valley(data_home=tmp_path)
    np.testing.assert_array_equal(terrains.data[:3], TERRAIN[:, :, None])
    assert terrains.target.tolist() == [0, 1, 1, 1]
    assert terrains.target_names == ["valley", "hill"]
    assert terrains.split.tolist() == ["train"] * 3 + ["test"]
    # The other version is another file.
    with pytest.raises(DatasetError, match=r"hill_valley_without_noise\.npz not found"):
        fetch_hill_valley(data_home=tmp_path, noise=False, download_if_missing=False)


def test_last_bits_of_a_height_do_not_matter():
    known = {"X": np.array([[1309.834252, 0.1]]), "y": np.zeros(1), "split": np.array(["train"])}
    table = _profiles._HILL_VALLEY_WITHOUT_NOISE.tables["hill_valley_without_noise.npz"]
    typed = table._typed(known)
    np.testing.assert_array_equal(typed["X"], known["X"])
    other = table._typed(known | {"X": np.nextafter(known["X"], 0)})
    assert array_checksum(other) == array_checksum(typed)
    other = table._typed(known | {"X": known["X"] + 1e-6})
    assert array_checksum(other) != array_checksum(typed)


# Of UCI's own files, as github.com/JackDunnNZ/UCIData.jl has them (commit 14e03f36).
UCI_SHA256 = {
    "with": "aef62398c3a215452bcf4ce5c6a87207a3dc8e79631ef87a6eda6fe3896bc966",
    "without": "af232ff5258abeb5b1c61974648fd00bc0d37a545de33a2c3493692fc20330d5",
    "libras": "97ebdaa6a9b28ab4a2cdd84b14f19a95a7456a46137c362b65a0669eca3c3c4d",
}


@real("hill_valley")
@pytest.mark.parametrize("noise", [True, False])
def test_hill_valley(monkeypatch, tmp_path, server, noise):
    terrains = fetch_hill_valley(download_if_missing=False, noise=noise)
    check(terrains)
    counts = [307, 299, 299, 307] if noise else [305, 301, 295, 311]
    sides = [terrains.target[terrains.split == side] for side in ("train", "test")]
    assert np.concatenate([np.bincount(side) for side in sides]).tolist() == counts
    # The labels are right: the terrain goes furthest up or down from its median.
    X = np.array(terrains.data)[:, :, 0]
    median = np.median(X, axis=1)
    assert np.array_equal(X.max(axis=1) - median > median - X.min(axis=1), terrains.target == 1)

    files = [heights_original(X[:606], sides[0]), heights_original(X[606:], sides[1])]
    kind = "with" if noise else "without"
    assert hashlib.sha256(files[0].encode()).hexdigest() == UCI_SHA256[kind]
    serve(monkeypatch, server, CASES["noise" if noise else "smooth"], files)
    downloaded = fetch_hill_valley(data_home=tmp_path, noise=noise)
    np.testing.assert_array_equal(downloaded.data, terrains.data)


# -------------------------------------------------------------------------------- Japanese vowels


@pytest.mark.parametrize("between", ["\n", "\n\n", "1.0 " * 12 + " \n"])
def test_utterances(between):
    known = [frames(2, 12), frames(3, 12)]
    text = vowels_original(known, between=between) + between
    assert all(map(np.array_equal, _japanese_vowels._utterances(text), known))


def test_vowel_files_that_are_something_else():
    with pytest.raises(ValueError, match="line 3 has 11 numbers, not 12"):
        _japanese_vowels._utterances("0.5 " * 12 + "\n\n" + "0.5 " * 11)
    with pytest.raises(ValueError, match="1 utterances to train, not 270"):
        _japanese_vowels._parse("0.5 " * 12, "")


@real("japanese_vowels")
@pytest.mark.parametrize("between", ["\n", "1.0 " * 12 + " \n"], ids=["uci", "copy"])
def test_japanese_vowels(monkeypatch, tmp_path, server, between):
    vowels = fetch_japanese_vowels(download_if_missing=False)
    check(vowels)
    lengths = np.array([len(frames) for frames in vowels.data])
    assert (lengths.min(), lengths.max()) == (7, 29)
    train = vowels.split == "train"
    assert (lengths[train].sum(), lengths[~train].sum()) == (4274, 5687)
    assert np.bincount(vowels.target[train])[1:].tolist() == [30] * 9
    test = [31, 35, 88, 44, 29, 24, 40, 50, 29]
    assert np.bincount(vowels.target[~train])[1:].tolist() == test

    files = [
        vowels_original([vowels.data[i] for i in np.flatnonzero(side)], between=between)
        for side in (train, ~train)
    ]
    serve(monkeypatch, server, CASES["vowels"], files)
    downloaded = fetch_japanese_vowels(data_home=tmp_path)
    assert all(map(np.array_equal, downloaded.data, vowels.data))


# ----------------------------------------------------------------------------------------- Libras


def test_libras_rows(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["libras"])
    X = frames(3, 45, 2)
    movements = fetch_libras(data_home=tmp_path)
    np.testing.assert_array_equal(movements.data, X[[0, 1, 0, 2]])
    assert movements.target.tolist() == [1, 4, 1, 15]
    distinct = fetch_libras(data_home=tmp_path, duplicates=False)
    np.testing.assert_array_equal(distinct.data, X)
    assert distinct.target.tolist() == [1, 4, 15]


def test_libras_text_that_is_something_else():
    with pytest.raises(ValueError, match="row 2 has 90 fields, not 91"):
        _trajectories._parse_libras("0.5," * 90 + "1\n\n" + "0.5," * 89 + "1")


@real("libras")
def test_libras(monkeypatch, tmp_path, server):
    movements = fetch_libras(download_if_missing=False)
    check(movements)
    assert np.bincount(movements.target)[1:].tolist() == [24] * 15
    X = np.array(movements.data)
    assert (X.min(), X.max()) == (0, 1)

    distinct = fetch_libras(duplicates=False)
    assert len(distinct.data) == 330
    fewer = np.flatnonzero(np.bincount(distinct.target)[1:] < 24) + 1
    assert fewer.tolist() == [4, 5, 6, *range(9, 16)]

    body = libras_original(X, movements.target)
    assert hashlib.sha256(body.encode()).hexdigest() == UCI_SHA256["libras"]
    serve(monkeypatch, server, CASES["libras"], [body])
    assert len(fetch_libras(data_home=tmp_path).data) == 360


# --------------------------------------------------------------------------------------- OSU Leaf


def test_leaves(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["leaves"])
    leaves = fetch_osuleaf(data_home=tmp_path)
    np.testing.assert_array_equal(
        np.array(leaves.data)[:2, :, 0], frames(2, 427).astype(np.float32)
    )
    assert leaves.target.tolist() == [6, 5, 2]
    assert leaves.split.tolist() == ["train", "train", "test"]


def test_an_archive_that_lacks_a_side():
    with pytest.raises(ValueError, match=r"OSULeaf_TRAIN\.ts is not in the archive"):
        _profiles._parse_osuleaf({"OSULeaf_TEST.ts": b"@data\n"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1.5,2.5:1\n", "no line @data"),
        ("@data\n\n1.5,2.5:1\n", "line 3 has 2 numbers and the class '1', not 427"),
        ("@data\n" + ",".join(["1.5"] * 427), "427 numbers and the class ''"),
        ("@data\n1.5,?:1\n", "could not convert"),
    ],
)
def test_ts_text_that_is_something_else(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        _profiles._read_ts(text)


@real("osuleaf_contours")
def test_osuleaf(monkeypatch, tmp_path, server):
    leaves = fetch_osuleaf(download_if_missing=False)
    check(leaves)
    train = leaves.split == "train"
    assert np.bincount(leaves.target[train])[1:].tolist() == [34, 29, 33, 53, 36, 15]
    assert np.bincount(leaves.target[~train])[1:].tolist() == [32, 55, 42, 44, 46, 23]

    X = np.array(leaves.data, dtype=np.float32)[:, :, 0]
    body = leaves_original((X[train], leaves.target[train]), (X[~train], leaves.target[~train]))
    serve(monkeypatch, server, CASES["leaves"], [body])
    np.testing.assert_array_equal(fetch_osuleaf(data_home=tmp_path).data, leaves.data)


# -------------------------------------------------------------------------------------------- DNA


def test_promoter_lines(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["promoters"])
    promoters = fetch_promoters(data_home=tmp_path)
    assert words(promoters.data) == ["tactagcaat", "atatgaacgt", "tattggct"]
    assert promoters.target.tolist() == ["+", "-", "-"]
    assert promoters.names.tolist() == ["S10", "867", "19"]


def test_junction_lines(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["junctions"])
    junctions = fetch_splice_junction(data_home=tmp_path)
    assert words(junctions.data) == [sequence for _, _, sequence in JUNCTIONS]
    assert junctions.target.tolist() == ["EI", "IE", "N", "N"]
    # Of a sequence with two labels the first is kept.
    distinct = fetch_splice_junction(data_home=tmp_path, duplicates=False)
    assert words(distinct.data) == ["CCAGCTGCAT", "CTGAAATTTG", "CCNDAAATTT"]
    assert distinct.target.tolist() == ["EI", "IE", "N"]
    assert distinct.names.tolist() == [name for _, name, _ in JUNCTIONS[:3]]


@pytest.mark.parametrize("line", ["+,S10", "?,S10,acgt", "+,S10,ac-gt", "+,S10,", "+,S10,ac,gt"])
def test_dna_that_is_something_else(line):
    with pytest.raises(
        ValueError, match=r"line 2.*is not a class \(\+, -\), a name and a sequence"
    ):
        _dna._PROMOTERS.parse(f"-,1,acgt\n{line}\n")


@real("promoters")
def test_promoters(monkeypatch, tmp_path, server):
    promoters = fetch_promoters(download_if_missing=False)
    check(promoters)
    assert Counter(promoters.target) == {"+": 53, "-": 53}
    assert {len(sequence) for sequence in promoters.data} == {57}
    assert set(np.concatenate(promoters.data)) == set("acgt")
    assert len(set(words(promoters.data))) == 106

    rows = zip(promoters.target, promoters.names, words(promoters.data))
    serve(monkeypatch, server, CASES["promoters"], [dna_original(rows, blanks="\t\t")])
    assert words(fetch_promoters(data_home=tmp_path).data) == words(promoters.data)


@real("splice_junction")
def test_splice_junction(monkeypatch, tmp_path, server):
    junctions = fetch_splice_junction(download_if_missing=False)
    check(junctions)
    assert Counter(junctions.target) == {"EI": 767, "IE": 768, "N": 1655}
    assert {len(sequence) for sequence in junctions.data} == {60}
    letters = Counter(np.concatenate(junctions.data).tolist())
    assert {letter: letters[letter] for letter in set(letters) - set("ACGT")} == {
        "N": 56,
        "D": 2,
        "R": 1,
        "S": 1,
    }
    distinct = fetch_splice_junction(duplicates=False)
    assert len(set(words(distinct.data))) == len(distinct.data) == 3190 - 185
    assert set(words(distinct.data)) == set(words(junctions.data))
    both = dict.fromkeys(zip(words(junctions.data), junctions.target))
    assert len(both) == 3005 + 1
    assert "HUMCYPIIE-ACCEPTOR-12121" in distinct.names
    assert "HUMCYPIIE-NEG-12121" not in distinct.names

    rows = zip(junctions.target, junctions.names, words(junctions.data))
    serve(monkeypatch, server, CASES["junctions"], [dna_original(rows, blanks="      ")])
    assert words(fetch_splice_junction(data_home=tmp_path).data) == words(junctions.data)


# ---------------------------------------------------------------------------------------- kinases


def test_kinase_entries(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["kinases"])
    kinases = fetch_kinase_domains(data_home=tmp_path)
    assert words(kinases.data) == ["FEMIRVLGKGCAG" + "K" * 70, "FEYLKXLG", "LRLEVKLGQ"]
    assert kinases.target.tolist() == ["AGC", "AGC", "TK"]
    assert kinases.target_names == ["AGC", "CMGC", "TK"]
    assert kinases.species.tolist() == ["C.cinerea", "Human", "Mouse"]
    assert kinases.family.tolist() == ["AGC-Unique", "Akt", "Src"]
    assert kinases.names[1] == "Hs_AKT1.kin_dom"

    # Neither nothing nor words are sequences.
    everything = fetch_kinase_domains(data_home=tmp_path, groups=None)
    assert everything.target.tolist() == ["AGC", "AGC", "TK", "TKL"]
    assert len(everything.target_names) == 13

    some = fetch_kinase_domains(data_home=tmp_path, groups=["TKL", "AGC"], species="Mouse")
    assert some.target.tolist() == ["TKL"]
    assert some.target_names == ["TKL", "AGC"]
    some = fetch_kinase_domains(data_home=tmp_path, groups="AGC", species=("Human", "Mouse"))
    assert words(some.data) == ["FEYLKXLG"]
    with pytest.raises(ValueError, match=r"no kinase of groups=\['CAK'\].*ask for more"):
        fetch_kinase_domains(data_home=tmp_path, groups="CAK")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"groups": ("AGC", "PKA")}, r"groups must be None or some of 'AGC', .*got \('AGC', 'PKA'"),
        ({"groups": ()}, r"groups must be None or some of"),
        ({"species": "human"}, r"species must be None or some of 'A.queenslandica', .*'Human'"),
    ],
)
def test_unknown_kinases(tmp_path, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        fetch_kinase_domains(data_home=tmp_path, download_if_missing=False, **options)


@pytest.mark.parametrize("text", ["ACD\n>x", ">Hs_AKT1\nACD\n", '>x class=AGC species="Human"\nA'])
def test_kinase_text_that_is_something_else(text):
    with pytest.raises(ValueError, match="cannot read"):
        _protein_sequences._parse_kinases(text)


@real("kinbase_kinases")
def test_kinase_domains(monkeypatch, tmp_path, server):
    kinases = fetch_kinase_domains(download_if_missing=False, groups=None)
    check(kinases)
    assert set(kinases.target) == set(kinases.target_names)
    assert set(kinases.species) == set(_protein_sequences._SPECIES)
    groups, species = Counter(kinases.target.tolist()), Counter(kinases.species.tolist())
    # The table has one more, the fly's Taf250, whose sequence is the word "Atypical".
    assert len(kinases.data) == 3379 - 1
    counts = {"TK": 698, "Other": 663, "TKL": 421, "CAMK": 373, "CMGC": 339, "AGC": 296}
    counts |= {"STE": 214, "CK1": 138, "Atypical": 106 - 1, "PKL": 56, "RGC": 56, "NDK": 18}
    assert groups == counts | {"CAK": 1}
    assert (species["Human"], species["Fruit Fly"]) == (530, 238 - 1)
    for number in (*groups.values(), *species.values()):
        assert str(number) in kinases.DESCR
    assert set(np.concatenate(kinases.data)) == set("ACDEFGHIKLMNPQRSTVWXY")
    assert min(map(len, kinases.data)) == 22

    human = fetch_kinase_domains(species="Human")
    assert Counter(human.target.tolist()) == {"AGC": 69, "CMGC": 64, "TK": 94}

    with open(os.path.join(DATA, "kinbase_kinases", "kinases.csv")) as file:
        rows = [line.rstrip("\n").split(",") for line in file][1:]
    body = kinases_original([*rows, ("Aq_1", "TK", "", "", "Human", "none")])
    serve(monkeypatch, server, CASES["kinases"], [body])
    assert len(fetch_kinase_domains(data_home=tmp_path, groups=None).data) == 3378


# ------------------------------------------------------------------------------------------ SCOPe


def test_domain_entries(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, CASES["domains"])
    domains = fetch_scope40(data_home=tmp_path)
    assert words(domains.data) == [sequence for _, _, sequence in DOMAINS]
    assert domains.target.tolist() == ["a", "a", "b"]
    assert domains.sid.tolist() == ["d1dlwa_", "d1ecaa_", "g1ab.1_"]
    assert domains.sccs.tolist() == ["a.1.1.1", "a.1.1.2", "b.10.2.4"]
    assert domains.superfamily.tolist() == ["a.1.1", "a.1.1", "b.10.2"]
    with pytest.raises(ValueError, match="n_samples=4, but there are 3; pass None"):
        fetch_scope40(data_home=tmp_path, n_samples=4)
    assert len(fetch_scope40(data_home=tmp_path, n_samples=3).data) == 3


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "all"])
def test_no_number_of_samples(tmp_path, n_samples):
    with pytest.raises(ValueError, match="n_samples must be None or an integer from 1 up"):
        fetch_scope40(data_home=tmp_path, download_if_missing=False, n_samples=n_samples)


@pytest.mark.parametrize(
    "text", [">d1dlwa_\nslf", ">d1dlwa_ h.1.1.1 (A:)\nslf", ">d1dlwa_ a.1.1.1 (A:)\n", "slf"]
)
def test_domain_text_that_is_something_else(text):
    with pytest.raises(ValueError, match="cannot read"):
        _protein_sequences._parse_scope(text)


def test_stratified_draws():
    target = np.repeat(["a", "b", "c"], [60, 30, 10])
    for n in (1, 7, 50, 99, 100):
        kept = _protein_sequences._stratified(target, n, 0)
        assert len(set(kept)) == len(kept) == n
        assert np.all(np.diff(kept) > 0)
        shares = [np.sum(target[kept] == label) for label in "abc"]
        assert np.all(np.abs(np.array(shares) - n * np.array([0.6, 0.3, 0.1])) < 1)
    assert not np.array_equal(*(_protein_sequences._stratified(target, 50, s) for s in (0, 1)))


@real("scope40_astral")
def test_scope40(monkeypatch, tmp_path, server):
    domains = fetch_scope40(download_if_missing=False)
    check(domains)
    sizes = {"a": 2540, "b": 2895, "c": 4160, "d": 3462, "e": 279, "f": 272, "g": 715}
    assert Counter(domains.target.tolist()) == sizes
    lengths = [len(sequence) for sequence in domains.data]
    assert (min(lengths), np.median(lengths), max(lengths)) == (20, 150, 1664)
    assert len(set(domains.superfamily)) == 2024
    assert len(set(domains.sccs)) == 4583
    letters = Counter(np.concatenate(domains.data).tolist())
    assert (letters["X"], letters["Z"], len(letters)) == (391, 1, 22)

    some = fetch_scope40(n_samples=1000, random_state=0)
    check(some)
    shares = Counter(some.target.tolist())
    assert all(abs(shares[label] - 1000 * size / 14323) < 1 for label, size in sizes.items())
    at = [domains.sid.tolist().index(sid) for sid in some.sid]
    assert words(some.data) == words(domains.data[i] for i in at)
    assert some.sccs.tolist() == domains.sccs[at].tolist()
    again, other = (fetch_scope40(n_samples=1000, random_state=seed) for seed in (0, 1))
    assert again.sid.tolist() == some.sid.tolist() != other.sid.tolist()

    rows = zip(domains.sid, domains.sccs, words(domains.data))
    serve(monkeypatch, server, CASES["domains"], [domains_original(rows)])
    assert len(fetch_scope40(data_home=tmp_path).data) == 14323
