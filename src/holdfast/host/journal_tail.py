"""The end of a log that need not be read from the disk again, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

TAIL_BYTES: Final = 2**20  # whoever is further behind reads the log
PAGE_BYTES: Final = 256 * 2**10


class Line(Protocol):
    """One record as it stands in the log, with its number."""

    @property
    def seq(self) -> int:
        """Its number."""
        ...

    @property
    def data(self) -> bytes:
        """What it says."""
        ...


class Remembered(NamedTuple):
    """A line that need not be read again."""

    seq: int
    data: bytes


class Tail:
    """The last lines of a log; their numbers follow one another."""

    def __init__(self, *, bytes_max: int = TAIL_BYTES) -> None:
        self._bytes_max = bytes_max
        self._lines: list[Remembered] = []
        self._bytes = 0

    def add(self, first: int, lines: Iterable[bytes]) -> None:
        """Add what was written, from this number on; what is far back is forgotten."""
        if self._lines and self._lines[-1].seq != first - 1:
            self._lines, self._bytes = [], 0
        for seq, data in enumerate(lines, start=first):
            self._lines.append(Remembered(seq, data))
            self._bytes += len(data)
        if self._bytes > 2 * self._bytes_max:  # so that each line is moved only once
            self._forget()

    def page(self, after: int) -> list[Line] | None:
        """What follows a number, as much as goes at once; None if that was forgotten."""
        if not self._lines or self._lines[0].seq > after + 1:
            return None
        start = after + 1 - self._lines[0].seq
        return next(pages(self._lines[start:]), list[Line]())

    def _forget(self) -> None:
        kept = 0
        for place in range(len(self._lines) - 1, -1, -1):
            kept += len(self._lines[place].data)
            if kept > self._bytes_max:
                del self._lines[:place]
                self._bytes = kept
                return


def pages(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The same lines, as many at once as go at once, and always at least one."""
    page, size = list[Line](), 0
    for line in lines:
        page.append(line)
        size += len(line.data)
        if size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
