"""Go on with a conversation twice: a new session that knows all that was said in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from holdfast.app.failures import SessionForkBusy
from holdfast.app.sessions import KeptSession, Sessions, runnable, short
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line
from holdfast.cli.project import at_work
from holdfast.host import SessionState, compose_journal, fold
from holdfast.host.model import (
    AnyRecord,
    AttemptStarted,
    EventRecorded,
    LeaseTaken,
    RevisionRecorded,
    SessionEnded,
    SessionOpened,
)
from holdfast.nouns import printable
from holdfast.runners.model import SessionKnown
from holdfast.workbench import discard, fork_draft, reopen_draft
from holdfast.world import in_thread

FORKED: Final = "forked"  # the option of a session that says which one it was


def fork(request: Request, settings: Settings) -> Outcome:
    """A new session with the same conversation, in a draft of its own with the same content."""
    session = Sessions(settings).find(request.argument)
    made = _made(session, settings, anyio.run(_read, session, settings))
    if request.is_json:
        record = {"schema": 1, "type": "session", "id": made.id, "draft": made.draft}
        return Outcome(answer=json_line({**record, "of": session.id}))
    name = printable(short(made))
    return Outcome(answer=f"{made.id}\n", hint=f"Go on: holdfast --resume {name}")


async def forked(session: KeptSession, settings: Settings) -> KeptSession:
    """Make a session that goes on from where another one is, which has to be at rest.

    What takes long if a large draft has to be copied holds nobody up.
    """
    read = await _read(session, settings)
    return await in_thread(partial(_made, session, settings, read))


class _Read(NamedTuple):
    """What was said, by the numbers of the records; and who knows it, if its runner keeps it."""

    records: Sequence[tuple[int, AnyRecord]]
    thread: str | None


async def _read(session: KeptSession, settings: Settings) -> _Read:
    records = Sessions(settings).records(runnable(session))
    known, thread = _at_rest(session, records).runner_session, None
    if known is not None and session.runner == "codex":  # which keeps what it knows itself
        from holdfast.cli.wiring.runner import Engagement

        thread = await Engagement(session, settings).forked(known)
    return _Read(records, thread)


def _made(session: KeptSession, settings: Settings, read: _Read) -> KeptSession:
    sessions = Sessions(settings)
    last = max((number for number, _ in read.records), default=0)  # a damaged one is missing
    with at_work(Request("fork", given=(("--project", session.project),)), settings) as project:
        reopen_draft(project.workbench, session.draft)
        draft = fork_draft(project.workbench, session.draft).id
        if sessions.last(session) != last:  # it went on meanwhile, and so did its draft
            discard(project.workbench, draft)
            raise SessionForkBusy(session=short(session))
    made = sessions.make(
        session.project,
        draft,
        session.runner,
        title=session.title,
        options={**session.options, FORKED: session.id},
    )
    copied = _copied(made, (record for _, record in read.records), read.thread)
    compose_journal(Path(sessions.directory(made)), copied, name=made.id)
    return made


def _at_rest(session: KeptSession, records: Iterable[tuple[int, AnyRecord]]) -> SessionState:
    state = fold(SessionState(), (record for _, record in records))
    if state.is_running or state.waiting:
        raise SessionForkBusy(session=short(session))
    return state


def _copied(
    made: KeptSession, records: Iterable[AnyRecord], thread: str | None
) -> Iterator[AnyRecord]:
    """What was said; a runner that has kept that in another thread goes on with that one."""
    yield SessionOpened(made.id, made.project, made.draft, made.runner, made.at_ms)
    for record in records:
        match record:
            case EventRecorded(turn, SessionKnown()) if thread is not None:
                yield EventRecorded(turn, SessionKnown(thread))
            case (
                SessionOpened()
                | AttemptStarted()
                | LeaseTaken()
                | SessionEnded()
                | RevisionRecorded()
            ):
                pass  # about the other session, and not what was said
            case _:
                yield record
