"""Store of one project: objects, trees and checkpoints, behind the workbench lock.

A checkpoint is acknowledged once its segment is synced. The index follows; after a power loss
between the two, the next opening indexes the new records (`objects.index_rebuild`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.coverage import EVERYTHING, Coverage
from holdfast.workbench.diff.tree_changes import (
    TouchedTree,
    changes,
    combine,
    node_at,
    touched_tree,
    uncovered_paths,
)
from holdfast.workbench.failures import (
    CheckpointCreateFailed,
    CheckpointMissing,
    ObjectDamaged,
    ObjectMissing,
)
from holdfast.workbench.model import (
    Checkpoint,
    Occasion,
    PathChange,
    ProgressCallback,
    TouchedPaths,
    UncoveredPath,
    ignore_progress,
)
from holdfast.workbench.objects.formats import (
    PREFIX,
    Node,
    ObjectKind,
    Totals,
    encode_checkpoint,
    split_content,
)
from holdfast.workbench.objects.object_store import ObjectStore, Ports
from holdfast.workbench.objects.objects import Objects, content
from holdfast.workbench.scan.partial_scan import PartialScan
from holdfast.workbench.scan.scanner import ScanTarget, TreeScanner
from holdfast.world import IdMaker, disk_failure

# Cached comparisons: a publish repeats the same few.
_COMPARED_MAX = 4
# Larger results are not cached.
_CHANGES_MAX = 10_000


class StoreReader:
    """Read access to the checkpoints of a project and their contents."""

    def __init__(self, object_store: ObjectStore) -> None:
        self.object_store = object_store
        self._compared: dict[tuple[bytes, bytes], tuple[PathChange, ...]] = {}

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """All checkpoints, newest first."""
        return self.object_store.read(all_checkpoints)

    def find(self, id: str) -> Checkpoint:
        """Return a checkpoint by id; raises CheckpointMissing."""

        def work(objects: Objects) -> Checkpoint:
            name = objects.rows.checkpoints.find(id)
            if name is None:
                raise CheckpointMissing(checkpoint=id)
            return objects.checkpoint(name)

        return self.object_store.read(work)

    def uncovered(self, checkpoint: Checkpoint) -> tuple[UncoveredPath, ...]:
        """Return every path that a checkpoint does not cover, with the reason."""
        return self.object_store.read(
            lambda objects: tuple(uncovered_paths(checkpoint.tree, objects.tree))
        )

    def changes(self, before: Checkpoint, after: Checkpoint) -> tuple[PathChange, ...]:
        """Return every path at which two checkpoints differ; costs what has changed."""
        pair = before.tree, after.tree
        if before.tree == after.tree:
            return ()
        found = self._compared.get(pair)
        if found is None:
            found = self.object_store.read(lambda objects: tuple(changes(*pair, objects.tree)))
            if len(found) <= _CHANGES_MAX:
                # First in, first out is enough for so few entries.
                if len(self._compared) >= _COMPARED_MAX:
                    del self._compared[next(iter(self._compared))]
                self._compared[pair] = found
        return found

    def changes_near(
        self, before: Checkpoint, after: Checkpoint, only: Collection[RelativePath]
    ) -> tuple[PathChange, ...]:
        """Return the changes at, below and above the paths in `only`; costs what changed there."""
        return self.object_store.read(
            lambda objects: tuple(changes(before.tree, after.tree, objects.tree, only))
        )

    def node(self, checkpoint: Checkpoint, path: RelativePath) -> Node | None:
        """Return the node at a path of a checkpoint."""
        return self.object_store.read(lambda objects: node_at(checkpoint.tree, path, objects.tree))

    def content(self, name: bytes) -> Generator[bytes]:
        """Yield the content of a file in pieces, each verified before it is yielded."""
        return content(name, lambda one: self.object_store.read(lambda objects: objects.get(one)))


def all_checkpoints(objects: Objects) -> tuple[Checkpoint, ...]:
    """All readable checkpoints, newest first; a damaged one is skipped."""
    return tuple(made for _, made in named_checkpoints(objects))


def named_checkpoints(
    objects: Objects, most: int | None = None
) -> Iterator[tuple[bytes, Checkpoint]]:
    """Yield readable checkpoints with their object hash, newest first, at most `most`."""
    roster = objects.rows.checkpoints
    for _, name in roster.all() if most is None else roster.newest(most):
        with suppress(ObjectDamaged, ObjectMissing):
            yield name, objects.checkpoint(name)


__all__ = ["RESCUED", "CheckpointSource", "Ports", "Store"]

RESCUED = "rescued"
"""Origin of rescued files: such a checkpoint is not a state of the whole project."""

Answer = TypeVar("Answer")

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PRECONDITIONS = {Occasion.PUBLISH, Occasion.PRE_RESTORE}


class CheckpointSource(NamedTuple):
    """What a checkpoint is made of: a directory, and how much of it must be scanned.

    `origin` names the stat cache, which must not be shared between directories. `dirty` lists paths
    that may have changed since the last checkpoint of this origin; None means any. If the tree
    equals that of `like`, that checkpoint is returned and none is made. `hides_mapped_writes`:
    writes through mmap do not change the times of its files, although the file system type does not
    show it.
    """

    directory: Path
    origin: str = "published"
    coverage: Coverage = EVERYTHING
    dirty: Iterable[RelativePath] | None = None
    on_progress: ProgressCallback = ignore_progress
    like: Checkpoint | None = None
    hides_mapped_writes: bool = False


class Store(StoreReader):
    """Store of one project, opened exclusively."""

    def __init__(self, object_store: ObjectStore) -> None:
        super().__init__(object_store)
        self._clock = object_store.ports.clock
        self._ids = IdMaker(object_store.ports.clock, object_store.ports.chance)

    @classmethod
    def open(cls, directory: Path, ports: Ports | None = None, *, patience: float = 0.0) -> Self:
        """Open or create a store, and index what a crash left in the segments.

        Raises WorkbenchHeld if another process holds the lock for `patience` seconds.
        """
        return cls(ObjectStore.open(directory, ports or Ports(), patience=patience))

    def transaction(self, work: Callable[[], Answer]) -> Answer:
        """Run several operations as one: durable by one sync, or rolled back.

        `work` may run twice, if a stored object turns out to be damaged.
        """
        return self.object_store.change(lambda _: work())

    def checkpoint(
        self, source: CheckpointSource, occasion: Occasion = Occasion.MANUAL, message: str = ""
    ) -> Checkpoint:
        """Store a whole directory; durable on return, rolled back when it raises.

        If only the index could not be written, the next opening finds the checkpoint after all. For
        a checkpoint that precedes a publish or restore, failures are raised as
        CheckpointCreateFailed.
        """

        def work(objects: Objects, root: int) -> Checkpoint:
            looked = TreeScanner(objects, self._target(source, root)).run(source.dirty)
            if source.like is not None and source.like.tree == looked.tree:
                return source.like
            made = self._made(source.origin, occasion, message, looked.tree, looked.totals)
            return _put(objects, made)

        return self._beneath(source, occasion, work)

    def look(self, source: CheckpointSource) -> Checkpoint:
        """Scan a directory and store its objects, without recording a checkpoint.

        `record_checkpoint` makes it one; otherwise the next pruning removes it.
        """

        def work(objects: Objects, root: int) -> Checkpoint:
            looked = TreeScanner(objects, self._target(source, root)).run(source.dirty)
            return self._made(source.origin, Occasion.AUTO, "", looked.tree, looked.totals)

        return self._beneath(source, Occasion.AUTO, work)

    def layout(self, origin: str, coverage: Coverage = EVERYTHING) -> bytes:
        """Return a token of the directory inodes of an origin at its last full scan.

        It changes whenever a directory is replaced, even by one with equal content.
        """
        name = f"{origin} {coverage.mark}"
        return self.object_store.read(lambda objects: objects.rows.stat_cache.layout(name))

    def partial_checkpoint(
        self,
        over: Checkpoint,
        source: CheckpointSource,
        touched: TouchedPaths,
        occasion: Occasion = Occasion.AUTO,
        message: str = "",
    ) -> Checkpoint:
        """Store the tree of `over`, updated at the touched paths from a directory.

        Equals `checkpoint` if nothing else differs; costs what was touched. Modes of all
        directories on the way are updated, too.
        """
        ways = touched_tree(touched)

        def work(objects: Objects, root: int) -> Checkpoint:
            graft = self._graft(objects, source, root)
            tree, totals = graft.run(root, over.tree, ways)
            graft.note()
            if source.like is not None and source.like.tree == tree:
                return source.like
            return _put(objects, self._made(source.origin, occasion, message, tree, totals))

        return self._beneath(source, occasion, work)

    def combine(
        self,
        now: Checkpoint,
        kept: Checkpoint,
        touched: TouchedPaths,
        occasion: Occasion = Occasion.AUTO,
        message: str = "",
    ) -> Checkpoint:
        """Store the tree `now`, with touched paths taken from `kept`."""
        ways = touched_tree(touched)

        def work(objects: Objects) -> Checkpoint:
            tree, totals = combine(
                now.tree, kept.tree, ways, load=objects.tree, save=objects.put_tree
            )
            return _put(objects, self._made(now.origin, occasion, message, tree, totals))

        return self.object_store.change(work)

    def record_checkpoint(self, seen: Checkpoint, occasion: Occasion, message: str) -> Checkpoint:
        """Record the tree of a checkpoint under another occasion."""
        totals = Totals(seen.files, seen.size, seen.uncovered)
        made = self._made(seen.origin, occasion, message, seen.tree, totals)
        return self.object_store.change(lambda objects: _put(objects, made))

    def put_content(self, data: Iterable[bytes]) -> tuple[bytes, int]:
        """Store chunks of any size as one content; return its hash and size.

        Durable on return. The next pruning removes it unless a checkpoint refers to it.
        """
        return split_content(
            data,
            lambda kind, piece: self.object_store.change(lambda objects: objects.put(kind, piece)),
        )

    def keep(self, root: int, name: bytes) -> Node | None:
        """Store an entry of an open directory, with all below it, as a RESCUED checkpoint.

        Returns None if the entry does not exist. Unreadable parts become uncovered nodes.
        """
        ways = TouchedTree(below={name: TouchedTree(is_touched=True, is_whole=True)})
        source = CheckpointSource(Path(), origin=RESCUED)

        def work(objects: Objects) -> Node | None:
            tree, totals = self._graft(objects, source, root).run(root, None, ways)
            nodes = objects.tree(tree)
            if nodes:
                made = self._made(
                    RESCUED, Occasion.MANUAL, str(RelativePath((name,))), tree, totals
                )
                _put(objects, made)
            return nodes[0] if nodes else None

        return self.object_store.change(work)

    def close(self) -> None:
        """Close the store and release its lock."""
        self.object_store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _beneath(
        self,
        source: CheckpointSource,
        occasion: Occasion,
        work: Callable[[Objects, int], Checkpoint],
    ) -> Checkpoint:
        """Run `work` with an open descriptor of the source directory."""
        try:
            try:
                root = os.open(source.directory, _OPEN)
                try:
                    return self.object_store.change(lambda objects: work(objects, root))
                finally:
                    os.close(root)
            except OSError as error:
                raise disk_failure(error, path=str(source.directory)) from error
        except Failure as failure:
            if occasion not in _PRECONDITIONS:
                raise
            path = str(source.directory)
            raise CheckpointCreateFailed(path=path, reason=failure.user_message) from failure

    def _target(self, source: CheckpointSource, root: int) -> ScanTarget:
        scanned_ns = int(self._clock.now() * 1e9)
        return ScanTarget(
            root,
            source.origin,
            source.coverage,
            scanned_ns,
            source.on_progress,
            source.hides_mapped_writes,
        )

    def _graft(self, objects: Objects, source: CheckpointSource, root: int) -> PartialScan:
        target = self._target(source, root)
        whole = TreeScanner(objects, target._replace(origin=f"whole {source.origin}"))
        return PartialScan(objects, whole, origin=source.origin, coverage=source.coverage)

    # In the order in which it is written.
    def _made(
        self, origin: str, occasion: Occasion, message: str, tree: bytes, totals: Totals
    ) -> Checkpoint:
        return Checkpoint(
            id=self._ids.make(PREFIX),
            at_ms=int(self._clock.now() * 1000),
            occasion=occasion,
            message=message,
            origin=origin,
            tree=tree,
            files=totals.files,
            size=totals.size,
            uncovered=totals.uncovered,
        )


def _put(objects: Objects, made: Checkpoint) -> Checkpoint:
    name = objects.put(ObjectKind.CHECKPOINT, encode_checkpoint(made))
    objects.rows.checkpoints.add(made.id, name)
    return made
