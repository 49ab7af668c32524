"""Serve one connection: handshake, methods, notifications."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import anyio
import msgspec

from holdfast import __version__
from holdfast.exec.file_uri import uri_of
from holdfast.exec.protocol import (
    EnvironmentInfo,
    HttpTaken,
    InitializeParams,
    ServerCapabilities,
    ShellInfo,
    TakenParams,
)
from holdfast.exec.server.context import ConnectionContext, Handlers, plain
from holdfast.exec.server.error_replies import ErrorReplyTransport, exec_error
from holdfast.exec.server.http_loop import HttpClient
from holdfast.exec.server.launcher import ServerInfo
from holdfast.exec.server.methods.files import FileMethods
from holdfast.exec.server.methods.http import HttpMethods
from holdfast.exec.server.methods.operator import OperatorMethods
from holdfast.exec.server.methods.process import ProcessMethods
from holdfast.exec.server.model import ConfigParams, ConfigResult
from holdfast.exec.server.output_sender import OutputSender
from holdfast.exec.server.places import PLAIN, Bindings
from holdfast.exec.server.sessions import SessionRegistry
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.failures import Failure
from holdfast.rpc import Connection, ConnectionConfig, Handler, Service, Transport
from holdfast.rpc.model import Dialect, Notification
from holdfast.telemetry import Redactor, Telemetry, ValueRedactor

_SYSTEMS = {"darwin": "macos", "linux": "linux"}


def environment_info(environment: Mapping[str, str]) -> EnvironmentInfo:
    """Describe the machine, as clients of this protocol expect."""
    try:
        cwd = uri_of(os.getcwdb())
    except FileNotFoundError:
        # The working directory was removed since we started.
        cwd = None
    temporary = environment.get("TMPDIR") or "/tmp"
    return _described(environment.get("SHELL"), environment.get("HOME"), cwd, temporary)


@cache
def _described(
    shell: str | None, home: str | None, cwd: str | None, temporary: str
) -> EnvironmentInfo:
    """Cached: the same for all connections, each of which waits for it."""
    shell = shell or next(
        (each for each in ("/bin/bash", "/bin/sh") if os.access(each, os.X_OK)), "/bin/sh"
    )
    return EnvironmentInfo(
        shell=ShellInfo(name=Path(shell).name, path=shell),
        cwd=cwd,
        user_home_dir=None if home is None else uri_of(os.fsencode(home)),
        platform_os=_SYSTEMS.get(sys.platform, platform.system().lower()),
        temp_dir=uri_of(os.fsencode(temporary)),
        executor_version=__version__,
        capabilities=ServerCapabilities(
            close_stdin=True,
            resize=True,
            list=True,
            kill=True,
            first_retained_seq=True,
            operator=True,
            places=True,
            keep=True,
            end=True,
            forget=True,
        ),
    )


def configuration(environment: Mapping[str, str]) -> ConfigResult:
    """Report that this machine has no Codex configuration of its own."""
    home = environment.get("HOME")
    where = None if home is None else uri_of(os.fsencode(home))
    return ConfigResult(where, where, socket.gethostname())


# Long polls take a place each, and clients keep a thousand calls in flight.
_RUNNING_MAX = 2048
_WAITING_MAX = 4096
_read_taken = msgspec.json.Decoder(TakenParams).decode
_read_http_taken = msgspec.json.Decoder(HttpTaken).decode
# A failure may quote what it was given.
_clean = ValueRedactor(Redactor().text)


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What all connections of a server share; without bindings no token can be bound to a place."""

    sessions: SessionRegistry
    workers: WorkerThreads
    own: ServerInfo
    telemetry: Telemetry | None = None
    bindings: Bindings | None = None
    web: HttpClient = field(default_factory=HttpClient)


class ConnectionHandler:
    """Serves one connection.

    Requests run concurrently; only writes to one process keep their order. A connection that is
    bound to a place has no operator methods.
    """

    def __init__(
        self, number: int, transport: Transport, shared: ServerContext, place: str = PLAIN
    ) -> None:
        self._shared = shared
        self._transport = ErrorReplyTransport(transport)
        self._info = environment_info(shared.own.environment)
        sender = OutputSender(self._transport)
        self._context = ConnectionContext(number, shared.sessions, sender, self._info, place)
        self._files = FileMethods(self._context, shared.workers, shared.own)
        self._web: HttpMethods

    async def run(self) -> None:
        """Serve until the connection ends or loses its session, which lives on."""
        try:
            async with anyio.create_task_group() as tasks:
                environment = self._shared.own.environment
                client = self._shared.web
                self._web = HttpMethods(self._context, self._transport, tasks, environment, client)
                async with Connection(self._transport, self._config()) as connection:
                    connection.follow(self)
                    tasks.start_soon(self._context.sender.run)
                    tasks.start_soon(self._hang_up, connection)
                    await connection.wait_ended()
                tasks.cancel_scope.cancel()
        finally:
            self._context.leave()
            with anyio.CancelScope(shield=True):
                await self._files.close()

    def put(self, batch: Sequence[Notification], size: int) -> None:  # noqa: ARG002  # a follower's
        """Handle notifications of the client: handshake done, events acknowledged."""
        for notification in batch:
            # An invalid notification has no reply to carry an error, so it is ignored.
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                match notification.method:
                    case "initialized":
                        self._context.is_introduced = True
                    case "process/taken":
                        taken = _read_taken(notification.params)
                        self._context.sender.taken(taken.process_id, taken.seq)
                    case "http/request/taken":
                        self._web.taken(_read_http_taken(notification.params))
                    case _:
                        pass

    def end(self, failure: Failure) -> None:
        """Hear that nothing will follow."""

    async def _hang_up(self, connection: Connection) -> None:
        await self._context.evicted.wait()
        await connection.aclose()

    def _config(self) -> ConnectionConfig:
        handlers: Handlers = {
            "initialize": Handler(InitializeParams, self._context.initialize),
            "environment/status": plain(self._status),
            "environment/info": plain(self._environment_info),
            "environmentConfig/read": Handler(ConfigParams, self._configuration),
            **ProcessMethods(self._context).handlers(),
            **self._files.handlers(),
            **self._web.handlers(),
        }
        if self._context.place == PLAIN:
            operator = OperatorMethods(
                self._shared.sessions, self._shared.workers, self._shared.bindings
            )
            handlers |= operator.handlers()
        service = Service(
            handlers=handlers,
            running_max=_RUNNING_MAX,
            waiting_max=_WAITING_MAX,
            error_form=_error_form,
        )
        return ConnectionConfig(
            dialect=Dialect(), service=service, telemetry=self._shared.telemetry, peer="exec-client"
        )

    async def _status(self) -> dict[str, str]:
        """Report that there is a session."""
        await self._context.session("environment status")
        return {"status": "ready"}

    async def _environment_info(self) -> object:
        """Return the same as the reply to `initialize`."""
        await self._context.session("environment info")
        return self._info

    async def _configuration(self, _asked: ConfigParams) -> object:
        """Return the Codex configuration of this machine, which is empty."""
        await self._context.session("environment config")
        return configuration(self._shared.own.environment)


def _error_form(failure: Failure) -> Mapping[str, object]:
    return _clean.mapping(exec_error(failure))
