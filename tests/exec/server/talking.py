"""Speak with an exec-server in its own words, and keep all that was said."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from holdfast.exec.keeper.client_loop import KeeperClient
from holdfast.exec.keeper.discovery import has_keeper
from holdfast.failures import Failure
from holdfast.rpc import Transport
from holdfast.rpc.transports.websocket import connect_websocket

Json = dict[str, Any]  # Any: JSON, as the protocol defines it
PATIENCE = 60.0  # with a machine that has other things to do
PATH = {"PATH": os.environ.get("PATH", os.defpath)}


async def until(holds: Callable[[], bool], *, within: float = PATIENCE) -> None:
    """Wait until something is so that has no event of its own."""
    with anyio.fail_after(within):
        while not holds():  # noqa: ASYNC110  # see above
            await anyio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    return Path(f"/proc/{pid}").exists()


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return sorted(path.name for path in directory.iterdir())


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.text: str = error["message"]
        self.failure: str = error.get("data", {}).get("code", "")


@dataclass
class Talk:
    """One connection; answers and news are kept as they come, and waited for by condition."""

    transport: Transport
    patience: float = PATIENCE
    answers: dict[int, Json] = field(default_factory=dict)
    news: list[Json] = field(default_factory=list)
    strays: list[Json] = field(default_factory=list)
    session: str = ""
    next: int = 1

    def __post_init__(self) -> None:
        self.stirred = anyio.Event()
        self.ended = False

    async def listen(self) -> None:
        try:
            while True:
                for raw in await self.transport.receive():
                    message = json.loads(raw)
                    if "method" in message:
                        self.news.append(message)
                    elif message["id"] == -1:
                        self.strays.append(message)
                    else:
                        self.answers[message["id"]] = message
                self._notify()
        except Failure:
            self.ended = True
            self._notify()

    def _notify(self) -> None:
        self.stirred.set()
        self.stirred = anyio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        with anyio.fail_after(self.patience):
            while not holds():
                await self.stirred.wait()

    async def tell(self, message: Json | bytes) -> None:
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.transport.send([raw])

    async def ask(self, method: str, params: Json | None = None) -> int:
        number, self.next = self.next, self.next + 1
        await self.tell({"id": number, "method": method, "params": params or {}})
        return number

    async def answer(self, number: int) -> Any:
        await self.until(lambda: number in self.answers or self.ended)
        message = self.answers[number]
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def call(self, method: str, /, **params: Any) -> Any:
        return await self.answer(await self.ask(method, params))

    async def introduce(self, session: str | None = None, **more: Any) -> str:
        result = await self.call("initialize", clientName="test", resumeSessionId=session, **more)
        await self.tell({"method": "initialized"})
        self.session = result["sessionId"]
        return self.session

    async def start(self, name: str, *argv: str, **more: Any) -> Json:
        params: Json = {"processId": name, "argv": list(argv), "cwd": "file:///tmp", "env": PATH}
        return await self.call("process/start", **{**params, "tty": False, **more})

    def of(self, name: str) -> list[Json]:
        return [n["params"] for n in self.news if n["params"].get("processId") == name]

    def output(self, name: str, after: int = 0) -> bytes:
        chunks = {n["seq"]: n["chunk"] for n in self.of(name) if "chunk" in n and n["seq"] > after}
        return b"".join(base64.b64decode(chunks[seq]) for seq in sorted(chunks))

    def last(self, name: str) -> int:
        return max((n["seq"] for n in self.of(name)), default=0)

    def is_closed(self, name: str) -> bool:
        return any(
            n["method"] == "process/closed" and n["params"]["processId"] == name for n in self.news
        )

    async def closed(self, name: str) -> None:
        await self.until(lambda: self.is_closed(name))

    async def run(self, name: str, *argv: str, **more: Any) -> tuple[int, bytes]:
        await self.start(name, *argv, **more)
        await self.closed(name)
        (status,) = (n["exitCode"] for n in self.of(name) if "exitCode" in n)
        return status, self.output(name)


@asynccontextmanager
async def talking(url: str, *, token: str | None = None) -> AsyncIterator[Talk]:
    """Connect, listen, and say nothing yet."""
    transport = await connect_websocket(url, token=token, connect_longest=PATIENCE)
    talk = Talk(transport)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.listen)
        try:
            yield talk
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await transport.aclose()


@asynccontextmanager
async def introduced(url: str, session: str | None = None) -> AsyncIterator[Talk]:
    """Connect and shake hands."""
    async with talking(url) as talk:
        await talk.introduce(session)
        yield talk


@dataclass
class Served:
    """A server of ours, as a process of its own."""

    process: Process
    url: str
    state: Path

    @property
    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


def command(*options: str) -> list[str]:
    """The command line of a server."""
    return [sys.executable, "-m", "holdfast.exec.server", *options]


@asynccontextmanager
async def served(
    state: Path,
    *options: str,
    listen: str = "ws://127.0.0.1:0",
    leave: bool = False,
    through: Sequence[str] = (),
) -> AsyncIterator[Served]:
    """Run a server; at the end it and its processes are gone, unless they are to be left.

    `through` is a command that becomes the server, once it has prepared where that is to run.
    """
    auth = () if {"--token-file"} & set(options) else ("--no-token",)
    argv = [*through, *command("--listen", listen, "--state", str(state), *auth, *options)]
    # A login shell there must not read what the person at this machine has written for theirs.
    env = {**os.environ, "PYTHONPATH": "src", "HOME": str(state.parent)}
    process = await anyio.open_process(argv, env=env, stderr=None)
    try:
        assert process.stdout is not None
        with anyio.fail_after(PATIENCE):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
        yield Served(process, line.decode().strip(), state)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate() if leave else process.kill()
            with anyio.move_on_after(30):
                await process.wait()
            if not leave:
                await end_keeper(state)
            await process.aclose()


async def end_keeper(state: Path) -> None:
    """Kill the keeper of a directory, and with it all processes."""
    keeper = await KeeperClient.open(state)
    for kept in await keeper.adopt():
        await kept.forget()
    with anyio.fail_after(PATIENCE):  # it does not end while it still waits for one that was killed
        while not (await keeper.ask({"ask": "end"})).get("is_ending"):  # noqa: ASYNC110  # see above
            await anyio.sleep(0.01)
    await keeper.close()
    await until(lambda: not has_keeper(state))
