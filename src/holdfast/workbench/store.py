"""All that is kept of one project: objects, trees and checkpoints, for the one who holds it.

A checkpoint is acknowledged when its segment is synced, and not before. The index follows; if the
power fails between the two, the next opening takes note of what the segments hold.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from holdfast.nouns import RelativePath
from holdfast.workbench.core.changes import changes, node_at, uncovered_paths
from holdfast.workbench.core.coverage import EVERYTHING, Coverage
from holdfast.workbench.core.keeping import PREFIX, decode_checkpoint, encode_checkpoint
from holdfast.workbench.core.record import ObjectSort
from holdfast.workbench.core.tree import Node
from holdfast.workbench.failures import CheckpointMissing, WorkbenchHeld
from holdfast.workbench.index import Index
from holdfast.workbench.model import Change, Checkpoint, Occasion, Uncovered
from holdfast.workbench.objects import Objects
from holdfast.workbench.reconciling import reconcile
from holdfast.workbench.scanning import Looked, Scan
from holdfast.workbench.segments import Segments
from holdfast.world import (
    Chance,
    Clock,
    Disk,
    IdMaker,
    OpenFile,
    SystemChance,
    SystemClock,
    SystemDisk,
    disk_failure,
)
from holdfast.world.failures import DiskMissing, DiskOccupied

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Means(NamedTuple):
    """What a store needs of the world."""

    disk: Disk = SystemDisk()
    clock: Clock = SystemClock()
    chance: Chance = SystemChance()


class Subject(NamedTuple):
    """What a checkpoint is made of: a directory, and how much of it must be looked at.

    Origins have names, because what was seen of one says nothing about another. `dirty` is what may
    have changed since the last checkpoint of this origin; None is anything.
    """

    directory: Path
    origin: str = "published"
    coverage: Coverage = EVERYTHING
    dirty: Iterable[RelativePath] | None = None


class Store:
    """The store of one project; whoever opened it has it alone until it is closed."""

    def __init__(self, lock: OpenFile, segments: Segments, index: Index, means: Means) -> None:
        self._lock = lock
        self._segments = segments
        self._index = index
        self._clock = means.clock
        self._ids = IdMaker(means.clock, means.chance)

    @classmethod
    def open(cls, directory: Path, means: Means | None = None) -> Self:
        """Open or make a store, and take note of what a crash left; or raise WorkbenchHeld."""
        means = means or Means()
        _make_directory(means.disk, directory / "seg")
        with ExitStack() as undo:
            lock = _locked(means.disk, directory / "lock")
            undo.callback(lock.close)
            segments = Segments(means.disk, directory / "seg", means.chance)
            undo.callback(segments.close)
            index = Index.open(directory / "wb.db", means.disk)
            undo.callback(index.close)
            with index.writing() as rows:
                reconcile(segments, rows)
            undo.pop_all()
        return cls(lock, segments, index, means)

    def checkpoint(
        self, subject: Subject, occasion: Occasion = Occasion.MANUAL, message: str = ""
    ) -> Checkpoint:
        """Keep a whole directory as it is; durable when it returns, nothing when it raises.

        Only if the index alone could not be written, the next opening finds it after all.
        """
        with self._changing() as objects:
            looked = self._look(objects, subject)
            made = Checkpoint(
                id=self._ids.make(PREFIX),
                at_ms=int(self._clock.now() * 1000),
                occasion=occasion,
                message=message,
                origin=subject.origin,
                tree=looked.tree,
                files=looked.totals.files,
                size=looked.totals.size,
                uncovered=looked.totals.uncovered,
            )
            name = objects.put(ObjectSort.CHECKPOINT, encode_checkpoint(made))
            objects.rows.add_checkpoint(made.id, name)
        return made

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """All checkpoints, the newest first."""
        with self._reading() as objects:
            kept = objects.rows.checkpoints()
            return tuple(decode_checkpoint(objects.get(name)[1]) for _, name in kept)

    def find(self, id: str) -> Checkpoint:
        """The checkpoint of an id; raise CheckpointMissing if there is none."""
        with self._reading() as objects:
            name = dict(objects.rows.checkpoints()).get(id)
            if name is None:
                raise CheckpointMissing(checkpoint=id)
            return decode_checkpoint(objects.get(name)[1])

    def uncovered(self, checkpoint: Checkpoint) -> tuple[Uncovered, ...]:
        """Every path that a checkpoint does not cover, with the reason."""
        with self._reading() as objects:
            return tuple(uncovered_paths(checkpoint.tree, objects.tree))

    def changes(self, before: Checkpoint, after: Checkpoint) -> tuple[Change, ...]:
        """Every path at which two checkpoints differ; costs what has changed."""
        with self._reading() as objects:
            if before.tree == after.tree:
                return ()
            return tuple(changes(before.tree, after.tree, objects.tree))

    def node(self, checkpoint: Checkpoint, path: RelativePath) -> Node | None:
        """What a checkpoint has at a path."""
        with self._reading() as objects:
            return node_at(checkpoint.tree, path, objects.tree)

    def content(self, name: bytes) -> Generator[bytes]:
        """The content of a file, piece by piece, each checked before it is given out."""
        with self._reading() as objects:
            yield from objects.content(name)

    def close(self) -> None:
        """Let others have it."""
        self._index.close()
        self._segments.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, objects: Objects, subject: Subject) -> Looked:
        looked_ns = int(self._clock.now() * 1e9)
        scan = Scan(
            objects,
            objects.rows,
            origin=subject.origin,
            coverage=subject.coverage,
            looked_ns=looked_ns,
        )
        try:
            root = os.open(subject.directory, _OPEN)
            try:
                return scan.run(root, subject.dirty)
            finally:
                os.close(root)
        except OSError as error:
            raise disk_failure(error, path=str(subject.directory)) from error

    @contextmanager
    def _changing(self) -> Generator[Objects]:
        """Put objects: all of them become durable, then known, or none does."""
        with ExitStack() as undo, self._index.writing() as rows:
            undo.callback(self._segments.abandon)
            objects = Objects(self._segments, rows)
            yield objects
            objects.commit()
            undo.pop_all()

    @contextmanager
    def _reading(self) -> Generator[Objects]:
        with self._index.reading() as rows:
            yield Objects(self._segments, rows)


def _make_directory(disk: Disk, path: Path) -> None:
    """Make a directory and those above it; what was made survives a power loss."""
    if path.is_dir():
        return
    _make_directory(disk, path.parent)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    disk.sync_directory(path.parent)


def _locked(disk: Disk, path: Path) -> OpenFile:
    try:
        file = disk.open_to_write(path)
    except DiskMissing:
        try:
            file = disk.create(path, mode=0o600)
        except DiskOccupied:  # somebody was faster
            file = disk.open_to_write(path)
    if not file.lock():
        file.close()
        raise WorkbenchHeld(path=str(path.parent))
    return file
