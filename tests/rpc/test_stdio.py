"""Standard input and output keep the promises of every transport."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from holdfast.rpc.stdio import StdioTransport
from holdfast.rpc.testing import TransportContract
from tests.contracts.test_transports import DescriptorFarEnd

pytestmark = pytest.mark.anyio


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
