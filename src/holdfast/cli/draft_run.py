"""Run a command in a draft, and leave a revision to go back to, however it ends."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import anyio

from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.core.draft_page import SCHEMA, cause_of, revision_record
from holdfast.cli.draft_choose import draft_meant
from holdfast.cli.draft_guest import guest_of
from holdfast.cli.draft_keep import seen_at
from holdfast.cli.exec_dial import server_of
from holdfast.cli.exec_run import Stay, command_in
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, is_terminal
from holdfast.cli.record_lines import json_line
from holdfast.cli.reporting import reported
from holdfast.cli.workbench_project import Project, at_work, refuse
from holdfast.exec import Process
from holdfast.exec.model import Command
from holdfast.nouns import printable
from holdfast.workbench import Entered, entering, list_drafts, open_draft, revise
from holdfast.workbench.model import Draft, Revision

_HERE = "PWD"


def run(request: Request, settings: Settings) -> Outcome:
    """Run a command in a draft, made if there is none, and end as it ends."""
    if not request.words:
        refuse("say what to run, as in: holdfast draft run -- make", request)
    with at_work(request, settings) as project:
        name = draft_meant(request, settings, project) or _newest(project)
        with entering(project.workbench, name) as entered:
            project.progress.clear()
            draft = entered.draft
            try:
                outcome = anyio.run(_stayed, request, settings, project, entered)
            finally:
                revision = revise(project.workbench, draft.id, cause_of(request.words))
    if request.is_json:
        return replace(outcome, answer=json_line(_record(outcome, draft, revision)))
    return replace(outcome, hint="\n".join(filter(None, [outcome.hint, _note(draft, revision)])))


class _StayInDraft(Stay):
    """A stay at a process in a draft, which only someone in that draft can be attached to."""

    def hint(self, process: Process) -> str:
        """What can be done about a process that was left running in a draft."""
        name = printable(process.id)
        return f"It runs on. holdfast logs -f {name} shows it, holdfast stop {name} ends it."


async def _stayed(
    request: Request, settings: Settings, project: Project, entered: Entered
) -> Outcome:
    server, place = server_of(Request(), settings), entered.view.place
    inside = _inside(project)
    if place is not None and place.holder is not None:
        server = await guest_of(server, Path(place.holder.directory))
        command = command_in(str(Path(entered.draft.project, inside)), request, is_local=True)
    else:
        command = _in_copy(request, str(Path(seen_at(entered), inside)))
    return await _StayInDraft(request, server).run(command)


def _in_copy(request: Request, where: str) -> Command:
    """A command that runs in a copy; a person is told, for paths are other ones there."""
    if not os.path.isdir(where):
        refuse(f"{where} is no directory in this draft", request)
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


def _record(outcome: Outcome, draft: Draft, revision: Revision | None) -> dict[str, object]:
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
