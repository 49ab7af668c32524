"""The methods of an operator: all processes of the server, whichever session has them.

Ours alone. They need no session and take none from anybody. Whoever got as far as this
connection may run any command as our user, and so could read all of it in the state directory.
"""

from __future__ import annotations

from holdfast.exec.core.sessions import Attached
from holdfast.exec.server.desk import Handlers, nothing
from holdfast.exec.server.plane import Plane
from holdfast.exec.server.processes import signal_number
from holdfast.exec.wire import (
    OperatorListResult,
    OperatorParams,
    OperatorProcess,
    OperatorReadParams,
    OperatorSignalParams,
    ReadResult,
    TerminateResult,
)
from holdfast.rpc import Handler


class OperatorMethods:
    """Serves one connection; each call names the session that it is about."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def handlers(self) -> Handlers:
        """Who serves which method."""
        return {
            "operator/list": Handler(dict[str, object], self._list),
            "operator/read": Handler(OperatorReadParams, self._read),
            "operator/signal": Handler(OperatorSignalParams, self._signal),
            "operator/terminate": Handler(OperatorParams, self._terminate),
        }

    async def _list(self, params: dict[str, object]) -> OperatorListResult:
        nothing(params)
        return OperatorListResult(
            tuple(
                OperatorProcess(session.id, isinstance(session.holding, Attached), process.listed())
                for session in self._plane
                for process in session.processes
            )
        )

    async def _read(self, asked: OperatorReadParams) -> ReadResult:
        processes = self._plane.find(asked.session_id).processes
        result, _ = await processes.get(asked.read.process_id).read(asked.read)
        return result

    async def _signal(self, asked: OperatorSignalParams) -> dict[str, object]:
        number = signal_number(asked.signal)
        await self._plane.find(asked.session_id).processes.signal(asked.process_id, number)
        return {}

    async def _terminate(self, asked: OperatorParams) -> TerminateResult:
        processes = self._plane.find(asked.session_id).processes
        return TerminateResult(await processes.terminate(asked.process_id))
