"""A client of exec-servers that does as little as can be done: start processes, and listen.

What a benchmark of servers spends in its client is lost for what it measures. This one is the
same for every server: bare picows, and of each message only as much is read as it takes to count.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import time

from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

LONGEST = 120.0  # seconds that anything may take
_ENVELOPE_BYTES_MAX = 512
_LINE_BYTES_MAX = 4096
_CHUNK, _END = b'"chunk":"', b'"}}'


class Ear(WSListener):
    """Counts the bytes of output that arrive, and keeps short lines with the time they came at."""

    def __init__(self) -> None:
        self.bytes = self.closed = self.answers = 0
        self.arrivals: list[tuple[float, bytes]] = []
        self._news = asyncio.Event()
        self._asked = 0

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Take note of whom to ask."""
        self._transport = transport

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002  # picows says so
        """Look at the beginning of a message, and at all of a short one."""
        if frame.msg_type is not WSMsgType.TEXT:
            return
        now, payload = time(), frame.get_payload_as_memoryview()
        head = bytes(payload[:_ENVELOPE_BYTES_MAX])
        begin = head.find(_CHUNK)
        if begin < 0:
            self.closed += b'"process/closed"' in head
            self.answers += b'"id":' in head
            self._news.set()
            return
        begin += len(_CHUNK)
        end = len(payload) - len(_END)
        if bytes(payload[end:]) != _END:
            end = begin + bytes(payload[begin:]).index(b'"')
        padding = bytes(payload[end - 2 : end]).count(b"=")
        self.bytes += (end - begin) * 3 // 4 - padding
        if len(payload) <= _LINE_BYTES_MAX:
            self.arrivals.append((now, base64.b64decode(payload[begin:end])))

    async def introduce(self) -> None:
        """Begin a session."""
        self._ask("initialize", {"clientName": "bench"})
        await self.wait_answer()
        self._say({"method": "initialized", "params": {}})

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a process, without waiting for the answer."""
        params = {"processId": name, "argv": list(argv), "cwd": "file:///", "env": dict(env)}
        self._ask("process/start", params | {"tty": False, "pipeStdin": False, "arg0": None})

    async def wait_answer(self) -> None:
        """Wait until every question has an answer."""
        await self._until(lambda: self.answers == self._asked)

    async def wait_closed(self, count: int) -> None:
        """Wait until so many processes have said all."""
        await self._until(lambda: self.closed >= count)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST):
            while not is_so():
                self._news.clear()
                await self._news.wait()

    def _ask(self, method: str, params: dict[str, object]) -> None:
        self._asked += 1
        self._say({"id": self._asked, "method": method, "params": params})

    def _say(self, message: dict[str, object]) -> None:
        self._transport.send(WSMsgType.TEXT, json.dumps(message).encode())


@asynccontextmanager
async def listening(url: str) -> AsyncGenerator[Ear]:
    """An ear with a session of its own."""
    transport, ear = await ws_connect(Ear, url)
    assert isinstance(ear, Ear)
    await ear.introduce()
    try:
        yield ear
    finally:
        transport.disconnect()
