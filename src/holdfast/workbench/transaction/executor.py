"""Execute the steps of a transaction on a directory of this machine.

All access goes through descriptors: the root, the stage in it, and the parent directory of a path,
which is opened again for each action without following links (openat2 RESOLVE_NO_SYMLINKS or
component by component). If the path has changed meanwhile the action reports that it was not
possible; any other error of the kernel is raised as a failure of the disk.

Contents are prefetched from the store: one query costs more than reading a small file, so each
fetch also loads the contents announced after it, up to a limit.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, Self

from holdfast.nouns import RelativePath
from holdfast.workbench.model import (
    EntryKind,
    PathEntry,
    ProgressCallback,
    WorkProgress,
    ignore_progress,
)
from holdfast.workbench.objects.formats import ObjectKind
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.scan.stat_cache import is_racy, is_same
from holdfast.workbench.store.store import Store
from holdfast.workbench.transaction.atomic_rename import ExchangeMissing, NameAt, move
from holdfast.workbench.transaction.machine import (
    Apply,
    DropStage,
    InspectPath,
    InspectSlot,
    MakeStage,
    Marker,
    PathAction,
    PathOperation,
    QuickCheckPath,
    ReportOutcome,
    Rescue,
    StageEntry,
    Step,
    StepResult,
    SyncAll,
    TransactionOutcome,
    TransactionState,
    Verb,
    WriteMarker,
)
from holdfast.workbench.transaction.path_state import (
    ABSENT,
    ParentCache,
    inspect_with_stat,
    open_directory,
)
from holdfast.workbench.transaction.site import (
    TransactionSite,
    commit_marker,
    put_marker,
    remove_marker,
)
from holdfast.workbench.transaction.stage import Owners, StageDirectory, adjust
from holdfast.world import disk_failure
from holdfast.world.failures import DiskDenied, DiskUnusable

_AHEAD_BYTES: Final = 4 * 2**20
_AHEAD_COUNT: Final = 1000


class ContentPrefetch:
    """Reads contents from the store; fastest in the announced order."""

    def __init__(self, store: Store, announced: Iterable[bytes]) -> None:
        self._store = store
        self._announced = list(dict.fromkeys(announced))
        self._place = {name: at for at, name in enumerate(self._announced)}
        self._ahead: dict[bytes, bytes] = {}

    def pieces(self, name: bytes) -> Iterable[bytes]:
        """Yield a verified content in pieces; raises ObjectMissing or ObjectDamaged."""
        if name in self._place and name not in self._ahead:
            self._ahead = self._store.object_store.read(
                lambda objects: self._fetched(objects, name)
            )
        found = self._ahead.get(name)
        return self._store.content(name) if found is None else (found,)

    def _fetched(self, objects: Objects, first: bytes) -> dict[bytes, bytes]:
        fetched: dict[bytes, bytes] = {}
        room = _AHEAD_BYTES
        start = self._place[first]
        for name, kind, data in objects.each(self._announced[start : start + _AHEAD_COUNT]):
            if kind is ObjectKind.PIECES:
                break
            fetched[name] = data
            room -= len(data)
            if room <= 0:
                break
        return fetched


_NOT_AS_THOUGHT: Final = ABSENT | {errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR}
_READ: Final = os.O_RDONLY | os.O_DIRECTORY
_PROGRESS_EVERY: Final = 100


class Executor:
    """Executes the steps of one transaction.

    A step has either been executed or raises a failure.
    """

    def __init__(
        self,
        site: TransactionSite,
        store: Store,
        marker: Marker,
        record_outcome: Callable[[TransactionOutcome], None],
        on_progress: ProgressCallback = ignore_progress,
    ) -> None:
        self._site = site
        self._store = store
        self._marker = marker
        self._record_outcome = record_outcome
        self._on_progress = on_progress
        self._stage = StageDirectory(site.root, site.stage)
        self._unsynced: set[RelativePath | None] = set()
        self._times: dict[RelativePath, int] = {}
        self._owners = Owners(site.root)
        self._parents = ParentCache(site.root)
        self._contents_ahead = ContentPrefetch(store, _contents(marker.operations))
        self._came_out: dict[int, tuple[os.stat_result, PathEntry]] = {}
        self.marked: TransactionState | None = None

    def execute(self, step: Step) -> StepResult:
        """Execute one step and return its result; raises a failure of the disk or the store.

        MakeStage raises ExchangeMissing if operations need RENAME_EXCHANGE and the file system
        lacks it.
        """
        try:
            return self._execute(step)
        except OSError as error:
            raise disk_failure(error, path=self._shown(step)) from error
        except ExchangeMissing as missing:
            if isinstance(step, MakeStage):
                raise
            reason = "the file system no longer supports RENAME_EXCHANGE"
            raise DiskUnusable(path=self._shown(step), reason=reason) from missing

    def close(self) -> None:
        """Close all descriptors."""
        self._parents.close()
        self._stage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _execute(self, step: Step) -> StepResult:
        match step:  # most frequent first
            case InspectSlot(operation):
                return self._inspect_slot(operation)
            case StageEntry(operation):
                self._report_progress("stage", operation)
                self._make(self._stage.slot(operation.slot), operation.path, operation.after)
            case Apply(action, operation):
                self._report_progress("change", operation)
                return self._do(action, operation)
            case QuickCheckPath(operation):
                return self._quick_check_path(operation)
            case InspectPath(operation):
                return self._inspect_path(operation)
            case _:
                self._execute_once(step)
        return None

    def _execute_once(self, step: Step) -> None:
        match step:
            case MakeStage():
                self._make_stage()
            case SyncAll():
                self._sync()
            case WriteMarker(state):
                self._mark(state)
            case Rescue(operation):
                self._rescue(operation)
            case ReportOutcome(outcome):
                self._record_outcome(replace(outcome, facts=self._marker.facts))
            case DropStage():
                self._stage.drop()
            case _:
                raise AssertionError(f"{step} has an answer")

    def _shown(self, step: Step) -> str:
        operation = getattr(step, "operation", None)
        if isinstance(operation, PathOperation):
            return f"{self._site.name}/{operation.path}"
        return self._site.name

    def _report_progress(self, what: str, operation: PathOperation) -> None:
        if operation.slot % _PROGRESS_EVERY == 0:
            self._on_progress(WorkProgress(what, operation.slot, len(self._marker.operations)))

    def _inspect_path(self, operation: PathOperation) -> PathEntry | None:
        seen = inspect_with_stat(self._site.root, operation.path.raw)
        if seen is None:
            return None
        self._owners.note(operation.path, seen[1])
        return seen[0]

    def _quick_check_path(self, operation: PathOperation) -> PathEntry | None:
        path, before = operation.path, operation.before
        if before is not None and before.kind is EntryKind.FILE and before.mtime_ns:
            with suppress(OSError):
                parent = self._parents.above(path)
                status = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
                if _fits(status, before):
                    self._owners.note(path, status)
                    return before
        return self._inspect_path(operation)

    def _inspect_slot(self, operation: PathOperation) -> PathEntry | None:
        known = self._came_out.get(operation.slot)
        try:
            slot = self._stage.slot(operation.slot)
            if known is not None:
                status = os.stat(slot.name, dir_fd=slot.directory, follow_symlinks=False)
                if is_same(status, known[0]):
                    return known[1]
        except FileNotFoundError:
            # Empty slot, or the stage is gone.
            return None
        scanned_ns = time.time_ns()
        seen = inspect_with_stat(slot.directory, slot.name)
        if seen is None:
            return None
        entry, status = seen
        # A later write through an open descriptor changes the mtime and misses the cache.
        if not is_racy(status.st_mtime_ns, scanned_ns=scanned_ns):
            self._came_out[operation.slot] = status, entry
        return entry

    def _make_stage(self) -> None:
        self._stage.make()
        self._unsynced.add(None)
        if any(operation.verb is Verb.SWAP for operation in self._marker.operations):
            # Probed before the marker is written: without exchange the whole plan is different.
            self._stage.try_exchange()

    def _make(self, slot: NameAt, path: RelativePath, entry: PathEntry | None) -> None:
        assert entry is not None
        owner = self._owners.of(path)
        match entry.kind:
            case EntryKind.FILE:
                self._stage.write_file(
                    slot, entry, self._contents_ahead.pieces(entry.content), owner
                )
            case EntryKind.LINK:
                self._stage.make_link(slot, entry, owner)
            case _:
                self._stage.make_directory(slot, entry, owner)

    def _do(self, action: PathAction, operation: PathOperation) -> bool:
        try:
            above = operation.path.parent
            if action is PathAction.ADJUST or action is PathAction.READJUST:
                self._adjust(operation, back=action is PathAction.READJUST)
                self._unsynced.add(operation.path)
                return True
            with open_directory(self._site.root, above) as parent:
                self._rename(action, operation, NameAt(parent, operation.path.name))
        except OSError as error:
            if error.errno in _NOT_AS_THOUGHT:
                return False
            raise
        self._unsynced.add(above)
        return True

    def _rename(self, action: PathAction, operation: PathOperation, path: NameAt) -> None:
        if action is PathAction.REMOVE_DIRECTORY:
            os.rmdir(path.name, dir_fd=path.directory)
            return
        slot = self._stage.slot(operation.slot)
        match action:
            case PathAction.EXCHANGE:
                self._stage.exchange(path, slot)
            case PathAction.TAKE:
                move(path, slot)
            case PathAction.PUT:
                move(slot, path)
                self._note_time(operation.path, operation.after)
            case _:
                self._make(slot, operation.path, operation.before)
                move(slot, path)
                self._note_time(operation.path, operation.before)

    def _note_time(self, path: RelativePath, entry: PathEntry | None) -> None:
        """Remember a directory's mtime, which new entries change; it is restored at the end."""
        if entry is not None and entry.is_directory and entry.mtime_ns:
            self._times[path] = entry.mtime_ns

    def _adjust(self, operation: PathOperation, *, back: bool) -> None:
        before, after = operation.before, operation.after
        assert before is not None and after is not None
        with open_directory(self._site.root, operation.path) as directory:
            adjust(directory, *((after, before) if back else (before, after)))

    def _sync(self) -> None:
        self._stage.sync()
        # Bottom-up: restoring a directory's mtime must come after changes in it.
        for path in sorted(self._unsynced, key=_depth, reverse=True):
            self._sync_directory(path)
        self._unsynced.clear()

    def _sync_directory(self, path: RelativePath | None) -> None:
        try:
            with open_directory(self._site.root, path, _READ) as directory:
                if path is not None and path in self._times:
                    times = (self._times[path], self._times[path])
                    os.utime(directory, ns=times)
                os.fsync(directory)
        except PermissionError:
            # A writable directory may be unreadable: no descriptor for fsync.
            os.sync()
        except OSError as error:
            if error.errno not in ABSENT:
                # Removed meanwhile; its parent is synced.
                raise

    def _mark(self, state: TransactionState | None) -> None:
        match state:
            case None:
                is_committed = (self.marked or self._marker.state) is TransactionState.COMMITTED
                remove_marker(self._site, is_committed=is_committed)
            case TransactionState.COMMITTED:
                commit_marker(self._site)
            case _:
                put_marker(self._site, replace(self._marker, state=state))
        self.marked = state

    def _rescue(self, operation: PathOperation) -> None:
        shown = f"{self._site.name}/{self._site.stage}/{operation.slot}"
        rescue(self._store, self._stage.slot(operation.slot), shown)


def rescue(store: Store, slot: NameAt, shown: str) -> None:
    """Store the content of a slot; raises DiskDenied if part of it cannot be read."""
    node = store.keep(slot.directory, slot.name)
    if node is not None and node.totals.uncovered:
        raise DiskDenied(path=shown)


def _fits(status: os.stat_result, entry: PathEntry) -> bool:
    """Whether size, mode and mtime equal those of a file entry."""
    return (
        status.st_mtime_ns == entry.mtime_ns
        and status.st_size == entry.size
        and status.st_mode == stat.S_IFREG | entry.mode
    )


def _contents(operations: Iterable[PathOperation]) -> Iterator[bytes]:
    for operation in operations:
        if operation.stages and operation.after and operation.after.kind is EntryKind.FILE:
            yield operation.after.content


def _depth(path: RelativePath | None) -> int:
    return len(path.parts) if path is not None else 0
