"""Requests over real connections: in the clear, in secret, and through a proxy."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from holdfast.agent.failures import ModelUnreachable
from holdfast.agent.providers.http_client_loop import HttpWeb
from holdfast.agent.providers.http_request import How, Lost, Place, Proxies, Request, WebAnswer
from holdfast.agent.providers.registry import Format
from holdfast.agent.testing import SHORTEST, heard
from tests.agent.asked import AT_ONCE, models_at
from tests.agent.speaking import NAME, OK, Connection, Speaker, certified, speaking, tunnelling
from tests.parts.provider_frames import frames

pytestmark = pytest.mark.anyio

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, which makes certificates, is missing"
)
Talk = Callable[[Connection], Awaitable[None]]
LONG = 60.0  # seconds that nothing here takes


def saying(*answers: bytes) -> Talk:
    """Answer the requests of each connection one after the other, and end it."""

    async def talk(line: Connection) -> None:
        for answer in answers:
            await line.request()
            await line.say(answer)

    return talk


async def always(line: Connection) -> None:
    """Answer all requests of a connection."""
    while True:
        await line.request()
        await line.say(OK)


async def deaf(line: Connection) -> None:
    """Say nothing, and hear nothing."""
    await asyncio.Event().wait()


async def silent(line: Connection) -> None:
    """Hear everything, and say nothing."""
    while await line.reader.read(2**16):
        pass


@asynccontextmanager
async def reaching(
    talk: Talk, context: ssl.SSLContext | None = None, proxies: Proxies | None = None
) -> AsyncGenerator[tuple[HttpWeb, Speaker]]:
    async with speaking(talk, context) as speaker:
        web = HttpWeb(proxies=proxies)
        try:
            yield web, speaker
        finally:
            await web.close()


def at(port: int, *, host: str = "127.0.0.1", is_secret: bool = False) -> Place:
    return Place(host, port, is_secret, "/v1/x")


async def ask(
    web: HttpWeb, place: Place, body: bytes = b"{}", *, connect: float = LONG, within: float = LONG
) -> tuple[int, bytes] | Lost:
    """The status and the whole body, or why there is none."""
    until = anyio.current_time() + within
    answer = await web.ask(Request(place, {"a": "b"}, body), connect=connect, until=until)
    if isinstance(answer, Lost):
        return answer
    found = await whole(answer, until=until)
    return found if isinstance(found, Lost) else (answer.head.status, found)


async def whole(answer: WebAnswer, *, until: float) -> bytes | Lost:
    """The whole body, or why there is none."""
    try:
        found = b""
        while chunk := await answer.read(until=until):
            if isinstance(chunk, Lost):
                return chunk
            found += chunk
        return found
    finally:
        answer.close()


async def test_what_is_sent_arrives_as_it_is() -> None:
    async with reaching(always) as (web, speaker):
        assert await ask(web, at(speaker.port), b"body") == (200, b"ok")

    assert speaker.heard == [
        b"POST /v1/x HTTP/1.1\r\nhost: 127.0.0.1:%d\r\na: b\r\naccept-encoding: identity\r\n"
        b"content-length: 4\r\n\r\nbody" % speaker.port
    ]


async def test_a_connection_is_used_again() -> None:
    async with reaching(always) as (web, speaker):
        assert [await ask(web, at(speaker.port)) for _ in range(5)] == [(200, b"ok")] * 5
        assert (speaker.connections, speaker.ended) == (1, 0)
        await web.close()
        await speaker.until(lambda: speaker.ended == 1)


async def test_those_who_ask_at_once_have_connections_of_their_own_and_few_are_kept() -> None:
    answers = asyncio.Event()

    async def together(line: Connection) -> None:
        while True:
            await line.request()
            if len(line.heard) == 20:
                answers.set()
            await answers.wait()
            await line.say(OK)

    found: list[object] = []

    async def one() -> None:
        found.append(await ask(web, at(speaker.port)))

    async with reaching(together) as (web, speaker):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
        assert found == [(200, b"ok")] * 20
        assert speaker.connections == 20
        await speaker.until(lambda: speaker.ended == 12)
        await ask(web, at(speaker.port))
        assert (speaker.connections, speaker.ended) == (20, 12)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", (200, b"ok")),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", (200, b"ok")),
        (OK + b"surplus", (200, b"ok")),
    ],
)
async def test_what_cannot_be_used_again_is_ended_by_us(
    answer: bytes, expected: tuple[int, bytes]
) -> None:
    async def talk(line: Connection) -> None:
        await line.request()
        await line.say(answer)
        await line.reader.read()

    async with reaching(talk) as (web, speaker):
        assert await ask(web, at(speaker.port)) == expected
        await speaker.until(lambda: speaker.ended == 1)
        assert await ask(web, at(speaker.port)) == expected
        assert speaker.connections == 2


@pytest.mark.parametrize("last", [b"", OK, b"\x00"])
async def test_a_kept_connection_that_has_ended_or_spoken_is_replaced(last: bytes) -> None:
    """What was asked goes out once, on another one."""
    spoken = asyncio.Event()

    async def talk(line: Connection) -> None:
        await line.request()
        await line.say(OK)
        await spoken.wait()
        line.writer.write(last)
        if last:
            await line.reader.read()

    async with reaching(talk) as (web, speaker):
        assert await ask(web, at(speaker.port)) == (200, b"ok")
        spoken.set()
        await speaker.until(lambda: speaker.ended == 1)
        assert await ask(web, at(speaker.port)) == (200, b"ok")
        assert (speaker.connections, len(speaker.heard)) == (2, 2)


async def test_what_may_have_been_seen_is_not_sent_twice() -> None:
    """A kept connection that ends when a request is out: nobody can tell what came of it."""

    async def talk(line: Connection) -> None:
        await line.request()
        await line.say(OK)
        await line.request()

    async with reaching(talk) as (web, speaker):
        assert await ask(web, at(speaker.port)) == (200, b"ok")
        assert await ask(web, at(speaker.port)) == Lost(How.GONE, "it broke off")
        assert (speaker.connections, len(speaker.heard)) == (1, 2)


async def test_nothing_is_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reaching(always) as (web, speaker):
        await ask(web, at(speaker.port))
        loop = asyncio.get_running_loop()
        for later in (80.0, 180.0):
            monkeypatch.setattr(loop, "time", lambda now=loop.time, later=later: now() + later)
            assert await ask(web, at(speaker.port)) == (200, b"ok")
            monkeypatch.undo()
        assert speaker.connections == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", (200, b"to the end")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (200, b"ok")),
        (b"", Lost(How.GONE, "it broke off")),
        (b"HTTP/1.1 200 OK\r\n", Lost(How.GONE, "it broke off")),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", Lost(How.GONE, "it broke off")),
        (b"SSH-2.0-x\r\n", Lost(How.GONE, "it does not begin like an answer")),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx",
            Lost(How.GONE, "it has two lengths"),
        ),
    ],
)
async def test_what_comes_of_an_answer(answer: bytes, expected: object) -> None:
    async with reaching(saying(answer)) as (web, speaker):
        assert await ask(web, at(speaker.port)) == expected


async def test_what_is_not_read_is_not_taken() -> None:
    """Of an answer, a little more than a MiB waits for its reader, however fast it comes."""
    size = 24 * 2**20
    said = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + bytes(size)
    async with reaching(saying(said)) as (web, speaker):
        until = anyio.current_time() + LONG
        answer = await web.ask(Request(at(speaker.port), {}, b""), connect=LONG, until=until)
        assert not isinstance(answer, Lost)
        chunks: list[int] = []
        while chunk := await answer.read(until=until):
            assert not isinstance(chunk, Lost)
            chunks.append(len(chunk))
            for _ in range(100):
                await anyio.lowlevel.checkpoint()  # in which it might read on and on
        answer.close()

    assert sum(chunks) == size
    assert max(chunks) <= 2**20 + 64 * 2**10


async def test_a_large_request_arrives_whole() -> None:
    body = bytes(range(256)) * 2**15
    async with reaching(always) as (web, speaker):
        assert await ask(web, at(speaker.port), body) == (200, b"ok")
        assert await ask(web, at(speaker.port), body) == (200, b"ok")

    assert [each.endswith(body) for each in speaker.heard] == [True, True]
    assert speaker.connections == 1


async def test_who_refuses_without_listening_is_heard() -> None:
    """The rest is not sent, and the connection is not used again."""

    async def talk(line: Connection) -> None:
        await line.reader.readexactly(1000)
        await line.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await asyncio.Event().wait()

    async with reaching(talk) as (web, speaker):
        assert await ask(web, at(speaker.port), bytes(2**25)) == (413, b"no")
        assert await ask(web, at(speaker.port), bytes(2**25)) == (413, b"no")
        assert speaker.connections == 2


async def test_who_does_not_listen_is_left() -> None:
    async with reaching(deaf) as (web, speaker):
        assert await ask(web, at(speaker.port), bytes(2**25), within=0.2) == Lost(How.LATE)


@pytest.mark.parametrize("begun", [b"", b"HTTP", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"])
async def test_who_falls_silent_is_left(begun: bytes) -> None:
    async def talk(line: Connection) -> None:
        await line.request()
        await line.say(OK)
        await line.request()
        await line.say(begun)
        await line.reader.read()

    async with reaching(talk) as (web, speaker):
        assert await ask(web, at(speaker.port)) == (200, b"ok")
        assert await ask(web, at(speaker.port), within=0.2) == Lost(How.LATE)
        await speaker.until(lambda: speaker.ended == 1)
        assert speaker.connections == 1


async def test_who_is_cancelled_leaves_at_once() -> None:
    async with reaching(silent) as (web, speaker):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, web, at(speaker.port))
            await speaker.until(lambda: speaker.connections == 1)
            tasks.cancel_scope.cancel()
        await speaker.until(lambda: speaker.ended == 1)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (Place("127.0.0.1", 1, is_secret=False), "connection refused"),
        (Place("x" * 64 + ".example", 80, is_secret=False), "its name is none"),
    ],
)
async def test_nobody_there_is_said(place: Place, reason: str) -> None:
    web = HttpWeb()
    assert await ask(web, place) == Lost(How.GONE, reason)


async def test_what_cannot_be_said_is_not_sent() -> None:
    web = HttpWeb()
    request = Request(Place("127.0.0.1", 1, is_secret=False), {"a": "sk-1\r\nb: c"}, b"")
    lost = await web.ask(request, connect=LONG, until=anyio.current_time() + LONG)

    assert isinstance(lost, Lost)
    assert "sk-1" not in repr(lost) + repr(request)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    folder = tmp_path_factory.mktemp("tls")
    return certified(folder), folder / "there.pem"


@needs_openssl
@pytest.mark.promise("C6")
async def test_who_is_trusted_is_spoken_to_in_secret(
    keyed: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = keyed
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    spoken: list[object] = []

    async def talk(line: Connection) -> None:
        spoken.append(line.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await always(line)

    async with reaching(talk, context) as (web, speaker):
        place = at(speaker.port, is_secret=True)
        assert [await ask(web, place) for _ in range(3)] == [(200, b"ok")] * 3
        assert await ask(web, place, bytes(2**23)) == (200, b"ok")
        assert (speaker.connections, spoken) == (1, ["http/1.1"])


@needs_openssl
async def test_what_is_encrypted_in_many_pieces_arrives_as_it_was_sent(
    keyed: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read then holds many of them, and ends within one."""
    context, file = keyed
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    body = bytes(range(251)) * 2**12

    async def talk(line: Connection) -> None:
        await line.request()
        line.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), 999):
            line.writer.write(body[start : start + 999])
        await line.writer.drain()

    async with reaching(talk, context) as (web, speaker):
        assert await ask(web, at(speaker.port, is_secret=True)) == (200, body)


