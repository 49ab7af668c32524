"""One prompt of an editor: stream its turn, ask for permissions, cancel it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Protocol

import anyio
from acp import schema
from acp.interfaces import Client

from holdfast.acp.model import EditorServer, EditorState, Mode, Opened
from holdfast.acp.session import SERVER_AGREED, SERVER_OPTIONS, server_call
from holdfast.acp.updates import (
    AGREED,
    CONSENT_OPTIONS,
    Updates,
    consent_title,
    options_of,
    permission_call,
)
from holdfast.failures import Failure, boundary, from_wire
from holdfast.host import (
    HostSupervisor,
    Reconnecting,
    RecordReceived,
    SupervisionEvent,
    Unresponsive,
)
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnswerSource,
    AttemptStarted,
    EventRecorded,
    PromptCommand,
    PromptQueued,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.runners.model import QuestionAsked, ToolStarted, TurnEnding
from holdfast.workbench.failures import ConsentRequired
from holdfast.world import background_tasks

CRASHED: Final = "holdfast/agent_crashed"  # news: reason, attempt
BACKEND: Final = "holdfast/backend"  # news: reconnecting, or unresponsive
_TAKEN_BACK: Final = TurnClosed(0, TurnEnding.INTERRUPTED, 0)


class Stays(Protocol):
    """Port to the sessions of the user."""

    async def begin(self, project: str) -> Opened:
        """Begin a session in a project; raises a Failure."""
        ...

    async def find(self, session: str) -> Opened:
        """The session of this id."""
        ...

    def all(self) -> Sequence[Opened]:
        """Every session, the newest first."""
        ...

    async def fork(self, session: str) -> Opened:
        """Fork a session; raises SessionForkBusy while a turn runs."""
        ...

    def agree(self, session: str, provider: str) -> None:
        """Record consent for a provider to see the project of a session."""
        ...

    def state(self, session: str) -> EditorState:
        """The options that an editor has set for a session."""
        ...

    def keep(self, session: str, state: EditorState) -> None:
        """Store the options that an editor has set for a session."""
        ...

    def is_trusted(self, server: EditorServer) -> bool:
        """Whether the user trusts exactly this server configuration."""
        ...

    def trust(self, server: EditorServer) -> None:
        """Store trust in exactly this server configuration."""
        ...

    def connect(self, session: str, servers: tuple[EditorServer, ...]) -> None:
        """Replace the MCP servers that an editor has given a session."""
        ...

    async def run(self, session: str, argv: Sequence[str]) -> str:
        """Run a holdfast command in the project of a session; return its output."""
        ...

    def seat(self, session: str, *, after: int) -> AbstractAsyncContextManager[HostSupervisor]:
        """Attach to the host of a session, after the record numbered `after`."""
        ...

    def last(self, session: str) -> int:
        """The sequence number of the last record in the journal."""
        ...


class EditorTurn:
    """One session/prompt request; requests of a session are answered in order."""

    def __init__(
        self, client: Client, stays: Stays, session: str, before: EditorTurn | None
    ) -> None:
        self._client, self._stays, self._session = client, stays, session
        self._before = before
        self._seat: HostSupervisor | None = None  # while the turn itself runs
        self._is_cancelled = False
        self._is_over = anyio.Event()
        self._calls: dict[str, ToolStarted] = {}  # that the turn has begun
        state = stays.state(session)
        self._how = {k: v for k, v in (("model", state.model), ("effort", state.effort)) if v}

    async def take(
        self, text: str, mode: Callable[[], Mode], servers: Sequence[EditorServer] | None = None
    ) -> TurnClosed:
        """Run the turn and stream it; if consent is missing, ask for it and retry once."""
        if self._before is not None:
            await self._before.over()
            self._before = None
        await self._connect(servers, mode())
        closed = await self._taken(text, mode)
        if await self._is_agreed(closed, mode()):
            closed = await self._taken(text, mode)
        return closed

    async def _connect(self, servers: Sequence[EditorServer] | None, mode: Mode) -> None:
        """Ask once for each untrusted server; refused servers are left out."""
        if servers is None:
            return
        agreed: list[EditorServer] = []
        for each in servers:
            if not self._stays.is_trusted(each):
                call = server_call(each)
                if not mode.asks or await self._answer(call, SERVER_OPTIONS) != SERVER_AGREED:
                    continue
                self._stays.trust(each)
            agreed.append(each)
        self._stays.connect(self._session, tuple(agreed))

    async def cancel(self) -> None:
        """Cancel the request, however far it is, and the earlier ones that it waits for."""
        self._is_cancelled = True
        if self._before is not None:
            await self._before.cancel()
        await self._abort()

    async def over(self) -> None:
        """Wait until the request is answered."""
        await self._is_over.wait()

    def end(self) -> None:
        """Wake the next request."""
        self._is_over.set()

    async def _taken(self, text: str, mode: Callable[[], Mode]) -> TurnClosed:
        after = self._stays.last(self._session)
        async with self._stays.seat(self._session, after=after) as seat:
            if self._is_cancelled:
                return _TAKEN_BACK
            command = _named()
            how = self._how | ({} if text else {"compact": "yes"})
            await seat.command(PromptCommand(command, text, how, is_in_place=mode().is_in_place))
            try:
                return await self._attend(seat, command, mode)
            finally:
                self._seat = None

    async def _attend(
        self, seat: HostSupervisor, command: str, mode: Callable[[], Mode]
    ) -> TurnClosed:
        """Send updates until the turn ends, and forward its questions."""
        updates, turn = Updates(await self._stays.find(self._session)), -1
        async with background_tasks() as tasks:
            while True:
                for each in await seat.receive():
                    await tell(self._client, self._session, updates, each)
                    match each:
                        case RecordReceived(_, PromptQueued(given, number)) if given == command:
                            turn = number
                        case RecordReceived(_, TurnBegun(number)) if number == turn:
                            self._seat = seat
                            if self._is_cancelled:
                                await self._abort()
                        case RecordReceived(_, TurnAborted(turn=number)) if number < turn:
                            return _TAKEN_BACK  # with the turn that it waited for
                        case RecordReceived(_, EventRecorded(event=ToolStarted() as started)):
                            self._calls[started.item] = started
                        case RecordReceived(_, EventRecorded(event=QuestionAsked() as asked)):
                            tasks.start_soon(self._ask, seat, asked, mode())
                        case RecordReceived(_, TurnClosed() as closed) if closed.turn == turn:
                            return closed
                        case _:
                            pass
        raise AssertionError("a seat never ends by itself")

    async def _abort(self) -> None:
        if self._seat is not None:
            with suppress(Failure):  # it is over already
                await self._seat.command(AbortCommand(_named()))

    async def _ask(self, seat: HostSupervisor, asked: QuestionAsked, mode: Mode) -> None:
        """Ask for permission in the editor; refuses if the editor cannot ask or does not answer."""
        chosen = None
        if asked.choices and mode.asks:
            about = await self._stays.find(self._session)
            call = permission_call(asked, self._calls.get(asked.item), about)
            chosen = await self._answer(call, options_of(asked))
        answer, by = (
            (asked.refusal, AnswerSource.UNATTENDED)
            if chosen is None
            else (chosen, AnswerSource.PERSON)
        )
        with suppress(Failure):  # it was answered elsewhere, or the turn is over
            await seat.command(AnswerCommand(f"acp-{asked.question}", asked.question, answer, by))

    async def _is_agreed(self, closed: TurnClosed, mode: Mode) -> bool:
        """Ask for missing consent; return whether it was given."""
        failure = None if closed.failure is None else from_wire(closed.failure)
        if not isinstance(failure, ConsentRequired) or not mode.asks:
            return False
        item = f"consent-{closed.turn}"
        call = schema.ToolCallUpdate(tool_call_id=item, title=consent_title(failure))
        if await self._answer(call, CONSENT_OPTIONS) != AGREED:
            return False
        self._stays.agree(self._session, failure.provider)
        return True

    async def _answer(
        self, call: schema.ToolCallUpdate, options: Sequence[schema.PermissionOption]
    ) -> str | None:
        """The chosen option; None if it was cancelled, is unknown, or the editor cannot ask.

        An answer that makes no sense counts as none: the question would stay open without end.
        """
        try:
            with boundary("acp.permission"):
                response = await self._client.request_permission(self._session, call, list(options))
        except Failure:  # the editor cannot ask, or its answer cannot be read
            return None
        outcome = response.outcome
        chosen = outcome.option_id if isinstance(outcome, schema.AllowedOutcome) else None
        return chosen if chosen in {option.option_id for option in options} else None


async def tell(client: Client, session: str, updates: Updates, seen: SupervisionEvent) -> None:
    """Send updates for an event; crashes and reconnections as extension notifications."""
    for update in updates.of(seen):
        await client.session_update(session, update)
    match seen:
        case RecordReceived(_, AttemptStarted(attempt, _, reason)) if reason:
            news = {"sessionId": session, "attempt": attempt, "reason": reason}
            await client.ext_notification(CRASHED, news)
        case Reconnecting() | Unresponsive():
            state = type(seen).__name__.lower()
            await client.ext_notification(BACKEND, {"sessionId": session, "state": state})
        case _:
            pass


def _named() -> str:
    return f"acp-{secrets.token_hex(8)}"
