"""Operations on drafts: open, enter, revise, undo, fork, discard.

Every command that ran in a draft leaves a revision. Undo restores the draft's own changes of a
revision; changes of the project since then stay, and do not become changes of the draft.
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
    """An open draft.

    `directory` is where it is visible: the project path in its place, or the copy.
    """

    draft: Draft
    view: DraftView
    directory: Path


def open_draft(workbench: Workbench, mode: DraftMode | None = None) -> Draft:
    """Create a draft, in the best possible mode or the given one."""
    with workbench.locked() as (handle, _):
        release_unchanged(handle)
        draft = handle.drafts.make(mode, on_progress=handle.context.on_progress)
        facts = {"draft": draft.id, "mode": draft.mode, "reason": draft.reason}
        handle.records.note("draft_opened", facts, key=f"open {draft.id}")
        return draft


def reopen_draft(workbench: Workbench, id: str) -> Draft:
    """Return the draft of a resumed session; one that was removed unchanged is created again."""
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
    """All drafts, oldest first."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (handle, _):
        return handle.drafts.all()


@contextmanager
def enter_draft(workbench: Workbench, draft: str | None = None) -> Generator[EnteredDraft]:
    """Open an up-to-date draft; the workbench lock is released meanwhile.

    Only discarding the draft ends its place.
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
    """Leave a revision; None if nothing changed since the last one.

    With `since`, return the newest revision if its number is greater: batches leave revisions of
    their own. The files of the draft are synced, not only its checkpoint.
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
    """Sync the files of a draft."""
    try:
        sync_all(view.root)
    except OSError as error:
        raise disk_failure(error, path=str(where)) from error


def discard(workbench: Workbench, draft: str | None = None) -> Draft:
    """End all processes of a draft, and remove it."""
    with workbench.locked() as (handle, _):
        found = _to_discard(handle, draft)
        handle.records.note("draft_discarded", {"draft": found.id}, key=f"discard {found.id}")
        handle.drafts.remove(found)
        return found


def _to_discard(handle: WorkbenchHandle, draft: str | None) -> Draft:
    """Return the draft, with only its id if the record is unreadable."""
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
    """Go back to a revision, by default the previous one; 0 is the unchanged project.

    Leaves a revision itself.
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
    """The revision that an undo leaves."""
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
    """Changes of the draft at a revision."""
    if number == 0:
        return ()
    return changes_at(handle, draft, find_revision(draft, number))


def _wanted(
    handle: WorkbenchHandle, state: DraftState, then: tuple[PathChange, ...]
) -> tuple[PathChange, ...]:
    """Changes that give the draft exactly its changes of that revision."""
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
    """Base for the changes of a revision: the entries they were made against.

    Later changes of the project then show as conflicts and are not overwritten. Set together with
    the changes, or not at all.
    """
    if not then:
        return None
    base = handle.store.find(find_revision(state.draft, number).base or state.base.id)
    return combined(handle.store, state.base, base, (change.path for change in then))


def fork_draft(workbench: Workbench, draft: str) -> Draft:
    """Create an independent draft with the changes of another.

    Its first revision is the last one of the original, restored by `undo`, so that later changes of
    the project are handled in the same way.
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
