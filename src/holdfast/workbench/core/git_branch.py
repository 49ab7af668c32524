"""Decide what may be read of a draft's repository, and what git's answers about it say.

What is in a draft was written by an agent: names of files in its repository are matched against
what git itself writes, and everything else is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from holdfast.workbench.model import Note

_LOOSE_DIRECTORY: Final = re.compile(r"[0-9a-f]{2}")
_LOOSE_OBJECT: Final = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_PACK: Final = re.compile(r"pack-[0-9a-f]{40,64}\.pack")
_TABLE: Final = re.compile(r"tables\.list|[0-9A-Za-z-]+\.ref")


class CommitLine(NamedTuple):
    """One commit in a list."""

    id: str
    author: str
    subject: str


class FileCount(NamedTuple):
    """How many lines of a file commits add and remove; None for a file that is not text.

    `notes` say what the lines do not.
    """

    path: bytes
    added: int | None
    removed: int | None
    notes: tuple[Note, ...] = ()


def is_loose_directory(name: str) -> bool:
    return _LOOSE_DIRECTORY.fullmatch(name) is not None


def is_loose_object(name: str) -> bool:
    return _LOOSE_OBJECT.fullmatch(name) is not None


def is_pack(name: str) -> bool:
    return _PACK.fullmatch(name) is not None


def is_table(name: str) -> bool:
    """Whether a file holds refs in the format reftable."""
    return _TABLE.fullmatch(name) is not None


def alternates(directory: bytes) -> bytes:
    """The content of `objects/info/alternates` for one directory, whatever is in its name."""
    quoted = directory.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%s"\n' % quoted


def without(tips: Iterable[str], known: Iterable[str]) -> bytes:
    """Input of `git rev-list --stdin`: what can be reached from tips and not from what is known."""
    return "".join([*(f"{tip}\n" for tip in tips), *(f"^{one}\n" for one in known)]).encode()


def commit_lines(listing: bytes) -> tuple[CommitLine, ...]:
    """Commits in the output of `git log -z --format=%H%n%an%n%s`."""
    found: list[CommitLine] = []
    for item in listing.decode("utf-8", "backslashreplace").split("\0"):
        id, _, rest = item.strip("\n").partition("\n")
        author, _, subject = rest.partition("\n")
        if id:
            found.append(CommitLine(id, author, subject))
    return tuple(found)


def file_counts(listing: bytes) -> tuple[FileCount, ...]:
    """Files in the output of `git diff-tree -r -z --numstat --no-renames`."""
    found: list[FileCount] = []
    for item in filter(None, listing.split(b"\0")):
        added, removed, path = item.split(b"\t", 2)
        found.append(FileCount(path, _number(added), _number(removed)))
    return tuple(found)


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None
