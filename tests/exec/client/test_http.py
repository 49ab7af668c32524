"""Web requests that the server makes: whole or streamed, byte for byte, and broken off by name."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from holdfast.exec.client.client import Client
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.failures import HttpFailed, OutcomeUnknown, RequestInvalid
from holdfast.exec.model import ClientState, Command, Fetch, Fetched, Output, WebHeader
from holdfast.rpc.failures import SocketRefused
from holdfast.rpc.transports.memory import MemoryTransport
from tests.exec.server.housing import Housed, housed
from tests.exec.server.methods.test_http import BROKEN, CHUNKED, PLAIN, Site, site
from tests.exec.server.talking import until

pytestmark = pytest.mark.anyio

POLICY = RecoveryPolicy(window=60.0, wait_first=0.01, wait_longest=0.1)
DATA = random.Random(1).randbytes(6 * 2**20)
LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(DATA) + DATA


@dataclass
class Dialling:
    """A way to the server that can be cut and barred."""

    server: Housed
    is_barred: bool = False
    links: list[MemoryTransport] = field(default_factory=list[MemoryTransport])

    async def dial(self) -> MemoryTransport:
        if self.is_barred:
            raise SocketRefused(path="here", reason="barred")
        self.links.append(await self.server.dial())
        return self.links[-1]


@asynccontextmanager
async def browsing(
    state: Path, answers: dict[str, bytes]
) -> AsyncGenerator[tuple[Client, Site, Dialling]]:
    async with site(answers) as web, housed(state, environment={"MINE": "x"}) as server:
        dialling = Dialling(server)
        async with Client(dialling.dial, policy=POLICY) as client:
            yield client, web, dialling


async def test_an_answer_is_returned_whole(tmp_path: Path) -> None:
    async with browsing(tmp_path, {"/": PLAIN}) as (client, web, _):
        header = WebHeader("Authorization", "Bearer ", variable="MINE")
        found = await client.http.request(
            Fetch(web.url, method="POST", headers=(header,), body=b"\0hi")
        )

    assert found == Fetched(200, (("Content-Length", "5"), ("X-A", "1")), b"hello")
    assert web.asked[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"Authorization: Bearer x\r\n" in web.asked[0]
    assert web.asked[0].endswith(b"\r\n\r\n\0hi")


async def test_redirects_are_followed_unless_they_must_not_be(tmp_path: Path) -> None:
    away = b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
    async with browsing(tmp_path, {"/": away, "/there": PLAIN}) as (client, web, _):
        followed = await client.http.request(Fetch(web.url))
        stopped = await client.http.request(Fetch(web.url, follows_redirects=False))

    assert (followed.status, followed.body, stopped.status) == (200, b"hello", 302)


async def test_what_has_no_answer_says_why(tmp_path: Path) -> None:
    async with browsing(tmp_path, {"/": BROKEN}) as (client, web, _):
        for fetch, expected in (
            (Fetch(web.url), HttpFailed),
            (Fetch("http://127.0.0.1:1/"), HttpFailed),
            (Fetch(f"{web.url}/never", timeout=0.1), HttpFailed),
            (Fetch("file:///etc/passwd"), RequestInvalid),
        ):
            with pytest.raises(expected):
                await client.http.request(fetch)
            with pytest.raises(expected):
                async with client.http.stream(fetch) as answer:
                    async for _ in answer:
                        pass


async def test_a_body_is_streamed_byte_for_byte(tmp_path: Path) -> None:
    async with browsing(tmp_path, {"/": CHUNKED, "/large": LARGE}) as (client, web, _):
        async with client.http.stream(Fetch(web.url)) as answer:
            assert (answer.status, dict(answer.headers)) == (200, {"Transfer-Encoding": "chunked"})
            assert b"".join([data async for data in answer]) == b"hello world"
        async with client.http.stream(Fetch(f"{web.url}/large")) as answer:
            assert b"".join([data async for data in answer]) == DATA


@pytest.mark.promise("X11")
async def test_a_slow_reader_makes_the_server_wait(tmp_path: Path) -> None:
    async with endless() as web, housed(tmp_path) as server:
        async with Client(server.dial) as client:
            async with client.http.stream(Fetch(web.url)) as answer:
                sent = -1
                while sent != web.sent:  # until nothing moves any more
                    sent = web.sent
                    await anyio.sleep(0.3)
                assert sent < 32 * 2**20  # most of it is in the buffers of the kernel
                assert (await client.http.request(Fetch(f"{web.url}/small"))).body == b"hello"
                got = 0
                async for data in answer:
                    got += len(data)
                    if got > 3 * sent:
                        break
            with anyio.fail_after(60):
                await web.left.wait()  # what nobody wants is not asked for any further


@pytest.mark.promise("X2")
async def test_a_body_fails_at_once_while_handles_stay_open(tmp_path: Path) -> None:
    """No recovery is waited for: what has not come will never come."""
    async with endless() as web, housed(tmp_path) as server:
        dialling = Dialling(server)
        async with Client(dialling.dial, policy=POLICY) as client:
            process = await client.start(
                Command(("cat",), "/", {"PATH": "/usr/bin:/bin"}, has_stdin=True)
            )
            async with client.http.stream(Fetch(f"{web.url}/silent")) as answer:
                dialling.is_barred = True
                dialling.links[-1].cut()
                with anyio.fail_after(30), pytest.raises(HttpFailed):
                    async for _ in answer:
                        pass

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.write, b"still here")
                tasks.start_soon(client.http.request, Fetch(f"{web.url}/small"))
                await anyio.sleep(0.3)
                assert client.state is ClientState.RECOVERING
                dialling.is_barred = False
            assert await process.receive() == [Output(1, "stdout", b"still here")]


@pytest.mark.promise("X7")
async def test_a_request_under_way_at_a_cut_is_not_repeated(tmp_path: Path) -> None:
    async with browsing(tmp_path, {}) as (client, web, dialling):

        async def cut() -> None:
            await until(lambda: bool(web.asked))
            dialling.links[-1].cut()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            with pytest.raises(OutcomeUnknown):
                await client.http.request(Fetch(f"{web.url}/never", method="POST"))
        async with anyio.create_task_group() as tasks:
            web.asked.clear()
            tasks.start_soon(cut)
            with pytest.raises(OutcomeUnknown):
                async with client.http.stream(Fetch(f"{web.url}/never")):
                    pass

    assert len(web.asked) == 1


class Endless(Site):
    """Goes on for ever, but for what is /small, or /silent after its head."""

    def __init__(self) -> None:
        super().__init__({"/small": PLAIN})
        self.sent = 0
        self.left = anyio.Event()

    async def attend(self, stream: SocketStream) -> None:
        async with stream:
            head = (await stream.receive()).split(b" ")[1].decode()
            if head in self.answers:
                await stream.send(self.answers[head])
                return
            await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
            if head == "/silent":
                await anyio.sleep_forever()
            try:
                while True:
                    await stream.send(bytes(2**16))
                    self.sent += 2**16
            except anyio.BrokenResourceError:
                self.left.set()


@asynccontextmanager
async def endless() -> AsyncGenerator[Endless]:
    web = Endless()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    web.url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, web.attend)
        yield web
        tasks.cancel_scope.cancel()
