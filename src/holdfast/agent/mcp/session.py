"""A session with an MCP server by the official SDK.

Imported when the first server is started, because the SDK is large.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast import __version__
from holdfast.exec import mcp_streams as process_streams
from holdfast.exec.failures import SdkMissing

try:
    import httpx2
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client
    from mcp.types import (
        CallToolResult,
        EmbeddedResource,
        Implementation,
        PaginatedRequestParams,
        ResourceLink,
        TextContent,
        TextResourceContents,
    )
except ModuleNotFoundError as error:
    raise SdkMissing(service="the official MCP SDK", extra="mcp") from error

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

__all__ = ["Offered", "http_streams", "offered_by", "process_streams", "session_over", "words_of"]

_PATIENCE: Final = httpx2.Timeout(30.0, read=300.0)
_TOOLS_MAX: Final = 200
_DESCRIPTION_CHARS_MAX: Final = 2000
_SCHEMA_BYTES_MAX: Final = 32 * 1024


class Offered(msgspec.Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: dict[str, object]
    only_reads: bool


@asynccontextmanager
async def session_over(
    streams: TransportStreams, ended: Callable[[Exception], None]
) -> AsyncGenerator[ClientSession]:
    """Open and initialize a session; `ended` receives the error that ends the stream."""

    async def take(message: object) -> None:
        if isinstance(message, Exception) and not isinstance(message, ValueError):
            ended(message)

    us = Implementation(name="holdfast", version=__version__)
    async with ClientSession(*streams, message_handler=take, client_info=us) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncGenerator[TransportStreams]:
    """Open the streams of a server at a URL."""
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=_PATIENCE) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


async def offered_by(session: ClientSession) -> list[Offered]:
    """List all tools of a server, bounded in number and size."""
    found: list[Offered] = []
    cursor: str | None = None
    while len(found) < _TOOLS_MAX:
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        page = await session.list_tools(params=params)
        for tool in page.tools:
            schema: dict[str, object] = dict(tool.input_schema)
            if len(msgspec.json.encode(schema)) > _SCHEMA_BYTES_MAX:
                continue
            hints = tool.annotations
            only_reads = hints is not None and hints.read_only_hint is True
            words = (tool.description or "")[:_DESCRIPTION_CHARS_MAX]
            found.append(Offered(tool.name, words, schema, only_reads))
        cursor = page.next_cursor
        if cursor is None:
            break
    return found[:_TOOLS_MAX]


def words_of(result: CallToolResult) -> str:
    """Return the text of a result; other content is named by its type."""
    parts: list[str] = []
    for part in result.content:
        match part:
            case TextContent(text=text):
                parts.append(text)
            case EmbeddedResource(resource=TextResourceContents(text=text)):
                parts.append(text)
            case ResourceLink(uri=uri):
                parts.append(f"(a link to {uri})")
            case _:
                parts.append(f"({part.type}, which cannot be shown here)")
    if not parts and result.structured_content is not None:
        parts.append(msgspec.json.encode(result.structured_content).decode())
    return "\n".join(parts)
