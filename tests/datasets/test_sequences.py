"""Data sets of sequences: originals made here are served by a server on this machine."""

import dataclasses
import gzip
import io
import itertools
import os
import zipfile

import numpy as np
import pytest

from regbayes.datasets import (
    DatasetError,
    _gesture_phase,
    _msr_action3d,
    _ocr_letters,
    _utkinect,
    fetch_gesture_phase,
    fetch_msr_action3d,
    fetch_ocr_letters,
    fetch_utkinect,
    make_switching_labels,
)
from regbayes.datasets._remote import array_checksum
from tests.datasets.conftest import DATA, real

FETCH = {
    _ocr_letters: fetch_ocr_letters,
    _gesture_phase: fetch_gesture_phase,
    _utkinect: fetch_utkinect,
    _msr_action3d: fetch_msr_action3d,
}


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("folder/", b"")
        for name, body in files.items():
            archive.writestr(f"folder/{name}", body)
    return content.getvalue()


# ------------------------------------------------------------------------- in the original formats


def ocr_original(words, pixels, folds):
    """letter.data: words, pixels of their letters one after the other, a fold for each word."""
    lines, rows = [], iter(pixels)
    for number, (word, fold) in enumerate(zip(words, folds), start=1):
        for position, letter in enumerate(word, start=1):
            following = -1 if position == len(word) else len(lines) + 2
            fields = [len(lines) + 1, letter, following, number, position, fold, *next(rows)]
            lines.append("\t".join(map(str, fields)) + "\t\n")  # the lines do end with a tab
    return gzip.compress("".join(lines).encode(), compresslevel=1)


def gesture_original(raw, raw_phases, processed, letters, *, encoding="utf-8", newline="\r\n"):
    """The zip of UCI, from a list of arrays and a list of labels for each kind."""
    raw_header = [*_gesture_phase._RAW, "timestamp", "phase"]
    files = {"data_description.txt": b"1. Title"}
    for i, video in enumerate(_gesture_phase._VIDEOS):
        lines = [raw_header]
        lines += [[*x, 5702026 + t, y] for t, (x, y) in enumerate(zip(raw[i], raw_phases[i]))]
        files[f"{video}_raw.csv"] = csv_text(lines, newline).encode(encoding)
        lines = [[*range(1, 33), "Phase"], *([*x, y] for x, y in zip(processed[i], letters[i]))]
        files[f"{video}_va3.csv"] = csv_text(lines, newline).encode()
    return zipped(files)


def csv_text(lines, newline):
    return "".join(",".join(map(str, line)) + newline for line in lines)


def utkinect_original(sequences):
    """Label file and joints of each recording, from {(recording, action): (n, 60) array}.

    Frames have the numbers 4, 8, ...; every third is written a second time with other joints.
    """
    joints = {recording: [] for recording in _utkinect._RECORDINGS}
    lines = []
    for recording, rows in joints.items():
        lines.append(recording)
        clock = itertools.count(4, 4)
        bounds = dict.fromkeys(_utkinect._ACTIONS, "NaN NaN")
        for (where, action), frames in sequences.items():
            if where == recording:
                numbers = [next(clock) for _ in frames]
                for number, frame in zip(numbers, frames):
                    rows.append((number, frame))
                    if number % 3 == 0:
                        rows.append((number, frame + 1))
                bounds[action] = f"{numbers[0]} {numbers[-1]} "
                rows.append((next(clock), np.full(60, 9.0)))  # between two actions
        lines += [f"{action}: {numbers}" for action, numbers in bounds.items()]
    texts = (
        "".join(f"{number}   {'  '.join(f'{x:.6f}' for x in frame)}  \n" for number, frame in rows)
        for rows in joints.values()
    )
    return ["\n".join(lines) + "\n\n", *texts]


def msr_original(sequences):
    """An archive of the repository, from {(action, subject, episode): (n, 60) array}."""
    files = {"README.md": b"# Human-Action-Recognition"}
    for (action, subject, episode), frames in sequences.items():
        joints = "".join(f"{x:.6f} {y:.6f} {z:.6f} 1.000000\n" for x, y, z in frames.reshape(-1, 3))
        files[f"a{action:02d}_s{subject:02d}_e{episode:02d}_skeleton3D.txt"] = joints.encode()
    return zipped(files)


