"""What is kept of one project, for whoever only reads it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import suppress

from holdfast.nouns import RelativePath
from holdfast.workbench.core.changes import changes, node_at, uncovered_paths
from holdfast.workbench.core.tree import Node
from holdfast.workbench.failures import CheckpointMissing, ObjectDamaged, ObjectMissing
from holdfast.workbench.model import Change, Checkpoint, Uncovered
from holdfast.workbench.objects import Objects, content
from holdfast.workbench.vault import Vault

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
