"""Read server-sent events as they come, whatever the borders of the chunks.

Every byte is looked at once or twice, and what is held back is bounded: a line or an event that
grows beyond the bound is a fault of the sender's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"

EVENT_BYTES_MAX = 16 * 2**20


class Overlong(ValueError):
    """A line or an event is longer than any that is taken."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name, if it has one, and its data."""

    name: str
    data: bytes


class EventReader:
    """Makes events of bytes; what it is given after `Overlong` it does not look at."""

    def __init__(self, *, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._bytes_max = event_bytes_max
        self._is_begun = False
        self._partial: list[bytes] = []  # of a line whose end has not come
        self._held = 0
        self._was_return = False  # then a line feed that comes next belongs to it
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take a chunk; return the events that are whole now."""
        if not self._is_begun:
            chunk = self._begin(chunk)
        if not chunk:
            return []
        if self._was_return:
            chunk = chunk.removeprefix(b"\n")
            self._was_return = False
        found: list[ServerEvent] = []
        at = 0
        for end in _END.finditer(chunk):
            self._take(chunk[at : end.start()], found)
            at = end.end()
        self._was_return = at > 0 and at == len(chunk) and chunk.endswith(b"\r")
        if at < len(chunk):
            self._hold(chunk[at:])
        return found

    def _begin(self, chunk: bytes) -> bytes:
        """Leave out the mark that may stand before everything."""
        chunk = b"".join((*self._partial, chunk))
        self._partial, self._held = [], 0
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._partial, self._held = [chunk], len(chunk)
            return b""
        self._is_begun = True
        return chunk.removeprefix(_BOM)

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._bytes_max:
            raise Overlong
        self._partial.append(piece)

    def _take(self, line: bytes, found: list[ServerEvent]) -> None:
        if self._partial:
            self._held -= sum(map(len, self._partial))
            line = b"".join((*self._partial, line))
            self._partial = []
        if not line:
            self._dispatch(found)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._held += len(value) + 1
            if self._held > self._bytes_max:
                raise Overlong
            self._data.append(value)
        elif field == b"event":
            self._name = value[:256].decode("utf-8", "replace")

    def _dispatch(self, found: list[ServerEvent]) -> None:
        if self._data:
            found.append(ServerEvent(self._name, b"\n".join(self._data)))
        self._name, self._data, self._held = "", [], 0
