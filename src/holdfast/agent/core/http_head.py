"""Write the head of an HTTP/1.1 request, and read that of an answer, strictly.

What can be read in two ways is refused as a whole: whoever stands between the provider and us might
have read it in the other one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
