"""How a directory is written as an object: a row for each name, in one spelling only.

    form 1 | rows; a row:
    name length 2 | sort 1 | mode 2 | size 8 | mtime 8 | detail length 4 | xattrs length 4 |
    name | detail | xattrs, each: name length 2 | value length 4 | name | value

The detail of a file is the name of its content, that of a link its target, that of what is not
covered the reason; that of a directory is the name of its tree and how many files and uncovered
paths are below it, so that counts of a whole tree need no walk.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from holdfast.workbench.model import CONTENT_ID_BYTES, Entry, Lack, Sort

_FORM = b"\1"
_ROW = Struct("<HBHQqII")
_COUNTS = Struct("<QQ")
_XATTR = Struct("<HI")
_NO_NAMES = {b"", b".", b".."}


class NodeSort(IntEnum):
    """What a name in a kept directory stands for."""

    FILE = 1
    DIRECTORY = 2
    LINK = 3
    UNCOVERED = 4


_NODE_SORTS = {int(sort): sort for sort in NodeSort}  # several times as fast as to ask the enum


class Totals(NamedTuple):
    """What is in a tree, all told."""

    files: int = 0
    size: int = 0
    uncovered: int = 0


class Node(NamedTuple):
    """One name in a kept directory; of a directory the size is that of all files below it."""

    name: bytes
    sort: NodeSort
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
    def lack(self) -> Lack:
        """Why it is not covered."""
        assert self.sort is NodeSort.UNCOVERED
        return Lack(self.detail.decode())

    @property
    def totals(self) -> Totals:
        """What it adds to the directory that it is in."""
        if self.sort is NodeSort.DIRECTORY:
            files, uncovered = _COUNTS.unpack_from(self.detail, CONTENT_ID_BYTES)
            return Totals(files, self.size, uncovered)
        if self.sort is NodeSort.FILE:
            return Totals(1, self.size)
        return Totals(uncovered=int(self.sort is NodeSort.UNCOVERED))

    def entry(self) -> Entry:
        """What stands at its path, for whoever compares and plans; it must be covered."""
        return Entry(
            _SORT_OF[self.sort],
            self.mode,
            xattrs=self.xattrs,
            size=self.size,
            mtime_ns=self.mtime_ns,
            content=self.object if self.sort is NodeSort.FILE else b"",
            target=self.detail if self.sort is NodeSort.LINK else b"",
        )


_SORT_OF = {
    NodeSort.FILE: Sort.FILE,
    NodeSort.DIRECTORY: Sort.DIRECTORY,
    NodeSort.LINK: Sort.LINK,
}


def uncovered(name: bytes, lack: Lack) -> Node:
    """A name that is not covered, with the reason."""
    return Node(name, NodeSort.UNCOVERED, 0, 0, 0, lack.encode())


def directory_detail(tree: bytes, totals: Totals) -> bytes:
    """The detail of a directory whose tree has this name."""
    return tree + _COUNTS.pack(totals.files, totals.uncovered)


def totals_of(nodes: Iterable[Node]) -> Totals:
    """What is in a directory and below it: the sum of `totals`, in the time of a first look."""
    files = size = missing = 0
    for node in nodes:
        sort = node.sort
        if sort is NodeSort.FILE:
            files += 1
            size += node.size
        elif sort is NodeSort.DIRECTORY:
            files_below, missing_below = _COUNTS.unpack_from(node.detail, CONTENT_ID_BYTES)
            files += files_below
            size += node.size
            missing += missing_below
        elif sort is NodeSort.UNCOVERED:
            missing += 1
    return Totals(files, size, missing)


def encode_tree(nodes: Iterable[Node]) -> bytes:
    """Write a directory; whatever the order of its nodes, the same one gives the same bytes."""
    parts = [_FORM]
    for name, sort, mode, size, mtime_ns, detail, xattrs in sorted(nodes):
        spelled = _encode_xattrs(xattrs) if xattrs else b""
        head = _ROW.pack(len(name), sort, mode, size, mtime_ns, len(detail), len(spelled))
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
    name_bytes, sort, mode, size, mtime_ns, detail_bytes, xattrs_bytes = _ROW.unpack_from(data, at)
    at += _ROW.size
    name = data[at : at + name_bytes]
    if name in _NO_NAMES or b"/" in name or b"\0" in name:
        raise ValueError("a name in it is not one that a directory can hold")
    at += name_bytes
    detail = data[at : at + detail_bytes]
    at += detail_bytes
    xattrs = _decode_xattrs(data[at : at + xattrs_bytes]) if xattrs_bytes else ()
    known = _NODE_SORTS.get(sort)
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
