"""Operator access to all processes of a server, without taking over a session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from holdfast.exec.client.connection import CALL_LONGEST, Channel, Dialer
from holdfast.exec.client.events import read_page
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.failures import CapabilityMissing
from holdfast.exec.keeper.discovery import kill, orphans
from holdfast.exec.model import Detached, Orphan, Page
from holdfast.exec.protocol import (
    BindResult,
    EndResult,
    LabelParams,
    OperatorListResult,
    OperatorParams,
    OperatorProcess,
    OperatorReadParams,
    OperatorSignalParams,
    PlaceParams,
    ReadParams,
    ReadResult,
    TerminateResult,
    WireStruct,
)
from holdfast.failures import ungrouped
from holdfast.rpc import Connection, ConnectionConfig
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut
from holdfast.rpc.model import Dialect

Result = TypeVar("Result")

_METHOD_UNKNOWN = -32601
_PAGE_BYTES_MAX = 1024 * 1024


class Operator:
    """Lists, reads and ends processes of all sessions; retries after lost connections.

    No call takes longer than `answer_longest` seconds, however often it is retried.
    """

    def __init__(self, channel: Channel, *, answer_longest: float = CALL_LONGEST) -> None:
        self._channel, self._answer_longest = channel, answer_longest

    async def processes(self) -> tuple[OperatorProcess, ...]:
        """Return all processes that the server knows."""
        return (await self.listing())[0]

    async def listing(self) -> tuple[tuple[OperatorProcess, ...], tuple[Detached, ...]]:
        """Return all processes, and their detached descendants."""
        listed = await self._call("operator/list", {}, OperatorListResult)
        detached = (
            Detached(each.pid, each.command, each.session_id, each.process_id)
            for each in listed.detached
        )
        return listed.processes, tuple(detached)

    async def read(self, of: OperatorProcess, *, after: int, wait: float) -> Page:
        """Return retained output of a process after an event, at most a page; waits up to `wait`
        seconds.
        """
        params = ReadParams(
            of.process.process_id,
            after_seq=after,
            max_bytes=_PAGE_BYTES_MAX,
            wait_ms=round(wait * 1000),
        )
        asked = OperatorReadParams(of.session_id, params)
        return read_page(params, await self._call("operator/read", asked, ReadResult, wait=wait))

    async def signal(self, of: OperatorProcess, name: str) -> None:
        """Signal the process group of a process; ignored if it has exited."""
        params = OperatorSignalParams(of.session_id, of.process.process_id, name)
        await self._call("operator/signal", params, dict[str, object])

    async def terminate(self, of: OperatorProcess) -> None:
        """Kill a process and all its descendants."""
        params = OperatorParams(of.session_id, of.process.process_id)
        await self._call("operator/terminate", params, TerminateResult)

    async def end(self, label: str) -> int:
        """End all sessions with a label and everything that they started; returns their number."""
        return (await self._call("operator/end", LabelParams(label), EndResult)).sessions

    async def bind_place(self, directory: str) -> str:
        """Return a new token, which restricts its clients to this place."""
        params = PlaceParams(directory)
        limit = self._answer_longest
        return (await self._channel.call("place/bind", params, BindResult, timeout=limit)).token

    async def unbind_place(self, directory: str) -> None:
        """Revoke all tokens of a place, and disconnect their clients."""
        await self._call("place/unbind", PlaceParams(directory), dict[str, object])

    async def _call(
        self,
        method: str,
        params: WireStruct | dict[str, object],
        result: type[Result],
        *,
        wait: float = 0.0,
    ) -> Result:
        """Retry until there is a reply or the deadline: every operator call is idempotent."""
        limit = self._answer_longest + wait
        with anyio.move_on_after(limit):
            try:
                return await self._channel.call(method, params, result, repeats=True, timeout=limit)
            except ErrorResponse as error:
                if error.error_code == _METHOD_UNKNOWN:
                    raise CapabilityMissing(capability="operator") from error
                raise
        raise RequestTimedOut(method=method, limit=limit)


def find_orphans() -> tuple[Orphan, ...]:
    """Return all processes of this machine whose keeper is gone, as far as we may inspect them."""
    return tuple(Orphan(each.process.pid, each.command) for each in orphans())


def end_orphans(which: Collection[Orphan]) -> int:
    """Kill those that are still orphans; returns their number."""
    return kill([each for each in orphans() if Orphan(each.process.pid, each.command) in which])


@asynccontextmanager
async def operating(
    dial: Dialer, *, policy: RecoveryPolicy | None = None, answer_longest: float = CALL_LONGEST
) -> AsyncGenerator[Operator]:
    """Yield an operator of the server behind `dial`; it needs no session."""
    channel = Channel(
        dial,
        _greet_nobody,
        policy=policy or RecoveryPolicy(),
        config=ConnectionConfig(dialect=Dialect(), peer="exec-server"),
        heartbeat_policy=None,
    )
    with ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.run, tasks)
            try:
                yield Operator(channel, answer_longest=answer_longest)
            finally:
                channel.close()
                tasks.cancel_scope.cancel()


async def _greet_nobody(_: Connection) -> None:
    """Skip the handshake: an operator has no session."""
