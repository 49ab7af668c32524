"""All sessions of a server: created, resumed, taken over, adopted and expired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

import anyio

from holdfast.exec.failures import SessionAttached, SessionExpired
from holdfast.exec.keeper.client_loop import KeptProcess
from holdfast.exec.keeper.stdin_loop import StdinWriter
from holdfast.exec.server import ownership as decide
from holdfast.exec.server.ownership import Attached, Holding, SessionPolicy, Unattached
from holdfast.exec.server.places import PLAIN, BoundPlace, BoundPlaces
from holdfast.exec.server.process import COME_BACK_LONGEST, ServerProcess
from holdfast.exec.server.processes import Processes, ProcessServices
from holdfast.exec.server.state_records import ProcessRecord, SessionRecord
from holdfast.exec.storage.retention_loop import Retention

_SWEEP_EVERY = 0.2


class Owner(Protocol):
    """A connection that may own a session in one place."""

    number: int
    place: str

    def evict(self) -> None:
        """Lose the session to another connection."""
        ...

    def process_started(self, process: ServerProcess) -> None:
        """A process was started in the session."""
        ...

    def tick(self, now: float) -> None: ...


@dataclass(eq=False)
class ExecSession:
    """The processes of one client, bound to one place for its lifetime."""

    id: str
    site: BoundPlace
    processes: Processes
    holding: Holding
    label: str = ""
    owner: Owner | None = field(default=None, repr=False)

    def check(self, owner: Owner) -> None:
        """Raise `SessionAttached` if this connection does not own the session."""
        if self.holding != Attached(owner.number):
            raise SessionAttached(session=self.id)


class SessionRegistry:
    """Every session of this server; its methods are called from one event loop.

    Methods that attach or detach never wait, so that no two of them interleave.
    """

    def __init__(self, services: ProcessServices, policy: SessionPolicy) -> None:
        self._services, self._policy = services, policy
        self._sites = BoundPlaces(services.records.state, services.workers)
        self._sessions: dict[str, ExecSession] = {}
        self._connected: set[Owner] = set()

    def __iter__(self) -> Iterator[ExecSession]:
        return iter(list(self._sessions.values()))

    @property
    def untaken_bytes_max(self) -> int:
        """Unacknowledged bytes of a process that a client may be sent.

        Less than is retained: otherwise a process could wait for an acknowledgement that is not due
        yet.
        """
        return max(1, self._services.retention_bytes_max // 4)

    @property
    def has_sessions(self) -> bool:
        """Whether there is any session."""
        return bool(self._sessions)

    def find(self, name: str) -> ExecSession:
        """Return a session by id; raises `SessionExpired`."""
        session = self._sessions.get(name)
        if session is None:
            raise SessionExpired(session=name)
        return session

    def site(self, place: str) -> BoundPlace:
        """Return a place by name, whether or not a session is bound to it."""
        return self._sites.of(place)

    async def begin(self, owner: Owner, place: str = PLAIN, *, label: str = "") -> ExecSession:
        """Create a session in a place; its record is durable before the client learns its id.

        Once recorded it exists, even if the connection has ended meanwhile.
        """
        record = SessionRecord(str(uuid4()), place, label=label)
        with anyio.CancelScope(shield=True):
            await self._services.workers.do(lambda: self._services.records.keep_session(record))
        session = self._session(record, Attached(owner.number))
        session.owner = owner
        return session

    def resume(self, name: str, owner: Owner, place: str = PLAIN) -> ExecSession:
        """Give a session to a connection; evicts its owner, or raises `SessionAttached`.

        Sessions of other places do not exist for this connection.
        """
        session = self.find(name)
        if session.site.name != place:
            raise SessionExpired(session=name)
        before = session.owner
        session.holding, evicted = decide.attach(name, session.holding, owner.number, self._policy)
        session.owner = owner
        if evicted is not None and before is not None:
            before.evict()
        return session

    def register(self, owner: Owner) -> None:
        """Add a connection, which may begin or resume a session."""
        self._connected.add(owner)

    def leave(self, session: ExecSession | None, owner: Owner) -> None:
        """Remove a connection; a session is detached only if this connection owns it."""
        self._connected.discard(owner)
        if session is None:
            return
        now = anyio.current_time()
        session.holding = decide.detach(session.holding, owner.number, now, self._policy)
        if session.owner is owner:
            session.owner = None

    async def adopt(self) -> None:
        """Adopt sessions of the last server, all detached, and their processes."""
        records = self._services.records
        until = anyio.current_time() + self._policy.detached_ttl
        for session in records.sessions():
            self._session(session, Unattached(until))
        await self._services.workers.do(self._sites.clean_up)
        kept = {each.key: each for each in await self._services.keeper.adopt()}
        for record in records.processes():
            if (found := self._sessions.get(record.session)) is not None:
                process = self._adopted(record, kept.pop(record.key, None))
                process.undo = found.site.clean_up if record.sandbox else None
                found.processes.adopt(process)
        # Started, but the client never got a reply: it starts the process again.
        for stranger in kept.values():
            await stranger.forget()
        every = self._sessions.values()
        records.sweep([process.record for each in every for process in each.processes])

    async def run(self) -> None:
        """Expire sessions and closed processes periodically, until cancelled."""
        while True:
            await anyio.sleep(_SWEEP_EVERY)
            now = anyio.current_time()
            for site in self._sites:
                if site.tick():
                    self.evict(site.name)
            for session in list(self._sessions.values()):
                if session.processes.keeps_session:
                    session.holding = decide.prolong(session.holding, now, self._policy)
                if decide.has_expired(session.holding, now):
                    await self._forget(session)
                    continue
                if session.owner is not None:
                    session.owner.tick(now)
                await session.processes.sweep(now, closed_ttl=self._policy.detached_ttl)

    async def end_labelled(self, label: str) -> int:
        """End all sessions with a label and their processes; returns their number.

        Owners are evicted first, so that their queued requests do not start anything.
        """
        found = [each for each in self._sessions.values() if each.label == label != ""]
        for session in found:
            owner, session.owner = session.owner, None
            session.holding = Unattached(anyio.current_time())
            if owner is not None:
                owner.evict()
            await self._forget(session)
        return len(found)

    def evict(self, place: str) -> None:
        """Disconnect all clients of a place; their sessions stay for the usual timeout."""
        for owner in self._connected:
            if owner.place == place:
                owner.evict()

    def mark_lost(self) -> None:
        """Mark all processes as lost with their keeper."""
        for session in self._sessions.values():
            for process in session.processes:
                process.mark_lost()

    async def end(self) -> None:
        """Kill all processes and forget all sessions."""
        for session in list(self._sessions.values()):
            await self._forget(session)

    def release(self) -> None:
        """Close all descriptors; the next server adopts the sessions."""
        for session in self._sessions.values():
            session.processes.release()
        self._sites.close()

    def _session(self, record: SessionRecord, holding: Holding) -> ExecSession:
        site = self._sites.of(record.place)
        processes = Processes(record.id, self._services, site)
        session = self._sessions[record.id] = ExecSession(
            record.id, site, processes, holding, record.label
        )
        return session

    def _adopted(self, record: ProcessRecord, kept: KeptProcess | None) -> ServerProcess:
        directory = self._services.records.directory(record.key)
        limit = self._services.retention_bytes_max
        end = self._services.records.end_of(record)
        with self._services.records.naming(record.key):
            retention = Retention.open(directory, kept, bytes_max=limit, is_needed=True, end=end)
            stdin = StdinWriter.open(directory, kept)
        process = ServerProcess(record, kept=kept, retention=retention, stdin=stdin)
        # Its client may be on its way back.
        process.hold.keep_from(retention.first_retained)
        process.hold.let_go(after=COME_BACK_LONGEST)
        if kept is None:
            process.mark_lost()
        return process

    async def _forget(self, session: ExecSession) -> None:
        self._sessions.pop(session.id, None)
        self._services.records.forget_session(session.id)
        await session.processes.end()
