"""Scan selected paths and merge the result into a known tree.

Each path is examined by itself. Where the disk has a directory and the known tree has none, all of
it is scanned, so that no entry can be missed. Sandbox placeholders count as absent; a placeholder
directory that exists in the project by now takes the project's metadata.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

from holdfast.confine import is_stand_in
from holdfast.workbench.coverage import Coverage, uncovered_reason
from holdfast.workbench.diff.tree_changes import TouchedTree
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.model import UncoveredReason
from holdfast.workbench.objects.formats import (
    Node,
    NodeKind,
    Totals,
    directory_detail,
    totals_of,
    uncovered,
)
from holdfast.workbench.objects.index import DirectoryRecord
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.scan.file_content import raise_resource_error, read_node, read_xattrs
from holdfast.workbench.scan.scanner import GONE, OPEN_DIRECTORY, TreeScanner
from holdfast.workbench.scan.stat_cache import BLANK, decode_stats, encode_stats, stat_line


class _DirectoryState(NamedTuple):
    """The current directory, and its nodes and stat records at the last partial scan."""

    descriptor: int
    path: bytes
    was: dict[bytes, bytes]
    nodes: dict[bytes, Node]

    def way(self, name: bytes) -> bytes:
        return self.path + b"/" + name if self.path else name

    def old(self, name: bytes, line: bytes) -> Node | None:
        """Return the cached node of a name if its stat record is unchanged."""
        return self.nodes.get(name) if self.was.get(name) == line else None


class PartialScan:
    """Scan of touched paths; `whole` scans directories that were replaced completely."""

    def __init__(
        self, objects: Objects, whole: TreeScanner, *, origin: str, coverage: Coverage
    ) -> None:
        self._objects = objects
        self._whole = whole
        self._origin = f"graft {origin} {coverage.mark}"
        self._coverage = coverage
        self._fresh: list[tuple[bytes, DirectoryRecord]] = []

    def run(self, root: int, over: bytes | None, ways: TouchedTree) -> tuple[bytes, Totals]:
        """Return the tree `over`, or an empty one, updated at the touched paths below `root`."""
        nodes = {} if over is None else self._nodes(over)
        if nodes is not None:
            return self._directory(root, b"", nodes, ways)
        looked = self._whole.beneath(root, b"")
        return looked.tree, looked.totals

    def note(self) -> None:
        """Write the results to the stat cache."""
        self._objects.rows.stat_cache.note(self._origin, self._fresh)
        self._whole.note()

    def _directory(
        self, descriptor: int, path: bytes, over: dict[bytes, Node], way: TouchedTree
    ) -> tuple[bytes, Totals]:
        here = self._here(descriptor, path)
        nodes, lines = dict(over), dict[bytes, bytes]()
        for name, below in way.below.items():
            node, line = self._name(here, name, over.get(name), below)
            nodes.pop(name, None)
            if node is not None:
                nodes[name] = node
                lines[name] = line
        tree, totals = self._objects.put_tree(nodes.values()), totals_of(nodes.values())
        stats = encode_stats(list(lines), list(lines.values()))
        self._fresh.append((path, DirectoryRecord(tree, totals, stats, is_racy=False)))
        return tree, totals

    def _name(
        self, here: _DirectoryState, name: bytes, over: Node | None, way: TouchedTree
    ) -> tuple[Node | None, bytes]:
        """Return the current node of a name, and its stat line if that can be trusted."""
        path = here.way(name)
        try:
            status = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
        except OSError as error:
            return _absent(error, name, path), BLANK
        is_other_mount = stat.S_ISDIR(status.st_mode) and self._whole.is_other_mount(path, status)
        reason = uncovered_reason(
            path, status.st_mode, is_other_mount=is_other_mount, coverage=self._coverage
        )
        if reason is not None:
            return uncovered(name, reason), BLANK
        if stat.S_ISDIR(status.st_mode):
            return self._entered(here, name, over, way), BLANK
        if is_stand_in(os.fsdecode(path), status.st_mode, status.st_size):
            return None, BLANK
        line = stat_line(status)
        if (old := here.old(name, line)) is not None:
            return old, line
        node, found = read_node(self._objects, here.descriptor, name, status)
        is_sure = node is not None and self._whole.is_sure(node, found)
        return node, stat_line(found) if is_sure else BLANK

    def _entered(
        self, here: _DirectoryState, name: bytes, over: Node | None, way: TouchedTree
    ) -> Node | None:
        path = here.way(name)
        try:
            descriptor = os.open(name, OPEN_DIRECTORY, dir_fd=here.descriptor)
            try:
                status = os.fstat(descriptor)
                is_ours = is_stand_in(os.fsdecode(path), status.st_mode, 0)
                if is_ours and not os.listdir(descriptor):  # the usual case
                    return None
                tree, totals = self._inside(descriptor, path, over, way)
                xattrs = read_xattrs(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            return _absent(error, name, path)
        mode, detail = stat.S_IMODE(status.st_mode), directory_detail(tree, totals)
        # The project has got the directory by now: the draft takes its metadata, not the
        # placeholder's.
        if is_ours and over is not None and over.kind is NodeKind.DIRECTORY:
            return over._replace(size=totals.size, detail=detail)
        if is_ours and not self._objects.tree(tree):
            return None
        return Node(name, NodeKind.DIRECTORY, mode, totals.size, status.st_mtime_ns, detail, xattrs)

    def _inside(
        self, descriptor: int, path: bytes, over: Node | None, way: TouchedTree
    ) -> tuple[bytes, Totals]:
        if not way.is_whole and over is not None and over.kind is NodeKind.DIRECTORY:
            if not way.below:
                return over.object, over.totals
            nodes = self._nodes(over.object)
            if nodes is not None:
                return self._directory(descriptor, path, nodes, way)
        looked = self._whole.beneath(descriptor, path)
        return looked.tree, looked.totals

    def _here(self, descriptor: int, path: bytes) -> _DirectoryState:
        known = self._objects.rows.stat_cache.known(self._origin, path)
        nodes = None if known is None else self._nodes(known.tree)
        with suppress(ValueError):  # damaged index page
            if known is not None and nodes is not None:
                return _DirectoryState(descriptor, path, decode_stats(known.stats), nodes)
        return _DirectoryState(descriptor, path, {}, {})

    def _nodes(self, tree: bytes) -> dict[bytes, Node] | None:
        """Return the entries of a stored directory; None if it is damaged and must be scanned."""
        try:
            return {node.name: node for node in self._objects.tree(tree)}
        except (ObjectMissing, ObjectDamaged):
            return None


def _absent(error: OSError, name: bytes, path: bytes) -> Node | None:
    raise_resource_error(error, path)
    return None if error.errno in GONE else uncovered(name, UncoveredReason.UNREADABLE)
