"""Read what inotify says: which directory, what happened, and to which name in it."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_DIRECTORY = 0x4000, 0x8000, 0x40000000
ONLY_DIRECTORIES, NOT_ONCE_UNLINKED = 0x1000000, 0x4000000

WATCHED = (
    MODIFY
    | ATTRIB
    | CLOSE_WRITE
    | MOVED_FROM
    | MOVED_TO
    | CREATE
    | DELETE
    | ONLY_DIRECTORIES
    | NOT_ONCE_UNLINKED
)

_HEAD = Struct("=iIII")


class Notice(NamedTuple):
    """One thing that happened in a watched directory; without a name, to the directory itself."""

    watch: int
    mask: int
    name: bytes

    @property
    def brings_directory(self) -> bool:
        """Whether a directory has come that nobody watches yet, or under another name."""
        return bool(self.mask & IS_DIRECTORY and self.mask & (CREATE | MOVED_TO))


def decode_notices(data: bytes) -> Iterator[Notice]:
    """Every notice in what was read at once; the system gives whole ones only."""
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield Notice(watch, mask, data[at : at + length].rstrip(b"\0"))
        at += length
