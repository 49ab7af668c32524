"""Start the host process of a session on the exec-server, and end what the session started.

The exec-server owns the host process, so the host outlives the client that wanted it. Starting a
host is idempotent per session: a second host finds the journal locked and exits. A start whose
outcome is unknown can therefore be repeated (`host.client`).
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.app.sessions import KeptSession, runnable
from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.local_server import ExecEndpoint, local_endpoint, read_stop_marker
from holdfast.exec import Client, operating
from holdfast.exec.model import Command
from holdfast.failures import Failure
from holdfast.host import WaitEnded
from holdfast.world import command_of, in_thread, sweep

_END_TIMEOUT_SECONDS: Final = 30.0  # for the exec-server to end the processes of a session


class HostStarter:
    """Starts the host of one session on behalf of one client.

    Raises LocalServerStopped after `holdfast stop --all`: a client from before the stop must not
    restart what the user has ended.
    """

    def __init__(self, session: KeptSession, server: ExecEndpoint) -> None:
        self._session, self._server = session, server

    @classmethod
    def of(cls, session: KeptSession, settings: Settings) -> HostStarter:
        """A starter on the local server, for a client that starts now."""
        return cls(session, local_endpoint(settings))

    async def __call__(self) -> WaitEnded:
        """Start a host; return a callable that waits until the host process exits.

        The host begins to listen shortly after this returns.
        """
        self._server.refuse_if_stopped()
        return await start_host(self._session, self._server)


async def start_host(session: KeptSession, server: ExecEndpoint) -> WaitEnded:
    """Start a host on a server; return a callable that waits until the host process exits."""
    argv = (sys.executable, "-P", "-m", "holdfast.cli.main", "host", runnable(session).id)
    command = Command(argv, cwd=session.project, env=environment(), keep=True)
    async with Client(server.dial_or_start) as client:
        process = await client.start(command, continue_if_started=True)
        exec_session = client.session_id
    assert exec_session is not None, "a client that started a process has a session"
    return partial(_wait_for_exit, server, exec_session, process.id)


async def _wait_for_exit(server: ExecEndpoint, exec_session: str, process: str) -> None:
    async with Client(server.dial).resume(exec_session) as client:
        for listed in await client.processes():
            if listed.process_id == process:
                await (await client.follow(listed)).wait()


async def end_processes(session: KeptSession, settings: Settings) -> tuple[str, ...]:
    """End every process that agents of a session have started; return the commands of survivors."""
    server = local_endpoint(settings)
    # The exec-server first: it also cancels starts that an earlier host requested and that are
    # still in progress. It may not run, or be of a version without this method.
    with suppress(Failure):
        await (await server.dial()).aclose()
        async with operating(server.dial, answer_longest=_END_TIMEOUT_SECONDS) as operator:
            await operator.end(session.id)
    # Then by the session mark in the environment: a server that is gone may have left processes.
    ended = await in_thread(partial(sweep, session.id))
    return tuple(f"{command_of(each.pid)} ({each.pid})" for each in ended.left)


def stopped_by(settings: Settings, since_ms: int) -> str:
    """The user who ran `holdfast stop --all` at or after `since_ms`, or an empty string."""
    marker = read_stop_marker(settings.state / "exec")
    return marker.user if marker is not None and marker.at_ms >= since_ms else ""
