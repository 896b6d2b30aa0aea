"""Every command on the page about the command line runs."""

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def test_the_page(run, tmp_path, monkeypatch):
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) > 5
    monkeypatch.chdir(tmp_path)
    for line in lines:
        prompt, program, *arguments = shlex.split(line)
        assert (prompt, program) == ("$", "regbayes")
        done = run(*arguments)
        assert (done.code, done.err) == (0, ""), line
        assert done.out, line
