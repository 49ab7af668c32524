"""Objects by name: what is put is kept once, what is read is checked.

A large file is cut into pieces of a fixed length, so that a small change of it costs one piece; its
object is the list of their names.
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
_NODES_MAX = 20_000  # so many names of directories that were read are remembered
_CHECKPOINTS_MAX = 100


class ObjectCache:
    """What was read a moment ago, by the name of its object, which says all of it."""

    def __init__(self) -> None:
        self._trees: dict[bytes, tuple[Node, ...]] = {}
        self._count = 0
        self.checkpoints: dict[bytes, Checkpoint] = {}

    def get(self, name: bytes) -> tuple[Node, ...] | None:
        """A directory that was read before, if it is remembered."""
        return self._trees.get(name)

    def add(self, name: bytes, nodes: tuple[Node, ...]) -> None:
        """Remember a directory; when there are too many names, all others are forgotten."""
        self._count += len(nodes) + 1
        if self._count > _NODES_MAX:
            self._trees.clear()
            self._count = len(nodes) + 1
        self._trees[name] = nodes


class Objects:
    """The objects of a store within one transaction of its index.

    What is `damaged` counts as not there: it is met by reading, and put anew by whoever has it.
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
        """Keep an object, unless it is there already; return its name."""
        name = name_of(kind, data)
        if name not in self._unbundled and self.location(name) is None:
            self._add(kind, name, data)
        return name

    def put_pieces(self, pieces: Iterable[bytes]) -> bytes:
        """Keep a large file that comes in pieces; return its name."""
        names: list[bytes] = []
        for piece in pieces:
            names.append(self.put(ObjectKind.BLOB, piece))
            if len(names) % _PROGRESS_PIECES == 0:
                self.on_progress(WorkProgress("MiB of a large file", len(names)))
        return self.put(ObjectKind.PIECES, b"".join(names))

    def put_tree(self, nodes: Iterable[Node]) -> bytes:
        """Keep a directory; return its name."""
        nodes = tuple(sorted(nodes))
        name = self.put(ObjectKind.TREE, encode_tree(nodes))
        self._cache.add(name, nodes)
        return name

    def get(self, name: bytes) -> tuple[ObjectKind, bytes]:
        """An object, checked; raise ObjectMissing or ObjectDamaged."""
        location = self.location(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._read(name, location)

    def each(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, ObjectKind, bytes]]:
        """Do what `get` does for many, in order; where they are is asked for all at once."""
        located = self.rows.find_all(names)
        for name in names:
            location = located.get(name)
            if location is None or name in self.damaged or name in self._fresh:
                yield name, *self.get(name)
            else:
                yield name, *self._read(name, location)

    def kind_of(self, name: bytes) -> ObjectKind:
        """What an object is, without reading it all; raise ObjectMissing or ObjectDamaged."""
        location = self.location(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._segments.kind_of(name, location)

    def tree(self, name: bytes) -> tuple[Node, ...]:
        """The names in a kept directory; read once, as long as it is there."""
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
        """A checkpoint; read once, as long as it is there. Raises ValueError if it is none."""
        known = self._cache.checkpoints.get(name)
        if known is not None and self.location(name) is not None:
            return known
        made = decode_checkpoint(self.get(name)[1])
        if len(self._cache.checkpoints) >= _CHECKPOINTS_MAX:
            self._cache.checkpoints.clear()
        self._cache.checkpoints[name] = made
        return made

    def commit(self) -> None:
        """Make all that was put durable, then take note of where it is."""
        self._write_bundle()
        self._segments.commit()
        if self.damaged:
            self.forget_damaged()
        for number in self._left:
            self.rows.leave(number)
        self.rows.add_objects(self._fresh)
        committed = self._segments.committed.items()
        self.rows.note_seen({one: end for one, end in committed if one not in self._left})

    def forget_damaged(self) -> None:
        """Let what turned out to be spoiled be put anew by the next who has it."""
        self.rows.forget_objects(self.damaged)
        if self.damaged - self._fresh.keys():
            self.rows.stat_cache.forget_all()

    def leave(self, number: int, needed: Container[bytes]) -> None:
        """Put what is needed of a segment once more; from the commit on it is needed no longer."""
        for _, there in groupby(self.rows.objects_in(number), key=lambda one: one[1].offset):
            some = [one for one in there if one[0] in needed]
            try:
                if some:
                    self._add_again(some)
            except ObjectDamaged:
                self.damaged.update(name for name, _ in some)
        self._left.append(number)

    def location(self, name: bytes) -> Location | None:
        """Where an object is; None if it is not there, or spoiled."""
        if name in self._unbundled:
            self._write_bundle()
        fresh = self._fresh.get(name)
        if fresh is not None or name in self.damaged:
            return fresh
        return self.rows.find(name)

    def _add(self, kind: ObjectKind, name: bytes, data: bytes) -> None:
        """Keep an object: a small file with others that come, all else by itself."""
        if kind is ObjectKind.BLOB and len(data) <= SMALL_BYTES_MAX:
            self._unbundled[name] = data
            self._unbundled_bytes += len(data)
            if self._unbundled_bytes >= BUNDLE_BYTES:
                self._write_bundle()
            return
        if kind is ObjectKind.CHECKPOINT:  # what it consists of stands before it
            self._write_bundle()
        self._fresh[name] = self._segments.append(kind, name, data)

    def _add_again(self, some: Sequence[tuple[bytes, Location]]) -> None:
        """Keep objects of one record once more: by a copy of it, if they are all of it."""
        first, place = some[0]
        if sum(location.room for _, location in some) == place.record_bytes:
            copy = self._segments.copy(first, place)
            self._fresh |= {name: copy._replace(room=location.room) for name, location in some}
            return
        for name, location in some:
            kind, data = self._segments.read(name, location)
            self._add(kind, name, data)

    def _write_bundle(self) -> None:
        """Have a place for all that is still loose."""
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
        """Let an object count as not there, with all that share its record."""
        self.damaged.add(name)
        if location.is_shared:
            self.damaged.update(self.rows.names_at(location))


def content(name: bytes, get: Callable[[bytes], tuple[ObjectKind, bytes]]) -> Generator[bytes]:
    """The content of a file, piece by piece, as `get` gives them."""
    kind, data = get(name)
    if kind is not ObjectKind.PIECES:
        yield data
        return
    for piece in names_in(data):
        yield get(piece)[1]
