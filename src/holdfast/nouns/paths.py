"""Paths below a root, in any bytes that a file system allows.

A name on disk is bytes: anything but NUL and `/`. A `RelativePath` is one or more of them, and
never leads up or out by its spelling. It is deliberately no `os.PathLike`: only what resolves it
below a root should open it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from holdfast.nouns.escapes import escaped, shown, unescaped
from holdfast.nouns.failures import PathInvalid

NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4095  # PATH_MAX counts the closing NUL


@dataclass(frozen=True, slots=True, order=True)
class RelativePath:
    """One place below a root; sorts so that what is in a directory directly follows it."""

    parts: tuple[bytes, ...]

    def __post_init__(self) -> None:
        reason = _complaint(self.parts)
        if reason is not None:
            raise PathInvalid(path=shown(self.raw), reason=reason)

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

    def __hash__(self) -> int:
        return hash(self.parts)

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
        above = object.__new__(type(self))  # as valid as it is itself, so it is not checked again
        object.__setattr__(above, "parts", self.parts[:-1])
        return above

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
    if not any(parts):
        return "it is empty" if len(parts) < 2 else "it is absolute"
    if parts[0] == b"":
        return "it is absolute"
    if sum(map(len, parts)) + len(parts) - 1 > PATH_BYTES_MAX:
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