def small_original(module):
    """A few sequences in the original format: the body of each source."""
    rng = np.random.default_rng(0)
    if module is _ocr_letters:
        return [ocr_original(["ommanding", "axi"], rng.integers(0, 2, (12, 128)), [3, 0])]
    if module is _gesture_phase:
        raw, processed = rng.normal(size=(7, 6, 18)), rng.normal(size=(7, 2, 32))
        phases = [["Rest", "Preparação", "Preparation", "Stroke", "Hold", "Retraction"]] * 7
        return [gesture_original(raw.round(6), phases, processed.round(8), [["D", "P"]] * 7)]
    if module is _utkinect:
        names = [(r, a) for r in _utkinect._RECORDINGS for a in _utkinect._ACTIONS]
        names.remove(("s10_e02", "carry"))
        sequences = {
            name: rng.normal(size=(i % 3 + 2, 60)).round(6) for i, name in enumerate(names)
        }
        return utkinect_original(sequences)
    names = [(1, 1, 1), (2, 3, 2), (20, 10, 2)]
    return [msr_original({name: rng.normal(size=(3, 60)) for name in names})]


def serve(monkeypatch, server, module, bodies, *, checksum_of=None):
    """Let `server` answer with `bodies`; with `checksum_of`, expect what those originals hold."""
    dataset = module._DATASET
    sources = [
        dataclasses.replace(source, url=server.file(f"/{i}", (200, body)).url, pause=0.01)
        for i, (source, body) in enumerate(zip(dataset.sources, bodies, strict=True))
    ]
    dataset = dataclasses.replace(dataset, sources=tuple(sources))
    if checksum_of is not None:
        ((name, table),) = dataset.tables.items()
        contents = (body if isinstance(body, bytes) else body.encode() for body in checksum_of)
        parsed = dataset.parse(*(s.unpack(c) for s, c in zip(sources, contents, strict=True)))
        table = dataclasses.replace(table, sha256=array_checksum(table._typed(parsed[name])))
        dataset = dataclasses.replace(dataset, tables={name: table})
    monkeypatch.setattr(module, "_DATASET", dataset)


def serve_small(monkeypatch, server, module):
    bodies = small_original(module)
    serve(monkeypatch, server, module, bodies, checksum_of=bodies)


# ------------------------------------------------------------------------------------- every one


@pytest.mark.parametrize("module", FETCH)
def test_download_is_done_once(monkeypatch, tmp_path, server, module):
    serve_small(monkeypatch, server, module)
    bunch = FETCH[module](data_home=tmp_path)
    assert len(server.requests) == len(module._DATASET.sources)
    assert os.listdir(tmp_path / module._DATASET.folder) == list(module._DATASET.tables)

    X, y = FETCH[module](data_home=tmp_path, return_X_y=True, download_if_missing=False)
    assert all(map(np.array_equal, X, bunch.data))
    assert all(map(np.array_equal, y, bunch.target))
    assert len(server.requests) == len(module._DATASET.sources)

    for frames, labels in zip(bunch.data, bunch.get("frame_target", bunch.target), strict=True):
        assert frames.dtype == np.float64
        assert frames.shape == (len(labels), len(bunch.feature_names))
        assert set(labels) <= set(bunch.target_names)


