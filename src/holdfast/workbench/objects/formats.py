"""How one object is written in a segment, and when its bytes are believed.

    mark 8 | crc 4 | sort 1 | codec 1 | 0 0 | raw length 8 | stored length 8 | name 32 | bytes

The mark is drawn by chance for each segment and stands in its head, so nobody can put into a file
of the project what looks like a record of ours. The checksum covers all that follows it: after a
tear, a reader looks for the mark and believes what agrees with its checksum. The name is the hash
of the bytes as they were before they were compressed, and is checked whenever they are read. Small
files share a record, a bundle: each is found, and checked, by its own name.

How small files are written as one record, in which what they share is stored once.

    count 4 | the length of each, 4 | the name of each, 32 | their bytes, one after the other

Files that lie together have words in common, and a compressor that sees them together needs half
of the time.

How a directory is written as an object: a row for each name, in one spelling only.

    form 1 | rows; a row:
    name length 2 | sort 1 | mode 2 | size 8 | mtime 8 | detail length 4 | xattrs length 4 |
    name | detail | xattrs, each: name length 2 | value length 4 | name | value

The detail of a file is the name of its content, that of a link its target, that of what is not
covered the reason; that of a directory is the name of its tree and how many files and uncovered
paths are below it, so that counts of a whole tree need no walk.

How the content of a file becomes objects: whole, or cut into pieces of a fixed length.

Cut or not, the name of a content depends on its bytes alone, never on how they came.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, pairwise
from struct import Struct, error
from typing import NamedTuple

import msgspec
from blake3 import blake3

from holdfast.nouns import IdInvalid, check_id
from holdfast.workbench.model import (
    CONTENT_ID_BYTES,
    Checkpoint,
    EntryKind,
    PathEntry,
    UncoveredReason,
)

MARK_BYTES = 8
HEADER_BYTES = 64
SEGMENT_HEADER_BYTES = 16
_SEGMENT_MAGIC = b"HFSEG\0\0\1"  # the last byte is the version of the format
_HEAD = Struct("<8sIBBxxQQ32s")
_CHECKED = Struct("<BBxxQQ32s")
_CHECKED_FROM = HEADER_BYTES - _CHECKED.size
assert _HEAD.size == HEADER_BYTES


class ObjectKind(IntEnum):
    """What an object is; each sort is hashed in a context of its own."""

    BLOB = 1
    PIECES = 2
    TREE = 3
    CHECKPOINT = 4
    PRUNED = 5  # the names of checkpoints that count no more
    BUNDLE = 6  # small files; its name is made of theirs


class RecordCodec(IntEnum):
    """How the bytes of an object are stored."""

    RAW = 0
    ZSTD = 1


_CONTEXT = {kind: f"holdfast workbench 2026 {kind.name.lower()}" for kind in ObjectKind}


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """What stands before the bytes of an object."""

    kind: ObjectKind
    codec: RecordCodec
    raw_bytes: int
    stored_bytes: int
    name: bytes
    crc: int


def name_of(kind: ObjectKind, data: bytes) -> bytes:
    """The name of an object: the same for the same bytes, and for no others of any sort."""
    if kind is ObjectKind.BLOB:
        return blake3(data).digest()
    return blake3(data, derive_key_context=_CONTEXT[kind]).digest()


def names_in(data: bytes) -> list[bytes]:
    """The names that an object consists of, of the sorts that consist of names."""
    return [data[at : at + CONTENT_ID_BYTES] for at in range(0, len(data), CONTENT_ID_BYTES)]


def encode_segment_header(mark: bytes) -> bytes:
    """What a segment begins with."""
    assert len(mark) == MARK_BYTES
    return _SEGMENT_MAGIC + mark


def decode_segment_header(data: bytes) -> bytes | None:
    """The mark of a segment; None when this is not the head of one that we can read."""
    if len(data) < SEGMENT_HEADER_BYTES or not data.startswith(_SEGMENT_MAGIC):
        return None
    return data[len(_SEGMENT_MAGIC) : SEGMENT_HEADER_BYTES]


def encode_record_header(
    mark: bytes, kind: ObjectKind, codec: RecordCodec, *, name: bytes, raw_bytes: int, stored: bytes
) -> bytes:
    """What stands before `stored` in a segment."""
    checked = _CHECKED.pack(kind, codec, raw_bytes, len(stored), name)
    crc = zlib.crc32(stored, zlib.crc32(checked))
    return b"%b%b%b" % (mark, crc.to_bytes(4, "little"), checked)


def decode_record_header(data: bytes, mark: bytes) -> RecordHeader | None:
    """Read the head of a record; None when none of this segment can begin so."""
    if len(data) < HEADER_BYTES or not data.startswith(mark):
        return None
    _, crc, kind, codec, raw_bytes, stored_bytes, name = _HEAD.unpack_from(data)
    known, packing = _KINDS.get(kind), _CODECS.get(codec)
    if known is None or packing is None:
        return None
    return RecordHeader(known, packing, raw_bytes, stored_bytes, name, crc)


def is_intact(head_bytes: bytes, head: RecordHeader, stored: bytes) -> bool:
    """Whether the bytes after a head are the ones that were written with it."""
    if len(stored) != head.stored_bytes:
        return False
    return zlib.crc32(stored, zlib.crc32(head_bytes[_CHECKED_FROM:HEADER_BYTES])) == head.crc


_KINDS = {int(kind): kind for kind in ObjectKind}
_CODECS = {int(codec): codec for codec in RecordCodec}


SMALL_BYTES_MAX = 12 * 2**10
"""What is larger is stored by itself: it has most in common with itself."""
BUNDLE_BYTES = 96 * 2**10
"""So much is put together: whoever reads one file reads all of it, and a damage spoils all."""

_LENGTH = Struct("<I")
_ENTRY_BYTES = _LENGTH.size + CONTENT_ID_BYTES


def encode_bundle(files: Mapping[bytes, bytes]) -> bytes:
    """Write files, each by the name of its content."""
    lengths = map(_LENGTH.pack, map(len, files.values()))
    return b"".join((_LENGTH.pack(len(files)), *lengths, *files, *files.values()))


def decode_bundle(data: bytes) -> dict[bytes, bytes]:
    """Read what `encode_bundle` wrote; raise ValueError when nobody could have."""
    count = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else 0
    names_at = _LENGTH.size * (count + 1)
    begin = _LENGTH.size + _ENTRY_BYTES * count
    if len(data) < begin:
        raise ValueError("this is too short for a bundle")
    lengths = [length for (length,) in _LENGTH.iter_unpack(data[_LENGTH.size : names_at])]
    ends = list(accumulate(lengths, initial=begin))
    if ends[-1] != len(data):
        raise ValueError("this bundle has not the length that it says")
    starts = range(names_at, begin, CONTENT_ID_BYTES)
    names = (data[start : start + CONTENT_ID_BYTES] for start in starts)
    return dict(zip(names, (data[one:next] for one, next in pairwise(ends)), strict=True))


def record_shares(lengths: Sequence[int], record_bytes: int) -> list[int]:
    """How much of a record each file of it takes: by its length, and all of them take all of it."""
    ends = list(accumulate((_ENTRY_BYTES + length for length in lengths), initial=0))
    return [
        next * record_bytes // ends[-1] - one * record_bytes // ends[-1]
        for one, next in pairwise(ends)
    ]


_FORM = b"\1"
_ROW = Struct("<HBHQqII")
_COUNTS = Struct("<QQ")
_XATTR = Struct("<HI")
_NO_NAMES = {b"", b".", b".."}


class NodeKind(IntEnum):
    """What a name in a kept directory stands for."""

    FILE = 1
    DIRECTORY = 2
    LINK = 3
    UNCOVERED = 4


_NODE_KINDS = {int(kind): kind for kind in NodeKind}  # several times as fast as to ask the enum


class Totals(NamedTuple):
    """What is in a tree, all told."""

    files: int = 0
    size: int = 0
    uncovered: int = 0


class Node(NamedTuple):
    """One name in a kept directory; of a directory the size is that of all files below it."""

    name: bytes
    kind: NodeKind
    mode: int
    size: int
    mtime_ns: int
    detail: bytes
    xattrs: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def object(self) -> bytes:
        """The name of the object that holds its content: of a file or a directory."""
        return self.detail[:CONTENT_ID_BYTES]

    @property
    def reason(self) -> UncoveredReason:
        """Why it is not covered."""
        assert self.kind is NodeKind.UNCOVERED
        return UncoveredReason(self.detail.decode())

    @property
    def totals(self) -> Totals:
        """What it adds to the directory that it is in."""
        if self.kind is NodeKind.DIRECTORY:
            files, uncovered = _COUNTS.unpack_from(self.detail, CONTENT_ID_BYTES)
            return Totals(files, self.size, uncovered)
        if self.kind is NodeKind.FILE:
            return Totals(1, self.size)
        return Totals(uncovered=int(self.kind is NodeKind.UNCOVERED))

    def entry(self) -> PathEntry:
        """What stands at its path, for whoever compares and plans; it must be covered."""
        return PathEntry(
            _KIND_OF[self.kind],
            self.mode,
            xattrs=self.xattrs,
            size=self.size,
            mtime_ns=self.mtime_ns,
            content=self.object if self.kind is NodeKind.FILE else b"",
            target=self.detail if self.kind is NodeKind.LINK else b"",
        )


_KIND_OF = {
    NodeKind.FILE: EntryKind.FILE,
    NodeKind.DIRECTORY: EntryKind.DIRECTORY,
    NodeKind.LINK: EntryKind.LINK,
}


def uncovered(name: bytes, reason: UncoveredReason) -> Node:
    """A name that is not covered, with the reason."""
    return Node(name, NodeKind.UNCOVERED, 0, 0, 0, reason.encode())


def directory_detail(tree: bytes, totals: Totals) -> bytes:
    """The detail of a directory whose tree has this name."""
    return tree + _COUNTS.pack(totals.files, totals.uncovered)


def totals_of(nodes: Iterable[Node]) -> Totals:
    """What is in a directory and below it: the sum of `totals`, in the time of a first look."""
    files = size = missing = 0
    for node in nodes:
        kind = node.kind
        if kind is NodeKind.FILE:
            files += 1
            size += node.size
        elif kind is NodeKind.DIRECTORY:
            files_below, missing_below = _COUNTS.unpack_from(node.detail, CONTENT_ID_BYTES)
            files += files_below
            size += node.size
            missing += missing_below
        elif kind is NodeKind.UNCOVERED:
            missing += 1
    return Totals(files, size, missing)


def encode_tree(nodes: Iterable[Node]) -> bytes:
    """Write a directory; whatever the order of its nodes, the same one gives the same bytes."""
    parts = [_FORM]
    for name, kind, mode, size, mtime_ns, detail, xattrs in sorted(nodes):
        spelled = _encode_xattrs(xattrs) if xattrs else b""
        head = _ROW.pack(len(name), kind, mode, size, mtime_ns, len(detail), len(spelled))
        parts += (head, name, detail, spelled)
    return b"".join(parts)


def decode_tree(data: bytes) -> tuple[Node, ...]:
    """Read what `encode_tree` wrote; raise ValueError with the reason when nobody could have."""
    if data[:1] != _FORM:
        raise ValueError("it is of a form that is not known here")
    nodes: list[Node] = []
    at, before = 1, b""
    try:
        while at < len(data):
            node, at = _decode_row(data, at)
            if node.name <= before:
                raise ValueError("its names are not in order")
            before = node.name
            nodes.append(node)
    except error as cause:
        raise ValueError("it ends in the middle") from cause
    if at != len(data):
        raise ValueError("it ends in the middle")
    return tuple(nodes)


def _decode_row(data: bytes, at: int) -> tuple[Node, int]:
    name_bytes, kind, mode, size, mtime_ns, detail_bytes, xattrs_bytes = _ROW.unpack_from(data, at)
    at += _ROW.size
    name = data[at : at + name_bytes]
    if name in _NO_NAMES or b"/" in name or b"\0" in name:
        raise ValueError("a name in it is not one that a directory can hold")
    at += name_bytes
    detail = data[at : at + detail_bytes]
    at += detail_bytes
    xattrs = _decode_xattrs(data[at : at + xattrs_bytes]) if xattrs_bytes else ()
    known = _NODE_KINDS.get(kind)
    if known is None:
        raise ValueError("it holds something of a sort that is not known here")
    return Node(name, known, mode, size, mtime_ns, detail, xattrs), at + xattrs_bytes


def _encode_xattrs(xattrs: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join(_XATTR.pack(len(name), len(value)) + name + value for name, value in xattrs)


def _decode_xattrs(data: bytes) -> tuple[tuple[bytes, bytes], ...]:
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(data):
        name_bytes, value_bytes = _XATTR.unpack_from(data, at)
        at += _XATTR.size
        name, value = data[at : at + name_bytes], data[at + name_bytes :][:value_bytes]
        found.append((name, value))
        at += name_bytes + value_bytes
    if at != len(data):
        raise ValueError("its attributes end in the middle")
    return tuple(found)


PIECE_BYTES = 2**20
WHOLE_BYTES_MAX = 8 * 2**20  # what is larger is cut

Put = Callable[[ObjectKind, bytes], bytes]
"""Takes an object and gives its name."""


def split_content(data: Iterable[bytes], put: Put) -> tuple[bytes, int]:
    """Put a content that comes in parts of any length; return its name and how long it is."""
    held: list[bytes] = []
    names: list[bytes] = []
    size = 0
    for piece in _even(data):
        size += len(piece)
        held.append(piece)
        if size > WHOLE_BYTES_MAX:
            names += [put(ObjectKind.BLOB, one) for one in held]
            held.clear()
    if names:
        return put(ObjectKind.PIECES, b"".join(names)), size
    return put(ObjectKind.BLOB, b"".join(held)), size


def _even(data: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut evenly."""
    rest = b""
    for part in data:
        rest = rest + part if rest else part
        at = 0
        while len(rest) - at >= PIECE_BYTES:
            yield rest[at : at + PIECE_BYTES]
            at += PIECE_BYTES
        rest = rest[at:]
    if rest:
        yield rest


# How a checkpoint is written as an object.

PREFIX = "cp"


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Write a checkpoint."""
    return msgspec.json.encode(checkpoint)


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Read what `encode_checkpoint` wrote; raise ValueError with the reason if nobody has."""
    try:
        kept = msgspec.json.decode(data, type=Checkpoint)
        check_id(kept.id, PREFIX)
    except (msgspec.DecodeError, IdInvalid) as error:
        raise ValueError(str(error)) from error
    if len(kept.tree) != CONTENT_ID_BYTES:
        raise ValueError("it names no tree")
    return kept
