"""A scripted provider on loopback, for all three formats: real HTTP and SSE, no model.

    async with ProviderServer([Stream(frames(form, line)), Status(429)]) as server:
        provider = Provider("there", form, server.url, "THERE_API_KEY")

Each POST takes the next reply; a GET has a page, or there is none. A stream is sent event by event
and then ends as it says; one that ends well leaves its connection open for the next request.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import anyio

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from tests.parts.provider_frames import error, frames


class Ending(StrEnum):
    """How a stream ends after its last event."""

    WELL = "well"
    EARLY = "early"  # the connection is closed, and the body is not at its end
    RESET = "reset"
    HANG = "hang"  # until the other side goes


@dataclass(frozen=True, slots=True)
class Stream:
    """Status 200, these events, and an end."""

    events: Sequence[bytes]
    ending: Ending = Ending.WELL


@dataclass(frozen=True, slots=True)
class Status:
    """Something else than a stream."""

    status: int
    word: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """The request is read, and nothing is ever said."""


Reply = Stream | Status | Silence


@dataclass(frozen=True, slots=True)
class Request:
    """What a provider was sent."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"

    @property
    def json(self) -> Any:  # Any: JSON, as the API defines it
        """The body, read."""
        return json.loads(self.body)


WORDS = {
    "MODEL_KEY_REFUSED": (401, "authentication_error"),
    "MODEL_UNKNOWN": (404, "model_not_found"),
    "MODEL_RATE_LIMITED": (429, "rate_limit_error"),
    "MODEL_OVERLOADED": (503, "overloaded_error"),
    "MODEL_CONTENT_REFUSED": (400, "content_policy_violation"),
    "CONTEXT_TOO_LONG": (400, "context_length_exceeded"),
    "MODEL_QUOTA_EXHAUSTED": (429, "insufficient_quota"),
    "MODEL_REQUEST_REFUSED": (400, "invalid_request_error"),
}


def reply(form: Format, line: ScriptedAnswer, mark: str = "m") -> Reply:
    """What a provider of this format does that is to answer with this line."""
    events = frames(form, line, mark)
    if not line.fail:
        return Stream(events)
    begun = bool(line.say or line.think or line.calls)
    if line.fail == "MODEL_ANSWER_CUT":
        return Stream(events, Ending.EARLY)
    status, word = WORDS[line.fail]
    if begun:
        return Stream([*events, error(form, word)])
    wait = {} if line.retry_after is None else {"retry-after": f"{line.retry_after:g}"}
    return Status(status, word, wait)


@dataclass
class ProviderServer:
    """Serves its replies until its block ends; then every connection is closed.

    A request that no reply is left for is refused, and the block raises at its end.
    """

    replies: Iterable[Reply]
    judge: Callable[[Request], Status | None] = lambda _: None
    requests: list[Request] = field(default_factory=list[Request])
    refused: list[Status] = field(
        default_factory=list[Status]
    )  # by the judge; no reply was taken for it
    pages: Mapping[str, Reply] = field(default_factory=dict[str, Reply])  # by path, for GET
    connections: int = 0
    left: int = 0  # by the other side, in the middle of a reply
    unforeseen: int = 0
    url: str = ""

    async def __aenter__(self) -> Self:
        self._replies = iter(self.replies)
        self._talks: set[asyncio.Task[None]] = set()
        self._news = anyio.Event()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=2**26)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        if kind is None:
            assert not self.unforeseen, f"{self.unforeseen} requests were not foreseen"

    async def until_requested(self, count: int) -> None:
        """Wait until so many requests have come."""
        await self._until(lambda: len(self.requests) >= count)

    async def until_left(self, count: int = 1) -> None:
        """Wait until the other side has gone so often in the middle of a reply."""
        await self._until(lambda: self.left >= count)

    async def _until(self, holds: Any) -> None:  # Any: a small function
        with anyio.fail_after(30):
            while not holds():
                await self._news.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = asyncio.get_running_loop().create_task(self._attend(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read(reader):
                if request.method == "GET":
                    page = self.pages.get(request.path, Status(404, "not_found"))
                    if not await self._play(page, reader, writer):
                        break
                    continue
                self.requests.append(request)
                self._tell()
                found = self.judge(request)
                if found is not None:
                    self.refused.append(found)
                if not await self._play(found or self._next(), reader, writer):
                    break
            writer.close()
        except ConnectionError:
            pass  # the other side went away, as sides do
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    def _next(self) -> Reply:
        found = next(self._replies, None)
        if found is None:
            self.unforeseen += 1
            return Status(400, "unforeseen")
        return found

    async def _play(
        self, found: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection is good for another request."""
        match found:
            case Status():
                await _send(writer, _status(found))
                return True
            case Stream(events, ending):
                await _send(writer, _HEAD)
                for event in events:
                    await _send(writer, b"%x\r\n%b\r\n" % (len(event), event))
                if ending is Ending.WELL:
                    await _send(writer, b"0\r\n\r\n")
                    return True
                if ending is Ending.RESET:
                    _reset(writer)
                if ending is Ending.HANG:
                    await self._hang(reader)
            case Silence():
                await self._hang(reader)
        return False

    async def _hang(self, reader: asyncio.StreamReader) -> None:
        await reader.read()
        self.left += 1
        self._tell()


_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = head[0].split(" ")
    return Request(path, headers, body, method)


async def _send(writer: asyncio.StreamWriter, sent: bytes) -> None:
    writer.write(sent)
    await writer.drain()


def _status(found: Status) -> bytes:
    told = {"type": found.word, "code": found.word, "message": "scripted"}
    body = json.dumps({"error": told}).encode() if found.body is None else found.body
    named = {"content-type": "application/json", "content-length": str(len(body)), **found.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {found.status} Scripted\r\n{lines}\r\n".encode() + body


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the other side gets a reset, not an end."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
