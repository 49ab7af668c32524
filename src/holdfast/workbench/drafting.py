"""Drafts in the hands of a person or an agent: opened, entered, gone back with, discarded.

Every command and every batch leaves a revision. To go back to one is to bring the draft's own
changes to what they were then; what the person changed in the project since stays.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from holdfast.nouns import Id, RelativePath
from holdfast.workbench.core.publication import Way
from holdfast.workbench.core.seal import seal_of
from holdfast.workbench.core.selection import known_entry
from holdfast.workbench.failures import BatchStale, DraftDamaged, RevisionMissing
from holdfast.workbench.holding import Held
from holdfast.workbench.knowing import combined
from holdfast.workbench.model import Change, Draft, Entry, Mode, Revision
from holdfast.workbench.recovering import opened
from holdfast.workbench.settling import Deed, Intent, transact
from holdfast.workbench.standing import Standing, stand
from holdfast.workbench.views import View, open_view
from holdfast.workbench.workbench import Workbench

FOUND: Final = "found"  # the cause of a revision that nobody left: a command was killed, perhaps


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A draft that something may be let into, in its place, if it has one.

    `directory` is where the draft is seen: in its place where the project is, else the copy.
    """

    draft: Draft
    view: View
    directory: Path


def open_draft(workbench: Workbench, mode: Mode | None = None) -> Draft:
    """Make a draft of the project, kept apart as well as possible or as it is asked for."""
    with workbench.held() as (held, _):
        draft = held.drafts.make(mode, news=held.bench.news)
        facts = {"draft": draft.id, "mode": draft.mode, "reason": draft.reason}
        held.records.note("draft_opened", facts, key=f"open {draft.id}")
        return draft


def list_drafts(workbench: Workbench) -> tuple[Draft, ...]:
    """All drafts of the project, the oldest first."""
    with workbench.held() as (held, _):
        return held.drafts.all()


@contextmanager
def entering(workbench: Workbench, draft: str | None = None) -> Generator[Entered]:
    """Have a draft open that is up to date; the workbench is free for others meanwhile."""
    with workbench.held() as (held, _):
        found = held.drafts.find(draft)
        with opened(held, found) as view:
            found = revised(held, stand(held, view, found), FOUND)
        is_layer = found.mode is Mode.OVERLAY
        directory = held.bench.project if is_layer else held.drafts.copy_of(found)
        view = open_view(held.drafts, found)
    try:
        yield Entered(draft=found, view=view, directory=directory)
    finally:
        view.close()


def revise(workbench: Workbench, draft: str | None, cause: str) -> Revision | None:
    """Leave a revision to go back to; None if nothing changed since the last one."""
    with workbench.held() as (held, _):
        found = held.drafts.find(draft)
        with opened(held, found) as view:
            standing = stand(held, view, found)
        before = standing.draft.revisions
        after = revised(held, standing, cause).revisions
        return after[-1] if after != before else None


def revised(
    held: Held,
    standing: Standing,
    cause: str,
    *,
    back_to: int | None = None,
    is_due: bool = False,
) -> Draft:
    """The draft with a revision of how it is now, unless it is none and the last one is like it."""
    draft = standing.draft
    if not is_due and _is_like(held, standing, draft.revisions[-1] if draft.revisions else None):
        return draft
    made = Revision(
        number=next_number(draft),
        checkpoint=standing.ours.id,
        at_ms=standing.ours.at_ms,
        cause=cause,
        base=standing.base.id,
        back_to=back_to,
    )
    draft = replace(draft, revisions=(*draft.revisions, made))
    held.drafts.save(draft)
    return draft


def next_number(draft: Draft) -> int:
    """The number of the next revision."""
    return draft.revisions[-1].number + 1 if draft.revisions else 1


def discard(workbench: Workbench, draft: str | None = None) -> Draft:
    """End all that runs in a draft, and remove it with all that is in it."""
    with workbench.held() as (held, _):
        found = _to_discard(held, draft)
        held.records.note("draft_discarded", {"draft": found.id}, key=f"discard {found.id}")
        held.drafts.remove(found)
        return found


def _to_discard(held: Held, draft: str | None) -> Draft:
    """The draft that is meant, even if nothing but its name can be read."""
    try:
        return held.drafts.find(draft)
    except DraftDamaged as damaged:
        return Draft(
            id=Id(damaged.draft), project=str(held.bench.project), mode=Mode.OVERLAY, at_ms=0
        )


def undo(workbench: Workbench, draft: str | None = None, to: int | None = None) -> Revision:
    """Go back to a revision, or by one; 0 is the project without any change of the draft.

    It leaves a revision itself, so that it can be undone, too.
    """
    with workbench.held() as (held, _):
        found = held.drafts.find(draft)
        with opened(held, found) as view:
            standing = stand(held, view, found)
            found = revised(held, standing, FOUND)
            number = _one_back(found) if to is None else to
            then = _changes_then(held, found, number)
            wanted = _wanted(held, standing, then)
            found = _counted_from_then(held, found, standing, then, number)
            intent = Intent(
                deed=Deed.UNDO,
                key=held.ids.make("undo"),
                draft=found.id,
                facts={"back_to": number},
            )
            if wanted:
                outcome, _ = transact(held, held.draft_site(found, view), wanted, intent)
                if outcome.way is not Way.FINISHED:
                    raise BatchStale(paths=tuple(map(str, outcome.conflicts)))
            standing = stand(held, view, held.drafts.find(found.id))
        draft_now = revised(held, standing, f"undo to {number}", back_to=number, is_due=True)
        return draft_now.revisions[-1]


def _one_back(draft: Draft) -> int:
    last = draft.revisions[-1] if draft.revisions else None
    if last is None:
        raise RevisionMissing(draft=draft.id, number=0)
    at = last.number if last.back_to is None else last.back_to
    if not at:
        raise RevisionMissing(draft=draft.id, number=-1)
    return at - 1


def _revision(draft: Draft, number: int) -> Revision:
    found = next((each for each in draft.revisions if each.number == number), None)
    if found is None:
        raise RevisionMissing(draft=draft.id, number=number)
    return found


def _changes_then(held: Held, draft: Draft, number: int) -> tuple[Change, ...]:
    """What the draft itself had changed at a revision."""
    if number == 0:
        return ()
    return _changes_at(held, draft, _revision(draft, number))


def _changes_at(held: Held, draft: Draft, revision: Revision) -> tuple[Change, ...]:
    base = revision.base or draft.base
    assert base is not None, "a draft with a revision has a base"
    return held.store.changes(held.store.find(base), held.store.find(revision.checkpoint))


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


def _counted_from_then(
    held: Held, draft: Draft, standing: Standing, then: tuple[Change, ...], number: int
) -> Draft:
    """Count the changes of a revision from what they were made to, before they are made again.

    What the person changed since is found to be changed, and not overwritten.
    """
    if not then:
        return draft
    base = held.store.find(_revision(draft, number).base or standing.base.id)
    now = combined(held.store, standing.base, base, (change.path for change in then))
    draft = replace(draft, base=now.id)
    held.drafts.save(draft)
    return draft


def _is_like(held: Held, standing: Standing, revision: Revision | None) -> bool:
    """Whether the draft has the changes that it had at a revision; without one, none."""
    if revision is None:
        return not standing.changes
    then = _changes_at(held, standing.draft, revision)
    return seal_of(then) == standing.seal
