"""A server without sockets: real processes, real files, connections in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from holdfast.exec.keeper.client_loop import KeeperClient
from holdfast.exec.server.connection import ConnectionHandler, ServerContext
from holdfast.exec.server.launcher import ServerInfo
from holdfast.exec.server.ownership import SessionPolicy
from holdfast.exec.server.places import PLAIN, Bindings
from holdfast.exec.server.processes import ProcessServices
from holdfast.exec.server.sessions import SessionRegistry
from holdfast.exec.server.state_records import StateRecords
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.exec.storage.retention_loop import BYTES_MAX
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.world import SystemClock, SystemDisk
from tests.exec.server.talking import Talk


@dataclass
class Housed:
    """The server's parts, and a way to connect to it."""

    shared: ServerContext
    services: ProcessServices
    tasks: TaskGroup
    state: Path

    def __post_init__(self) -> None:
        self._numbers = count(1)

    async def dial(self, place: str = PLAIN) -> MemoryTransport:
        """Connect as a client does, with a token that is bound to a place."""
        ours, theirs = pair(buffer_bytes_max=2**20)
        self.tasks.start_soon(
            ConnectionHandler(next(self._numbers), theirs, self.shared, place).run
        )
        return ours

    @asynccontextmanager
    async def talk(
        self, *, introduced: bool = True, session: str | None = None, place: str = PLAIN
    ) -> AsyncIterator[Talk]:
        """Connect, shake hands unless told otherwise, and cut the connection at the end."""
        ours = await self.dial(place)
        talk = Talk(ours)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.listen)
            if introduced:
                await talk.introduce(session)
            yield talk
            ours.cut()
            await talk.until(lambda: talk.ended)


@asynccontextmanager
async def housed(
    state: Path,
    policy: SessionPolicy | None = None,
    *,
    retention_bytes_max: int = BYTES_MAX,
    environment: dict[str, str] | None = None,
    leave: bool = False,
) -> AsyncIterator[Housed]:
    """Run the inside of a server; at its end all processes end, unless they are to be left."""
    records = StateRecords(state, SystemDisk())
    records.prepare()
    keeper = await KeeperClient.open(state)
    with WorkerThreads() as workers:
        services = ProcessServices(
            keeper=keeper,
            records=records,
            workers=workers,
            clock=SystemClock(),
            fresh_key=lambda: uuid4().hex,
            own_environment=environment or {},
            retention_bytes_max=retention_bytes_max,
        )
        sessions = SessionRegistry(services, policy or SessionPolicy())
        bindings = Bindings(state, SystemDisk())
        try:
            await sessions.adopt()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sessions.run)
                shared = ServerContext(
                    sessions, workers, ServerInfo(environment or {}, state), None, bindings
                )
                yield Housed(shared, services, tasks, state)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if not leave:
                    await sessions.end()
                sessions.release()
                await services.keeper.close(end_keeper=not leave)
