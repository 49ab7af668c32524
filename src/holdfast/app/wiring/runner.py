"""Create the runner of a session, with its processes in the place of the draft."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import runners
from holdfast.app.sessions import RUNNERS, KeptSession
from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.consent import ConsentCheckedRunner, require_provider_consent
from holdfast.app.wiring.editor import servers_file
from holdfast.app.wiring.local_server import local_endpoint
from holdfast.app.wiring.tokens import draft_endpoint
from holdfast.exec import Client
from holdfast.failures import Failure
from holdfast.runners import Runner, RunnerEnvironment
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench, enter_draft

if TYPE_CHECKING:
    from holdfast.agent import CrashHistory, McpServerConfig


class RunnerFactory:
    """Creates the runner of one session.

    The crash count of the native agent lives here, because it must outlast each single runner.
    """

    def __init__(self, session: KeptSession, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._crashes: CrashHistory | None = None

    @asynccontextmanager
    async def create(self) -> AsyncGenerator[Runner]:
        """The runner of the session, connected to the exec-server until the block ends."""
        async with self._stage() as (stage, bench):
            yield self._runner(stage, bench)

    async def fork_codex_thread(self, thread: str) -> str:
        """Have Codex fork a thread; return the id of the new one."""
        async with self._stage() as (stage, bench):
            require_provider_consent(bench, runners.CodexRunner.name)
            return await runners.CodexRunner(stage, self._settings.codex).fork(thread)

    @asynccontextmanager
    async def _stage(self) -> AsyncGenerator[tuple[RunnerEnvironment, Workbench]]:
        session = self._session
        bench = Workbench.at(Path(session.project), self._settings.state)
        server = local_endpoint(self._settings)
        with enter_draft(bench, session.draft) as entered:
            place, root = entered.view.place, str(entered.directory)
            if place is not None and place.holder is not None:
                # The agent's token is valid in this place only, not elsewhere on the server.
                server = await draft_endpoint(server, Path(place.holder.directory))
        async with Client(server.dial_or_start, label=session.id) as client:
            yield RunnerEnvironment(client, root, environment(), _scratch(), session.id), bench

    def _runner(self, stage: RunnerEnvironment, bench: Workbench) -> Runner:
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
                return ConsentCheckedRunner(runners.RedactingRunner(codex, hidden), bench)
            case "native":
                # Only here: other runners must not pay for loading the native agent.
                from holdfast.agent import CrashHistory
                from holdfast.app.wiring.native_agent import native_runner

                self._crashes = self._crashes or CrashHistory()
                return native_runner(session, stage, bench, settings, self._crashes)
            case other:
                raise RunnerUnknown(runner=other, known=", ".join(RUNNERS))


def _servers(session: KeptSession, settings: Settings) -> tuple[McpServerConfig, ...]:
    """The MCP servers that an editor gave for the session, and that its user agreed to."""
    from holdfast.app.wiring.keys import own_text

    file = servers_file(settings, session.id)
    if not (given := own_text(file)):
        return ()
    from holdfast.agent import editor_servers

    return editor_servers(str(file), given)


def _keys(settings: Settings) -> tuple[str, ...]:
    """Keys to redact from a foreign agent's events; none if our configuration is unreadable."""
    from holdfast.app.wiring.keys import known_keys

    try:
        return known_keys(settings)
    except Failure:
        return ()


def _scratch() -> str:
    """A directory for temporary files that does not contain a home directory."""
    return "/var/tmp" if os.path.isdir("/var/tmp") else "/tmp"
