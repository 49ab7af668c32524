"""Operator methods: all processes of the server, and tokens of places.

Ours. They need no session and take none over. A client of this connection may run any command as
our user, and so could read all of it in the state directory anyway. Connections that are bound to a
place do not have these methods.
"""

from __future__ import annotations

import os

from holdfast.exec.failures import RequestUnfit
from holdfast.exec.keeper.discovery import detached
from holdfast.exec.protocol import (
    BindResult,
    DetachedProcess,
    EndResult,
    LabelParams,
    OperatorListResult,
    OperatorParams,
    OperatorProcess,
    OperatorReadParams,
    OperatorSignalParams,
    PlaceParams,
    TerminateResult,
)
from holdfast.exec.server.context import Handlers, nothing
from holdfast.exec.server.model import ReadAnswer
from holdfast.exec.server.ownership import Attached
from holdfast.exec.server.places import Bindings
from holdfast.exec.server.processes import signal_number
from holdfast.exec.server.sessions import SessionRegistry
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.rpc import Handler

# Each change goes on from the one before.
_BINDINGS_LANE = 0


class OperatorMethods:
    """Operator methods of one connection; each call names its session."""

    def __init__(
        self, sessions: SessionRegistry, workers: WorkerThreads, bindings: Bindings | None
    ) -> None:
        self._sessions, self._workers, self._bindings = sessions, workers, bindings

    def handlers(self) -> Handlers:
        return {
            "operator/list": Handler(dict[str, object], self._list),
            "operator/read": Handler(OperatorReadParams, self._read),
            "operator/signal": Handler(OperatorSignalParams, self._signal),
            "operator/terminate": Handler(OperatorParams, self._terminate),
            "operator/end": Handler(LabelParams, self._end),
            "place/bind": Handler(PlaceParams, self._bind),
            "place/unbind": Handler(PlaceParams, self._unbind),
        }

    async def _list(self, params: dict[str, object]) -> OperatorListResult:
        """List all processes, and their detached descendants."""
        nothing(params)
        listed = tuple(
            OperatorProcess(session.id, isinstance(session.holding, Attached), process.listed())
            for session in self._sessions
            for process in session.processes
        )
        return OperatorListResult(listed, await self._detached())

    async def _detached(self) -> tuple[DetachedProcess, ...]:
        known = {
            process.record.key: (session.id, process)
            for session in self._sessions
            for process in session.processes
        }
        roots = {process.listed().pid for _, process in known.values()}
        sessions = {session.id for session in self._sessions}
        numbers = {
            number: (key, session.id)
            for session in self._sessions
            for number, key in session.processes.numbers.items()
        }
        found = await self._workers.do(lambda: detached(sessions, roots, numbers))
        return tuple(
            DetachedProcess(
                each.process.pid,
                each.command,
                each.session,
                known[each.key][1].record.process if each.key in known else "",
            )
            for each in found
        )

    async def _read(self, asked: OperatorReadParams) -> ReadAnswer:
        """Read output of a process of any session."""
        processes = self._sessions.find(asked.session_id).processes
        result, _ = await processes.get(asked.read.process_id).read(asked.read)
        return result

    async def _signal(self, asked: OperatorSignalParams) -> dict[str, object]:
        """Signal a process of any session."""
        number = signal_number(asked.signal)
        await self._sessions.find(asked.session_id).processes.signal(asked.process_id, number)
        return {}

    async def _terminate(self, asked: OperatorParams) -> TerminateResult:
        """Kill a process of any session and its descendants."""
        processes = self._sessions.find(asked.session_id).processes
        return TerminateResult(await processes.terminate(asked.process_id))

    async def _end(self, asked: LabelParams) -> EndResult:
        """End all sessions with a label and everything that they started."""
        return EndResult(await self._sessions.end_labelled(asked.label))

    async def _bind(self, asked: PlaceParams) -> BindResult:
        """Create a token for one place."""
        # Only a place with a holder: otherwise what is visible in it cannot be checked.
        bindings = self._needed_bindings()
        directory = await self._workers.do(lambda: os.path.realpath(asked.directory))
        async with self._sessions.site(directory).reached():
            token = await self._workers.do(lambda: bindings.bind(directory), lane=_BINDINGS_LANE)
        return BindResult(token)

    async def _unbind(self, asked: PlaceParams) -> dict[str, object]:
        """Revoke the tokens of a place, and disconnect their clients."""
        bindings = self._needed_bindings()
        directory = await self._workers.do(lambda: os.path.realpath(asked.directory))
        await self._workers.do(lambda: bindings.unbind(directory), lane=_BINDINGS_LANE)
        self._sessions.evict(directory)
        return {}

    def _needed_bindings(self) -> Bindings:
        if self._bindings is None:
            reason = "this server asks for no token, so nobody could be bound by one"
            raise RequestUnfit(reason=reason)
        return self._bindings
