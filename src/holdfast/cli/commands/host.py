"""`holdfast host`: run the host of a session in this process; started by other commands."""

from __future__ import annotations

import anyio

from holdfast.app.sessions import Sessions
from holdfast.app.settings import Settings
from holdfast.app.wiring.host_process import host_session
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome


def host(request: Request, settings: Settings) -> Outcome:
    """Serve a session until it is closed or idle without clients."""
    if request.argument is None:
        raise UsageWrong(problem="Missing SESSION", read_on="holdfast host --help")
    anyio.run(host_session, Sessions(settings).find(request.argument), settings)
    return Outcome()
