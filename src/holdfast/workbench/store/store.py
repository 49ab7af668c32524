"""All that is kept of one project: objects, trees and checkpoints, for the one who holds it.

A checkpoint is acknowledged when its segment is synced, and not before. The index follows; if the
power fails between the two, the next opening takes note of what the segments hold.
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

# What is kept of one project, for whoever only reads it.

_COMPARED_MAX = 4  # so many comparisons are remembered: whoever publishes asks again and again
_CHANGES_MAX = 10_000  # unless more differs than that


class StoreReader:
    """The checkpoints of a project, and all that is in them."""

    def __init__(self, object_store: ObjectStore) -> None:
        self.object_store = object_store
        self._compared: dict[tuple[bytes, bytes], tuple[PathChange, ...]] = {}

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """All checkpoints, the newest first."""
        return self.object_store.read(all_checkpoints)

    def find(self, id: str) -> Checkpoint:
        """The checkpoint of an id; raise CheckpointMissing if there is none."""

        def work(objects: Objects) -> Checkpoint:
            name = objects.rows.checkpoints.find(id)
            if name is None:
                raise CheckpointMissing(checkpoint=id)
            return objects.checkpoint(name)

        return self.object_store.read(work)

    def uncovered(self, checkpoint: Checkpoint) -> tuple[UncoveredPath, ...]:
        """Every path that a checkpoint does not cover, with the reason."""
        return self.object_store.read(
            lambda objects: tuple(uncovered_paths(checkpoint.tree, objects.tree))
        )

    def changes(self, before: Checkpoint, after: Checkpoint) -> tuple[PathChange, ...]:
        """Every path at which two checkpoints differ; costs what has changed."""
        pair = before.tree, after.tree
        if before.tree == after.tree:
            return ()
        found = self._compared.get(pair)
        if found is None:
            found = self.object_store.read(lambda objects: tuple(changes(*pair, objects.tree)))
            if len(found) <= _CHANGES_MAX:
                if len(self._compared) >= _COMPARED_MAX:
                    del self._compared[next(iter(self._compared))]
                self._compared[pair] = found
        return found

    def changes_near(
        self, before: Checkpoint, after: Checkpoint, only: Collection[RelativePath]
    ) -> tuple[PathChange, ...]:
        """The same at these paths, below and above them; costs what has changed there."""
        return self.object_store.read(
            lambda objects: tuple(changes(before.tree, after.tree, objects.tree, only))
        )

    def node(self, checkpoint: Checkpoint, path: RelativePath) -> Node | None:
        """What a checkpoint has at a path."""
        return self.object_store.read(lambda objects: node_at(checkpoint.tree, path, objects.tree))

    def content(self, name: bytes) -> Generator[bytes]:
        """The content of a file, piece by piece, each checked before it is given out."""
        return content(name, lambda one: self.object_store.read(lambda objects: objects.get(one)))


def all_checkpoints(objects: Objects) -> tuple[Checkpoint, ...]:
    """All checkpoints that can be read, the newest first; what is spoiled spoils nothing else."""
    return tuple(made for _, made in named_checkpoints(objects))


def named_checkpoints(
    objects: Objects, most: int | None = None
) -> Iterator[tuple[bytes, Checkpoint]]:
    """The same, or the newest of them, with the name of the object that each of them is."""
    roster = objects.rows.checkpoints
    for _, name in roster.all() if most is None else roster.newest(most):
        with suppress(ObjectDamaged, ObjectMissing):
            yield name, objects.checkpoint(name)


__all__ = ["RESCUED", "CheckpointSource", "Ports", "Store"]

RESCUED = "rescued"
"""The origin of what was kept by itself, and is no state of a whole project."""

Answer = TypeVar("Answer")

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PRECONDITIONS = {Occasion.PUBLISH, Occasion.PRE_RESTORE}


class CheckpointSource(NamedTuple):
    """What a checkpoint is made of: a directory, and how much of it must be looked at.

    Origins have names, because what was seen of one says nothing about another. `dirty` is what may
    have changed since the last checkpoint of this origin; None is anything. If all is as it is in
    `like`, that is the answer, and no checkpoint is made. `hides_mapped_writes`: the times of its
    files do not tell of writes through `mmap`, although its file system does not say so.
    """

    directory: Path
    origin: str = "published"
    coverage: Coverage = EVERYTHING
    dirty: Iterable[RelativePath] | None = None
    on_progress: ProgressCallback = ignore_progress
    like: Checkpoint | None = None
    hides_mapped_writes: bool = False


class Store(StoreReader):
    """The store of one project; whoever opened it has it alone until it is closed."""

    def __init__(self, object_store: ObjectStore) -> None:
        super().__init__(object_store)
        self._clock = object_store.ports.clock
        self._ids = IdMaker(object_store.ports.clock, object_store.ports.chance)

    @classmethod
    def open(cls, directory: Path, ports: Ports | None = None, *, patience: float = 0.0) -> Self:
        """Open or make a store, and take note of what a crash left.

        Raises WorkbenchHeld if another process has it, and does not let go for `patience` seconds.
        """
        return cls(ObjectStore.open(directory, ports or Ports(), patience=patience))

    def transaction(self, work: Callable[[], Answer]) -> Answer:
        """Do several things to the store as one: all of it is durable by one sync, or nothing is.

        If something that is kept turns out to be spoiled, it may be done a second time.
        """
        return self.object_store.change(lambda _: work())

    def checkpoint(
        self, source: CheckpointSource, occasion: Occasion = Occasion.MANUAL, message: str = ""
    ) -> Checkpoint:
        """Keep a whole directory as it is; durable when it returns, nothing when it raises.

        Only if the index alone could not be written, the next opening finds it after all. Where
        something must not be done without it, what goes wrong is a CheckpointCreateFailed.
        """

        def work(objects: Objects, root: int) -> Checkpoint:
            looked = TreeScanner(objects, self._target(source, root)).run(source.dirty)
            if source.like is not None and source.like.tree == looked.tree:
                return source.like
            made = self._made(source.origin, occasion, message, looked.tree, looked.totals)
            return _put(objects, made)

        return self._beneath(source, occasion, work)

    def look(self, source: CheckpointSource) -> Checkpoint:
        """What a directory is now; all that is in it is kept, but it is no checkpoint yet.

        It becomes one by `record_checkpoint`; else it goes with the next pruning.
        """

        def work(objects: Objects, root: int) -> Checkpoint:
            looked = TreeScanner(objects, self._target(source, root)).run(source.dirty)
            return self._made(source.origin, Occasion.AUTO, "", looked.tree, looked.totals)

        return self._beneath(source, Occasion.AUTO, work)

    def layout(self, origin: str, coverage: Coverage = EVERYTHING) -> bytes:
        """A token of the directories of an origin when it was last looked at as a whole.

        It changes whenever one of them is another one than before, also if nothing in it differs.
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
        """Keep the tree of `over` with what is now at the touched paths below a directory.

        It is what `checkpoint` would keep, if nothing differs anywhere else; costs what was
        touched. The mode of every directory on the way is looked at, too.
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
        """Keep the tree `now`, except at touched paths, where it is as in `kept`."""
        ways = touched_tree(touched)

        def work(objects: Objects) -> Checkpoint:
            tree, totals = combine(
                now.tree, kept.tree, ways, load=objects.tree, save=objects.put_tree
            )
            return _put(objects, self._made(now.origin, occasion, message, tree, totals))

        return self.object_store.change(work)

    def record_checkpoint(self, seen: Checkpoint, occasion: Occasion, message: str) -> Checkpoint:
        """Keep the tree of a checkpoint on another occasion."""
        totals = Totals(seen.files, seen.size, seen.uncovered)
        made = self._made(seen.origin, occasion, message, seen.tree, totals)
        return self.object_store.change(lambda objects: _put(objects, made))

    def put_content(self, data: Iterable[bytes]) -> tuple[bytes, int]:
        """Keep what comes in parts of any length as one content; return its name and size.

        It is durable when this returns, and goes with the next pruning unless a checkpoint has it.
        """
        return split_content(
            data,
            lambda kind, piece: self.object_store.change(lambda objects: objects.put(kind, piece)),
        )

    def keep(self, root: int, name: bytes) -> Node | None:
        """Keep what stands at a name below an open directory, with all below it; None if nothing.

        It becomes a checkpoint of its own, of the origin `RESCUED`. What cannot be read is not
        kept: its node says that it is not covered.
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
        """Let others have it."""
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
        """Do something to a directory that is opened for it."""
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

    def _made(  # in the order in which it is written
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