@needs_openssl
async def test_what_was_encrypted_before_the_other_side_hung_up_arrives_whole(
    keyed: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it waits, with the end behind it, when somebody begins to read."""
    context, file = keyed
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    sizes = range(3 * 2**19, 3 * 2**19 + 2**18, 2**15)
    said: asyncio.Queue[int] = asyncio.Queue(len(sizes))

    async def talk(line: Connection) -> None:
        size = sizes[speaker.connections - 1]
        await line.request()
        line.writer.transport.set_write_buffer_limits(0)
        await line.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + bytes(size))
        line.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await said.put(size)
        await line.reader.read()

    async with reaching(talk, context) as (web, speaker):
        until = anyio.current_time() + LONG
        request = Request(at(speaker.port, is_secret=True), {}, b"")
        for size in sizes:
            answer = await web.ask(request, connect=LONG, until=until)
            assert not isinstance(answer, Lost)
            assert await said.get() == size
            assert await whole(answer, until=until) == bytes(size)


@needs_openssl
@pytest.mark.promise("C6")
@pytest.mark.parametrize(
    ("host", "is_known", "reason"),
    [
        ("127.0.0.1", False, "self-signed certificate"),
        ("localhost", True, "Hostname mismatch, certificate is not valid for 'localhost'."),
    ],
)
async def test_who_is_not_trusted_gets_nothing(
    keyed: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    is_known: bool,
    reason: str,
) -> None:
    context, file = keyed
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with reaching(always, context) as (web, speaker):
        found = await ask(web, at(speaker.port, host=host, is_secret=True))
        assert found == Lost(How.UNTRUSTED, f"its certificate does not hold: {reason}")
        assert speaker.heard == []


@needs_openssl
async def test_a_model_behind_a_certificate_that_does_not_hold_is_unreachable(
    keyed: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once: that will not pass. Once it holds, it answers."""
    context, file = keyed
    events = b"".join(frames(Format.CHAT, SHORTEST))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    async with speaking(saying(head % len(events) + events), context) as speaker:
        url = f"https://127.0.0.1:{speaker.port}/v1"
        async with models_at(url, Format.CHAT, policy=AT_ONCE) as models:
            with pytest.raises(ModelUnreachable) as raised:
                await heard(models)
        assert not raised.value.retryable
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        async with models_at(url, Format.CHAT, policy=AT_ONCE) as models:
            assert (await heard(models)).text == SHORTEST.say


async def test_without_a_word_on_whom_to_trust_nobody_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "gone" / "keys"))
    async with reaching(deaf) as (web, speaker):
        lost = await ask(web, at(speaker.port, is_secret=True))

    reason = "whom to trust cannot be read: no such file or directory"
    assert lost == Lost(How.UNTRUSTED, reason)
    assert speaker.connections == 0


