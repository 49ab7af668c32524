"""The doctor's visit: examine the machine, show that it goes on, hand over the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from holdfast import __version__
from holdfast.app.doctor.checks import checks
from holdfast.app.doctor.doctor import Check, examine, this_machine
from holdfast.app.doctor.model import Machine, Report, Result
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal, look_for
from holdfast.cli.render.doctor import page, progress

_QUIET_FIRST = 1.0  # seconds
_CLEAR = "\r\x1b[K"


def doctor(request: Request, settings: Settings) -> Outcome:
    """Examine this machine, and answer as asked."""
    look = look_for(sys.stdout, request, settings)
    machine = this_machine()
    wanted = checks(settings, machine)
    shows_progress = is_terminal(sys.stderr) and not settings.colourless
    results = anyio.run(_visit, wanted, machine, look.width if shows_progress else None)
    report = Report(__version__, machine, results)
    if request.is_json:
        return Outcome(status=report.exit_status, answer=json.dumps(report.to_wire()) + "\n")
    return Outcome(status=report.exit_status, answer=page(report, look))


async def _visit(
    wanted: Sequence[Check], machine: Machine, progress_width: int | None
) -> tuple[Result, ...]:
    """All results, in the order of the checks."""
    hand_over, results = anyio.create_memory_object_stream[Result](len(wanted))
    found: dict[str, Result] = {}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(examine, wanted, machine, hand_over)
        if progress_width is not None:
            tasks.start_soon(_show_progress, wanted, found, progress_width)
        await _collect(results, found)
        tasks.cancel_scope.cancel()
    return tuple(found[check.id] for check in wanted)


async def _collect(results: MemoryObjectReceiveStream[Result], found: dict[str, Result]) -> None:
    async with results:
        async for result in results:
            found[result.id] = result


async def _show_progress(wanted: Sequence[Check], found: dict[str, Result], width: int) -> None:
    """After a second of silence, say what is being waited for."""
    await anyio.sleep(_QUIET_FIRST)
    try:
        while True:
            waiting = [check.title for check in wanted if check.id not in found]
            line = progress(done=len(found), total=len(wanted), waiting=waiting, width=width)
            sys.stderr.write(_CLEAR + line)
            sys.stderr.flush()
            await anyio.sleep(0.1)
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
