"""Scan a directory tree and store what changed since the last scan.

A full scan asks the kernel about every name and reads only files whose stat record differs from the
stat cache. With a list of dirty paths, only the directories on the way to them are scanned; such a
list is a hint, so callers that must be certain run a full scan.

A full scan is two passes. `changed_directories` calls statx for every cached name, and compares the
results in bulk with the cached records; only the directories that differ, and those above them, are
then listed. This relies on directories changing their times whenever a name in them changes, which
holds for Linux and the file systems in `_SOUND`; on others every directory is listed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import NamedTuple

from blake3 import blake3

from holdfast.confine import is_stand_in
from holdfast.nouns import RelativePath
from holdfast.workbench.coverage import Coverage, uncovered_reason
from holdfast.workbench.diff.tree_changes import is_stage, with_parents
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.model import (
    ProgressCallback,
    UncoveredReason,
    WorkProgress,
    ignore_progress,
)
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
from holdfast.workbench.scan.directory import Seen, list_with_stats, mounted_below
from holdfast.workbench.scan.file_content import (
    Xattrs,
    raise_resource_error,
    read_node,
    read_xattrs,
)
from holdfast.workbench.scan.stat_cache import (
    BLANK,
    RACY_COARSE_NS,
    decode_stats,
    encode_stats,
    is_racy,
    is_same_inode,
    names_of,
    stat_line,
)

# In one directory; one that holds more is listed.
NAMES_MAX = 65_536
_SLOTS_AT_FIRST = 32
_STATX_BYTES = 256
_STATX_WORDS = _STATX_BYTES // 8
# Of those, what a line consists of, in its order.
_WORDS = (3, 4, 5, 12, 13, 14, 15, 17)
_BASIC_STATS = 0x7FF
_NO_FOLLOW = 0x100
_NO_AUTOMOUNT = 0x800
_OPEN = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STATFS_BYTES = 256
_SOUND = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0x01021994,  # tmpfs
        0xF2F52010,  # f2fs
        0x2FC12FC1,  # zfs
        0xCA451A4E,  # bcachefs
    }
)

_MEMORY = frozenset({0x01021994, 0x858458F6})  # tmpfs, ramfs

Statx = Callable[[int, bytes, int, int, object], int]


def changed_directories(root: int, sights: Iterable[tuple[bytes, bytes]]) -> list[bytes] | None:
    """Return cached directories with an entry that differs from its record; None if unsupported.

    A new name changes the times of its directory, which shows as a difference in the parent.
    Entries directly below `root` have no cached parent, so the caller lists `root` in any case.
    """
    statx = _statx()
    if statx is None or not _is_sound(root):
        return None
    slots = _StatxBuffer()
    return [
        directory for directory, stats in sights if not slots.agree(statx, root, directory, stats)
    ]


class _StatxBuffer:
    """Preallocated buffers that statx(2) fills, one slot for each name of a directory."""

    def __init__(self) -> None:
        self._count = 0
        self._grow(_SLOTS_AT_FIRST)

    def agree(self, statx: Statx, root: int, directory: bytes, stats: bytes) -> bool:
        """Whether all names of a directory match their stat records."""
        try:
            names = names_of(stats)
        except ValueError:
            # Damaged index page: scan the directory.
            return False
        if len(names) > self._count:
            if len(names) > NAMES_MAX:
                return False
            self._grow(min(2 * len(names), NAMES_MAX))
        try:
            descriptor = os.open(directory or b".", _OPEN | _PATH, dir_fd=root)
        except OSError:
            return False
        try:
            # Links in the path are harmless here: results are only compared, nothing is opened.
            answers = map(
                statx, repeat(descriptor), names, repeat(_FLAGS), repeat(_BASIC_STATS), self._slots
            )
            if any(answers):
                return False
        finally:
            os.close(descriptor)
        words = self._words[: len(names) * _STATX_WORDS]
        return stats.endswith(b"".join([words[at::_STATX_WORDS].tobytes() for at in _WORDS]))

    def _grow(self, count: int) -> None:
        self._count = count
        data = bytearray(count * _STATX_BYTES)
        self._words = memoryview(data).cast("Q")
        there = (ctypes.c_char * len(data)).from_buffer(data)
        self._slots = [ctypes.byref(there, at) for at in range(0, len(data), _STATX_BYTES)]


_PATH = getattr(os, "O_PATH", 0)
_FLAGS = _NO_FOLLOW | _NO_AUTOMOUNT


@cache
def _statx() -> Statx | None:
    """Return statx(2), bound by PyDLL: the call is so short that releasing the GIL costs more."""
    if not sys.platform.startswith("linux"):
        return None
    found: Statx | None = getattr(ctypes.PyDLL(None), "statx", None)
    return found


@cache
def _fstatfs() -> Callable[[int, object], int]:
    """Return fstatfs(2); cached, because the symbol lookup takes longer than the call."""
    found: Callable[[int, object], int] = ctypes.CDLL(None).fstatfs
    return found


def hides_mapped_writes(directory: int) -> bool:
    """Whether a write through `mmap` leaves a file's times as they were on this file system.

    Disk file systems update them in `page_mkwrite`; tmpfs and ramfs have no such step, so that
    only the content of a file tells whether it changed.
    """
    return sys.platform.startswith("linux") and _magic(directory) in _MEMORY


def _is_sound(root: int) -> bool:
    return _magic(root) in _SOUND


def _magic(directory: int) -> int | None:
    """The type of a file system, as in statfs(2)."""
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _fstatfs()(directory, answer) != 0:
        return None
    kind = int.from_bytes(answer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)
    return kind & 0xFFFFFFFF


OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RETRIED = {
    UncoveredReason.UNREADABLE,
    UncoveredReason.CHANGING,
}
_PROGRESS_NAMES = 1000
_TOKEN_BYTES = 16
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class ScanResult(NamedTuple):
    """Tree of a directory, and whether it differs from the cached one."""

    tree: bytes
    totals: Totals
    is_changed: bool
    xattrs: Xattrs = ()


@dataclass(slots=True)
class _DirectoryState:
    """A directory during the scan: its entries now, and those at the last scan."""

    descriptor: int
    path: bytes
    seen: list[Seen]
    was: dict[bytes, bytes]
    nodes: dict[bytes, Node]

    def way(self, name: bytes) -> bytes:
        return self.path + b"/" + name if self.path else name

    def old(self, name: bytes, line: bytes) -> Node | None:
        """Return the cached node of a name if its stat record is unchanged."""
        return self.nodes.get(name) if self.was.get(name) == line else None


class ScanTarget(NamedTuple):
    """What is scanned.

    `scanned_ns` is the start time of the scan in nanoseconds. For `hides_mapped_writes` see
    `CheckpointSource`.
    """

    root: int
    origin: str
    coverage: Coverage
    scanned_ns: int
    on_progress: ProgressCallback = ignore_progress
    hides_mapped_writes: bool = False


class TreeScanner:
    """One scan of one origin below an open root directory."""

    def __init__(self, objects: Objects, target: ScanTarget) -> None:
        self._objects = objects
        self._stat_cache = objects.rows.stat_cache
        self._root = target.root
        self._origin = f"{target.origin} {target.coverage.mark}"
        self._coverage = target.coverage
        self._scanned_ns = target.scanned_ns
        # Older changes are never racy.
        self._resting_ns = target.scanned_ns - RACY_COARSE_NS
        self._on_progress = objects.on_progress = target.on_progress
        self._looked_at = 0
        self._fresh: list[tuple[bytes, DirectoryRecord]] = []
        # Some directory has another inode than at the last scan.
        self._is_renewed = False
        self._ways: frozenset[bytes] | None = None
        self._device = os.fstat(target.root).st_dev
        self._mounted = mounted_below(target.root)
        self._known: dict[bytes, DirectoryRecord] | None = None
        self._hides_mapped_writes = target.hides_mapped_writes or hides_mapped_writes(target.root)

    def run(self, dirty: Iterable[RelativePath] | None = None) -> ScanResult:
        """Scan the whole tree; with `dirty`, only directories on the way to those paths."""
        changed = self._find_changed() if dirty is None else [path.raw for path in dirty]
        if changed is not None:
            changed += self._stat_cache.racy(self._origin)
            known = self._stat_cache.known(self._origin, b"")
            if dirty is not None and not changed and known is not None and self._has(known):
                return ScanResult(known.tree, known.totals, is_changed=False)
            self._ways = with_parents(changed)
        looked = self.beneath(self._root, b"")
        self.note()
        return looked

    def beneath(self, descriptor: int, path: bytes) -> ScanResult:
        """Scan one directory below the root, with all below it."""
        if self._known is None:
            # One query for a full scan; a partial scan touches few directories and asks for each.
            self._known = self._stat_cache.all(self._origin) if self._ways is None else {}
        return self._directory(descriptor, path)

    def note(self) -> None:
        """Write the results to the stat cache, so that the next scan reads only changes."""
        self._stat_cache.note(self._origin, self._fresh)
        token = self._stat_cache.layout(self._origin)
        if self._is_renewed or not token:
            at = self._scanned_ns.to_bytes(8, "little", signed=True)
            # Chained with the scan time, so that returning to an earlier layout gives a new token.
            token = blake3(token + at).digest(_TOKEN_BYTES)
            self._stat_cache.note_layout(self._origin, token)

    def is_other_mount(self, path: bytes, status: os.stat_result) -> bool:
        """Whether another file system or a bind mount begins at a directory."""
        return status.st_dev != self._device or path in self._mounted

    def is_sure(self, node: Node, status: os.stat_result) -> bool:
        """Whether an unchanged stat record proves at the next scan that a node is unchanged."""
        if node.kind is NodeKind.UNCOVERED and node.reason in _RETRIED:
            return False
        if self._hides_mapped_writes and node.kind is NodeKind.FILE:
            return False
        changed_ns = status.st_ctime_ns
        return changed_ns < self._resting_ns or not is_racy(changed_ns, scanned_ns=self._scanned_ns)

    def _find_changed(self) -> list[bytes] | None:
        """Directories that may have changed; None if all must be scanned."""
        sights = self._stat_cache.reliable(self._origin)
        return changed_directories(self._root, sights) if sights else None

    def _directory(self, descriptor: int, path: bytes) -> ScanResult:
        seen = list_with_stats(descriptor)
        if not path:
            seen = [one for one in seen if not is_stage(one[0])]
        self._report_progress(len(seen))
        known = self._known_of(path)
        # Comparing the encoded records is one memcmp, so the common case decodes nothing.
        is_same = known is not None and known.stats == encode_stats(
            [name for name, _, _ in seen], [line for _, line, _ in seen]
        )
        here = _DirectoryState(descriptor, path, seen, {}, {})
        if known is not None and not is_same:
            self._remember(here, known)
        below = dict(self._below(here, is_same=is_same))
        if known is not None and is_same and all(map(_is_unchanged, below.values())):
            return ScanResult(known.tree, known.totals, is_changed=False)
        if known is not None and not here.nodes:
            self._remember(here, known)
        return self._renewed(here, below, known)

    def _known_of(self, path: bytes) -> DirectoryRecord | None:
        """Return the cached record of a directory, unless its tree object is lost."""
        assert self._known is not None
        known = self._known.get(path)
        if self._ways is not None:
            known = self._stat_cache.known(self._origin, path)
        return known if known is not None and self._has(known) else None

    def _has(self, known: DirectoryRecord) -> bool:
        return self._objects.location(known.tree) is not None

    def _remember(self, here: _DirectoryState, known: DirectoryRecord) -> None:
        """Load cached nodes and stat records; if they are damaged, everything is read again."""
        try:
            here.nodes = {node.name: node for node in self._objects.tree(known.tree)}
            here.was = decode_stats(known.stats)
        except (ObjectMissing, ObjectDamaged, ValueError):
            here.nodes, here.was = {}, {}

    def _below(
        self, here: _DirectoryState, *, is_same: bool
    ) -> Iterator[tuple[bytes, ScanResult | UncoveredReason | None]]:
        """Scan subdirectories; None for one that vanished meanwhile."""
        for name, line, status in here.seen:
            if not stat.S_ISDIR(status.st_mode):
                continue
            way = here.way(name)
            is_same_itself = is_same or here.old(name, line) is not None
            if self._ways is not None and is_same_itself and way not in self._ways:
                continue
            is_other_mount = self.is_other_mount(way, status)
            reason = uncovered_reason(
                way, status.st_mode, is_other_mount=is_other_mount, coverage=self._coverage
            )
            yield name, reason or self._entered(here, name, way, is_same=is_same_itself)

    def _entered(
        self, here: _DirectoryState, name: bytes, way: bytes, *, is_same: bool
    ) -> ScanResult | UncoveredReason | None:
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
            raise_resource_error(error, way)
            return None if error.errno in GONE else UncoveredReason.UNREADABLE

    def _renewed(
        self,
        here: _DirectoryState,
        below: dict[bytes, ScanResult | UncoveredReason | None],
        known: DirectoryRecord | None,
    ) -> ScanResult:
        """Store a directory from unchanged and new nodes, without sandbox placeholders."""
        lines: list[bytes] = []
        nodes: list[Node] = []
        for name, line, status in here.seen:
            old, found = here.old(name, line), status
            if status.st_mode & stat.S_ISVTX and self._is_placeholder(
                here.way(name), status, below
            ):
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
                lines.append((line if found is status else stat_line(found)) if is_sure else BLANK)
        # A stale record of a removed directory could match a later one of the same name.
        self._forget_removed(here, nodes)
        tree, totals = self._objects.put_tree(nodes), totals_of(nodes)
        stats = encode_stats([node.name for node in nodes], lines)
        is_racy = BLANK in lines or len(nodes) < len(here.seen)
        self._fresh.append((here.path, DirectoryRecord(tree, totals, stats, is_racy)))
        return ScanResult(tree, totals, is_changed=known is None or known.tree != tree)

    def _is_placeholder(
        self,
        way: bytes,
        status: os.stat_result,
        below: Mapping[bytes, ScanResult | UncoveredReason | None],
    ) -> bool:
        """Whether a sandbox made the entry, for its own lifetime, in place of a protected name."""
        size, looked = status.st_size, below.get(way.rpartition(b"/")[2])
        if stat.S_ISDIR(status.st_mode):
            size = len(self._objects.tree(looked.tree)) if isinstance(looked, ScanResult) else 1
        return is_stand_in(os.fsdecode(way), status.st_mode, size)

    def _read(
        self, here: _DirectoryState, name: bytes, status: os.stat_result
    ) -> tuple[Node | None, os.stat_result]:
        reason = uncovered_reason(
            here.way(name), status.st_mode, is_other_mount=False, coverage=self._coverage
        )
        if reason is not None:
            return uncovered(name, reason), status
        return read_node(self._objects, here.descriptor, name, status)

    def _report_progress(self, names: int) -> None:
        before, self._looked_at = self._looked_at, self._looked_at + names
        if before // _PROGRESS_NAMES != self._looked_at // _PROGRESS_NAMES:
            self._on_progress(WorkProgress("names looked at", self._looked_at))

    def _forget_removed(self, here: _DirectoryState, nodes: list[Node]) -> None:
        left = {node.name for node in nodes if node.kind is NodeKind.DIRECTORY}
        for name, node in here.nodes.items():
            if node.kind is NodeKind.DIRECTORY and name not in left:
                self._stat_cache.forget(self._origin, here.way(name))


def _directory_node(
    name: bytes,
    status: os.stat_result,
    old: Node | None,
    found: ScanResult | UncoveredReason | Node | None,
) -> Node | None:
    match found:
        case ScanResult(tree, totals, is_changed, xattrs):
            if old is not None and not is_changed and old.object == tree:
                return old
            detail = directory_detail(tree, totals)
            mode = stat.S_IMODE(status.st_mode)
            return Node(
                name, NodeKind.DIRECTORY, mode, totals.size, status.st_mtime_ns, detail, xattrs
            )
        case UncoveredReason():
            return uncovered(name, found)
        case _:
            return found


def _is_unchanged(found: ScanResult | UncoveredReason | None) -> bool:
    if isinstance(found, ScanResult):
        return not found.is_changed
    return found is not None and found not in _RETRIED
