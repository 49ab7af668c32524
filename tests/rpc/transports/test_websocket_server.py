"""A server of WebSockets lets in whom it should, and nobody can hurt it from outside."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc
import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import (
    ConnectionClosed,
    ListenerUnprotected,
    ListenRefused,
    ServerFull,
    SocketTaken,
    TokenRefused,
)
from holdfast.rpc.transports.websocket import (
    WebSocketServer,
    WebSocketTransport,
    connect_websocket,
    listen_websocket,
    resume_websocket,
)
from holdfast.rpc.transports.websocket_protocol import token_digest
from holdfast.rpc.transports.websocket_stream_loop import ServerLimits

pytestmark = [pytest.mark.anyio, pytest.mark.promise("X12")]

TOKEN = "s3cret-token"
SOON = 60.0


@asynccontextmanager
async def listening(
    url: str = "ws://127.0.0.1:0", *, token: str | None = TOKEN, limits: ServerLimits | None = None
) -> AsyncGenerator[WebSocketServer]:
    with anyio.fail_after(SOON):
        server = await listen_websocket(url, token=token, limits=limits)
        try:
            yield server
        finally:
            await server.aclose()


async def dial(server: WebSocketServer) -> anyio.abc.SocketStream:
    """A plain TCP connection."""
    host, _, port = server.url.removeprefix("ws://").partition(":")
    return await anyio.connect_tcp(host, int(port))


async def status_of(server: WebSocketServer, request: str) -> int:
    """The HTTP status with which a request is answered; 0 if the server just hangs up."""
    async with await dial(server) as stream:
        await stream.send(request.format(host=server.url.removeprefix("ws://")).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            try:
                answer += await stream.receive()
            except anyio.EndOfStream:
                return 0
        return int(answer.split()[1])


UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
BEARER = f"Authorization: Bearer {TOKEN}\r\n"
HOST = "Host: {host}\r\n"


def get(path: str, *headers: str) -> str:
    return f"GET {path} HTTP/1.1\r\n" + "".join(headers) + "\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/", HOST, UPGRADE, BEARER), 101),
        (get("/", HOST, UPGRADE), 401),
        (get("/", HOST, UPGRADE, "Authorization: Bearer wrong\r\n"), 401),
        (get("/", HOST, UPGRADE, BEARER, "Origin: http://evil.test\r\n"), 403),
        (get("/", HOST, UPGRADE, BEARER, "origin: null\r\n"), 403),
        (get("/", UPGRADE, BEARER), 400),
        (get("/", HOST, "host: evil.test\r\n", UPGRADE, BEARER), 400),
        (get("/", "Host: evil.test\r\n", UPGRADE, BEARER), 421),
        (get("/", "Host: 127.0.0.1\r\n", UPGRADE, BEARER), 421),
        (get("/other", HOST, UPGRADE, BEARER), 404),
        (get(f"/?token={TOKEN}", HOST, UPGRADE), 404),
        (get("/readyz", HOST), 200),
        (get("/readyz", "Host: evil.test\r\n"), 421),
        (get("/", HOST, BEARER), 400),
        (get("/", HOST, UPGRADE.replace("13", "12"), BEARER), 400),
        (get("/", HOST, UPGRADE.replace("dGhl", ""), BEARER), 400),
        (get("/", HOST, UPGRADE, BEARER).replace("GET", "POST"), 400),
        (get("/", HOST, UPGRADE, BEARER).replace("1.1\r\n", "1.0\r\n", 1), 400),
        (get("/", HOST, "Content-Length: 5\r\n", UPGRADE, BEARER), 400),
        (get("/", HOST, "X: \x01\r\n", UPGRADE, BEARER), 400),
        (get("/", HOST, UPGRADE, BEARER, "X: y\r\n" * 200), 400),
        (get("/", HOST, UPGRADE, BEARER, f"X: {'y' * 20_000}\r\n"), 0),
        ("\x16\x03\x01\r\n\r\n", 400),
        ("y" * 20_000, 0),
    ],
)
async def test_who_gets_which_answer(request_: str, status: int) -> None:
    async with listening() as server:
        assert await status_of(server, request_) == status


async def test_compression_is_not_agreed_to() -> None:
    asks = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    async with listening() as server, await dial(server) as stream:
        request = get("/", HOST, UPGRADE, BEARER, asks)
        await stream.send(request.format(host=server.url.removeprefix("ws://")).encode())
        assert b"extensions" not in (await stream.receive()).lower()


@pytest.mark.parametrize("token", [None, ""])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
async def test_an_address_for_others_needs_a_token(host: str, token: str | None) -> None:
    with pytest.raises(ListenerUnprotected) as refused:
        await listen_websocket(f"ws://{host}:0", token=token)
    assert refused.value.kind.exit_status == 78


async def test_an_address_for_others_is_listened_at_with_a_token() -> None:
    async with listening("ws://0.0.0.0:0") as server:
        port = server.url.rpartition(":")[2]
        ours = await connect_websocket(f"ws://localhost:{port}", token=TOKEN)
        theirs = await server.accept()
        await ours.aclose()
        await theirs.aclose()


async def test_where_somebody_listens_or_nobody_may_is_said() -> None:
    async with listening() as server:
        with pytest.raises(SocketTaken):
            await listen_websocket(server.url, token=TOKEN)
    with pytest.raises(ListenRefused):
        await listen_websocket("ws://192.0.2.1:0", token=TOKEN)


async def test_whoever_does_not_ask_is_hung_up_on() -> None:
    """A byte now and then does not help."""
    limits = ServerLimits(handshake_longest=0.3)
    async with listening(limits=limits) as server, await dial(server) as stream:
        began = anyio.current_time()
        with suppress(anyio.BrokenResourceError):
            for letter in "GET / HTTP/1.1" * 100:
                await stream.send(letter.encode())
                await anyio.sleep(0.05)
        assert anyio.current_time() - began < 30.0  # of more than a minute


async def test_many_sockets_that_do_not_ask_keep_nobody_out() -> None:
    """However many there are: the oldest are put out, and few are held at once."""
    limits = ServerLimits(handshakes_max=16, handshake_longest=60.0)
    async with listening(limits=limits) as server, AsyncExitStack() as stack:
        before = descriptors()
        for _ in range(200):
            await stack.enter_async_context(await dial(server))
        ours = await connect_websocket(server.url, token=TOKEN)
        theirs = await server.accept()
        assert await status_of(server, get("/readyz", HOST)) == 200
        assert descriptors() - before <= 200 + 16 + 2
        await ours.aclose()
        await theirs.aclose()


@pytest.mark.long
async def test_ten_thousand_sockets_hurt_nobody() -> None:
    """They come in waves, as no process may have more open itself."""
    async with listening() as server:
        ours = await connect_websocket(server.url, token=TOKEN)
        theirs = await server.accept()
        for _ in range(20):
            async with AsyncExitStack() as stack:
                for _ in range(500):
                    await stack.enter_async_context(await dial(server))
                await ours.send([b"{}"])
                assert await theirs.receive() == [b"{}"]
                assert await status_of(server, get("/readyz", HOST)) == 200
        await ours.aclose()
        await theirs.aclose()


async def test_no_more_are_connected_than_allowed() -> None:
    async with listening(limits=ServerLimits(connections_max=2)) as server:
        pairs = [await pair(server) for _ in range(2)]
        with pytest.raises(ServerFull):
            await connect_websocket(server.url, token=TOKEN)
        assert await status_of(server, get("/readyz", HOST)) == 200
        for transport in pairs.pop():
            await transport.aclose()
        pairs.append(await pair(server))
        for transport in (*pairs[0], *pairs[1]):
            await transport.aclose()


async def pair(server: WebSocketServer) -> tuple[WebSocketTransport, WebSocketTransport]:
    return await connect_websocket(server.url, token=TOKEN), await server.accept()


async def test_those_who_left_before_they_were_accepted_are_passed_over() -> None:
    async with listening() as server:
        first = await connect_websocket(server.url, token=TOKEN)
        await first.aclose()
        second, theirs = await pair(server)
        await second.send([b"{}"])
        assert await theirs.receive() == [b"{}"]
        await second.aclose()
        await theirs.aclose()


async def test_closing_ends_accepting_but_not_what_was_accepted() -> None:
    async with listening() as server, anyio.create_task_group() as tasks:
        ours, theirs = await pair(server)
        unfetched = await connect_websocket(server.url, token=TOKEN)
        ended: list[Failure] = []

        async def accept_for_ever() -> None:
            try:
                while True:
                    await server.accept()
            except Failure as failure:
                ended.append(failure)

        await server.aclose()
        await server.aclose()
        tasks.start_soon(accept_for_ever)
        await ours.send([b"{}"])
        assert await theirs.receive() == [b"{}"]
        with pytest.raises(Failure):
            await unfetched.receive()
        for transport in (ours, theirs, unfetched):
            await transport.aclose()
    assert ended == [ConnectionClosed(reason="closed by us")]


async def test_a_unix_socket_asks_for_no_name_but_for_the_token(tmp_path: Path) -> None:
    path = tmp_path / "private" / "s"
    async with listening(f"unix://{path}") as server:
        assert server.url == f"unix://{path}"
        assert path.stat().st_mode & 0o777 == 0o600
        async with await anyio.connect_unix(path) as stream:
            await stream.send(get("/", "Host: whatever\r\n", UPGRADE, BEARER).encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 101 ")
        async with await anyio.connect_unix(path) as stream:
            await stream.send(get("/", "Host: whatever\r\n", UPGRADE).encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 401 ")
    assert not path.exists()


@pytest.mark.parametrize("way", ["tcp", "unix"])
async def test_who_comes_while_nobody_accepts_is_let_in_by_the_next(
    tmp_path: Path, way: str
) -> None:
    url = f"unix://{tmp_path}/private/s" if way == "unix" else "ws://127.0.0.1:0"
    async with listening(url) as first:
        assert first.is_quiet
        left = first.detach()
        await first.aclose()
        with pytest.raises(ConnectionClosed):
            await first.accept()
        dialled: list[WebSocketTransport] = []

        async def knock() -> None:
            dialled.append(await connect_websocket(first.url, token=TOKEN))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(knock)
            await anyio.wait_readable(left)
            second = resume_websocket(left, token=TOKEN)
            accepted = await second.accept()
        assert (second.url, second.is_quiet) == (first.url, False)
        await dialled[0].aclose()
        with pytest.raises(Failure):
            await accepted.receive()
        await accepted.aclose()
        await second.aclose()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_a_stranger_at_a_unix_socket_is_hung_up_on(tmp_path: Path) -> None:
    path = tmp_path / "private" / "s"
    async with listening(f"unix://{path}", token=None):
        for place in (path, *path.parents):
            if place.stat().st_uid == 0 and place not in (Path("/"), Path("/tmp")):
                place.chmod(0o777)
        with socket.socket(socket.AF_UNIX) as stranger:
            os.seteuid(65534)
            try:
                stranger.connect(str(path))
            finally:
                os.seteuid(0)
            await anyio.wait_readable(stranger)
            assert stranger.recv(1) == b""


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_who_accepts_a_guest_is_told_its_name_and_guests_may_change() -> None:
    guests = {token_digest("one"): "first"}
    server = await listen_websocket("ws://127.0.0.1:0", token=TOKEN, guests=guests)
    try:
        for token, guest in (("one", "first"), (TOKEN, "")):
            ours = await connect_websocket(server.url, token=token)
            theirs = await server.accept()
            assert theirs.guest == guest
            await ours.aclose()
            await theirs.aclose()
        guests.clear()
        with pytest.raises(TokenRefused):
            await connect_websocket(server.url, token="one")
    finally:
        await server.aclose()
