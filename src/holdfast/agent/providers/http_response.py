"""Read the answer to one HTTP/1.1 request as it comes, whatever the borders of the reads.

    head ──▶ a body of known length, in chunks, or up to the end ──▶ over
     └─ interim: the next head

Bytes of the body are handed on as they come; what is held back is a head or a line, and bounded.

Write the head of an HTTP/1.1 request, and read that of an answer, strictly.

What can be read in two ways is refused as a whole: whoever stands between the provider and us might
have read it in the other one.

Decision: docs/decisions/0144-http-client.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

HEAD_BYTES_MAX: Final = 64 * 1024

_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t -~\x80-\xff]*)")
_PLAIN: Final = re.compile(r"[\t -~]*")  # what a header of ours may say
_COUNT: Final = re.compile(r"[0-9]{1,18}")
_BODILESS: Final = {204, 304}


class Malformed(ValueError):
    """What came is no answer in HTTP/1.1; says why, and nothing of what came."""


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer says before its body; names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    is_oldest: bool = False  # HTTP/1.0: one answer for each connection

    @property
    def is_interim(self) -> bool:
        """Whether the answer itself is still to come."""
        return self.status < 200

    @property
    def is_last(self) -> bool:
        """Whether the connection is of no use after this answer."""
        words = self.headers.get("connection", "").lower().replace(" ", "").split(",")
        return self.is_oldest or "close" in words

    @property
    def is_chunked(self) -> bool:
        """Whether the body tells its end itself."""
        return "transfer-encoding" in self.headers

    @property
    def length(self) -> int | None:
        """How many bytes the body has; None where only its end tells."""
        if self.status in _BODILESS:
            return 0
        told = self.headers.get("content-length")
        return None if told is None else int(told)


def read_head(data: bytes) -> Head:
    """The head that these bytes are, without the empty line at its end."""
    first, *lines = data.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise Malformed("it does not begin like an answer")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise Malformed("a header is none")
        name = found[1].decode("ascii").lower()
        value = found[2].decode("latin-1").rstrip("\t ")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    head = Head(int(status[2]), headers, is_oldest=status[1] == b"0")
    return _judged(head, headers)


def write_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """The head of a request, with the empty line at its end."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {told}" for name, told in headers.items())]
    if not all(map(_PLAIN.fullmatch, lines)):
        raise Malformed("a header of ours has letters that none may have")
    return "\r\n".join((*lines, "", "")).encode("ascii")


def _judged(head: Head, headers: dict[str, str]) -> Head:
    """The same head, if it leaves no doubt where its body ends."""
    if head.status == 101:
        raise Malformed("it speaks something else now, which nobody asked for")
    coding, told = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and told is not None:
        raise Malformed("it has two lengths")
    if coding is not None and (coding.lower() != "chunked" or head.is_oldest):
        raise Malformed("its body is coded in a way that nobody asked for")
    if told is not None:
        lengths = {each.strip("\t ") for each in told.split(",")}
        [length, *others] = lengths
        if others or not _COUNT.fullmatch(length):
            raise Malformed("its length is unclear")
        headers["content-length"] = length
    return head


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
