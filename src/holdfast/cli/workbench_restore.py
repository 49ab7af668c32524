"""Put a project back to a checkpoint, after showing what that would change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.confirming import confirmed
from holdfast.cli.core.changed_page import ChangedFile
from holdfast.cli.core.done_page import Done, done_page, done_record
from holdfast.cli.core.restore_page import ASK_RESTORE, restore_page, sorted_changes
from holdfast.cli.draft_diff import shown
from holdfast.cli.failures import RestoreUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work, refuse
from holdfast.workbench import Restored, RestoreOrder, RestorePreview, preview_restore
from holdfast.workbench import restore as restored

_LISTED_MAX: Final = 100


def restore(request: Request, settings: Settings) -> Outcome:
    """Make the project, or a part of it, what it was at a checkpoint."""
    if request.argument is None:
        refuse("say which checkpoint, before --only; holdfast checkpoint list shows them", request)
    with at_work(request, settings) as project:
        words = request.values("--only")
        order = RestoreOrder(
            checkpoint=request.argument,
            only=(project.paths(words) or None) if words else None,
            with_git=request.has("--git"),
            keep_new=request.has("--keep-new"),
        )
        if not request.has("--yes"):
            found = preview_restore(project.workbench, order)
            project.progress.clear()
            if found.files and not _is_agreed(request, settings, found):
                raise _unconfirmed(found)
            order = replace(order, checkpoint=found.checkpoint, sealed=found.seal)
        done = _done(restored(project.workbench, order), order)
    if request.is_json:
        return Outcome(answer=json_line(done_record(done)))
    return Outcome(answer=done_page(done, look_for(sys.stdout, request, settings)))


def _is_agreed(request: Request, settings: Settings, found: RestorePreview) -> bool:
    if request.is_json:
        return False
    look = look_for(sys.stderr, request, settings)
    return confirmed(
        restore_page(shown(found.files), found.left, found.checkpoint, look), ASK_RESTORE
    )


def _unconfirmed(found: RestorePreview) -> RestoreUnconfirmed:
    comes, changes, goes = map(_listed, sorted_changes(shown(found.files)))
    return RestoreUnconfirmed(
        checkpoint=found.checkpoint,
        count=len(found.files),
        comes=comes,
        changes=changes,
        goes=goes,
    )


def _listed(files: Sequence[ChangedFile]) -> tuple[str, ...]:
    return tuple(str(each.path) for each in files[:_LISTED_MAX])


def _done(restored: Restored, order: RestoreOrder) -> Done:
    return Done(
        deed="restore",
        key=restored.key,
        undo=restored.before,
        paths=restored.paths,
        count=restored.count,
        restored=restored.checkpoint,
        rescued=restored.rescued,
        left=restored.left,
        with_git=restored.with_git,
        removed=restored.removed,
        keeps_new=order.keep_new,
    )
