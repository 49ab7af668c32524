"""Engage the runner of a session, with its processes in the draft's place."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import runners
from holdfast.app.sessions import RUNNERS, KeptSession
from holdfast.app.settings import Settings, environment
from holdfast.cli.declarations import Request
from holdfast.cli.wiring.consent import Agreed, require
from holdfast.cli.wiring.draft_token import guest_of
from holdfast.cli.wiring.editor_files import servers_file
from holdfast.cli.wiring.local_server import server_of
from holdfast.exec import Client
from holdfast.failures import Failure
from holdfast.runners import Runner, RunnerEnvironment
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench, enter_draft

if TYPE_CHECKING:
    from holdfast.agent import CrashHistory, McpServerConfig


class Engagement:
    """Whom a session is with; how often our own agent crashes is counted over all of it."""

    def __init__(self, session: KeptSession, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._crashes: CrashHistory | None = None

    @asynccontextmanager
    async def engaged(self) -> AsyncGenerator[Runner]:
        """The runner of the session, for the length of the block."""
        async with self._staged() as (stage, bench):
            yield self._chosen(stage, bench)

    async def forked(self, thread: str) -> str:
        """Have Codex keep what it knows of this session twice; return the new thread's name."""
        async with self._staged() as (stage, bench):
            require(bench, runners.CodexRunner.name)
            return await runners.CodexRunner(stage, self._settings.codex).fork(thread)

    @asynccontextmanager
    async def _staged(self) -> AsyncGenerator[tuple[RunnerEnvironment, Workbench]]:
        session = self._session
        bench = Workbench.at(Path(session.project), self._settings.state)
        server = server_of(Request(), self._settings)
        with enter_draft(bench, session.draft) as entered:
            place, root = entered.view.place, str(entered.directory)
            if place is not None and place.holder is not None:
                server = await guest_of(server, Path(place.holder.directory))
        async with Client(server.dial_or_start, label=session.id) as client:
            yield RunnerEnvironment(client, root, environment(), _scratch(), session.id), bench

    def _chosen(self, stage: RunnerEnvironment, bench: Workbench) -> Runner:
        """Only the one that is chosen is loaded, and all that it needs."""
        session, settings = self._session, self._settings
        match session.runner:
            case "rehearsal":
                script = session.options.get("scenario", runners.DEMO)
                return runners.Rehearsal(stage, Path(script))
            case "codex":
                model = session.options.get("model")
                servers = _servers(session, settings)
                codex = runners.CodexRunner(stage, settings.codex, model=model, servers=servers)
                hidden = (*_keys(settings), *runners.secrets_of(servers))
                return Agreed(runners.RedactingRunner(codex, hidden), bench)
            case "native":
                from holdfast.agent import CrashHistory
                from holdfast.cli.wiring.native_agent import native_runner

                self._crashes = self._crashes or CrashHistory()
                return native_runner(session, stage, bench, settings, self._crashes)
            case other:
                raise RunnerUnknown(runner=other, known=", ".join(RUNNERS))


def _servers(session: KeptSession, settings: Settings) -> tuple[McpServerConfig, ...]:
    """The MCP servers that an editor gave for the session, and that its user agreed to."""
    from holdfast.cli.wiring.keys import own_text

    file = servers_file(settings, session.id)
    if not (given := own_text(file)):
        return ()
    from holdfast.agent import editor_servers

    return editor_servers(str(file), given)


def _keys(settings: Settings) -> tuple[str, ...]:
    """What a foreign agent may not be heard to say; none if our own files are in disorder."""
    from holdfast.cli.wiring.keys import known_keys

    try:
        return known_keys(settings)
    except Failure:
        return ()


def _scratch() -> str:
    """A directory for temporary files that is no parent of anybody's home."""
    return "/var/tmp" if os.path.isdir("/var/tmp") else "/tmp"
