"""`holdfast codex`: run one turn of Codex on the terminal, and list its threads."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import asdict
from typing import cast

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast.app.settings import Settings
from holdfast.cli.commands.codex_input import Order, directory, read_order
from holdfast.cli.declarations import Request
from holdfast.cli.failure_report import reported
from holdfast.cli.failures import OutputLost, ThreadRefused, TurnTooLong
from holdfast.cli.model import Json, Outcome
from holdfast.cli.output import json_line, look_for
from holdfast.cli.render.codex import (
    CHOICES,
    CHOICES_AGAIN,
    Ended,
    Noted,
    Said,
    TurnPage,
    decision_of,
    input_answer,
    input_page,
    input_prompt,
    question_page,
    subject,
)
from holdfast.cli.render.records import (
    Record,
    Result,
    approval_record,
    event_record,
    result_record,
    thread_record,
)
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import Kept, kept, thread_line, threads_page
from holdfast.cli.terminal import Terminal
from holdfast.codex import (
    Approval,
    ApprovalDecision,
    AppServer,
    Event,
    EventsDropped,
    InputApproval,
    InputReply,
    Thread,
    UnknownEvent,
)
from holdfast.codex.failures import TurnFailed
from holdfast.codex.turns import failure_of
from holdfast.codex.wire.generated import (
    NOTIFICATIONS,
    ItemStartedNotification,
    TurnCompletedNotification,
)
from holdfast.failures import Failure, Ids, boundary
from holdfast.nouns import printable
from holdfast.rpc.failures import ErrorResponse
from holdfast.telemetry import Redactor

# The two who follow a turn: a person, with text and notes, and a program, with records.


class PersonView:
    """Shows a turn: messages on standard output, everything else on standard error."""

    def __init__(self, terminal: Terminal, look: Look, *, cwd: str) -> None:
        self._terminal, self._look = terminal, look
        self._page = TurnPage(look, cwd=cwd)
        self._clean = Redactor().text

    async def begin(self, thread: str) -> None:
        """Say nothing: the end says how to continue."""

    async def show(self, method: str, params: Json) -> None:
        """Show what one event says."""
        for piece in self._page.take(method, params):
            match piece:
                case Said(text):
                    await self._terminal.say(text)
                case Noted(line):
                    await self._terminal.note(self._clean(line))
                case Ended():
                    await self._terminal.end_line()

    async def note(self, text: str) -> None:
        """Say something of our own."""
        await self._terminal.note(self._look.paint(text, Tone.QUIET))

    async def decided(self, approval: Approval, decision: str) -> None:
        """Say nothing: it was the person who decided."""

    async def declined(self, approval: Approval, why: str) -> None:
        """Say what was declined without asking the person, and why."""
        what = self._clean(printable(f"declined ({why}): {subject(approval)}"))
        sign = self._look.paint(self._look.signs.careful, Tone.CAREFUL)
        await self._terminal.note(f"  {sign} {what}")


class ProgramView:
    """Writes a turn for a program: one JSON object per line, nothing else."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def begin(self, thread: str) -> None:
        """Say in which thread the turn runs."""
        await self._write(thread_record(thread))

    async def show(self, method: str, params: Json) -> None:
        """Pass on one event."""
        await self._write(event_record(method, params))

    async def note(self, text: str) -> None:
        """Say nothing: the records say it."""

    async def decided(self, approval: Approval, decision: str) -> None:
        """Say what the person decided."""
        await self._write(approval_record(_asked(approval), decision=decision, why="person"))

    async def declined(self, approval: Approval, why: str) -> None:
        """Say what was declined without asking anyone, and why."""
        await self._write(approval_record(_asked(approval), decision="decline", why=why))

    async def _write(self, record: Record) -> None:
        await self._terminal.say(json_line(record))


View = PersonView | ProgramView


def _asked(approval: Approval) -> Record:
    kind = type(approval).__name__.removesuffix("Approval")
    facts = msgspec.convert(msgspec.to_builtins(asdict(approval)), Record)
    return {"kind": kind[0].lower() + kind[1:], **facts}


# Put Codex's questions to the person at the terminal, or say no in their place.

PATIENCE = 600.0  # seconds that a question stays open
_CONTEXT = 1.0  # seconds that a question waits for what led to it to be shown


