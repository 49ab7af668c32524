"""Serve the requests of the other side: typed parameters, bounded concurrency, cancellation."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast import telemetry
from holdfast.failures import Failure, boundary, to_rpc_error
from holdfast.rpc.failures import MethodUnknown, ParamsInvalid, RequestCancelled, TooManyRequests
from holdfast.rpc.model import Request, RequestId
from holdfast.rpc.peer import UNREADABLE

Params = TypeVar("Params")
ErrorForm = Callable[[Failure], Mapping[str, object]]
Settle = Callable[[Request, object], Awaitable[None]]

_REASON_MAX = 500


@dataclass(frozen=True, slots=True)
class Handler(Generic[Params]):
    """Serves one method: the type that its params are decoded to, and the coroutine to call."""

    params: type[Params]
    call: Callable[[Params], Awaitable[object]]

    async def serve(self, request: Request) -> object:
        """Decode the params and call the handler; raises only failures."""
        try:
            params = msgspec.json.decode(bytes(request.params) or b"{}", type=self.params)
        except UNREADABLE as error:
            reason = str(error)[:_REASON_MAX]
            raise ParamsInvalid(method=request.method, reason=reason) from error
        with boundary(f"rpc.{request.method}"):
            return await self.call(params)


@cache
def _redactor() -> telemetry.ValueRedactor:
    """Redactor for failures, which may quote parameters of a handler.

    Created on first use: loading its rules takes time that pure clients never need to spend.
    """
    return telemetry.ValueRedactor(telemetry.Redactor().text)


def own_error(failure: Failure) -> Mapping[str, object]:
    """Encode a failure for our own protocols: one error code, the whole failure in `data`."""
    return _redactor().mapping(to_rpc_error(failure))


def foreign_error(failure: Failure) -> Mapping[str, object]:
    """Encode a failure with the standard JSON-RPC error codes, for protocols of others."""
    code = -32601 if isinstance(failure, MethodUnknown) else failure.kind.rpc_code
    return _redactor().mapping(to_rpc_error(failure, code=code))


@dataclass(frozen=True, slots=True)
class Service:
    """The methods that one side serves, with limits for concurrency and queue size."""

    handlers: Mapping[str, Handler[Any]] = field(  # Any: each method has params of its own
        default_factory=dict[str, Handler[Any]]
    )
    running_max: int = 64
    waiting_max: int = 1024
    bytes_max: int = 256 * 2**20  # of all that was asked and is not settled; one may be larger
    error_form: ErrorForm = own_error


class Dispatch:
    """Runs a handler for each request, a bounded number at a time, and replies exactly once.

    Requests beyond `running_max` wait in a FIFO queue, bounded in number and bytes; past that bound
    they are refused at once. So the reader never blocks, and replies to our own requests always
    arrive.
    """

    def __init__(self, service: Service, settle: Settle) -> None:
        self._service = service
        self._settle = settle
        self._waiting: deque[Request] = deque()
        self._scopes: dict[RequestId, anyio.CancelScope] = {}  # of all that run or wait
        self._workers = 0
        self._bytes = 0
        self._is_over = False

    def admit(self, request: Request, tasks: TaskGroup) -> None:
        """Start or queue a request; raises the failure to reply with when the queue is full."""
        if request.method not in self._service.handlers:
            raise MethodUnknown(method=request.method)
        size = _size(request)
        # A single request larger than the limit is admitted alone: it is in memory already.
        if self._bytes and self._bytes + size > self._service.bytes_max:
            raise TooManyRequests(in_flight_max=len(self._scopes))
        if self._workers < self._service.running_max:
            self._workers += 1
            tasks.start_soon(self._work, request)
        elif len(self._waiting) < self._service.waiting_max:
            self._waiting.append(request)
        else:
            raise TooManyRequests(in_flight_max=self._service.waiting_max)
        self._scopes[request.id] = anyio.CancelScope()
        self._bytes += size

    def cancel(self, id_: RequestId) -> None:
        """Cancel a request that the other side withdrew; it still gets a reply."""
        if (scope := self._scopes.get(id_)) is not None:
            scope.cancel()

    def cancel_all(self) -> None:
        """Cancel all handlers and clear the queue: the connection has ended."""
        self._is_over = True
        self._waiting.clear()
        for scope in self._scopes.values():
            scope.cancel()

    async def _work(self, request: Request) -> None:
        if not self._is_over:
            await self._run(request)
        while self._waiting:
            await self._run(self._waiting.popleft())
        self._workers -= 1

    async def _run(self, request: Request) -> None:
        outcome: object = RequestCancelled(method=request.method)
        with self._scopes[request.id]:
            try:
                outcome = await self._service.handlers[request.method].serve(request)
            except Failure as failure:
                outcome = failure
        del self._scopes[request.id]
        self._bytes -= _size(request)
        await self._settle(request, outcome)


def _size(request: Request) -> int:
    return memoryview(request.params).nbytes
