"""A part of a change, chosen by number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.diff.unified import hunks, picked
from holdfast.workbench.failures import HunkMissing
from tests.workbench.modelled import at

X = at("x")
BEFORE = b"1\n2\n3\n4\n5\n6\n"
AFTER = b"one\n2\n3\nfour\n5\n6\nend\n"


@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (set[int](), BEFORE),
        ({1}, b"one\n2\n3\n4\n5\n6\n"),
        ({2}, b"1\n2\n3\nfour\n5\n6\n"),
        ({3, 1}, b"one\n2\n3\n4\n5\n6\nend\n"),
        ({1, 2, 3}, AFTER),
    ],
)
def test_the_chosen_ones_and_no_others(numbers: set[int], expected: bytes) -> None:
    assert picked(X, BEFORE, AFTER, numbers) == expected


@pytest.mark.parametrize(
    ("before", "after", "number", "count"),
    [(BEFORE, AFTER, 0, 3), (BEFORE, AFTER, 4, 3), (b"\0", b"a", 1, 0), (BEFORE, BEFORE, 1, 0)],
)
def test_a_number_that_there_is_not(before: bytes, after: bytes, number: int, count: int) -> None:
    with pytest.raises(HunkMissing) as missing:
        picked(X, before, after, {number})
    assert missing.value == HunkMissing(path="x", number=number, count=count)


contents = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=20).map(b"".join)


@given(contents, contents, st.data())
def test_what_was_not_chosen_is_what_is_left(
    before: bytes, after: bytes, data: st.DataObject
) -> None:
    numbers = range(1, len(hunks(before, after)) + 1)
    chosen = data.draw(st.sets(st.sampled_from(numbers))) if numbers else set[int]()

    part = picked(X, before, after, chosen)

    assert picked(X, part, after, range(1, len(hunks(part, after)) + 1)) == after
    assert chosen or part == before
