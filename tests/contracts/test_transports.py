"""Every transport keeps the same promises."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.framing import join, socket_failure
from holdfast.rpc.testing import TransportContract
from holdfast.rpc.transports.child import ChildTransport, spawn
from holdfast.rpc.transports.launch import ChildCommand
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.rpc.transports.stream_loop import LineStream
from holdfast.rpc.transports.unix import UnixTransport, connect, listen
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


class MemoryFarEnd:
    """The far end of a connection in memory."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self.receive = transport.receive
        self.send = transport.send
        self.aclose = transport.aclose

    async def cut(self, messages: Sequence[bytes], *, after: int) -> None:
        self._transport.outgoing.cut_after = after
        await self.send(messages)


class TestMemory(TransportContract):
    """Two ends in one process, in virtual time."""

    @pytest.fixture(params=range(3), ids="seed{}".format)
    def anyio_backend(self, request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
        return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[MemoryTransport, MemoryFarEnd]]:
        ours, far = pair(message_bytes_max=message_bytes_max)
        yield ours, MemoryFarEnd(far)


class DescriptorFarEnd:
    """The far end of a byte stream, which can also write half a message."""

    def __init__(self, *, read_fd: int, write_fd: int) -> None:
        self._stream = LineStream(
            read_fd=read_fd, write_fd=write_fd, message_bytes_max=2**30, judge=socket_failure
        )
        self.receive = self._stream.reader.receive
        self.send = self._stream.writer.send

    async def cut(self, messages: Sequence[bytes], *, after: int) -> None:
        data = join(messages)[:after]
        assert os.write(self._stream.writer.fd, data) == len(data)
        self._stream.close()

    async def aclose(self) -> None:
        self._stream.retire(ConnectionClosed(reason="closed by the test"))
        with anyio.move_on_after(1.0):
            await self._stream.writer.flushed()
        self._stream.close()


class TestUnixClient(TransportContract):
    """We dialled, somebody else listens."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        self.path = tmp_path / "s"

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[UnixTransport, DescriptorFarEnd]]:
        with socket.socket(socket.AF_UNIX) as listener:
            self.path.unlink(missing_ok=True)
            listener.bind(str(self.path))
            listener.listen()
            ours = await connect(self.path, message_bytes_max=message_bytes_max)
            fd = listener.accept()[0].detach()
        yield ours, DescriptorFarEnd(read_fd=fd, write_fd=fd)


class TestUnixServer(TransportContract):
    """We listen, somebody else dialled."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "private" / "s"

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[UnixTransport, DescriptorFarEnd]]:
        server = await listen(self.path, message_bytes_max=message_bytes_max)
        dialled = socket.socket(socket.AF_UNIX)
        dialled.connect(str(self.path))
        ours = await server.accept()
        await server.aclose()
        fd = dialled.detach()
        yield ours, DescriptorFarEnd(read_fd=fd, write_fd=fd)


# The child hands its standard input and output to the test, and lives until the test is done.
LENDS_ITS_PIPES = """
import os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
socket.send_fds(line, [b"x"], [0, 1])
os.close(0)
os.close(1)
line.recv(1)
"""


class ChildFarEnd(DescriptorFarEnd):
    """What the child reads and writes, held by the test; the child ends when it is let go."""

    def __init__(self, line: socket.socket) -> None:
        _, (read_fd, write_fd), _, _ = socket.recv_fds(line, 1, 2)
        super().__init__(read_fd=read_fd, write_fd=write_fd)
        self._line = line

    async def cut(self, messages: Sequence[bytes], *, after: int) -> None:
        await self._let_go()
        await super().cut(messages, after=after)

    async def aclose(self) -> None:
        await self._let_go()
        await super().aclose()

    async def _let_go(self) -> None:
        """Let the child end, and wait until it is at it: a busy machine may take its time."""
        if self._line.fileno() >= 0:
            self._line.shutdown(socket.SHUT_WR)
            await anyio.wait_readable(self._line)
            self._line.close()


class TestChild(TransportContract):
    """The far end is a process of ours."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "s"

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[ChildTransport, ChildFarEnd]]:
        argv = (sys.executable, "-I", "-S", "-c", LENDS_ITS_PIPES, str(self.path))
        with socket.socket(socket.AF_UNIX) as listener:
            self.path.unlink(missing_ok=True)
            listener.bind(str(self.path))
            listener.listen()
            ours = await spawn(
                ChildCommand(argv=argv, cwd="/", env={}),
                grace=0.5,
                message_bytes_max=message_bytes_max,
            )
            await anyio.wait_readable(listener)
            far = ChildFarEnd(listener.accept()[0])
        yield ours, far
