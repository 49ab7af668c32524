"""Two changes of one text: both, or a clash; never a line that nobody wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.diff.merge import (
    MERGE_BYTES_MAX,
    LineConflict,
    LineConflicts,
    MergedText,
    is_text,
    merge,
)


def text(lines: str) -> bytes:
    """A line for each letter."""
    return "".join(f"{letter}\n" for letter in lines).encode()


def clash(line: int, base: str, theirs: str, ours: str) -> LineConflict:
    sides = [tuple(f"{letter}\n".encode() for letter in side) for side in (base, theirs, ours)]
    return LineConflict(line, *sides)


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "expected"),
    [
        ("abc", "abc", "abc", "abc"),
        ("abc", "xbc", "abc", "xbc"),
        ("abc", "abc", "abx", "abx"),
        ("abc", "xbc", "aby", "xby"),
        ("abc", "xbc", "xbc", "xbc"),  # the same change
        ("abcde", "abXcde", "abcdeY", "abXcdeY"),
        ("abcde", "bcde", "abcd", "bcd"),
        ("abcde", "", "abcde", ""),
        ("", "abc", "", "abc"),
        ("abc", "xbc", "ayc", [clash(1, "ab", "xb", "ay")]),  # they touch
        ("abc", "axc", "ayc", [clash(2, "b", "x", "y")]),
        ("abc", "ac", "ayc", [clash(2, "b", "", "y")]),
        ("ab", "axb", "ayb", [clash(2, "", "x", "y")]),
        ("", "a", "b", [clash(1, "", "a", "b")]),
        ("abcd", "xbcy", "zbcw", [clash(1, "a", "x", "z"), clash(4, "d", "y", "w")]),
    ],
)
def test_merge(base: str, theirs: str, ours: str, expected: str | list[LineConflict]) -> None:
    found = merge(text(base), text(theirs), text(ours))

    wanted = (
        LineConflicts(tuple(expected)) if isinstance(expected, list) else MergedText(text(expected))
    )
    assert found == wanted


def test_ends_of_lines_are_kept_as_they_are() -> None:
    base, theirs, ours = b"a\r\nb\xff\nc", b"A\r\nb\xff\nc", b"a\r\nb\xff\nc\n"

    assert merge(base, theirs, ours) == MergedText(b"A\r\nb\xff\nc\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", True),
        (b"\xff\xfe latin \xe9\n", True),
        (b"a\0b", False),
        ("a\n".encode("utf-16"), False),
        (bytes(1) + b"a" * MERGE_BYTES_MAX, False),
        (b"a" * (MERGE_BYTES_MAX + 1), False),
    ],
)
def test_is_text(content: bytes, expected: bool) -> None:
    assert is_text(content) is expected


contents = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=12).map(b"\n".join)


@given(contents, contents)
def test_one_change_alone_is_taken_whole(base: bytes, changed: bytes) -> None:
    assert merge(base, changed, base) == MergedText(changed)
    assert merge(base, base, changed) == MergedText(changed)
    assert merge(base, changed, changed) == MergedText(changed)


def mirrored(found: MergedText | LineConflicts) -> MergedText | LineConflicts:
    if isinstance(found, MergedText):
        return found
    places = (LineConflict(one.line, one.base, one.ours, one.theirs) for one in found.places)
    return LineConflicts(tuple(places))


@given(contents, contents, contents)
def test_neither_side_is_preferred(base: bytes, theirs: bytes, ours: bytes) -> None:
    assert merge(base, theirs, ours) == mirrored(merge(base, ours, theirs))


numbered = st.integers(0, 39)


@given(st.sets(numbered, max_size=10), st.sets(numbered, max_size=10))
def test_changes_that_do_not_touch_are_both_in_and_those_that_do_clash(
    theirs: set[int], ours: set[int]
) -> None:
    base = [b"line %d\n" % number for number in range(40)]

    def edited(changed: set[int], mark: bytes) -> list[bytes]:
        return [mark + line if number in changed else line for number, line in enumerate(base)]

    found = merge(*map(b"".join, (base, edited(theirs, b"T"), edited(ours, b"O"))))

    touching = any(abs(one - other) <= 1 for one in theirs for other in ours)
    if touching:
        assert isinstance(found, LineConflicts)
    else:
        both = [
            b"T" + line if number in theirs else b"O" + line if number in ours else line
            for number, line in enumerate(base)
        ]
        assert found == MergedText(b"".join(both))
