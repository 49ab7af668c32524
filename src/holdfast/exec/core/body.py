"""Hold the pieces of a body for its reader, in bounded memory, and know when it is whole."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a body; the last one ends it, in good order or with an error."""

    seq: int
    data: bytes
    is_last: bool = False
    error: str | None = None


class Body:
    """The pieces of one body: each is handed on once and in order, until one is missing.

    More than it may hold is not held: it `is_overrun` then, and stays so.
    """

    def __init__(self, *, unread_bytes_max: int) -> None:
        self._bytes_max = unread_bytes_max
        self._unread: list[bytes] = []
        self._bytes = 0
        self._seq = 0
        self._is_ended = False
        self.total_bytes = 0
        self.is_overrun = False
        self.error: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether all that will ever come was handed on; `error` says if that was not all of it."""
        return self._is_ended and not self._unread

    def put(self, piece: Piece) -> None:
        """Take the next piece; one that came before changes nothing."""
        if self._is_ended or self.is_overrun or piece.seq <= self._seq:
            return
        if piece.seq > self._seq + 1:
            self._is_ended, self.error = True, f"piece {self._seq + 1} of the answer is missing"
            return
        self._seq = piece.seq
        self._is_ended, self.error = piece.is_last, piece.error
        if piece.data:
            self._unread.append(piece.data)
            self._bytes += len(piece.data)
            self.is_overrun = self._bytes > self._bytes_max

    def take(self) -> bytes:
        """Hand on all that is there; nothing if nothing is."""
        data = b"".join(self._unread)
        self._unread.clear()
        self._bytes = 0
        self.total_bytes += len(data)
        return data
