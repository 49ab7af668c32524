"""Serve processes, files and the web of this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio

from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.telemetry import open_telemetry
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, write
from holdfast.exec.server.ownership import SessionPolicy
from holdfast.exec.server.server import STDIO, serve
from holdfast.exec.server.server import ServerSettings as Serving
from holdfast.exec.server.tokens import token_in
from holdfast.exec.storage.retention_loop import BYTES_MAX
from holdfast.world import disk_failure, make_private

_LISTEN = "ws://127.0.0.1:0"
_HINT = "Clients need --token-file {path}\n"  # said once, where it was not chosen


def exec_server(request: Request, settings: Settings) -> Outcome:
    """Serve until told to end."""
    listen, state = request.value("--listen") or _LISTEN, request.value("--state")
    ttl, idle = request.value("--detached-ttl"), request.value("--idle-exit")
    retention = request.value("--retention")
    path = None if listen == STDIO else _token_path(request, settings)
    hint = "" if path is None or request.has("--token-file") else _HINT.format(path=path)
    telemetry = open_telemetry(settings)
    serving = Serving(
        listen=listen,
        token=None if path is None else token_in(path),
        state=None if state is None else Path(state).absolute(),
        policy=SessionPolicy(
            detached_ttl=SessionPolicy().detached_ttl if ttl is None else float(ttl),
            takeover=not request.has("--no-takeover"),
        ),
        retention_bytes_max=BYTES_MAX if retention is None else int(retention) * 2**20,
        names=tuple((request.value("--name") or "").split()),
        idle_exit=None if idle is None else float(idle),
        may_rest=True,
        environment=environment(),
        telemetry=telemetry,
    )
    try:
        rest = anyio.run(
            serve, serving, partial(_announce, hint), backend_options={"use_uvloop": True}
        )
    finally:
        telemetry.close()
    if rest is not None:
        rest.begin(serving.environment)
    return Outcome()


def _token_path(request: Request, settings: Settings) -> Path | None:
    """The file with the token that clients must show, if they must; its directory is there."""
    chosen, state = request.value("--token-file"), request.value("--state")
    if request.has("--no-token"):
        if chosen is not None:
            problem = "--token-file and --no-token exclude each other"
            raise UsageWrong(problem=problem, read_on="holdfast exec-server --help")
        return None
    path = Path(chosen or Path(state or settings.state / "exec") / "token")
    if chosen is None:
        try:
            make_private(path.parent)
        except OSError as error:
            raise disk_failure(error, path=str(path.parent)) from error
    return path


def _announce(hint: str, url: str) -> None:
    write(f"{url}\n")
    complain(hint)
