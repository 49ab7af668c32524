"""How a draft and its project stand to each other, as of one moment.

What the person changed in the project shows in a layer by itself, except where the draft wrote. A
copy, and what was written in a layer without a difference, follow here: what is in the draft as it
was at its base becomes as it is in the project now. Wherever draft and project are the same, that
is the base from then on; elsewhere the base stays what it was.

Keep the overlay of a draft right while its project changes beneath it.

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
    """The directories that come to be by these changes."""
    for change in changes:
        was_directory = change.before is not None and change.before.is_directory
        if change.after is not None and change.after.is_directory and not was_directory:
            yield change.path


def gone_in(changes: Iterable[PathChange]) -> Iterator[RelativePath]:
    """The directories that are none any more after these changes."""
    return made_in(PathChange(each.path, each.after, each.before) for each in changes)


def follow_project(
    handle: WorkbenchHandle,
    view: DraftView,
    draft: Draft,
    moved: tuple[PathChange, ...],
    theirs: Checkpoint,
) -> None:
    """Let everything inside of a draft see the project as it is, where the draft wrote nothing.

    `moved` is how the project differs from the base of the draft. For a copy nothing is done.
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
    """Write the project's entries to paths at which the kernel shows others.

    If something writes there at this moment, it is left to the next time.
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
    """A draft, what it is counted from, and what it changes of that."""

    draft: Draft
    base: Checkpoint
    ours: Checkpoint
    changes: tuple[PathChange, ...]

    @property
    def seal(self) -> str:
        """What a review of this draft approves of."""
        return seal_of(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftState(DraftChanges):
    """The same with the project as it is now, and where all three differ.

    `uncovered` is what of the project cannot be kept, and must stay as it is.
    """

    theirs: Checkpoint
    trees: ThreeTrees
    uncovered: frozenset[RelativePath]

    def decided(
        self, *, with_git: bool = False, ignored: frozenset[RelativePath] = frozenset()
    ) -> Decisions:
        """What a publication would do to each path; nothing to those that are ignored."""
        return decide_all(
            *self.trees,
            uncovered=self.uncovered,
            publishes_repository=with_git,
            withheld=ignored,
        )


def draft_state(
    handle: WorkbenchHandle, view: DraftView, draft: Draft, theirs: Checkpoint | None = None
) -> DraftState:
    """Bring a draft up to date with its project, and tell how they stand to each other.

    `theirs` is the project, if somebody has just looked at it.
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
    """What a draft that was brought up to date before changes now; the project is not looked at.

    In a layer it costs what was written.
    """
    if draft.base is None:
        return draft_state(handle, view, draft)
    base = handle.store.find(draft.base)
    ours = _look(handle, view, draft, base)
    return DraftChanges(draft=draft, base=base, ours=ours, changes=handle.store.changes(base, ours))


def uncovered_in(handle: WorkbenchHandle, checkpoint: Checkpoint) -> frozenset[RelativePath]:
    """The paths that a checkpoint does not cover."""
    if not checkpoint.uncovered:
        return frozenset()
    return frozenset(each.path for each in handle.store.uncovered(checkpoint))


def unpublishable(handle: WorkbenchHandle, state: DraftState) -> tuple[UncoveredPath, ...]:
    """What is in a draft, not in its project, and cannot be kept: so it cannot be published."""
    if not state.ours.uncovered:
        return ()
    return tuple(
        each
        for each in handle.store.uncovered(state.ours)
        if each.reason is not UncoveredReason.POLICY and each.path not in state.uncovered
    )


def _look(handle: WorkbenchHandle, view: DraftView, draft: Draft, over: Checkpoint) -> Checkpoint:
    """Keep the draft as it is now: what was written in a layer, set into what is below it."""
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
    """The base of a draft; one into which nothing was let yet is as it was made."""
    if draft.base is not None:
        return draft, handle.store.find(draft.base)
    is_layer = view.touched() is not None
    base = theirs if is_layer else _look(handle, view, draft, theirs)
    draft = replace(draft, base=base.id)
    handle.drafts.save(draft)
    return draft, base


def _follow(handle: WorkbenchHandle, view: DraftView, draft: Draft, three: _Three) -> Checkpoint:
    """Let the draft have what changed in the project where it changed nothing itself."""
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
    ):  # somebody writes there at this moment: it can wait
        return ours
    return _look(handle, view, draft, theirs)


def _rebased(handle: WorkbenchHandle, draft: Draft, three: _Three) -> tuple[Draft, Checkpoint]:
    """Take the project as it is now for the base, but not where the draft differs from it."""
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
