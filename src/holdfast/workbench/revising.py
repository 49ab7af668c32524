"""Leave revisions of a draft, and say what it had changed at each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.workbench.core.seal import seal_of
from holdfast.workbench.failures import RevisionMissing
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Change, Draft, Revision
from holdfast.workbench.standing import Own

FOUND: Final = "found"  # the cause of a revision that nobody left: a command was killed, perhaps


def revised(
    held: Held,
    own: Own,
    cause: str,
    *,
    back_to: int | None = None,
    is_due: bool = False,
) -> Draft:
    """The draft with a revision of how it is now, unless it is none and the last one is like it."""
    draft = own.draft
    if not is_due and _is_like(held, own, draft.revisions[-1] if draft.revisions else None):
        return draft
    made = Revision(
        number=next_number(draft),
        checkpoint=own.ours.id,
        at_ms=int(held.bench.means.clock.now() * 1000),
        cause=cause,
        base=own.base.id,
        back_to=back_to,
    )
    draft = replace(draft, revisions=(*draft.revisions, made))
    held.drafts.save(draft)
    return draft


def next_number(draft: Draft) -> int:
    """The number of the next revision."""
    return draft.revisions[-1].number + 1 if draft.revisions else 1


def find_revision(draft: Draft, number: int) -> Revision:
    """The revision of a number; RevisionMissing if there is none."""
    found = next((each for each in draft.revisions if each.number == number), None)
    if found is None:
        raise RevisionMissing(draft=draft.id, number=number)
    return found


def changes_at(held: Held, draft: Draft, revision: Revision) -> tuple[Change, ...]:
    """What the draft itself had changed at a revision."""
    base = revision.base or draft.base
    assert base is not None, "a draft with a revision has a base"
    return held.store.changes(held.store.find(base), held.store.find(revision.checkpoint))


def _is_like(held: Held, own: Own, revision: Revision | None) -> bool:
    """Whether the draft has the changes that it had at a revision; without one, none."""
    if revision is None:
        return not own.changes
    then = changes_at(held, own.draft, revision)
    return len(then) == len(own.changes) and seal_of(then) == own.seal
