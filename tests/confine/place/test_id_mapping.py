"""Everyone who is known is exactly one person inside, and nobody of ours is number 0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.confine.place.id_mapping import (
    INSIDE,
    Extent,
    is_mapped,
    known_in,
    narrow,
    wide,
    written,
)

EVERYONE = 4_294_967_295


@pytest.mark.parametrize(
    ("own", "known", "expected"),
    [
        (
            0,
            [(0, EVERYONE)],
            [(1000, 0, 1), (1, 1, 999), (0, 1000, 1), (1001, 1001, EVERYONE - 1001)],
        ),
        (1000, [(0, 2000)], [(0, 0, 1000), (1000, 1000, 1), (1001, 1001, 999)]),
        (0, [(0, 1)], [(1000, 0, 1)]),
        (
            5,
            [(0, 10), (1000, 5)],
            [(0, 0, 5), (1000, 5, 1), (6, 6, 4), (5, 1000, 1), (1001, 1001, 4)],
        ),
    ],
)
def test_a_map_of_everyone(
    own: int, known: list[tuple[int, int]], expected: list[tuple[int, int, int]]
) -> None:
    assert wide(own, known) == tuple(Extent(*each) for each in expected)


def test_a_map_is_written_as_the_kernel_reads_it() -> None:
    assert written(narrow(54)) == "1000 54 1\n"
    assert known_in("         0     100000      65536\n     70000  1  2\n") == (
        (0, 65536),
        (70000, 2),
    )


def test_what_the_kernel_would_refuse_is_refused() -> None:
    with pytest.raises(ValueError, match="more than the kernel takes"):
        wide(0, [(2 * number, 1) for number in range(400)])


@given(
    own=st.integers(0, 3000),
    cuts=st.lists(st.integers(0, 3000), min_size=2, max_size=8, unique=True),
)
def test_nobody_is_two_and_no_two_are_one(own: int, cuts: list[int]) -> None:
    marks = sorted(cuts)
    known = [(first, last - first) for first, last in zip(marks[::2], marks[1::2], strict=False)]
    outside = {number for start, count in known for number in range(start, start + count)}

    extents = wide(own, known)

    inside = {
        each.outside + offset: each.inside + offset
        for each in extents
        for offset in range(each.count)
    }
    assert set(inside) == outside == {n for n in range(3001) if is_mapped(n, extents)}
    assert len(set(inside.values())) == len(inside)
    assert inside.get(own, INSIDE) == INSIDE
