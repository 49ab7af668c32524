"""The name of a content depends on its bytes, however they come."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from holdfast.workbench.objects.formats import (
    PIECE_BYTES,
    WHOLE_BYTES_MAX,
    ObjectKind,
    name_of,
    split_content,
)


def whole(data: bytes) -> bytes:
    return name_of(ObjectKind.BLOB, data)


def cut(data: bytes) -> bytes:
    pieces = (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
    return name_of(ObjectKind.PIECES, b"".join(map(whole, pieces)))


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

    assert split_content(parts, name_of) == (name(data), size)


def test_the_pieces_of_a_large_one_are_put_before_their_list() -> None:
    put: list[tuple[ObjectKind, int]] = []

    def note(kind: ObjectKind, data: bytes) -> bytes:
        put.append((kind, len(data)))
        return name_of(kind, data)

    split_content([bytes(WHOLE_BYTES_MAX), b"", b"more"], note)

    assert put == [
        *[(ObjectKind.BLOB, PIECE_BYTES)] * 8,
        (ObjectKind.BLOB, 4),
        (ObjectKind.PIECES, 9 * 32),
    ]
