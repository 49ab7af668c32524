"""Bounded buffers for process output, with constant work per chunk.

Head and tail of the output are kept: the head says what it is about, the tail how it ended. Sparse
offsets map the omitted part to events of the exec-server, where it can be read again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import Final

from holdfast.agent.text import PAGE_MAX

# Together below the length at which a result is abridged (a byte is at most one character), so that
# output is never abridged twice.
HEAD_BYTES_MAX: Final = PAGE_MAX // 2
TAIL_BYTES_MAX: Final = PAGE_MAX // 2
_CHARACTER_BYTES_MAX: Final = 4
_PLACES_MAX: Final = 1024
_STRIDE: Final = 64 * 1024

_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_]|[ -/]+[0-~])"
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class OutputWindow:
    """Head and tail of the output since the last `take`."""

    def __init__(self, *, head_max: int = HEAD_BYTES_MAX, tail_max: int = TAIL_BYTES_MAX) -> None:
        self._head_max, self._tail_max = head_max, tail_max
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._begun = 0  # offset of this window in the whole output
        self._bytes = 0

    def feed(self, data: bytes) -> None:
        """Add a chunk of any size."""
        self._bytes += len(data)
        room = self._head_max - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        piece = data[-self._tail_max :]
        self._tail.append(piece)
        self._tail_bytes += len(piece)
        while self._tail_bytes - len(self._tail[0]) >= self._tail_max:
            self._tail_bytes -= len(self._tail.popleft())

    @property
    def left_out(self) -> int:
        """Bytes that were dropped."""
        return self._bytes - len(self._head) - min(self._tail_bytes, self._tail_max)

    def take(self) -> str:
        """Return the buffered output, and reset."""
        tail = b"".join(self._tail)[-self._tail_max :]
        left_out = self.left_out
        first_left_out = self._begun + len(self._head)
        if left_out:
            told = f"… ({left_out} bytes are left out; recall them from offset {first_left_out})"
            text = f"{legible(bytes(self._head))}\n{told}\n{legible(tail)}"
        else:
            text = legible(bytes(self._head) + tail)
        self._begun += self._bytes
        self._bytes = self._tail_bytes = 0
        self._head.clear()
        self._tail.clear()
        return text


@dataclass(frozen=True, slots=True)
class OutputOffset:
    """Output offset in bytes after an event."""

    seq: int
    offset: int


class OutputOffsets:
    """Sparse index from output offsets to events, in bounded memory."""

    def __init__(self) -> None:
        self.total = 0
        self._places = [OutputOffset(0, 0)]
        self._stride = _STRIDE

    def note(self, seq: int, size: int) -> None:
        """Record an event with `size` bytes of output."""
        self.total += size
        if self.total - self._places[-1].offset < self._stride:
            return
        self._places.append(OutputOffset(seq, self.total))
        if len(self._places) > _PLACES_MAX:
            # Halve the resolution instead of dropping the oldest: any offset may be asked for.
            self._places = self._places[::2]
            self._stride *= 2

    def before(self, offset: int) -> OutputOffset:
        """Return the last known offset that is not greater."""
        return self._places[bisect_right(self._places, offset, key=lambda place: place.offset) - 1]


def legible(data: bytes) -> str:
    """Decode output without control sequences; of a line rewritten by CR, the last version."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace").replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(_rewritten(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def page_of(data: bytes, bytes_max: int) -> bytes:
    """Return as many whole lines as fit; of an overlong line, whole characters."""
    if len(data) <= bytes_max:
        return data
    newline = data.rfind(b"\n", 0, bytes_max)
    if newline >= 0:
        return data[: newline + 1]
    end = bytes_max
    while end > bytes_max - _CHARACTER_BYTES_MAX and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def _rewritten(line: str) -> str:
    forms = [form for form in line.split("\r") if form]
    return forms[-1] if forms else ""
