"""Web requests that the server makes for a client."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from tests.exec.server.housing import housed
from tests.exec.server.talking import Json, Refused, Talk

pytestmark = pytest.mark.anyio

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
)
TO_THE_END = b"HTTP/1.0 200 OK\r\n\r\nuntil the end"
BROKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"


class Site:
    """Answers each path as told, and keeps what it was asked."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self.answers, self.asked = answers, list[bytes]()
        self.url = ""

    async def attend(self, stream: SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            self.asked.append(head)
            path = head.split(b" ")[1].decode()
            if path in self.answers:
                await stream.send(self.answers[path])
            else:
                await anyio.sleep_forever()


@asynccontextmanager
async def site(answers: dict[str, bytes]) -> AsyncIterator[Site]:
    served = Site(answers)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    served.url = f"http://127.0.0.1:{port}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, served.attend)
        yield served
        tasks.cancel_scope.cancel()


def asking(url: str, **more: object) -> Json:
    return {"method": "GET", "url": url, "headers": [], "requestId": "r", **more}


def body(found: Json) -> bytes:
    return base64.b64decode(found["bodyBase64"])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(PLAIN, b"hello"), (CHUNKED, b"hello world"), (TO_THE_END, b"until the end")],
)
async def test_an_answer_is_given_whole(tmp_path: Path, answer: bytes, expected: bytes) -> None:
    async with site({"/x?y=1": answer}) as web, housed(tmp_path) as server, server.talk() as talk:
        found = await talk.call("http/request", **asking(f"{web.url}/x?y=1"))

    assert (found["status"], body(found)) == (200, expected)


