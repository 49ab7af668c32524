"""Process methods of a connection, for the processes of its session."""

from __future__ import annotations

from holdfast.exec.failures import RequestInvalid
from holdfast.exec.protocol import (
    SIZE_MAX,
    ListResult,
    ProcessParams,
    ReadParams,
    ResizeParams,
    SignalParams,
    StartResult,
    TerminateResult,
    WriteParams,
    WriteResult,
)
from holdfast.exec.server.context import ConnectionContext, Handlers, plain
from holdfast.exec.server.model import ReadAnswer, StartAsked
from holdfast.exec.server.processes import Processes, signal_number
from holdfast.rpc import Handler


class ProcessMethods:
    """Process methods of one connection; each call uses the session that it has at that time."""

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context

    def handlers(self) -> Handlers:
        """Return the handlers; the last five are ours."""
        return {
            "process/start": Handler(StartAsked, self._start),
            "process/read": Handler(ReadParams, self._read),
            "process/write": Handler(WriteParams, self._write),
            "process/signal": Handler(SignalParams, self._signal),
            "process/terminate": Handler(ProcessParams, self._terminate),
            "process/closeStdin": Handler(ProcessParams, self._close_stdin),
            "process/resize": Handler(ResizeParams, self._resize),
            "process/list": plain(self._list),
            "process/kill": Handler(SignalParams, self._signal),
            "process/forget": Handler(ProcessParams, self._forget),
        }

    async def _processes(self) -> Processes:
        return (await self._context.session("exec")).processes

    async def _start(self, asked: StartAsked) -> StartResult:
        """Start a process, and send its events from the first one on."""
        session = await self._context.session("exec")
        result, process = await session.processes.start(asked)
        # The current owner of the session gets the events; after a takeover that is another
        # connection than the one that sent the request.
        if session.owner is not None:
            session.owner.process_started(process)
        return result

    async def _read(self, asked: ReadParams) -> ReadAnswer:
        """Return retained output after an event; waits for more if requested."""
        process = (await self._processes()).get(asked.process_id)
        result, reach = await process.read(asked)
        self._context.sender.caught_up(process, reach)
        return result

    async def _write(self, asked: WriteParams) -> WriteResult:
        """Write to stdin, once per write id."""
        return WriteResult(await (await self._processes()).write(asked))

    async def _signal(self, asked: SignalParams) -> dict[str, object]:
        """Signal a process group: `interrupt`, or any signal by name."""
        number = signal_number(asked.signal)
        await (await self._processes()).signal(asked.process_id, number)
        return {}

    async def _terminate(self, asked: ProcessParams) -> TerminateResult:
        """Kill a process and its descendants."""
        return TerminateResult(await (await self._processes()).terminate(asked.process_id))

    async def _close_stdin(self, asked: ProcessParams) -> dict[str, object]:
        """Close the stdin of a process."""
        await (await self._processes()).get(asked.process_id).close_stdin()
        return {}

    async def _resize(self, asked: ResizeParams) -> dict[str, object]:
        """Set the terminal size of a process."""
        if not (0 < asked.rows <= SIZE_MAX and 0 < asked.cols <= SIZE_MAX):
            raise RequestInvalid(reason=f"a size is between 1 and {SIZE_MAX}")
        (await self._processes()).get(asked.process_id).resize(asked.rows, asked.cols)
        return {}

    async def _forget(self, asked: ProcessParams) -> dict[str, object]:
        """Remove record and output of an exited process, and free its id."""
        process = await (await self._processes()).forget(asked.process_id)
        if process is not None:
            self._context.sender.forget(process)
        return {}

    async def _list(self) -> ListResult:
        """List the processes of the session."""
        return (await self._processes()).listed()
