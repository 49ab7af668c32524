"""A scripted OpenAI Responses server on loopback: real HTTP and SSE, no model.

    async with ModelServer([[Say("Let me look."), run("ls")], [Say("Done.")]]) as model:
        env = codex_home(tmp_path, model.url)

Each POST takes the next reply of the script, or the one that a function chooses for it. A reply
is a list of acts, played in order. The headers of the answer leave with the first act that needs
them, so an ending means what its place says: `[Hang()]` never answers, `[Headers(), Hang()]`
answers and then says nothing, `[Say("half", finished=False), Reset()]` breaks off in the middle.
A reply that does not end itself is completed. Nothing waits unless a script says so.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import anyio

from tests.parts.model_acts import (
    ENDINGS,
    Act,
    Complete,
    Eof,
    Event,
    Garbage,
    Gate,
    Hang,
    Headers,
    Pause,
    Refuse,
    Reply,
    Reset,
    Say,
    events,
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What the model was told."""

    path: str
    headers: Mapping[str, str]
    body: Event

    @property
    def texts(self) -> list[str]:
        """Every text of every message in the input, in order."""
        messages = [item for item in self.body["input"] if item.get("type") == "message"]
        contents = [item["content"] for item in messages]
        parts = [[{"text": each}] if isinstance(each, str) else each for each in contents]
        return [part.get("text", "") for each in parts for part in each]

    @property
    def tool_outputs(self) -> dict[str, Any]:  # Any: JSON, a string or a list of parts
        """What each tool call came back with, by call id."""
        kinds = {"function_call_output", "custom_tool_call_output"}
        items = [item for item in self.body["input"] if item.get("type") in kinds]
        return {item["call_id"]: item["output"] for item in items}


@dataclass
class ModelServer:
    """Serves a script until its block ends; then every connection is closed.

    A request that the script does not foresee is refused, and the block raises at its end.
    """

    script: Iterable[Reply] | Callable[[ModelRequest], Reply]
    requests: list[ModelRequest] = field(default_factory=list)
    unforeseen: int = 0
    url: str = ""

    async def __aenter__(self) -> Self:
        self._replies = iter(()) if callable(self.script) else iter(self.script)
        self._numbers = itertools.count(1)
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
            assert not self.unforeseen, f"{self.unforeseen} requests were not in the script"

    async def requested(self, count: int, *, within: float = 20.0) -> ModelRequest:
        """Wait until so many requests have come, and return the last of them."""
        with anyio.fail_after(within):
            while len(self.requests) < count:
                await self._news.wait()
        return self.requests[count - 1]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.get_running_loop().create_task(self._attend(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if request := await _read(reader):
                self.requests.append(request)
                self._news.set()
                self._news = anyio.Event()
                await _Talk(reader, writer, self._numbers).play(self._reply(request))
            writer.close()
        except ConnectionError:
            pass  # the other side went away, as sides do
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    def _reply(self, request: ModelRequest) -> Reply:
        if callable(self.script):
            return self.script(request)
        reply = next(self._replies, None)
        if reply is None:
            self.unforeseen += 1
            return [Refuse(400, "unforeseen", "the script is at its end")]
        return reply


async def _read(reader: asyncio.StreamReader) -> ModelRequest | None:
    """Read one request; None where the connection was closed without one."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ModelRequest(head[0].split(" ")[1], headers, json.loads(body or b"{}"))


@dataclass
class _Talk:
    """One connection, on which one reply is played."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    numbers: Iterator[int]
    streaming: bool = False

    async def play(self, reply: Reply) -> None:
        ended = bool(reply) and isinstance(reply[-1], ENDINGS)
        for act in reply if ended else [*reply, Complete()]:
            await self._play(act)

    async def _play(self, act: Act) -> None:
        match act:
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Gate(opened):
                await opened.wait()
            case Hang():
                await self.reader.read()  # nothing more comes: this is their end, or our shutdown
            case Reset():
                self._reset()
            case Refuse():
                await self._refuse(act)
            case Headers() | Eof():
                await self._send(b"")
            case Garbage(data):
                await self._send(data)
            case Say():
                await self._say(act)
            case _:
                for event in events(act, next(self.numbers)):
                    await self._emit(event)

    async def _say(self, say: Say) -> None:
        number = next(self.numbers)
        item = {"type": "message", "role": "assistant", "id": f"msg_{number:06}", "content": []}
        await self._emit({"type": "response.output_item.added", "output_index": 0, "item": item})
        for part in _split(say.text, say.deltas):
            if say.pause:
                await asyncio.sleep(say.pause)
            where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            await self._emit({"type": "response.output_text.delta", **where, "delta": part})
        if say.finished:
            whole = {**item, "content": [{"type": "output_text", "text": say.text}]}
            await self._emit(
                {"type": "response.output_item.done", "output_index": 0, "item": whole}
            )

    async def _emit(self, event: Event) -> None:
        await self._send(_sse(event))

    async def _send(self, data: bytes) -> None:
        if not self.streaming:
            self.streaming = True
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            )
            data = head + _sse({"type": "response.created", "response": {"id": "resp_1"}}) + data
        self.writer.write(data)
        await self.writer.drain()

    async def _refuse(self, refuse: Refuse) -> None:
        error = {"message": refuse.message, "type": refuse.code, "code": refuse.code or None}
        body = json.dumps({"error": error}).encode()
        wait = "" if refuse.retry_after is None else f"retry-after: {refuse.retry_after}\r\n"
        head = f"HTTP/1.1 {refuse.status} Scripted\r\ncontent-type: application/json\r\n{wait}"
        self.writer.write(
            f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
        )
        self.writer.write(body)
        await self.writer.drain()

    def _reset(self) -> None:
        """Close so that the other side gets a reset, not an end."""
        linger = struct.pack("ii", 1, 0)
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


def _sse(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _split(text: str, parts: int) -> list[str]:
    """Cut a text into so many parts of about the same length."""
    edges = [len(text) * number // parts for number in range(parts + 1)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]
