"""Have an agent take one turn in a draft, watch it, and say how it ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Final, NamedTuple

import anyio

from holdfast.app.sessions import KeptSession, Sessions, short
from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.printable import printable
from holdfast.cli.core.turn_lines import LEFT, TurnResult, result_of
from holdfast.cli.failures import OutputLost, UsageWrong
from holdfast.cli.host import RUNNERS
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, write
from holdfast.cli.publish import publish
from holdfast.cli.record_lines import json_line
from holdfast.cli.reporting import reported
from holdfast.cli.session_attend import Attendance
from holdfast.cli.session_consent import agree, provider_of
from holdfast.cli.workbench_project import at_work
from holdfast.failures import Failure, Ids
from holdfast.runners.failures import RunnerUnknown
from holdfast.runners.model import Ending
from holdfast.workbench import open_draft

_TITLE_MOST: Final = 200
_READ_ON: Final = "holdfast ask --help"
_STATUSES: Final = {Ending.COMPLETED: 0, Ending.INTERRUPTED: 128 + signal.SIGINT, LEFT: 1}
_IN_PLACE: Final = (
    "In place: when the turn has completed, {project} has what it changed; a checkpoint of what "
    "was there before is kept."
)


def ask(request: Request, settings: Settings) -> Outcome:
    """Have one turn taken, in a session and a draft of its own, and say how it ended."""
    try:
        prompt = _prompt(request)
        limit = request.value("--timeout")
        session = _session(prompt, request, settings)
    except KeyboardInterrupt:
        if request.is_json:  # who reads records is told, however it ends
            write(json_line(result_of(TurnResult(status=Ending.INTERRUPTED))))
        raise
    if request.has("--in-place"):
        complain(_IN_PLACE.format(project=printable(session.project)) + "\n")
    look = None if request.is_json else look_for(sys.stderr, request, settings)
    attendance = Attendance(session, settings, look)
    how = _how(request)
    anyio.run(attendance.run, prompt, how, None if limit is None else float(limit))
    return _outcome(_Attended(attendance, session, request, settings))


def _prompt(request: Request) -> str:
    prompt = request.argument
    if prompt == "-":
        prompt = sys.stdin.read()
    if prompt is None or not prompt.strip():
        raise UsageWrong(problem="say what is to be done", read_on=_READ_ON)
    return os.fsencode(prompt).decode("utf-8", "backslashreplace")


def _session(prompt: str, request: Request, settings: Settings) -> KeptSession:
    """The session that is meant, or a new one in a draft; the person has agreed to its runner."""
    sessions, named = Sessions(settings), request.value("--session")
    if named is not None:
        kept = sessions.find(named)
        there = Request("ask", given=(("--project", kept.project),), is_json=request.is_json)
        with at_work(there, settings) as project:
            meant = {**kept.options, **_options(request)}
            agree(project.workbench, provider_of(kept.runner, meant), request)
        return kept
    runner = request.value("--runner") or RUNNERS[0]
    if runner not in RUNNERS:
        raise RunnerUnknown(runner=runner, known=", ".join(RUNNERS))
    options = _options(request)
    if runner == "native" and "scenario" not in options and "/" not in options.get("model", ""):
        raise UsageWrong(problem="say which --model, as PROVIDER/MODEL", read_on=_READ_ON)
    with at_work(request, settings) as project:
        agree(project.workbench, provider_of(runner, options), request)
        draft = request.value("--draft")
        if draft is None:
            draft = open_draft(project.workbench).id
        else:
            with project.workbench.held() as (held, _):
                draft = held.drafts.find(draft).id
        where = str(project.workbench.project)
    title = prompt.strip()[:_TITLE_MOST]
    return sessions.make(where, draft, runner, title=title, options=options)


def _options(request: Request) -> dict[str, str]:
    """What the runner is told; a script is meant from where the person is."""
    found = {"model": request.value("--model"), "scenario": request.value("--scenario")}
    if found["scenario"] is not None:
        found["scenario"] = os.path.abspath(found["scenario"])
    return {name: value for name, value in found.items() if value is not None}


def _how(request: Request) -> dict[str, str]:
    """How the turn is to be taken, where that is not how the session takes them anyway."""
    model = request.value("--model")
    return {"model": model} if model is not None and request.has("--session") else {}


class _Attended(NamedTuple):
    """A turn that somebody has attended, as long as they could."""

    attendance: Attendance
    session: KeptSession
    request: Request
    settings: Settings


def _outcome(attended: _Attended) -> Outcome:
    attendance, session, request, _ = attended
    result, failure = attendance.result, attendance.failure
    if isinstance(failure, OutputLost):
        raise failure
    if failure is None and request.has("--in-place") and result.status == Ending.COMPLETED:
        failure = _published(attended)
    status = 0 if failure is not None else _STATUSES.get(result.status, 1)  # a failure has its own
    if attendance.signal is not None:
        status, failure = 128 + attendance.signal, None
    if failure is not None:
        ids = Ids(session_id=session.id, runner_type=session.runner)
        failure.about(ids).stamped(time.time())
    if request.is_json:
        error = None if failure is None else reported(failure)
        record = result_of(result, session=session.id, draft=session.draft, error=error)
        return Outcome(status=status, answer=json_line(record), failure=failure)
    return Outcome(status=status, failure=failure, hint=_hint(attended))


def _published(attended: _Attended) -> Failure | None:
    """Let the project have what the turn did; the draft is kept if that cannot be."""
    attendance, session, request, settings = attended
    given = (("--project", session.project), ("--draft", session.draft), ("--yes", "True"))
    order = Request("publish", given=given, is_json=request.is_json, colour=request.colour)
    try:
        done = publish(order, settings)
    except Failure as failure:
        return failure
    write(done.answer)
    attendance.result.is_published = done.failure is None
    return done.failure


def _hint(attended: _Attended) -> str:
    """What can be done next: with the draft, with the session, and where to read on."""
    attendance, session, request, _ = attended
    result, name = attendance.result, printable(short(session))
    lines: list[str] = []
    if result.refusals:
        lines.append(f"{result.refusals} request(s) of the agent were refused.")
    if result.status == LEFT and result.turn is not None:
        lines.append(f"The turn goes on. Be there again: holdfast attach {name}")
    if result.revision is not None and not result.is_published:
        of = f" --draft {printable(session.draft)}" if request.has("--session") else ""
        lines.append(f"Look at it:  holdfast draft diff{of}")
        lines.append(f"Publish it:  holdfast publish{of}")
    if not request.has("--session"):
        lines.append(f'Go on:       holdfast ask --session {name} "..."')
    if result.report is not None:
        lines.append(f"Report:      {printable(result.report)}")
    return "\n".join(lines)
