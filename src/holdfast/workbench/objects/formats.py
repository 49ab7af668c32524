"""File formats of the object store: records, bundles, trees and checkpoints. Pure.

Record, in a segment file (little endian):

    mark 8 | crc32 4 | kind 1 | codec 1 | 0 0 | raw length 8 | stored length 8 | name 32 | bytes

The mark is a random sync marker, drawn for each segment and written in its header: file content of
the project cannot imitate a record. The checksum covers all bytes after it. After a torn write a
reader searches for the next mark and accepts a record if its checksum matches. The name is the
BLAKE3 hash of the uncompressed bytes, checked on every read.

Bundle, several small files in one record, so that the compressor sees common text once:

    count 4 | length of each, 4 | name of each, 32 | contents, concatenated

Tree, one directory; its rows are sorted by name, so that equal directories have equal bytes and
hashes:

    version 1 | rows; a row:
    name length 2 | kind 1 | mode 2 | size 8 | mtime 8 | detail length 4 | xattrs length 4 |
    name | detail | xattrs, each: name length 2 | value length 4 | name | value

The detail of a file is the hash of its content, of a symbolic link its target, of an uncovered path
the reason. The detail of a directory is the hash of its tree with the counts of files and uncovered
paths below it, so that totals of a whole tree need no walk.

Content up to 8 MiB is one blob. Larger content is split into 1 MiB pieces and named by the list of
their hashes; the name depends on the bytes alone, not on the chunks in which they were read.
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
# The last byte is the version of the format.
_SEGMENT_MAGIC = b"HFSEG\0\0\1"
_HEAD = Struct("<8sIBBxxQQ32s")
_CHECKED = Struct("<BBxxQQ32s")
_CHECKED_FROM = HEADER_BYTES - _CHECKED.size
assert _HEAD.size == HEADER_BYTES


class ObjectKind(IntEnum):
    """Kind of an object. The enum name is part of the hash context and must not change."""

    BLOB = 1
    PIECES = 2
    TREE = 3
    CHECKPOINT = 4
    PRUNED = 5  # the names of checkpoints that count no more
    BUNDLE = 6  # small files; its name is made of theirs


class RecordCodec(IntEnum):
    RAW = 0
    ZSTD = 1


_CONTEXT = {kind: f"holdfast workbench 2026 {kind.name.lower()}" for kind in ObjectKind}


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """Header of a record: all that precedes its stored bytes."""

    kind: ObjectKind
    codec: RecordCodec
    raw_bytes: int
    stored_bytes: int
    name: bytes
    crc: int


def name_of(kind: ObjectKind, data: bytes) -> bytes:
    """Hash that names an object.

    Kinds are separated by BLAKE3 contexts, so that a tree never equals a blob.
    """
    if kind is ObjectKind.BLOB:
        return blake3(data).digest()
    return blake3(data, derive_key_context=_CONTEXT[kind]).digest()


def names_in(data: bytes) -> list[bytes]:
    """Split the concatenated hashes that a PIECES or PRUNED object consists of."""
    return [data[at : at + CONTENT_ID_BYTES] for at in range(0, len(data), CONTENT_ID_BYTES)]


def encode_segment_header(mark: bytes) -> bytes:
    assert len(mark) == MARK_BYTES
    return _SEGMENT_MAGIC + mark


def decode_segment_header(data: bytes) -> bytes | None:
    """Return the sync mark of a segment; None if the magic or the version differs."""
    if len(data) < SEGMENT_HEADER_BYTES or not data.startswith(_SEGMENT_MAGIC):
        return None
    return data[len(_SEGMENT_MAGIC) : SEGMENT_HEADER_BYTES]


def encode_record_header(
    mark: bytes, kind: ObjectKind, codec: RecordCodec, *, name: bytes, raw_bytes: int, stored: bytes
) -> bytes:
    """Return the header for the bytes in `stored`, with the checksum over both."""
    checked = _CHECKED.pack(kind, codec, raw_bytes, len(stored), name)
    crc = zlib.crc32(stored, zlib.crc32(checked))
    return b"%b%b%b" % (mark, crc.to_bytes(4, "little"), checked)


def decode_record_header(data: bytes, mark: bytes) -> RecordHeader | None:
    """Parse a record header; None if it does not start with the mark or a code is unknown."""
    if len(data) < HEADER_BYTES or not data.startswith(mark):
        return None
    _, crc, kind, codec, raw_bytes, stored_bytes, name = _HEAD.unpack_from(data)
    known, packing = _KINDS.get(kind), _CODECS.get(codec)
    if known is None or packing is None:
        return None
    return RecordHeader(known, packing, raw_bytes, stored_bytes, name, crc)


def is_intact(head_bytes: bytes, head: RecordHeader, stored: bytes) -> bool:
    """Return whether length and checksum of the stored bytes match the header."""
    if len(stored) != head.stored_bytes:
        return False
    return zlib.crc32(stored, zlib.crc32(head_bytes[_CHECKED_FROM:HEADER_BYTES])) == head.crc


_KINDS = {int(kind): kind for kind in ObjectKind}
_CODECS = {int(codec): codec for codec in RecordCodec}


SMALL_BYTES_MAX = 12 * 2**10
"""Larger files get a record of their own: bundling gains little compression for them."""
BUNDLE_BYTES = 96 * 2**10
"""Target size of a bundle: a read decompresses all of it, and damage loses all of it."""

_LENGTH = Struct("<I")
_ENTRY_BYTES = _LENGTH.size + CONTENT_ID_BYTES


def encode_bundle(files: Mapping[bytes, bytes]) -> bytes:
    """Encode files by the hash of their content."""
    lengths = map(_LENGTH.pack, map(len, files.values()))
    return b"".join((_LENGTH.pack(len(files)), *lengths, *files, *files.values()))


def decode_bundle(data: bytes) -> dict[bytes, bytes]:
    """Decode a bundle; raises ValueError if the lengths do not add up."""
    count = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else 0
    names_at = _LENGTH.size * (count + 1)
    begin = _LENGTH.size + _ENTRY_BYTES * count
    if len(data) < begin:
        raise ValueError("the bundle is too short")
    lengths = [length for (length,) in _LENGTH.iter_unpack(data[_LENGTH.size : names_at])]
    ends = list(accumulate(lengths, initial=begin))
    if ends[-1] != len(data):
        raise ValueError("the bundle does not have the length in its header")
    starts = range(names_at, begin, CONTENT_ID_BYTES)
    names = (data[start : start + CONTENT_ID_BYTES] for start in starts)
    return dict(zip(names, (data[one:next] for one, next in pairwise(ends)), strict=True))


def record_shares(lengths: Sequence[int], record_bytes: int) -> list[int]:
    """Divide the size of a record among its files by length; the shares add up to the record."""
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
    """Kind of a directory entry in a stored tree."""

    FILE = 1
    DIRECTORY = 2
    LINK = 3
    UNCOVERED = 4


_NODE_KINDS = {int(kind): kind for kind in NodeKind}


class Totals(NamedTuple):
    """Sums over a tree: files, bytes, uncovered paths."""

    files: int = 0
    size: int = 0
    uncovered: int = 0


class Node(NamedTuple):
    """One name in a stored directory; the size of a directory is the sum of all files below it."""

    name: bytes
    kind: NodeKind
    mode: int
    size: int
    mtime_ns: int
    detail: bytes
    xattrs: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def object(self) -> bytes:
        """Hash of the object with the content of a file or the tree of a directory."""
        return self.detail[:CONTENT_ID_BYTES]

    @property
    def reason(self) -> UncoveredReason:
        """Why the path is not covered; only for UNCOVERED nodes."""
        assert self.kind is NodeKind.UNCOVERED
        return UncoveredReason(self.detail.decode())

    @property
    def totals(self) -> Totals:
        """The node's contribution to the totals of its parent directory."""
        if self.kind is NodeKind.DIRECTORY:
            files, uncovered = _COUNTS.unpack_from(self.detail, CONTENT_ID_BYTES)
            return Totals(files, self.size, uncovered)
        if self.kind is NodeKind.FILE:
            return Totals(1, self.size)
        return Totals(uncovered=int(self.kind is NodeKind.UNCOVERED))

    def entry(self) -> PathEntry:
        """Convert to a `PathEntry`; the node must be covered."""
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
    """Make a node for a path that is not covered."""
    return Node(name, NodeKind.UNCOVERED, 0, 0, 0, reason.encode())


