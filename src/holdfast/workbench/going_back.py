"""Go back to a revision of a draft: it has the changes that it had then, and no others.

What the person changed in the project since then stays, and is not taken for a change of the draft.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.afterwards import at_last
from holdfast.workbench.core.publication import Way
from holdfast.workbench.core.selection import known_entry
from holdfast.workbench.draft_selection import meant_draft
from holdfast.workbench.failures import BatchStale, RevisionMissing
from holdfast.workbench.holding import Held
from holdfast.workbench.knowing import combined
from holdfast.workbench.model import Change, Checkpoint, Draft, Entry, Revision
from holdfast.workbench.recovering import opened
from holdfast.workbench.revising import FOUND, changes_at, find_revision, revised
from holdfast.workbench.settling import Deed, Intent, transact
from holdfast.workbench.standing import Standing, stand
from holdfast.workbench.views import View
from holdfast.workbench.workbench import Workbench


def undo(workbench: Workbench, draft: str | None = None, to: int | None = None) -> Revision:
    """Go back to a revision, or by one; 0 is the project without any change of the draft.

    It leaves a revision itself, so that it can be undone, too.
    """
    with workbench.held() as (held, _):
        found = meant_draft(held, draft)
        with opened(held, found) as view:
            standing = stand(held, view, found)
            standing = replace(standing, draft=revised(held, standing, FOUND))
            number = _one_back(standing.draft) if to is None else to
            _go_back(held, view, standing, number)
            return at_last(
                found,
                lambda: _revised(held, view, standing, number),
                relieve=held.store.vault.reserve.release,
            )


def _revised(held: Held, view: View, standing: Standing, number: int) -> Revision:
    """The revision that going back leaves."""
    now = stand(held, view, held.drafts.find(standing.draft.id), standing.theirs)
    cause = f"undo to {number}"
    return revised(held, now, cause, back_to=number, is_due=True).revisions[-1]


def _go_back(held: Held, view: View, standing: Standing, number: int) -> None:
    draft = standing.draft
    then = _changes_then(held, draft, number)
    wanted = _wanted(held, standing, then)
    base = _base_then(held, standing, then, number)
    if not wanted and base is not None:
        held.drafts.save(replace(draft, base=base.id))
    if wanted:
        intent = Intent(
            deed=Deed.UNDO,
            key=held.ids.make("undo"),
            draft=draft.id,
            base=None if base is None else base.id,
            facts={"back_to": number},
        )
        outcome, _ = transact(held, held.draft_site(draft, view), wanted, intent)
        if outcome.way is not Way.FINISHED:
            raise BatchStale(paths=tuple(map(str, outcome.conflicts)))


def _one_back(draft: Draft) -> int:
    last = draft.revisions[-1] if draft.revisions else None
    if last is None:
        raise RevisionMissing(draft=draft.id, number=0)
    at = last.number if last.back_to is None else last.back_to
    if not at:
        raise RevisionMissing(draft=draft.id, number=-1)
    return at - 1


def _changes_then(held: Held, draft: Draft, number: int) -> tuple[Change, ...]:
    """What the draft itself had changed at a revision."""
    if number == 0:
        return ()
    return changes_at(held, draft, find_revision(draft, number))


def _wanted(held: Held, standing: Standing, then: tuple[Change, ...]) -> tuple[Change, ...]:
    """What must change in the draft so that it has just the changes that it had then."""
    wanted: dict[RelativePath, Entry | None] = {each.path: each.before for each in standing.changes}
    wanted |= {change.path: change.after for change in then}
    now = {path: known_entry(held.store.node(standing.ours, path)) for path in wanted}
    return tuple(
        Change(path, now[path], wanted[path])
        for path in sorted(wanted)
        if now[path] != wanted[path]
    )


def _base_then(
    held: Held, standing: Standing, then: tuple[Change, ...], number: int
) -> Checkpoint | None:
    """The base from which the changes of a revision are counted: what they were made to.

    So what the person changed since is found to be changed, and is not overwritten. It becomes the
    base of the draft together with the changes, or not at all.
    """
    if not then:
        return None
    base = held.store.find(find_revision(standing.draft, number).base or standing.base.id)
    return combined(held.store, standing.base, base, (change.path for change in then))
