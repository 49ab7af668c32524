"""Serve processes, files and the web of this machine."""

from __future__ import annotations

from pathlib import Path

import anyio

from holdfast.app import wiring
from holdfast.app.settings import Settings, environment
from holdfast.cli.commands import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, write
from holdfast.exec.core.sessions import Policy
from holdfast.exec.server.serving import STDIO, serve
from holdfast.exec.server.serving import Settings as Serving
from holdfast.exec.server.token import token_in
from holdfast.world import disk_failure

_LISTEN = "ws://127.0.0.1:0"


def exec_server(request: Request, settings: Settings) -> Outcome:
    """Serve until told to end."""
    listen, state = request.value("--listen") or _LISTEN, request.value("--state")
    ttl = request.value("--detached-ttl")
    telemetry = wiring.telemetry(settings)
    serving = Serving(
        listen=listen,
        token=None if listen == STDIO else _token(request, settings),
        state=None if state is None else Path(state).absolute(),
        policy=Policy(
            detached_ttl=Policy().detached_ttl if ttl is None else float(ttl),
            takeover=not request.has("--no-takeover"),
        ),
        environment=environment(),
        telemetry=telemetry,
    )
    try:
        anyio.run(serve, serving, _announce, backend_options={"use_uvloop": True})
    finally:
        telemetry.close()
    return Outcome()


def _token(request: Request, settings: Settings) -> str | None:
    """The token that clients must show; where it is found is said where it was not chosen."""
    chosen, state = request.value("--token-file"), request.value("--state")
    if request.has("--no-token"):
        if chosen is not None:
            problem = "--token-file and --no-token exclude each other"
            raise UsageWrong(problem=problem, read_on="holdfast exec-server --help")
        return None
    path = Path(chosen or Path(state or settings.state / "exec") / "token")
    if chosen is None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise disk_failure(error, path=str(path.parent)) from error
    token = token_in(path)
    if chosen is None:
        complain(f"Clients are to be given --token-file {path}\n")
    return token


def _announce(url: str) -> None:
    write(f"{url}\n")
