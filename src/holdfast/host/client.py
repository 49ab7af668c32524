"""Dial a host: lead its session, or watch it, from any point of its journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast import __version__
from holdfast.host.model import Abort, Answer, AnyRecord, Close, Command, Prompt, Steer
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
    AttachParams,
    Done,
    Pulse,
    Role,
    Standing,
    Told,
    Trouble,
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

_METHODS: dict[type[Command], str] = {
    Prompt: PROMPT,
    Steer: STEER,
    Answer: ANSWER,
    Abort: ABORT,
    Close: CLOSE,
}


class Kept(NamedTuple):
    """A record of the session, with its number: who has seen it need not be told again."""

    seq: int
    record: AnyRecord


class Shown(NamedTuple):
    """Pieces of what is being said or printed; what they belong to will be kept as a whole."""

    deltas: tuple[Delta, ...]


News = Kept | Shown | Trouble

_records = msgspec.json.Decoder(Told)
_deltas = msgspec.json.Decoder(tuple[Delta, ...])
_trouble = msgspec.json.Decoder(Trouble)


class Call:
    """A connection with a host; it ends with the host, and is never dialled again by itself."""

    def __init__(self, connection: Connection, standing: Standing) -> None:
        self._connection = connection
        self.standing = standing  # as it was when we came
        self._watches = 0

    async def command(self, command: Command) -> int:
        """Have something done; return once that is written down, up to which record."""
        method = _METHODS[type(command)]
        done = await self._connection.request(method, command, timeout=TIMEOUT, result=Done)
        return done.seq

    async def state(self) -> Standing:
        """Say where the session stands now."""
        return await self._connection.request(STATE, timeout=TIMEOUT, result=Standing)

    async def ping(self) -> Pulse:
        """Say for how long each loop of the host has made no progress; late is no answer."""
        return await self._connection.request("ping", timeout=PING_TIMEOUT, result=Pulse)

    async def watch(self, *, after: int = 0) -> AsyncGenerator[list[News]]:
        """Yield everything after a record, and what is shown meanwhile, until the host is gone."""
        self._watches += 1
        number = self._watches
        with self._connection.subscribe() as told:
            params = WatchParams(after, number)
            await self._connection.request(WATCH, params, timeout=TIMEOUT, result=Done)
            while True:
                batch = await told.receive()
                if news := [each for one in batch for each in _read(one, number)]:
                    yield news


@asynccontextmanager
async def calling(
    path: Path, *, role: Role = Role.LEAD, generation: int | None = None
) -> AsyncGenerator[Call]:
    """Dial the host that listens at a path, and attach to its session."""
    async with called(await connect(path), role=role, generation=generation) as call:
        yield call


@asynccontextmanager
async def called(
    transport: Transport, *, role: Role = Role.LEAD, generation: int | None = None
) -> AsyncGenerator[Call]:
    """Attach to a session over a connection with its host."""
    gate = HandshakeGate(method=HELLO)
    async with Connection(transport, ConnectionConfig(calls=gate, peer="host")) as connection:
        us = hello("holdfast", __version__)
        await send_hello(connection, us, gate, timeout=HELLO_TIMEOUT)
        attach = AttachParams(role, generation)
        standing = await connection.request(ATTACH, attach, timeout=TIMEOUT, result=Standing)
        yield Call(connection, standing)


def _read(told: Notification, number: int) -> Sequence[News]:
    match told.method:
        case method if method == RECORDS:
            read = _records.decode(told.params)
            return [Kept(*each) for each in read.records] if read.watch == number else ()
        case method if method == DELTAS:
            return (Shown(_deltas.decode(told.params)),)
        case method if method == TROUBLE:
            return (_trouble.decode(told.params),)
        case _:
            return ()
