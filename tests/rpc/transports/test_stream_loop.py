"""The byte stream under the local transports, where the contract does not reach."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.framing import socket_failure
from holdfast.rpc.transports.stream_loop import READ_BYTES, LineStream

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def stream() -> AsyncGenerator[tuple[LineStream, socket.socket]]:
    ours, theirs = socket.socketpair()
    fd = ours.detach()
    it = LineStream(read_fd=fd, write_fd=fd, message_bytes_max=2**20, judge=socket_failure)
    try:
        with anyio.fail_after(30):
            yield it, theirs
    finally:
        theirs.close()
        it.close()
        it.close()


async def test_what_one_read_yields_comes_in_one_batch() -> None:
    async with stream() as (it, theirs):
        theirs.send(b"{}\n" * 10_000)

        assert await it.reader.receive() == [b"{}"] * 10_000


async def test_what_was_said_before_a_reset_is_received_first() -> None:
    async with stream() as (it, theirs):
        await it.writer.send([b'{"unread":true}'])
        theirs.send(b'{"said":true}\n{"part')
        theirs.close()

        assert await it.reader.receive() == [b'{"said":true}']
        with pytest.raises(ConnectionLost) as raised:
            await it.reader.receive()
        assert raised.value == ConnectionLost(reason="Connection reset by peer", partial='{"part')


async def test_one_who_sends_without_end_leaves_time_for_others() -> None:
    async with stream() as (it, theirs), anyio.create_task_group() as tasks:
        turns: list[int] = []

        async def send_without_end() -> None:
            while True:
                await it.writer.send([b"x" * 10_000])
                theirs.recv(READ_BYTES)  # so that there is always room

        tasks.start_soon(send_without_end)
        while len(turns) < 5:
            turns.append(1)
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_a_failure_told_often_does_not_grow() -> None:
    async with stream() as (it, theirs):
        theirs.close()
        depths: set[int] = set()
        for _ in range(10):
            try:
                await it.reader.receive()
            except Failure as failure:
                depths.add(depth(failure))

        assert len(depths) == 1


def depth(failure: Failure) -> int:
    count, traceback = 0, failure.__traceback__
    while traceback is not None:
        count, traceback = count + 1, traceback.tb_next
    return count


async def test_a_second_receiver_is_a_bug() -> None:
    async with stream() as (it, _), anyio.create_task_group() as tasks:
        tasks.start_soon(it.reader.receive)
        await anyio.wait_all_tasks_blocked()

        with pytest.raises(AssertionError, match="one task receives"):
            await it.reader.receive()
        tasks.cancel_scope.cancel()


async def test_closing_closes_each_descriptor_once() -> None:
    read_fd, write_fd = os.pipe()
    before = len(os.listdir("/dev/fd"))
    async with stream() as (it, _):
        it.close()
        other = os.open("/dev/null", os.O_RDONLY)  # takes the number that was just released
        it.close()
        os.fstat(other)
        os.close(other)
    os.close(read_fd)
    os.close(write_fd)

    assert len(os.listdir("/dev/fd")) == before - 2


async def test_one_who_sends_is_told_of_the_end_although_nobody_receives() -> None:
    async with stream() as (it, theirs):
        theirs.setblocking(False)
        while it.reader.is_reading:  # until so much is unread that no more is read
            with suppress(BlockingIOError):
                theirs.send(b"{}\n" * 10_000)
            await anyio.lowlevel.checkpoint()
        theirs.close()

        with pytest.raises(ConnectionClosed):
            while True:
                await it.writer.send([b"{}"])
        assert set(await it.reader.receive()) == {b"{}"}
