"""`holdfast ps`, `logs` and `stop`: list processes, print their output, end them."""

from __future__ import annotations

import sys
import time

import anyio

from holdfast.app.settings import Settings
from holdfast.app.wiring.local_server import ExecEndpoint
from holdfast.cli.commands.exec import endpoint_of, looked_up, reached, unnamed
from holdfast.cli.declarations import Request
from holdfast.cli.failures import OutputLost, ProcessUndying
from holdfast.cli.model import Outcome
from holdfast.cli.output import abandon, complain, json_line, look_for
from holdfast.cli.render.processes import (
    Seen,
    detached_line,
    detached_note,
    end_line,
    ended_line,
    ended_note,
    gap_line,
    is_internal,
    orphan_line,
    orphans_note,
    output_line,
    process_line,
    processes_page,
)
from holdfast.cli.terminal import write_all
from holdfast.exec import Operator, find_orphans, operating
from holdfast.exec.model import Detached, Page
from holdfast.exec.protocol import OperatorProcess, OutputStream
from holdfast.rpc import Transport
from holdfast.rpc.failures import SocketRefused

_OUT, _ERR = 1, 2
_POLL = 20.0  # seconds that one question for more output stays open
_GRACE = 5.0
_TOLD_LONGEST, _LOOK_AGAIN = 2.0, 0.02


def ps(request: Request, settings: Settings) -> Outcome:
    """List all processes; a local server that does not run has none, but there may be orphans."""
    server = endpoint_of(request, settings)
    try:
        listed, detached = anyio.run(_Overseen(server).listing)
        found = sorted(map(_seen, listed), key=lambda each: each.started_at_ms)
    except SocketRefused:
        if server.state is None:
            raise
        found, detached = [], ()
    hidden = 0 if request.has("--all") else sum(map(is_internal, found))
    found = [each for each in found if request.has("--all") or not is_internal(each)]
    lost = find_orphans() if server.state is not None else ()
    if request.is_json:
        records = [process_line(each) for each in found]
        records += [detached_line(each) for each in detached]
        records += [orphan_line(each) for each in lost]
        return Outcome(answer="".join(map(json_line, records)))
    look = look_for(sys.stdout, request, settings)
    hints = [] if found else ["No processes. Start one with: holdfast exec -- ..."]
    hints += [f"{hidden} of Holdfast's own: holdfast ps --all"] if hidden else []
    hints += [detached_note(detached)] if detached else []
    hints += [orphans_note(lost)] if lost else []
    page = processes_page(found, look, now=time.time())
    return Outcome(answer=page, hint="\n".join(hints))


def logs(request: Request, settings: Settings) -> Outcome:
    """Print the retained output of a process; with --follow, until it ends."""
    if request.argument is None:
        raise unnamed(request)
    anyio.run(_Overseen(endpoint_of(request, settings)).logs, request)
    return Outcome()


def stop(request: Request, settings: Settings) -> Outcome:
    """End a process, or all of them."""
    ended = anyio.run(_Overseen(endpoint_of(request, settings)).stop, request)
    undying = [name for name, _, status in ended if status is None]
    failure = None
    if undying:
        failure = ProcessUndying(processes=", ".join(undying), limit=2 * _GRACE)
    if request.is_json:
        lines = [json_line(ended_line(*each)) for each in ended]
        return Outcome(answer="".join(lines), failure=failure)
    notes = [ended_note(name, status) for name, _, status in ended if status is not None]
    return Outcome(
        hint="\n".join(notes) or ("" if ended else "Nothing is running."), failure=failure
    )


async def end_all(server: ExecEndpoint) -> None:
    """End all processes of a server, and wait until attached clients have left."""
    overseen = _Overseen(server)
    ended = await overseen.stop(Request("stop", given=(("--all", "True"),)))
    await overseen.told({session for _, session, _ in ended})


