"""Lock, segments and index of one store, and transactions over them.

Work runs in one index transaction. If the index turns out to be damaged, it is rebuilt from the
segments and the work is run again; so is work that misses an object which an unindexed record may
still hold.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from holdfast.failures import Failure
from holdfast.workbench.failures import (
    CheckpointMissing,
    ObjectDamaged,
    ObjectMissing,
    WorkbenchHeld,
)
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.index_rebuild import reconcile, search
from holdfast.workbench.objects.objects import ObjectCache, Objects
from holdfast.workbench.objects.segments import Segments
from holdfast.world import (
    Clock,
    Disk,
    OpenFile,
    RandomSource,
    SystemClock,
    SystemDisk,
    SystemRandomSource,
    disk_failure,
)
from holdfast.world.failures import DatabaseDamaged, DiskFull, DiskMissing, DiskOccupied, DiskQuota

RESERVE_BYTES = 16 * 2**20
# A reserve is taken only if this many times as much is free.
_ROOM = 4
_CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Reserve:
    """Preallocated file, released on a full disk so that a rollback can be recorded.

    Its errors are ignored.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def held_bytes(self) -> int:
        try:
            return self._path.stat(follow_symlinks=False).st_size
        except OSError:
            return 0

    def renew(self) -> None:
        """Preallocate the reserve if there is plenty of space."""
        if self.held_bytes >= RESERVE_BYTES:
            return
        with suppress(OSError):
            there = os.statvfs(self._path.parent)
            if there.f_bavail * there.f_frsize < _ROOM * RESERVE_BYTES:
                return
            descriptor = os.open(self._path, _CREATE, 0o600)
            try:
                _allocate(descriptor)
            except OSError:
                os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Free the reserved space."""
        with suppress(OSError):
            os.truncate(self._path, 0)


def _allocate(descriptor: int) -> None:
    """Allocate blocks; a sparse file would reserve nothing."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)


_LOOK_AGAIN = 0.01

Answer = TypeVar("Answer")


class Ports(NamedTuple):
    """Effects that a store depends on; replaced in fault tests."""

    disk: Disk = SystemDisk()
    clock: Clock = SystemClock()
    chance: RandomSource = SystemRandomSource()


