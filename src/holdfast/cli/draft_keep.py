"""Begin, list, find, rewind and discard drafts."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

import anyio

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.confirming import confirmed
from holdfast.cli.core.changed_page import stat_page
from holdfast.cli.core.done_page import ASK_DISCARD
from holdfast.cli.core.draft_page import (
    SCHEMA,
    draft_record,
    drafts_page,
    opened_page,
    revision_record,
    undone_page,
)
from holdfast.cli.draft_choose import draft_meant
from holdfast.cli.draft_diff import emit_bytes, shown
from holdfast.cli.draft_guest import turn_out
from holdfast.cli.failures import DiscardUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import Project, at_work, refuse
from holdfast.failures import Failure
from holdfast.nouns import printable
from holdfast.workbench import (
    Entered,
    Review,
    changed_drafts,
    discard,
    entering,
    list_drafts,
    open_draft,
    review,
    undo,
)
from holdfast.workbench.model import Draft, Mode


def begin(request: Request, settings: Settings) -> Outcome:
    """Begin a draft."""
    mode = request.value("--mode")
    with at_work(request, settings) as project:
        made = open_draft(project.workbench, None if mode in (None, "auto") else Mode(mode))
    if request.is_json:
        return Outcome(answer=json_line(draft_record(made)))
    return Outcome(answer=opened_page(made, look_for(sys.stdout, request, settings)))


def listing(request: Request, settings: Settings) -> Outcome:
    """List the drafts of the project that have changes, the newest first."""
    with at_work(request, settings) as project:
        found = changed_drafts(project.workbench)[::-1]
    if request.is_json:
        return Outcome(answer="".join(json_line(draft_record(each)) for each in found))
    hint = "" if found else "No draft has changes. Begin one: holdfast draft run -- COMMAND"
    look = look_for(sys.stdout, request, settings)
    return Outcome(answer=drafts_page(found, look, now=time.time()), hint=hint)


def path(request: Request, settings: Settings) -> Outcome:
    """Print where a draft can be looked at."""
    with (
        at_work(request, settings) as project,
        entering(project.workbench, draft_meant(request, settings, project)) as entered,
    ):
        where, draft = seen_at(entered), entered.draft
    if request.is_json:
        record = {**_record("path", draft), "path": where}
        return Outcome(answer=json_line(record))
    if is_terminal(sys.stdout):
        return Outcome(answer=f"{printable(where)}\n")
    emit_bytes(os.fsencode(where) + b"\n")
    return Outcome()


def seen_at(entered: Entered) -> str:
    """The directory in which a draft is seen from outside: its copy, or through its holder."""
    place = entered.view.place
    if place is None or place.holder is None:
        return os.readlink(f"/proc/self/fd/{entered.view.root}")
    return f"/proc/{place.holder.pid}/root{entered.draft.project}"


def back(request: Request, settings: Settings) -> Outcome:
    """Go back to an earlier state of a draft."""
    to = request.value("--to")
    if to is not None and not (to.isascii() and to.isdigit()):
        refuse(f"--to: {to} is no revision; they are numbers", request)
    with at_work(request, settings) as project:
        name = draft_meant(request, settings, project)
        revision = undo(project.workbench, name, None if to is None else int(to))
        found = next(
            draft
            for draft in list_drafts(project.workbench)
            if revision.checkpoint in {each.checkpoint for each in draft.revisions}
        )
    if request.is_json:
        record = {**_record("undo", found), "revision": revision_record(revision)}
        return Outcome(answer=json_line(record))
    return Outcome(answer=undone_page(found, revision, look_for(sys.stdout, request, settings)))


def forget(request: Request, settings: Settings) -> Outcome:
    """Discard a draft, after a question if there is anything in it."""
    with at_work(request, settings) as project:
        name = draft_meant(request, settings, project, any_change=True)
        if not request.has("--yes"):
            found = review(project.workbench, name, with_git=True, with_ignored=True)
            name = found.draft.id
            if found.files and not _is_agreed(request, settings, project, found):
                raise DiscardUnconfirmed(count=len(found.files), draft=name)
        gone = discard(project.workbench, name)
        with suppress(Failure):  # without a server nobody can come by that token
            anyio.run(turn_out, settings, project.workbench.directory / "drafts" / gone.id)
    if request.is_json:
        return Outcome(answer=json_line(_record("discarded", gone)))
    return Outcome(hint=f"{printable(gone.id)} is gone. The project was not touched.")


def _record(sort: str, draft: Draft) -> dict[str, object]:
    return {"schema": SCHEMA, "type": sort, "draft": draft.id}


def _is_agreed(request: Request, settings: Settings, project: Project, found: Review) -> bool:
    project.progress.clear()
    if request.is_json:
        return False
    look = look_for(sys.stderr, request, settings)
    return confirmed(stat_page(shown(found.files), look), ASK_DISCARD)
