"""The web method: requests made for a client, answered whole or as the answer comes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from holdfast.exec.core.http_rules import (
    WebRequest,
    checked_headers,
    checked_method,
    checked_url,
    redirected,
)
from holdfast.exec.failures import HttpFailed, RequestInvalid
from holdfast.exec.server.desk import Desk, Handlers
from holdfast.exec.server.files import FILE_BYTES_MAX, encoded
from holdfast.exec.server.http_loop import WebAnswer, asked
from holdfast.exec.server.model import HttpAnswerHeader, HttpDelta, HttpParams, HttpResult
from holdfast.exec.server.process import decoded
from holdfast.failures import Failure
from holdfast.rpc import Handler, Transport

_REDIRECTS_MAX = 10
_ANSWER_BYTES_MAX = FILE_BYTES_MAX // 16
_PATIENCE = 300.0


class WebMethods:
    """Serves one connection; whatever it has under way ends with it."""

    def __init__(
        self, desk: Desk, transport: Transport, tasks: TaskGroup, own: Mapping[str, str]
    ) -> None:
        self._desk, self._transport, self._tasks, self._own = desk, transport, tasks, own
        self._live: set[str] = set()

    def handlers(self) -> Handlers:
        """Who serves which method."""
        return {"http/request": Handler(HttpParams, self._request)}

    async def _request(self, params: HttpParams) -> HttpResult:
        await self._desk.session("http")
        request = self._checked(params)
        limit = _PATIENCE if params.timeout_ms is None else params.timeout_ms / 1000
        follow = params.redirect_policy != "stop"
        if params.stream_response:
            return await self._streamed(params.request_id, request, limit=limit, follow=follow)
        with _in_time(params.url, limit):
            async with AsyncExitStack() as stack:
                answer = await _followed(stack, request, follow=follow)
                return _result(answer, await _whole(answer, params.url))

    def _checked(self, params: HttpParams) -> WebRequest:
        if params.redirect_policy not in {"follow", "stop"}:
            reason = f"unknown variant `{params.redirect_policy}`, expected `follow` or `stop`"
            raise RequestInvalid(reason=reason)
        if params.stream_response and params.request_id in self._live:
            reason = f"http/request streamResponse request id `{params.request_id}` is in use"
            raise RequestInvalid(reason=reason)
        headers = [(each.name, each.value, each.value_env_var) for each in params.headers]
        return WebRequest(
            checked_method(params.method),
            checked_url(params.url),
            checked_headers(headers, self._own),
            decoded(params.body_base64 or ""),
        )

    async def _streamed(
        self, name: str, request: WebRequest, *, limit: float, follow: bool
    ) -> HttpResult:
        """Answer with the head; the body follows from a task of its own."""
        self._live.add(name)
        head: HttpResult | HttpFailed = await self._tasks.start(
            self._stream, name, request, limit, follow
        )
        if isinstance(head, HttpFailed):
            raise head
        return head

    async def _stream(
        self,
        name: str,
        request: WebRequest,
        limit: float,
        follow: bool,
        *,
        task_status: TaskStatus[HttpResult | HttpFailed],
    ) -> None:
        """Tell the head to whoever started this, then the body, piece by piece, to the client."""
        seq, error, is_answered = 0, None, False
        try:
            with _in_time(request.url.geturl(), limit):
                async with AsyncExitStack() as stack:
                    answer = await _followed(stack, request, follow=follow)
                    task_status.started(_result(answer, b""))
                    is_answered = True
                    async for piece in answer.body():
                        seq += 1
                        await self._say(HttpDelta(name, seq, encoded(piece), done=False))
        except HttpFailed as failure:
            error = failure.reason
            if not is_answered:
                task_status.started(failure)
        finally:
            self._live.discard(name)
        if is_answered:
            await self._say(HttpDelta(name, seq + 1, "", done=True, error=error))

    async def _say(self, delta: HttpDelta) -> None:
        message = {"method": "http/request/bodyDelta", "params": delta}
        with suppress(Failure):  # an ended transport tells its reader, which ends us too
            await self._transport.send([msgspec.json.encode(message)])


@contextmanager
def _in_time(url: str, limit: float) -> Generator[None]:
    try:
        with anyio.fail_after(limit):
            yield
    except TimeoutError as error:
        reason = f"no whole answer within {limit:g} seconds"
        raise HttpFailed(url=url, reason=reason) from error


async def _followed(stack: AsyncExitStack, request: WebRequest, *, follow: bool) -> WebAnswer:
    """The answer to a request, or to the one that it is sent on to."""
    for _ in range(_REDIRECTS_MAX + 1):
        async with AsyncExitStack() as step:
            answer = await step.enter_async_context(asked(request))
            location = answer.header("location") if follow else None
            onward = redirected(request, answer.status, location)
            if onward is None:
                stack.push_async_exit(step.pop_all())
                return answer
            request = onward
    raise HttpFailed(url=request.url.geturl(), reason="too many redirects")


async def _whole(answer: WebAnswer, url: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.body():
        pieces.append(piece)
        size += len(piece)
        if size > _ANSWER_BYTES_MAX:
            raise HttpFailed(url=url, reason=f"the answer exceeds {_ANSWER_BYTES_MAX} bytes")
    return b"".join(pieces)


def _result(answer: WebAnswer, body: bytes) -> HttpResult:
    headers = tuple(HttpAnswerHeader(name, value) for name, value in answer.headers)
    return HttpResult(answer.status, headers, encoded(body))
