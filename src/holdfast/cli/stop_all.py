"""End everything that runs for this home, or for all homes of the user, after a question."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Final

from holdfast.app.settings import Settings
from holdfast.cli.belongings import belongings, orphan
from holdfast.cli.commands import Request
from holdfast.cli.confirming import confirmed
from holdfast.cli.core.stop_page import (
    PROMPT,
    Belonging,
    RunningTurn,
    Sort,
    same,
    stop_page,
    stop_record,
    turns_page,
)
from holdfast.cli.exec_processes import stop as stop_processes
from holdfast.cli.failures import StopUnconfirmed, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain
from holdfast.cli.stop_asking import ask_to_end, has_ended
from holdfast.cli.stop_note import leave_note
from holdfast.cli.stop_turns import running_turns
from holdfast.confine.cleaning import clean, clean_all
from holdfast.confine.place import end, places
from holdfast.exec import end_orphans
from holdfast.exec.model import Orphan
from holdfast.exec.orphans import kill_held, name_of, orphans
from holdfast.exec.server.places import SANDBOXES
from holdfast.world import signal_exactly, system_process

_GRACE: Final = 10.0  # seconds to end in good order
_KEEPING: Final = (Sort.SERVER, Sort.KEEPER)


def stop(request: Request, settings: Settings) -> Outcome:
    """End one process, all of another server, all that runs for us here, or orphans."""
    _refuse_nonsense(request)
    if not request.has("--orphans") and (not request.has("--all") or request.has("--server")):
        return stop_processes(request, settings)
    state = Path(request.value("--state") or settings.state)
    found = _found(request, state)
    turns = running_turns(found)
    if found and not _is_confirmed(request, found, turns):
        record = stop_record(found, turns, is_ended=False)
        answer = json.dumps(record) + "\n" if request.is_json else ""
        return Outcome(answer=answer, failure=StopUnconfirmed(count=len(found)))
    if request.has("--all"):
        leave_note({state / "exec", *(Path(each.kept) for each in found if each.sort in _KEEPING)})
    keepers = [name_of(each.pid) for each in found if each.sort is Sort.KEEPER]
    ask_to_end(found)
    for each in same(found, _found(request, state)):
        _end(each)
    for name in filter(None, keepers):
        kill_held(name)  # also what finished processes have left, of a keeper that held nothing
    if request.has("--all"):
        _tidy(state, found)
    if request.is_json:
        return Outcome(answer=json.dumps(stop_record(found, turns, is_ended=True)) + "\n")
    return Outcome(hint=f"All of it has ended ({len(found)})." if found else "Nothing runs.")


def _refuse_nonsense(request: Request) -> None:
    """One of three, and orphans are on this machine."""
    meant = (request.argument is not None, request.has("--all"), request.has("--orphans"))
    if sum(meant) != 1:
        problem = "say which PROCESS, or --all, or --orphans"
    elif request.has("--orphans") and request.has("--server"):
        problem = "--orphans are those of this machine; they have no --server"
    elif not request.has("--all") and (request.value("--state") or request.has("--everywhere")):
        problem = "--state and --everywhere go with --all"
    elif request.has("--everywhere") and (request.value("--state") or request.has("--server")):
        problem = "--everywhere means all homes of this machine: give no --state and no --server"
    elif not os.path.isdir(request.value("--state") or "/"):
        problem = f"--state: {request.value('--state')} is no directory"
    else:
        return
    raise UsageWrong(problem=problem, read_on="holdfast stop --help")


def _found(request: Request, state: Path) -> list[Belonging]:
    if request.has("--orphans"):
        return sorted(map(orphan, orphans()))
    return belongings(None if request.has("--everywhere") else state)


def _is_confirmed(request: Request, found: list[Belonging], turns: list[RunningTurn]) -> bool:
    """Whether a person said yes, here or on the command line, to what they are shown."""
    if request.is_json:
        return request.has("--yes")
    page = stop_page(found) + turns_page(turns)
    if request.has("--yes"):
        complain(page)
        return True
    return confirmed(page, PROMPT)


def _end(each: Belonging) -> None:
    """End one, in good order if it can, and see it gone."""
    match each.sort:
        case Sort.PLACE:
            for place in places():
                if place.holder.pid == each.pid:
                    end(place.holder.directory)
        case Sort.KEEPER:
            _kill(each.pid, signal.SIGKILL)
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
    signal_exactly(process, number)
    return has_ended(process, _GRACE)


def _tidy(state: Path, found: list[Belonging]) -> None:
    """Remove what stood in for names that sandboxes protect."""
    servers = {Path(each.kept) for each in found if each.sort in _KEEPING}
    for server in {state / "exec", *servers}:
        clean_all(server / SANDBOXES)
    kept = {Path(each.kept).parent for each in found if each.sort is Sort.SANDBOX}
    for directory in {state / "sandbox", *kept}:
        if directory.is_dir():
            clean(directory)
