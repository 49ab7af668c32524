"""Put a project back to a checkpoint."""

from __future__ import annotations

import sys

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.done_page import Done, done_page, done_record
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work, refuse
from holdfast.workbench import Restored, RestoreOrder
from holdfast.workbench import restore as restored


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
        )
        done = _done(restored(project.workbench, order))
    if request.is_json:
        return Outcome(answer=json_line(done_record(done)))
    return Outcome(answer=done_page(done, look_for(sys.stdout, request, settings)))


def _done(restored: Restored) -> Done:
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
    )
