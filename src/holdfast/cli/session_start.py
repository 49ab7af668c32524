"""Start the host of a session through the plane, so that it outlives whoever wants it."""

from __future__ import annotations

import sys

from holdfast.app.sessions import KeptSession, runnable
from holdfast.app.settings import Settings, environment
from holdfast.cli.commands import Request
from holdfast.cli.exec_dial import server_of
from holdfast.exec import Client
from holdfast.exec.model import Command


async def start_host(session: KeptSession, settings: Settings) -> None:
    """Start a host on the local server; it listens a moment later."""
    argv = (sys.executable, "-P", "-m", "holdfast.cli.main", "host", runnable(session).id)
    command = Command(argv, cwd=session.project, env=environment())
    async with Client(server_of(Request(), settings).dial_or_start) as client:
        await client.start(command)
