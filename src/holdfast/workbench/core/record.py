"""How one object is written in a segment, and when its bytes are believed.

    mark 8 | crc 4 | sort 1 | codec 1 | 0 0 | raw length 8 | stored length 8 | name 32 | bytes

The mark is drawn by chance for each segment and stands in its head, so nobody can put into a file
of the project what looks like a record of ours. The checksum covers all that follows it: after a
tear, a reader looks for the mark and believes what agrees with its checksum. The name is the hash
of the bytes as they were before they were compressed, and is checked whenever they are read. Small
files share a record, a bundle: each is found, and checked, by its own name.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from blake3 import blake3

from holdfast.workbench.model import CONTENT_ID_BYTES

MARK_BYTES = 8
HEAD_BYTES = 64
SEGMENT_HEAD_BYTES = 16
_SEGMENT_MAGIC = b"HFSEG\0\0\1"  # the last byte is the version of the format
_HEAD = Struct("<8sIBBxxQQ32s")
_CHECKED = Struct("<BBxxQQ32s")
_CHECKED_FROM = HEAD_BYTES - _CHECKED.size
assert _HEAD.size == HEAD_BYTES


class ObjectSort(IntEnum):
    """What an object is; each sort is hashed in a context of its own."""

    BLOB = 1
    PIECES = 2
    TREE = 3
    CHECKPOINT = 4
    PRUNED = 5  # the names of checkpoints that count no more
    BUNDLE = 6  # small files; its name is made of theirs


class Codec(IntEnum):
    """How the bytes of an object are stored."""

    RAW = 0
    ZSTD = 1


_CONTEXT = {sort: f"holdfast workbench 2026 {sort.name.lower()}" for sort in ObjectSort}


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the bytes of an object."""

    sort: ObjectSort
    codec: Codec
    raw_bytes: int
    stored_bytes: int
    name: bytes
    crc: int


def name_of(sort: ObjectSort, data: bytes) -> bytes:
    """The name of an object: the same for the same bytes, and for no others of any sort."""
    if sort is ObjectSort.BLOB:
        return blake3(data).digest()
    return blake3(data, derive_key_context=_CONTEXT[sort]).digest()


def names_in(data: bytes) -> list[bytes]:
    """The names that an object consists of, of the sorts that consist of names."""
    return [data[at : at + CONTENT_ID_BYTES] for at in range(0, len(data), CONTENT_ID_BYTES)]


def segment_head(mark: bytes) -> bytes:
    """What a segment begins with."""
    assert len(mark) == MARK_BYTES
    return _SEGMENT_MAGIC + mark


def read_segment_head(data: bytes) -> bytes | None:
    """The mark of a segment; None when this is not the head of one that we can read."""
    if len(data) < SEGMENT_HEAD_BYTES or not data.startswith(_SEGMENT_MAGIC):
        return None
    return data[len(_SEGMENT_MAGIC) : SEGMENT_HEAD_BYTES]


def write_head(
    mark: bytes, sort: ObjectSort, codec: Codec, *, name: bytes, raw_bytes: int, stored: bytes
) -> bytes:
    """What stands before `stored` in a segment."""
    checked = _CHECKED.pack(sort, codec, raw_bytes, len(stored), name)
    crc = zlib.crc32(stored, zlib.crc32(checked))
    return b"%b%b%b" % (mark, crc.to_bytes(4, "little"), checked)


def read_head(data: bytes, mark: bytes) -> Head | None:
    """Read the head of a record; None when none of this segment can begin so."""
    if len(data) < HEAD_BYTES or not data.startswith(mark):
        return None
    _, crc, sort, codec, raw_bytes, stored_bytes, name = _HEAD.unpack_from(data)
    known, packing = _SORTS.get(sort), _CODECS.get(codec)
    if known is None or packing is None:
        return None
    return Head(known, packing, raw_bytes, stored_bytes, name, crc)


def is_intact(head_bytes: bytes, head: Head, stored: bytes) -> bool:
    """Whether the bytes after a head are the ones that were written with it."""
    if len(stored) != head.stored_bytes:
        return False
    return zlib.crc32(stored, zlib.crc32(head_bytes[_CHECKED_FROM:HEAD_BYTES])) == head.crc


_SORTS = {int(sort): sort for sort in ObjectSort}
_CODECS = {int(codec): codec for codec in Codec}
