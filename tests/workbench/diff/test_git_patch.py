"""Patches as git writes them; that git takes them is tested with git, where they are made."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from base64 import b85decode
from pathlib import Path

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.git_patch import (
    PatchSide,
    blob_id,
    comment,
    differ,
    git_mode,
    header,
    is_accepted,
    literal,
    names,
    quoted,
)
from holdfast.workbench.model import EntryKind, PathEntry
from tests.workbench.modelled import at, directory, file, link

PLAIN, PROGRAM, LINK = 0o100644, 0o100755, 0o120000


@pytest.mark.parametrize(
    ("entry", "mode"),
    [
        (None, None),
        (file("x", 0o600), PLAIN),
        (file("x", 0o4711), PROGRAM),
        (link("x"), LINK),
        (directory(), None),
        (PathEntry(EntryKind.SPECIAL, 0), None),
    ],
)
def test_modes_are_those_that_git_knows(entry: PathEntry | None, mode: int | None) -> None:
    assert git_mode(entry) == mode


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"b/a b", b"b/a b"),
        ("b/zw\u00f6lf".encode(), "b/zw\u00f6lf".encode()),
        (b"b/\xff", b'"b/\\377"'),
        (b"b/x\n--- a/y", b'"b/x\\n--- a/y"'),
        (b"b/x\x1b[2J", b'"b/x\\033[2J"'),
        (b'b/x"\\', b'"b/x\\"\\\\"'),
    ],
)
def test_names_are_quoted_like_git_does(name: bytes, shown: bytes) -> None:
    assert quoted(name) == shown


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no `patch` here")
@pytest.mark.parametrize("name", [b"a b", b"\xff", b"x\n--- a/y", b"x\x1b[2J", b'x"\\'])
def test_patch_reads_the_names_as_well(name: bytes, tmp_path: Path) -> None:
    text = names(RelativePath.of(name), is_new=True, is_gone=False) + b"@@ -0,0 +1 @@\n+one\n"
    subprocess.run(["patch", "-p1", "-s"], input=text, cwd=tmp_path, check=True, timeout=60)

    assert (tmp_path / os.fsdecode(name)).read_bytes() == b"one\n"


def test_headers() -> None:
    old, new = PatchSide(PLAIN, b"1" * 40), PatchSide(PROGRAM, b"2" * 40)

    assert header(at("x"), PatchSide(PLAIN), PatchSide(PROGRAM)) == (
        b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    )
    assert header(at("x"), old, PatchSide(PLAIN, b"2" * 40)).splitlines()[1:] == [
        b"index " + b"1" * 40 + b".." + b"2" * 40 + b" 100644"
    ]
    assert header(at("x"), None, new).splitlines()[1:] == [
        b"new file mode 100755",
        b"index " + b"0" * 40 + b".." + b"2" * 40,
    ]
    assert header(at("a b"), old, None).splitlines()[:2] == [
        b'diff --git "a/a b" "b/a b"',
        b"deleted file mode 100644",
    ]


def test_what_people_read_of_content_without_lines() -> None:
    assert differ(at("x"), is_new=True, is_gone=False) == b"Binary files /dev/null and b/x differ\n"


def test_contents_in_base_85() -> None:
    data = os.urandom(1 << 16)
    first, *lines, last = literal(len(data), (data[:99], data[99:]))
    counts = [line[0] - (ord("A") - 1 if line[0] <= ord("Z") else ord("a") - 27) for line in lines]
    deflated = b"".join(
        b85decode(line[1:-1])[:count] for line, count in zip(lines, counts, strict=True)
    )

    assert (first, last) == (b"literal 65536\n", b"\n")
    assert zlib.decompress(deflated) == data
    assert {*counts[:-1]} == {52} and max(map(len, lines)) == 67


def test_names_of_contents_are_those_of_git() -> None:
    assert blob_id(0, ()) == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert blob_id(4, (b"te", b"st")) == blob_id(4, (b"test",))


@pytest.mark.parametrize(
    ("path", "mode", "is_taken"),
    [
        ("a/.gitignore", PLAIN, True),
        (".github/x", PLAIN, True),
        (".git/config", PLAIN, False),
        ("a/.GIT", PLAIN, False),
        ("a/.git./x", PLAIN, False),
        ("git~1/x", PLAIN, False),
        (".git:x", PLAIN, False),
        (".gitmodules", PLAIN, True),
        (".gitmodules", LINK, False),
    ],
)
def test_what_git_refuses(path: str, mode: int, is_taken: bool) -> None:
    assert is_accepted(at(path), mode) is is_taken


def test_each_line_of_a_comment_is_one() -> None:
    assert comment(b"--- a\n@@\n") == comment(b"--- a\n@@") == b"# --- a\n# @@\n"
