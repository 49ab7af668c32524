"""Select drafts with changes, and clean up those without.

A draft without changes is not listed and never the default: every session starts with one. Its
place is ended when no process is inside, and it is removed when its session ends.
"""

from __future__ import annotations

import os
from contextlib import suppress

from holdfast.confine import end, find
from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import ConflictReason, is_own_repository
from holdfast.workbench.diff.tree_changes import is_stage
from holdfast.workbench.draft.overlay_mount import processes_in
from holdfast.workbench.failures import DraftAmbiguous, DraftMissing
from holdfast.workbench.handle import WorkbenchHandle, is_draft_in_use
from holdfast.workbench.model import Draft, DraftMode, PathChange
from holdfast.workbench.operations.draft_state import DraftState, draft_state, unpublishable
from holdfast.workbench.operations.ignored_files import ignored_paths
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import opened
from holdfast.workbench.scan.file_content import raise_resource_error

# Rewritten by `git status`, without a change of content.
_INDEX = RelativePath.of(".git/index")


def resolve_draft(
    handle: WorkbenchHandle,
    draft: str | None,
    *,
    with_git: bool = False,
    with_ignored: bool = False,
) -> Draft:
    """Return a draft by id; without id, the only changed draft, else the newest.

    Drafts with only unpublishable changes count if no other has changes. Raises DraftAmbiguous or
    DraftMissing.
    """
    if draft is not None:
        return handle.drafts.find(draft)
    every = handle.drafts.all()
    if len(every) < 2:
        return handle.drafts.find()
    changed = _candidates(handle, with_git=with_git, with_ignored=with_ignored)
    if len(changed) > 1:
        names = tuple(each.id for each in reversed(changed))
        raise DraftAmbiguous(drafts=names, project=str(handle.context.project))
    return changed[0] if changed else handle.drafts.find()


def changed_drafts(workbench: Workbench) -> tuple[Draft, ...]:
    """Drafts with changes, oldest first."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (handle, _):
        return changed_in(handle)


def default_drafts(
    workbench: Workbench, *, with_git: bool = False, with_ignored: bool = False
) -> tuple[Draft, ...]:
    """Drafts that a command without draft id can refer to, oldest first.

    All with publishable changes; if there are none, those with changes that need an option to be
    published.
    """
    if not workbench.is_used:
        return ()
    with workbench.locked() as (handle, _):
        return _candidates(handle, with_git=with_git, with_ignored=with_ignored)


def _candidates(
    handle: WorkbenchHandle, *, with_git: bool, with_ignored: bool
) -> tuple[Draft, ...]:
    changed = changed_in(handle)
    if len(changed) < 2:
        return changed
    found = [
        each
        for each in changed
        if _is_publishable(handle, each, with_git=with_git, with_ignored=with_ignored)
    ]
    return tuple(found) or changed


def _is_publishable(
    handle: WorkbenchHandle, draft: Draft, *, with_git: bool, with_ignored: bool
) -> bool:
    """Whether a publish would apply or refuse anything of a draft."""
    try:
        with opened(handle, draft) as view:
            state = draft_state(handle, view, draft)
    except Failure:
        return True
    ignored = frozenset[RelativePath]() if with_ignored else ignored_paths(handle, state)
    is_outside = with_git and bool(draft.also) and _is_written_outside(handle, draft)
    return is_outside or any(
        is_relevant(each)
        and each.path not in ignored
        and (with_git or not is_own_repository(each.path))
        for each in state.changes
    )


def changed_in(handle: WorkbenchHandle) -> tuple[Draft, ...]:
    """Drafts with changes, oldest first."""
    return tuple(each for each in handle.drafts.all() if is_changed(handle, each))


def is_changed(handle: WorkbenchHandle, draft: Draft) -> bool:
    """Whether a draft differs from its project.

    An unreadable one counts as changed, so that nothing is lost.
    """
    if not _is_written(handle, draft):
        return False
    try:
        with opened(handle, draft) as view:
            state = draft_state(handle, view, draft)
    except Failure:
        return True
    if unpublishable(handle, state) or _is_obstructed(state):
        return True
    return any(map(is_relevant, state.changes)) or (
        bool(draft.also) and _is_written_outside(handle, draft)
    )


def _is_obstructed(state: DraftState) -> bool:
    """Whether the project has an uncovered path where the draft has an entry."""
    return any(each.reason is ConflictReason.NOT_COVERED for each in state.decided().values())


def is_relevant(change: PathChange) -> bool:
    """Whether a change counts as a change of the draft."""
    return change.path != _INDEX


def discard_unchanged(workbench: Workbench, draft: str) -> bool:
    """Remove a draft without changes and processes; return whether it is gone."""
    with workbench.locked() as (handle, _):
        try:
            found = handle.drafts.find(draft)
        except DraftMissing:
            return True
        if _is_used(handle, found) or is_changed(handle, found) or _is_used(handle, found):
            return False
        handle.records.note("draft_discarded", {"draft": found.id}, key=f"discard {found.id}")
        handle.drafts.remove(found)
        return True


def release_unchanged(handle: WorkbenchHandle) -> None:
    """End the places of drafts without written files and processes."""
    for draft in handle.drafts.all():
        if draft.mode is not DraftMode.OVERLAY or _is_written(handle, draft):
            continue
        with suppress(Failure, OSError):
            # Retried by the next command.
            if not _is_used(handle, draft):
                end(handle.drafts.spec(draft).directory)


def _is_used(handle: WorkbenchHandle, draft: Draft) -> bool:
    """Whether processes are in a draft or about to enter it."""
    if is_draft_in_use(handle.drafts.home(draft)):
        return True
    place = find(handle.drafts.spec(draft).directory) if draft.mode is DraftMode.OVERLAY else None
    if place is None:
        return False
    with place:
        return bool(processes_in(place))


def _is_written(handle: WorkbenchHandle, draft: Draft) -> bool:
    """Whether the upper layers have entries; always true for a copy."""
    if draft.mode is not DraftMode.OVERLAY:
        return True
    return _has_names(handle.drafts.written(draft)) or _is_written_outside(handle, draft)


def _is_written_outside(handle: WorkbenchHandle, draft: Draft) -> bool:
    first = handle.drafts.written(draft)
    numbers = range(1, len(draft.also) + 1)
    return any(_has_names(first.with_name(f"{first.name}-{number}")) for number in numbers)


def _has_names(layer: os.PathLike[str]) -> bool:
    try:
        with os.scandir(layer) as entries:
            return any(not is_stage(os.fsencode(entry.name)) for entry in entries)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise_resource_error(error, os.fsencode(layer))
        return True
