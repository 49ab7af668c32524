"""Be an agent for editors, by the Agent Client Protocol: any runner, and nothing is lost.

An editor leads a session as a terminal does. What it is told of a turn is what the journal keeps;
what the protocol has no word for goes under `_holdfast/`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final  # Any: what is announced to the SDK

import acp
from acp import schema
from acp.interfaces import Client

from holdfast import __version__
from holdfast.failures import Failure, boundary, from_wire, to_wire
from holdfast.host import Kept
from holdfast.runners.model import Ending
from holdfast.terminal.editor_turn import EditorTurn, Stays, tell
from holdfast.terminal.model import MODES, Mode
from holdfast.terminal.updates import Updates

PING: Final = "holdfast/ping"


class EditorAgent:
    """Answers an editor; several sessions at once, and of each one turn at a time."""

    def __init__(self, stays: Stays) -> None:
        self._stays = stays
        self._turns: dict[str, EditorTurn] = {}  # that were sent last, as long as they run
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
            begun = await self._stays.begin(cwd)
        return acp.NewSessionResponse(session_id=begun.id, modes=self._mode_state(begun.id))

    async def load_session(self, cwd: str, session_id: str, **_: object) -> acp.LoadSessionResponse:  # noqa: ARG002  # a session knows its project
        """Tell all that was said in a session, and go on with it."""
        with _told():
            until = self._stays.last(session_id)
            updates = Updates(await self._stays.find(session_id), is_replayed=True)
            async with self._stays.seat(session_id, after=0) as seat:
                seen = 0
                while seen < until:
                    for each in await seat.receive():
                        seen = each.seq if isinstance(each, Kept) else seen
                        await tell(self._client, session_id, updates, each)
        return acp.LoadSessionResponse(modes=self._mode_state(session_id))

    async def resume_session(self, session_id: str, **_: object) -> schema.ResumeSessionResponse:
        """Go on with a session without being told again what was said."""
        with _told():
            await self._stays.find(session_id)
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
            self._modes[(await self._stays.find(session_id)).id] = chosen
        return schema.SetSessionModeResponse()

    async def list_sessions(
        self, cwd: str | None = None, **_: object
    ) -> schema.ListSessionsResponse:
        """Say which sessions there are, about a project or all."""
        with _told():
            found = [each for each in self._stays.all() if cwd in (None, each.project)]
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(session_id=e.id, cwd=e.project, title=e.title, updated_at=e.at)
                for e in found
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
        with _told(), self._begun(session_id) as turn:
            closed = await turn.take(_text(prompt), partial(self._mode, session_id))
            if closed.failure is not None:
                raise from_wire(closed.failure)
        is_cancelled = closed.ending is Ending.INTERRUPTED
        return acp.PromptResponse(stop_reason="cancelled" if is_cancelled else "end_turn")

    async def cancel(self, session_id: str, **_: object) -> None:
        """End the turn that runs, also if it has not begun yet."""
        turn = self._turns.get(session_id)
        if turn is not None:
            await turn.cancel()

    async def ext_method(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Answer a ping; nothing else is understood."""
        if method == PING:
            return {"sessions": sorted(self._turns), **params}
        raise acp.RequestError.method_not_found(method)

    def _mode_state(self, session: str) -> schema.SessionModeState:
        return schema.SessionModeState(
            current_mode_id=self._mode(session).id,
            available_modes=[
                schema.SessionMode(id=each.id, name=each.name, description=each.meaning)
                for each in MODES
            ],
        )

    def _mode(self, session: str) -> Mode:
        return self._modes.get(session, MODES[0])

    @contextmanager
    def _begun(self, session: str) -> Generator[EditorTurn]:
        before = self._turns.get(session)
        turn = self._turns[session] = EditorTurn(self._client, self._stays, session, before)
        try:
            yield turn
        finally:
            turn.end()
            if self._turns[session] is turn:
                del self._turns[session]


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
