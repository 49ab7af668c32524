"""End everything that runs for this home, or for all homes of the user, after a question."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from holdfast.app.sessions import PREFIX
from holdfast.app.settings import Settings
from holdfast.app.wiring.local_server import TOKEN, ExecEndpoint, write_stop_markers
from holdfast.cli.commands.processes import end_all
from holdfast.cli.commands.processes import stop as stop_processes
from holdfast.cli.commands.running_parts import address, belongings, orphan
from holdfast.cli.declarations import Request
from holdfast.cli.failures import StopUnconfirmed, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain
from holdfast.cli.render.stop import (
    PROMPT,
    Belonging,
    RunningTurn,
    Sort,
    same,
    stop_page,
    stop_record,
    turns_page,
)
from holdfast.cli.terminal import confirmed
from holdfast.confine.place.place import end, places
from holdfast.confine.sandbox.placeholder_sweeper import clean, clean_all
from holdfast.exec import end_orphans
from holdfast.exec.keeper.discovery import kill_held, name_of, orphans
from holdfast.exec.model import Orphan
from holdfast.exec.server.places import SANDBOXES
from holdfast.exec.server.tokens import token_in
from holdfast.failures import Failure
from holdfast.host import SessionState, fold, read_session_journal
from holdfast.host.model import PromptQueued
from holdfast.world import (
    SystemProcess,
    command_of,
    signal_exactly,
    system_process,
    system_processes,
)

_GRACE: Final = 5.0  # seconds to end as it likes


def ask_to_end(found: Sequence[Belonging]) -> None:
    """Let the processes of servers end as they like, for as long as that is not long.

    Reachable servers end their own processes, so that attached clients get the exit status.
    """
    keepers = [each for each in found if each.sort is Sort.KEEPER and each.processes]
    busy = {each.kept for each in keepers}
    servers = [each for each in found if each.sort is Sort.SERVER and each.kept in busy]
    anyio.run(_ask_all, [server for each in servers if (server := _reachable(each)) is not None])
    numbers = {each.pid for each in keepers}
    groups = {each.group for each in system_processes() if each.parent in numbers}
    asked = [each for each in system_processes() if each.group in groups and not each.is_dead]
    deadline = time.monotonic() + _GRACE
    for each in asked:
        signal_exactly(each, signal.SIGTERM)
    for each in asked:
        has_ended(each, deadline - time.monotonic())


def _reachable(found: Belonging) -> ExecEndpoint | None:
    """A server that runs, as one that we can speak to."""
    url, token = address(found.pid), Path(found.kept, TOKEN)
    if url is None:
        return None
    return ExecEndpoint(url, token=token_in(token) if token.exists() else None)


async def _ask_all(servers: Sequence[ExecEndpoint]) -> None:
    async with anyio.create_task_group() as tasks:
        for each in servers:
            tasks.start_soon(_ask, each)


async def _ask(server: ExecEndpoint) -> None:
    with suppress(Failure):  # survivors get a signal, and end with the keeper
        await end_all(server)


def has_ended(process: SystemProcess, patience: float) -> bool:
    """Whether this very process is gone, now or within a time."""
    try:
        life = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        now = system_process(process.pid)
        if now is None or now.is_dead or now.started != process.started:
            return True
        return bool(select.select([life], [], [], max(0.0, patience))[0])
    finally:
        os.close(life)


_HOST: Final = " host "  # how the command of a host goes on, before the id of its session


def running_turns(found: Sequence[Belonging]) -> list[RunningTurn]:
    """Every turn with a living host among what these keepers hold."""
    keepers = {each.pid: Path(each.kept) for each in found if each.sort is Sort.KEEPER}
    turns: list[RunningTurn] = []
    for process in system_processes() if keepers else ():
        if process.is_dead or process.parent not in keepers:
            continue
        _, is_host, session = command_of(process.pid).partition(_HOST)
        if is_host and session.startswith(f"{PREFIX}_"):
            # A keeper's directory is `exec` in the state directory, beside the sessions.
            sessions = keepers[process.parent].parent / "sessions"
            turns += _running(sessions / session.strip() / "journal.jsonl")
    return sorted(turns)


def _running(journal: Path) -> list[RunningTurn]:
    with suppress(Failure):  # a journal that cannot be read says nothing about its turns
        records = [record for _, record in read_session_journal(journal)]
        state = fold(SessionState(), records)
        asked = (
            each for each in records if isinstance(each, PromptQueued) and each.turn == state.turn
        )
        if state.is_running:
            prompt = next((each.text for each in asked), "")
            return [RunningTurn(state.id, state.project, prompt)]
    return []


_STOP_GRACE: Final = 10.0  # seconds to end in good order
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
        kept = (Path(each.kept) for each in found if each.sort in _KEEPING)
        write_stop_markers({state / "exec", *kept})
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
    return Outcome(hint=f"Ended everything ({len(found)})." if found else "Nothing is running.")


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
        problem = f"--state: {request.value('--state')} is not a directory"
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
    return has_ended(process, _STOP_GRACE)


def _tidy(state: Path, found: list[Belonging]) -> None:
    """Remove what stood in for names that sandboxes protect."""
    servers = {Path(each.kept) for each in found if each.sort in _KEEPING}
    for server in {state / "exec", *servers}:
        clean_all(server / SANDBOXES)
    kept = {Path(each.kept).parent for each in found if each.sort is Sort.SANDBOX}
    for directory in {state / "sandbox", *kept}:
        if directory.is_dir():
            clean(directory)
