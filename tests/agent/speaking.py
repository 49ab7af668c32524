"""For tests: small real servers that say what a test wants, in the clear, in secret or between."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

NAME = "there.example"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Connection:
    """One connection to a server, from its side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard: list[bytes]

    async def request(self) -> bytes:
        """The next request, head and body; it is counted as heard."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        body = await self.reader.readexactly(int(lines.get(b"content-length", b"0")))
        self.heard.append(head + body)
        return head + body

    async def say(self, said: bytes) -> None:
        """Say it, as fast as it is taken."""
        self.writer.write(said)
        await self.writer.drain()


@dataclass
class Speaker:
    """A server, and what it has seen."""

    port: int = 0
    connections: int = 0
    ended: int = 0
    heard: list[bytes] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to be true of it."""
        with anyio.fail_after(30):
            async with self.news:
                await self.news.wait_for(holds)

    async def tell(self) -> None:
        """Have those who wait look again."""
        async with self.news:
            self.news.notify_all()


@asynccontextmanager
async def speaking(
    talk: Callable[[Connection], Awaitable[None]], context: ssl.SSLContext | None = None
) -> AsyncGenerator[Speaker]:
    """A server on loopback that talks like this on each connection, which it ends afterwards."""
    speaker = Speaker()
    talks: set[asyncio.Task[None]] = set()

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(EOFError, ConnectionError):
                await talk(Connection(reader, writer, speaker.heard))
                writer.close()
                await writer.wait_closed()  # all that was said is out
        finally:
            writer.transport.abort()
        speaker.ended += 1
        await speaker.tell()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        speaker.connections += 1
        for task in (attend(reader, writer), speaker.tell()):
            talks.add(asyncio.get_running_loop().create_task(task))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    speaker.port = server.sockets[0].getsockname()[1]
    try:
        yield speaker
    finally:
        server.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await asyncio.sleep(0)  # in which the loop lets go of the connections


def certified(folder: Path) -> ssl.SSLContext:
    """Make a certificate for `NAME` and this machine, `there.pem`, and be who has it."""
    names = f"subjectAltName=DNS:{NAME},IP:127.0.0.1"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2"]
    files = ["-keyout", str(folder / "there.key"), "-out", str(folder / "there.pem")]
    words = ["openssl", "req", "-x509", *kind, *files, "-subj", f"/CN={NAME}", "-addext", names]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "there.pem", folder / "there.key")
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def tunnelling(port: int) -> Callable[[Connection], Awaitable[None]]:
    """Be a proxy that connects everyone to this port, whatever they ask for."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def talk(line: Connection) -> None:
        await line.request()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await line.say(b"HTTP/1.0 200 Connection established\r\nvia: test\r\n\r\n")
            async with asyncio.TaskGroup() as ways:
                ways.create_task(carry(line.reader, writer))
                ways.create_task(carry(reader, line.writer))
        finally:
            writer.transport.abort()

    return talk