async def test_headers_and_a_body_are_sent(tmp_path: Path) -> None:
    headers = [{"name": "Authorization", "value": "Bearer ", "valueEnvVar": "MINE"}]
    params = {"method": "POST", "headers": headers, "bodyBase64": "aGk="}
    async with (
        site({"/": PLAIN}) as web,
        housed(tmp_path, environment={"MINE": "x"}) as server,
        server.talk() as talk,
    ):
        found = await talk.call("http/request", **asking(f"{web.url}/", **params))

    assert {"name": "X-A", "value": "1"} in found["headers"]
    assert web.asked[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"Authorization: Bearer x\r\n" in web.asked[0]
    assert b"Content-Length: 2\r\n" in web.asked[0]


async def test_redirects_are_followed_unless_they_must_not_be(tmp_path: Path) -> None:
    away = b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
    loop = b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n"
    answers = {"/": away, "/there": PLAIN, "/loop": loop}
    async with site(answers) as web, housed(tmp_path) as server, server.talk() as talk:
        followed = await talk.call("http/request", **asking(web.url))
        stopped = await talk.call("http/request", **asking(web.url, redirectPolicy="stop"))
        with pytest.raises(Refused) as refused:
            await talk.call("http/request", **asking(f"{web.url}/loop"))

    assert (followed["status"], body(followed)) == (200, b"hello")
    assert stopped["status"] == 302
    assert refused.value.text == "http/request failed: too many redirects"


async def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    async with site({"/": BROKEN}) as web, housed(tmp_path) as server, server.talk() as talk:

        async def refusal(**params: object) -> tuple[int, str]:
            with pytest.raises(Refused) as refused:
                await talk.call("http/request", **params)
            return refused.value.code, refused.value.failure

        found = [
            await refusal(**asking(web.url)),
            await refusal(**asking(f"{web.url}/never", timeoutMs=100)),
            await refusal(**asking("http://127.0.0.1:1/")),
            await refusal(**asking("file:///etc/passwd")),
            await refusal(**asking(web.url, redirectPolicy="perhaps")),
        ]

    assert found == [(-32603, "EXEC_HTTP_FAILED")] * 3 + [(-32602, "EXEC_REQUEST_INVALID")] * 2


UNCLEAR = {
    "negative": b"Content-Length: -1",
    "underscore": b"Content-Length: 1_0",
    "sign": b"Content-Length: +5",
    "hexadecimal": b"Content-Length: 0x5",
    "empty": b"Content-Length:",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6",
    "two lengths in one line": b"Content-Length: 5, 6",
    "length and coding": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    "other coding": b"Transfer-Encoding: gzip, chunked",
    "coding in two lines": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
}


@pytest.mark.parametrize("header", UNCLEAR.values(), ids=UNCLEAR.keys())
async def test_an_answer_whose_length_is_unclear_is_refused(tmp_path: Path, header: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\nhello"
    async with site({"/": answer}) as web, housed(tmp_path) as server, server.talk() as talk:
        with pytest.raises(Refused) as refused:
            await talk.call("http/request", **asking(f"{web.url}/", timeoutMs=60_000))

    assert refused.value.failure == "EXEC_HTTP_FAILED"
    assert "Content-Length" in refused.value.text or "coding" in refused.value.text


@pytest.mark.parametrize("size", [b"-5", b"0x5", b"0_5", b"+5", b" 5", b""])
async def test_a_chunk_whose_size_is_unclear_is_refused(tmp_path: Path, size: bytes) -> None:
    answer = CHUNKED.replace(b"\r\n5\r\n", b"\r\n" + size + b"\r\n")
    async with site({"/": answer}) as web, housed(tmp_path) as server, server.talk() as talk:
        with pytest.raises(Refused, match="chunk size"):
            await talk.call("http/request", **asking(f"{web.url}/"))


async def test_the_same_length_twice_is_one_length(tmp_path: Path) -> None:
    answer = PLAIN.replace(b"X-A: 1", b"Content-Length: 5, 5")
    async with site({"/": answer}) as web, housed(tmp_path) as server, server.talk() as talk:
        found = await talk.call("http/request", **asking(f"{web.url}/"))

    assert body(found) == b"hello"


async def test_one_tls_context_is_made_and_not_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    make = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        made.append(threading.get_ident())
        return make()

    monkeypatch.setattr(ssl, "create_default_context", counted)
    nowhere = asking("https://127.0.0.1:1/")
    async with housed(tmp_path) as server:
        for _ in range(2):  # on each of two connections, several at once
            async with server.talk() as talk:
                asks = [await talk.ask("http/request", nowhere) for _ in range(4)]
                for each in asks:
                    with pytest.raises(Refused):
                        await talk.answer(each)

    assert len(made) == 1
    assert made[0] != threading.get_ident()


async def deltas(talk: Talk) -> list[Json]:
    def of_web() -> list[Json]:
        return [n["params"] for n in talk.news if n["method"] == "http/request/bodyDelta"]

    await talk.until(lambda: any(delta["done"] for delta in of_web()))
    return of_web()


async def test_a_body_is_streamed(tmp_path: Path) -> None:
    async with site({"/": CHUNKED}) as web, housed(tmp_path) as server, server.talk() as talk:
        head = await talk.call("http/request", **asking(web.url, streamResponse=True))
        told = await deltas(talk)

    assert (head["status"], head["bodyBase64"]) == (200, "")
    assert [delta["seq"] for delta in told] == list(range(1, len(told) + 1))
    assert b"".join(base64.b64decode(d["deltaBase64"]) for d in told) == b"hello world"
    assert (told[-1]["done"], told[-1]["error"]) == (True, None)


async def test_a_stream_that_breaks_off_says_so(tmp_path: Path) -> None:
    async with site({"/": BROKEN}) as web, housed(tmp_path) as server, server.talk() as talk:
        await talk.call("http/request", **asking(web.url, streamResponse=True))
        told = await deltas(talk)
        again = await talk.call("http/request", **asking(web.url, streamResponse=True))
        with pytest.raises(Refused) as refused:
            await talk.call(
                "http/request", **asking("http://127.0.0.1:1/", streamResponse=True, requestId="q")
            )

    assert told[-1]["error"] is not None
    assert again["status"] == 200
    assert refused.value.code == -32603


async def test_a_stream_that_lives_keeps_its_id(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"

    class Slow(Site):
        async def attend(self, stream: SocketStream) -> None:
            async with stream:
                await stream.receive()
                await stream.send(head)
                await anyio.sleep_forever()

    async with housed(tmp_path) as server, server.talk() as talk:
        slow = Slow({})
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/"
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, slow.attend)
            await talk.call("http/request", **asking(url, streamResponse=True))
            with pytest.raises(Refused) as refused:
                await talk.call("http/request", **asking(url, streamResponse=True))
            tasks.cancel_scope.cancel()

    assert refused.value.code == -32602
