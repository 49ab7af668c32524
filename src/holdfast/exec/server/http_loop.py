"""Make one web request: HTTP/1.1, a connection for each, the body as it comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from holdfast.exec.failures import HttpFailed
from holdfast.exec.server.http_rules import HttpRequest, body_length, chunk_size, head_of, status_of
from holdfast.world import in_thread

_HEAD_BYTES_MAX = 256 * 2**10
_PIECE_BYTES = 256 * 2**10
_BROKEN = (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The head of an answer; its body is read from the same connection."""

    status: int
    headers: tuple[tuple[str, str], ...]
    reader: asyncio.StreamReader
    length: int | str | None  # as `body_length` says it

    def header(self, name: str) -> str | None:
        """The first header of this name."""
        return next((value for each, value in self.headers if each.lower() == name), None)

    async def body(self) -> AsyncIterator[bytes]:
        """The body, piece by piece; raises if it breaks off."""
        match self.length:
            case None:
                pieces = _to_the_end(self.reader)
            case int(length):
                pieces = _counted(self.reader, length)
            case _:
                pieces = _chunked(self.reader)
        async for piece in pieces:
            yield piece


class HttpClient:
    """Makes web requests; what it trusts is read once, when the first of them needs it."""

    def __init__(self) -> None:
        self._trusted: asyncio.Task[ssl.SSLContext] | None = None

    @asynccontextmanager
    async def asked(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
        """Make a request, and read its answer in this block; raises `HttpFailed`."""
        url = request.url
        assert url.hostname is not None, "the request was checked"
        try:
            reader, writer = await asyncio.open_connection(
                url.hostname,
                url.port or _PORTS[url.scheme],
                ssl=await self._context() if url.scheme == "https" else None,
                limit=_HEAD_BYTES_MAX,
            )
            try:
                writer.write(head_of(request))
                writer.write(request.body)
                await writer.drain()
                yield await _answer(reader, request.method)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
        except _BROKEN as error:
            reason = f"error sending request for url ({url.geturl()}): {error}"
            raise HttpFailed(url=url.geturl(), reason=reason) from error

    async def _context(self) -> ssl.SSLContext:
        """The one TLS context: to read all certificates takes 90 ms, so not on the event loop."""
        if self._trusted is None or (self._trusted.done() and self._trusted.exception()):
            self._trusted = asyncio.create_task(in_thread(ssl.create_default_context))
        return await asyncio.shield(self._trusted)


async def _answer(reader: asyncio.StreamReader, method: str) -> HttpAnswer:
    """Read the head of the answer, passing over those that only announce it."""
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = status_of(lines[0])
        pairs = (line.partition(":") for line in lines[1:] if ":" in line)
        headers = tuple((name.strip(), value.strip()) for name, _, value in pairs)
        if status >= 200:
            return HttpAnswer(status, headers, reader, body_length(status, headers, method=method))


async def _counted(reader: asyncio.StreamReader, left: int) -> AsyncIterator[bytes]:
    while left > 0:
        piece = await reader.read(min(left, _PIECE_BYTES))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


async def _chunked(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := chunk_size(await reader.readuntil(b"\r\n")):
        async for piece in _counted(reader, size):
            yield piece
        if await reader.readexactly(2) != b"\r\n":
            raise ValueError("a chunk of the answer is longer than it says")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        # Trailers are read and ignored.
        pass


async def _to_the_end(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE_BYTES):
        yield piece
