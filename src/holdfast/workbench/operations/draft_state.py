"""State of a draft relative to its project, with its overlay kept in sync.

Changes of the project show through an overlay by themselves, except at paths written in the draft.
For a copy, and for files written without a difference, they are applied here: an entry that the
draft has as in its base becomes the project's current one. Wherever draft and project agree, that
becomes the base; elsewhere the base stays as it was.

Theory of operation. The kernel looks a name up in both layers once and keeps what it found, as
long as anything uses it. Changes of the lower layer under a mount are undefined in its manual; with
the options that places are mounted with (no `redirect_dir`, `metacopy`, `index`) they come to this:

1. A directory that was made in the draft has no lower directory, so what is removed in it leaves no
   whiteout. Once the project has that directory, too (it was published, or the person made it), a
   later mount merges the two, and what was removed is back. Therefore such a directory is detached,
   that is marked opaque in the upper layer, before a publication makes it in the project, and when
   it is found there. From then on the draft has a copy of it: what the person changes in it is
   written into the draft (`state`). A directory that the project has lost while the draft keeps
   its own is such a directory, too, from then on: the base still has it, so when the project gets
   it back there is no difference that would tell.
2. A directory of the project that was removed and made again is seen as the removed one, which is
   empty. Mounting the overlay again drops all names that nothing uses. This is done when contents
   changed, and when any directory became another one (`layout`), as switching branches there and
   back does.
3. What a process inside uses (its working directory, an open file) is not dropped. Where that is
   a file, the project's entry is written into the draft, unless the upper layer decides about that
   path. A directory that was removed from the project and is used inside is as dead there as it is
   on any file system: it cannot be listed, which is told as such (`listing`), and it is dropped
   once the process ends, because the overlay is mounted again at every look until then.

Decision: docs/decisions/0103-draft-base-moves-by-path.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import Decisions, changes_of, decide_all, seal_of
from holdfast.workbench.diff.tree_changes import ThreeTrees, differing, known_entry
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.handle import PUBLISHED, WorkbenchHandle
from holdfast.workbench.model import (
    Checkpoint,
    Draft,
    EntryKind,
    Occasion,
    PathChange,
    PathEntry,
    UncoveredPath,
    UncoveredReason,
)
from holdfast.workbench.store.store import CheckpointSource
from holdfast.workbench.store.tree_queries import combined, latest, uncovered_entries
from holdfast.workbench.transaction.machine import Purpose, TransactionResult
from holdfast.workbench.transaction.path_state import inspect_path
from holdfast.workbench.transaction.transaction import execute


def made_in(changes: Iterable[PathChange]) -> Iterator[RelativePath]:
    """Yield directories that these changes create."""
    for change in changes:
        was_directory = change.before is not None and change.before.is_directory
        if change.after is not None and change.after.is_directory and not was_directory:
            yield change.path


def gone_in(changes: Iterable[PathChange]) -> Iterator[RelativePath]:
    """Yield directories that these changes remove or replace."""
    return made_in(PathChange(each.path, each.after, each.before) for each in changes)


def follow_project(
    handle: WorkbenchHandle,
    view: DraftView,
    draft: Draft,
    moved: tuple[PathChange, ...],
    theirs: Checkpoint,
) -> None:
    """Make the overlay show the project as it is, at paths that the draft did not write.

    `moved` are the changes of the project since the base of the draft. Does nothing for a copy.
    """
    layer = view.layer()
    if layer is None:
        return
    layout = handle.store.layout(PUBLISHED)
    is_renewed = not view.is_current(layout)
    if not moved and not is_renewed:
        return
    view.detach(made_in(moved))
    view.refresh()
    view.detach(gone_in(moved))
    _repair(handle, view, draft, theirs, view.stale(change.path for change in moved))
    if not view.processes and not view.has_dead:
        view.note_current(layout)


def _repair(
    handle: WorkbenchHandle,
    view: DraftView,
    draft: Draft,
    theirs: Checkpoint,
    stale: Iterable[RelativePath],
) -> None:
    """Write the project's entries to paths at which the kernel still shows others.

    A concurrent write leaves it to the next call.
    """
    layer = view.layer()
    assert layer is not None, "only an overlay can be stale"
    changes: list[PathChange] = []
    for path in sorted(path for path in stale if not layer.decides(path)):
        want, have = known_entry(handle.store.node(theirs, path)), inspect_path(view.root, path)
        if want != have and not _is_special(want) and not _is_special(have):
            changes.append(PathChange(path, have, want))
    if changes:
        execute(
            handle.draft_site(draft, view),
            handle.store,
            changes,
            purpose=Purpose(handle.ids.make("tx")),
            record_outcome=lambda _: None,
            on_progress=handle.context.on_progress,
        )


def _is_special(entry: PathEntry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.SPECIAL


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChanges:
    """A draft, its base, and its changes."""

    draft: Draft
    base: Checkpoint
    ours: Checkpoint
    changes: tuple[PathChange, ...]

    @property
    def seal(self) -> str:
        """Hash that a review approves."""
        return seal_of(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftState(DraftChanges):
    """Changes of a draft with the current project, and where all three trees differ.

    `uncovered` are paths of the project that cannot be stored and must stay as they are.
    """

    theirs: Checkpoint
    trees: ThreeTrees
    uncovered: frozenset[RelativePath]

    def decided(
        self, *, with_git: bool = False, ignored: frozenset[RelativePath] = frozenset()
    ) -> Decisions:
        """Decide what a publish would do with each path; `ignored` paths are withheld."""
        return decide_all(
            *self.trees,
            uncovered=self.uncovered,
            publishes_repository=with_git,
            withheld=ignored,
        )


def draft_state(
    handle: WorkbenchHandle, view: DraftView, draft: Draft, theirs: Checkpoint | None = None
) -> DraftState:
    """Bring a draft up to date with its project and return its state.

    `theirs` is a checkpoint of the project, if one was just made.
    """
    theirs = theirs or handle.look()
    draft, base = _based(handle, view, draft, theirs)
    follow_project(handle, view, draft, handle.store.changes(base, theirs), theirs)
    ours = _look(handle, view, draft, theirs)
    ours = _follow(handle, view, draft, (base, theirs, ours))
    draft, base = _rebased(handle, draft, (base, theirs, ours))
    changes = handle.store.changes(base, ours)
    hidden = uncovered_entries(handle.store, base, theirs, ours)
    return DraftState(
        draft=draft,
        base=base,
        ours=ours,
        changes=changes,
        theirs=theirs,
        trees=differing(handle.store.changes(base, theirs), changes, hidden),
        uncovered=uncovered_in(handle, theirs),
    )


def draft_changes(handle: WorkbenchHandle, view: DraftView, draft: Draft) -> DraftChanges:
    """Return the changes of an up-to-date draft without scanning the project.

    Costs what was written, for an overlay.
    """
    if draft.base is None:
        return draft_state(handle, view, draft)
    base = handle.store.find(draft.base)
    ours = _look(handle, view, draft, base)
    return DraftChanges(draft=draft, base=base, ours=ours, changes=handle.store.changes(base, ours))


def uncovered_in(handle: WorkbenchHandle, checkpoint: Checkpoint) -> frozenset[RelativePath]:
    if not checkpoint.uncovered:
        return frozenset()
    return frozenset(each.path for each in handle.store.uncovered(checkpoint))


def unpublishable(handle: WorkbenchHandle, state: DraftState) -> tuple[UncoveredPath, ...]:
    """Return paths of a draft that cannot be stored and are not in the project."""
    if not state.ours.uncovered:
        return ()
    return tuple(
        each
        for each in handle.store.uncovered(state.ours)
        if each.reason is not UncoveredReason.POLICY and each.path not in state.uncovered
    )


def _look(handle: WorkbenchHandle, view: DraftView, draft: Draft, over: Checkpoint) -> Checkpoint:
    """Make a checkpoint of the draft; for an overlay, a partial one over `over`."""
    origin = f"draft-{draft.id}"
    touched = view.touched()
    subject = CheckpointSource(
        handle.drafts.copy_of(draft) if touched is None else Path(f"/proc/self/fd/{view.root}"),
        origin,
        on_progress=handle.context.on_progress,
        like=latest(handle.store, origin),
        hides_mapped_writes=view.hides_mapped_writes,
    )
    if touched is None:
        return handle.store.checkpoint(subject, Occasion.AUTO)
    return handle.store.partial_checkpoint(over, subject, touched, Occasion.AUTO)


_Three = tuple[Checkpoint, Checkpoint, Checkpoint]


def _based(
    handle: WorkbenchHandle, view: DraftView, draft: Draft, theirs: Checkpoint
) -> tuple[Draft, Checkpoint]:
    """Return the base of a draft; a new draft is based on what it shows now."""
    if draft.base is not None:
        return draft, handle.store.find(draft.base)
    is_layer = view.touched() is not None
    base = theirs if is_layer else _look(handle, view, draft, theirs)
    draft = replace(draft, base=base.id)
    handle.drafts.save(draft)
    return draft, base


def _follow(handle: WorkbenchHandle, view: DraftView, draft: Draft, three: _Three) -> Checkpoint:
    """Apply project changes to the draft at paths that the draft did not change."""
    base, theirs, ours = three
    moved = handle.store.changes(base, theirs)
    hidden = uncovered_entries(handle.store, base, ours, theirs)
    if not moved and not hidden:
        return ours
    trees = differing(handle.store.changes(base, ours), moved, hidden)
    decided = decide_all(*trees, uncovered=uncovered_in(handle, ours), publishes_repository=True)
    changes = changes_of(decided, trees.theirs, trees.ours)
    if not changes:
        return ours
    outcome = execute(
        handle.draft_site(draft, view),
        handle.store,
        changes,
        purpose=Purpose(handle.ids.make("tx")),
        record_outcome=lambda _: None,
        on_progress=handle.context.on_progress,
    )
    if (
        outcome.result is not TransactionResult.FINISHED
    ):  # concurrent write: the next call repeats it
        return ours
    return _look(handle, view, draft, theirs)


def _rebased(handle: WorkbenchHandle, draft: Draft, three: _Three) -> tuple[Draft, Checkpoint]:
    """Make the project the new base, except at paths where the draft differs from it."""
    base, theirs, ours = three
    moved = {change.path for change in handle.store.changes(base, theirs)}
    hidden = uncovered_entries(handle.store, base, theirs, ours)
    moved |= hidden.keys()
    if not moved:
        return draft, base
    apart = {change.path for change in handle.store.changes(theirs, ours)}
    apart |= {path for path, one in hidden.items() if one.theirs != one.ours}
    kept = moved & apart
    now = combined(handle.store, theirs, base, kept) if kept else theirs
    if now.tree == base.tree:
        return draft, base
    draft = replace(draft, base=now.id)
    handle.drafts.save(draft)
    return draft, now
