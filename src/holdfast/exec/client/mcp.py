"""Connect the official MCP SDK to an MCP server that runs as a process of an exec-server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from holdfast.exec.client.process import Process
from holdfast.exec.client.transport import GRACE, ProcessTransport
from holdfast.exec.failures import SdkMissing
from holdfast.failures import Failure, ungrouped

try:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter
except ModuleNotFoundError as error:
    raise SdkMissing(service="the official MCP SDK", extra="mcp") from error

_HANDED_OVER_LONGEST = 0.5
_NOBODY_LISTENS = (anyio.BrokenResourceError, anyio.ClosedResourceError)

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def mcp_streams(process: Process, *, grace: float = GRACE) -> AsyncGenerator[Streams]:
    """Yield the two streams of `mcp.ClientSession` over a process, which ends with the block.

    Lost connections are invisible there. The failure that ends it for good is the last item
    received before the end of the stream: the session passes it to its `message_handler`. A slow
    session buffers no more than any slow reader.
    """
    transport = ProcessTransport(process, grace=grace)
    hears, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, says = anyio.create_memory_object_stream[SessionMessage](0)
    has_said_all = anyio.Event()
    try:
        with ungrouped():
            async with hears, heard, said, says, anyio.create_task_group() as tasks:
                tasks.start_soon(_hear, transport, hears)
                tasks.start_soon(_say, transport, says, has_said_all)
                tasks.start_soon(_give_up, has_said_all, hears, grace)
                try:
                    yield heard, said
                finally:
                    said.close()
                    with anyio.move_on_after(_HANDED_OVER_LONGEST, shield=True):
                        await has_said_all.wait()
                    tasks.cancel_scope.cancel()
    finally:
        await transport.aclose()


async def _hear(
    transport: ProcessTransport, hears: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    async with hears:
        with suppress(*_NOBODY_LISTENS):
            try:
                while True:
                    for line in await transport.receive():
                        await hears.send(_read(line))
            except Failure as failure:
                await hears.send(failure)


async def _say(
    transport: ProcessTransport,
    says: MemoryObjectReceiveStream[SessionMessage],
    has_said_all: anyio.Event,
) -> None:
    async with says:
        # The receive stream reports why writing failed.
        with suppress(Failure):
            async for message in says:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await transport.send([text.encode()])
        has_said_all.set()


async def _give_up(
    has_said_all: anyio.Event,
    hears: MemoryObjectSendStream[SessionMessage | Exception],
    grace: float,
) -> None:
    """End the receive stream of a process that takes no more input, after the grace period."""
    await has_said_all.wait()
    await anyio.sleep(grace)
    hears.close()


def _read(line: bytes) -> SessionMessage | Exception:
    """Decode a message, or return why the line is not one, for the session to handle."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error
