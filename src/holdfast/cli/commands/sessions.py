"""See to sessions: list them, read them, watch them, end them."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import anyio
import msgspec

from holdfast.app.sessions import TITLE_MOST, KeptSession, Sessions, short
from holdfast.app.settings import Settings
from holdfast.app.wiring.host import end_processes
from holdfast.app.wiring.keys import known_secrets
from holdfast.cli.declarations import Request
from holdfast.cli.failures import ProcessUndying
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal, json_line, look_for
from holdfast.cli.render.sessions import (
    INTERRUPTED,
    SeenSession,
    conversation_page,
    line_of,
    session_record,
    sessions_page,
)
from holdfast.cli.render.style import Look
from holdfast.cli.render.turns import record_of
from holdfast.cli.terminal import Terminal
from holdfast.failures import Failure
from holdfast.host import ClientRole, RecordReceived, SessionState, connect_host, end_host, fold
from holdfast.host.failures import JournalRepaired
from holdfast.host.model import AnyRecord, CloseCommand, EventRecorded, PromptQueued
from holdfast.nouns import printable
from holdfast.rpc import connect
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, RequestTimedOut, SocketRefused
from holdfast.runners.model import NoticeIssued
from holdfast.telemetry import Redactor, ValueRedactor
from holdfast.world import END_LONGEST, SystemDisk, write_all

_INTERRUPTED: Final = (
    "The last turn was interrupted: its host is gone. Go on with: holdfast --resume {name}"
)
_GONE_LONGEST: Final = 20.0  # seconds that a host which is to end is waited for


def listing(request: Request, settings: Settings) -> Outcome:
    """All sessions, the newest first."""
    sessions = Sessions(settings)
    found = anyio.run(seen, sessions, sessions.all())
    if request.is_json:
        return Outcome(answer="".join(json_line(session_record(each)) for each in found))
    look = look_for(sys.stdout, request, settings)
    hint = "" if found else 'No sessions. Begin one: holdfast ask "..."'
    return Outcome(answer=sessions_page(found, look, now=time.time()), hint=hint)


def show(request: Request, settings: Settings) -> Outcome:
    """All that was said and done in a session."""
    sessions = Sessions(settings)
    session = sessions.find(request.argument)
    records = sessions.records(session)
    if request.is_json:
        return Outcome(answer="".join(json_line(record_of(*each)) for each in records))
    look = look_for(sys.stdout, request, settings)
    said = [record for _, record in records]
    page = conversation_page(said, look, cells=cells_of(look))
    is_open = fold(SessionState(), said).is_running
    if is_open and not anyio.run(_is_hosted, sessions, session):
        return Outcome(answer=page, hint=_INTERRUPTED.format(name=short(session)))
    return Outcome(answer=page)


def watch(request: Request, settings: Settings) -> Outcome:
    """Print a session and follow it until no turn runs or waits."""
    sessions = Sessions(settings)
    look = look_for(sys.stdout, request, settings)
    anyio.run(_watch, sessions, sessions.find(request.argument), look, request.is_json)
    return Outcome()


def end(request: Request, settings: Settings) -> Outcome:
    """End the running turn, the host and every process of a session.

    The conversation is kept, and so is the draft unless it has no changes.
    """
    sessions = Sessions(settings)
    session = sessions.find(request.argument)
    was_hosted, left = anyio.run(_end, sessions, session, settings)
    if left:
        failure = ProcessUndying(processes=", ".join(left), limit=END_LONGEST)
        return Outcome(failure=failure)
    said = f"{session.id} has ended." if was_hosted else f"{session.id} was not running."
    if _is_draft_gone(session, settings):
        return Outcome(
            hint=f"{said} The conversation is kept; its draft had no changes and was deleted."
        )
    return Outcome(hint=f"{said} The conversation and the draft are kept.")


def _is_draft_gone(session: KeptSession, settings: Settings) -> bool:
    """Remove the draft of a session that has ended, if nothing was changed in it."""
    from holdfast.workbench import Workbench, discard_unchanged  # only `end` needs it

    if not session.draft:
        return False
    with suppress(Failure):  # the project is gone, or its workbench is locked
        workbench = Workbench.at(Path(session.project), settings.state)
        return workbench.is_used and discard_unchanged(workbench, session.draft)
    return False


async def _end(
    sessions: Sessions, session: KeptSession, settings: Settings
) -> tuple[bool, tuple[str, ...]]:
    """Whether it had a host, and what could not be ended.

    A host that does not answer or does not go in time is killed: all it knows is in the journal.
    """
    was_hosted = True
    gone_by = anyio.current_time() + _GONE_LONGEST
    try:
        await _close(sessions, session)
    except SocketRefused:
        was_hosted = False
    except (ConnectionClosed, ConnectionLost):
        pass
    except RequestTimedOut:
        gone_by = anyio.current_time()
    grace = max(0.0, gone_by - anyio.current_time())
    await end_host(sessions.socket(session), grace=grace)
    return was_hosted, await end_processes(session, settings)


def cells_of(look: Look) -> int | None:
    """The width at which messages are wrapped; None if the output is not a terminal."""
    return look.width if is_terminal(sys.stdout) else None


async def _close(sessions: Sessions, session: KeptSession) -> None:
    """Return once its host is gone, or has had long enough to go."""
    async with connect_host(sessions.socket(session)) as call:
        last = await call.command(CloseCommand(f"end-{secrets.token_hex(8)}"))
        with anyio.move_on_after(_GONE_LONGEST), suppress(ConnectionClosed, ConnectionLost):
            async for _ in call.watch(after=last):
                pass


async def _watch(sessions: Sessions, session: KeptSession, look: Look, is_json: bool) -> None:
    terminal, seen, state = Terminal(), 0, SessionState()

    async def tell(seq: int, record: AnyRecord) -> None:
        nonlocal seen, state
        seen, state = seq, fold(state, (record,))
        if is_json:
            await terminal.say(json_line(record_of(seq, record)))
        else:
            await terminal.say(line_of(record, look, cells=cells_of(look)))

    try:
        async with connect_host(sessions.socket(session), role=ClientRole.WATCH) as call:
            async for news in call.watch():
                for each in news:
                    if isinstance(each, RecordReceived):
                        await tell(*each)
                if seen >= call.standing.seq and not (state.is_running or state.waiting):
                    return
    except (SocketRefused, ConnectionClosed, ConnectionLost):
        for seq, record in sessions.records(session, after=seen):
            await tell(seq, record)


async def seen(sessions: Sessions, some: Iterable[KeptSession]) -> list[SeenSession]:
    """Each of some sessions, as much of it as a list needs."""
    return [_seen(sessions, each, is_hosted=await _is_hosted(sessions, each)) for each in some]


async def _is_hosted(sessions: Sessions, session: KeptSession) -> bool:
    """Whether a host listens on the socket of the session."""
    try:
        await (await connect(sessions.socket(session))).aclose()
    except SocketRefused:
        return False
    return True


def _is_repair(record: AnyRecord) -> bool:
    """Whether a host has found the journal damaged, and says so here."""
    match record:
        case EventRecorded(event=NoticeIssued(failure=dict(failure))):
            return failure.get("code") == JournalRepaired.code
        case _:
            return False


def _seen(sessions: Sessions, session: KeptSession, *, is_hosted: bool) -> SeenSession:
    records = [record for _, record in sessions.records(session)]
    state = fold(SessionState(), records)
    asked = next((each.text for each in records if isinstance(each, PromptQueued)), "")
    return SeenSession(
        id=session.id,
        name=short(session),
        project=session.project,
        draft=session.draft,
        runner=session.runner,
        title=session.title or asked.strip()[:TITLE_MOST],
        at_ms=session.at_ms,
        turns=state.turn,
        phase=INTERRUPTED if state.is_running and not is_hosted else state.phase,
        is_hosted=is_hosted,
        is_repaired=any(map(_is_repair, records)),
    )


_SCHEMA: Final = 1


def export(request: Request, settings: Settings) -> Outcome:
    """A session without secrets, on standard output or in a file that was not there before."""
    sessions = Sessions(settings)
    session = sessions.find(request.argument)
    lines = exported(sessions, session, Redactor(known_secrets(settings)))
    output = request.value("--output")
    if output is None:
        return Outcome(answer="".join(lines))
    _write_new(Path(output).absolute(), lines)
    return Outcome(hint=f"{session.id} is in {printable(output)}. Look through it first.")


def exported(sessions: Sessions, session: KeptSession, redactor: Redactor) -> Iterator[str]:
    """What the session is about, then each of its records, a line of JSON each."""
    clean = ValueRedactor(redactor.text)
    about: dict[str, object] = msgspec.to_builtins(session)
    yield json_line(clean.mapping({"schema": _SCHEMA, "type": "session", **about}))
    for each in sessions.records(session):
        yield json_line(clean.mapping(record_of(*each)))


def _write_new(path: Path, lines: Iterator[str]) -> None:
    """Write all of it to a file of this name, or leave none."""
    disk = SystemDisk()
    with ExitStack() as undo:
        file = disk.create(path, mode=0o600)
        undo.callback(_discard, disk, path)
        try:
            for line in lines:
                write_all(file, line.encode(), path=path)
            file.sync()
        finally:
            file.close()
        disk.sync_directory(path.parent)
        undo.pop_all()


def _discard(disk: SystemDisk, path: Path) -> None:
    with suppress(Failure):  # what went wrong before matters more
        disk.unlink(path)
