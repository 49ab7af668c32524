"""HTTP method of a connection: requests for a client, with whole or streamed responses."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from msgspec import UNSET, UnsetType

from holdfast.exec.failures import HttpFailed, RequestInvalid
from holdfast.exec.protocol import HttpDelta, HttpTaken
from holdfast.exec.server.context import ConnectionContext, Handlers
from holdfast.exec.server.files import FILE_BYTES_MAX, encoded
from holdfast.exec.server.http_loop import HttpAnswer, HttpClient
from holdfast.exec.server.http_rules import (
    SECRET_HEADERS,
    HttpRequest,
    checked_headers,
    checked_method,
    checked_url,
    redirected,
)
from holdfast.exec.server.model import HttpAnswerHeader, HttpParams, HttpResult
from holdfast.exec.server.process import decoded
from holdfast.failures import Failure
from holdfast.rpc import Handler, Transport

Ask = Callable[[AsyncExitStack], Awaitable[HttpAnswer]]


@dataclass(frozen=True, slots=True)
class HttpTimeouts:
    """Timeout in seconds: for the whole response, or for each piece if `is_for_each`."""

    longest: float
    is_for_each: bool


class PacedBody:
    """One streamed response, from its request to its end, with flow control."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        *,
        unread_bytes_max: int | None,
        patience: HttpTimeouts,
    ) -> None:
        self._name, self._transport = name, transport
        self._unread_bytes_max, self._patience = unread_bytes_max, patience
        self._told = self._taken = self._seq = 0
        self._changed = anyio.Event()
        self._wanted = anyio.CancelScope()

    def take(self, news: HttpTaken) -> None:
        """Take an acknowledgement, or a cancellation, of the client."""
        self._taken = max(self._taken, news.total_bytes)
        self._changed.set()
        if news.is_over:
            self._wanted.cancel()

    async def tell(
        self, ask: Ask, url: str, *, task_status: TaskStatus[HttpAnswer | HttpFailed]
    ) -> None:
        """Pass the head to the caller, then send the body to the client, piece by piece."""
        error, is_answered = None, False
        with self._wanted:
            try:
                with in_time(url, self._patience.longest) as clock:
                    async with AsyncExitStack() as stack:
                        answer = await ask(stack)
                        task_status.started(answer)
                        is_answered = True
                        async for piece in answer.body():
                            await self._tell_piece(piece, clock)
            except HttpFailed as failure:
                error = failure.reason
                if not is_answered:
                    task_status.started(failure)
        if is_answered:
            await self._say("", done=True, error=error)

    async def _tell_piece(self, piece: bytes, clock: anyio.CancelScope) -> None:
        # A slow client is not the web's fault.
        before, clock.deadline = clock.deadline, math.inf
        while self._unread_bytes_max is not None and (
            self._told - self._taken >= self._unread_bytes_max
        ):
            self._changed = anyio.Event()
            await self._changed.wait()
        self._told += len(piece)
        await self._say(encoded(piece), done=False)
        each = anyio.current_time() + self._patience.longest
        clock.deadline = each if self._patience.is_for_each else before

    async def _say(self, data: str, *, done: bool, error: str | None = None) -> None:
        self._seq += 1
        delta = HttpDelta(self._name, self._seq, data, done=done, error=error)
        message = {"method": "http/request/bodyDelta", "params": delta}
        # An ended transport tells its reader, which ends us too.
        with suppress(Failure):
            await self._transport.send([msgspec.json.encode(message)])


@contextmanager
def in_time(url: str, limit: float) -> Generator[anyio.CancelScope]:
    """Run the block with a timeout; raises `HttpFailed`. The deadline may be moved."""
    try:
        with anyio.fail_after(limit) as clock:
            yield clock
    except TimeoutError as error:
        reason = f"no whole answer within {limit:g} seconds"
        raise HttpFailed(url=url, reason=reason) from error


_REDIRECTS_MAX = 10
_ANSWER_BYTES_MAX = FILE_BYTES_MAX // 16
_PATIENCE = 300.0


