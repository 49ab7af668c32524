"""Resolve conflicts in a draft by bringing in the project's version.

A path is in conflict if draft and project both differ from the draft's base. Resolving it writes a
merge, a merge with conflict markers, or one of the versions to the draft, and makes the project's
version the base of that path: the draft then differs only from the project, and a publish applies
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.merge import is_text, merge_marked
from holdfast.workbench.diff.three_way import ConflictReason, PathDecision, PathVerdict, is_chosen
from holdfast.workbench.diff.tree_changes import known_entry
from holdfast.workbench.failures import MergeNothing, PathMissing
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.operations.draft_selection import resolve_draft
from holdfast.workbench.operations.draft_state import DraftState, draft_state
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.project_merge import put_into_draft
from holdfast.workbench.operations.recovery import opened
from holdfast.workbench.operations.revisions import revised
from holdfast.workbench.store.tree_queries import store_contents, text_of


class MergeSide(StrEnum):
    """Version to take where both sides changed."""

    BOTH = "both"  # merged, with conflict markers where lines clash
    OURS = "ours"  # the draft's
    THEIRS = "theirs"  # the project's


class Version(StrEnum):
    """Which version of a file to return."""

    DRAFT = "draft"
    PROJECT = "project"
    BASE = "base"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMerge:
    """Result of resolving conflicts.

    `merged` without conflicts, `marked` with conflict markers, `taken` from one version;
    `unresolved` cannot be merged by lines and need a version to be chosen.
    """

    draft: str
    merged: tuple[RelativePath, ...] = ()
    marked: tuple[RelativePath, ...] = ()
    taken: tuple[RelativePath, ...] = ()
    unresolved: tuple[RelativePath, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """Entry and content of one version of a file; for a link, its target."""

    draft: str
    entry: PathEntry
    content: bytes


def merge_draft(
    workbench: Workbench,
    draft: str | None = None,
    paths: Sequence[RelativePath] = (),
    side: MergeSide = MergeSide.BOTH,
) -> DraftMerge:
    """Resolve conflicts of a draft, all or at these paths.

    Leaves a revision; raises MergeNothing for a path without conflict.
    """
    with workbench.locked() as (handle, _):
        found = resolve_draft(handle, draft)
        with opened(handle, found) as view:
            state = draft_state(handle, view, found)
            conflicts = _conflicts(state, frozenset(paths) or None)
            for path in paths:
                if not any(each.within(path) for each in conflicts):
                    raise MergeNothing(draft=found.id, path=str(path))
            resolution = _Resolution(handle, state, side)
            for path, decision in sorted(conflicts.items()):
                resolution.add(path, decision)
            if resolution.resolved:
                put_into_draft(handle, view, state, resolution.changes(), resolution.resolved)
                found = handle.drafts.find(found.id)
                revised(handle, draft_state(handle, view, found, state.theirs), "merged")
        return resolution.told()


def file_version(
    workbench: Workbench, path: RelativePath, version: Version, draft: str | None = None
) -> FileVersion:
    """Return one version of a file; raises PathMissing."""
    with workbench.locked() as (handle, _):
        found = resolve_draft(handle, draft)
        with opened(handle, found) as view:
            state = draft_state(handle, view, found)
        checkpoint = {
            Version.DRAFT: state.ours,
            Version.PROJECT: state.theirs,
            Version.BASE: state.base,
        }[version]
        entry = known_entry(handle.store.node(checkpoint, path))
        if entry is None or entry.kind not in {EntryKind.FILE, EntryKind.LINK}:
            raise PathMissing(path=str(path), version=version.value)
        is_link = entry.kind is EntryKind.LINK
        content = entry.target if is_link else b"".join(handle.store.content(entry.content))
        return FileVersion(draft=found.id, entry=entry, content=content)


def _conflicts(
    state: DraftState, only: frozenset[RelativePath] | None
) -> dict[RelativePath, PathDecision]:
    return {
        path: found
        for path, found in state.decided().items()
        if found.verdict in {PathVerdict.MERGE, PathVerdict.CONFLICT}
        and found.reason is not ConflictReason.NOT_COVERED
        and is_chosen(path, only)
    }


class _Texts(NamedTuple):
    base: bytes
    theirs: bytes
    ours: bytes


@dataclass(slots=True)
class _Resolution:
    """Entries written to the draft for each conflict."""

    handle: WorkbenchHandle
    state: DraftState
    side: MergeSide
    resolved: set[RelativePath] = field(default_factory=set[RelativePath])
    entries: dict[RelativePath, PathEntry | None] = field(
        default_factory=dict[RelativePath, "PathEntry | None"]
    )
    texts: dict[RelativePath, bytes] = field(default_factory=dict[RelativePath, bytes])
    marked: set[RelativePath] = field(default_factory=set[RelativePath])
    unresolved: set[RelativePath] = field(default_factory=set[RelativePath])

    def add(self, path: RelativePath, decision: PathDecision) -> None:
        """Resolve one conflict."""
        if self.side is MergeSide.BOTH:
            self._merge(path)
            return
        _, theirs, _ = self.state.trees
        group = self._around(path) if decision.reason is ConflictReason.IN_THE_WAY else (path,)
        for each in group:
            self.resolved.add(each)
            if self.side is MergeSide.THEIRS:
                self.entries[each] = theirs.get(each)

    def changes(self) -> tuple[PathChange, ...]:
        """Changes of the draft."""
        base, theirs, ours = self.state.trees
        contents = store_contents(self.handle.store, list(self.texts.values()))
        for path, (content, size) in zip(self.texts, contents, strict=True):
            entry = _merged_entry(base.get(path), theirs[path], ours[path])
            self.entries[path] = replace(entry, content=content, size=size)
        return tuple(
            PathChange(path, ours.get(path), entry)
            for path, entry in sorted(self.entries.items())
            if entry != ours.get(path)
        )

    def told(self) -> DraftMerge:
        """What became of all of them."""
        merged = self.texts.keys() - self.marked
        return DraftMerge(
            draft=self.state.draft.id,
            merged=tuple(sorted(merged)),
            marked=tuple(sorted(self.marked)),
            taken=tuple(sorted(self.resolved - self.texts.keys())),
            unresolved=tuple(sorted(self.unresolved)),
        )

    def _merge(self, path: RelativePath) -> None:
        texts = self._read(path)
        if texts is None:
            self.unresolved.add(path)
            return
        result = merge_marked(*texts)
        self.texts[path] = result.content
        self.resolved.add(path)
        if result.clashes:
            self.marked.add(path)

    def _read(self, path: RelativePath) -> _Texts | None:
        """The three versions of a text; an empty base if both created it."""
        base, theirs, ours = self.state.trees
        old = base.get(path)
        before = b"" if old is None else text_of(self.handle.store, old)
        texts = (
            before,
            text_of(self.handle.store, theirs.get(path)),
            text_of(self.handle.store, ours.get(path)),
        )
        if not all(each is not None and is_text(each) for each in texts):
            return None
        return _Texts(*(each or b"" for each in texts))

    def _around(self, path: RelativePath) -> Iterable[RelativePath]:
        """Paths above and below that are part of the same conflict."""
        every = {each for tree in self.state.trees for each in tree}
        return {each for each in every if each.within(path) or path.within(each)}


def _merged_entry(base: PathEntry | None, theirs: PathEntry, ours: PathEntry) -> PathEntry:
    """A file with the changed mode; if both changed it, the draft's."""
    if base is None:
        return ours
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    xattrs = theirs.xattrs if ours.xattrs == base.xattrs else ours.xattrs
    return replace(ours, mode=mode, xattrs=xattrs)
