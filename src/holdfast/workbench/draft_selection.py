"""Tell drafts in which something was changed from those in which nothing was.

A draft without changes is in no list and is never the default: every session begins with one. Its
place is ended when nothing is inside, and it is removed when its session ends.
"""

from __future__ import annotations

import os
from contextlib import suppress

from holdfast.confine import end, find
from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.contents import refuse_shortage
from holdfast.workbench.core.touching import is_stage
from holdfast.workbench.failures import DraftAmbiguous, DraftMissing
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Change, Draft, Mode
from holdfast.workbench.placing import processes_in
from holdfast.workbench.recovering import opened
from holdfast.workbench.standing import stand
from holdfast.workbench.visiting import is_visited
from holdfast.workbench.workbench import Workbench

_INDEX = RelativePath.of(".git/index")  # `git status` writes it; what is staged is in other files


def meant_draft(held: Held, draft: str | None) -> Draft:
    """The draft of an id; without one, the only draft with changes, else the newest.

    Raises DraftAmbiguous if several have changes, DraftMissing if there is no draft.
    """
    if draft is not None:
        return held.drafts.find(draft)
    every = held.drafts.all()
    if len(every) < 2:
        return held.drafts.find()
    changed = changed_in(held)
    if len(changed) > 1:
        names = tuple(each.id for each in reversed(changed))
        raise DraftAmbiguous(drafts=names, project=str(held.bench.project))
    return changed[0] if changed else held.drafts.find()


def changed_drafts(workbench: Workbench) -> tuple[Draft, ...]:
    """The drafts of the project in which something was changed, the oldest first."""
    if not workbench.is_used:
        return ()
    with workbench.held() as (held, _):
        return changed_in(held)


def changed_in(held: Held) -> tuple[Draft, ...]:
    """The drafts in which something was changed, the oldest first."""
    return tuple(each for each in held.drafts.all() if is_changed(held, each))


def is_changed(held: Held, draft: Draft) -> bool:
    """Whether a draft differs from its project; an empty layer is told without opening it.

    One that cannot be looked at is taken for changed: nothing of it may be lost.
    """
    if not _is_written(held, draft):
        return False
    try:
        with opened(held, draft) as view:
            changes = stand(held, view, draft).changes
    except Failure:
        return True
    return any(map(counts, changes)) or (bool(draft.also) and _is_written_outside(held, draft))


def counts(change: Change) -> bool:
    """Whether a change makes a draft one that has changes."""
    return change.path != _INDEX


def discard_unchanged(workbench: Workbench, draft: str) -> bool:
    """Remove a draft if nothing was changed in it and nothing is inside; say whether it is gone."""
    with workbench.held() as (held, _):
        try:
            found = held.drafts.find(draft)
        except DraftMissing:
            return True
        if _is_used(held, found) or is_changed(held, found) or _is_used(held, found):
            return False
        held.records.note("draft_discarded", {"draft": found.id}, key=f"discard {found.id}")
        held.drafts.remove(found)
        return True


def release_unchanged(held: Held) -> None:
    """End the places of drafts in which nothing was written and nothing is inside."""
    for draft in held.drafts.all():
        if draft.mode is not Mode.OVERLAY or _is_written(held, draft):
            continue
        with suppress(Failure, OSError):  # it costs a little more until the next time
            if not _is_used(held, draft):
                end(held.drafts.spec(draft).directory)


def _is_used(held: Held, draft: Draft) -> bool:
    """Whether something is inside of a draft, or about to enter it."""
    if is_visited(held.drafts.home(draft)):
        return True
    place = find(held.drafts.spec(draft).directory) if draft.mode is Mode.OVERLAY else None
    if place is None:
        return False
    with place:
        return bool(processes_in(place))


def _is_written(held: Held, draft: Draft) -> bool:
    """Whether anything is in the layers of a draft; in a copy something may always be."""
    if draft.mode is not Mode.OVERLAY:
        return True
    return _has_names(held.drafts.written(draft)) or _is_written_outside(held, draft)


def _is_written_outside(held: Held, draft: Draft) -> bool:
    first = held.drafts.written(draft)
    numbers = range(1, len(draft.also) + 1)
    return any(_has_names(first.with_name(f"{first.name}-{number}")) for number in numbers)


def _has_names(layer: os.PathLike[str]) -> bool:
    try:
        with os.scandir(layer) as entries:
            return any(not is_stage(os.fsencode(entry.name)) for entry in entries)
    except FileNotFoundError:
        return False
    except OSError as error:
        refuse_shortage(error, os.fsencode(layer))
        return True
