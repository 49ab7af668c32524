"""Begin, list, find, rewind and discard drafts."""

from __future__ import annotations

import os
import sys
import time
from base64 import b64encode
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio

from holdfast.app.settings import Settings
from holdfast.app.wiring.local_server import local_endpoint
from holdfast.app.wiring.tokens import draft_endpoint, revoke_draft_token
from holdfast.cli.commands.diff import emit_bytes, shown
from holdfast.cli.commands.draft_choice import draft_meant
from holdfast.cli.commands.exec import Stay, command_in
from holdfast.cli.declarations import Request
from holdfast.cli.failure_report import reported
from holdfast.cli.failures import DiscardUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, is_terminal, json_line, look_for
from holdfast.cli.project import Project, at_work, refuse
from holdfast.cli.render.changes import ShownMerge, merge_page, merge_record, stat_page
from holdfast.cli.render.drafts import (
    SCHEMA,
    cause_of,
    draft_record,
    drafts_page,
    opened_page,
    revision_record,
    undone_page,
)
from holdfast.cli.render.publications import ASK_DISCARD
from holdfast.cli.terminal import confirmed
from holdfast.exec import Process
from holdfast.exec.model import Command
from holdfast.failures import Failure
from holdfast.nouns import printable
from holdfast.workbench import (
    EnteredDraft,
    MergeSide,
    Review,
    Version,
    changed_drafts,
    discard,
    enter_draft,
    file_version,
    list_drafts,
    merge_draft,
    open_draft,
    review,
    revise,
    undo,
)
from holdfast.workbench.model import Draft, DraftMode, Revision


def begin(request: Request, settings: Settings) -> Outcome:
    """Begin a draft."""
    mode = request.value("--mode")
    with at_work(request, settings) as project:
        made = open_draft(project.workbench, None if mode in (None, "auto") else DraftMode(mode))
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
        enter_draft(project.workbench, draft_meant(request, settings, project)) as entered,
    ):
        where, draft = seen_at(entered), entered.draft
    if request.is_json:
        record = {**_record("path", draft), "path": where}
        return Outcome(answer=json_line(record))
    if is_terminal(sys.stdout):
        return Outcome(answer=f"{printable(where)}\n")
    emit_bytes(os.fsencode(where) + b"\n")
    return Outcome()


def seen_at(entered: EnteredDraft) -> str:
    """The directory in which a draft is seen from outside: its copy, or through its holder."""
    place = entered.view.place
    if place is None or place.holder is None:
        return os.readlink(f"/proc/self/fd/{entered.view.root}")
    return f"/proc/{place.holder.pid}/root{entered.draft.project}"


def back(request: Request, settings: Settings) -> Outcome:
    """Go back to an earlier state of a draft."""
    to = request.value("--to")
    if to is not None and not (to.isascii() and to.isdigit()):
        refuse(f"--to: {to} is not a revision number", request)
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
        directory = project.workbench.directory / "drafts" / gone.id
        # Without a server the token is useless, so that a failure to connect is fine.
        with suppress(Failure):
            anyio.run(revoke_draft_token, settings, directory)
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


# Run a command in a draft, and leave a revision to go back to, however it ends.

_HERE = "PWD"


def run(request: Request, settings: Settings) -> Outcome:
    """Run a command in a draft, made if there is none, and end as it ends."""
    if not request.words:
        refuse("Missing command: put it after --, as in: holdfast draft run -- make", request)
    with at_work(request, settings) as project:
        name = draft_meant(request, settings, project) or _newest(project)
        with enter_draft(project.workbench, name) as entered:
            project.progress.clear()
            draft = entered.draft
            try:
                outcome = anyio.run(_stayed, request, settings, project, entered)
            finally:
                revision = revise(project.workbench, draft.id, cause_of(request.words))
    if request.is_json:
        return replace(outcome, answer=json_line(_run_record(outcome, draft, revision)))
    return replace(outcome, hint="\n".join(filter(None, [outcome.hint, _note(draft, revision)])))


class _StayInDraft(Stay):
    """A stay at a process in a draft, which only someone in that draft can be attached to."""

    def hint(self, process: Process) -> str:
        """What can be done about a process that was left running in a draft."""
        name = printable(process.id)
        return (
            f"It is still running. holdfast logs -f {name} shows it, holdfast stop {name} ends it."
        )