class Questions:
    """Decides approvals: as the person says; a no when they cannot be asked, or do not answer."""

    def __init__(self, terminal: Terminal, view: View, look: Look) -> None:
        self._terminal, self._view, self._look = terminal, view, look
        self._shown: set[str] = set()
        self._stirred = anyio.Event()

    def shown(self, item: str) -> None:
        """Note that an item is shown, so that an approval about it may be asked."""
        self._shown.add(item)
        self._stirred.set()

    async def decide(self, approval: Approval) -> ApprovalDecision | InputReply:
        """Decide one approval and report the decision with its source."""
        with anyio.move_on_after(_CONTEXT):
            await self._led_to(approval.item)
        if not self._terminal.can_ask:
            return await self._declined(approval, "no terminal to ask on")
        with anyio.move_on_after(PATIENCE):
            answer = await self._ask(approval)
            if answer is None and self._terminal.is_dismissed:
                answer = ApprovalDecision.CANCEL  # the person wants the turn to end
            if answer is None:
                return await self._declined(approval, "no answer")
            word = answer.value if isinstance(answer, ApprovalDecision) else "reply"
            await self._view.decided(approval, word)
            return answer
        return await self._declined(approval, f"no answer within {PATIENCE:g} s")

    async def _led_to(self, item: str) -> None:
        while item not in self._shown:
            self._stirred = anyio.Event()
            await self._stirred.wait()

    async def _ask(self, approval: Approval) -> ApprovalDecision | InputReply | None:
        if isinstance(approval, InputApproval):
            return await self._reply(approval)
        page = question_page(approval, self._look)
        return await self._terminal.ask(page, CHOICES, decision_of, again=CHOICES_AGAIN)

    async def _reply(self, approval: InputApproval) -> InputReply | None:
        answers: dict[str, tuple[str, ...]] = {}
        for question in approval.questions:
            options = tuple((each.label, each.description) for each in question.options or ())
            line = await self._terminal.ask(
                input_page(question.question, options, self._look),
                input_prompt(options),
                str,
                is_secret=question.is_secret,
            )
            if line is None:
                return None
            answers[question.id] = (input_answer(line, options),)
        return InputReply(answers)

    async def _declined(self, approval: Approval, why: str) -> ApprovalDecision:
        await self._view.declined(approval, why)
        return ApprovalDecision.DECLINE


_METHODS = {kind: method for method, kind in NOTIFICATIONS.items()}
_INTERRUPTING = "Interrupting the turn; Ctrl-C again leaves at once."
_STATUSES = {"completed": 0, "interrupted": 128 + signal.SIGINT}


def ask(request: Request, settings: Settings) -> Outcome:
    """Take one turn, and say how it ended."""
    order = read_order(request, settings)
    terminal, look = Terminal(), look_for(sys.stderr, request, settings)
    view: View = PersonView(terminal, look, cwd=order.cwd)
    if request.is_json:
        view = ProgramView(terminal)
    attendance = Attendance(order, terminal, view, Questions(terminal, view, look))
    anyio.run(attendance.run)
    return _outcome(attendance, request)


class Attendance:
    """One turn, from the start of Codex to its end, and whatever cuts it short."""

    def __init__(self, order: Order, terminal: Terminal, view: View, questions: Questions) -> None:
        self.result = Result()
        self.failure: Failure | None = None
        self.signal: int | None = None  # what made us leave before the turn had ended
        self.is_begun = False
        self._order, self._terminal, self._view = order, terminal, view
        self._questions = questions
        self._thread: Thread | None = None
        self._is_stopping = False
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Attend the turn to its end; what went wrong is kept, not raised."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._heed, signals)
                try:
                    with boundary("codex.ask"):
                        await self._converse()
                except Failure as failure:
                    self.failure = self.failure or failure
                self._tasks.cancel_scope.cancel()

    async def _converse(self) -> None:
        async with AppServer.connect(
            command=(self._order.codex, "app-server"),
            approvals=self._questions.decide,
            approval_timeout=2 * PATIENCE,  # the questions have a limit of their own
        ) as server:
            thread = self._thread = await self._opened(server)
            self.result.thread = thread.id
            await self._view.begin(thread.id)
            self._tasks.start_soon(self._limit)
            async with aclosing(thread.run(self._order.prompt)) as events:
                async for event in events:
                    await self._take(event)

    async def _opened(self, server: AppServer) -> Thread:
        order = self._order
        if order.resume is not None:
            try:
                thread = await server.resume_thread(order.resume)
            except ErrorResponse as refused:
                reason = refused.error_message
                raise ThreadRefused(thread=order.resume, reason=reason) from refused
            self.is_begun = True
            return thread
        return await server.start_thread(
            cwd=order.cwd,
            model=order.model,
            sandbox=order.sandbox,
            approval_policy=order.approval_policy,
        )

    async def _take(self, event: Event) -> None:
        self.is_begun = True
        method, params = _wire_form(event)
        self.result.take(method, params)
        if isinstance(event, TurnCompletedNotification) and event.turn.error is not None:
            self.failure = self.failure or failure_of(event.turn.error)
        await self._view.show(method, params)
        if isinstance(event, ItemStartedNotification):
            self._questions.shown(event.item.id)

    async def _heed(self, signals: AsyncIterator[signal.Signals]) -> None:
        """The first Ctrl-C interrupts the turn; the second, or SIGTERM, leaves."""
        async for number in signals:
            if self._is_stopping or number == signal.SIGTERM:
                self._leave(number)
            else:
                self._stop(number)
                self._tasks.start_soon(self._view.note, _INTERRUPTING)

    async def _limit(self) -> None:
        if self._order.timeout is not None:
            await anyio.sleep(self._order.timeout)
            self.failure = TurnTooLong(limit=self._order.timeout)
            self._stop(None)

    def _stop(self, number: int | None) -> None:
        """End the turn in good order, once there may be one; leave otherwise."""
        self._is_stopping = True
        self._terminal.dismiss()
        if self._thread is None:
            self._leave(number)
        else:
            self._tasks.start_soon(self._interrupt, self._thread, number)

    async def _interrupt(self, thread: Thread, number: int | None) -> None:
        with suppress(Failure):  # whatever it says, a turn that goes on ends with the connection
            await thread.interrupt()
        if thread.active_turn is not None:
            self._leave(number)

    def _leave(self, number: int | None) -> None:
        self.signal = number
        self._tasks.cancel_scope.cancel()


