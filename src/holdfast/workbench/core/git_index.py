r"""Read which paths git tracks from its index file, without git.

    DIRC | version 4 | entries 4 | entry... | extension... | checksum

An entry is 40 bytes about the file, the id of its content, flags with the length of the name,
perhaps further flags, and the name, ended by a NUL. In versions 2 and 3 entries are padded to a
multiple of 8; in version 4 a name begins with how many bytes of the last one are dropped. A split
index has the extension `link` with the id of a second file. A sparse index has directories, ended
by a slash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct, error
from typing import Final

_HEAD: Final = Struct(">4sII")
_BEFORE_ID: Final = 40  # bytes of an entry: times, device, inode, mode, owner, size
_ID_SIZES: Final = (20, 32)  # SHA-1, SHA-256: only the settings of the repository say which
_EXTENDED: Final = 0x4000
_LENGTH: Final = 0x0FFF  # also of all names that are longer
_PREFIXED: Final = 4  # the version in which names are shortened
_EXTENSION: Final = Struct(">4sI")


@dataclass(frozen=True, slots=True)
class TrackedPaths:
    """What an index names; `shared` is the id of the index that it adds to, if it is split."""

    paths: frozenset[bytes] = frozenset()
    shared: str = ""


def tracked_in(data: bytes) -> TrackedPaths | None:
    """What an index tracks; None if it is not one that can be read."""
    for id_bytes in _ID_SIZES:
        try:
            return _tracked(data, id_bytes)
        except (error, IndexError, ValueError):
            continue
    return None


def _tracked(data: bytes, id_bytes: int) -> TrackedPaths:
    sign, version, count = _HEAD.unpack_from(data)
    if sign != b"DIRC" or version not in (2, 3, _PREFIXED):
        raise ValueError("not an index")
    found: set[bytes] = set()
    at, name = _HEAD.size, b""
    for _ in range(count):
        flags_at = at + _BEFORE_ID + id_bytes
        flags = data[flags_at] << 8 | data[flags_at + 1]
        name, at = _named(data, at, flags_at + (4 if flags & _EXTENDED else 2), name, version)
        if len(name) < _LENGTH and len(name) != flags & _LENGTH:
            raise ValueError("ids of another size")
        found.add(name.rstrip(b"/"))
    extensions = _extensions(data, at, len(data) - id_bytes)
    shared = next((body for sort, body in extensions if sort == b"link"), b"")
    return TrackedPaths(frozenset(found - {b""}), shared[:id_bytes].hex())


def _named(data: bytes, start: int, at: int, last: bytes, version: int) -> tuple[bytes, int]:
    """The name at a place of an entry, and where the next entry is."""
    if version == _PREFIXED:
        dropped, at = _number(data, at)
        end = data.index(b"\0", at)
        return last[: len(last) - dropped] + data[at:end], end + 1
    end = data.index(b"\0", at)
    return data[at:end], start + (end - start + 8) // 8 * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as offsets in packs have it."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _extensions(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    while at + _EXTENSION.size <= end:
        sort, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        yield sort, data[at : at + size]
        at += size
