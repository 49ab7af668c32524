"""A cable in front of a server that can be unplugged: who waits long enough misses nothing."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream

_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class Cable:
    """Carries every connection of a server, as packets that are sent again until they arrive.

    Unplugged, it carries nothing and tells nobody: what is sent, said to be over, or dialled
    meanwhile arrives when it is plugged in again, unless somebody has given up by then.
    """

    def __init__(self, dial: Callable[[], Awaitable[ByteStream]]) -> None:
        self._dial = dial
        self._plugged = anyio.Event()
        self._plugged.set()
        self.dials = 0

    def unplug(self) -> None:
        """Carry nothing from now on."""
        self._plugged = anyio.Event()

    def plug_in(self) -> None:
        """Carry everything again, also what has waited."""
        self._plugged.set()

    async def handle(self, near: ByteStream) -> None:
        """Carry one connection to its end."""
        self.dials += 1
        async with near:
            await self._plugged.wait()
            try:
                far = await self._dial()
            except OSError:
                return
            async with far, anyio.create_task_group() as tasks:
                tasks.start_soon(self._carry, near, far)
                await self._carry(far, near)
                tasks.cancel_scope.cancel()

    async def _carry(self, source: ByteStream, sink: ByteStream) -> None:
        try:
            while True:
                data = await source.receive()
                await self._plugged.wait()
                await sink.send(data)
        except _GONE:
            await self._plugged.wait()
            await _end(sink)


async def _end(sink: ByteStream) -> None:
    try:
        await sink.send_eof()
    except _GONE:
        await anyio.aclose_forcefully(sink)


@asynccontextmanager
async def cable_to_socket(path: Path) -> AsyncGenerator[Cable]:
    """Take the place of a Unix socket at which somebody listens."""
    far = path.with_suffix(".far")
    os.rename(path, far)
    async with _laid(
        await anyio.create_unix_listener(path, mode=0o600), lambda: _unix(far)
    ) as laid:
        yield laid


@asynccontextmanager
async def cable_to_port(port: int) -> AsyncGenerator[tuple[Cable, int]]:
    """Stand before a port of this machine, at another one."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with _laid(listener, lambda: anyio.connect_tcp("127.0.0.1", port)) as laid:
        yield laid, listener.extra(SocketAttribute.local_port)


async def _unix(path: Path) -> ByteStream:
    return await anyio.connect_unix(path)


@asynccontextmanager
async def _laid(
    listener: Listener[SocketStream], dial: Callable[[], Awaitable[ByteStream]]
) -> AsyncGenerator[Cable]:
    try:
        async with anyio.create_task_group() as tasks:
            cable = Cable(dial)
            tasks.start_soon(listener.serve, cable.handle)
            yield cable
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await listener.aclose()
