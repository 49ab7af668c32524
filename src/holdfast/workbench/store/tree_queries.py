"""Queries on stored trees: checkpoints by prefix, subtrees, texts, and derived trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.nouns import RelativePath, check_id
from holdfast.nouns.failures import IdInvalid
from holdfast.workbench.diff.merge import MERGE_BYTES_MAX
from holdfast.workbench.diff.tree_changes import (
    ThreeEntries,
    known_entry,
    small_tree,
    three_entries,
)
from holdfast.workbench.failures import CheckpointMissing
from holdfast.workbench.model import Checkpoint, EntryKind, PathEntry, TouchedPaths
from holdfast.workbench.objects.formats import PREFIX, Node, NodeKind, split_content
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.store.store import Store, named_checkpoints

BASE = "base"
"""Origin of the computed base of a draft, which is not a state of any project."""

# An older one is rarely equal, so the search stops here.
_LOOKED_AT_MAX = 32


def find_checkpoint(store: Store, id: str) -> Checkpoint:
    """Return the checkpoint with an id or a unique prefix of it; raises CheckpointMissing."""
    with suppress(IdInvalid, CheckpointMissing):
        return store.find(check_id(id, PREFIX))
    every = store.object_store.read(lambda objects: objects.rows.checkpoints.all())
    found = [each for each, _ in every if _begins(each, id)]
    if len(found) != 1 or not id:
        raise CheckpointMissing(checkpoint=id)
    return store.find(found[0])


def latest(store: Store, origin: str) -> Checkpoint | None:
    """Return the newest checkpoint of an origin among the most recent ones."""

    def work(objects: Objects) -> Checkpoint | None:
        recent = named_checkpoints(objects, _LOOKED_AT_MAX)
        return next((each for _, each in recent if each.origin == origin), None)

    return store.object_store.read(work)


def entries_below(
    store: Store, checkpoint: Checkpoint, path: RelativePath
) -> dict[RelativePath, PathEntry]:
    """Return all entries of a checkpoint at a path and below it.

    Uncovered paths are entries of kind SPECIAL, which no plan can replace.
    """

    def work(objects: Objects) -> dict[RelativePath, PathEntry]:
        return dict(_walk(objects, path, node))

    node = store.node(checkpoint, path)
    return store.object_store.read(work)


def combined(
    store: Store, now: Checkpoint, kept: Checkpoint, paths: Iterable[RelativePath]
) -> Checkpoint:
    """Store `now` with these paths taken from `kept`, as a base of a draft."""
    return store.combine(replace(now, origin=BASE), kept, TouchedPaths(paths=frozenset(paths)))


def tree_with_entries(
    store: Store, over: Checkpoint, entries: Mapping[RelativePath, PathEntry | None]
) -> Checkpoint:
    """Store `over` with these entries replaced, as a base of a draft."""
    tree = store.object_store.change(lambda objects: small_tree(entries, objects.put_tree))
    return combined(store, over, replace(over, tree=tree), entries)


def uncovered_entries(
    store: Store, base: Checkpoint, theirs: Checkpoint, ours: Checkpoint
) -> dict[RelativePath, ThreeEntries]:
    """Return entries that differ at paths which one of three checkpoints does not cover."""
    three = (base, theirs, ours)
    paths = {each.path for one in three if one.uncovered for each in store.uncovered(one)}
    found = {path: three_entries(*(store.node(one, path) for one in three)) for path in paths}
    return {path: one for path, one in found.items() if one is not None and len({*one}) > 1}


def store_contents(store: Store, data: Sequence[bytes]) -> list[tuple[bytes, int]]:
    """Store several contents in one transaction; return hash and size of each."""
    if not data:
        return []
    return store.object_store.change(
        lambda objects: [split_content([one], objects.put) for one in data]
    )


def text_of(store: Store, entry: PathEntry | None) -> bytes | None:
    """Return the content of a file; None if it is not a file or too large for a line diff."""
    if entry is None or entry.kind is not EntryKind.FILE or entry.size > MERGE_BYTES_MAX:
        return None
    return b"".join(store.content(entry.content))


def _begins(id: str, with_: str) -> bool:
    return id.startswith(with_) or id.partition("_")[2].startswith(with_)


def _walk(
    objects: Objects, path: RelativePath, node: Node | None
) -> Iterator[tuple[RelativePath, PathEntry]]:
    entry = known_entry(node)
    if node is None or entry is None:
        return
    yield path, entry
    if node.kind is NodeKind.DIRECTORY:
        for each in objects.tree(node.object):
            yield from _walk(objects, path / each.name, each)
