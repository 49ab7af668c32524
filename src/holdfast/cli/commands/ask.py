"""`holdfast ask`: run one turn in a draft, show it, and report how it ended."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

import anyio

from holdfast.app.sessions import KeptSession, short
from holdfast.app.settings import Settings
from holdfast.cli.commands.agent_choice import not_chosen, with_agent
from holdfast.cli.commands.session_start import session_for
from holdfast.cli.commands.turn import STATUSES, Attendance, TurnOrder
from holdfast.cli.declarations import Request
from holdfast.cli.failure_report import reported
from holdfast.cli.failures import AgentNotChosen, OutputLost, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.options import chosen_for, configured
from holdfast.cli.output import complain, json_line, look_for, write
from holdfast.cli.render.turns import LEFT, TurnResult, result_of
from holdfast.cli.terminal import whole_input
from holdfast.failures import Ids
from holdfast.nouns import printable
from holdfast.runners.model import TurnEnding

_READ_ON: Final = "holdfast ask --help"
_IN_PLACE: Final = (
    "In place: {project} gets what the turn changed when it has completed, even if this command is "
    "gone by then; a checkpoint of what was there before is kept."
)


def ask(request: Request, settings: Settings) -> Outcome:
    """Run one turn, in a new session unless one is named."""
    request = configured(request, settings)
    try:
        if request.argument == "-":  # choose the agent before waiting for a long input
            request = with_agent(request, settings)
        prompt = _prompt(request)
        limit = request.value("--timeout")
        request = with_agent(request, settings)
        session = session_for(prompt, request, settings)
    except AgentNotChosen as failure:
        if request.is_json:
            raise
        return not_chosen(failure, look_for(sys.stderr, request, settings))
    except KeyboardInterrupt:
        if request.is_json:  # a reader of records gets a result record, however the command ends
            write(json_line(result_of(TurnResult(status=TurnEnding.INTERRUPTED))))
        raise
    if request.has("--in-place"):
        complain(_IN_PLACE.format(project=printable(session.project)) + "\n")
    look = None if request.is_json else look_for(sys.stderr, request, settings)
    attendance = Attendance(session, settings, look)
    limited = None if limit is None else float(limit)
    order = TurnOrder(prompt, chosen_for(request), request.has("--in-place"), limited)
    anyio.run(attendance.run, order)
    return _outcome(attendance, session, request)


def _prompt(request: Request) -> str:
    prompt = request.argument
    if prompt == "-":
        prompt = whole_input()
    if prompt is None or not prompt.strip():
        raise UsageWrong(problem="Missing PROMPT", read_on=_READ_ON)
    return os.fsencode(prompt).decode("utf-8", "backslashreplace")


def _outcome(attendance: Attendance, session: KeptSession, request: Request) -> Outcome:
    result, failure = attendance.result, attendance.failure
    if isinstance(failure, OutputLost):
        raise failure
    status = 0 if failure is not None else STATUSES.get(result.status, 1)  # a failure has its own
    if attendance.signal is not None:
        status, failure = 128 + attendance.signal, None
    if failure is not None:
        ids = Ids(session_id=session.id, runner_type=session.runner)
        failure.about(ids).stamped(time.time())
    if request.is_json:
        error = None if failure is None else reported(failure)
        record = result_of(result, session=session.id, draft=session.draft, error=error)
        return Outcome(status=status, answer=json_line(record), failure=failure)
    return Outcome(status=status, failure=failure, hint=_hint(result, session, request))


def _hint(result: TurnResult, session: KeptSession, request: Request) -> str:
    """The next commands: for the draft, for the session, and the path of the report."""
    name = printable(short(session))
    lines: list[str] = []
    if result.refusals:
        lines.append(f"{result.refusals} request(s) of the agent were refused.")
    if result.status == LEFT and result.turn is not None:
        lines.append(f"The turn continues. Attach with: holdfast attach {name}")
    if result.undo is not None:
        lines.append(f"Undo it:     holdfast restore {printable(result.undo)}")
    elif result.revision is not None:
        of = f" --draft {printable(session.draft)}" if request.has("--session") else ""
        lines.append(f"Review it:   holdfast draft diff{of}")
        lines.append(f"Publish it:  holdfast publish{of}")
    if not request.has("--session"):
        lines.append(f'Continue:    holdfast ask --session {name} "..."')
    if result.report is not None:
        lines.append(f"Report:      {printable(result.report)}")
    return "\n".join(lines)
