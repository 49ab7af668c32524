"""Make, list, show and compare checkpoints."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from tempfile import TemporaryFile
from typing import Final

from holdfast.app.settings import Settings
from holdfast.cli.commands.diff import is_patch_wanted, shown, told
from holdfast.cli.declarations import Request
from holdfast.cli.failures import RestoreUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line, look_for
from holdfast.cli.project import Project, at_work, refuse
from holdfast.cli.render.changes import ASK_RESTORE, ChangedFile, restore_page, sorted_changes
from holdfast.cli.render.checkpoints import (
    checkpoint_page,
    checkpoint_record,
    checkpoints_page,
    made_page,
    uncovered_record,
)
from holdfast.cli.render.drafts import SCHEMA
from holdfast.cli.render.publications import Done, done_page, done_record
from holdfast.cli.render.storage import (
    Room,
    Spared,
    size_of,
    spared_page,
    spared_record,
    storage_page,
    storage_record,
)
from holdfast.cli.terminal import confirmed
from holdfast.workbench import (
    NOW,
    Restored,
    RestoreOrder,
    RestorePreview,
    checkpoint,
    checkpoints,
    compare,
    preview_restore,
    prune_checkpoints,
    show,
    storage_use,
)
from holdfast.workbench import restore as restored
from holdfast.workbench.model import Occasion
from holdfast.workbench.objects.formats import PREFIX


def create(request: Request, settings: Settings) -> Outcome:
    """Keep the project as it is."""
    with at_work(request, settings) as project:
        made = checkpoint(project.workbench, request.value("--message") or "")
    if request.is_json:
        return Outcome(answer=json_line(checkpoint_record(made)))
    return Outcome(answer=made_page(made, look_for(sys.stdout, request, settings)))


def listing(request: Request, settings: Settings) -> Outcome:
    """List what there is to go back to."""
    with at_work(request, settings) as project:
        found = checkpoints(project.workbench)
    if not request.has("--all"):
        found = tuple(each for each in found if each.occasion is not Occasion.AUTO)
    if request.is_json:
        return Outcome(answer="".join(json_line(checkpoint_record(each)) for each in found))
    look = look_for(sys.stdout, request, settings)
    hint = "" if found else "No checkpoints yet. Make one: holdfast checkpoint create"
    return Outcome(answer=checkpoints_page(found, look, now=time.time()), hint=hint)


def showing(request: Request, settings: Settings) -> Outcome:
    """Show one checkpoint, and what it does not cover."""
    if request.argument is None:
        refuse("say which checkpoint; holdfast checkpoint list shows them", request)
    with at_work(request, settings) as project:
        found = show(project.workbench, request.argument)
    if request.is_json:
        record = checkpoint_record(found.checkpoint)
        return Outcome(answer=json_line({**record, "uncovered": uncovered_record(found.uncovered)}))
    look = look_for(sys.stdout, request, settings)
    page = checkpoint_page(found.checkpoint, found.uncovered, look, now=time.time())
    return Outcome(answer=page)


def comparing(request: Request, settings: Settings) -> Outcome:
    """Show what changed between two checkpoints, or since one."""
    if not request.words:
        refuse("say which checkpoint; holdfast checkpoint list shows them", request)
    before, *words = request.words
    with at_work(request, settings) as project, TemporaryFile() as patch:
        is_since = not words or _is_path(project, words[0])
        after = NOW if is_since else words.pop(0)
        record = {"schema": SCHEMA, "type": "comparison", "before": before, "after": after}
        wanted = patch if is_patch_wanted(request) else None
        paths = project.paths(words)
        found = compare(project.workbench, before, after, paths, patch=wanted)
        return told(request, settings, shown(found), record, patch)


def _is_path(project: Project, word: str) -> bool:
    """Whether a word that may be a checkpoint is the path of something in the project."""
    is_checkpoint = word == NOW or word.startswith(f"{PREFIX}_")
    return not is_checkpoint and os.path.lexists(project.here / word)


# Put a project back to a checkpoint, after showing what that would change.

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


# Show how much room the checkpoints of a project take, and make some.


def storage(request: Request, settings: Settings) -> Outcome:
    """Show the use of room, or prune what is too much."""
    look = look_for(sys.stdout, request, settings)
    quota = _quota(request)
    with at_work(request, settings) as project:
        if not request.has("--prune"):
            found = storage_use(project.workbench)
            room = Room(
                checkpoints=found.checkpoints,
                kept_bytes=found.kept_bytes,
                other_bytes=found.index_bytes + found.reserve_bytes,
                free_bytes=found.free_bytes,
                quota_bytes=found.quota_bytes,
            )
            if request.is_json:
                return Outcome(answer=json_line(storage_record(room)))
            return Outcome(answer=storage_page(room, look))
        is_trial = request.has("--dry-run")
        pruned = prune_checkpoints(
            project.workbench,
            quota_bytes=quota,
            with_manual=request.has("--manual"),
            is_trial=is_trial,
        )
    spared = Spared(
        checkpoints=tuple(pruned.checkpoints),
        bytes_before=pruned.bytes_before,
        bytes_after=pruned.bytes_after,
        is_trial=is_trial,
        quota_bytes=quota,
        manual_kept=pruned.manual_kept,
    )
    if request.is_json:
        return Outcome(answer=json_line(spared_record(spared)))
    return Outcome(answer=spared_page(spared, look))


def _quota(request: Request) -> int | None:
    word = request.value("--quota")
    with_prune = word is not None or request.has("--dry-run") or request.has("--manual")
    if with_prune and not request.has("--prune"):
        refuse("--quota, --manual and --dry-run need --prune", request)
    if word is None:
        return None
    size = size_of(word)
    if size is None:
        refuse(f"--quota: {word} is not a size, such as 500M or 2G", request)
    return size