@pytest.mark.parametrize("module", FETCH)
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda body: body[: 3 * len(body) // 4], "not a whole|no whole rows|could not convert"),
        (lambda body: body[:0], "not a whole|SHA-256"),
        (lambda body: b"<html>moved</html>", "not a whole|could not convert"),
    ],
    ids=["cut", "empty", "html"],
)
def test_a_damaged_download_is_refused(monkeypatch, tmp_path, server, module, damage, complaint):
    bodies = small_original(module)
    last = bodies[-1] if isinstance(bodies[-1], bytes) else bodies[-1].encode()
    damaged = [*bodies[:-1], damage(last)]
    serve(monkeypatch, server, module, damaged, checksum_of=bodies)
    with pytest.raises(DatasetError, match=f"(?s)({complaint}).*Nothing was written"):
        FETCH[module](data_home=tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("module", FETCH)
def test_another_content_is_refused(monkeypatch, tmp_path, server, module):
    # The checksum is that of the real data.
    serve(monkeypatch, server, module, small_original(module))
    with pytest.raises(DatasetError, match=r"SHA-256.*Nothing was written"):
        FETCH[module](data_home=tmp_path)


@pytest.mark.parametrize("module", FETCH)
def test_a_missing_page_is_final(monkeypatch, tmp_path, server, module):
    serve_small(monkeypatch, server, module)
    server.answers["/0"] = [(404, "")]
    with pytest.raises(DatasetError, match=r"404.*by hand"):
        FETCH[module](data_home=tmp_path)
    assert server.requests == ["/0"]


@pytest.mark.parametrize("fetch", FETCH.values())
def test_no_download_unless_allowed(tmp_path, fetch):
    with pytest.raises(OSError, match=r"npz not found.*download_if_missing=True"):
        fetch(data_home=tmp_path, download_if_missing=False)


def changed(content):
    arrays = dict(np.load(io.BytesIO(content)))
    arrays["fold"] = arrays["fold"] + 1
    return npz(arrays)


def lacking(content):
    arrays = dict(np.load(io.BytesIO(content)))
    del arrays["fold"]
    return npz(arrays)


def npz(arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda content: content[:-40], "not a whole npz"),
        (lambda content: content[:100] + b"\xff" * 20 + content[120:], "not a whole npz"),
        (lambda content: b"", "not a whole npz"),
        (lambda content: b"id,letter\n", "pickle"),
        (lambda content: npz({"X": np.array([None])}), "missing"),
        (lacking, r"\['fold'\] are missing"),
        (changed, "SHA-256"),
    ],
    ids=["cut", "garbled", "empty", "text", "objects", "lacking", "changed"],
)
def test_a_damaged_file_in_the_home_is_refused(monkeypatch, tmp_path, server, damage, complaint):
    serve_small(monkeypatch, server, _ocr_letters)
    words = fetch_ocr_letters(data_home=tmp_path)
    path = tmp_path / "ocr_letters" / "ocr_letters.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DatasetError, match=f"{complaint}.*Delete the file"):
        fetch_ocr_letters(data_home=tmp_path)
    path.unlink()
    assert np.array_equal(fetch_ocr_letters(data_home=tmp_path).folds, words.folds)


def test_objects_are_never_unpickled(monkeypatch, tmp_path, server):
    serve_small(monkeypatch, server, _ocr_letters)
    fetch_ocr_letters(data_home=tmp_path)
    path = tmp_path / "ocr_letters" / "ocr_letters.npz"
    path.write_bytes(npz({name: np.array([None]) for name in _ocr_letters._ARRAYS.types}))
    with pytest.raises(DatasetError, match="allow_pickle=False"):
        fetch_ocr_letters(data_home=tmp_path)


# ------------------------------------------------------------------------------------ OCR letters


def test_ocr_words(monkeypatch, tmp_path, server):
    pixels = np.random.default_rng(1).integers(0, 2, (12, 128))
    body = ocr_original(["ommanding", "axi"], pixels, [3, 0])
    serve(monkeypatch, server, _ocr_letters, [body], checksum_of=[body])
    words = fetch_ocr_letters(data_home=tmp_path)
    assert ["".join(word) for word in words.target] == ["ommanding", "axi"]
    assert np.array_equal(np.concatenate(words.data), pixels)
    assert list(words.folds) == [3, 0]
    assert words.feature_names[9] == "p_1_1"


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda lines: lines[:-1], "no end"),
        (lambda lines: [*lines[:2], *lines[3:]], "line 3 has the id 4, not 3"),
        (lambda lines: [*lines[:-1], lines[-1][:-6]], "line 4 has 13[0-3] fields, not 134"),
        (lambda lines: [lines[0].replace("z", "é"), *lines[1:]], "substring"),
    ],
    ids=["no end", "gap", "short line", "letter"],
)
def test_ocr_text_that_is_something_else(damage, complaint):
    text = gzip.decompress(ocr_original(["zero"], np.zeros((4, 128), int), [0])).decode()
    with pytest.raises(ValueError, match=complaint):
        _ocr_letters._parse("\n".join(damage(text.splitlines())))


