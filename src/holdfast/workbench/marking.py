"""Find out which objects are needed, and how much room they take."""

from __future__ import annotations

from collections import Counter

from holdfast.workbench.core.cutting import WHOLE_BYTES_MAX
from holdfast.workbench.core.record import names_in
from holdfast.workbench.core.tree import Node, NodeSort
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.objects import Objects
from holdfast.workbench.segment_files import Location


class Marking:
    """The objects that some checkpoints consist of; of each segment, how many bytes they take."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.names: set[bytes] = set()
        self.bytes_in: Counter[int] = Counter()

    @property
    def room(self) -> int:
        """How much room all of them take."""
        return self.bytes_in.total()

    def add(self, name: bytes, tree: bytes) -> dict[bytes, Location]:
        """Mark a checkpoint and all that it consists of; return what was not marked before."""
        added: dict[bytes, Location] = {}
        self._mark(name, added)
        waiting = [tree] if tree not in self.names else []
        while waiting:
            directory = waiting.pop()
            self._mark(directory, added)
            for node in self._nodes(directory):
                if node.object in self.names:
                    continue
                if node.sort is NodeSort.DIRECTORY:
                    waiting.append(node.object)
                elif node.sort is NodeSort.FILE:
                    self._mark_content(node, added)
        return added

    def take_back(self, added: dict[bytes, Location]) -> None:
        """Undo the last marking."""
        self.names -= added.keys()
        for location in added.values():
            self.bytes_in[location.segment] -= location.room

    def _mark_content(self, node: Node, added: dict[bytes, Location]) -> None:
        self._mark(node.object, added)
        if node.size > WHOLE_BYTES_MAX:
            for piece in self._pieces(node.object):
                self._mark(piece, added)

    def _mark(self, name: bytes, added: dict[bytes, Location]) -> None:
        location = self._objects.location(name)
        if location is not None and name not in self.names:
            self.names.add(name)
            self.bytes_in[location.segment] += location.room
            added[name] = location

    def _nodes(self, tree: bytes) -> tuple[Node, ...]:
        try:
            return self._objects.tree(tree)
        except (ObjectMissing, ObjectDamaged):  # what was below it cannot be reached by anybody
            return ()

    def _pieces(self, name: bytes) -> list[bytes]:
        try:
            return names_in(self._objects.get(name)[1])
        except (ObjectMissing, ObjectDamaged):
            return []
