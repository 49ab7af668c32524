"""Run an exec-server: adopt processes of the last one, listen, shut down cleanly."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import itertools
import os
import resource
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from holdfast.exec.failures import OrphansEnded
from holdfast.exec.keeper.client_loop import KeeperClient
from holdfast.exec.server.connection import ConnectionHandler, ServerContext
from holdfast.exec.server.launcher import ServerInfo
from holdfast.exec.server.ownership import SessionPolicy
from holdfast.exec.server.places import PLAIN, Bindings
from holdfast.exec.server.processes import ProcessServices
from holdfast.exec.server.sessions import SessionRegistry
from holdfast.exec.server.socket_activation import IdleHandover, without_rest
from holdfast.exec.server.state_records import StateRecords
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.exec.storage.retention_loop import BYTES_MAX
from holdfast.failures import Failure, boundary, ungrouped
from holdfast.rpc import (
    ServerLimits,
    StdioTransport,
    Transport,
    WebSocketServer,
    listen_websocket,
    resume_websocket,
)
from holdfast.rpc.failures import ConnectionClosed
from holdfast.telemetry import Telemetry
from holdfast.world import Clock, SystemClock, SystemDisk

# Pieces of output are larger than what the C library keeps by itself: it would return their memory
# to the kernel and ask for it again, a page fault for every 4 KiB of output.
# As <malloc.h> numbers them.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _PIECE_BYTES_MAX = 16 * 2**20, 4 * 2**20
# Reference counting frees nearly all garbage. A full collection over the objects of thousands of
# processes takes milliseconds, during which no output is sent.
_NEW_OBJECTS_MAX, _YOUNG_LOOKS, _OLD_LOOKS = 2000, 10, 1000
# When the table of descriptors of several threads grows, the kernel waits for all processors: ten
# milliseconds in the middle of opening a file.
_DESCRIPTORS = 16 * 2**10


def keep_freed_memory() -> None:
    """Let malloc keep up to 16 MiB for the next chunk, if this C library can."""
    # This C library has no such choice.
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _PIECE_BYTES_MAX)


def look_seldom() -> None:
    """Freeze existing objects for the garbage collector, and scan old generations rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS_MAX, _YOUNG_LOOKS, _OLD_LOOKS)


def widen_descriptors() -> int:
    """Raise RLIMIT_NOFILE to the hard limit and grow the descriptor table in advance.

    Returns the previous soft limit, which is meant for child processes.
    """
    given, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    most = min(allowed, _DESCRIPTORS)
    lowest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    # Then the table grows when it must.
    with suppress(OSError):
        os.close(fcntl.fcntl(lowest, fcntl.F_DUPFD_CLOEXEC, most - 1))
    os.close(lowest)
    return given


