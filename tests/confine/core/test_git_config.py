"""What a configuration of git has git run or obey is found as git reads it."""

from __future__ import annotations

import shutil
import subprocess
from posixpath import join, normpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.confine.core.git_config import Obeyed, obeyed_paths


def found(text: str) -> list[tuple[str, str]]:
    return [tuple(each) for each in obeyed_paths(text.encode(), directory="/p/.git", worktree="/p")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[core]\n\tbare = false\n", []),
        ("[core]\n\thooksPath = .githooks\n", [("/p/.githooks", "core.hooksPath")]),
        ("[CORE] HOOKSPATH=a/../b # c\n", [("/p/b", "core.hooksPath")]),
        ('[core]\nhookspath = " a b" ; c\n', [("/p/ a b", "core.hooksPath")]),
        ("[core]\nhookspath = a\\\n  b\n", [("/p/a  b", "core.hooksPath")]),
        ("[core]\nhooksPath = /elsewhere\n", [("/elsewhere", "core.hooksPath")]),
        ("[core]\nhooksPath = ~/hooks\n", []),
        ("[core]\nhooksPath\n", []),
        ("[include]\npath = ../settings\n", [("/p/settings", "include.path")]),
        ('[includeIf "gitdir:/p/"]\npath = x\n', [("/p/.git/x", "include.path")]),
        ('[remote "core"]\nhooksPath = x\n[other]\npath = x\n', []),
        ('[core "x"]\nhooksPath = y\n', [("/p/y", "core.hooksPath")]),  # git would not: no harm
    ],
)
def test_paths(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


VALUES = st.text(st.sampled_from('ab "\\#;/='), max_size=8)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
@given(value=VALUES)
def test_git_reads_the_same(value: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("config") / "config"
    file.write_text(f"[core]\n\thooksPath = {value}\n")
    read = subprocess.run(
        ["git", "config", "--no-includes", "-f", file, "-z", "core.hooksPath"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(file.parent), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    if read.returncode:  # git refuses it, and with it the repository
        return
    said = read.stdout.decode().removesuffix("\0")
    ours = obeyed_paths(file.read_bytes(), directory="/p/.git", worktree="/p")
    assert ours == ((Obeyed(normpath(join("/p", said)), "core.hooksPath"),) if said else ())


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    obeyed_paths(b"[core]\nhooksPath=" + data, directory="/p/.git", worktree="/p")
