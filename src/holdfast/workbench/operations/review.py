"""Review a draft: its changes, conflicts and merges, with a seal over what was shown.

Changes are marked that run by themselves. Besides well-known names, git runs or obeys files that a
configuration names (`core.hooksPath`, `include.path`), and directories that look like a bare
repository. Configurations are those of the project and its nested repositories, in project and
draft, and the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import BinaryIO

from holdfast.confine import CONFIG_BYTES_MAX, obeyed_in, read_configuration, shared_configurations
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench.diff.three_way import ConflictReason, Decisions, PathVerdict, is_chosen
from holdfast.workbench.git.ignore_rules import folded
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import (
    ChangeNote,
    Checkpoint,
    Draft,
    EntryKind,
    PathChange,
    UncoveredPath,
)
from holdfast.workbench.objects.formats import NodeKind
from holdfast.workbench.operations.change_view import (
    FileDiff,
    Marker,
    file_diffs,
    marked_by_name,
    write_patch,
)
from holdfast.workbench.operations.draft_selection import resolve_draft
from holdfast.workbench.operations.draft_state import DraftState, draft_state, unpublishable
from holdfast.workbench.operations.ignored_files import ignored_paths
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.project_merge import Merges, merges_of
from holdfast.workbench.operations.publish import PublishOrder, plan, planned_changes, seal_of_plan
from holdfast.workbench.operations.recovery import opened
from holdfast.workbench.store.store import Store

_BARE = {b"HEAD": NodeKind.FILE, b"objects": NodeKind.DIRECTORY, b"refs": NodeKind.DIRECTORY}
_WORDS = {
    "core.hooksPath": "git runs the hooks in it (core.hooksPath)",
    "include.path": "git obeys it as configuration (include.path)",
}
_IN_BARE = "git takes the directory for a bare repository, and obeys its configuration and hooks"


def marker_of(handle: WorkbenchHandle, state: DraftState) -> Marker:
    """Return the function that marks changes of a draft which run by themselves."""
    store, project = handle.store, str(handle.context.project)
    directories = set(_directories(each.path for each in state.changes))
    obeyed = {
        path: _WORDS[key]
        for checkpoint in (state.theirs, state.ours)
        for path, key in _obeyed(store, checkpoint, project, directories)
    }

    @cache
    def is_bare(directory: RelativePath | None) -> bool:
        return _is_bare(store, state.ours, directory)

    def marker(change: PathChange) -> str:
        found = marked_by_name(change)
        if found or change.after is None or change.after.kind is EntryKind.DIRECTORY:
            return found
        path = change.path
        for each, why in obeyed.items():
            if path.within(each):
                return why
        above = path.parent
        if path.name in (b"config", b"HEAD") and is_bare(above):
            return _IN_BARE
        is_hook = above is not None and above.name == b"hooks"
        return _IN_BARE if is_hook and above is not None and is_bare(above.parent) else ""

    return marker


def _directories(paths: Iterable[RelativePath]) -> Iterator[RelativePath]:
    """Yield every directory above the paths, except the root."""
    seen: set[RelativePath] = set()
    for path in paths:
        above = path.parent
        while above is not None and above not in seen:
            seen.add(above)
            yield above
            above = above.parent


def _obeyed(
    store: Store, checkpoint: Checkpoint, project: str, directories: Iterable[RelativePath]
) -> Iterator[tuple[RelativePath, str]]:
    """Yield paths in the project that a git configuration runs or includes, with the key."""

    def read(path: str) -> bytes:
        inside = _inside(project, path)
        return read_configuration(path) if inside is None else _content(store, checkpoint, inside)

    home, shared = shared_configurations()
    worktrees = [
        os.fsdecode(b"/".join((os.fsencode(project), *each.parts)))
        for each in directories
        if store.node(checkpoint, each / b".git") is not None
    ]
    for worktree in (project, *worktrees):
        for each in obeyed_in(worktree, read, home=home, shared=shared):
            path = _inside(project, each.path)
            if path is not None:
                yield path, each.key


def _inside(project: str, path: str) -> RelativePath | None:
    """A path as it is seen from the project, if it is inside and can exist."""
    if not path.startswith(f"{project}/"):
        return None
    with suppress(PathInvalid):
        return RelativePath.of(os.fsencode(path[len(project) + 1 :]))
    return None


def _content(store: Store, checkpoint: Checkpoint, path: RelativePath) -> bytes:
    node = store.node(checkpoint, path)
    if node is None or node.kind is not NodeKind.FILE or node.size > CONFIG_BYTES_MAX:
        return b""
    return b"".join(store.content(node.object))


def _is_bare(store: Store, checkpoint: Checkpoint, directory: RelativePath | None) -> bool:
    for name, kind in _BARE.items():
        path = RelativePath((name,)) if directory is None else directory / name
        node = store.node(checkpoint, path)
        if node is None or node.kind is not kind:
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A path in conflict, with the reason."""

    path: RelativePath
    reason: ConflictReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All that a draft changes, and what would become of it.

    `withheld` is what of `.git` is not published unless it is asked for, `ignored` how much git
    ignores in each directory at the top, which is not published either; `merges` will be merged
    into the draft first; `overwrites` goes over something that changed in the project, because
    that was asked for; `uncovered` is what of the draft cannot be published at all.
    """

    draft: Draft
    seal: str
    files: tuple[FileDiff, ...]
    withheld: tuple[RelativePath, ...]
    ignored: Mapping[str, int]
    conflicts: tuple[Conflict, ...]
    merges: tuple[RelativePath, ...]
    overwrites: tuple[RelativePath, ...]
    uncovered: tuple[UncoveredPath, ...]


def review(
    workbench: Workbench,
    draft: str | None = None,
    paths: Sequence[RelativePath] = (),
    *,
    with_git: bool = False,
    with_ignored: bool = False,
    patch: BinaryIO | None = None,
) -> Review:
    """What a draft changes, all of it or at these paths; the seal is always that of all.

    What git ignores is only counted, unless it is asked for or one of the paths.
    `patch` is a file that gets all of it in the form that `git apply` takes.
    """
    with workbench.locked() as (handle, _):
        found = resolve_draft(handle, draft, with_git=with_git, with_ignored=with_ignored)
        with opened(handle, found) as view:
            state = draft_state(handle, view, found)
        only = frozenset(paths) or None
        ignored = frozenset[RelativePath]() if with_ignored else ignored_paths(handle, state, only)
        decided = state.decided(with_git=with_git, ignored=ignored)
        withheld = {path for path, one in decided.items() if one.verdict is PathVerdict.WITHHELD}
        changes = tuple(
            each
            for each in state.changes
            if is_chosen(each.path, only) and each.path not in withheld
        )
        if patch is not None:
            write_patch(handle.store, changes, patch, marker_of(handle, state))
        merges = merges_of(handle.store, state, decided)
        return _review(handle, state, _Seen(decided, merges, ignored, changes), only)


def preview(workbench: Workbench, order: PublishOrder) -> Review:
    """Return what `publish` would do with an order, down to hunks.

    Conflicts and merges are included in `files`; the seal covers only this order.
    """
    with workbench.locked() as (handle, _):
        draft = resolve_draft(
            handle, order.draft, with_git=order.with_git, with_ignored=order.with_ignored
        )
        with opened(handle, draft) as view:
            state = draft_state(handle, view, draft)
        decided, merges, ignored = plan(handle, state, order)
        changes = {each.path: each for each in planned_changes(handle, state, decided, order)}
        stopping = {PathVerdict.MERGE, PathVerdict.CONFLICT}
        changes |= {
            each.path: each
            for each in state.changes
            if each.path in decided and decided[each.path].verdict in stopping
        }
        every = tuple(changes[path] for path in sorted(changes))
        found = _review(handle, state, _Seen(decided, merges, ignored, every), None)
        return replace(found, seal=seal_of_plan(state, decided))


@dataclass(frozen=True, slots=True)
class _Seen:
    """Decisions, merges, ignored paths and shown changes of a review."""

    decided: Decisions
    merges: Merges
    ignored: frozenset[RelativePath]
    changes: tuple[PathChange, ...]


def _review(
    handle: WorkbenchHandle, state: DraftState, seen: _Seen, only: frozenset[RelativePath] | None
) -> Review:
    conflicts = {
        path: found.reason
        for path, found in seen.decided.items()
        if found.verdict is PathVerdict.CONFLICT and found.reason is not None
    }
    conflicts |= dict.fromkeys(seen.merges.clashes, ConflictReason.BOTH_CHANGED)
    withheld = [path for path, one in seen.decided.items() if one.verdict is PathVerdict.WITHHELD]
    return Review(
        draft=state.draft,
        seal=state.seal,
        files=_with_hard_links(
            handle, file_diffs(handle.store, seen.changes, marker_of(handle, state))
        ),
        withheld=tuple(
            path for path in withheld if is_chosen(path, only) and path not in seen.ignored
        ),
        ignored=folded([path for path in seen.ignored if is_chosen(path, only)]),
        conflicts=tuple(
            Conflict(path=path, reason=reason)
            for path, reason in sorted(conflicts.items())
            if is_chosen(path, only)
        ),
        merges=tuple(path for path in sorted(seen.merges.merged) if is_chosen(path, only)),
        overwrites=tuple(
            path
            for path, found in sorted(seen.decided.items())
            if found.verdict is PathVerdict.APPLY
            and state.trees.base.get(path) != state.trees.theirs.get(path)
        ),
        uncovered=tuple(
            each for each in unpublishable(handle, state) if is_chosen(each.path, only)
        ),
    )


def _with_hard_links(handle: WorkbenchHandle, files: tuple[FileDiff, ...]) -> tuple[FileDiff, ...]:
    """Add a note to files with several hard links: a publish changes only one of them."""
    noted: list[FileDiff] = []
    for each in files:
        count = 1
        if each.before is not None and each.before.kind is EntryKind.FILE:
            with suppress(OSError):
                count = os.lstat(
                    os.fsencode(handle.context.project) + b"/" + each.path.raw
                ).st_nlink
        text = f"{count:,} hard links: its other names keep the old content"
        note = (ChangeNote(text, is_loud=False),) if count > 1 else ()
        noted.append(replace(each, notes=each.notes + note))
    return tuple(noted)
