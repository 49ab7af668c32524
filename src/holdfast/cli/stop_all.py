"""End everything that runs for this state directory, or orphans, after saying what that is."""

from __future__ import annotations

import json
import os
import select
import signal
from contextlib import suppress
from typing import Final

import anyio

from holdfast.app.settings import Settings
from holdfast.cli.belongings import belongings, orphan
from holdfast.cli.commands import Request
from holdfast.cli.core.stop_page import (
    AGAIN,
    PROMPT,
    Belonging,
    Sort,
    consent,
    same,
    stop_page,
    stop_record,
)
from holdfast.cli.exec_processes import stop as stop_processes
from holdfast.cli.failures import StopUnconfirmed, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain
from holdfast.cli.terminal import Terminal
from holdfast.confine.place import end, places
from holdfast.confine.sandbox import clean
from holdfast.exec import end_orphans
from holdfast.exec.model import Orphan
from holdfast.exec.orphans import kill_held, name_of, orphans
from holdfast.failures import Failure
from holdfast.world import signal_exactly, system_process

_GRACE: Final = 10.0  # seconds to end in good order


def stop(request: Request, settings: Settings) -> Outcome:
    """End one process, all of another server, all that runs for us here, or orphans."""
    _refuse_nonsense(request)
    if not request.has("--orphans") and (not request.has("--all") or request.has("--server")):
        return stop_processes(request, settings)
    found = _found(request, settings)
    if found and not _is_confirmed(request, found):
        answer = json.dumps(stop_record(found, is_ended=False)) + "\n" if request.is_json else ""
        return Outcome(answer=answer, failure=StopUnconfirmed(count=len(found)))
    if found:
        _end_kindly(settings, found)
    for each in same(found, _found(request, settings)):
        _end(each)
    if request.has("--all") and (settings.state / "sandbox").is_dir():
        clean(settings.state / "sandbox")
    if request.is_json:
        return Outcome(answer=json.dumps(stop_record(found, is_ended=True)) + "\n")
    return Outcome(hint=f"All of it has ended ({len(found)})." if found else "Nothing runs.")


def _refuse_nonsense(request: Request) -> None:
    """One of three, and orphans are on this machine."""
    meant = (request.argument is not None, request.has("--all"), request.has("--orphans"))
    if sum(meant) != 1:
        problem = "say which PROCESS, or --all, or --orphans"
    elif request.has("--orphans") and request.has("--server"):
        problem = "--orphans are those of this machine; they have no --server"
    else:
        return
    raise UsageWrong(problem=problem, read_on="holdfast stop --help")


def _found(request: Request, settings: Settings) -> list[Belonging]:
    if request.has("--orphans"):
        return sorted(map(orphan, orphans()))
    return belongings(settings.state)


def _is_confirmed(request: Request, found: list[Belonging]) -> bool:
    """Whether a person said yes, here or on the command line, to what they are shown."""
    if request.is_json:
        return request.has("--yes")
    page = stop_page(found)
    if request.has("--yes"):
        complain(page)
        return True
    return anyio.run(_asked, page)


async def _asked(page: str) -> bool:
    terminal = Terminal()
    if not terminal.can_ask:
        complain(page)
        return False
    return bool(await terminal.ask(page, PROMPT, consent, again=AGAIN))


def _end_kindly(settings: Settings, found: list[Belonging]) -> None:
    """Let the processes of the local server end as they like, for as long as that is not long."""
    local = str((settings.state / "exec").resolve())
    if any(each.sort is Sort.SERVER and each.where == local for each in found):
        with suppress(Failure):  # whoever is left is ended with the keeper
            stop_processes(Request("stop", given=(("--all", "True"),)), settings)


def _end(each: Belonging) -> None:
    """End one, in good order if it can, and see it gone."""
    match each.sort:
        case Sort.PLACE:
            for place in places():
                if place.holder.pid == each.pid:
                    end(place.holder.directory)
        case Sort.KEEPER:
            name = name_of(each.pid)
            _kill(each.pid, signal.SIGKILL)
            if name is not None:
                kill_held(name)
        case Sort.ORPHAN:
            end_orphans([Orphan(each.pid, each.where)])
        case _:
            if not _kill(each.pid, signal.SIGTERM):
                _kill(each.pid, signal.SIGKILL)


def _kill(pid: int, number: signal.Signals) -> bool:
    """Send a signal to this very process; whether it is gone within its time."""
    process = system_process(pid)
    if process is None or process.is_dead:
        return True
    try:
        life = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        signal_exactly(process, number)
        return bool(select.select([life], [], [], _GRACE)[0])
    finally:
        os.close(life)
