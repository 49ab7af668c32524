"""Run an exec-server: adopt what the last one left, listen, and end in good order."""

from __future__ import annotations

import itertools
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from holdfast.exec.core.sessions import Policy
from holdfast.exec.keeping_loop import Keeping
from holdfast.exec.retention_loop import BYTES_MAX
from holdfast.exec.server.attendant import Attendant, House
from holdfast.exec.server.hands import Hands
from holdfast.exec.server.memory import keep_freed_memory
from holdfast.exec.server.plane import Plane
from holdfast.exec.server.processes import Workshop
from holdfast.exec.server.records import Records
from holdfast.failures import Failure, boundary, ungrouped
from holdfast.rpc import ServerLimits, StdioTransport, Transport, WebSocketServer, listen_websocket
from holdfast.rpc.failures import ConnectionClosed
from holdfast.telemetry import Telemetry
from holdfast.world import Clock, SystemClock, SystemDisk

STDIO = "stdio"
_CONNECTIONS_MAX = 1024
_REAPED_LONGEST, _LOOK_AGAIN = 2.0, 0.01
_STDIO_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server is to run.

    Without a `state` of its own it leaves nothing behind: its processes end with it. With one they
    stay with their keeper for the next server, unless `end_processes` says otherwise.
    """

    listen: str = "ws://127.0.0.1:0"
    token: str | None = None
    names: tuple[str, ...] = ()  # by which clients may call us, besides our address
    state: Path | None = None
    policy: Policy = field(default_factory=Policy)
    retention_bytes_max: int = BYTES_MAX
    end_processes: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    telemetry: Telemetry | None = None
    clock: Clock = field(default_factory=SystemClock)


async def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, or for `stdio` until the input ends.

    `announce` is told the address once connections are accepted.
    """
    keep_freed_memory()
    given = settings.state
    state = given or Path(tempfile.mkdtemp(prefix="holdfast-exec-"))
    try:
        await _serve_in(state, settings, announce)
    finally:
        if given is None:
            shutil.rmtree(state, ignore_errors=True)


async def _serve_in(state: Path, settings: Settings, announce: Callable[[str], None]) -> None:
    records = Records(state, SystemDisk())
    records.prepare()
    keeping = await Keeping.open(state)
    workshop = Workshop(
        keeping=keeping,
        records=records,
        clock=settings.clock,
        fresh_key=lambda: uuid4().hex,
        own_environment=settings.environment,
        retention_bytes_max=settings.retention_bytes_max,
    )
    with Hands() as hands:
        plane = Plane(workshop, settings.policy, hands)
        house = House(plane, hands, settings.environment, settings.telemetry)
        try:
            await plane.adopt()
            with ungrouped():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(plane.run)
                    tasks.start_soon(_replace_lost, workshop, plane, state)
                    await _attend(settings, house, announce)
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if settings.end_processes or settings.state is None or settings.listen == STDIO:
                    await plane.end()
                    await _wait_reaped(workshop.keeping)
                plane.release()
                with suppress(Failure):
                    await workshop.keeping.close(end_keeper=True)


async def _wait_reaped(keeping: Keeping) -> None:
    """Let those that were killed go: a keeper that still holds one would not end."""
    with suppress(Failure), anyio.move_on_after(_REAPED_LONGEST):
        while not (await keeping.ask({"ask": "end"})).get("is_ending"):  # noqa: ASYNC110  # it must be asked
            await anyio.sleep(_LOOK_AGAIN)


async def _attend(settings: Settings, house: House, announce: Callable[[str], None]) -> None:
    """Attend to all who come, until we are told to end."""
    async with anyio.create_task_group() as guests:
        if settings.listen == STDIO:
            transport = StdioTransport(message_bytes_max=_STDIO_BYTES_MAX)
            guests.start_soon(_until_told, guests)
            await _guest(1, transport, house)
            guests.cancel_scope.cancel()
            return
        limits = ServerLimits(connections_max=_CONNECTIONS_MAX)
        server = await listen_websocket(
            settings.listen, token=settings.token, names=settings.names, limits=limits
        )
        try:
            guests.start_soon(_accept, server, house, guests)
            announce(server.url)
            await _until_told(guests)
        finally:
            await server.aclose()


async def _until_told(guests: TaskGroup) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            guests.cancel_scope.cancel()
            return


async def _accept(server: WebSocketServer, house: House, guests: TaskGroup) -> None:
    with suppress(ConnectionClosed):
        for number in itertools.count(1):
            transport = await server.accept()
            guests.start_soon(_guest, number, transport, house)


async def _guest(number: int, transport: Transport, house: House) -> None:
    """Attend to one; whatever goes wrong with it is no business of the others."""
    try:
        with boundary("exec.attend"):
            await Attendant(number, transport, house).run()
    except Failure as failure:
        if house.telemetry is not None:
            house.telemetry.record(failure)


async def _replace_lost(workshop: Workshop, plane: Plane, state: Path) -> None:
    """Report what ended with a keeper that is gone, and go on with a new one."""
    while True:
        lost = await workshop.keeping.wait_lost()
        plane.lose(lost)
        await workshop.keeping.close()
        workshop.keeping = await Keeping.open(state)
