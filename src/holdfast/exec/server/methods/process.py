"""The methods of processes: what a client may do with those of its session."""

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
    """Serves one connection; each call acts on the session that the connection has then."""

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context

    def handlers(self) -> Handlers:
        """Who serves which method; the last five are ours alone."""
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
        """Start a process, and tell of it from its first event on."""
        session = await self._context.session("exec")
        result, process = await session.processes.start(asked)
        # Whoever has the session by now is told; that may be another connection than the one
        # that asked.
        if session.owner is not None:
            session.owner.process_started(process)
        return result

    async def _read(self, asked: ReadParams) -> ReadAnswer:
        """The output that is kept, from an event on; waits for more if it is asked to."""
        process = (await self._processes()).get(asked.process_id)
        result, reach = await process.read(asked)
        self._context.sender.caught_up(process, reach)
        return result

    async def _write(self, asked: WriteParams) -> WriteResult:
        """Give a process input, once for each write id."""
        return WriteResult(await (await self._processes()).write(asked))

    async def _signal(self, asked: SignalParams) -> dict[str, object]:
        """Signal the group of a process: `interrupt`, and where we are known any other."""
        number = signal_number(asked.signal)
        await (await self._processes()).signal(asked.process_id, number)
        return {}

    async def _terminate(self, asked: ProcessParams) -> TerminateResult:
        """End a process and all that it has started."""
        return TerminateResult(await (await self._processes()).terminate(asked.process_id))

    async def _close_stdin(self, asked: ProcessParams) -> dict[str, object]:
        """End the input of a process."""
        await (await self._processes()).get(asked.process_id).close_stdin()
        return {}

    async def _resize(self, asked: ResizeParams) -> dict[str, object]:
        """Make the terminal of a process another size."""
        if not (0 < asked.rows <= SIZE_MAX and 0 < asked.cols <= SIZE_MAX):
            raise RequestInvalid(reason=f"a size is between 1 and {SIZE_MAX}")
        (await self._processes()).get(asked.process_id).resize(asked.rows, asked.cols)
        return {}

    async def _forget(self, asked: ProcessParams) -> dict[str, object]:
        """Remove the record and the output of a process that has ended; its id is free again."""
        process = await (await self._processes()).forget(asked.process_id)
        if process is not None:
            self._context.sender.forget(process)
        return {}

    async def _list(self) -> ListResult:
        """The processes of the session."""
        return (await self._processes()).listed()
