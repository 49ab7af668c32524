"""Find changes of a draft that git ignores.

Git is not run: `.gitignore` files are read from the draft's checkpoint, `.git/info/exclude` and the
index from the repository. `.gitignore` files apply without a repository, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import above_of, is_own_repository
from holdfast.workbench.git.ignore_rules import (
    IgnoreRule,
    IgnoreRules,
    Parts,
    ignored_changes,
    parse_rules,
    tracked_in,
)
from holdfast.workbench.git.repository import common_directory, pointed_to
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import Checkpoint, PathEntry
from holdfast.workbench.objects.formats import NodeKind
from holdfast.workbench.operations.draft_state import DraftState
from holdfast.workbench.store.store import Store

_RULES = b".gitignore"
_RULES_BYTES_MAX = 1 << 20
_INDEX_BYTES_MAX = 256 << 20
_REPOSITORY = RelativePath.of(".git")


def ignored_paths(
    handle: WorkbenchHandle, state: DraftState, named: Collection[RelativePath] | None = None
) -> frozenset[RelativePath]:
    """Return changed paths that git ignores, except those named by the user.

    Naming a directory that is not ignored selects nothing ignored in it.
    """
    repository = _repository(handle, state)
    if not _ignored(state, _rules(handle, state, repository.excluded)):
        # The usual case, without reading the index.
        return frozenset()
    rules = _rules(handle, state, repository.excluded, repository.indexes())
    found = _ignored(state, rules)
    if not named:
        return found
    meant = [each for each in named if each in found or rules.is_ignored(each, is_directory=True)]
    needed = {above for each in meant for above in above_of(each)}
    return frozenset(
        path for path in found - needed if not any(path.within(each) for each in meant)
    )


def _ignored(state: DraftState, rules: IgnoreRules) -> frozenset[RelativePath]:
    def is_ignored(path: RelativePath, entry: PathEntry) -> bool:
        is_directory = entry.is_directory
        return not is_own_repository(path) and rules.is_ignored(path, is_directory=is_directory)

    return ignored_changes(state.changes, is_ignored)


def _rules(
    handle: WorkbenchHandle, state: DraftState, excluded: bytes = b"", indexes: Sequence[bytes] = ()
) -> IgnoreRules:
    store = handle.store

    def rules_in(directory: Parts) -> tuple[IgnoreRule, ...]:
        path = RelativePath((*directory, _RULES))
        return parse_rules(_content(store, state.ours, path, _RULES_BYTES_MAX) or b"")

    tracked = {
        tuple(path.split(b"/"))
        for index in indexes
        if (found := tracked_in(index)) is not None
        for path in found.paths
    }
    return IgnoreRules(rules_in, also=parse_rules(excluded), tracked=tracked)


class _Repository(NamedTuple):
    """Content of `info/exclude`, and readers of the indexes."""

    excluded: bytes = b""
    readers: tuple[Callable[[str], bytes | None], ...] = ()

    def indexes(self) -> list[bytes]:
        """Every index, with shared indexes of split ones."""
        found: list[bytes] = []
        for read in self.readers:
            index = read("index")
            if index is None or index in found:
                continue
            found.append(index)
            tracked = tracked_in(index)
            shared = read(f"sharedindex.{tracked.shared}") if tracked and tracked.shared else None
            found += [] if shared is None else [shared]
        return found


def _repository(handle: WorkbenchHandle, state: DraftState) -> _Repository:
    """Locate the repository of a project, inside or, for a worktree or submodule, elsewhere."""
    store, theirs = handle.store, state.theirs
    pointer = _content(store, theirs, _REPOSITORY, _RULES_BYTES_MAX)
    if pointer is None:
        path = _REPOSITORY / "info" / "exclude"
        return _Repository(
            _content(store, theirs, path, _RULES_BYTES_MAX) or b"",
            tuple(partial(_index_in, store, checkpoint) for checkpoint in (theirs, state.ours)),
        )
    pointed = pointed_to(pointer)
    if pointed is None:
        return _Repository()
    directory = os.path.join(os.fsencode(handle.context.project), pointed)
    shared = common_directory(_read(os.path.join(directory, b"commondir")) or b"")
    common = directory if shared is None else os.path.join(directory, shared)
    excluded = _read(os.path.join(common, b"info", b"exclude")) or b""
    return _Repository(excluded, (partial(_index_at, directory),))


def _index_in(store: Store, checkpoint: Checkpoint, name: str) -> bytes | None:
    return _content(store, checkpoint, _REPOSITORY / name, _INDEX_BYTES_MAX)


def _index_at(directory: bytes, name: str) -> bytes | None:
    return _read(os.path.join(directory, name.encode()), _INDEX_BYTES_MAX)


def _read(path: bytes, bytes_max: int = _RULES_BYTES_MAX) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(bytes_max)
    except OSError:
        return None


def _content(
    store: Store, checkpoint: Checkpoint, path: RelativePath, bytes_max: int
) -> bytes | None:
    """Content of a file in a checkpoint; None if missing or too large."""
    node = store.node(checkpoint, path)
    if node is None or node.kind is not NodeKind.FILE or node.size > bytes_max:
        return None
    return b"".join(store.content(node.object))
