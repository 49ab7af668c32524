"""What is shown of a change, and taking a part of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.diff.unified import DiffHunk, UnifiedDiff, hunks, unified, with_hunks

contents = st.lists(st.sampled_from([b"a", b"b", b"c", b"\xff\r", b""]), max_size=30).map(
    b"\n".join
)
TEN = b"".join(b"%d\n" % number for number in range(10))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"a\n", b"a\n", UnifiedDiff(b"")),
        (
            b"",
            b"a\n",
            UnifiedDiff(b"@@ -0,0 +1,1 @@ change 1\n+a\n", 1, 0, 0, 1),
        ),
        (
            b"a\n",
            b"",
            UnifiedDiff(b"@@ -1,1 +0,0 @@ change 1\n-a\n", 0, 1, 0, 1),
        ),
        (
            b"a\nb",
            b"a\nb\n",
            UnifiedDiff(
                b"@@ -1,2 +1,2 @@ change 1\n a\n-b\n\\ No newline at end of file\n+b\n",
                1,
                1,
                0,
                1,
            ),
        ),
        (
            TEN,
            TEN.replace(b"5", b"x"),
            UnifiedDiff(
                b"@@ -3,7 +3,7 @@ change 1\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n",
                1,
                1,
                0,
                1,
            ),
        ),
        (b"\0", b"a", UnifiedDiff(b"")),
    ],
)
def test_unified(before: bytes, after: bytes, expected: UnifiedDiff) -> None:
    assert unified(before, after) == expected


def test_places_after_an_earlier_change_are_those_of_the_new_file() -> None:
    before = [b"%d\n" % number for number in range(30)]
    after = [b"new\n", *before[:20], b"newer\n", *before[21:]]

    shown = unified(b"".join(before), b"".join(after)).text

    heads = [line for line in shown.split(b"\n") if line.startswith(b"@@")]
    assert heads == [b"@@ -1,3 +1,4 @@ change 1", b"@@ -18,7 +19,7 @@ change 2"]


def test_what_is_shown_together_is_numbered_together() -> None:
    shown = unified(TEN, TEN.replace(b"2", b"x").replace(b"5", b"y")).text

    assert [line for line in shown.split(b"\n") if line.startswith(b"@@")] == [
        b"@@ -1,9 +1,9 @@ changes 1-2"
    ]


def test_nothing_is_left_out_where_all_is_wanted() -> None:
    long = b"".join(b"%d\n" % number for number in range(20_000))

    assert unified(b"", long).lines_left_out == 10_001
    assert unified(b"", long, lines_max=None).text.count(b"\n") == 20_001


def test_what_is_too_long_is_counted() -> None:
    shown = unified(b"", TEN, lines_max=3)

    assert shown == UnifiedDiff(b"@@ -0,0 +1,10 @@ change 1\n+0\n+1\n", 10, 0, 8, 1)


@given(contents, contents)
def test_all_hunks_make_the_new_file_and_none_the_old(before: bytes, after: bytes) -> None:
    found = hunks(before, after)

    assert with_hunks(before, found) == after
    assert with_hunks(before, ()) == before


@pytest.mark.promise("W5")
def test_a_part_of_the_hunks_makes_a_part_of_the_change() -> None:
    after = TEN.replace(b"2\n", b"").replace(b"7", b"x")
    first, second = hunks(TEN, after)

    assert first == DiffHunk(2, 2, (b"2\n",), ())
    assert with_hunks(TEN, [first]) == TEN.replace(b"2\n", b"")
    assert with_hunks(TEN, [second]) == TEN.replace(b"7", b"x")


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no `patch` here")
@pytest.mark.parametrize("distance", [1, 5, 6, 7, 8, 20])
def test_patch_understands_it(distance: int, tmp_path: Path) -> None:
    lines = [b"%d\n" % number for number in range(60)]
    changed = [*lines[:20], b"new\n", *lines[20 : 20 + distance], *lines[22 + distance :], b"end"]
    before, after = b"".join(lines), b"".join(changed)
    (tmp_path / "x").write_bytes(before)

    subprocess.run(
        ["patch", "-p1", "--fuzz=0"],
        cwd=tmp_path,
        input=b"--- a/x\n+++ b/x\n" + unified(before, after).text,
        check=True,
        timeout=60,
    )

    assert (tmp_path / "x").read_bytes() == after
