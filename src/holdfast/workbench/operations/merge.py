"""Bring the project's newer version of files into a draft, so that they can be published.

A path that was changed on both sides is a conflict because draft and project both differ from the
draft's base. Resolving it puts something into the draft (a merge, a merge with conflict markers, or
one of the two versions) and makes the project's version the base there: from then on the draft
differs from what the project has, and a publication applies it.
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
    """Whose version is taken where both changed."""

    BOTH = "both"  # merged, with conflict markers where lines clash
    OURS = "ours"  # the draft's
    THEIRS = "theirs"  # the project's


class Version(StrEnum):
    """Which version of a file is meant."""

    DRAFT = "draft"
    PROJECT = "project"
    BASE = "base"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMerge:
    """What became of the conflicts of a draft.

    `merged` went together, `marked` have conflict markers in them now, of `taken` one version was
    taken. About `unresolved` nobody can decide by lines: one of the versions must be chosen.
    """

    draft: str
    merged: tuple[RelativePath, ...] = ()
    marked: tuple[RelativePath, ...] = ()
    taken: tuple[RelativePath, ...] = ()
    unresolved: tuple[RelativePath, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """One version of a file or link: what it is, and its content or the target of the link."""

    draft: str
    entry: PathEntry
    content: bytes


def merge_draft(
    workbench: Workbench,
    draft: str | None = None,
    paths: Sequence[RelativePath] = (),
    side: MergeSide = MergeSide.BOTH,
) -> DraftMerge:
    """Resolve conflicts of a draft with its project, all of them or those at these paths.

    Leaves a revision. Raises MergeNothing if a path was named at which there is no conflict.
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
    """One version of a file; raises PathMissing if that version has no file or link there."""
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
    """What is put into a draft for each conflict, as it is decided."""

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
        """Decide about one conflict."""
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
        """What is put into the draft."""
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
        """The three versions of a text; one that both made has an empty base."""
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
        """All that stands in the way of a path, or that it stands in the way of."""
        every = {each for tree in self.state.trees for each in tree}
        return {each for each in every if each.within(path) or path.within(each)}


def _merged_entry(base: PathEntry | None, theirs: PathEntry, ours: PathEntry) -> PathEntry:
    """A file with the mode that is new; if both are, with the draft's."""
    if base is None:
        return ours
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    xattrs = theirs.xattrs if ours.xattrs == base.xattrs else ours.xattrs
    return replace(ours, mode=mode, xattrs=xattrs)
