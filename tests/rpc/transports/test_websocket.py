"""A client of WebSockets says by name why it has no connection, or lost it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import (
    AddressInvalid,
    ConnectionLost,
    NameRefused,
    NotWebSocket,
    SocketRefused,
    SocketUnsafe,
    TokenRefused,
    UpgradeRefused,
)
from holdfast.rpc.transports.websocket import (
    WebSocketTransport,
    connect_websocket,
    listen_websocket,
)
from holdfast.rpc.transports.websocket_protocol import PingPolicy
from holdfast.rpc.transports.websocket_stream_loop import ServerLimits, WebSocketLimits

pytestmark = pytest.mark.anyio

TOKEN = "s3cret-token"
QUICK = WebSocketLimits(pulse=PingPolicy(every=0.3, silence_longest=1.2))
SOON = 60.0

Talk = Callable[[anyio.abc.SocketStream], Awaitable[None]]


@asynccontextmanager
async def saying(talk: Talk) -> AsyncGenerator[str]:
    """A server that says to whoever connects what is to be said, and nothing more."""
    with anyio.fail_after(SOON):
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

        async def handle(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                await stream.receive()
                await talk(stream)

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            yield f"ws://127.0.0.1:{port}"
            tasks.cancel_scope.cancel()


def answering(answer: str) -> Talk:
    async def talk(stream: anyio.abc.SocketStream) -> None:
        await stream.send(answer.encode())

    return talk


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", TokenRefused(url="{url}")),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", UpgradeRefused(url="{url}", status=403)),
        ("HTTP/1.1 404 Not Found\r\n\r\nnothing", UpgradeRefused(url="{url}", status=404)),
        ("HTTP/1.1 200 OK\r\n\r\n", UpgradeRefused(url="{url}", status=200)),
    ],
)
async def test_what_is_said_instead_has_a_name(answer: str, expected: Failure) -> None:
    async with saying(answering(answer)) as url:
        with pytest.raises(type(expected)) as refused:
            await connect_websocket(url)
    facts = {name: getattr(expected, name) for name in expected.detail_names()} | {"url": url}
    assert refused.value == type(expected)(**facts)


@pytest.mark.parametrize("answer", ["", "HTTP/1.1 101 Switch"])
async def test_who_hangs_up_before_an_answer_is_lost_and_may_come_back(answer: str) -> None:
    async with saying(answering(answer)) as url:
        with pytest.raises(ConnectionLost) as lost:
            await connect_websocket(url)
    assert lost.value == ConnectionLost(reason=f"{url} hung up before it had answered")
    assert lost.value.kind.passes


async def test_a_name_that_the_server_does_not_know_is_told() -> None:
    async with saying(answering("HTTP/1.1 421 Misdirected Request\r\n\r\n")) as url:
        with pytest.raises(NameRefused) as refused:
            await connect_websocket(url)
    assert refused.value == NameRefused(url=url, name=url.removeprefix("ws://"))
    assert "--name 127.0.0.1:" in refused.value.user_message


@pytest.mark.parametrize(
    "answer",
    [
        "220 mail.example ESMTP\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: bm90IHRoZSByaWdodCBvbmU=\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nX: " + "y" * 20_000,
    ],
)
async def test_what_speaks_otherwise_is_no_websocket(answer: str) -> None:
    async with saying(answering(answer)) as url:
        with pytest.raises(NotWebSocket):
            await connect_websocket(url)


async def test_one_who_never_answers_is_given_up() -> None:
    async with saying(lambda _: anyio.sleep_forever()) as url:
        with pytest.raises(SocketRefused) as refused:
            await connect_websocket(url, connect_longest=0.2)
    assert refused.value == SocketRefused(path=url, reason="no answer within 0.2 seconds")


@pytest.mark.parametrize("token", ["t\r\nOrigin: x", "t\n", "\ud800"])
async def test_a_token_that_no_header_can_carry_is_shown_to_nobody(token: str) -> None:
    with pytest.raises(TokenRefused):
        await connect_websocket("ws://127.0.0.1:9", token=token)


async def test_where_nobody_listens_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(SocketRefused):
        await connect_websocket(url)
    with pytest.raises(SocketRefused):
        await connect_websocket(f"unix://{tmp_path}/s")
    (tmp_path / "file").touch()
    with pytest.raises(SocketUnsafe):
        await connect_websocket(f"unix://{tmp_path}/file")
    with pytest.raises(AddressInvalid):
        await connect_websocket("http://127.0.0.1")


@asynccontextmanager
async def connected(
    limits: WebSocketLimits | None = None,
) -> AsyncGenerator[tuple[WebSocketTransport, WebSocketTransport]]:
    """A client and what its server accepted, both with these limits."""
    limits = limits or WebSocketLimits()
    with anyio.fail_after(SOON):
        server = await listen_websocket(
            "ws://127.0.0.1:0", token=TOKEN, limits=ServerLimits(connection=limits)
        )
        client = await connect_websocket(server.url, token=TOKEN, limits=limits)
        accepted = await server.accept()
        await server.aclose()
        try:
            yield client, accepted
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()
                await accepted.aclose()


async def test_two_who_have_nothing_to_say_stay_connected() -> None:
    async with connected(QUICK) as (client, accepted):
        await anyio.sleep(2 * QUICK.pulse.silence_longest)
        await client.send([b"{}"])
        assert await accepted.receive() == [b"{}"]


async def test_one_who_is_slow_to_receive_stays_connected() -> None:
    """The unread keeps us from reading pings and pongs, which is not the other side's silence."""
    async with connected(QUICK) as (client, accepted):
        sent = 0
        while client.offer([b"x" * 2**16]):
            sent += 1
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(2 * QUICK.pulse.silence_longest)
        got = 0
        while got < sent:
            got += len(await accepted.receive())
        await accepted.send([b"{}"])
        assert await client.receive() == [b"{}"]


