"""HTTP requests that the machine of an exec-server makes for a client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy

import anyio
import pybase64

from holdfast.exec.client.connection import Channel
from holdfast.exec.client.events import BodyBuffer, BodyPiece, read_piece, refused
from holdfast.exec.failures import HttpFailed, HttpOverrun
from holdfast.exec.model import Fetch, Fetched
from holdfast.exec.protocol import HttpTaken
from holdfast.exec.server.model import HttpHeader, HttpParams, HttpResult
from holdfast.failures import Failure
from holdfast.rpc import Connection
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse
from holdfast.rpc.model import Notification
from holdfast.world import IdMaker

UNREAD_BYTES_MAX = 8 * 2**20
# What a server that heeds it tells before we say what we took.
_PACED_BYTES = 2 * 2**20
_PATIENCE = 300.0
# Seconds that the word of a server takes which has given up.
_MARGIN = 10.0
_GOODBYE = 1.0
_METHOD = "http/request"


class RemoteHttpStream:
    """A response whose body is streamed: `async for` yields its bytes.

    It belongs to one connection: once that is lost, reading raises `HttpFailed` at once.
    """

    def __init__(self, name: str, url: str, connection: Connection) -> None:
        self.url = url
        self.status = 0
        self.headers: tuple[tuple[str, str], ...] = ()
        self._name, self._connection = name, connection
        self._body = BodyBuffer(unread_bytes_max=UNREAD_BYTES_MAX)
        self._changed = anyio.Event()
        self._failure: Failure | None = None
        self._is_paced = False
        self._told = 0

    def begin(self, head: HttpResult) -> None:
        """Take status and headers, and whether the server wants acknowledgements."""
        self.status, self.headers = head.status, _headers(head)
        self._is_paced = head.is_paced is True

    def put(self, piece: BodyPiece) -> None:
        self._body.put(piece)
        if self._body.is_overrun:
            self.fail(HttpOverrun(url=self.url, unread_bytes_max=UNREAD_BYTES_MAX))
        self._notify()

    def fail(self, failure: Failure) -> None:
        """Set the failure for the reader; the first one counts."""
        self._failure = self._failure or failure
        self._notify()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body to its end; raises if it breaks off."""
        while not self._body.is_over:
            if self._failure is not None:
                raise copy(self._failure)
            if data := self._body.take():
                if self._body.total_bytes - self._told >= _PACED_BYTES // 2:
                    await self._acknowledge(is_over=False)
                yield data
            else:
                await self._changed.wait()
        if self._body.error is not None:
            raise HttpFailed(url=self.url, reason=self._body.error)

    async def aclose(self) -> None:
        """Cancel the rest of the body; a server that supports it stops reading."""
        if not self._body.is_over and self._failure is None:
            with anyio.move_on_after(_GOODBYE, shield=True):
                await self._acknowledge(is_over=True)

    async def _acknowledge(self, *, is_over: bool) -> None:
        self._told = self._body.total_bytes
        if self._is_paced:
            # The reader gets the failure.
            with suppress(Failure):
                news = HttpTaken(self._name, self._told, is_over)
                await self._connection.notify("http/request/taken", news)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class RemoteHttp:
    """Sends each HTTP request once; one in flight when the connection is lost has an unknown
    outcome.
    """

    def __init__(self, channel: Channel, ids: IdMaker) -> None:
        self._channel, self._ids = channel, ids
        self._streams: dict[str, RemoteHttpStream] = {}

    async def request(self, fetch: Fetch) -> Fetched:
        """Return the complete response, whatever its status."""
        params = self._params(fetch, streams=False)
        try:
            head = await self._channel.call(_METHOD, params, HttpResult, timeout=_longest(fetch))
            body = pybase64.b64decode(head.body_base64, validate=True)
        except ErrorResponse as error:
            raise refused(error, subject=fetch.url) from error
        except ValueError as error:
            raise AnswerInvalid(method=_METHOD, reason=str(error)) from error
        return Fetched(head.status, _headers(head), body)

    @asynccontextmanager
    async def stream(self, fetch: Fetch) -> AsyncGenerator[RemoteHttpStream]:
        """Send a request and stream its body within this block; the rest is cancelled."""
        params = self._params(fetch, streams=True)
        connection = await self._channel.wait_connected()
        answer = RemoteHttpStream(params.request_id, fetch.url, connection)
        # Pieces may come before the head.
        self._streams[params.request_id] = answer
        try:
            try:
                head = await self._channel.ask(
                    connection, _METHOD, params, HttpResult, timeout=_longest(fetch)
                )
            except ErrorResponse as error:
                raise refused(error, subject=fetch.url) from error
            answer.begin(head)
            yield answer
        finally:
            del self._streams[params.request_id]
            await answer.aclose()

    def put(self, batch: Sequence[Notification], size: int) -> None:  # noqa: ARG002  # a follower's
        """Route the notifications of one read to their streams."""
        if self._streams:
            for notification in batch:
                told = read_piece(notification.method, notification.params)
                if told is not None and (answer := self._streams.get(told[0])) is not None:
                    answer.put(told[1])

    def end(self, failure: Failure) -> None:
        """Fail all streams of the connection that ended: another connection cannot continue
        them.
        """
        for answer in self._streams.values():
            reason = f"the connection to the exec-server broke off ({failure.title})"
            answer.fail(HttpFailed(url=answer.url, reason=reason))

    def _params(self, fetch: Fetch, *, streams: bool) -> HttpParams:
        return HttpParams(
            method=fetch.method,
            url=fetch.url,
            request_id=str(self._ids.make("http")),
            headers=tuple(HttpHeader(h.name, h.value, h.variable) for h in fetch.headers),
            body_base64=pybase64.b64encode_as_string(fetch.body) if fetch.body else None,
            timeout_ms=None if fetch.timeout is None else max(1, round(fetch.timeout * 1000)),
            redirect_policy="follow" if fetch.follows_redirects else "stop",
            stream_response=streams,
            unread_bytes_max=_PACED_BYTES if streams else None,
        )


def _longest(fetch: Fetch) -> float:
    return (_PATIENCE if fetch.timeout is None else fetch.timeout) + _MARGIN


def _headers(head: HttpResult) -> tuple[tuple[str, str], ...]:
    return tuple((header.name, header.value) for header in head.headers)
