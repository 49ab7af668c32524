"""Let Codex take one turn while somebody watches."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import cast

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.codex_order import Order, read_order
from holdfast.cli.codex_questions import PATIENCE, Questions
from holdfast.cli.codex_views import PersonView, ProgramView, View
from holdfast.cli.commands import Request
from holdfast.cli.core.turn_record import Result, result_record
from holdfast.cli.failures import OutputLost, ThreadRefused, TurnTooLong
from holdfast.cli.model import Json, Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.reporting import reported
from holdfast.cli.terminal import Terminal
from holdfast.codex import AppServer, Event, EventsDropped, Thread, UnknownEvent
from holdfast.codex.core.model_failures import failure_of
from holdfast.codex.failures import TurnFailed
from holdfast.codex.wire.generated import (
    NOTIFICATIONS,
    ItemStartedNotification,
    TurnCompletedNotification,
)
from holdfast.failures import Failure, Ids, boundary
from holdfast.nouns import printable
from holdfast.rpc.failures import ErrorResponse

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
