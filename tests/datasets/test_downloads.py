"""Every data set that can be downloaded, from a server on this machine that answers badly."""

import io
import urllib.request
import zipfile

import pytest

from regbayes import datasets
from regbayes.datasets import DatasetError, _remote
from regbayes.datasets._remote import RemoteFile

# Its originals have no public address; experiments/visual_words.py makes the files.
OFFLINE = {"fetch_scene15"}
FETCH = sorted(name for name in datasets.__all__ if name.startswith("fetch_"))
ONLINE = [name for name in FETCH if name not in OFFLINE]


def half_a_zip():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("data.txt", "1 2 3\n" * 100)
    return content.getvalue()[:200]


BAD = {
    "missing": (404, b""),
    "forbidden": (403, b"<html>Sign in</html>"),
    "cut short": (200, b"1,2,3\n", 1000),  # promises more than it sends
    "empty": (200, b""),
    "a page": (200, b"<html><body>We have moved.</body></html>"),
    "half an archive": (200, half_a_zip()),
    "noise": (200, bytes(range(256)) * 4),
}


class Always:
    """Answers of a server that has one for every path."""

    def __init__(self, answer):
        self.answer = answer

    def get(self, path, default):
        return [self.answer]


@pytest.fixture
def redirect(monkeypatch, server):
    """Sends every request of the library to the server here, and waits for nothing."""
    really = urllib.request.urlopen

    def here(url, timeout):
        assert url.startswith(("https://", "http://"))
        return really(f"http://127.0.0.1:{server.http.server_port}/file", timeout=5)

    monkeypatch.setattr(_remote.urllib.request, "urlopen", here)
    monkeypatch.setattr(_remote.time, "sleep", lambda seconds: None)
    return server


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ONLINE)
def test_a_bad_answer_is_refused(redirect, tmp_path, name, bad):
    redirect.answers = Always(BAD[bad])
    with pytest.raises(DatasetError, match="Nothing was written") as caught:
        getattr(datasets, name)(data_home=tmp_path)
    assert "http" in str(caught.value)  # says where it looked
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
    tries = {"cut short": 3, "missing": 1, "forbidden": 1}  # what may pass is tried again
    if bad in tries:
        assert len(redirect.requests) == tries[bad]


@pytest.mark.parametrize("name", FETCH)
def test_nothing_is_asked_for_unless_allowed(redirect, tmp_path, name):
    more = {} if name in OFFLINE else {"download_if_missing": False}
    with pytest.raises(DatasetError):
        getattr(datasets, name)(data_home=tmp_path, **more)
    assert not redirect.requests


def test_a_bar_on_a_terminal_only(server, monkeypatch, capsys):
    file = server.file("/big.txt", (200, "x" * 200_000))
    assert len(file.read()) == 200_000
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert len(RemoteFile(file.url).read()) == 200_000
    assert "big.txt" in capsys.readouterr().err