class HttpMethods:
    """HTTP methods of one connection; requests in progress end with it."""

    def __init__(
        self,
        context: ConnectionContext,
        transport: Transport,
        tasks: TaskGroup,
        own: Mapping[str, str],
        client: HttpClient,
    ) -> None:
        self._context, self._transport, self._tasks, self._own = context, transport, tasks, own
        self._client = client
        self._live: dict[str, PacedBody] = {}

    def handlers(self) -> Handlers:
        return {"http/request": Handler(HttpParams, self._request)}

    def taken(self, news: HttpTaken) -> None:
        """Take an acknowledgement for a body."""
        if (body := self._live.get(news.request_id)) is not None:
            body.take(news)

    async def _request(self, params: HttpParams) -> HttpResult:
        """Make an HTTP request; its body is returned whole or streamed."""
        await self._context.session("http")
        request = self._checked(params)
        limit = _PATIENCE if params.timeout_ms is None else params.timeout_ms / 1000
        follow = params.redirect_policy != "stop"
        if params.stream_response:
            return await self._streamed(params, request, limit=limit, follow=follow)
        with in_time(params.url, limit):
            async with AsyncExitStack() as stack:
                answer = await _followed(self._client, stack, request, follow=follow)
                return _result(answer, await _whole(answer, params.url))

    def _checked(self, params: HttpParams) -> HttpRequest:
        if params.redirect_policy not in {"follow", "stop"}:
            reason = f"unknown variant `{params.redirect_policy}`, expected `follow` or `stop`"
            raise RequestInvalid(reason=reason)
        if params.stream_response and params.request_id in self._live:
            reason = f"http/request streamResponse request id `{params.request_id}` is in use"
            raise RequestInvalid(reason=reason)
        if params.unread_bytes_max is not None and params.unread_bytes_max < 1:
            raise RequestInvalid(reason="unreadBytesMax must be positive")
        headers = [(each.name, each.value, each.value_env_var) for each in params.headers]
        ours = {name.lower() for name, _, variable in headers if variable is not None}
        return HttpRequest(
            checked_method(params.method),
            checked_url(params.url),
            checked_headers(headers, self._own),
            decoded(params.body_base64 or ""),
            SECRET_HEADERS | ours,
        )

    async def _streamed(
        self, params: HttpParams, request: HttpRequest, *, limit: float, follow: bool
    ) -> HttpResult:
        """Return the head; the body follows from a task."""
        patience = HttpTimeouts(limit, is_for_each=params.timeout_ms is None)
        held = params.unread_bytes_max
        body = PacedBody(
            params.request_id, self._transport, unread_bytes_max=held, patience=patience
        )

        async def tell(*, task_status: TaskStatus[HttpAnswer | HttpFailed]) -> None:
            try:
                await body.tell(
                    lambda stack: _followed(self._client, stack, request, follow=follow),
                    params.url,
                    task_status=task_status,
                )
            finally:
                del self._live[params.request_id]

        self._live[params.request_id] = body
        head: HttpAnswer | HttpFailed = await self._tasks.start(tell)
        if isinstance(head, HttpFailed):
            raise head
        return _result(head, b"", is_paced=True if held is not None else UNSET)


async def _followed(
    client: HttpClient, stack: AsyncExitStack, request: HttpRequest, *, follow: bool
) -> HttpAnswer:
    """Return the response, after redirects."""
    for _ in range(_REDIRECTS_MAX + 1):
        async with AsyncExitStack() as step:
            answer = await step.enter_async_context(client.asked(request))
            location = answer.header("location") if follow else None
            onward = redirected(request, answer.status, location)
            if onward is None:
                stack.push_async_exit(step.pop_all())
                return answer
            request = onward
    raise HttpFailed(url=request.url.geturl(), reason="too many redirects")


async def _whole(answer: HttpAnswer, url: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.body():
        pieces.append(piece)
        size += len(piece)
        if size > _ANSWER_BYTES_MAX:
            raise HttpFailed(url=url, reason=f"the answer exceeds {_ANSWER_BYTES_MAX} bytes")
    return b"".join(pieces)


def _result(answer: HttpAnswer, body: bytes, *, is_paced: bool | UnsetType = UNSET) -> HttpResult:
    headers = tuple(HttpAnswerHeader(name, value) for name, value in answer.headers)
    return HttpResult(answer.status, headers, encoded(body), is_paced)
