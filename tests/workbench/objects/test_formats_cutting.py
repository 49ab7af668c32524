"""The name of a content depends on its bytes, however they come."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from holdfast.workbench.objects.formats import (
    PIECE_BYTES,
    WHOLE_BYTES_MAX,
    ObjectSort,
    cut_content,
    name_of,
)


def whole(data: bytes) -> bytes:
    return name_of(ObjectSort.BLOB, data)


def cut(data: bytes) -> bytes:
    pieces = (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
    return name_of(ObjectSort.PIECES, b"".join(map(whole, pieces)))


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (0, whole),
        (1, whole),
        (PIECE_BYTES, whole),
        (PIECE_BYTES + 1, whole),
        (WHOLE_BYTES_MAX, whole),
        (WHOLE_BYTES_MAX + 1, cut),
        (WHOLE_BYTES_MAX + PIECE_BYTES, cut),
        (WHOLE_BYTES_MAX + 3 * PIECE_BYTES + 17, cut),
    ],
)
@pytest.mark.parametrize("part_bytes", [1000, 65_536, PIECE_BYTES, PIECE_BYTES + 1, 10**9])
def test_large_ones_are_cut_evenly(
    size: int, name: Callable[[bytes], bytes], part_bytes: int
) -> None:
    data = Random(size).randbytes(size)
    parts = (data[at : at + part_bytes] for at in range(0, size, part_bytes))

    assert cut_content(parts, name_of) == (name(data), size)


def test_the_pieces_of_a_large_one_are_put_before_their_list() -> None:
    put: list[tuple[ObjectSort, int]] = []

    def note(sort: ObjectSort, data: bytes) -> bytes:
        put.append((sort, len(data)))
        return name_of(sort, data)

    cut_content([bytes(WHOLE_BYTES_MAX), b"", b"more"], note)

    assert put == [
        *[(ObjectSort.BLOB, PIECE_BYTES)] * 8,
        (ObjectSort.BLOB, 4),
        (ObjectSort.PIECES, 9 * 32),
    ]