async def test_who_goes_on_behind_the_answer_is_left() -> None:
    """What is whole is told, however much else comes."""
    events = b"".join(frames(Format.CHAT, SHORTEST))

    async def talk(line: Connection) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + events)
        while True:
            await line.say(b": more\n\n" * 2**13)

    async with speaking(talk) as speaker:
        url = f"http://127.0.0.1:{speaker.port}/v1"
        async with models_at(url, Format.CHAT, policy=AT_ONCE) as models:
            assert (await heard(models)).text == SHORTEST.say
            await speaker.until(lambda: speaker.ended == 1)


async def test_who_does_not_introduce_itself_in_time_is_not_connected() -> None:
    async with reaching(deaf) as (web, speaker):
        place = at(speaker.port, is_secret=True)
        assert await ask(web, place, connect=0.2) == Lost(How.UNCONNECTED)
        assert await ask(web, place, within=0.2) == Lost(How.LATE)


async def test_who_speaks_in_the_clear_is_not_spoken_to_in_secret() -> None:
    async def talk(line: Connection) -> None:
        await line.reader.read(10)
        await line.say(OK)
        await line.reader.read()

    async with reaching(talk) as (web, speaker):
        lost = await ask(web, at(speaker.port, is_secret=True))
        assert lost == Lost(How.GONE, "wrong version number")


