"""What the workbench speaks of: what stands at a path, and what is to become of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.nouns import RelativePath

CONTENT_ID_BYTES = 32


class Sort(StrEnum):
    """What a path leads to."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"  # a fifo, a socket, a device: recorded, never stored


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at one path; two are equal when nobody could tell them apart by reading."""

    sort: Sort
    mode: int
    content: bytes = b""  # the id of a file's bytes; nothing for all else
    target: bytes = b""  # where a link leads, as it is spelled
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    size: int = field(default=0, compare=False)
    mtime_ns: int = field(default=0, compare=False)

    @property
    def is_directory(self) -> bool:
        """Whether other paths can be below it."""
        return self.sort is Sort.DIRECTORY


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one path: what must stand there before, and what does after."""

    path: RelativePath
    before: Entry | None
    after: Entry | None

    def __post_init__(self) -> None:
        assert self.before != self.after, f"nothing changes at {self.path}"
