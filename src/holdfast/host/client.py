"""Client of a host: lead or watch a session, from any record of its journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast import __version__
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnyRecord,
    CloseCommand,
    HostCommand,
    PromptCommand,
    SteerCommand,
)
from holdfast.host.protocol import (
    ABORT,
    ANSWER,
    ATTACH,
    CLOSE,
    DELTAS,
    PROMPT,
    RECORDS,
    STATE,
    STEER,
    TROUBLE,
    WATCH,
    Acknowledgement,
    AttachParams,
    ClientRole,
    JournalTrouble,
    LoopHealth,
    RecordBatch,
    SessionStatus,
    WatchParams,
    hello,
)
from holdfast.rpc import (
    HELLO,
    Connection,
    ConnectionConfig,
    HandshakeGate,
    Transport,
    connect,
    send_hello,
)
from holdfast.rpc.model import Notification
from holdfast.runners.model import Delta

TIMEOUT = 30.0
HELLO_TIMEOUT = 10.0
PING_TIMEOUT = 5.0

_METHODS: dict[type[HostCommand], str] = {
    PromptCommand: PROMPT,
    SteerCommand: STEER,
    AnswerCommand: ANSWER,
    AbortCommand: ABORT,
    CloseCommand: CLOSE,
}


class RecordReceived(NamedTuple):
    """A record with its sequence number, which is the cursor to resume from."""

    seq: int
    record: AnyRecord


class DeltasReceived(NamedTuple):
    """Streaming output; a record with the complete item follows."""

    deltas: tuple[Delta, ...]


HostNews = RecordReceived | DeltasReceived | JournalTrouble

_records = msgspec.json.Decoder(RecordBatch)
_deltas = msgspec.json.Decoder(tuple[Delta, ...])
_trouble = msgspec.json.Decoder(JournalTrouble)


class HostClient:
    """A connection to a host; it does not reconnect."""

    def __init__(self, connection: Connection, standing: SessionStatus) -> None:
        self._connection = connection
        self.standing = standing  # when this client attached
        self._watches = 0

    async def command(self, command: HostCommand) -> int:
        """Send a command; return the last sequence number when its records are durable."""
        method = _METHODS[type(command)]
        done = await self._connection.request(
            method, command, timeout=TIMEOUT, result=Acknowledgement
        )
        return done.seq

    async def state(self) -> SessionStatus:
        """Return the current status of the session."""
        return await self._connection.request(STATE, timeout=TIMEOUT, result=SessionStatus)

    async def ping(self) -> LoopHealth:
        """Return how long each loop of the host has made no progress; raises RequestTimedOut."""
        return await self._connection.request("ping", timeout=PING_TIMEOUT, result=LoopHealth)

    async def watch(self, *, after: int = 0) -> AsyncGenerator[list[HostNews]]:
        """Yield records after a sequence number, and deltas, until the connection ends."""
        self._watches += 1
        number = self._watches
        with self._connection.subscribe() as told:
            params = WatchParams(after, number)
            await self._connection.request(WATCH, params, timeout=TIMEOUT, result=Acknowledgement)
            while True:
                batch = await told.receive()
                if news := [each for one in batch for each in _read(one, number)]:
                    yield news


@asynccontextmanager
async def connect_host(
    path: Path, *, role: ClientRole = ClientRole.LEAD, generation: int | None = None
) -> AsyncGenerator[HostClient]:
    """Connect to the socket of a host, and attach to its session."""
    async with attach_host(await connect(path), role=role, generation=generation) as call:
        yield call


@asynccontextmanager
async def attach_host(
    transport: Transport, *, role: ClientRole = ClientRole.LEAD, generation: int | None = None
) -> AsyncGenerator[HostClient]:
    """Attach to a session over an open transport."""
    gate = HandshakeGate(method=HELLO)
    async with Connection(transport, ConnectionConfig(calls=gate, peer="host")) as connection:
        us = hello("holdfast", __version__)
        await send_hello(connection, us, gate, timeout=HELLO_TIMEOUT)
        attach = AttachParams(role, generation)
        standing = await connection.request(ATTACH, attach, timeout=TIMEOUT, result=SessionStatus)
        yield HostClient(connection, standing)


def _read(told: Notification, number: int) -> Sequence[HostNews]:
    match told.method:
        case method if method == RECORDS:
            read = _records.decode(told.params)
            return [RecordReceived(*each) for each in read.records] if read.watch == number else ()
        case method if method == DELTAS:
            return (DeltasReceived(_deltas.decode(told.params)),)
        case method if method == TROUBLE:
            return (_trouble.decode(told.params),)
        case _:
            return ()
