"""Drafts in the hands of a person or an agent: opened, entered, discarded.

Every command that ran in one leaves a revision that one can go back to.

Go back to a revision of a draft: it has the changes that it had then, and no others.

What the person changed in the project since then stays, and is not taken for a change of the draft.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.nouns import Id, IdInvalid, RelativePath, check_id
from holdfast.workbench.diff.tree_changes import known_entry
from holdfast.workbench.draft.drafts import PREFIX
from holdfast.workbench.draft.project_copy import sync_all
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.failures import BatchStale, DraftDamaged, DraftMissing, RevisionMissing
from holdfast.workbench.handle import WorkbenchHandle, draft_in_use
from holdfast.workbench.model import Checkpoint, Draft, DraftMode, PathChange, PathEntry, Revision
from holdfast.workbench.operations.batches import after_change
from holdfast.workbench.operations.draft_selection import release_unchanged, resolve_draft
from holdfast.workbench.operations.draft_state import DraftState, draft_changes, draft_state
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import (
    OperationKind,
    TransactionIntent,
    opened,
    transact,
)
from holdfast.workbench.operations.revisions import FOUND, changes_at, find_revision, revised
from holdfast.workbench.store.tree_queries import combined
from holdfast.workbench.transaction.machine import TransactionResult
from holdfast.world import disk_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredDraft:
    """A draft that something may be let into, in its place, if it has one.

    `directory` is where the draft is seen: in its place where the project is, else the copy.
    """

    draft: Draft
    view: DraftView
    directory: Path


def open_draft(workbench: Workbench, mode: DraftMode | None = None) -> Draft:
    """Make a draft of the project, kept apart as well as possible or as it is asked for."""
    with workbench.locked() as (handle, _):
        release_unchanged(handle)
        draft = handle.drafts.make(mode, on_progress=handle.context.on_progress)
        facts = {"draft": draft.id, "mode": draft.mode, "reason": draft.reason}
        handle.records.note("draft_opened", facts, key=f"open {draft.id}")
        return draft


def reopen_draft(workbench: Workbench, id: str) -> Draft:
    """The draft of a session that goes on; one that was removed without changes is made again."""
    with workbench.locked() as (handle, _):
        try:
            return handle.drafts.find(id)
        except DraftMissing as missing:
            try:
                known = check_id(id, PREFIX)
            except IdInvalid:
                raise missing from None
            draft = handle.drafts.make(id=known, on_progress=handle.context.on_progress)
        facts = {"draft": draft.id, "mode": draft.mode, "reason": draft.reason}
        handle.records.note("draft_opened", facts)
        return draft


def list_drafts(workbench: Workbench) -> tuple[Draft, ...]:
    """All drafts of the project, the oldest first."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (handle, _):
        return handle.drafts.all()


@contextmanager
def enter_draft(workbench: Workbench, draft: str | None = None) -> Generator[EnteredDraft]:
    """Have a draft open that is up to date; the workbench is free for others meanwhile.

    Whatever they do, short of discarding it: its place stays where it is.
    """
    with ExitStack() as stack:
        with workbench.locked() as (handle, _):
            found = resolve_draft(handle, draft)
            stack.enter_context(draft_in_use(handle.drafts.home(found)))
            view = stack.enter_context(opened(handle, found))
            found = revised(handle, draft_state(handle, view, found), FOUND)
            is_layer = found.mode is DraftMode.OVERLAY
            directory = handle.context.project if is_layer else handle.drafts.copy_of(found)
        yield EnteredDraft(draft=found, view=view, directory=directory)


def revise(
    workbench: Workbench, draft: str | None, cause: str, *, since: int | None = None
) -> Revision | None:
    """Leave a revision to go back to; None if nothing changed since the last one.

    With the number of an earlier revision in `since`, the newest one is returned if it is newer:
    changes made in batches have left revisions of their own already.
    The draft itself survives a power loss as it is then, not only what is kept of it.
    """
    with workbench.locked() as (handle, _):
        found = resolve_draft(handle, draft)
        with opened(handle, found) as view:
            own = draft_changes(handle, view, found)
            after = revised(handle, own, cause).revisions
            is_new = after != own.draft.revisions
            if since is not None:
                is_new = bool(after) and after[-1].number > since
            if not is_new:
                return None
            _sync(view, handle.drafts.home(found))
        return after[-1]


def _sync(view: DraftView, where: Path) -> None:
    """Have all that was written in a draft on the disk; a kernel may be slow to do so by itself."""
    try:
        sync_all(view.root)
    except OSError as error:
        raise disk_failure(error, path=str(where)) from error


def discard(workbench: Workbench, draft: str | None = None) -> Draft:
    """End all that runs in a draft, and remove it with all that is in it."""
    with workbench.locked() as (handle, _):
        found = _to_discard(handle, draft)
        handle.records.note("draft_discarded", {"draft": found.id}, key=f"discard {found.id}")
        handle.drafts.remove(found)
        return found


