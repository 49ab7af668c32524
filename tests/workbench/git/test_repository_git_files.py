"""What git says about its data is read as git reads it, and nothing more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.git.repository import common_directory, pointed_to, submodules


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"gitdir: /a/b/.git/worktrees/x\n", b"/a/b/.git/worktrees/x"),
        (b"gitdir: ../.git/modules/sub\r\n", b"../.git/modules/sub"),
        (b"gitdir: with space \n", b"with space "),
        (b"gitdir: \n", None),
        (b"gitdir: a\0b\n", None),
        (b"gitdir:/a\n", None),
        (b"", None),
        (b"something else", None),
    ],
)
def test_a_file_in_place_of_a_repository_says_where_it_is(
    content: bytes, expected: bytes | None
) -> None:
    assert pointed_to(content) == expected


def test_a_worktree_says_what_it_shares() -> None:
    assert common_directory(b"../..\n") == b"../.."
    assert common_directory(b"\n") is None


def test_submodules_are_listed_without_those_that_lead_elsewhere() -> None:
    content = b"""
[submodule "one"]
\tpath = libs/one
\turl = path = nonsense
[SubModule "two"]
  PATH="with \\"quotes\\""
[submodule "evil"]
\tpath = ../outside
[submodule "evil too"]
\tpath = /etc
[core]
\tpath = not/this
"""
    assert submodules(content) == (RelativePath.of("libs/one"), RelativePath.of('with "quotes"'))


@given(st.binary(max_size=200))
def test_anything_is_read(content: bytes) -> None:
    pointed_to(content)
    common_directory(content)
    submodules(content)
    submodules(b'[submodule "x"]\n' + content)
