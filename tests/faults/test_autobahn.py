"""Whatever a peer does with frames, both our sides answer as the protocol asks."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest
from picows import WSFrame, WSMsgType, WSTransport

from holdfast.failures import Failure
from holdfast.rpc.failures import SocketRefused
from holdfast.rpc.transports.websocket_protocol import (
    ADMITTED,
    BINARY,
    TEXT,
    TcpAddress,
    text_parts,
)
from holdfast.rpc.transports.websocket_stream_loop import (
    FRAGMENT_BYTES,
    WebSocketLimits,
    WebSocketStream,
    client_codec,
    server_codec,
)
from holdfast.rpc.transports.websocket_wire_loop import connect_tcp
from tests.parts.autobahn import AGENT, EVERYTHING, command, verdicts, write_spec

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]

LIMITS = WebSocketLimits()
PATIENCE, START_LONGEST = 300.0, 30.0

SOME = ("1.*", "2.*", "3.*", "4.*", "5.*", "6.1.*", "6.2.*", "6.3.*", "7.*", "9.7.1", "10.*")
AMOUNTS = {SOME: 112, EVERYTHING: 301}

GOOD = {"OK", "NON-STRICT", "INFORMATIONAL"}
DATA = (WSMsgType.CONTINUATION, WSMsgType.TEXT, WSMsgType.BINARY)

long = pytest.mark.long
HOW_MANY = [pytest.param(SOME, id="some"), pytest.param(EVERYTHING, id="all", marks=long)]


@pytest.mark.parametrize("cases", HOW_MANY)
async def test_our_server_passes(tmp_path: Path, cases: tuple[str, ...]) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    url = str(TcpAddress(*listener.getsockname()))
    spec = write_spec(tmp_path / "spec.json", cases, servers=[{"agent": AGENT, "url": url}])
    async with suite("fuzzingclient", spec) as process, anyio.create_task_group() as tasks:
        tasks.start_soon(serve_echo, listener)
        await process.wait()
        tasks.cancel_scope.cancel()
    listener.close()
    assert_passed(verdicts(tmp_path / "reports"), cases)


@pytest.mark.parametrize("cases", HOW_MANY)
async def test_our_client_passes(tmp_path: Path, cases: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = TcpAddress(*probe.getsockname())
    spec = write_spec(tmp_path / "spec.json", cases, url=str(address))
    async with suite("fuzzingserver", spec) as process:
        amount = int((await ask(address, "/getCaseCount"))[0])
        for case in range(1, amount + 1):
            await ask(address, f"/runCase?case={case}&agent={AGENT}")
        await ask(address, f"/updateReports?agent={AGENT}")
        process.kill()
    assert_passed(verdicts(tmp_path / "reports"), cases)


def assert_passed(said: dict[str, tuple[str, str]], cases: tuple[str, ...]) -> None:
    assert len(said) == AMOUNTS[cases]
    bad = {case: verdict for case, verdict in said.items() if not GOOD.issuperset(verdict)}
    assert bad == {}


class Echo(WebSocketStream):
    """A stream that knows which messages were binary: our transports do not care."""

    _began_as = WSMsgType.TEXT

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type in (WSMsgType.TEXT, WSMsgType.BINARY):
            self._began_as = frame.msg_type
        if frame.fin and frame.msg_type in DATA:
            self.kinds.append(self._began_as)
        super().on_ws_frame(transport, frame)

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.kinds: list[WSMsgType] = []
        self.transport = transport
        super().on_ws_connected(transport)

    async def give_back(self) -> list[bytes]:
        """Give every message back as it came, until the socket is let go of; return them all."""
        assert self.writer is not None
        came: list[bytes] = []
        try:
            while True:
                for message in await self.read_queue.receive():
                    came.append(message)
                    if self.kinds.pop(0) is WSMsgType.TEXT:
                        await self.writer.send([message])
                    else:
                        await self._give_back_binary(message)
        except Failure:
            await self.released.wait()
        return came

    async def _give_back_binary(self, message: bytes) -> None:
        assert self.writer is not None
        if self.transport.is_client_side:
            self.transport.send(WSMsgType.BINARY, message)
            await self.writer.send([])  # lets go what picows was told to say
        else:
            head, *rest = text_parts([message], frame_bytes_max=FRAGMENT_BYTES)
            self._wire.push(bytes((head[0] ^ TEXT ^ BINARY,)) + head[1:], *rest)


async def serve_echo(listener: socket.socket) -> None:
    """Give back what comes, to one after the other."""
    while True:
        await anyio.wait_readable(listener)
        settled = anyio.Event()
        stream = Echo(listener.accept()[0], LIMITS, settled.set)
        codec = server_codec(stream, judge=lambda _: ADMITTED, limits=LIMITS)
        stream.start(codec, handshake_longest=5.0)
        await settled.wait()
        if stream.writer is not None:
            await stream.give_back()


async def ask(address: TcpAddress, path: str) -> list[bytes]:
    """Connect to one path, give back what comes, and return it."""
    settled = anyio.Event()
    stream = Echo(await patiently(address), LIMITS, settled.set)
    codec = client_codec(stream, host=address.authority, path=path, headers={}, limits=LIMITS)
    stream.start(codec, handshake_longest=5.0)
    await settled.wait()
    return await stream.give_back()


async def patiently(address: TcpAddress) -> socket.socket:
    """A connection to the suite, which takes a moment to listen."""
    with anyio.fail_after(START_LONGEST):
        while True:
            try:
                return await connect_tcp(address)
            except SocketRefused:
                await anyio.sleep(0.1)


@asynccontextmanager
async def suite(mode: str, spec: Path) -> AsyncGenerator[anyio.abc.Process]:
    """The suite at work."""
    argv, environment = command(mode, spec)
    with anyio.fail_after(PATIENCE):
        async with await anyio.open_process(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as process:
            yield process
