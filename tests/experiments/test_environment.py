"""What is said about the machine and the code."""

import subprocess

import numpy as np
import pytest

from experiments import environment


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "code.py").write_text("1")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_commit_is_dirty_when_code_differs(checkout):
    clean = environment.git_commit(checkout)
    assert len(clean) == 40
    (checkout / "experiments" / "results").mkdir(parents=True)
    (checkout / "experiments" / "results" / "000_table1.md").write_text("a result is not code")
    assert environment.git_commit(checkout) == clean
    (checkout / "code.py").write_text("2")
    assert environment.git_commit(checkout) == f"{clean} (dirty)"


def test_no_commit_and_no_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert environment.git_commit(tmp_path) == "unknown (not a git checkout)"
    git(tmp_path, "init")
    assert environment.git_commit(tmp_path) == "none yet"


def test_description_names_versions_and_command():
    described = environment.describe("python -m something")
    assert described["numpy"] == np.__version__
    assert described["command"] == "python -m something"
    assert environment.package_version("no-such-package") == "not installed"
    page = environment.as_markdown(described)
    assert f"- numpy: {np.__version__}" in page
    assert str(environment.ROOT) not in page
