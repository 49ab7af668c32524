"""Look at a whole directory, and keep what has changed since it was last looked at.

A full look asks the system about every name, and reads only what differs from the last sight. With
a list of what may have changed, only the directories on the way there are looked at: the list is a
hint of a watcher, so whoever must be certain asks for a full look.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from blake3 import blake3

from holdfast.confine import is_stand_in
from holdfast.nouns import RelativePath
from holdfast.workbench.contents import Xattrs, read_node, read_xattrs, refuse_shortage
from holdfast.workbench.core.coverage import Coverage, lack_of
from holdfast.workbench.core.stat_cache import (
    BLANK,
    RACY_COARSE_NS,
    decode_sight,
    encode_sight,
    is_racy,
    is_same_inode,
    line_of,
)
from holdfast.workbench.core.touching import is_stage, on_the_way_to
from holdfast.workbench.core.tree import (
    Node,
    NodeSort,
    Totals,
    directory_detail,
    totals_of,
    uncovered,
)
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.glancing import glance, hides_mapped_writes
from holdfast.workbench.listing import Seen, mounted_below, seen_in
from holdfast.workbench.model import Lack, News, Progress, quiet
from holdfast.workbench.objects import Objects
from holdfast.workbench.sights import Known

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RETRIED = {Lack.UNREADABLE, Lack.CHANGING}  # no sight shows that they have been mended
_NEWS_NAMES = 1000
_TOKEN_BYTES = 16
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class Looked(NamedTuple):
    """What a directory is now, and whether it differs from what was known of it."""

    tree: bytes
    totals: Totals
    is_changed: bool
    xattrs: Xattrs = ()


@dataclass(slots=True)
class _Here:
    """The directory that we are in: what is there now, and what was there."""

    descriptor: int
    path: bytes
    seen: list[Seen]
    was: dict[bytes, bytes]
    nodes: dict[bytes, Node]

    def way(self, name: bytes) -> bytes:
        """The path of a name here."""
        return self.path + b"/" + name if self.path else name

    def old(self, name: bytes, line: bytes) -> Node | None:
        """What a name was, if nothing shows that it has changed."""
        return self.nodes.get(name) if self.was.get(name) == line else None


class Aim(NamedTuple):
    """What a look is at; `looked_ns` is when it began, and `news` is told how far it has come.

    `hides_mapped_writes` as in `Subject`.
    """

    root: int
    origin: str
    coverage: Coverage
    looked_ns: int
    news: News = quiet
    hides_mapped_writes: bool = False


class Scan:
    """One look at one origin, below the directory that is open as its root."""

    def __init__(self, objects: Objects, aim: Aim) -> None:
        self._objects = objects
        self._sights = objects.rows.sights
        self._root = aim.root
        self._origin = f"{aim.origin} {aim.coverage.mark}"
        self._coverage = aim.coverage
        self._looked_ns = aim.looked_ns
        self._resting_ns = aim.looked_ns - RACY_COARSE_NS  # what changed before is never racy
        self._news = objects.news = aim.news
        self._looked_at = 0
        self._fresh: list[tuple[bytes, Known]] = []
        self._is_renewed = False  # a directory may be another one than the last time
        self._ways: frozenset[bytes] | None = None
        self._device = os.fstat(aim.root).st_dev
        self._mounted = mounted_below(aim.root)
        self._known: dict[bytes, Known] | None = None
        self._hides_mapped_writes = aim.hides_mapped_writes or hides_mapped_writes(aim.root)

    def run(self, dirty: Iterable[RelativePath] | None = None) -> Looked:
        """Look at all of it; with `dirty`, only on the way to those."""
        changed = self._glanced() if dirty is None else [path.raw for path in dirty]
        if changed is not None:
            changed += self._sights.racy(self._origin)
            known = self._sights.known(self._origin, b"")
            if dirty is not None and not changed and known is not None and self._has(known):
                return Looked(known.tree, known.totals, is_changed=False)
            self._ways = on_the_way_to(changed)
        looked = self.beneath(self._root, b"")
        self.note()
        return looked

    def beneath(self, descriptor: int, path: bytes) -> Looked:
        """Look at one directory below the root, with all that is in it."""
        if self._known is None:
            self._known = self._sights.all(self._origin) if self._ways is None else {}
        return self._directory(descriptor, path)

    def note(self) -> None:
        """Take note of what was seen, so that next time only what has changed is read."""
        self._sights.note(self._origin, self._fresh)
        token = self._sights.layout(self._origin)
        if self._is_renewed or not token:
            at = self._looked_ns.to_bytes(8, "little", signed=True)
            token = blake3(token + at).digest(_TOKEN_BYTES)
            self._sights.note_layout(self._origin, token)

    def is_elsewhere(self, path: bytes, status: os.stat_result) -> bool:
        """Whether another file system, or a bind mount, begins at this directory."""
        return status.st_dev != self._device or path in self._mounted

    def is_sure(self, node: Node, status: os.stat_result) -> bool:
        """Whether the next look may conclude from the same line that nothing has changed."""
        if node.sort is NodeSort.UNCOVERED and node.lack in _RETRIED:
            return False
        if self._hides_mapped_writes and node.sort is NodeSort.FILE:
            return False
        changed_ns = status.st_ctime_ns
        return changed_ns < self._resting_ns or not is_racy(changed_ns, looked_ns=self._looked_ns)

    def _glanced(self) -> list[bytes] | None:
        """The directories in which something may have changed; None if any may."""
        sights = self._sights.sure(self._origin)
        return glance(self._root, sights) if sights else None

    def _directory(self, descriptor: int, path: bytes) -> Looked:
        seen = seen_in(descriptor)
        if not path:
            seen = [one for one in seen if not is_stage(one[0])]
        self._tell(len(seen))
        known = self._known_of(path)
        is_same = known is not None and known.sight == encode_sight(
            [name for name, _, _ in seen], [line for _, line, _ in seen]
        )
        here = _Here(descriptor, path, seen, {}, {})
        if known is not None and not is_same:
            self._remember(here, known)
        below = dict(self._below(here, is_same=is_same))
        if known is not None and is_same and all(map(_stays, below.values())):
            return Looked(known.tree, known.totals, is_changed=False)
        if known is not None and not here.nodes:
            self._remember(here, known)
        return self._renewed(here, below, known)

    def _known_of(self, path: bytes) -> Known | None:
        """What a directory was; if the tree of it is lost, nothing is known of it."""
        assert self._known is not None
        known = self._known.get(path)
        if self._ways is not None:
            known = self._sights.known(self._origin, path)
        return known if known is not None and self._has(known) else None

    def _has(self, known: Known) -> bool:
        return self._objects.location(known.tree) is not None

    def _remember(self, here: _Here, known: Known) -> None:
        """Recall what was there; if that is spoiled, all of it is read again."""
        try:
            here.nodes = {node.name: node for node in self._objects.tree(known.tree)}
            here.was = decode_sight(known.sight)
        except (ObjectMissing, ObjectDamaged, ValueError):
            here.nodes, here.was = {}, {}

    def _below(self, here: _Here, *, is_same: bool) -> Iterator[tuple[bytes, Looked | Lack | None]]:
        """Every directory in this one that must be looked at: what it is, or None if gone."""
        for name, line, status in here.seen:
            if not stat.S_ISDIR(status.st_mode):
                continue
            way = here.way(name)
            is_same_itself = is_same or here.old(name, line) is not None
            if self._ways is not None and is_same_itself and way not in self._ways:
                continue
            is_elsewhere = self.is_elsewhere(way, status)
            lack = lack_of(way, status.st_mode, is_elsewhere=is_elsewhere, coverage=self._coverage)
            yield name, lack or self._entered(here, name, way, is_same=is_same_itself)

    def _entered(
        self, here: _Here, name: bytes, way: bytes, *, is_same: bool
    ) -> Looked | Lack | None:
        try:
            descriptor = os.open(name, OPEN_DIRECTORY, dir_fd=here.descriptor)
            try:
                looked = self._directory(descriptor, way)
                if is_same and not looked.is_changed:
                    return looked
                return looked._replace(xattrs=read_xattrs(descriptor))
            finally:
                os.close(descriptor)
        except OSError as error:
            refuse_shortage(error, way)
            return None if error.errno in GONE else Lack.UNREADABLE

    def _renewed(
        self, here: _Here, below: dict[bytes, Looked | Lack | None], known: Known | None
    ) -> Looked:
        """Put a directory together from what is as it was and what is new, but for what is ours."""
        lines: list[bytes] = []
        nodes: list[Node] = []
        for name, line, status in here.seen:
            old, found = here.old(name, line), status
            if status.st_mode & stat.S_ISVTX and self._stands_in(here.way(name), status, below):
                continue
            if stat.S_ISDIR(status.st_mode):
                was = here.was.get(name, line)
                self._is_renewed = self._is_renewed or not is_same_inode(was, line)
                node = _directory_node(name, status, old, below.get(name, old))
            elif old is not None:
                node = old
            else:
                node, found = self._read(here, name, status)
            if node is not None:
                nodes.append(node)
                is_sure = self.is_sure(node, found)
                lines.append((line if found is status else line_of(found)) if is_sure else BLANK)
        self._forget_removed(here, nodes)
        tree, totals = self._objects.put_tree(nodes), totals_of(nodes)
        sight = encode_sight([node.name for node in nodes], lines)
        is_racy = BLANK in lines or len(nodes) < len(here.seen)  # what stands in may become more
        self._fresh.append((here.path, Known(tree, totals, sight, is_racy)))
        return Looked(tree, totals, is_changed=known is None or known.tree != tree)

    def _stands_in(
        self, way: bytes, status: os.stat_result, below: Mapping[bytes, Looked | Lack | None]
    ) -> bool:
        """Whether a sandbox has put it there for as long as it lives."""
        size, looked = status.st_size, below.get(way.rpartition(b"/")[2])
        if stat.S_ISDIR(status.st_mode):
            size = len(self._objects.tree(looked.tree)) if isinstance(looked, Looked) else 1
        return is_stand_in(os.fsdecode(way), status.st_mode, size)

    def _read(
        self, here: _Here, name: bytes, status: os.stat_result
    ) -> tuple[Node | None, os.stat_result]:
        lack = lack_of(here.way(name), status.st_mode, is_elsewhere=False, coverage=self._coverage)
        if lack is not None:
            return uncovered(name, lack), status
        return read_node(self._objects, here.descriptor, name, status)

    def _tell(self, names: int) -> None:
        before, self._looked_at = self._looked_at, self._looked_at + names
        if before // _NEWS_NAMES != self._looked_at // _NEWS_NAMES:
            self._news(Progress("names looked at", self._looked_at))

    def _forget_removed(self, here: _Here, nodes: list[Node]) -> None:
        left = {node.name for node in nodes if node.sort is NodeSort.DIRECTORY}
        for name, node in here.nodes.items():
            if node.sort is NodeSort.DIRECTORY and name not in left:
                self._sights.forget(self._origin, here.way(name))


def _directory_node(
    name: bytes, status: os.stat_result, old: Node | None, found: Looked | Lack | Node | None
) -> Node | None:
    match found:
        case Looked(tree, totals, is_changed, xattrs):
            if old is not None and not is_changed and old.object == tree:
                return old
            detail = directory_detail(tree, totals)
            mode = stat.S_IMODE(status.st_mode)
            return Node(
                name, NodeSort.DIRECTORY, mode, totals.size, status.st_mtime_ns, detail, xattrs
            )
        case Lack():
            return uncovered(name, found)
        case _:
            return found


def _stays(found: Looked | Lack | None) -> bool:
    if isinstance(found, Looked):
        return not found.is_changed
    return found is not None and found not in _RETRIED
