"""Standard input and output keep the promises of every transport."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.testing import TransportContract
from holdfast.rpc.transports.stdio import StdioTransport
from tests.contracts.test_transports import DescriptorFarEnd

pytestmark = pytest.mark.anyio


async def test_an_answer_gets_out_after_the_end_of_our_input() -> None:
    (to_us, from_far), (to_far, from_us) = os.pipe(), os.pipe()
    ours = StdioTransport(read_fd=to_us, write_fd=from_us)
    for fd in (to_us, from_us):
        os.close(fd)
    os.write(from_far, b'{"id":1,"method":"m"}\n{"id":2,"method":"never"}\n')
    os.close(from_far)
    try:
        with anyio.fail_after(60):
            assert len(await ours.receive()) == 2
            await anyio.sleep(0.1)
            await ours.send([b'{"id":1,"result":{}}'])
            with pytest.raises(ConnectionClosed):  # nobody waits for the other one for ever
                await ours.receive()
        assert os.read(to_far, 100) == b'{"id":1,"result":{}}\n'
    finally:
        await ours.aclose()
        os.close(to_far)


class TestStdio(TransportContract):
    """Two pipes, as whoever starts us lays them."""

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[StdioTransport, DescriptorFarEnd]]:
        (to_us, from_far), (to_far, from_us) = os.pipe(), os.pipe()
        ours = StdioTransport(read_fd=to_us, write_fd=from_us, message_bytes_max=message_bytes_max)
        os.close(to_us)
        os.close(from_us)
        yield ours, DescriptorFarEnd(read_fd=to_far, write_fd=from_far)
