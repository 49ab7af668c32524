"""A body is handed on piece by piece, or it is said what is wrong with it."""

from __future__ import annotations

import pytest

from holdfast.exec.client.events import BodyBuffer, BodyPiece

END = BodyPiece(3, b"", is_last=True)


@pytest.mark.parametrize(
    ("pieces", "data", "is_over", "error"),
    [
        ([], b"", False, None),
        ([BodyPiece(1, b"a")], b"a", False, None),
        ([BodyPiece(1, b"a"), BodyPiece(2, b"b"), END], b"ab", True, None),
        (
            [BodyPiece(1, b"a"), BodyPiece(1, b"a"), BodyPiece(2, b"b"), BodyPiece(1, b"a"), END],
            b"ab",
            True,
            None,
        ),
        ([BodyPiece(1, b"a", is_last=True), BodyPiece(2, b"b")], b"a", True, None),
        ([BodyPiece(1, b"a"), BodyPiece(2, b"", is_last=True, error="cut")], b"a", True, "cut"),
        ([BodyPiece(1, b"a"), END], b"a", True, "piece 2 of the answer is missing"),
    ],
)
def test_pieces_make_a_body(
    pieces: list[BodyPiece], data: bytes, is_over: bool, error: str | None
) -> None:
    body = BodyBuffer(unread_bytes_max=10)

    for piece in pieces:
        body.put(piece)
    assert not body.is_over or not data, "it must be taken first"

    assert (body.take(), body.is_over, body.error) == (data, is_over, error)
    assert (body.take(), body.total_bytes) == (b"", len(data))


@pytest.mark.promise("X11")
def test_what_is_not_taken_is_bounded() -> None:
    body = BodyBuffer(unread_bytes_max=10)

    body.put(BodyPiece(1, bytes(10)))
    assert (body.take(), body.is_overrun) == (bytes(10), False)
    body.put(BodyPiece(2, bytes(10)))
    assert not body.is_overrun
    body.put(BodyPiece(3, b"x"))
    body.put(BodyPiece(4, bytes(100)))

    assert (body.is_overrun, len(body.take())) == (True, 11)
