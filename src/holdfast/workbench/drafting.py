"""Drafts in the hands of a person or an agent: opened, entered, discarded.

Every command that ran in one leaves a revision that one can go back to.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.nouns import Id, IdInvalid, check_id
from holdfast.workbench.core.draft_record import PREFIX
from holdfast.workbench.draft_selection import meant_draft, release_unchanged
from holdfast.workbench.failures import DraftDamaged, DraftMissing
from holdfast.workbench.filling import sync_all
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Draft, Mode, Revision
from holdfast.workbench.recovering import opened
from holdfast.workbench.revising import FOUND, revised
from holdfast.workbench.standing import own_of, stand
from holdfast.workbench.views import View
from holdfast.workbench.visiting import visiting
from holdfast.workbench.workbench import Workbench
from holdfast.world import disk_failure


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
        release_unchanged(held)
        draft = held.drafts.make(mode, news=held.bench.news)
        facts = {"draft": draft.id, "mode": draft.mode, "reason": draft.reason}
        held.records.note("draft_opened", facts, key=f"open {draft.id}")
        return draft


def reopen_draft(workbench: Workbench, id: str) -> Draft:
    """The draft of a session that goes on; one that was removed without changes is made again."""
    with workbench.held() as (held, _):
        try:
            return held.drafts.find(id)
        except DraftMissing as missing:
            try:
                known = check_id(id, PREFIX)
            except IdInvalid:
                raise missing from None
            draft = held.drafts.make(id=known, news=held.bench.news)
        facts = {"draft": draft.id, "mode": draft.mode, "reason": draft.reason}
        held.records.note("draft_opened", facts)
        return draft


def list_drafts(workbench: Workbench) -> tuple[Draft, ...]:
    """All drafts of the project, the oldest first."""
    if not workbench.is_used:
        return ()
    with workbench.held() as (held, _):
        return held.drafts.all()


@contextmanager
def entering(workbench: Workbench, draft: str | None = None) -> Generator[Entered]:
    """Have a draft open that is up to date; the workbench is free for others meanwhile.

    Whatever they do, short of discarding it: its place stays where it is.
    """
    with ExitStack() as stack:
        with workbench.held() as (held, _):
            found = meant_draft(held, draft)
            stack.enter_context(visiting(held.drafts.home(found)))
            view = stack.enter_context(opened(held, found))
            found = revised(held, stand(held, view, found), FOUND)
            is_layer = found.mode is Mode.OVERLAY
            directory = held.bench.project if is_layer else held.drafts.copy_of(found)
        yield Entered(draft=found, view=view, directory=directory)


def revise(
    workbench: Workbench, draft: str | None, cause: str, *, since: int | None = None
) -> Revision | None:
    """Leave a revision to go back to; None if nothing changed since the last one.

    With the number of an earlier revision in `since`, the newest one is returned if it is newer:
    changes made in batches have left revisions of their own already.
    The draft itself survives a power loss as it is then, not only what is kept of it.
    """
    with workbench.held() as (held, _):
        found = meant_draft(held, draft)
        with opened(held, found) as view:
            own = own_of(held, view, found)
            after = revised(held, own, cause).revisions
            is_new = after != own.draft.revisions
            if since is not None:
                is_new = bool(after) and after[-1].number > since
            if not is_new:
                return None
            _sync(view, held.drafts.home(found))
        return after[-1]


def _sync(view: View, where: Path) -> None:
    """Have all that was written in a draft on the disk; a kernel may be slow to do so by itself."""
    try:
        sync_all(view.root)
    except OSError as error:
        raise disk_failure(error, path=str(where)) from error


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
        return meant_draft(held, draft, with_git=True, with_ignored=True)
    except DraftDamaged as damaged:
        return Draft(
            id=Id(damaged.draft), project=str(held.bench.project), mode=Mode.OVERLAY, at_ms=0
        )
