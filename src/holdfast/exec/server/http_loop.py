"""Make one web request: HTTP/1.1, a connection for each, the body as it comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from holdfast.exec.core.http_rules import WebRequest, head_of
from holdfast.exec.failures import HttpFailed

_HEAD_BYTES_MAX = 256 * 2**10
_PIECE_BYTES = 256 * 2**10
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """The head of an answer; its body is read from the same connection."""

    status: int
    headers: tuple[tuple[str, str], ...]
    reader: asyncio.StreamReader
    is_empty: bool

    def header(self, name: str) -> str | None:
        """The first header of this name."""
        return next((value for each, value in self.headers if each.lower() == name), None)

    async def body(self) -> AsyncIterator[bytes]:
        """The body, piece by piece; raises if it breaks off."""
        if self.is_empty:
            return
        length = self.header("content-length")
        if "chunked" in (self.header("transfer-encoding") or "").lower():
            pieces = _chunked(self.reader)
        elif length is not None:
            pieces = _counted(self.reader, int(length))
        else:
            pieces = _to_the_end(self.reader)
        async for piece in pieces:
            yield piece


@asynccontextmanager
async def asked(request: WebRequest) -> AsyncGenerator[WebAnswer]:
    """Make a request, and read its answer in this block; raises `HttpFailed`."""
    url = request.url
    assert url.hostname is not None, "the request was checked"
    try:
        reader, writer = await asyncio.open_connection(
            url.hostname,
            url.port or _PORTS[url.scheme],
            ssl=ssl.create_default_context() if url.scheme == "https" else None,
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
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        reason = f"error sending request for url ({url.geturl()}): {error}"
        raise HttpFailed(url=url.geturl(), reason=reason) from error


async def _answer(reader: asyncio.StreamReader, method: str) -> WebAnswer:
    """Read the head of the answer, passing over those that only announce it."""
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1:2][0] if " " in lines[0] else "x")
        pairs = (line.partition(":") for line in lines[1:] if ":" in line)
        headers = tuple((name.strip(), value.strip()) for name, _, value in pairs)
        if status >= 200:
            is_empty = method == "HEAD" or status in {204, 304}
            return WebAnswer(status, headers, reader, is_empty)


async def _counted(reader: asyncio.StreamReader, left: int) -> AsyncIterator[bytes]:
    while left > 0:
        piece = await reader.read(min(left, _PIECE_BYTES))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


async def _chunked(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        async for piece in _counted(reader, size):
            yield piece
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers, which nobody asked for


async def _to_the_end(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE_BYTES):
        yield piece
