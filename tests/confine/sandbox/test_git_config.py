"""What a configuration of git has git run or obey is found as git reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from posixpath import join, normpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.confine.sandbox.git_config import Obeyed, obeyed_in, obeyed_paths

HOOKS, INCLUDE = "core.hooksPath", "include.path"


def read(content: bytes) -> tuple[Obeyed, ...]:
    return obeyed_paths(content, directory="/p/.git", worktree="/p", home="/home/ann")


def found(text: str) -> list[tuple[str, str]]:
    return [tuple(each) for each in read(text.encode())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[core]\n\tbare = false\n", []),
        ("[core]\n\thooksPath = .githooks\n", [("/p/.githooks", "core.hooksPath")]),
        ("[CORE] HOOKSPATH=a/../b # c\n", [("/p/b", "core.hooksPath")]),
        ('[core]\nhookspath = " a b" ; c\n', [("/p/ a b", "core.hooksPath")]),
        ("[core]\nhookspath = a\\\n  b\n", [("/p/a  b", "core.hooksPath")]),
        ("[core]\nhooksPath = /elsewhere\n", [("/elsewhere", "core.hooksPath")]),
        ("[core]\nhooksPath = ~/hooks\n", [("/home/ann/hooks", "core.hooksPath")]),
        ("[include]\npath = ~\n", [("/home/ann", "include.path")]),
        ("[core]\nhooksPath = ~ben/hooks\n", []),
        ("[core]\nhooksPath\n", []),
        ("[include]\npath = ../settings\n", [("/p/settings", "include.path")]),
        ('[includeIf "gitdir:/p/"]\npath = x\n', [("/p/.git/x", "include.path")]),
        ('[remote "core"]\nhooksPath = x\n[other]\npath = x\n', []),
        ('[core "x"]\nhooksPath = y\n', [("/p/y", "core.hooksPath")]),  # git would not: no harm
    ],
)
def test_paths(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.promise("W13")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({"/p/.git/config": "[core]\nhooksPath=h"}, [("/p/h", HOOKS)]),
        (  # a worktree has the configuration of its repository, and one of its own
            {
                "/p/.git": "gitdir: ../r/.git/worktrees/p\n",
                "/r/.git/worktrees/p/commondir": "../..\n",
                "/r/.git/config": "[core]\nhooksPath=h",
                "/r/.git/worktrees/p/config.worktree": "[core]\nhooksPath=w",
            },
            [("/p/w", HOOKS), ("/p/h", HOOKS)],
        ),
        (  # a submodule
            {"/p/.git": "gitdir:/r/m", "/r/m/config": "[include]\npath=../../p/i"},
            [("/p/i", INCLUDE)],
        ),
        (  # what one file includes, another one says
            {
                "/p/.git/config": "[include]\npath=../i",
                "/p/i": "[include]\npath=.git/config\npath=j",
                "/p/j": "[core]\nhooksPath=h",
            },
            [("/p/i", INCLUDE), ("/p/.git/config", INCLUDE), ("/p/j", INCLUDE), ("/p/h", HOOKS)],
        ),
        (  # of the person
            {"/home/ann/.gitconfig": "[core]\nhooksPath=h\n[include]\npath=x"},
            [("/p/h", HOOKS), ("/home/ann/x", INCLUDE)],
        ),
    ],
)
def test_all_configuration_of_a_worktree_counts(
    files: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    def read_file(path: str) -> bytes:
        return files.get(path, "").encode()

    shared = ("/home/ann/.gitconfig",)
    assert [
        tuple(each) for each in obeyed_in("/p", read_file, home="/home/ann", shared=shared)
    ] == expected


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
    ours = read(file.read_bytes())
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
    ours = read(file.read_bytes())
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

    assert read(text)


def test_nul_ends_names_and_values() -> None:
    text = '[core]\nhooksPath = a\0b\n[core "hookspath\0"]\nx = c\n'

    assert found(text) == [("/p/a", "core.hooksPath"), ("/p/c", "core.hooksPath")]


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    read(b"[core]\nhooksPath=" + data)
