"""Objects by name: what is put is kept once, what is read is checked.

A large file is cut into pieces of a fixed length, so that a small change of it costs one piece; its
object is the list of their names.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from holdfast.workbench.core.record import ObjectSort, name_of
from holdfast.workbench.core.tree import Node, decode_tree, encode_tree
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.index import Rows
from holdfast.workbench.model import CONTENT_ID_BYTES
from holdfast.workbench.segments import Location, Segments


class Objects:
    """The objects of a store within one transaction of its index."""

    def __init__(self, segments: Segments, rows: Rows) -> None:
        self._segments = segments
        self.rows = rows
        self._fresh: dict[bytes, Location] = {}

    def put(self, sort: ObjectSort, data: bytes) -> bytes:
        """Keep an object, unless it is there already; return its name."""
        name = name_of(sort, data)
        if self._find(name) is None:
            self._fresh[name] = self._segments.append(sort, name, data)
        return name

    def put_pieces(self, pieces: Iterable[bytes]) -> bytes:
        """Keep a large file that comes in pieces; return its name."""
        names = [self.put(ObjectSort.BLOB, piece) for piece in pieces]
        return self.put(ObjectSort.PIECES, b"".join(names))

    def put_tree(self, nodes: Iterable[Node]) -> bytes:
        """Keep a directory; return its name."""
        return self.put(ObjectSort.TREE, encode_tree(nodes))

    def get(self, name: bytes) -> tuple[ObjectSort, bytes]:
        """An object, checked; raise ObjectMissing or ObjectDamaged."""
        location = self._find(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._segments.read(name, location)

    def sort_of(self, name: bytes) -> ObjectSort:
        """What an object is, without reading it all; raise ObjectMissing or ObjectDamaged."""
        location = self._find(name)
        if location is None:
            raise ObjectMissing(object=name.hex())
        return self._segments.head(name, location).sort

    def content(self, name: bytes) -> Generator[bytes]:
        """The content of a file, piece by piece."""
        sort, data = self.get(name)
        if sort is not ObjectSort.PIECES:
            yield data
            return
        for at in range(0, len(data), CONTENT_ID_BYTES):
            yield self.get(data[at : at + CONTENT_ID_BYTES])[1]

    def tree(self, name: bytes) -> tuple[Node, ...]:
        """The names in a kept directory."""
        _, data = self.get(name)
        try:
            return decode_tree(data)
        except ValueError as error:
            location = self._find(name)
            assert location is not None
            path = str(self._segments.path(location.segment))
            raise ObjectDamaged(
                object=name.hex(), path=path, offset=location.offset, reason=str(error)
            ) from error

    def commit(self) -> None:
        """Make all that was put durable, then take note of where it is."""
        self._segments.commit()
        self.rows.add_objects(self._fresh)
        self.rows.note_seen(self._segments.committed)

    def _find(self, name: bytes) -> Location | None:
        return self._fresh.get(name) or self.rows.find(name)
