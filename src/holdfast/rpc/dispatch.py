"""Serve the requests of the other side: typed, bounded, cancellable."""

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
    """How one method is served: what its params must look like, and who carries it out."""

    params: type[Params]
    call: Callable[[Params], Awaitable[object]]

    async def serve(self, request: Request) -> object:
        """Carry a request out and return its result; raise only failures."""
        try:
            params = msgspec.json.decode(bytes(request.params) or b"{}", type=self.params)
        except UNREADABLE as error:
            reason = str(error)[:_REASON_MAX]
            raise ParamsInvalid(method=request.method, reason=reason) from error
        with boundary(f"rpc.{request.method}"):
            return await self.call(params)


@cache
def _redactor() -> telemetry.ValueRedactor:
    """What takes secrets out of a failure, which may quote what a handler was given.

    Its rules are read only now: those who only ask never need them.
    """
    return telemetry.ValueRedactor(telemetry.Redactor().text)


def own_error(failure: Failure) -> Mapping[str, object]:
    """Write a failure for our own protocols: one code, the whole failure in the data."""
    return _redactor().mapping(to_rpc_error(failure))


def foreign_error(failure: Failure) -> Mapping[str, object]:
    """Write a failure with the usual JSON-RPC codes, for wires that are not ours."""
    code = -32601 if isinstance(failure, MethodUnknown) else failure.kind.rpc_code
    return _redactor().mapping(to_rpc_error(failure, code=code))


@dataclass(frozen=True, slots=True)
class Service:
    """What one side offers the other, and how much of it at a time."""

    handlers: Mapping[str, Handler[Any]] = field(  # Any: each method has params of its own
        default_factory=dict[str, Handler[Any]]
    )
    running_max: int = 64
    waiting_max: int = 1024
    bytes_max: int = 256 * 2**20  # of all that was asked and is not settled; one may be larger
    error_form: ErrorForm = own_error


class Dispatch:
    """Runs a handler for each request, so many at a time, and settles every one exactly once.

    Requests that find no free place wait in order, up to a bound in number and in bytes; past it
    they are refused at once. So the reader never blocks, and answers to our own requests always
    get through.
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
        """Start or queue a request; raises when it must be refused at once."""
        if request.method not in self._service.handlers:
            raise MethodUnknown(method=request.method)
        size = _size(request)
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
        """Stop a request that nobody waits for any more; it is still settled."""
        if (scope := self._scopes.get(id_)) is not None:
            scope.cancel()

    def cancel_all(self) -> None:
        """Stop everything, and begin nothing more: the other side is gone."""
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