STDIO = "stdio"
_CONNECTIONS_MAX = 1024
_REAPED_LONGEST, _LOOK_AGAIN = 2.0, 0.01
# Seconds that a keeper has for a word at the end.
_ANSWER_LONGEST = 5.0
_QUIET_LOOK = 0.1
# Seconds without clients before the idle listener takes over: before the first client, which mostly
# connects right after the start, and after the last one, which is likely to come back.
_QUIET_FIRST, _QUIET = 2.0, 60.0
_STDIO_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Configuration of a server.

    Without a `state` directory it leaves nothing behind: its processes end with it. With one they
    stay with their keeper for the next server, unless `end_processes`. After `idle_exit` seconds
    without connections, sessions and processes the server ends.
    """

    listen: str = "ws://127.0.0.1:0"
    token: str | None = None
    names: tuple[str, ...] = ()  # by which clients may call us, besides our address
    state: Path | None = None
    policy: SessionPolicy = field(default_factory=SessionPolicy)
    retention_bytes_max: int = BYTES_MAX
    end_processes: bool = False
    idle_exit: float | None = None
    may_rest: bool = False  # the process is ours alone: the idle listener may replace it
    open_files: int | None = None  # that each process may have, if not as many as we
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    telemetry: Telemetry | None = None
    clock: Clock = field(default_factory=SystemClock)


async def serve(settings: ServerSettings, announce: Callable[[str], None]) -> IdleHandover | None:
    """Serve until SIGTERM or SIGINT, for `stdio` until EOF, or until idle.

    `announce` gets the address once connections are accepted. Returns the handover for the idle
    listener, if the server may be replaced by it.
    """
    keep_freed_memory()
    if settings.may_rest:
        look_seldom()
        settings = replace(settings, open_files=widen_descriptors())
    over = IdleHandover.over(settings.environment)
    private = None if settings.state else Path(over.state if over else _temporary())
    rest = None
    try:
        rest = await _serve_in(settings.state or private or Path(), settings, over, announce)
    finally:
        if private is not None and rest is None:
            shutil.rmtree(private, ignore_errors=True)
    return rest


def _temporary() -> str:
    return tempfile.mkdtemp(prefix="holdfast-exec-")


async def _serve_in(
    state: Path,
    settings: ServerSettings,
    over: IdleHandover | None,
    announce: Callable[[str], None],
) -> IdleHandover | None:
    records = StateRecords(state, SystemDisk())
    records.prepare()
    lock, open_files = None if over is None else over.lock, settings.open_files
    keeper = await KeeperClient.open(state, lock=lock, open_files=open_files)
    environment = without_rest(settings.environment)
    rest = None
    with WorkerThreads() as workers:
        services = ProcessServices(
            keeper=keeper,
            records=records,
            workers=workers,
            clock=settings.clock,
            fresh_key=lambda: uuid4().hex,
            own_environment=environment,
            retention_bytes_max=settings.retention_bytes_max,
            telemetry=settings.telemetry,
        )
        sessions = SessionRegistry(services, settings.policy)
        shared = _shared(settings, sessions, workers, ServerInfo(environment, state))
        try:
            _report_orphans(shared, keeper)
            await sessions.adopt()
            with ungrouped():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(sessions.run)
                    tasks.start_soon(_replace_lost, services, shared, state, open_files)
                    listener = await _attend(settings, shared, over, announce)
                    if listener is not None:
                        lock, is_private = services.keeper.copy_lock(), settings.state is None
                        idle_exit = settings.idle_exit
                        rest = IdleHandover(
                            listener, lock, state, is_private, idle_exit, open_files
                        )
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _leave(settings, sessions, services.keeper, is_resting=rest is not None)
    return rest


async def _leave(
    settings: ServerSettings, sessions: SessionRegistry, keeper: KeeperClient, *, is_resting: bool
) -> None:
    """Release everything, and end what must not outlive us; a stuck keeper is left alone."""
    hears = await _hears(keeper)
    if hears and not is_resting and _is_whole_end(settings):
        await sessions.end()
        await _wait_reaped(keeper)
    sessions.release()
    with suppress(Failure):
        # An idle server leaves its keeper alone, which ends by itself unless a client connects.
        await keeper.close(end_keeper=hears and not is_resting)


def _shared(
    settings: ServerSettings, sessions: SessionRegistry, workers: WorkerThreads, own: ServerInfo
) -> ServerContext:
    """Who needs no token to come in cannot be bound by one."""
    bindings = Bindings(own.state, SystemDisk()) if settings.token else None
    return ServerContext(sessions, workers, own, settings.telemetry, bindings)


def _is_whole_end(settings: ServerSettings) -> bool:
    """Whether nothing must outlive the server."""
    return settings.end_processes or settings.state is None or settings.listen == STDIO


async def _hears(keeper: KeeperClient) -> bool:
    """Whether the keeper replies in time."""
    with anyio.move_on_after(_ANSWER_LONGEST) as patience, suppress(Failure):
        await keeper.ask({"ask": "hello"})
    return not patience.cancelled_caught


async def _wait_reaped(keeper: KeeperClient) -> None:
    """Wait until killed processes are reaped: a keeper that holds one would not end."""
    with suppress(Failure), anyio.move_on_after(_REAPED_LONGEST):
        while not (await keeper.ask({"ask": "end"})).get("is_ending"):  # noqa: ASYNC110  # it must be asked
            await anyio.sleep(_LOOK_AGAIN)


async def _attend(
    settings: ServerSettings,
    shared: ServerContext,
    over: IdleHandover | None,
    announce: Callable[[str], None],
) -> socket.socket | None:
    """Serve all connections until a signal, or until the idle listener takes over."""
    left = None
    async with anyio.create_task_group() as guests:
        guests.start_soon(_until_told, guests)
        if settings.listen == STDIO:
            transport = StdioTransport(message_bytes_max=_STDIO_BYTES_MAX)
            await _guest(1, transport, shared, PLAIN)
        else:
            guests_known = None if shared.bindings is None else shared.bindings.guests
            server = await _listening(settings, over, guests_known)
            try:
                guests.start_soon(_accept, server, shared, guests)
                if over is None:
                    announce(server.url)
                left = await _until_idle(
                    settings, server, shared.sessions, is_called=over is not None
                )
            finally:
                await server.aclose()
        guests.cancel_scope.cancel()
    return left


async def _listening(
    settings: ServerSettings, over: IdleHandover | None, bound: Mapping[bytes, str] | None
) -> WebSocketServer:
    limits = ServerLimits(connections_max=_CONNECTIONS_MAX)
    token, names = settings.token, settings.names
    if over is not None:
        listener = over.listener
        return resume_websocket(listener, token=token, names=names, guests=bound, limits=limits)
    where = settings.listen
    return await listen_websocket(where, token=token, names=names, guests=bound, limits=limits)


async def _until_idle(
    settings: ServerSettings, server: WebSocketServer, sessions: SessionRegistry, *, is_called: bool
) -> socket.socket | None:
    """Wait until the server has been idle for long; returns the socket for the idle listener."""
    since, quiet = anyio.current_time(), _QUIET if is_called else _QUIET_FIRST
    while True:
        await anyio.sleep(_QUIET_LOOK)
        now = anyio.current_time()
        if sessions.has_sessions or not server.is_quiet:
            since, quiet = now, _QUIET
        elif settings.idle_exit is not None and now - since >= settings.idle_exit:
            return None
        elif settings.may_rest and now - since >= quiet:
            return server.detach()


async def _until_told(guests: TaskGroup) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            guests.cancel_scope.cancel()
            return


async def _accept(server: WebSocketServer, shared: ServerContext, guests: TaskGroup) -> None:
    with suppress(ConnectionClosed):
        for number in itertools.count(1):
            transport = await server.accept()
            guests.start_soon(_guest, number, transport, shared, transport.guest or PLAIN)


async def _guest(number: int, transport: Transport, shared: ServerContext, place: str) -> None:
    """Serve one connection; its failures do not affect others."""
    try:
        with boundary("exec.attend"):
            await ConnectionHandler(number, transport, shared, place).run()
    except Failure as failure:
        if shared.telemetry is not None:
            shared.telemetry.record(failure)


async def _replace_lost(
    services: ProcessServices, shared: ServerContext, state: Path, open_files: int | None
) -> None:
    """Mark the processes of a lost keeper as lost, and start a new keeper."""
    while True:
        lost = await services.keeper.wait_lost()
        if shared.telemetry is not None:
            shared.telemetry.record(lost)
        shared.sessions.mark_lost()
        await services.keeper.close()
        services.replace_keeper(await KeeperClient.open(state, open_files=open_files))
        _report_orphans(shared, services.keeper)


def _report_orphans(shared: ServerContext, keeper: KeeperClient) -> None:
    if keeper.orphans and shared.telemetry is not None:
        commands = tuple(each.command for each in keeper.orphans)
        shared.telemetry.record(OrphansEnded(commands=commands))
