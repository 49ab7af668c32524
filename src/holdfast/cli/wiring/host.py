"""Start the host of a session through the exec-server, so that it outlives its clients.

Starting a host is idempotent by its session: of two hosts the second finds the journal locked, and
ends. So a start whose outcome is unknown is repeated (`host.sitting`).
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.app.sessions import KeptSession, runnable
from holdfast.app.settings import Settings, environment
from holdfast.cli.declarations import Request
from holdfast.cli.wiring.local_server import Server, last_note, server_of
from holdfast.exec import Client, operating
from holdfast.exec.model import Command
from holdfast.failures import Failure
from holdfast.host import WaitEnded
from holdfast.world import command_of, in_thread, sweep


class HostStarter:
    """Starts the host of one session, for one client of it.

    Raises LocalServerStopped once everything here was ended on purpose since the client came:
    what was stopped is not started again by those who were there.
    """

    def __init__(self, session: KeptSession, server: Server) -> None:
        self._session, self._server = session, server

    @classmethod
    def of(cls, session: KeptSession, settings: Settings) -> HostStarter:
        """For a client that comes now."""
        return cls(session, server_of(Request(), settings))

    async def __call__(self) -> WaitEnded:
        """Start a host, which listens a moment later; return what waits for its end."""
        self._server.refuse_if_stopped()
        return await start_host(self._session, self._server)


async def start_host(session: KeptSession, server: Server) -> WaitEnded:
    """Start a host on a server; return what waits for its end."""
    argv = (sys.executable, "-P", "-m", "holdfast.cli.main", "host", runnable(session).id)
    command = Command(argv, cwd=session.project, env=environment(), keep=True)
    async with Client(server.dial_or_start) as client:
        process = await client.start(command, continue_if_started=True)
        held = client.session_id
    assert held is not None, "who has started something has a session"
    return partial(_ended, server, held, process.id)


async def _ended(server: Server, held: str, process: str) -> None:
    async with Client(server.dial).resume(held) as client:
        for listed in await client.processes():
            if listed.process_id == process:
                await (await client.follow(listed)).wait()


# End every process that a session has started, whoever is there to see it.

_ANSWER_LONGEST: Final = 30.0  # seconds that the exec-server has to end its part


async def end_processes(session: KeptSession, settings: Settings) -> tuple[str, ...]:
    """End all that agents of a session have started; return the commands of what is left.

    First at the exec-server: it ends starts, too, that an earlier host asked for and that are still
    under way. Then by mark, for what a server that is gone has started.
    """
    server = server_of(Request(), settings)
    with suppress(Failure):  # there is no server, or one of an earlier version
        await (await server.dial()).aclose()
        async with operating(server.dial, answer_longest=_ANSWER_LONGEST) as operator:
            await operator.end(session.id)
    ended = await in_thread(partial(sweep, session.id))
    return tuple(f"{command_of(each.pid)} ({each.pid})" for each in ended.left)


def stopped_by(settings: Settings, since_ms: int) -> str:
    """Who has ended everything of this home at this time or later, if anybody has."""
    note = last_note(settings.state / "exec")
    return note.user if note is not None and note.at_ms >= since_ms else ""
