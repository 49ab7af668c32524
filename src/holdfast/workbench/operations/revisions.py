"""Revisions of a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.nouns import Id
from holdfast.workbench.diff.three_way import seal_of
from holdfast.workbench.failures import RevisionMissing
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import Draft, PathChange, Revision
from holdfast.workbench.operations.draft_state import DraftChanges

# Cause of a revision made on entering: a command was probably killed.
FOUND: Final = "found"


def revised(
    handle: WorkbenchHandle,
    own: DraftChanges,
    cause: str,
    *,
    back_to: int | None = None,
    is_due: bool = False,
) -> Draft:
    """Add a revision of the current state, unless it equals the last one; return the draft."""
    if not is_due and not is_revision_due(handle, own):
        return own.draft
    draft = with_revision(handle, own.draft, own.ours.id, cause, back_to)
    handle.drafts.save(draft)
    return draft


def with_revision(
    handle: WorkbenchHandle, draft: Draft, checkpoint: Id, cause: str, back_to: int | None = None
) -> Draft:
    """Return the draft with one more revision, not saved yet."""
    made = Revision(
        number=next_number(draft),
        checkpoint=checkpoint,
        at_ms=int(handle.context.ports.clock.now() * 1000),
        cause=cause,
        base=draft.base,
        back_to=back_to,
    )
    return replace(draft, revisions=(*draft.revisions, made))


def is_revision_due(handle: WorkbenchHandle, own: DraftChanges) -> bool:
    """Whether the changes differ from those of the last revision."""
    return not _is_like(handle, own, own.draft.revisions[-1] if own.draft.revisions else None)


def next_number(draft: Draft) -> int:
    return draft.revisions[-1].number + 1 if draft.revisions else 1


def find_revision(draft: Draft, number: int) -> Revision:
    """Return a revision by number; raises RevisionMissing."""
    found = next((each for each in draft.revisions if each.number == number), None)
    if found is None:
        raise RevisionMissing(draft=draft.id, number=number)
    return found


def changes_at(handle: WorkbenchHandle, draft: Draft, revision: Revision) -> tuple[PathChange, ...]:
    """Changes of the draft at a revision."""
    base = revision.base or draft.base
    assert base is not None, "a draft with a revision has a base"
    return handle.store.changes(handle.store.find(base), handle.store.find(revision.checkpoint))


def _is_like(handle: WorkbenchHandle, own: DraftChanges, revision: Revision | None) -> bool:
    """Whether the changes equal those of a revision; without one, whether there are none."""
    if revision is None:
        return not own.changes
    then = changes_at(handle, own.draft, revision)
    return len(then) == len(own.changes) and seal_of(then) == own.seal
