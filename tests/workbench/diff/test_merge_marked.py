"""Clashing lines stand between markers, and all else is merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.workbench.diff.merge import BETWEEN, DRAFT, PROJECT, MergedText, merge, merge_marked

LINES = some.lists(some.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=6).map(b"".join)


@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("base", "theirs", "ours", "expected", "clashes"),
    [
        (b"1\n2\n3\n", b"1\n2\nthree\n", b"one\n2\n3\n", b"one\n2\nthree\n", 0),
        (
            b"1\n2\n3\n",
            b"1\ntheirs\n3\n",
            b"1\nours\n3\n",
            b"1\n<<<<<<< draft\nours\n=======\ntheirs\n>>>>>>> project\n3\n",
            1,
        ),
        # Made on both sides: what they share stands outside of the markers.
        (
            b"",
            b"same\ntheirs\nend\n",
            b"same\nours\nend\n",
            b"same\n<<<<<<< draft\nours\n=======\ntheirs\n>>>>>>> project\nend\n",
            1,
        ),
        # A last line without its end does not swallow a marker.
        (
            b"1",
            b"theirs",
            b"ours",
            b"<<<<<<< draft\nours\n=======\ntheirs\n>>>>>>> project\n",
            1,
        ),
    ],
)
def test_merged_with_markers(
    base: bytes, theirs: bytes, ours: bytes, expected: bytes, clashes: int
) -> None:
    assert merge_marked(base, theirs, ours) == (expected, clashes)


@given(LINES, LINES, LINES)
def test_without_clashes_it_is_the_merge_and_with_them_each_is_marked(
    base: bytes, theirs: bytes, ours: bytes
) -> None:
    plain, marked = merge(base, theirs, ours), merge_marked(base, theirs, ours)
    if isinstance(plain, MergedText):
        assert marked == (plain.content, 0)
    else:
        assert marked.clashes == len(plain.places)
        for marker in (DRAFT, BETWEEN, PROJECT):
            assert marked.content.splitlines(keepends=True).count(marker) == marked.clashes