def _outcome(attendance: Attendance, request: Request) -> Outcome:
    result, failure = attendance.result, attendance.failure
    if attendance.signal is not None:
        result.status, failure = "interrupted", None
    elif isinstance(failure, OutputLost):
        raise failure
    elif failure is None and result.status not in _STATUSES:
        failure = TurnFailed(reason=f"it ended as {result.status} and did not say why")
    if failure is not None:
        failure.about(Ids(session_id=result.thread, runner_type="codex")).stamped(time.time())
    status = 0 if failure is not None else _STATUSES[result.status]  # a failure has its own
    if attendance.signal is not None:
        status = 128 + attendance.signal
    if request.is_json:
        error = None if failure is None else reported(failure)
        answer = json_line(result_record(result, error=error))
        return Outcome(status=status, answer=answer, failure=failure)
    return Outcome(status=status, failure=failure, hint=_hint(attendance, request))


def _hint(attendance: Attendance, request: Request) -> str:
    """How to continue the thread, once there is something to continue."""
    if not attendance.is_begun or attendance.result.thread is None:
        return ""
    codex = request.value("--codex")
    words = ["holdfast", "codex", "ask", *(["--codex", codex] if codex else [])]
    words += ["--resume", attendance.result.thread]
    return printable(f'Continue: {shlex.join(words)} "..."')


def _wire_form(event: Event) -> tuple[str, Json]:
    """An event under its name on Codex's wire; one of our own has a name of our own."""
    if isinstance(event, UnknownEvent):
        return event.method, cast("Json", event.params)  # it was read from JSON
    if isinstance(event, EventsDropped):
        return "holdfast/eventsDropped", {"count": event.count}
    return _METHODS[type(event)], msgspec.to_builtins(event)


# List the threads that Codex keeps.

_LIMIT = 10
_PAGE = 100  # threads in one answer


def threads(request: Request, settings: Settings) -> Outcome:
    """List the latest threads."""
    codex, cwd = request.value("--codex") or settings.codex, directory(request)
    limit = int(request.value("--limit") or _LIMIT)
    found, is_all = anyio.run(_listed, codex, cwd, limit)
    if request.is_json:
        return Outcome(answer="".join(json_line(thread_line(thread)) for thread in found))
    look = look_for(sys.stdout, request, settings)
    page = threads_page(found, look, now=time.time())
    return Outcome(answer=page, hint=_threads_hint(found, is_all=is_all))


async def _listed(codex: str, cwd: str | None, limit: int) -> tuple[list[Kept], bool]:
    """The latest threads, and whether they are all."""
    found: list[Kept] = []
    cursor: Json = None
    async with AppServer.connect(command=(codex, "app-server")) as server:
        while len(found) < limit:
            wanted = {"limit": min(limit - len(found), _PAGE), "sortKey": "updated_at"}
            answer = await server.request("thread/list", {**wanted, "cwd": cwd, "cursor": cursor})
            threads, cursor = _read(cast("Json", answer))  # it was read from JSON
            found += threads
            if not (threads and cursor):
                return found, True
    return found, cursor is None


def _read(answer: Json) -> tuple[list[Kept], Json]:
    if not isinstance(answer, dict):
        return [], None
    match answer.get("data"):
        case [*data]:
            read = [kept(thread) for thread in data if isinstance(thread, dict)]
            return [thread for thread in read if thread is not None], answer.get("nextCursor")
        case _:
            return [], None


def _threads_hint(found: list[Kept], *, is_all: bool) -> str:
    if not found:
        return 'No threads. Begin one: holdfast codex ask "..."'
    return "" if is_all else f"There are more: add --limit {10 * len(found)}"
