"""Speak with an app-server line by line, and keep all that was said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

Json = dict[str, Any]  # Any: JSON, as the app-server defines it
Answers = Callable[[str, Json], Json | None]  # None leaves a question open
LINE_MAX = 2**28
INTRODUCTION = {
    "clientInfo": {"name": "holdfast_tests", "title": "Holdfast tests", "version": "0"},
    "capabilities": {"experimentalApi": True, "requestAttestation": False},
}


class Refused(Exception):
    """The server answered a request with an error."""


class Ended(Exception):
    """The server closed its output; says how it ended."""


def decline(method: str, params: Json) -> Json:
    """The answer of one who never agrees."""
    return {"decision": "decline"}


@dataclass
class Conversation:
    """A client that does one thing at a time and hides nothing."""

    process: Process
    answers: Answers
    patience: float
    said: list[tuple[str, Json]] = field(default_factory=list)  # ("client" | "server", message)
    _next: int = 1

    def __post_init__(self) -> None:
        assert self.process.stdout is not None
        self._lines = BufferedByteReceiveStream(self.process.stdout)

    async def send(self, message: Json) -> None:
        """Send one message."""
        assert self.process.stdin is not None
        self.said.append(("client", message))
        with suppress(anyio.BrokenResourceError):  # its end is for the next receive to tell
            await self.process.stdin.send(json.dumps(message).encode() + b"\n")

    async def receive(self) -> Json:
        """Wait for one message; what the server asks is answered before it is returned."""
        try:
            with anyio.fail_after(self.patience):
                line = await self._lines.receive_until(b"\n", LINE_MAX)
        except (anyio.IncompleteRead, anyio.EndOfStream) as end:
            status = await self.process.wait()
            raise Ended(f"status {status}") from end
        message: Json = json.loads(line)
        self.said.append(("server", message))
        if "method" in message and "id" in message:
            result = self.answers(message["method"], message["params"])
            if result is not None:
                await self.send({"id": message["id"], "result": result})
        return message

    async def request(self, method: str, params: Json | None = None) -> Json:
        """Ask, and wait for the answer; news that come first are kept."""
        number, self._next = self._next, self._next + 1
        await self.send({"id": number, "method": method, "params": params or {}})
        while True:
            message = await self.receive()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise Refused(message["error"])
                result: Json = message["result"]
                return result

    async def until(self, method: str) -> Json:
        """Wait for a piece of news, and return what it says."""
        while True:
            message = await self.receive()
            if message.get("method") == method:
                params: Json = message["params"]
                return params

    async def introduce(self) -> Json:
        """Shake hands."""
        answer = await self.request("initialize", INTRODUCTION)
        await self.send({"method": "initialized"})
        return answer

    async def turn(self, thread: str, text: str) -> Json:
        """Take one turn to its end, and return the turn as it ended."""
        content = [{"type": "text", "text": text, "text_elements": []}]
        await self.request("turn/start", {"threadId": thread, "input": content})
        turn: Json = (await self.until("turn/completed"))["turn"]
        return turn


@asynccontextmanager
async def conversation(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    answers: Answers = decline,
    patience: float = 20.0,
) -> AsyncIterator[Conversation]:
    """Start an app-server and speak with it; it is killed at the end, if it still lives."""
    process = await anyio.open_process(
        [str(word) for word in command], env=env, stderr=subprocess.DEVNULL
    )
    try:
        yield Conversation(process, answers, patience)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
