"""Make whole messages of WebSocket frames, and refuse those that break the rules."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
CONTROL_BYTES_MAX = 125

PROTOCOL_BROKEN, TEXT_BROKEN, TOO_LARGE = 1002, 1007, 1009

_FINAL = 0x80
_SHORT, _LONG = Struct("!BBH"), Struct("!BBQ")
_utf8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Violation:
    """The close code for a rule that the other side broke, and which rule that was."""

    code: int
    reason: str


NOT_UTF8 = Violation(TEXT_BROKEN, "a text is not UTF-8")


Text = bytes | tuple[bytes, ...]
"""A message, whole or in parts."""


def whole(message: Text) -> bytes:
    """A message in one piece."""
    return message if isinstance(message, bytes) else b"".join(message)


def control_frame(opcode: int, payload: bytes, *, mask: bytes) -> bytes:
    """A control frame as it looks on the wire; a server has no mask."""
    assert len(payload) <= CONTROL_BYTES_MAX
    head = bytes((_FINAL | opcode, (0x80 if mask else 0) | len(payload)))
    if not mask:
        return head + payload
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return head + mask + masked


def close_payload(code: int, reason: str = "") -> bytes:
    """What a close frame says; a reason that is too long is cut, between two characters."""
    said = reason.encode()[: CONTROL_BYTES_MAX - 2].decode(errors="ignore")
    return code.to_bytes(2) + said.encode()


def text_parts(messages: Iterable[Text], *, frame_bytes_max: int) -> list[bytes | memoryview]:
    """Texts as they look on the wire when a server says them: heads, and what belongs to each.

    What is too large for one frame is fragmented. Nothing else is copied, nor looked at: who says
    it has made it of characters.
    """
    parts: list[bytes | memoryview] = []
    for message in messages:
        pieces = (message,) if isinstance(message, bytes) else message
        size = sum(map(len, pieces))
        if size <= frame_bytes_max:
            parts.append(_head(_FINAL | TEXT, size))
            parts += pieces
            continue
        view, opcode = memoryview(whole(message)), TEXT
        for first in range(0, size, frame_bytes_max):
            part = view[first : first + frame_bytes_max]
            is_last = first + frame_bytes_max >= size
            parts += (_head(_FINAL | opcode if is_last else opcode, len(part)), part)
            opcode = CONTINUATION
    return parts


def _head(first: int, size: int) -> bytes:
    if size <= CONTROL_BYTES_MAX:
        return bytes((first, size))
    if size < 2**16:
        return _SHORT.pack(first, 126, size)
    return _LONG.pack(first, 127, size)


class Assembly:
    """The messages of one side, whole and in order, however they were fragmented.

    Holds one unfinished message and no more of it than the limit. A text that can no longer
    become UTF-8 is refused at once. After a violation nothing more comes out.
    """

    def __init__(self, *, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._opcode = CONTINUATION  # of the unfinished message; there is none while it is this
        self._text = _utf8()
        self.violation: Violation | None = None

    def take(self, opcode: int, payload: bytes, *, is_last: bool, reserved: bool) -> bytes | None:
        """Take a data frame; return the message that it completes, if it does."""
        if self.violation is not None:
            return None
        is_whole = opcode == TEXT and is_last and not self._parts and not reserved
        if is_whole and len(payload) <= self._bytes_max and payload.isascii():
            return payload  # by far the most frequent
        self.violation = self._broken(opcode, payload, reserved=reserved)
        if self.violation is not None:
            return None
        self._opcode = self._opcode or opcode
        self._parts.append(payload)
        self._parts_bytes += len(payload)
        if self._opcode == TEXT and not self._continues_text(payload, is_last=is_last):
            self.violation = NOT_UTF8
            return None
        if not is_last:
            return None
        message = b"".join(self._parts) if len(self._parts) > 1 else payload
        self._parts, self._parts_bytes, self._opcode = [], 0, CONTINUATION
        return message

    def _broken(self, opcode: int, payload: bytes, *, reserved: bool) -> Violation | None:
        if reserved:
            return Violation(PROTOCOL_BROKEN, "a reserved bit is set")
        if self._opcode == CONTINUATION and opcode == CONTINUATION:
            return Violation(PROTOCOL_BROKEN, "there is no message to continue")
        if self._opcode != CONTINUATION and opcode != CONTINUATION:
            return Violation(PROTOCOL_BROKEN, "the last message is not finished")
        if self._parts_bytes + len(payload) > self._bytes_max:
            return Violation(TOO_LARGE, f"a message has more than {self._bytes_max} bytes")
        return None

    def _continues_text(self, payload: bytes, *, is_last: bool) -> bool:
        try:
            self._text.decode(payload, is_last)
        except UnicodeDecodeError:
            return False
        return True
