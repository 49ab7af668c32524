"""Be an agent for editors, by the Agent Client Protocol: any runner, and nothing is lost.

An editor leads a session as a terminal does. What it is told of a turn is what the journal keeps;
what the protocol has no word for goes under `_holdfast/`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Protocol  # Any: what is announced to the SDK

import acp
from acp import schema
from acp.interfaces import Client

from holdfast import __version__
from holdfast.failures import Failure, boundary, from_wire, to_wire
from holdfast.host import Kept, Reconnecting, Seat, Seen, Unresponsive
from holdfast.host.model import Abort, Answer, Begun, Happened, Prompt, Prompted, TurnClosed, Who
from holdfast.runners.model import Asked, Ending
from holdfast.terminal.model import MODES, Mode, Opened
from holdfast.terminal.updates import (
    AGREED,
    CONSENT_OPTIONS,
    Updates,
    consent_title,
    options_of,
)
from holdfast.workbench.failures import ConsentRequired
from holdfast.world import companions

CRASHED: Final = "holdfast/agent_crashed"  # news: reason, attempt
BACKEND: Final = "holdfast/backend"  # news: reconnecting, or unresponsive
PING: Final = "holdfast/ping"


class Stays(Protocol):
    """Where sessions are kept, begun and reached."""

    def begin(self, project: str) -> Opened:
        """Begin a session about a project; raises what is in the way of that."""
        ...

    def find(self, session: str) -> Opened:
        """The session of this id."""
        ...

    def all(self) -> Sequence[Opened]:
        """Every session, the newest first."""
        ...

    async def fork(self, session: str) -> Opened:
        """A new session that knows all that was said in one, which has to be at rest."""
        ...

    def agree(self, session: str, provider: str) -> None:
        """Keep that a provider may see the project of a session, from now on."""
        ...

    def seat(self, session: str, *, after: int) -> AbstractAsyncContextManager[Seat]:
        """Sit at a session, from the record that follows `after` on."""
        ...

    def last(self, session: str) -> int:
        """The number of the last record that is written down of a session."""
        ...


class EditorAgent:
    """Answers an editor; several sessions at once, and of each one turn at a time."""

    def __init__(self, stays: Stays) -> None:
        self._stays = stays
        self._seats: dict[str, Seat] = {}  # where a turn runs
        self._modes: dict[str, Mode] = {}  # that were chosen here
        self._client: Client

    def on_connect(self, conn: Client) -> None:
        """Take whom we talk with."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_: object) -> acp.InitializeResponse:
        """Say what we can do."""
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            agent_info=schema.Implementation(
                name="holdfast", title="Holdfast", version=__version__
            ),
        )

    async def new_session(self, cwd: str, **_: object) -> acp.NewSessionResponse:
        """Begin a session, in a draft of its own."""
        with _told():
            begun = self._stays.begin(cwd)
        return acp.NewSessionResponse(session_id=begun.id, modes=self._mode_state(begun.id))

    async def load_session(self, cwd: str, session_id: str, **_: object) -> acp.LoadSessionResponse:  # noqa: ARG002  # a session knows its project
        """Tell all that was said in a session, and go on with it."""
        with _told():
            until = self._stays.last(session_id)
            updates = Updates(self._stays.find(session_id), is_replayed=True)
            async with self._stays.seat(session_id, after=0) as seat:
                seen = 0
                while seen < until:
                    for each in await seat.receive():
                        seen = each.seq if isinstance(each, Kept) else seen
                        await self._update(session_id, updates, each)
        return acp.LoadSessionResponse(modes=self._mode_state(session_id))

    async def resume_session(self, session_id: str, **_: object) -> schema.ResumeSessionResponse:
        """Go on with a session without being told again what was said."""
        with _told():
            self._stays.find(session_id)
        return schema.ResumeSessionResponse(modes=self._mode_state(session_id))

    async def fork_session(
        self,
        cwd: str,  # noqa: ARG002  # a session knows its project
        session_id: str,
        **_: object,
    ) -> schema.ForkSessionResponse:
        """Begin a session that goes on from where another one is, in a draft of its own."""
        with _told():
            made = await self._stays.fork(session_id)
        if session_id in self._modes:
            self._modes[made.id] = self._modes[session_id]
        return schema.ForkSessionResponse(session_id=made.id, modes=self._mode_state(made.id))

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: object
    ) -> schema.SetSessionModeResponse:
        """Have turns taken in another way from now on, as long as this editor stays."""
        chosen = next((mode for mode in MODES if mode.id == mode_id), None)
        if chosen is None:
            raise acp.RequestError.invalid_params({"modeId": mode_id})
        with _told():
            self._modes[self._stays.find(session_id).id] = chosen
        return schema.SetSessionModeResponse()

    async def list_sessions(
        self, cwd: str | None = None, **_: object
    ) -> schema.ListSessionsResponse:
        """Say which sessions there are, about a project or all."""
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(session_id=e.id, cwd=e.project, title=e.title, updated_at=e.at)
                for e in self._stays.all()
                if cwd in (None, e.project)
            ]
        )

    async def close_session(self, session_id: str, **_: object) -> schema.CloseSessionResponse:
        """End the turn that runs, if one does; the session stays."""
        await self.cancel(session_id)
        return schema.CloseSessionResponse()

    async def prompt(
        self, session_id: str, prompt: Sequence[object], **_: object
    ) -> acp.PromptResponse:
        """Have a turn taken, tell what happens, and say how it ended."""
        with _told():
            closed = await self._turn(session_id, _text(prompt))
            if await self._is_agreed(session_id, closed):
                closed = await self._turn(session_id, _text(prompt))
            if closed.failure is not None:
                raise from_wire(closed.failure)
        is_cancelled = closed.ending is Ending.INTERRUPTED
        return acp.PromptResponse(stop_reason="cancelled" if is_cancelled else "end_turn")

    async def cancel(self, session_id: str, **_: object) -> None:
        """End the turn that runs."""
        seat = self._seats.get(session_id)
        if seat is not None:
            with suppress(Failure):  # it is over already
                await seat.command(Abort(f"acp-{secrets.token_hex(8)}"))

    async def ext_method(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Answer a ping; nothing else is understood."""
        if method == PING:
            return {"sessions": sorted(self._seats), **params}
        raise acp.RequestError.method_not_found(method)

    async def _turn(self, session: str, text: str) -> TurnClosed:
        command = f"acp-{secrets.token_hex(8)}"
        async with self._seated(session) as seat:
            mode = self._modes.get(session, MODES[0])
            await seat.command(Prompt(command, text, is_in_place=mode.is_in_place))
            return await self._attend(session, seat, command)

    async def _attend(self, session: str, seat: Seat, command: str) -> TurnClosed:
        """Tell everything of one turn, and ask what it asks."""
        updates, turn = Updates(self._stays.find(session)), -1
        async with companions() as tasks:
            while True:
                for each in await seat.receive():
                    await self._update(session, updates, each)
                    match each:
                        case Kept(_, Prompted(given, number)) if given == command:
                            turn = number
                        case Kept(_, Happened(event=Asked() as asked)):
                            tasks.start_soon(self._ask, session, seat, asked)
                        case Kept(_, TurnClosed() as closed) if closed.turn == turn:
                            return closed
                        case _:
                            pass
        raise AssertionError("a seat never ends by itself")

    async def _update(self, session: str, updates: Updates, seen: Seen) -> None:
        for update in updates.of(seen):
            await self._client.session_update(session, update)
        match seen:
            case Kept(_, Begun(attempt, _, reason)) if reason:
                news = {"sessionId": session, "attempt": attempt, "reason": reason}
                await self._client.ext_notification(CRASHED, news)
            case Reconnecting() | Unresponsive():
                state = type(seen).__name__.lower()
                await self._client.ext_notification(BACKEND, {"sessionId": session, "state": state})
            case _:
                pass

    async def _ask(self, session: str, seat: Seat, asked: Asked) -> None:
        """Ask the person in the editor; nobody, or an editor that cannot ask, refuses."""
        answer, mode = asked.refusal, self._modes.get(session, MODES[0])
        if asked.choices and mode.asks:
            call = schema.ToolCallUpdate(
                tool_call_id=asked.item or asked.question, title=asked.title
            )
            response = await self._client.request_permission(session, call, options_of(asked))
            if isinstance(response.outcome, schema.AllowedOutcome):
                answer = response.outcome.option_id
        with suppress(Failure):  # it was answered elsewhere, or the turn is over
            by = Who.PERSON if mode.asks else Who.UNATTENDED
            await seat.command(Answer(f"acp-{asked.question}", asked.question, answer, by))

    def _mode_state(self, session: str) -> schema.SessionModeState:
        return schema.SessionModeState(
            current_mode_id=self._modes.get(session, MODES[0]).id,
            available_modes=[
                schema.SessionMode(id=each.id, name=each.name, description=each.meaning)
                for each in MODES
            ],
        )

    async def _is_agreed(self, session: str, closed: TurnClosed) -> bool:
        """Ask for the consent that a turn has ended without; say whether there is one now."""
        failure = None if closed.failure is None else from_wire(closed.failure)
        is_asked = self._modes.get(session, MODES[0]).asks
        if not isinstance(failure, ConsentRequired) or not is_asked:
            return False
        call = schema.ToolCallUpdate(
            tool_call_id=f"consent-{closed.turn}", title=consent_title(failure)
        )
        response = await self._client.request_permission(session, call, CONSENT_OPTIONS)
        outcome = response.outcome
        if not isinstance(outcome, schema.AllowedOutcome) or outcome.option_id != AGREED:
            return False
        self._stays.agree(session, failure.provider)
        return True

    @asynccontextmanager
    async def _seated(self, session: str) -> AsyncGenerator[Seat]:
        async with self._stays.seat(session, after=self._stays.last(session)) as seat:
            self._seats[session] = seat
            try:
                yield seat
            finally:
                del self._seats[session]


@contextmanager
def _told() -> Generator[None]:
    """Tell an editor a failure as an error of the protocol, with all that is known of it."""
    try:
        yield
    except Failure as failure:
        raise acp.RequestError(-32000, failure.user_message, to_wire(failure)) from failure


def _text(prompt: Sequence[object]) -> str:
    """The words of a prompt; what an editor attaches is named."""
    parts: list[str] = []
    for block in prompt:
        match block:
            case schema.TextContentBlock(text=text):
                parts.append(text)
            case schema.ResourceContentBlock(uri=uri):
                parts.append(f"@{uri}")
            case schema.EmbeddedResourceContentBlock(resource=resource):
                parts.append(f"@{resource.uri}\n{getattr(resource, 'text', '')}")
            case _:
                parts.append(f"({type(block).__name__} was left out)")
    return "\n".join(parts)


async def serve_editor(stays: Stays) -> None:
    """Answer the editor at the other end of standard input and output until it leaves."""
    with boundary("acp"):
        agent: Any = EditorAgent(stays)  # Any: it has those methods only that it announces
        await acp.run_agent(agent, use_unstable_protocol=True)  # to fork is one of these
