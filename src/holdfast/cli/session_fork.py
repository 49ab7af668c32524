"""Go on with a conversation twice: a new session that knows all that was said in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import anyio

from holdfast.app.failures import SessionForkBusy
from holdfast.app.sessions import KeptSession, Sessions, runnable, short
from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work
from holdfast.host import Session, compose_book, fold
from holdfast.host.model import AnyRecord, Begun, Closed, Happened, Led, Opened, Revised
from holdfast.nouns import printable
from holdfast.runners.model import SessionKnown
from holdfast.workbench import discard, fork_draft

FORKED: Final = "forked"  # the option of a session that says which one it was


def fork(request: Request, settings: Settings) -> Outcome:
    """A new session with the same conversation, in a draft of its own with the same content."""
    session = Sessions(settings).find(request.argument)
    made = anyio.run(forked, session, settings)
    if request.is_json:
        record = {"schema": 1, "type": "session", "id": made.id, "draft": made.draft}
        return Outcome(answer=json_line({**record, "of": session.id}))
    name = printable(short(made))
    return Outcome(answer=f"{made.id}\n", hint=f"Go on: holdfast --resume {name}")


async def forked(session: KeptSession, settings: Settings) -> KeptSession:
    """Make a session that goes on from where another one is, which has to be at rest."""
    sessions = Sessions(settings)
    records = sessions.records(runnable(session))
    last = max((number for number, _ in records), default=0)  # one that was damaged may be missing
    known, thread = _at_rest(session, records).runner_session, None
    if known is not None and session.runner == "codex":  # which keeps what it knows itself
        from holdfast.cli.session_runner import Engagement

        thread = await Engagement(session, settings).forked(known)
    with at_work(Request("fork", given=(("--project", session.project),)), settings) as project:
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
    copied = _copied(made, (record for _, record in records), thread)
    compose_book(Path(sessions.directory(made)), copied, name=made.id)
    return made


def _at_rest(session: KeptSession, records: Iterable[tuple[int, AnyRecord]]) -> Session:
    state = fold(Session(), (record for _, record in records))
    if state.is_running or state.waiting:
        raise SessionForkBusy(session=short(session))
    return state


def _copied(
    made: KeptSession, records: Iterable[AnyRecord], thread: str | None
) -> Iterator[AnyRecord]:
    """What was said; a runner that has kept that in another thread goes on with that one."""
    yield Opened(made.id, made.project, made.draft, made.runner, made.at_ms)
    for record in records:
        match record:
            case Happened(turn, SessionKnown()) if thread is not None:
                yield Happened(turn, SessionKnown(thread))
            case Opened() | Begun() | Led() | Closed() | Revised():
                pass  # about the other session, and not what was said
            case _:
                yield record
