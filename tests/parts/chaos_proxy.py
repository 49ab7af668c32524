"""A TCP proxy before a WebSocket server that cuts, refuses, swallows and withholds as told.

It understands just enough of WebSocket frames to withhold one whole message of the server.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from math import inf

import anyio
from anyio.abc import SocketAttribute, SocketStream

_RESET = struct.pack("ii", 1, 0)
_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(eq=False)
class Link:
    """One connection through the proxy; both sides of it can be harmed apart."""

    near: SocketStream  # towards the client
    far: SocketStream  # towards the server
    is_swallowed: bool = False
    is_hung_up: bool = False  # the server has, and the client does not know
    carried: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})

    async def reset(self) -> None:
        """Tell both sides, rudely."""
        await self.reset_near()
        await _reset(self.far)

    async def reset_near(self) -> None:
        """Tell the client only: the server goes on believing in the connection."""
        self.is_swallowed = True
        await _reset(self.near)


class ChaosProxy:
    """Stands between a client and a server; its public attributes are the faults to come.

    `port`: where the server is. `refuses`: who dials is reset at once. `cut_after`: a link is
    reset when it has carried so many bytes of one direction. `withholds`: the first message of
    the server of which this is true is lost, and its link reset. `overtakes`: every message of the
    server of which this is true is held back until the next one has passed. `delay`: seconds that
    each read of the server's side is held back.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.refuses = False
        self.cut_after: dict[str, float] = {"up": inf, "down": inf}
        self.withholds: Callable[[bytes], bool] | None = None
        self.overtakes: Callable[[bytes], bool] | None = None
        self.overtaken = 0
        self.delay = 0.0
        self.links: list[Link] = []
        self.dials = 0

    async def cut(self) -> None:
        """Reset every connection that there is."""
        for link in self.links:
            await link.reset()

    def swallow(self) -> None:
        """Carry nothing any more on the links that there are, and tell nobody."""
        for link in self.links:
            link.is_swallowed = True

    async def half_open(self) -> None:
        """End every link for the client, and for the server not."""
        for link in self.links:
            await link.reset_near()

    async def handle(self, near: SocketStream) -> None:
        """Carry one connection."""
        self.dials += 1
        try:
            if self.refuses:
                raise ConnectionRefusedError
            far = await anyio.connect_tcp("127.0.0.1", self.port)
        except OSError:  # or there is no server at the moment
            await _reset(near)
            return
        async with near, far:
            link = Link(near, far)
            self.links.append(link)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._carry, link, "up")
                await self._carry(link, "down")
                if link.is_swallowed:
                    link.is_hung_up = True
                    await anyio.sleep_forever()
                tasks.cancel_scope.cancel()

    async def _carry(self, link: Link, way: str) -> None:
        source, sink = (link.near, link.far) if way == "up" else (link.far, link.near)
        frames = _Frames()
        while True:
            try:
                data = await source.receive()
            except _GONE:
                break
            if way == "down":
                await anyio.sleep(self.delay)
                data = self._filtered(frames, data)
            room = self.cut_after[way] - link.carried[way]
            is_cut = len(data) >= room
            data = data[: int(min(room, len(data)))]
            link.carried[way] += len(data)
            if link.is_swallowed:
                continue
            try:
                await sink.send(data)
            except _GONE:
                break
            if is_cut or frames.is_withheld:
                self.cut_after[way] = inf
                await link.reset()
                break
        if not link.is_swallowed:
            await _reset(sink)

    def _filtered(self, frames: _Frames, data: bytes) -> bytes:
        if self.withholds is None and self.overtakes is None and not frames.is_in_use:
            return data
        passed = b""
        for frame in frames.feed(data):
            if self.withholds is not None and self.withholds(frame):
                self.withholds, frames.is_withheld = None, True
            elif not frames.held and self.overtakes is not None and self.overtakes(frame):
                frames.held = frame
            else:
                self.overtaken += bool(frames.held)
                passed += frame + frames.held
                frames.held = b""
        return passed


class _Frames:
    """Whole frames of a server, which does not mask them; the HTTP answer counts as one."""

    def __init__(self) -> None:
        self._buffer = b""
        self.held = b""
        self.is_in_use = False
        self.is_withheld = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self.is_in_use = True
        if data.startswith(b"HTTP/1.1 101"):
            head, end, data = data.partition(b"\r\n\r\n")
            yield head + end
        self._buffer += data
        while (size := _frame_size(self._buffer)) is not None and size <= len(self._buffer):
            frame, self._buffer = self._buffer[:size], self._buffer[size:]
            yield frame


def _frame_size(data: bytes) -> int | None:
    if len(data) < 2:
        return None
    size, head = data[1] & 0x7F, 2
    if size >= 126:
        head += 2 if size == 126 else 8
        if len(data) < head:
            return None
        size = int.from_bytes(data[2:head])
    return head + size


async def _reset(stream: SocketStream) -> None:
    raw: socket.socket = stream.extra(SocketAttribute.raw_socket)
    with suppress(OSError):  # it may be closed already
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    await anyio.aclose_forcefully(stream)


@asynccontextmanager
async def chaos_proxy(port: int) -> AsyncGenerator[tuple[ChaosProxy, str]]:
    """A proxy before a port of this machine, and the URL at which it listens."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    try:
        async with anyio.create_task_group() as tasks:
            proxy = ChaosProxy(port)
            tasks.start_soon(listener.serve, proxy.handle)
            yield proxy, f"ws://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await listener.aclose()
