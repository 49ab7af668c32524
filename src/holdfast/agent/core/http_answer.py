"""Read the answer to one HTTP/1.1 request as it comes, whatever the borders of the reads.

    head ──▶ a body of known length, in chunks, or up to the end ──▶ over
     └─ interim: the next head

Bytes of the body are handed on as they come; what is held back is a head or a line, and bounded.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

from holdfast.agent.core.http_head import HEAD_BYTES_MAX, Head, Malformed, read_head

_BEGINNING: Final = b"HTTP/1."
_END: Final = b"\r\n\r\n"
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[\t ]*(?:;[\t -~\x80-\xff]*)?")
_LINE_BYTES_MAX: Final = 4096


class _Part(Enum):
    HEAD = auto()
    COUNTED = auto()  # a body whose length was told before it
    UNTIL_END = auto()
    SIZE = auto()  # of a chunk
    CHUNK = auto()
    CHUNK_END = auto()
    TRAILER = auto()
    OVER = auto()


class AnswerReader:
    """Makes a head and a body of bytes, up to the end or to the `problem` that ends it.

    The answer to CONNECT has no body, whatever its head says, if it is a yes.
    """

    def __init__(self, *, is_tunnel: bool = False) -> None:
        self.head: Head | None = None
        self.problem = ""
        self._is_tunnel = is_tunnel
        self._part = _Part.HEAD
        self._held = b""
        self._left = 0  # bytes of the body or the chunk that are still to come
        self._room = HEAD_BYTES_MAX  # for heads and trailers, all together
        self._is_exact = True  # nothing came that does not belong to the answer

    @property
    def is_over(self) -> bool:
        """Whether the answer is whole."""
        return self._part is _Part.OVER

    @property
    def is_keepable(self) -> bool:
        """Whether the connection is good for another request."""
        return self.is_over and self._is_exact and self.head is not None and not self.head.is_last

    def feed(self, data: bytes) -> bytes:
        """Take what was read; return what of the body it holds."""
        if self._held:
            data, self._held = self._held + data, b""
        pieces: list[bytes] = []
        at: int | None = 0
        try:
            while at is not None and at < len(data) and not self.problem:
                at = self._take(data, at, pieces)
        except Malformed as error:
            self.problem = str(error)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def end(self) -> None:
        """Take note that nothing more will come, which is a problem if something is missing."""
        self._is_exact = False
        if self._part is _Part.UNTIL_END:
            self._part = _Part.OVER
        elif not self.is_over:
            self.problem = self.problem or "it broke off"

    def _take(self, data: bytes, at: int, pieces: list[bytes]) -> int | None:
        """How far the next part goes; None if it is not whole and has been held back."""
        match self._part:
            case _Part.COUNTED | _Part.CHUNK:
                return self._body(data, at, pieces)
            case _Part.SIZE | _Part.CHUNK_END | _Part.TRAILER:
                return self._line(data, at)
            case _Part.HEAD:
                return self._head(data, at)
            case _Part.UNTIL_END:
                pieces.append(data[at:])
                return len(data)
            case _Part.OVER:
                self._is_exact = False
                return len(data)

    def _head(self, data: bytes, at: int) -> int | None:
        if not data.startswith(_BEGINNING[: len(data) - at], at):
            raise Malformed("it does not begin like an answer")
        end = data.find(_END, at, at + self._room)
        if end < 0:
            if len(data) - at >= self._room:
                raise Malformed("its head is too long")
            self._hold(data, at)
            return None
        self._room -= end + len(_END) - at
        head = read_head(data[at:end])
        if not head.is_interim:
            self.head = head
            self._begin(head)
        return end + len(_END)

    def _begin(self, head: Head) -> None:
        length = 0 if self._is_tunnel and head.status < 300 else head.length
        if length is not None:
            self._left = length
            self._part = _Part.COUNTED if length else _Part.OVER
        else:
            self._part = _Part.SIZE if head.is_chunked else _Part.UNTIL_END

    def _body(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        end = min(len(data), at + self._left)
        pieces.append(data[at:end])
        self._left -= end - at
        if not self._left:
            self._part = _Part.OVER if self._part is _Part.COUNTED else _Part.CHUNK_END
        return end

    def _line(self, data: bytes, at: int) -> int | None:
        end = data.find(b"\r\n", at, at + _LINE_BYTES_MAX)
        if end < 0:
            if len(data) - at >= _LINE_BYTES_MAX:
                raise Malformed("a line between its chunks is too long")
            self._hold(data, at)
            return None
        self._between(data[at:end])
        return end + 2

    def _hold(self, data: bytes, at: int) -> None:
        if data.count(b"\n", at) != data.count(b"\r\n", at):
            raise Malformed("a line ends in a way that none may")
        self._held = data[at:]

    def _between(self, line: bytes) -> None:
        """Go on behind a line that stands before, between or after chunks."""
        match self._part:
            case _Part.SIZE if found := _SIZE.fullmatch(line):
                self._left = int(found[1], 16)
                self._part = _Part.CHUNK if self._left else _Part.TRAILER
            case _Part.CHUNK_END if not line:
                self._part = _Part.SIZE
            case _Part.TRAILER if not line:
                self._part = _Part.OVER
            case _Part.TRAILER if len(line) < self._room:
                self._room -= len(line)
            case _:
                raise Malformed("a line between its chunks is none")
