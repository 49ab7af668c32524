"""Start the host of a session through the plane, so that it outlives whoever wants it."""

from __future__ import annotations

import sys
from functools import partial

from holdfast.app.sessions import KeptSession, runnable
from holdfast.app.settings import Settings, environment
from holdfast.cli.commands import Request
from holdfast.cli.exec_dial import Server, server_of
from holdfast.exec import Client
from holdfast.exec.model import Command
from holdfast.host import Ended


async def start_host(session: KeptSession, settings: Settings) -> Ended:
    """Start a host, which listens a moment later; return what waits for its end."""
    argv = (sys.executable, "-P", "-m", "holdfast.cli.main", "host", runnable(session).id)
    command = Command(argv, cwd=session.project, env=environment())
    server = server_of(Request(), settings)
    async with Client(server.dial_or_start) as client:
        process = await client.start(command)
        held = client.session_id
    assert held is not None, "who has started something has a session"
    return partial(_ended, server, held, process.id)


async def _ended(server: Server, held: str, process: str) -> None:
    async with Client(server.dial).resume(held) as client:
        for listed in await client.processes():
            if listed.process_id == process:
                await (await client.follow(listed)).wait()
