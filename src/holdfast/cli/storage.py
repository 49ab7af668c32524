"""Show how much room the checkpoints of a project take, and make some."""

from __future__ import annotations

import sys

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.storage_page import (
    Room,
    Spared,
    size_of,
    spared_page,
    spared_record,
    storage_page,
    storage_record,
)
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work, refuse
from holdfast.workbench import storage_use, tidy


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
        pruned = tidy(
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