async def _stayed(
    request: Request, settings: Settings, project: Project, entered: EnteredDraft
) -> Outcome:
    server, place = local_endpoint(settings), entered.view.place
    inside = _inside(project)
    if place is not None and place.holder is not None:
        server = await draft_endpoint(server, Path(place.holder.directory))
        command = command_in(str(Path(entered.draft.project, inside)), request, is_local=True)
    else:
        command = _in_copy(request, str(Path(seen_at(entered), inside)))
    return await _StayInDraft(request, server).run(command)


def _in_copy(request: Request, where: str) -> Command:
    """A command in the copy of a draft; prints a note, because paths differ there."""
    if not os.path.isdir(where):
        refuse(f"{where} is not a directory in this draft", request)
    if is_terminal(sys.stderr):
        complain(f"(This draft is a copy: the command runs in {printable(where)})\n")
    command = command_in(where, request, is_local=True)
    return replace(command, env={**command.env, _HERE: where})


def _inside(project: Project) -> str:
    """Where in the project the person is; on top of it, if they are elsewhere."""
    top = project.workbench.project
    return str(project.here.relative_to(top)) if project.here.is_relative_to(top) else "."


def _newest(project: Project) -> str:
    """The newest draft, none of which has changes; if there is none, one is made, and told."""
    found = list_drafts(project.workbench)
    if found:
        return found[-1].id
    made = open_draft(project.workbench)
    project.progress.clear()
    if is_terminal(sys.stderr):
        complain(f"({printable(made.id)}: {made.mode.value})\n")
    return made.id


def _run_record(outcome: Outcome, draft: Draft, revision: Revision | None) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "type": "run",
        "draft": draft.id,
        "exitCode": outcome.status if outcome.failure is None else None,
        "revision": None if revision is None else revision_record(revision),
        "error": None if outcome.failure is None else reported(outcome.failure),
    }


def _note(draft: Draft, revision: Revision | None) -> str:
    if revision is None or not is_terminal(sys.stderr):
        return ""
    return f"(Revision {revision.number} of {printable(draft.id)}; holdfast draft diff shows it.)"


# Resolve what a draft and its project both changed, and print versions of a file.

_PROJECT, _DIRECTORY = "--project", "-C"


def merging(request: Request, settings: Settings) -> Outcome:
    """Bring the project's newer files into a draft."""
    if request.has("--ours") and request.has("--theirs"):
        refuse("--ours and --theirs exclude each other", request)
    side = MergeSide.OURS if request.has("--ours") else MergeSide.BOTH
    side = MergeSide.THEIRS if request.has("--theirs") else side
    with at_work(request, settings) as project:
        paths = project.paths(request.words)
        found = merge_draft(project.workbench, draft_meant(request, settings, project), paths, side)
    shown = ShownMerge(
        draft=found.draft,
        merged=found.merged,
        marked=found.marked,
        taken=found.taken,
        unresolved=found.unresolved,
    )
    if request.is_json:
        return Outcome(answer=json_line(merge_record(shown)))
    return Outcome(answer=merge_page(shown, look_for(sys.stdout, request, settings)))


def showing(request: Request, settings: Settings) -> Outcome:
    """Print one version of a file."""
    if request.argument is None:
        refuse("say which file", request)
    if request.has(_PROJECT) and request.has("--base"):
        refuse("--project and --base exclude each other", request)
    version = Version.BASE if request.has("--base") else Version.DRAFT
    version = Version.PROJECT if request.has(_PROJECT) else version
    with at_work(_located(request), settings) as project:
        path = project.path(request.argument)
        if path is None:
            refuse("say which file; that is the whole project", request)
        found = file_version(
            project.workbench, path, version, draft_meant(request, settings, project)
        )
    if request.is_json:
        record = {
            "schema": SCHEMA,
            "type": "version",
            "draft": found.draft,
            "version": version.value,
            "path": str(path),
            "kind": found.entry.kind.value,
            "mode": f"{found.entry.mode:o}",
            "contentBase64": b64encode(found.content).decode(),
        }
        return Outcome(answer=json_line(record))
    if is_terminal(sys.stdout):
        text = found.content.decode("utf-8", "backslashreplace")
        lines = (printable(line, keep="\t") for line in text.splitlines())
        return Outcome(answer="".join(f"{line}\n" for line in lines))
    emit_bytes(found.content)
    return Outcome()


def _located(request: Request) -> Request:
    """The request as other commands spell it: here --project is a version, not a directory."""
    given = tuple(
        (_PROJECT if flag == _DIRECTORY else flag, value)
        for flag, value in request.given
        if flag != _PROJECT
    )
    return request._replace(given=given)