def directory_detail(tree: bytes, totals: Totals) -> bytes:
    """Encode the detail of a directory node."""
    return tree + _COUNTS.pack(totals.files, totals.uncovered)


def totals_of(nodes: Iterable[Node]) -> Totals:
    """Sum of the totals of nodes."""
    # Not a sum of `node.totals`: this runs for every entry of a first scan, and the loop without
    # temporary tuples takes half the time.
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
    """Encode a directory; the result does not depend on the order of the nodes."""
    parts = [_FORM]
    for name, kind, mode, size, mtime_ns, detail, xattrs in sorted(nodes):
        spelled = _encode_xattrs(xattrs) if xattrs else b""
        head = _ROW.pack(len(name), kind, mode, size, mtime_ns, len(detail), len(spelled))
        parts += (head, name, detail, spelled)
    return b"".join(parts)


def decode_tree(data: bytes) -> tuple[Node, ...]:
    """Decode a directory; raises ValueError with the reason if the bytes are not canonical."""
    if data[:1] != _FORM:
        raise ValueError("its format version is unknown")
    nodes: list[Node] = []
    at, before = 1, b""
    try:
        while at < len(data):
            node, at = _decode_row(data, at)
            # A second spelling of the same directory would have a second hash, so order is enforced
            # on decode.
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
        raise ValueError("it contains a name that a directory cannot have")
    at += name_bytes
    detail = data[at : at + detail_bytes]
    at += detail_bytes
    xattrs = _decode_xattrs(data[at : at + xattrs_bytes]) if xattrs_bytes else ()
    known = _NODE_KINDS.get(kind)
    if known is None:
        raise ValueError("it contains an entry of unknown kind")
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
# What is larger is cut.
WHOLE_BYTES_MAX = 8 * 2**20

