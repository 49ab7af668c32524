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
    Way,
    changes,
    combine,
    node_at,
    uncovered_paths,
    ways_to,
)
from holdfast.workbench.failures import (
    CheckpointCreateFailed,
    CheckpointMissing,
    ObjectDamaged,
    ObjectMissing,
)
from holdfast.workbench.model import Change, Checkpoint, News, Occasion, Touched, Uncovered, quiet
from holdfast.workbench.objects.formats import (
    PREFIX,
    Node,
    ObjectSort,
    Totals,
    cut_content,
    encode_checkpoint,
)
from holdfast.workbench.objects.object_store import Means, Vault
from holdfast.workbench.objects.objects import Objects, content
from holdfast.workbench.scan.partial_scan import Graft
from holdfast.workbench.scan.scanner import Aim, Scan
from holdfast.world import IdMaker, disk_failure

# What is kept of one project, for whoever only reads it.

_COMPARED_MAX = 4  # so many comparisons are remembered: whoever publishes asks again and again
_CHANGES_MAX = 10_000  # unless more differs than that


class Kept:
    """The checkpoints of a project, and all that is in them."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._compared: dict[tuple[bytes, bytes], tuple[Change, ...]] = {}

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """All checkpoints, the newest first."""
        return self.vault.read(all_checkpoints)

    def find(self, id: str) -> Checkpoint:
        """The checkpoint of an id; raise CheckpointMissing if there is none."""

        def work(objects: Objects) -> Checkpoint:
            name = objects.rows.roster.find(id)
            if name is None:
                raise CheckpointMissing(checkpoint=id)
            return objects.checkpoint(name)

        return self.vault.read(work)

    def uncovered(self, checkpoint: Checkpoint) -> tuple[Uncovered, ...]:
        """Every path that a checkpoint does not cover, with the reason."""
        return self.vault.read(
            lambda objects: tuple(uncovered_paths(checkpoint.tree, objects.tree))
        )

    def changes(self, before: Checkpoint, after: Checkpoint) -> tuple[Change, ...]:
        """Every path at which two checkpoints differ; costs what has changed."""
        pair = before.tree, after.tree
        if before.tree == after.tree:
            return ()
        found = self._compared.get(pair)
        if found is None:
            found = self.vault.read(lambda objects: tuple(changes(*pair, objects.tree)))
            if len(found) <= _CHANGES_MAX:
                if len(self._compared) >= _COMPARED_MAX:
                    del self._compared[next(iter(self._compared))]
                self._compared[pair] = found
        return found

    def changes_near(
        self, before: Checkpoint, after: Checkpoint, only: Collection[RelativePath]
    ) -> tuple[Change, ...]:
        """The same at these paths, below and above them; costs what has changed there."""
        return self.vault.read(
            lambda objects: tuple(changes(before.tree, after.tree, objects.tree, only))
        )

    def node(self, checkpoint: Checkpoint, path: RelativePath) -> Node | None:
        """What a checkpoint has at a path."""
        return self.vault.read(lambda objects: node_at(checkpoint.tree, path, objects.tree))

    def content(self, name: bytes) -> Generator[bytes]:
        """The content of a file, piece by piece, each checked before it is given out."""
        return content(name, lambda one: self.vault.read(lambda objects: objects.get(one)))


def all_checkpoints(objects: Objects) -> tuple[Checkpoint, ...]:
    """All checkpoints that can be read, the newest first; what is spoiled spoils nothing else."""
    return tuple(made for _, made in named_checkpoints(objects))


def named_checkpoints(
    objects: Objects, most: int | None = None
) -> Iterator[tuple[bytes, Checkpoint]]:
    """The same, or the newest of them, with the name of the object that each of them is."""
    roster = objects.rows.roster
    for _, name in roster.all() if most is None else roster.newest(most):
        with suppress(ObjectDamaged, ObjectMissing):
            yield name, objects.checkpoint(name)


__all__ = ["RESCUED", "Means", "Store", "Subject"]

RESCUED = "rescued"
"""The origin of what was kept by itself, and is no state of a whole project."""

Answer = TypeVar("Answer")

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PRECONDITIONS = {Occasion.PUBLISH, Occasion.PRE_RESTORE}


class Subject(NamedTuple):
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
    news: News = quiet
    like: Checkpoint | None = None
    hides_mapped_writes: bool = False


class Store(Kept):
    """The store of one project; whoever opened it has it alone until it is closed."""

    def __init__(self, vault: Vault) -> None:
        super().__init__(vault)
        self._clock = vault.means.clock
        self._ids = IdMaker(vault.means.clock, vault.means.chance)

    @classmethod
    def open(cls, directory: Path, means: Means | None = None, *, patience: float = 0.0) -> Self:
        """Open or make a store, and take note of what a crash left.

        Raises WorkbenchHeld if another process has it, and does not let go for `patience` seconds.
        """
        return cls(Vault.open(directory, means or Means(), patience=patience))

    def at_once(self, work: Callable[[], Answer]) -> Answer:
        """Do several things to the store as one: all of it is durable by one sync, or nothing is.

        If something that is kept turns out to be spoiled, it may be done a second time.
        """
        return self.vault.change(lambda _: work())

    def checkpoint(
        self, subject: Subject, occasion: Occasion = Occasion.MANUAL, message: str = ""
    ) -> Checkpoint:
        """Keep a whole directory as it is; durable when it returns, nothing when it raises.

        Only if the index alone could not be written, the next opening finds it after all. Where
        something must not be done without it, what goes wrong is a CheckpointCreateFailed.
        """

        def work(objects: Objects, root: int) -> Checkpoint:
            looked = Scan(objects, self._aim(subject, root)).run(subject.dirty)
            if subject.like is not None and subject.like.tree == looked.tree:
                return subject.like
            made = self._made(subject.origin, occasion, message, looked.tree, looked.totals)
            return _put(objects, made)

        return self._beneath(subject, occasion, work)

    def look(self, subject: Subject) -> Checkpoint:
        """What a directory is now; all that is in it is kept, but it is no checkpoint yet.

        It becomes one by `keep_again`; else it goes with the next pruning.
        """

        def work(objects: Objects, root: int) -> Checkpoint:
            looked = Scan(objects, self._aim(subject, root)).run(subject.dirty)
            return self._made(subject.origin, Occasion.AUTO, "", looked.tree, looked.totals)

        return self._beneath(subject, Occasion.AUTO, work)

    def layout(self, origin: str, coverage: Coverage = EVERYTHING) -> bytes:
        """A token of the directories of an origin when it was last looked at as a whole.

        It changes whenever one of them is another one than before, also if nothing in it differs.
        """
        name = f"{origin} {coverage.mark}"
        return self.vault.read(lambda objects: objects.rows.sights.layout(name))

    def graft(
        self,
        over: Checkpoint,
        subject: Subject,
        touched: Touched,
        occasion: Occasion = Occasion.AUTO,
        message: str = "",
    ) -> Checkpoint:
        """Keep the tree of `over` with what is now at the touched paths below a directory.

        It is what `checkpoint` would keep, if nothing differs anywhere else; costs what was
        touched. The mode of every directory on the way is looked at, too.
        """
        ways = ways_to(touched)

        def work(objects: Objects, root: int) -> Checkpoint:
            graft = self._graft(objects, subject, root)
            tree, totals = graft.run(root, over.tree, ways)
            graft.note()
            if subject.like is not None and subject.like.tree == tree:
                return subject.like
            return _put(objects, self._made(subject.origin, occasion, message, tree, totals))

        return self._beneath(subject, occasion, work)

    def combine(
        self,
        now: Checkpoint,
        kept: Checkpoint,
        touched: Touched,
        occasion: Occasion = Occasion.AUTO,
        message: str = "",
    ) -> Checkpoint:
        """Keep the tree `now`, except at touched paths, where it is as in `kept`."""
        ways = ways_to(touched)

        def work(objects: Objects) -> Checkpoint:
            tree, totals = combine(
                now.tree, kept.tree, ways, load=objects.tree, save=objects.put_tree
            )
            return _put(objects, self._made(now.origin, occasion, message, tree, totals))

        return self.vault.change(work)

    def keep_again(self, seen: Checkpoint, occasion: Occasion, message: str) -> Checkpoint:
        """Keep the tree of a checkpoint on another occasion."""
        totals = Totals(seen.files, seen.size, seen.uncovered)
        made = self._made(seen.origin, occasion, message, seen.tree, totals)
        return self.vault.change(lambda objects: _put(objects, made))

    def put_content(self, data: Iterable[bytes]) -> tuple[bytes, int]:
        """Keep what comes in parts of any length as one content; return its name and size.

        It is durable when this returns, and goes with the next pruning unless a checkpoint has it.
        """
        return cut_content(
            data, lambda sort, piece: self.vault.change(lambda objects: objects.put(sort, piece))
        )

    def keep(self, root: int, name: bytes) -> Node | None:
        """Keep what stands at a name below an open directory, with all below it; None if nothing.

        It becomes a checkpoint of its own, of the origin `RESCUED`. What cannot be read is not
        kept: its node says that it is not covered.
        """
        ways = Way(below={name: Way(is_touched=True, is_whole=True)})
        subject = Subject(Path(), origin=RESCUED)

        def work(objects: Objects) -> Node | None:
            tree, totals = self._graft(objects, subject, root).run(root, None, ways)
            nodes = objects.tree(tree)
            if nodes:
                made = self._made(
                    RESCUED, Occasion.MANUAL, str(RelativePath((name,))), tree, totals
                )
                _put(objects, made)
            return nodes[0] if nodes else None

        return self.vault.change(work)

    def close(self) -> None:
        """Let others have it."""
        self.vault.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _beneath(
        self, subject: Subject, occasion: Occasion, work: Callable[[Objects, int], Checkpoint]
    ) -> Checkpoint:
        """Do something to a directory that is opened for it."""
        try:
            try:
                root = os.open(subject.directory, _OPEN)
                try:
                    return self.vault.change(lambda objects: work(objects, root))
                finally:
                    os.close(root)
            except OSError as error:
                raise disk_failure(error, path=str(subject.directory)) from error
        except Failure as failure:
            if occasion not in _PRECONDITIONS:
                raise
            path = str(subject.directory)
            raise CheckpointCreateFailed(path=path, reason=failure.user_message) from failure

    def _aim(self, subject: Subject, root: int) -> Aim:
        looked_ns = int(self._clock.now() * 1e9)
        return Aim(
            root,
            subject.origin,
            subject.coverage,
            looked_ns,
            subject.news,
            subject.hides_mapped_writes,
        )

    def _graft(self, objects: Objects, subject: Subject, root: int) -> Graft:
        aim = self._aim(subject, root)
        whole = Scan(objects, aim._replace(origin=f"whole {subject.origin}"))
        return Graft(objects, whole, origin=subject.origin, coverage=subject.coverage)

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
    name = objects.put(ObjectSort.CHECKPOINT, encode_checkpoint(made))
    objects.rows.roster.add(made.id, name)
    return made