class ObjectStore:
    """An open object store; its lock excludes other processes until `close`."""

    def __init__(self, directory: Path, ports: Ports, lock: OpenFile, segments: Segments) -> None:
        self.directory = directory
        self.ports = ports
        self.segments = segments
        self.reserve = _reserve(directory)
        self._lock = lock
        self._cache = ObjectCache()
        self._is_searched = False
        self._within: Objects | None = None
        self._index = _index(directory, ports.disk, segments)

    @classmethod
    def open(cls, directory: Path, ports: Ports, *, patience: float) -> Self:
        """Open or create a store.

        Raises WorkbenchHeld after `patience` seconds of waiting for the lock.
        """
        _make_directory(ports.disk, directory / "seg")
        with ExitStack() as undo:
            lock = _locked(directory / "lock", ports, patience)
            undo.callback(lock.close)
            segments = Segments(ports.disk, directory / "seg", ports.chance)
            undo.callback(segments.close)
            try:
                object_store = cls(directory, ports, lock, segments)
            except (DiskFull, DiskQuota):
                # SQLite needs space even to read.
                _reserve(directory).release()
                # Of an earlier build.
                (directory / "reserve.bin").unlink(missing_ok=True)
                object_store = cls(directory, ports, lock, segments)
            undo.pop_all()
        # Of an earlier build.
        (directory / "reserve.bin").unlink(missing_ok=True)
        object_store.reserve.renew()
        return object_store

    def change(self, work: Callable[[Objects], Answer]) -> Answer:
        """Run `work` in a write transaction: its objects become durable and indexed, or none does.

        Nested calls join the outer transaction.
        """
        if self._within is not None:
            return work(self._within)
        return self._with_retry(self._changed, work)

    def read(self, work: Callable[[Objects], Answer]) -> Answer:
        """Run `work` on one snapshot."""
        if self._within is not None:
            return work(self._within)
        return self._with_retry(self._read, work)

    def close(self) -> None:
        """Close all files and release the lock."""
        self._index.close()
        self.segments.close()
        self._lock.close()

    def _with_retry(
        self,
        attempt: Callable[[Callable[[Objects], Answer]], Answer],
        work: Callable[[Objects], Answer],
    ) -> Answer:
        try:
            return attempt(work)
        except DatabaseDamaged:
            self._recreate_index()
            return attempt(work)
        except (ObjectDamaged, ObjectMissing, CheckpointMissing) as failure:
            if self._is_searched:
                raise
            self._search()
            try:
                return attempt(work)
            except ObjectMissing:
                # It is lost; the first failure may name its location.
                raise failure from None

    def _recreate_index(self) -> None:
        self._index.close()
        self._index = _recreated(self.directory, self.ports.disk, self.segments)

    def _search(self) -> None:
        """Rebuild the index once per opening, to find objects that a damaged index misses."""
        self._is_searched = True
        try:
            with self._index.writing() as rows:
                search(self.segments, rows)
        except DatabaseDamaged:
            self._recreate_index()
        except Failure:
            # For example a full disk: report the original failure.
            pass

    def _changed(self, work: Callable[[Objects], Answer]) -> Answer:
        damaged: set[bytes] = set()
        try:
            with ExitStack() as undo, self._index.writing() as rows:
                undo.callback(self.segments.rollback)
                objects = Objects(self.segments, rows, damaged, self._cache)
                with self._inside(objects):
                    answer = work(objects)
                objects.commit()
                undo.pop_all()
        except (ObjectDamaged, ObjectMissing):
            self._forget(damaged)
            raise
        except (DiskFull, DiskQuota):
            self.reserve.release()
            raise
        return answer

    @contextmanager
    def _inside(self, objects: Objects) -> Generator[None]:
        self._within = objects
        try:
            yield
        finally:
            self._within = None

    def _read(self, work: Callable[[Objects], Answer]) -> Answer:
        damaged: set[bytes] = set()
        try:
            with self._index.reading() as rows:
                return work(Objects(self.segments, rows, damaged, self._cache))
        finally:
            self._forget(damaged)

    def _forget(self, damaged: set[bytes]) -> None:
        """Record damaged objects; on failure, the next reader that meets them does."""
        if damaged:
            with suppress(Failure), self._index.writing() as rows:
                Objects(self.segments, rows, damaged).forget_damaged()


def _reserve(directory: Path) -> Reserve:
    """The reserve shared by all stores of one state directory: a full disk is full for all."""
    return Reserve(directory.parent / "reserve.bin")


def _index(directory: Path, disk: Disk, segments: Segments) -> Index:
    """Open the index and reconcile it with the segments; a damaged one is rebuilt."""
    try:
        return _agreeing(Index.open(directory / "wb.db", disk), segments)
    except DatabaseDamaged:
        return _recreated(directory, disk, segments)


def _recreated(directory: Path, disk: Disk, segments: Segments) -> Index:
    return _agreeing(Index.recreate(directory / "wb.db", disk), segments)


def _agreeing(index: Index, segments: Segments) -> Index:
    with ExitStack() as undo:
        undo.callback(index.close)
        with index.writing() as rows:
            reconcile(segments, rows)
        undo.pop_all()
    return index


def _make_directory(disk: Disk, path: Path) -> None:
    """Create a directory and its parents durably."""
    if path.is_dir():
        return
    _make_directory(disk, path.parent)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    # Each new name needs its parent synced; mkdir alone may be lost.
    disk.sync_directory(path.parent)


def _locked(path: Path, ports: Ports, patience: float) -> OpenFile:
    deadline = ports.clock.monotonic() + patience
    file = _lock_file(ports.disk, path)
    while not file.lock():
        left = deadline - ports.clock.monotonic()
        if left <= 0:
            file.close()
            raise WorkbenchHeld(path=str(path.parent))
        time.sleep(min(_LOOK_AGAIN, left))  # noqa: TID251  # runs in a worker thread without an event loop
    return file


def _lock_file(disk: Disk, path: Path) -> OpenFile:
    try:
        return disk.open_to_write(path)
    except DiskMissing:
        try:
            return disk.create(path, mode=0o600)
        except DiskOccupied:
            # Another process created it first.
            return disk.open_to_write(path)