@real("ocr_letters")
def test_ocr_letters():
    words = fetch_ocr_letters(download_if_missing=False)
    assert len(words.data) == len(words.target) == 6877
    assert sum(map(len, words.data)) == 52152
    counts = [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    assert np.bincount(words.folds).tolist() == counts
    lengths = [len(word) for word in words.target]
    assert (min(lengths), max(lengths)) == (3, 14)
    assert len({"".join(word) for word in words.target}) == 55
    assert set(np.concatenate(words.data).ravel()) == {0, 1}


@real("ocr_letters")
def test_ocr_letters_from_their_original_format(monkeypatch, tmp_path, server):
    """The stored checksum holds for a download in Taskar's format."""
    words = fetch_ocr_letters()
    body = ocr_original(words.target, np.concatenate(words.data).astype(int).tolist(), words.folds)
    serve(monkeypatch, server, _ocr_letters, [body])
    assert len(fetch_ocr_letters(data_home=tmp_path).data) == 6877


# ---------------------------------------------------------------------------------- gesture phase


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_gesture_files(monkeypatch, tmp_path, server, encoding, newline):
    raw = np.arange(7 * 3 * 18).reshape(7, 3, 18) / 8
    processed = np.arange(7 * 2 * 32).reshape(7, 2, 32) / -8
    phases, letters = [["Hold", "Preparação", "Rest"]] * 7, [["S", "D"]] * 7
    body = gesture_original(raw, phases, processed, letters, encoding=encoding, newline=newline)
    serve(monkeypatch, server, _gesture_phase, [body], checksum_of=[body])

    gestures = fetch_gesture_phase(data_home=tmp_path)
    np.testing.assert_array_equal(gestures.data, processed)
    assert gestures.target[6].tolist() == ["Stroke", "Rest"]
    assert gestures.videos.tolist() == ["a1", "a2", "a3", "b1", "b3", "c1", "c3"]
    assert "".join(gestures.subjects) == "aaabbcc"
    assert len(set(gestures.feature_names)) == 32

    gestures = fetch_gesture_phase(data_home=tmp_path, features="raw")
    np.testing.assert_array_equal(gestures.data, raw)
    assert gestures.target[6].tolist() == ["Hold", "Preparation", "Rest"]
    assert gestures.feature_names[3:5] == ["rhx", "rhy"]


def test_an_archive_that_lacks_a_video():
    (body,) = small_original(_gesture_phase)
    files = _gesture_phase._DATASET.sources[0].unpack(body)
    del files["b3_va3.csv"]
    with pytest.raises(ValueError, match=r"b3_va3\.csv is not in the archive"):
        _gesture_phase._parse(files)


def test_unknown_gesture_features(tmp_path):
    with pytest.raises(ValueError, match="'processed' or 'raw'"):
        fetch_gesture_phase(data_home=tmp_path, features="all")


@real("gesture_phase")
def test_gesture_phase():
    raw = fetch_gesture_phase(download_if_missing=False, features="raw")
    assert [len(video) for video in raw.data] == [1747, 1264, 1834, 1073, 1424, 1111, 1448]
    names, counts = np.unique(np.concatenate(raw.target), return_counts=True)
    known = {"Stroke": 2950, "Rest": 2769, "Preparation": 2097, "Retraction": 1087, "Hold": 998}
    assert dict(zip(names.tolist(), counts.tolist())) == known

    processed = fetch_gesture_phase()
    assert sum(map(len, processed.data)) == 9873
    for late, all_frames in zip(processed.target, raw.target, strict=True):
        np.testing.assert_array_equal(late, all_frames[4:])
    # The names say which columns are the length of which vector.
    columns = dict(zip(processed.feature_names, np.concatenate(processed.data).T, strict=True))
    for part in ("left_hand", "right_hand", "left_wrist", "right_wrist"):
        for vector, scalar in (("velocity", "speed"), ("acceleration", "scalar_acceleration")):
            parts = [columns[f"{part}_{vector}_{axis}"] for axis in "xyz"]
            length = np.linalg.norm(parts, axis=0)
            np.testing.assert_allclose(length, columns[f"{part}_{scalar}"], atol=2e-8)


@real("gesture_phase")
def test_gesture_phase_from_its_original_format(monkeypatch, tmp_path, server):
    """The stored checksum holds for a download in UCI's format."""
    raw, processed = fetch_gesture_phase(features="raw"), fetch_gesture_phase()
    letters = {name: letter for letter, name in _gesture_phase._PHASES.items()}
    body = gesture_original(
        [video.astype(np.float32) for video in raw.data],
        raw.target,
        [video.astype(np.float32) for video in processed.data],
        [[letters[phase] for phase in video] for video in processed.target],
    )
    serve(monkeypatch, server, _gesture_phase, [body])
    assert len(fetch_gesture_phase(data_home=tmp_path).data) == 7


# --------------------------------------------------------------------------------------- UTKinect


def test_utkinect_segments(monkeypatch, tmp_path, server):
    rng = np.random.default_rng(2)
    names = [("s01_e01", "push"), ("s01_e01", "pull"), ("s02_e02", "push"), ("s02_e02", "pull")]
    sequences = {name: rng.integers(-8, 8, (n, 60)) / 4 for n, name in enumerate(names, start=3)}
    bodies = utkinect_original(sequences)
    serve(monkeypatch, server, _utkinect, bodies, checksum_of=bodies)

    actions = fetch_utkinect(data_home=tmp_path)
    assert all(map(np.array_equal, actions.data, sequences.values()))
    assert actions.target.tolist() == ["push", "pull", "push", "pull"]
    assert actions.frame_target[1].tolist() == ["pull"] * 4
    assert actions.subjects.tolist() == [1, 1, 2, 2]
    assert actions.recordings.tolist() == ["s01_e01", "s01_e01", "s02_e02", "s02_e02"]

    recordings = fetch_utkinect(data_home=tmp_path, whole=True)
    assert recordings.recordings.tolist() == ["s01_e01", "s02_e02"]
    assert recordings.subjects.tolist() == [1, 2]
    # In s01_e01 they pulled before they pushed.
    assert recordings.target[0].tolist() == ["pull"] * 4 + ["push"] * 3
    assert recordings.target[1].tolist() == ["push"] * 5 + ["pull"] * 6
    np.testing.assert_array_equal(
        recordings.data[0], np.concatenate([actions.data[1], actions.data[0]])
    )


@pytest.mark.parametrize("line", ["s11_e01", "jump: 3 4", "walk: 3", "walk: three 4", "<html>"])
def test_label_file_that_is_something_else(line):
    with pytest.raises(ValueError, match="cannot read"):
        list(_utkinect._segments(f"s01_e01\nwalk: 1 2\n{line}\n"))


@real("utkinect")
def test_utkinect():
    actions = fetch_utkinect(download_if_missing=False)
    lengths = [len(frames) for frames in actions.data]
    assert (len(lengths), sum(lengths)) == (199, 5829)
    assert (min(lengths), np.median(lengths), max(lengths)) == (5, 28, 110)
    assert np.bincount(actions.subjects)[1:].tolist() == [20] * 9 + [19]
    assert sum(actions.target == "carry") == 19

    whole = fetch_utkinect(whole=True)
    assert len(whole.data) == 20
    assert sum(map(len, whole.data)) == 5829
    assert np.bincount(whole.subjects)[1:].tolist() == [2] * 10
    orders = [[name for name, _ in itertools.groupby(labels)] for labels in whole.target]
    usual = [name for name, order in zip(whole.recordings, orders) if order == whole.target_names]
    assert sorted({*whole.recordings} - {*usual}) == ["s01_e01", "s05_e02", "s10_e02"]
    # There the last frame of the pull is the first of the push: the order in time is right.
    pull_end = np.flatnonzero(whole.target[0] == "pull")[-1]
    np.testing.assert_array_equal(whole.data[0][pull_end], whole.data[0][pull_end + 1])


@real("utkinect")
def test_utkinect_from_its_original_format(monkeypatch, tmp_path, server):
    """The stored checksum holds for a download of the text files."""
    actions = fetch_utkinect()
    names = zip(actions.recordings.tolist(), actions.target.tolist(), strict=True)
    bodies = utkinect_original(dict(zip(names, actions.data, strict=True)))
    serve(monkeypatch, server, _utkinect, bodies)
    assert len(fetch_utkinect(data_home=tmp_path).data) == 199


# ----------------------------------------------------------------------------------- MSR Action3D


def test_msr_files(monkeypatch, tmp_path, server):
    rng = np.random.default_rng(3)
    names = [(1, 2, 1), (2, 3, 2), (20, 9, 3)]
    sequences = {name: rng.integers(-8, 8, (n, 60)) / 4 for n, name in enumerate(names, start=3)}
    body = msr_original(sequences)
    serve(monkeypatch, server, _msr_action3d, [body], checksum_of=[body])

    actions = fetch_msr_action3d(data_home=tmp_path, usable_only=False)
    assert all(map(np.array_equal, actions.data, sequences.values()))
    usable = fetch_msr_action3d(data_home=tmp_path)
    assert usable.target.tolist() == ["high arm wave", "pickup and throw"]
    assert usable.subjects.tolist() == [2, 9]
    assert usable.episodes.tolist() == [1, 3]
    assert usable.split.tolist() == ["test", "train"]
    assert [len(frames) for frames in usable.data] == [3, 5]
    assert usable.frame_target[1].tolist() == ["pickup and throw"] * 5


def test_an_archive_without_skeletons():
    with pytest.raises(ValueError, match="no skeletons"):
        _msr_action3d._parse({"README.md": b""})


def test_a_skeleton_that_is_cut():
    with pytest.raises(ValueError, match=r"a01_s01_e01.*79 numbers"):
        _msr_action3d._parse({"a01_s01_e01_skeleton3D.txt": b"1.5 " * 79})


@real("msr_action3d")
def test_msr_action3d():
    actions = fetch_msr_action3d(download_if_missing=False, usable_only=False)
    lengths = [len(frames) for frames in actions.data]
    assert (len(lengths), sum(lengths)) == (567, 23478)
    assert (min(lengths), np.median(lengths), max(lengths)) == (13, 39, 936)

    usable = fetch_msr_action3d()
    assert [np.sum(usable.split == side) for side in ("train", "test")] == [284, 273]
    for name, train, test in (("AS1", 114, 105), ("AS2", 116, 112), ("AS3", 111, 111)):
        inside = np.isin(usable.target, usable.subsets[name])
        assert np.sum(inside & (usable.split == "train")) == train
        assert np.sum(inside & (usable.split == "test")) == test
    assert all(np.any(frames) for frames in usable.data)

    with np.load(os.path.join(DATA, "msr_action3d", "data.npz")) as stored:
        assert usable.target_names == stored["class_names"].tolist()
        assert np.array_equal(usable.subjects, stored["subject"][stored["used557"]])
        assert np.array_equal(usable.episodes, stored["episode"][stored["used557"]])


@real("msr_action3d")
def test_msr_action3d_from_its_original_format(monkeypatch, tmp_path, server):
    """The stored checksum holds for a download of the text files."""
    actions = fetch_msr_action3d(usable_only=False)
    numbers = [actions.target_names.index(name) + 1 for name in actions.target]
    names = zip(numbers, actions.subjects.tolist(), actions.episodes.tolist(), strict=True)
    body = msr_original(dict(zip(names, actions.data, strict=True)))
    serve(monkeypatch, server, _msr_action3d, [body])
    assert len(fetch_msr_action3d(data_home=tmp_path).data) == 557


# ------------------------------------------------------------------------------- switching labels


@pytest.mark.parametrize(
    ("transition", "stay", "move"),
    [
        ("positive", 0.9, 0.05),
        ("negative", 0.1, 0.45),
        ("vague", 0.4, 0.3),
        ("sticky", 0.99 / 1.01, 0.01 / 1.01),
    ],
)
def test_switching_labels_have_their_law(transition, stay, move):
    n = 20_000
    chains = make_switching_labels([n], transition, random_state=0)
    expected = np.full((3, 3), move) + (stay - move) * np.eye(3)
    np.testing.assert_allclose(chains.transition, expected)

    states, X, y = chains.states[0], chains.data[0][:, 0], chains.target[0]
    counts = np.zeros((3, 3))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    visits = counts.sum(axis=1, keepdims=True)
    error = (counts / visits - expected) / np.sqrt(expected * (1 - expected) / visits)
    assert np.abs(error).max() < 4
    for state in range(3):
        inside = states == state
        residual = X[inside] - chains.means[state]
        assert abs(residual.mean()) < 4 / np.sqrt(inside.sum())
        assert abs(residual.var() - 1) < 4 * np.sqrt(2 / inside.sum())
        # Half of the labels are 1, and one threshold decides them.
        assert abs(y[inside].mean() - 0.5) < 2 / np.sqrt(inside.sum())
        assert np.array_equal(y[inside], (chains.orientations[state] * residual > 0).astype(int))


def test_switching_labels_draw_means_sides_and_starts():
    draws = [make_switching_labels([1], random_state=seed) for seed in range(600)]
    means = np.array([draw.means for draw in draws])
    assert np.abs(means).max() < 3
    assert abs(means.mean()) < 4 * np.sqrt(3 / means.size)
    assert abs(np.abs(means).mean() - 1.5) < 4 * np.sqrt(0.75 / means.size)
    sides = np.array([draw.orientations for draw in draws])
    assert set(sides.ravel()) == {-1, 1}
    assert abs(sides.mean()) < 4 / np.sqrt(sides.size)
    starts = np.bincount([draw.states[0][0] for draw in draws], minlength=3)
    assert np.abs(starts - 200).max() < 4 * np.sqrt(600 * 2 / 9)


def test_switching_labels_of_the_two_experiments():
    chains = make_switching_labels(random_state=1)
    assert [X.shape for X in chains.data] == [(500, 1), (5000, 1)]
    assert [y.shape for y in chains.target] == [(500,), (5000,)]
    again = make_switching_labels(random_state=1)
    np.testing.assert_array_equal(chains.data[1], again.data[1])

    figure = make_switching_labels((500,), "sticky", means=(2.5, 1.5, -1.5), random_state=1)
    assert figure.means.tolist() == [2.5, 1.5, -1.5]
    # The first sequence does not depend on how many follow it.
    longer = make_switching_labels((500, 10), "sticky", means=(2.5, 1.5, -1.5), random_state=1)
    np.testing.assert_array_equal(figure.data[0], longer.data[0])


def test_switching_labels_with_a_matrix():
    chains = make_switching_labels([50], [[0, 1], [1, 0]], n_states=2, random_state=0)
    assert np.all(np.diff(chains.states[0]) != 0)
    chains = make_switching_labels([50], n_states=5, random_state=0)
    np.testing.assert_allclose(chains.transition.sum(axis=1), 1)
    assert chains.means.shape == (5,)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"transition": "slow"}, "'positive', 'negative', 'vague', 'sticky' or a matrix"),
        ({"transition": np.eye(2)}, r"shape \(2, 2\), but n_states=3 needs \(3, 3\)"),
        ({"transition": np.ones((3, 3))}, "sum 1"),
        ({"transition": 2 * np.eye(3) - np.ones((3, 3)) / 3}, "none negative"),
        ({"means": [0.0, 1.0]}, "n_states=3"),
    ],
)
def test_switching_labels_refuse(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        make_switching_labels(**options)
