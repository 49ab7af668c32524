"""Objects by hash: stored once, verified on every read.

Large files are split into pieces of fixed size, so that a small change costs one piece. Small files
are collected and written as bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from itertools import groupby

from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.model import Checkpoint, ProgressCallback, WorkProgress, ignore_progress
from holdfast.workbench.objects.formats import (
    BUNDLE_BYTES,
    SMALL_BYTES_MAX,
    Node,
    ObjectKind,
    decode_checkpoint,
    decode_tree,
    encode_tree,
    name_of,
    names_in,
)
from holdfast.workbench.objects.index import IndexTransaction
from holdfast.workbench.objects.segments import Location, Segments

_PROGRESS_PIECES = 32
# Cached directory entries, over all trees.
_NODES_MAX = 20_000
_CHECKPOINTS_MAX = 100


class ObjectCache:
    """Cache of decoded trees and checkpoints.

    Entries never become stale, because a hash names them.
    """

    def __init__(self) -> None:
        self._trees: dict[bytes, tuple[Node, ...]] = {}
        self._count = 0
        self.checkpoints: dict[bytes, Checkpoint] = {}

    def get(self, name: bytes) -> tuple[Node, ...] | None:
        return self._trees.get(name)

    def add(self, name: bytes, nodes: tuple[Node, ...]) -> None:
        """Cache a directory; all other entries are evicted when the cache is full."""
        self._count += len(nodes) + 1
        if self._count > _NODES_MAX:
            self._trees.clear()
            self._count = len(nodes) + 1
        self._trees[name] = nodes


class Objects:
    """Objects of a store within one transaction of its index.

    Objects in `damaged` count as missing, so that the next writer that has their content stores
    them again.
    """

    def __init__(
        self,
        segments: Segments,
        rows: IndexTransaction,
        damaged: set[bytes] | None = None,
        cache: ObjectCache | None = None,
    ) -> None:
        self._segments = segments
        self._cache = cache or ObjectCache()
        self.rows = rows
        self.damaged = set[bytes]() if damaged is None else damaged
        self.on_progress: ProgressCallback = ignore_progress
        self._fresh: dict[bytes, Location] = {}
        self._unbundled: dict[bytes, bytes] = {}
        self._unbundled_bytes = 0
        self._left: list[int] = []

    def put(self, kind: ObjectKind, data: bytes) -> bytes:
        """Store an object unless it exists; return its hash."""
        name = name_of(kind, data)
        if name not in self._unbundled and self.location(name) is None:
            self._add(kind, name, data)
        return name

    def put_pieces(self, pieces: Iterable[bytes]) -> bytes:
        """Store a large file from its pieces; return its hash."""
        names: list[bytes] = []
        for piece in pieces:
            names.append(self.put(ObjectKind.BLOB, piece))
            if len(names) % _PROGRESS_PIECES == 0:
                self.on_progress(WorkProgress("MiB of a large file", len(names)))
        return self.put(ObjectKind.PIECES, b"".join(names))

    def put_tree(self, nodes: Iterable[Node]) -> bytes:
        """Store a directory; return its hash."""
        nodes = tuple(sorted(nodes))
        name = self.put(ObjectKind.TREE, encode_tree(nodes))
        self._cache.add(name, nodes)
        return name

    def get(self, name: bytes) -> tuple[ObjectKind, bytes]:
        """Return kind and bytes of an object; raises ObjectMissing or ObjectDamaged."""
        location = self.location(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._read(name, location)

    def each(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, ObjectKind, bytes]]:
        """Like `get` for many objects, in order, with batched index queries."""
        located = self.rows.find_all(names)
        for name in names:
            location = located.get(name)
            if location is None or name in self.damaged or name in self._fresh:
                yield name, *self.get(name)
            else:
                yield name, *self._read(name, location)

    def kind_of(self, name: bytes) -> ObjectKind:
        """Return the kind of an object without reading all of it.

        Raises ObjectMissing or ObjectDamaged.
        """
        location = self.location(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._segments.kind_of(name, location)

    def tree(self, name: bytes) -> tuple[Node, ...]:
        """Return a stored directory, cached as long as the object exists."""
        known = self._cache.get(name)
        if known is not None and self.location(name) is not None:
            return known
        _, data = self.get(name)
        try:
            nodes = decode_tree(data)
        except ValueError as error:
            location = self.location(name)
            assert location is not None
            self.damaged.add(name)
            path = str(self._segments.path(location.segment))
            raise ObjectDamaged(
                object=name.hex(), path=path, offset=location.offset, reason=str(error)
            ) from error
        self._cache.add(name, nodes)
        return nodes

    def checkpoint(self, name: bytes) -> Checkpoint:
        """Return a checkpoint, cached as long as the object exists.

        Raises ValueError if it is not one.
        """
        known = self._cache.checkpoints.get(name)
        if known is not None and self.location(name) is not None:
            return known
        made = decode_checkpoint(self.get(name)[1])
        if len(self._cache.checkpoints) >= _CHECKPOINTS_MAX:
            self._cache.checkpoints.clear()
        self._cache.checkpoints[name] = made
        return made

    def commit(self) -> None:
        """Make stored objects durable, then index them."""
        self._write_bundle()
        # Order matters: records are durable before the index refers to them. The reverse would
        # leave rows that point at lost bytes after a power loss.
        self._segments.commit()
        if self.damaged:
            self.forget_damaged()
        for number in self._left:
            self.rows.leave(number)
        self.rows.add_objects(self._fresh)
        committed = self._segments.committed.items()
        self.rows.note_seen({one: end for one, end in committed if one not in self._left})

    def forget_damaged(self) -> None:
        """Drop index rows of damaged objects, so that they can be stored again."""
        self.rows.forget_objects(self.damaged)
        if self.damaged - self._fresh.keys():
            self.rows.stat_cache.forget_all()

    def leave(self, number: int, needed: Container[bytes]) -> None:
        """Copy needed objects out of a segment; it can be deleted after the commit."""
        for _, there in groupby(self.rows.objects_in(number), key=lambda one: one[1].offset):
            some = [one for one in there if one[0] in needed]
            try:
                if some:
                    self._add_again(some)
            except ObjectDamaged:
                self.damaged.update(name for name, _ in some)
        self._left.append(number)

    def location(self, name: bytes) -> Location | None:
        """Return the location of an object; None if it is missing or damaged."""
        if name in self._unbundled:
            self._write_bundle()
        fresh = self._fresh.get(name)
        if fresh is not None or name in self.damaged:
            return fresh
        return self.rows.find(name)

    def _add(self, kind: ObjectKind, name: bytes, data: bytes) -> None:
        """Store an object: small files in the pending bundle, others as their own record."""
        if kind is ObjectKind.BLOB and len(data) <= SMALL_BYTES_MAX:
            self._unbundled[name] = data
            self._unbundled_bytes += len(data)
            if self._unbundled_bytes >= BUNDLE_BYTES:
                self._write_bundle()
            return
        if kind is ObjectKind.CHECKPOINT:
            # Its objects must precede it in the segment.
            self._write_bundle()
        self._fresh[name] = self._segments.append(kind, name, data)

    def _add_again(self, some: Sequence[tuple[bytes, Location]]) -> None:
        """Copy objects of one record; the whole record if all of it is needed."""
        first, place = some[0]
        if sum(location.room for _, location in some) == place.record_bytes:
            copy = self._segments.copy(first, place)
            self._fresh |= {name: copy._replace(room=location.room) for name, location in some}
            return
        for name, location in some:
            kind, data = self._segments.read(name, location)
            self._add(kind, name, data)

    def _write_bundle(self) -> None:
        """Write the pending small files."""
        loose, self._unbundled, self._unbundled_bytes = self._unbundled, {}, 0
        if len(loose) == 1:
            ((name, data),) = loose.items()
            self._fresh[name] = self._segments.append(ObjectKind.BLOB, name, data)
        elif loose:
            self._fresh |= self._segments.append_bundle(loose)

    def _read(self, name: bytes, location: Location) -> tuple[ObjectKind, bytes]:
        try:
            return self._segments.read(name, location)
        except ObjectDamaged:
            self._mark_damaged(name, location)
            raise

    def _mark_damaged(self, name: bytes, location: Location) -> None:
        """Treat an object, and all objects in its record, as missing."""
        self.damaged.add(name)
        if location.is_shared:
            self.damaged.update(self.rows.names_at(location))


def content(name: bytes, get: Callable[[bytes], tuple[ObjectKind, bytes]]) -> Generator[bytes]:
    """Yield the content of a file, piece by piece, as read by `get`."""
    kind, data = get(name)
    if kind is not ObjectKind.PIECES:
        yield data
        return
    for piece in names_in(data):
        yield get(piece)[1]
