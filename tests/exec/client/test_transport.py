"""A process on a server carries messages like any transport, and cuts are nobody's business."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from copy import copy

import anyio
import anyio.lowlevel
import pytest

from holdfast.exec.client.client import Client
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.client.transport import ProcessTransport
from holdfast.exec.model import Command
from holdfast.failures import Failure
from holdfast.rpc import LineDecoder, Transport, join
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.testing import FarEnd, TransportContract, end_of, numbered, take
from tests.simulation.exec_server import Run, SimProcess, SimServer, Traits

pytestmark = pytest.mark.anyio

CHUNK = 64 * 1024
POLICY = RecoveryPolicy(window=5.0, wait_first=0.001, wait_longest=0.01)
STAGE = Command(argv=("stage",), cwd="/", env={}, has_stdin=True)


class Actor:
    """The program that runs as the process: it says and hears what a test has it say."""

    def __init__(self, server: SimServer) -> None:
        [self._process] = server.all_processes
        [session] = server.sessions.values()
        self._run = Run(server, session, self._process)
        self._lines = LineDecoder(message_bytes_max=100 * 2**20)
        self._heard = 0
        self._failure: Failure | None = None

    async def receive(self) -> Sequence[bytes]:
        process: SimProcess = self._process
        while self._failure is None:
            fresh = list(process.written.values())[self._heard :]
            self._heard += len(fresh)
            process.unread = 0
            process.room.set()
            process.room = anyio.Event()
            if messages := self._lines.feed(b"".join(fresh)):
                return messages
            if process.stdin_closed or process.status is not None:
                self._run.end(0)
                self._failure = ConnectionClosed(reason="no more input")
            else:
                process.stirred = anyio.Event()
                await process.stirred.wait()
        raise copy(self._failure)

    async def send(self, messages: Sequence[bytes]) -> None:
        if self._failure is not None:
            raise copy(self._failure)
        await self._process.wait_room()
        self._say(join(messages))
        await anyio.lowlevel.checkpoint()

    def offer(self, messages: Sequence[bytes]) -> bool:
        self._say(join(messages))
        return True

    async def aclose(self) -> None:
        self._failure = self._failure or ConnectionClosed(reason="it has ended")
        self._run.end(0)

    async def cut(self, messages: Sequence[bytes], *, after: int) -> None:
        self._say(join(messages)[:after])
        self._run.end(1)

    def complain(self, data: bytes) -> None:
        self._run.say(data, stream="stderr")

    def _say(self, data: bytes) -> None:
        for first in range(0, len(data), CHUNK):
            self._run.say(data[first : first + CHUNK])


@asynccontextmanager
async def stage(
    *, message_bytes_max: int = 100 * 2**20
) -> AsyncGenerator[tuple[ProcessTransport, Actor, SimServer]]:
    async with anyio.create_task_group() as tasks:
        traits = Traits(retained_max=1000, start_delay=0.0)
        server = SimServer(random.Random(1), tasks, traits)
        async with Client(server.dial, policy=POLICY) as client:
            process = await client.start(STAGE)
            ours = ProcessTransport(process, grace=0.2, message_bytes_max=message_bytes_max)
            yield ours, Actor(server), server
        tasks.cancel_scope.cancel()


class TestProcessTransport(TransportContract):
    """All that a transport promises, over a server that is told what was taken."""

    @asynccontextmanager
    async def connect(self, *, message_bytes_max: int) -> AsyncGenerator[tuple[Transport, FarEnd]]:
        async with stage(message_bytes_max=message_bytes_max) as (ours, far, _):
            yield ours, far


@pytest.mark.promise("X10")
async def test_cuts_are_not_noticed() -> None:
    async with stage() as (ours, far, server):
        for number in range(20):
            server.links[-1][0].cut()
            await ours.send(numbered([number]))
            server.links[-1][1].outgoing.cut_after = number * 20
            await far.send(numbered([number]))
            assert await take(ours, 1) == numbered([number])
            assert await take(far, 1) == numbered([number])
        await ours.aclose()


async def test_what_the_process_complained_about_is_in_the_failure() -> None:
    async with stage() as (ours, far, _):
        far.complain(b"Traceback\n")
        await far.cut([b"{}"], after=1)

        assert await end_of(ours) == ConnectionLost(
            reason="exit status 1", status=1, stderr="Traceback\n", partial="{"
        )


async def test_a_client_that_is_closed_ends_it() -> None:
    async with stage() as (ours, _, _):
        pass

    assert await end_of(ours) == ConnectionClosed(reason="closed by this side")
