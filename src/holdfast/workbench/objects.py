"""Objects by name: what is put is kept once, what is read is checked.

A large file is cut into pieces of a fixed length, so that a small change of it costs one piece; its
object is the list of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

from holdfast.workbench.core.keeping import decode_checkpoint
from holdfast.workbench.core.record import ObjectSort, name_of, names_in
from holdfast.workbench.core.tree import Node, decode_tree, encode_tree
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.index import Rows
from holdfast.workbench.model import Checkpoint, News, Progress, quiet
from holdfast.workbench.segment_files import Location
from holdfast.workbench.segments import Segments

_NEWS_PIECES = 32
_NODES_MAX = 20_000  # so many names of directories that were read are remembered
_CHECKPOINTS_MAX = 100


class Remembered:
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

    What is `spoiled` counts as not there: it is met by reading, and put anew by whoever has it.
    """

    def __init__(
        self,
        segments: Segments,
        rows: Rows,
        spoiled: set[bytes] | None = None,
        remembered: Remembered | None = None,
    ) -> None:
        self._segments = segments
        self._remembered = remembered or Remembered()
        self.rows = rows
        self.spoiled = set[bytes]() if spoiled is None else spoiled
        self.news: News = quiet
        self._fresh: dict[bytes, Location] = {}
        self._moved: dict[int, Mapping[bytes, Location]] = {}

    def put(self, sort: ObjectSort, data: bytes) -> bytes:
        """Keep an object, unless it is there already; return its name."""
        name = name_of(sort, data)
        if self.location(name) is None:
            self._fresh[name] = self._segments.append(sort, name, data)
        return name

    def put_pieces(self, pieces: Iterable[bytes]) -> bytes:
        """Keep a large file that comes in pieces; return its name."""
        names: list[bytes] = []
        for piece in pieces:
            names.append(self.put(ObjectSort.BLOB, piece))
            if len(names) % _NEWS_PIECES == 0:
                self.news(Progress("MiB of a large file", len(names)))
        return self.put(ObjectSort.PIECES, b"".join(names))

    def put_tree(self, nodes: Iterable[Node]) -> bytes:
        """Keep a directory; return its name."""
        nodes = tuple(sorted(nodes))
        name = self.put(ObjectSort.TREE, encode_tree(nodes))
        self._remembered.add(name, nodes)
        return name

    def get(self, name: bytes) -> tuple[ObjectSort, bytes]:
        """An object, checked; raise ObjectMissing or ObjectDamaged."""
        location = self.location(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._read(name, location)

    def each(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, ObjectSort, bytes]]:
        """Do what `get` does for many, in order; where they are is asked for all at once."""
        located = self.rows.find_all(names)
        for name in names:
            location = located.get(name)
            if location is None or name in self.spoiled or name in self._fresh:
                yield name, *self.get(name)
            else:
                yield name, *self._read(name, location)

    def sort_of(self, name: bytes) -> ObjectSort:
        """What an object is, without reading it all; raise ObjectMissing or ObjectDamaged."""
        location = self.location(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._segments.head(name, location).sort

    def tree(self, name: bytes) -> tuple[Node, ...]:
        """The names in a kept directory; read once, as long as it is there."""
        known = self._remembered.get(name)
        if known is not None and self.location(name) is not None:
            return known
        _, data = self.get(name)
        try:
            nodes = decode_tree(data)
        except ValueError as error:
            location = self.location(name)
            assert location is not None
            self.spoiled.add(name)
            path = str(self._segments.path(location.segment))
            raise ObjectDamaged(
                object=name.hex(), path=path, offset=location.offset, reason=str(error)
            ) from error
        self._remembered.add(name, nodes)
        return nodes

    def checkpoint(self, name: bytes) -> Checkpoint:
        """A checkpoint; read once, as long as it is there. Raises ValueError if it is none."""
        known = self._remembered.checkpoints.get(name)
        if known is not None and self.location(name) is not None:
            return known
        made = decode_checkpoint(self.get(name)[1])
        if len(self._remembered.checkpoints) >= _CHECKPOINTS_MAX:
            self._remembered.checkpoints.clear()
        self._remembered.checkpoints[name] = made
        return made

    def commit(self) -> None:
        """Make all that was put durable, then take note of where it is."""
        self._segments.commit()
        if self.spoiled:
            self.forget_spoiled()
        for number, copies in self._moved.items():
            self.rows.move_objects(number, copies)
        self.rows.add_objects(self._fresh)
        committed = self._segments.committed.items()
        self.rows.note_seen({one: end for one, end in committed if one not in self._moved})

    def forget_spoiled(self) -> None:
        """Let what turned out to be spoiled be put anew by the next who has it."""
        self.rows.forget_objects(self.spoiled)
        if self.spoiled - self._fresh.keys():
            self.rows.sights.forget_all()

    def move(self, number: int, copies: Mapping[bytes, Location]) -> None:
        """Let the copies of what a segment holds count from the commit on, and the rest no more."""
        self._moved[number] = copies

    def location(self, name: bytes) -> Location | None:
        """Where an object is; None if it is not there, or spoiled."""
        fresh = self._fresh.get(name)
        if fresh is not None or name in self.spoiled:
            return fresh
        return self.rows.find(name)

    def _read(self, name: bytes, location: Location) -> tuple[ObjectSort, bytes]:
        try:
            return self._segments.read(name, location)
        except ObjectDamaged:
            self.spoiled.add(name)
            raise


def content(name: bytes, get: Callable[[bytes], tuple[ObjectSort, bytes]]) -> Generator[bytes]:
    """The content of a file, piece by piece, as `get` gives them."""
    sort, data = get(name)
    if sort is not ObjectSort.PIECES:
        yield data
        return
    for piece in names_in(data):
        yield get(piece)[1]