class _Overseen:
    """Operator methods of a server; raises SocketRefused at once if none listens."""

    def __init__(self, server: ExecEndpoint) -> None:
        self._server = server
        self._first: Transport | None = None

    async def listing(self) -> tuple[tuple[OperatorProcess, ...], tuple[Detached, ...]]:
        self._first = await self._server.dial_kept()
        async with operating(self._dial) as operator:
            return await operator.listing()

    async def logs(self, request: Request) -> None:
        self._first = await reached(request, self._server)
        async with operating(self._dial) as operator:
            of, records = await looked_up(request, operator), request.is_json
            await _copy(operator, of, request.has("--follow"), as_records=records)

    async def stop(self, request: Request) -> list[tuple[str, str, int | None]]:
        """End those that are meant; the name, session and exit status of each."""
        ended: list[tuple[str, str, int | None]] = []

        async def end(each: OperatorProcess) -> None:
            status = await _end(operator, each)
            ended.append((each.process.process_id, each.session_id, status))

        self._first = await reached(request, self._server)
        async with (
            operating(self._dial, answer_longest=2 * _GRACE) as operator,
            anyio.create_task_group() as tasks,
        ):
            if not request.has("--all"):
                await end(await looked_up(request, operator))
                return ended
            for each in await operator.processes():
                if not each.process.exited:
                    tasks.start_soon(end, each)
        return ended

    async def told(self, sessions: set[str]) -> None:
        """Wait, with a timeout, until no client is attached to these sessions."""
        with anyio.move_on_after(_TOLD_LONGEST):
            async with operating(self._dial) as operator:
                while True:
                    found = await operator.processes()
                    if sessions.isdisjoint(each.session_id for each in found if each.attached):
                        return
                    await anyio.sleep(_LOOK_AGAIN)

    async def _dial(self) -> Transport:
        first, self._first = self._first, None
        return first or await self._server.dial_or_start()


def _seen(each: OperatorProcess) -> Seen:
    return Seen(
        id=each.process.process_id,
        session=each.session_id,
        is_attached=each.attached,
        argv=each.process.argv,
        pid=each.process.pid or None,
        tty=each.process.tty,
        started_at_ms=each.process.started_at_ms,
        status=each.process.exit_code,
        stalled=each.process.stalled,
        is_lost=each.process.lost,
    )


async def _copy(
    operator: Operator, of: OperatorProcess, is_following: bool, *, as_records: bool
) -> None:
    """Write all chunks in their order, each stream where it belongs, or all as records."""
    after = 0
    while True:
        page = await operator.read(of, after=after, wait=_POLL if is_following else 0)
        is_last = not page.chunks and (page.closed or not is_following)
        if as_records:
            await _put(_OUT, _records(page, after, is_last).encode())
        else:
            if page.first_retained > after + 1:
                complain("(what came before is no longer kept)\n")
            for chunk in page.chunks:
                await _put(_ERR if chunk.stream == OutputStream.STDERR else _OUT, chunk.data)
        after = max(after, page.next_seq - 1)
        if is_last:
            return


def _records(page: Page, after: int, is_last: bool) -> str:
    lines = [gap_line(page.first_retained)] if page.first_retained > after + 1 else []
    lines += [output_line(chunk) for chunk in page.chunks]
    lines += [end_line(page)] if is_last else []
    return "".join(map(json_line, lines))


async def _put(descriptor: int, data: bytes) -> None:
    try:
        await write_all(descriptor, data)
    except OSError as error:
        abandon(descriptor)
        if descriptor == _OUT:
            raise OutputLost(reason=error.strerror or str(error)) from error


async def _end(operator: Operator, of: OperatorProcess) -> int | None:
    """End it kindly, then by force; return the status that it has ended with.

    Nor is anything waited for longer that cannot pass a signal on. What it has started ends, too.
    """
    with anyio.move_on_after(_GRACE):
        await operator.signal(of, "TERM")
        status = await _status(operator, of)
        await operator.terminate(of)
        return status
    with anyio.move_on_after(_GRACE):
        await operator.terminate(of)
        return await _status(operator, of)
    return None


async def _status(operator: Operator, of: OperatorProcess) -> int:
    after = of.process.next_seq
    while True:
        page = await operator.read(of, after=after - 1, wait=_POLL)
        if page.status is not None:
            return page.status
        after = max(after, page.next_seq)
