"""What two versions have in common, whatever they are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.diff.lines import Match, matches, split_lines

few = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"e\n"]), max_size=30)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"a\n\nb", [b"a\n", b"\n", b"b"]),
        (b"a\r\nb\rc\x0cd\xe2\x80\xa8e\n", [b"a\r\n", b"b\rc\x0cd\xe2\x80\xa8e\n"]),
    ],
)
def test_lines(content: bytes, expected: list[bytes]) -> None:
    assert split_lines(content) == expected


@given(st.binary())
def test_lines_are_the_content(content: bytes) -> None:
    assert b"".join(split_lines(content)) == content


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", ()),
        ("abc", "abc", (Match(0, 0, 3),)),
        ("abc", "xyz", ()),
        ("abc", "axc", (Match(0, 0, 1), Match(2, 2, 1))),
        ("abc", "bcd", (Match(1, 0, 2),)),
        ("abab", "baba", (Match(1, 0, 3),)),
        ("aabb", "bbaa", (Match(2, 0, 2),)),
    ],
)
def test_what_is_common(before: str, after: str, expected: tuple[Match, ...]) -> None:
    assert matches([*map(str.encode, before)], [*map(str.encode, after)]) == expected


@given(few, few)
def test_matches_are_the_same_lines_in_order_and_do_not_touch(
    before: list[bytes], after: list[bytes]
) -> None:
    here = there = -1
    for match in matches(before, after):
        assert match.count > 0
        assert (match.before, match.after) > (here, there)
        assert match.before >= here
        assert match.after >= there
        assert before[match.before :][: match.count] == after[match.after :][: match.count]
        here, there = match.before + match.count, match.after + match.count


@given(st.lists(st.binary(), unique=True), st.data())
def test_a_text_with_lines_taken_out_matches_wholly(
    before: list[bytes], data: st.DataObject
) -> None:
    kept = [line for line in before if data.draw(st.booleans())]

    assert sum(match.count for match in matches(before, kept)) == len(kept)


@pytest.mark.parametrize(("edits", "is_found"), [(100, True), (400, False)])
def test_a_stretch_without_unique_lines_is_compared_up_to_a_bound(
    edits: int, is_found: bool
) -> None:
    before = [b"x\n", *[b"a\n", b"a\n", b"b\n", b"b\n"] * edits, b"y\n"]
    after = [b"z\n", *[b"a\n", b"a\n", b"b\n"] * edits, b"w\n"]

    assert bool(matches(before, after)) is is_found


def test_what_differs_too_much_costs_no_more() -> None:
    chance = random.Random(6)
    before = [b"%d\n" % chance.randrange(20) for _ in range(5000)]
    after = [b"%d\n" % chance.randrange(20) for _ in range(5000)]

    assert all(before[match.before] == after[match.after] for match in matches(before, after))
