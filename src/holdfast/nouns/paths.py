"""Paths below a root, in any bytes that a file system allows.

A name on disk is bytes: anything but NUL and `/`. A `RelativePath` is one or more of them, and
never leads up or out by its spelling. It is deliberately no `os.PathLike`: only what resolves it
below a root should open it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from holdfast.nouns.failures import PathInvalid
from holdfast.nouns.text import escaped, shown, unescaped

NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4095  # PATH_MAX counts the closing NUL
_USUAL = re.compile(rb"[^/\0.][^/\0]{0,254}(/[^/\0.][^/\0]{0,254})*")  # no name begins with a dot


class _Parts(NamedTuple):
    """What a path consists of: a tuple, because paths are hashed and compared all the time."""

    parts: tuple[bytes, ...]


class RelativePath(_Parts):
    """One place below a root; sorts so that what is in a directory directly follows it."""

    __slots__ = ()

    def __new__(cls, parts: tuple[bytes, ...]) -> Self:
        reason = _complaint(parts)
        if reason is not None:
            raise PathInvalid(path=shown(b"/".join(parts)), reason=reason)
        return super().__new__(cls, parts)

    @classmethod
    def of(cls, spelling: bytes | str) -> Self:
        """Take a path as the system spells it: bytes, or text with surrogate escapes."""
        return cls(tuple(_encoded(spelling).split(b"/")))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the text form; it is the inverse of `str` for every path."""
        try:
            return cls.of(unescaped(text))
        except ValueError as error:
            raise PathInvalid(path=shown(text), reason=str(error)) from error

    def __str__(self) -> str:
        return escaped(self.raw)

    @property
    def raw(self) -> bytes:
        """The path as the system spells it."""
        return b"/".join(self.parts)

    @property
    def name(self) -> bytes:
        """The last part."""
        return self.parts[-1]

    @property
    def parent(self) -> Self | None:
        """The directory that holds it; None when that is the root itself."""
        if len(self.parts) < 2:
            return None
        # As valid as it is itself, so it is not checked again.
        return _Parts.__new__(type(self), self.parts[:-1])

    def __truediv__(self, below: RelativePath | bytes | str) -> Self:
        more = below if isinstance(below, RelativePath) else RelativePath.of(below)
        return type(self)(self.parts + more.parts)

    def within(self, other: RelativePath) -> bool:
        """Whether it is `other` or lies below it, by its spelling."""
        return self.parts[: len(other.parts)] == other.parts


def _encoded(spelling: bytes | str) -> bytes:
    if isinstance(spelling, bytes):
        return spelling
    try:
        return spelling.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PathInvalid(path=shown(spelling), reason="it is not valid Unicode") from error


def _complaint(parts: tuple[bytes, ...]) -> str | None:
    spelled = b"/".join(parts)
    is_short = len(spelled) <= PATH_BYTES_MAX
    if is_short and spelled.count(b"/") == len(parts) - 1 and _USUAL.fullmatch(spelled):
        return None
    if not any(parts):
        return "it is empty" if len(parts) < 2 else "it is absolute"
    if parts[0] == b"":
        return "it is absolute"
    if not is_short:
        return f"it is longer than {PATH_BYTES_MAX} bytes"
    for part in parts:
        if (reason := _name_complaint(part)) is not None:
            return reason
    return None


def _name_complaint(part: bytes) -> str | None:
    if part in {b"", b".", b".."}:
        return f"a part of it is {part.decode()}" if part else "a part of it is empty"
    if b"\0" in part or b"/" in part:
        return "a name in it contains a NUL or a slash"
    if len(part) > NAME_BYTES_MAX:
        return f"a name in it is longer than {NAME_BYTES_MAX} bytes"
    return None
