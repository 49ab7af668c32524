"""What a configuration of git has git run or obey is found as git reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from posixpath import join, normpath

import pytest
from hypothesis import example, given
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
FILES = st.lists(
    st.sampled_from(
        [
            *("[core]", "[CORE]", "[x]", "hooksPath", "hookspath", "a", "b/", "nt", "=", "\ufeff"),
            *' \t\r\n"\\#;[]-.',
            *("\r\n", "\n[core]\n", "\nhooksPath = ", "\\\n"),
        ]
    ),
    max_size=14,
).map("".join)


def read_by_git(file: Path) -> list[str] | None:
    """All values that git reads for `core.hooksPath`; None if it refuses the file."""
    read = subprocess.run(
        ["git", "config", "--no-includes", "-f", file, "-z", "--get-all", "core.hooksPath"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(file.parent), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    if read.returncode > 1:  # 1: there is none
        return None
    return [value for value in read.stdout.decode().split("\0") if value]


def obeyed(value: str) -> Obeyed:
    return Obeyed("/" + normpath(join("/p", value)).lstrip("/"), "core.hooksPath")


def blanked(each: Obeyed) -> str:
    """Without the difference between versions of git: white space inside a value."""
    return normpath(each.path.translate({9: " ", 13: " "}))


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
@given(value=VALUES)
@example(value='"" =')
@example(value="\\\\ \\")
@example(value="//a")
def test_git_reads_the_same(value: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("config") / "config"
    file.write_text(f"[core]\n\thooksPath = {value}\n")
    said = read_by_git(file)
    if said is None:  # git refuses it, and with it the repository
        return
    ours = obeyed_paths(file.read_bytes(), directory="/p/.git", worktree="/p")
    assert ours == tuple(obeyed(each) for each in said)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
@given(text=FILES)
@example(text="[core]\nhooksPath = a\tb")
@example(text="\ufeff[core]hooksPath=a\\\r\nb\r\n")
def test_git_reads_the_same_files(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("config") / "config"
    file.write_bytes(text.encode())
    said = read_by_git(file)
    if said is None:
        return
    ours = obeyed_paths(file.read_bytes(), directory="/p/.git", worktree="/p")
    assert {obeyed(each) for each in said} <= set(ours)
    assert {blanked(obeyed(each)) for each in said} == {blanked(each) for each in ours}


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n!\nhooksPath = a\n",
        "[core]\nhooksPath = a\n[core\n",
        '[core]\nhooksPath = "a\n',
        "[core]\nhooksPath = \\a\n",
        "[ core ]\nhooksPath = a\n",
    ],
)
def test_what_git_refuses_is_still_searched(text: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)

    assert read_by_git(tmp_path / "config") is None
    assert found(text) == [("/p/a", "core.hooksPath")]


@pytest.mark.parametrize("head", ["[", '["', "[core]\nhooksPath=", "[core]\na", "[core]\na=\\"])
def test_a_long_line_takes_linear_time(head: str) -> None:
    text = (head + " " * 500_000 + "\n[core]\nhooksPath = a\n").encode()

    assert obeyed_paths(text, directory="/p/.git", worktree="/p")


def test_nul_ends_names_and_values() -> None:
    text = '[core]\nhooksPath = a\0b\n[core "hookspath\0"]\nx = c\n'

    assert found(text) == [("/p/a", "core.hooksPath"), ("/p/c", "core.hooksPath")]


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    obeyed_paths(b"[core]\nhooksPath=" + data, directory="/p/.git", worktree="/p")
