"""Put a tree together from two: as it is now, but as it was wherever something was touched.

What either of the two does not cover is not covered in the result: nobody knows what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.workbench.core.changes import Load
from holdfast.workbench.core.touching import Way
from holdfast.workbench.core.tree import Node, NodeSort, Totals, directory_detail, totals_of

Save = Callable[[Iterable[Node]], bytes]
"""Keeps a directory and gives its name."""


def combine(now: bytes, kept: bytes, ways: Way, *, load: Load, save: Save) -> tuple[bytes, Totals]:
    """The tree `now`, except at touched paths, where it is as `kept`; costs what was touched.

    A touched directory is as kept by itself, without what is in it. One that is there no more
    stays as kept if anything below it does.
    """
    nodes = _Combining(load, save).nodes(now, kept, ways)
    return save(nodes), totals_of(nodes)


class _Combining:
    def __init__(self, load: Load, save: Save) -> None:
        self._load = load
        self._save = save

    def nodes(self, now: bytes | None, kept: bytes | None, way: Way) -> list[Node]:
        nodes, old = self._named(now), self._named(kept)
        for name, below in way.below.items():
            node = self._node(nodes.pop(name, None), old.get(name), below)
            if node is not None:
                nodes[name] = node
        return list(nodes.values())

    def _node(self, now: Node | None, kept: Node | None, way: Way) -> Node | None:
        if way.is_whole or (kept is not None and kept.sort is NodeSort.UNCOVERED):
            return kept
        was_directory = kept is not None and kept.sort is NodeSort.DIRECTORY
        if way.is_touched and not was_directory:
            return kept
        if now is not None and now.sort is NodeSort.UNCOVERED:
            return now
        is_directory = now is not None and now.sort is NodeSort.DIRECTORY
        nodes = self.nodes(
            now.object if now is not None and is_directory else None,
            kept.object if kept is not None and was_directory else None,
            way,
        )
        if not way.is_touched and not is_directory and not nodes:
            return now
        itself = kept if way.is_touched or not is_directory else now
        assert itself is not None
        totals = totals_of(nodes)
        detail = directory_detail(self._save(nodes), totals)
        return itself._replace(size=totals.size, detail=detail)

    def _named(self, tree: bytes | None) -> dict[bytes, Node]:
        return {} if tree is None else {node.name: node for node in self._load(tree)}