def through(port: int, credentials: str = "") -> Proxies:
    return Proxies.read({"HTTPS_PROXY": f"http://{credentials}127.0.0.1:{port}"})


@needs_openssl
@pytest.mark.promise("C6")
async def test_a_proxy_carries_what_it_cannot_read(
    keyed: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One tunnel is made for several requests; nothing but its end is known to the proxy."""
    context, file = keyed
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with speaking(always, context) as provider:
        async with speaking(tunnelling(provider.port)) as proxy:
            web = HttpWeb(proxies=through(proxy.port, "me:pass@"))
            place = Place(NAME, 443)
            assert [await ask(web, place) for _ in range(3)] == [(200, b"ok")] * 3
            assert await ask(web, place, bytes(2**23)) == (200, b"ok")
            await web.close()
            await provider.until(lambda: provider.ended == 1)

    assert (provider.connections, proxy.connections, len(provider.heard)) == (1, 1, 4)
    assert proxy.heard == [
        b"CONNECT there.example:443 HTTP/1.1\r\nhost: there.example:443\r\n"
        b"proxy-authorization: Basic bWU6cGFzcw==\r\n\r\n"
    ]


@needs_openssl
async def test_a_proxy_that_is_somebody_else_is_found_out(
    keyed: tuple[ssl.SSLContext, Path],
) -> None:
    context, _ = keyed
    async with speaking(always, context) as impostor:
        async with speaking(tunnelling(impostor.port)) as proxy:
            web = HttpWeb(proxies=through(proxy.port))
            lost = await ask(web, Place(NAME, 443))
            assert isinstance(lost, Lost)
            assert (lost.how, impostor.heard) == (How.UNTRUSTED, [])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n",
            "the proxy refused it with status 407",
        ),
        (b"", "the proxy: it broke off"),
        (b"220 smtp\r\n", "the proxy: it does not begin like an answer"),
    ],
)
async def test_a_proxy_that_makes_no_tunnel_is_named(said: bytes, reason: str) -> None:
    async with speaking(saying(said)) as proxy:
        web = HttpWeb(proxies=through(proxy.port))
        assert await ask(web, Place(NAME, 443)) == Lost(How.GONE, reason)
        await proxy.until(lambda: proxy.ended == 1)


async def test_a_proxy_that_says_nothing_is_not_waited_for() -> None:
    async with speaking(silent) as proxy:
        web = HttpWeb(proxies=through(proxy.port))
        assert await ask(web, Place(NAME, 443), connect=0.2) == Lost(How.UNCONNECTED)


async def test_this_very_machine_is_reached_without_a_proxy() -> None:
    async with reaching(always, proxies=through(1)) as (web, speaker):
        assert await ask(web, at(speaker.port)) == (200, b"ok")
