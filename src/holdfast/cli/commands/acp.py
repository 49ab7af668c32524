"""`holdfast acp`: serve an editor over standard input and output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from holdfast.acp.model import EditorServer, EditorState, Opened, server_content
from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings, environment
from holdfast.app.trust import Trust
from holdfast.app.wiring.agent_choice import found_agents
from holdfast.app.wiring.consent import record_consent
from holdfast.app.wiring.editor import read_state, write_servers, write_state
from holdfast.app.wiring.host import HostStarter
from holdfast.cli.commands.agent_choice import with_agent
from holdfast.cli.commands.session_start import new_session
from holdfast.cli.declarations import Request
from holdfast.cli.failures import EditorSupportMissing
from holdfast.cli.model import Outcome
from holdfast.cli.options import configured
from holdfast.failures import Failure
from holdfast.host import HostSupervisor, supervise_host
from holdfast.workbench import Workbench, reopen_draft
from holdfast.workbench.model import DraftMode
from holdfast.world import SystemClock, in_thread


def acp(request: Request, settings: Settings) -> Outcome:
    """Serve the editor until it closes standard input."""
    try:
        from holdfast.acp import serve_editor
    except ImportError as error:
        raise EditorSupportMissing from error
    anyio.run(serve_editor, _EditorSessions(request, settings))
    return Outcome()


class _EditorSessions:
    """The sessions of this user, as the ACP server needs them."""

    def __init__(self, request: Request, settings: Settings) -> None:
        self._request, self._settings = request, settings
        self._sessions = Sessions(settings)
        self._roots: dict[str, str] = {}  # where agents see their projects, if elsewhere

    async def begin(self, project: str) -> Opened:
        """Begin a session about a project; consent is asked for when something needs it."""
        given = (*self._request.given, ("--project", project))
        request = self._request._replace(given=given, is_json=True)

        def begun() -> KeptSession:
            meant = with_agent(configured(request, self._settings), self._settings, can_ask=False)
            return new_session("", meant, self._settings, asks_later=True)

        return await self._known(await in_thread(begun))  # a large project may have to be copied

    async def find(self, session: str) -> Opened:
        """The session of this id."""
        return await self._known(self._sessions.find(session))

    async def fork(self, session: str) -> Opened:
        """Fork a session; raises SessionForkBusy while a turn runs."""
        from holdfast.cli.commands.fork import fork_in_thread

        return await self._known(await fork_in_thread(self._sessions.find(session), self._settings))

    def agree(self, session: str, provider: str) -> None:
        """Record consent for a provider to see the project of a session."""
        project = Path(self._sessions.find(session).project)
        record_consent(Workbench.at(project, self._settings.state), provider, is_given=True)

    def all(self) -> Sequence[Opened]:
        """Every session, the newest first."""
        return [_opened(each) for each in self._sessions.all()]

    def state(self, session: str) -> EditorState:
        """The options that an editor has set for a session."""
        return read_state(self._settings, self._sessions.find(session))

    def keep(self, session: str, state: EditorState) -> None:
        """Store the options that an editor has set for a session."""
        write_state(self._settings, self._sessions.find(session), state)

    def is_trusted(self, server: EditorServer) -> bool:
        """Whether the person agreed to exactly this server."""
        return Trust(self._settings.state).holds(_place(server), server_content(server))

    def trust(self, server: EditorServer) -> None:
        """Keep that the person agreed to exactly this server."""
        Trust(self._settings.state).give(_place(server), server_content(server), SystemClock())

    def connect(self, session: str, servers: tuple[EditorServer, ...]) -> None:
        """Replace the MCP servers that an editor has given a session."""
        write_servers(self._settings, self._sessions.find(session).id, servers)

    async def run(self, session: str, argv: Sequence[str]) -> str:
        """Run a command of ours about the project of a session; return what it printed."""
        words = (sys.executable, "-P", "-m", "holdfast.cli.main", *argv)
        done = await anyio.run_process(
            words,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=self._sessions.find(session).project,
            env=environment() | {"NO_COLOR": "1"},
            check=False,
        )
        return done.stdout.decode(errors="replace").strip() or "Done."

    def seat(self, session: str, *, after: int) -> AbstractAsyncContextManager[HostSupervisor]:
        """Attach to the host of a session, after the record numbered `after`."""
        kept = self._sessions.find(session)
        start = HostStarter.of(kept, self._settings)
        return supervise_host(self._sessions.socket(kept), start, after=after)

    def last(self, session: str) -> int:
        """The number of the last record that is written down of a session."""
        return self._sessions.last(self._sessions.find(session))

    async def _known(self, session: KeptSession) -> Opened:
        if session.id not in self._roots:
            with suppress(Failure):  # without a draft the agent works in the project itself
                looked_for = partial(_root, session, self._settings)
                self._roots[session.id] = await in_thread(
                    looked_for
                )  # waits for the lock of the workbench
        is_native = session.runner == "native"
        return _opened(session)._replace(
            root=self._roots.get(session.id, ""),
            models=await _models(session, self._settings) if is_native else (),
            takes_servers=session.runner in {"native", "codex"},
        )


def _root(session: KeptSession, settings: Settings) -> str:
    """Where the agent of a session sees the project; empty if that is where it is."""
    bench = Workbench.at(Path(session.project), settings.state)
    reopen_draft(bench, session.draft)
    with bench.locked() as (handle, _):
        draft = handle.drafts.find(session.draft)
        return "" if draft.mode is DraftMode.OVERLAY else str(handle.drafts.copy_of(draft))


def _opened(session: KeptSession) -> Opened:
    at = datetime.fromtimestamp(session.at_ms / 1000, UTC).isoformat()
    return Opened(session.id, session.project, session.title, at, draft=session.draft)


def _place(server: EditorServer) -> Path:
    """Under what a server's content is trusted: an editor has no file that we could name."""
    return Path("editor-mcp-server") / server.name


async def _models(session: KeptSession, settings: Settings) -> tuple[str, ...]:
    """The model of a session first, then one of each provider that there is a key for."""
    agents = await found_agents(settings)
    found = [each.model for each in agents if each.model and not each.needs_model]
    return tuple(dict.fromkeys(each for each in (session.options.get("model"), *found) if each))
