"""The Agent Client Protocol server: an editor drives sessions of any runner.

An editor is a client of the host, as a terminal is. Its updates are the records of the journal;
what the protocol has no word for goes under `_holdfast/`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final  # Any: what is announced to the SDK

import acp
import anyio
from acp import schema
from acp.interfaces import Client
from anyio.abc import TaskGroup

from holdfast import __version__
from holdfast.acp.model import EditorServer, Mode, Opened
from holdfast.acp.session import (
    ConfigOptions,
    chosen,
    command_in,
    commands_update,
    config_options,
    mode_of,
    mode_state,
    servers_of,
    servers_refused,
)
from holdfast.acp.stdio import has_stdio, watchable_stdio
from holdfast.acp.turn import EditorTurn, Stays, tell
from holdfast.acp.updates import Updates
from holdfast.failures import Failure, boundary, from_wire, to_wire
from holdfast.host import RecordReceived
from holdfast.runners.model import TurnEnding
from holdfast.world import background_tasks

PING: Final = "holdfast/ping"
_MOMENT: Final = 0.05  # seconds: clients drop news of a session whose id they do not know yet


class EditorAgent:
    """Handles requests of one editor: several sessions, one turn at a time in each."""

    def __init__(self, stays: Stays) -> None:
        self._stays = stays
        self._turns: dict[str, EditorTurn] = {}  # that were sent last, as long as they run
        self._servers: dict[str, tuple[EditorServer, ...]] = {}  # not connected yet
        self._tasks: TaskGroup | None = None
        self._client: Client

    def announce_with(self, tasks: TaskGroup) -> None:
        """Use this task group for notifications that follow a response."""
        self._tasks = tasks

    def on_connect(self, conn: Client) -> None:
        """Store the connection to the editor."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_: object) -> acp.InitializeResponse:
        """Handle initialize: return capabilities."""
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
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

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_: object
    ) -> acp.NewSessionResponse:
        """Handle session/new: begin a session in a draft of its own."""
        with _told():
            about = await self._stays.begin(cwd)
        return acp.NewSessionResponse(
            session_id=about.id, **self._opened(about, mcp_servers).__dict__
        )

    async def load_session(
        self,
        cwd: str,  # noqa: ARG002  # a session knows its project
        session_id: str,
        mcp_servers: Sequence[object] | None = None,
        **_: object,
    ) -> acp.LoadSessionResponse:
        """Handle session/load: replay the conversation as updates, then continue."""
        with _told():
            until = self._stays.last(session_id)
            about = await self._stays.find(session_id)
            updates = Updates(about, is_replayed=True)
            async with self._stays.seat(session_id, after=0) as seat:
                seen = 0
                while seen < until:
                    for each in await seat.receive():
                        seen = each.seq if isinstance(each, RecordReceived) else seen
                        await tell(self._client, session_id, updates, each)
        return acp.LoadSessionResponse(**self._opened(about, mcp_servers).__dict__)

    async def resume_session(
        self, session_id: str, mcp_servers: Sequence[object] | None = None, **_: object
    ) -> schema.ResumeSessionResponse:
        """Resume a session without replaying its conversation."""
        with _told():
            about = await self._stays.find(session_id)
        return schema.ResumeSessionResponse(**self._opened(about, mcp_servers).__dict__)

    async def fork_session(
        self,
        cwd: str,  # noqa: ARG002  # a session knows its project
        session_id: str,
        mcp_servers: Sequence[object] | None = None,
        **_: object,
    ) -> schema.ForkSessionResponse:
        """Fork a session, with a draft of its own."""
        with _told():
            made = await self._stays.fork(session_id)
            self._stays.keep(made.id, self._stays.state(session_id))
        return schema.ForkSessionResponse(
            session_id=made.id, **self._opened(made, mcp_servers).__dict__
        )

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: object
    ) -> schema.SetSessionModeResponse:
        """Handle session/set_mode."""
        await self.set_config_option("mode", session_id, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: object
    ) -> schema.SetSessionConfigOptionResponse:
        """Set a mode, a model or an effort for the next turns; stored with the session."""
        with _told():
            about = await self._stays.find(session_id)
            state = chosen(about, self._stays.state(about.id), config_id, value)
            if state is None:
                wrong = {"configId": config_id, "value": value}
                raise acp.RequestError.invalid_params(wrong)
            self._stays.keep(about.id, state)
        options = config_options(about, state)
        return schema.SetSessionConfigOptionResponse(config_options=options)

    async def list_sessions(
        self, cwd: str | None = None, **_: object
    ) -> schema.ListSessionsResponse:
        """List sessions, of one project or all."""
        with _told():
            found = [each for each in self._stays.all() if cwd in (None, each.project)]
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(session_id=e.id, cwd=e.project, title=e.title, updated_at=e.at)
                for e in found
            ]
        )

    async def close_session(self, session_id: str, **_: object) -> schema.CloseSessionResponse:
        """Handle session/close: interrupt the running turn; the session is kept."""
        await self.cancel(session_id)
        return schema.CloseSessionResponse()

    async def prompt(
        self, session_id: str, prompt: Sequence[object], **_: object
    ) -> acp.PromptResponse:
        """Handle session/prompt: run a turn, stream updates, return the stop reason."""
        with _told(), self._begun(session_id) as turn:
            text, about = _text(prompt), await self._stays.find(session_id)
            command = command_in(text, about)
            if command is not None and command[1]:
                said = await self._stays.run(session_id, command[1])
                await self._client.session_update(session_id, acp.update_agent_message_text(said))
                return acp.PromptResponse(stop_reason="end_turn")
            text = text if command is None else ""  # without words: to make room
            servers = self._servers.pop(session_id, None)
            if servers and not about.takes_servers:
                await self._client.session_update(session_id, servers_refused(servers))
                servers = None
            closed = await turn.take(text, partial(self._mode, session_id), servers)
            if closed.failure is not None:
                raise from_wire(closed.failure)
        is_cancelled = closed.ending is TurnEnding.INTERRUPTED
        return acp.PromptResponse(stop_reason="cancelled" if is_cancelled else "end_turn")

    async def cancel(self, session_id: str, **_: object) -> None:
        """Handle session/cancel: interrupt the turn, also if it waits to begin."""
        turn = self._turns.get(session_id)
        if turn is not None:
            await turn.cancel()

    async def ext_method(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Handle extension methods: ping only."""
        if method == PING:
            return {"sessions": sorted(self._turns), **params}
        raise acp.RequestError.method_not_found(method)

    def _opened(self, about: Opened, servers: Sequence[object] | None) -> _Options:
        """The state of an opened session; available commands follow the response."""
        if servers is not None:
            self._servers[about.id] = servers_of(servers)
        if self._tasks is not None:
            self._tasks.start_soon(self._announce, about.id)
        state = self._stays.state(about.id)
        return _Options(mode_state(state), config_options(about, state))

    async def _announce(self, session: str) -> None:
        """Send the available commands after a delay, once the editor knows the session's id."""
        await anyio.sleep(_MOMENT)
        await self._client.session_update(session, commands_update())

    def _mode(self, session: str) -> Mode:
        return mode_of(self._stays.state(session))

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


@dataclass(frozen=True)
class _Options:
    """Modes and options of a session, for responses that open it."""

    modes: schema.SessionModeState
    config_options: ConfigOptions


@contextmanager
def _told() -> Generator[None]:
    """Raise a failure as a JSON-RPC error with its wire form as data."""
    try:
        yield
    except Failure as failure:
        raise acp.RequestError(-32000, failure.user_message, to_wire(failure)) from failure


def _text(prompt: Sequence[object]) -> str:
    """The text of a prompt; attachments are named."""
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
    """Serve the editor on standard input and output until EOF."""
    if not has_stdio():
        return  # closed before the start: that is the end of the input, too
    with boundary("acp"):
        agent: Any = EditorAgent(stays)  # Any: it has those methods only that it announces
        async with watchable_stdio(), background_tasks() as tasks:
            agent.announce_with(tasks)
            await acp.run_agent(agent, use_unstable_protocol=True)  # to fork is one of these