async def test_large_messages_leave_in_fragments_that_every_peer_takes() -> None:
    """Ours has no frame above 8 MiB, so that a limit of that much is never met."""
    limits = WebSocketLimits(frame_bytes_max=8 * 2**20)
    async with connected(limits) as (client, accepted):
        for sender, receiver in ((client, accepted), (accepted, client)):
            for size in (8 * 2**20, 8 * 2**20 + 1, 20 * 2**20):
                async with anyio.create_task_group() as tasks:
                    message = b"x" * size
                    tasks.start_soon(sender.send, [b"{}", message, b"{}"])
                    got: list[bytes] = []
                    while len(got) < 3:
                        got += await receiver.receive()
                    assert got == [b"{}", message, b"{}"]


async def test_a_batch_of_any_size_leaves_whole_and_in_order() -> None:
    """However much of it the kernel takes at once, and whether or not it was copied before."""
    batches = [
        [b"%d" % n + b"x" * size for n in range(count)]
        for count, size in ((1500, 10_000), (3, 2**20), (5000, 10), (1, 0))
    ]
    async with connected() as pair, anyio.create_task_group() as tasks:
        for teller, listener in (pair, pair[::-1]):
            for batch in batches:
                tasks.start_soon(teller.send, batch)
            told: list[bytes] = []
            while len(told) < sum(map(len, batches)):
                told += await listener.receive()
            assert told == [message for batch in batches for message in batch]


async def test_an_end_that_was_not_said_is_a_loss() -> None:
    async with peer_process() as (process, url):
        transport = await connect_websocket(url)
        assert await transport.receive() == [b'"hello"']
        process.kill()
        with pytest.raises(ConnectionLost) as lost:
            await transport.receive()
        assert lost.value.reason == "the other side hung up without a word"
        await transport.aclose()


async def test_a_black_hole_is_noticed_and_one_who_wakes_in_time_is_not_lost() -> None:
    """A stopped process acknowledges every packet, and answers none."""
    async with peer_process() as (process, url):
        limits = WebSocketLimits(pulse=PingPolicy(every=0.5, silence_longest=3.0))
        transport = await connect_websocket(url, limits=limits)
        assert await transport.receive() == [b'"hello"']
        process.send_signal(signal.SIGSTOP)
        await anyio.sleep(0.7)
        process.send_signal(signal.SIGCONT)
        await transport.send([b'"again"'])
        assert await transport.receive() == [b'"again"']
        process.send_signal(signal.SIGSTOP)
        began = anyio.current_time()
        with pytest.raises(ConnectionLost) as lost:
            await transport.receive()
        assert lost.value == ConnectionLost(reason="no sign of life")
        assert anyio.current_time() - began > 2.0
        await transport.aclose()


PEER = """
import anyio
from holdfast.rpc.transports.websocket import listen_websocket

async def main():
    server = await listen_websocket("ws://127.0.0.1:0", token=None)
    print(server.url, flush=True)
    transport = await server.accept()
    await transport.send([b'"hello"'])
    while True:
        await transport.send(await transport.receive())

anyio.run(main)
"""


@asynccontextmanager
async def peer_process() -> AsyncGenerator[tuple[anyio.abc.Process, str]]:
    """A server in a process of its own, which says hello and then repeats what it hears."""
    with anyio.fail_after(SOON):
        async with await anyio.open_process(
            [sys.executable, "-c", PEER], stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            url = (await process.stdout.receive()).decode().strip()
            yield process, url
            process.kill()


async def test_a_link_of_our_own_to_a_socket_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    server = await listen_websocket(f"unix://{tmp_path}/private/s", token=None)
    link.symlink_to(tmp_path / "private" / "s")
    client = await connect_websocket(f"unix://{link}")
    await client.aclose()
    await server.aclose()
    with pytest.raises(SocketRefused):
        await connect_websocket(f"unix://{link}")
