"""In-memory tail of a journal, bounded in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

# Followers that are further behind read the journal from disk.
TAIL_BYTES: Final = 2**20
PAGE_BYTES: Final = 256 * 2**10


class JournalLine(Protocol):
    """An encoded record with its sequence number."""

    @property
    def seq(self) -> int: ...

    @property
    def data(self) -> bytes: ...


class CachedLine(NamedTuple):
    """A record in the cache."""

    seq: int
    data: bytes


class JournalTail:
    """The last records of a journal, without gaps."""

    def __init__(self, *, bytes_max: int = TAIL_BYTES) -> None:
        self._bytes_max = bytes_max
        self._lines: list[CachedLine] = []
        self._bytes = 0

    def add(self, first: int, lines: Iterable[bytes]) -> None:
        """Append records from a sequence number on; the oldest are dropped."""
        if self._lines and self._lines[-1].seq != first - 1:
            self._lines, self._bytes = [], 0
        for seq, data in enumerate(lines, start=first):
            self._lines.append(CachedLine(seq, data))
            self._bytes += len(data)
        # Twice the limit, so that the list is copied once per `bytes_max` of records, not for each
        # record.
        if self._bytes > 2 * self._bytes_max:
            self._forget()

    def page(self, after: int) -> list[JournalLine] | None:
        """Return a page of records after a sequence number; None if they are not cached."""
        if not self._lines or self._lines[0].seq > after + 1:
            return None
        start = after + 1 - self._lines[0].seq
        return next(pages(self._lines[start:]), list[JournalLine]())

    def _forget(self) -> None:
        kept = 0
        for place in range(len(self._lines) - 1, -1, -1):
            kept += len(self._lines[place].data)
            if kept > self._bytes_max:
                del self._lines[:place]
                self._bytes = kept
                return


def pages(lines: Iterable[JournalLine]) -> Iterator[list[JournalLine]]:
    """Group records into pages of about PAGE_BYTES, at least one each."""
    page, size = list[JournalLine](), 0
    for line in lines:
        page.append(line)
        size += len(line.data)
        if size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