Put = Callable[[ObjectKind, bytes], bytes]
"""Stores an object and returns its hash."""


def split_content(data: Iterable[bytes], put: Put) -> tuple[bytes, int]:
    """Store content that arrives in chunks of any size; return its hash and its size in bytes."""
    held: list[bytes] = []
    names: list[bytes] = []
    size = 0
    for piece in _even(data):
        size += len(piece)
        held.append(piece)
        # Pieces are held back until the content proves larger than one blob may be.
        if size > WHOLE_BYTES_MAX:
            names += [put(ObjectKind.BLOB, one) for one in held]
            held.clear()
    if names:
        return put(ObjectKind.PIECES, b"".join(names)), size
    return put(ObjectKind.BLOB, b"".join(held)), size


def _even(data: Iterable[bytes]) -> Iterator[bytes]:
    """Re-chunk a stream into pieces of PIECE_BYTES."""
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


PREFIX = "cp"


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    return msgspec.json.encode(checkpoint)


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Decode a checkpoint; raises ValueError with the reason if it is not valid."""
    try:
        kept = msgspec.json.decode(data, type=Checkpoint)
        check_id(kept.id, PREFIX)
    except (msgspec.DecodeError, IdInvalid) as error:
        raise ValueError(str(error)) from error
    if len(kept.tree) != CONTENT_ID_BYTES:
        raise ValueError("its tree is not a hash")
    return kept