def _to_discard(handle: WorkbenchHandle, draft: str | None) -> Draft:
    """The draft that is meant, even if nothing but its name can be read."""
    try:
        return resolve_draft(handle, draft, with_git=True, with_ignored=True)
    except DraftDamaged as damaged:
        return Draft(
            id=Id(damaged.draft),
            project=str(handle.context.project),
            mode=DraftMode.OVERLAY,
            at_ms=0,
        )


def undo(workbench: Workbench, draft: str | None = None, to: int | None = None) -> Revision:
    """Go back to a revision, or by one; 0 is the project without any change of the draft.

    It leaves a revision itself, so that it can be undone, too.
    """
    with workbench.locked() as (handle, _):
        found = resolve_draft(handle, draft)
        with opened(handle, found) as view:
            state = draft_state(handle, view, found)
            state = replace(state, draft=revised(handle, state, FOUND))
            number = _one_back(state.draft) if to is None else to
            _go_back(handle, view, state, number)
            return after_change(
                found,
                lambda: _revised(handle, view, state, number),
                release_reserve=handle.store.object_store.reserve.release,
            )


def _revised(handle: WorkbenchHandle, view: DraftView, state: DraftState, number: int) -> Revision:
    """The revision that going back leaves."""
    now = draft_state(handle, view, handle.drafts.find(state.draft.id), state.theirs)
    cause = f"undo to {number}"
    return revised(handle, now, cause, back_to=number, is_due=True).revisions[-1]


def _go_back(handle: WorkbenchHandle, view: DraftView, state: DraftState, number: int) -> None:
    draft = state.draft
    then = _changes_then(handle, draft, number)
    wanted = _wanted(handle, state, then)
    base = _base_then(handle, state, then, number)
    if not wanted and base is not None:
        handle.drafts.save(replace(draft, base=base.id))
    if wanted:
        intent = TransactionIntent(
            deed=OperationKind.UNDO,
            key=handle.ids.make("undo"),
            draft=draft.id,
            base=None if base is None else base.id,
            facts={"back_to": number},
        )
        outcome, _ = transact(handle, handle.draft_site(draft, view), wanted, intent)
        if outcome.result is not TransactionResult.FINISHED:
            raise BatchStale(paths=tuple(map(str, outcome.conflicts)))


def _one_back(draft: Draft) -> int:
    last = draft.revisions[-1] if draft.revisions else None
    if last is None:
        raise RevisionMissing(draft=draft.id, number=0)
    at = last.number if last.back_to is None else last.back_to
    if not at:
        raise RevisionMissing(draft=draft.id, number=-1)
    return at - 1


def _changes_then(handle: WorkbenchHandle, draft: Draft, number: int) -> tuple[PathChange, ...]:
    """What the draft itself had changed at a revision."""
    if number == 0:
        return ()
    return changes_at(handle, draft, find_revision(draft, number))


def _wanted(
    handle: WorkbenchHandle, state: DraftState, then: tuple[PathChange, ...]
) -> tuple[PathChange, ...]:
    """What must change in the draft so that it has just the changes that it had then."""
    wanted: dict[RelativePath, PathEntry | None] = {
        each.path: each.before for each in state.changes
    }
    wanted |= {change.path: change.after for change in then}
    now = {path: known_entry(handle.store.node(state.ours, path)) for path in wanted}
    return tuple(
        PathChange(path, now[path], wanted[path])
        for path in sorted(wanted)
        if now[path] != wanted[path]
    )


def _base_then(
    handle: WorkbenchHandle, state: DraftState, then: tuple[PathChange, ...], number: int
) -> Checkpoint | None:
    """The base from which the changes of a revision are counted: what they were made to.

    So what the person changed since is found to be changed, and is not overwritten. It becomes the
    base of the draft together with the changes, or not at all.
    """
    if not then:
        return None
    base = handle.store.find(find_revision(state.draft, number).base or state.base.id)
    return combined(handle.store, state.base, base, (change.path for change in then))


# Make a draft that has the changes of another one, and goes its own way from there.


def fork_draft(workbench: Workbench, draft: str) -> Draft:
    """A new draft with the changes that this one has now; the two share nothing from then on.

    Its first revision is the last one of the other, which it goes to: so what the person changed
    in the project meanwhile is treated as it is whenever one goes back.
    """
    revise(workbench, draft, "fork")
    with workbench.locked() as (handle, _):
        found = handle.drafts.find(draft)
        made = handle.drafts.make(found.mode, on_progress=handle.context.on_progress)
        facts = {"draft": made.id, "mode": made.mode, "reason": made.reason, "of": found.id}
        handle.records.note("draft_opened", facts, key=f"open {made.id}")
        if not found.revisions:
            return made
        last = found.revisions[-1]
        last = replace(last, base=last.base or found.base, back_to=None)
        handle.drafts.save(replace(made, revisions=(last,)))
    undo(workbench, made.id, to=last.number)
    return made
