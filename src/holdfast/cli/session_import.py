"""Take over conversations that were begun with another tool."""

from __future__ import annotations

import sys
import time
from itertools import islice
from typing import Final

from holdfast.app.failures import HistoryMissing, SessionAmbiguous
from holdfast.app.sessions import RUNNERS, TITLE_MOST, KeptSession, Sessions, short
from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.foreign_talk import records_of
from holdfast.cli.core.threads_page import Kept, thread_line, threads_page
from holdfast.cli.failures import UsageWrong
from holdfast.cli.foreign_files import TOOLS, Found, Reading, Tool, conversations
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work
from holdfast.host import compose_book
from holdfast.host.model import Opened
from holdfast.nouns import printable
from holdfast.workbench import Workbench, open_draft

ORIGIN: Final = "imported"  # the option of a session that says where it comes from
_SHOWN_MOST: Final = 50


def take_over(request: Request, settings: Settings) -> Outcome:
    """What a tool has about this project, or one conversation of it as a session of ours."""
    tool, wanted = _meant(request)
    with at_work(request, settings) as project:
        where = str(project.workbench.project)
        if wanted is None:
            return _listing(
                list(islice(conversations(tool, where), _SHOWN_MOST)), tool, request, settings
            )
        found = _found(tool, where, wanted)
        session = _session(tool, found, project.workbench, settings)
    reading = Reading(tool, found.path)
    opened = Opened(session.id, where, session.draft, session.runner, session.at_ms)
    known = found.about.id if session.runner in RUNNERS else None
    records = records_of(opened, reading.steps(), known=known)
    directory = Sessions(settings).directory(session)
    is_new = compose_book(directory, records, name=session.id)
    if request.is_json:
        record = {"schema": 1, "type": "session", "id": session.id, "new": is_new}
        return Outcome(answer=json_line({**record, "unread": reading.torn, "cut": reading.is_cut}))
    return Outcome(hint=_hint(session, reading, is_new=is_new))


def _meant(request: Request) -> tuple[Tool, str | None]:
    tool, *rest = request.words or ("",)
    if tool not in TOOLS or len(rest) > 1:
        problem = f"say of which tool ({', '.join(TOOLS)}), then perhaps which ID"
        raise UsageWrong(problem=problem, read_on="holdfast sessions import --help")
    return TOOLS[tool], rest[0] if rest else None


def _found(tool: Tool, project: str, wanted: str) -> Found:
    """The one conversation whose id begins so."""
    every = [each for each in conversations(tool, project) if each.about.id.startswith(wanted)]
    matching = [each for each in every if each.about.id == wanted] or every
    if not matching:
        raise HistoryMissing(tool=tool.name, conversation=wanted, project=project)
    if len(matching) > 1:
        raise SessionAmbiguous(session=wanted, count=len(matching))
    return matching[0]


def _session(tool: Tool, found: Found, bench: Workbench, settings: Settings) -> KeptSession:
    """The session that this conversation is, or becomes: the same however often it is asked for."""
    sessions, origin = Sessions(settings), f"{tool.name}/{found.about.id}"
    for each in sessions.all():
        if each.options.get(ORIGIN) == origin and each.project == str(bench.project):
            return each
    draft = open_draft(bench).id if tool.name in RUNNERS else ""
    title = " ".join(found.asked.split())[:TITLE_MOST]
    options = {ORIGIN: origin}
    return sessions.make(str(bench.project), draft, tool.name, title=title, options=options)


def _listing(found: list[Found], tool: Tool, request: Request, settings: Settings) -> Outcome:
    kept = [_kept(each) for each in found]
    if request.is_json:
        return Outcome(answer="".join(json_line(thread_line(each)) for each in kept))
    look = look_for(sys.stdout, request, settings)
    hint = f"Take one over: holdfast sessions import {tool.name} ID"
    none = f"{tool.name} keeps no conversation about this project."
    return Outcome(answer=threads_page(kept, look, now=time.time()), hint=hint if kept else none)


def _kept(found: Found) -> Kept:
    seconds = found.about.at_ms // 1000
    return Kept(
        id=found.about.id,
        preview=found.asked[:TITLE_MOST],
        name="",
        cwd=found.about.directory,
        created=seconds,
        updated=seconds,
    )


def _hint(session: KeptSession, reading: Reading, *, is_new: bool) -> str:
    name = printable(short(session))
    lines = [f"{session.id} {'is' if is_new else 'was already'} here."]
    if reading.torn:
        lines.append(f"{reading.torn} line(s) could not be read, and are left out.")
    if reading.is_cut:
        lines.append("It is too long; what came last is left out.")
    lines.append(f"Read it:  holdfast sessions show {name}")
    if session.runner in RUNNERS:
        lines.append(f"Go on:    holdfast --resume {name}")
    else:
        lines.append(f"There is no runner for {session.runner} yet, so it cannot be gone on with.")
    return "\n".join(lines)
