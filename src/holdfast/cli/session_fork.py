"""Go on with a conversation twice: a new session that knows all that was said in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from holdfast.app.failures import SessionForkBusy, SessionForkRefused
from holdfast.app.sessions import KeptSession, Sessions, runnable, short
from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work
from holdfast.host import Session, compose_book, fold
from holdfast.host.model import AnyRecord, Begun, Closed, Led, Opened, Revised
from holdfast.nouns import printable
from holdfast.workbench import fork_draft

FORKED: Final = "forked"  # the option of a session that says which one it was
_FORKABLE: Final = ("rehearsal", "native")  # all that these know is in the journal
_OWN: Final = (Opened, Begun, Led, Closed, Revised)  # about the other session, not what was said


def fork(request: Request, settings: Settings) -> Outcome:
    """A new session with the same conversation, in a draft of its own with the same content."""
    sessions = Sessions(settings)
    session = runnable(sessions.find(request.argument))
    if session.runner not in _FORKABLE:
        raise SessionForkRefused(session=short(session), runner=session.runner)
    records = sessions.records(session)
    _require_rest(session, records)
    there = Request(request.command, given=(("--project", session.project),))
    with at_work(there, settings) as project:
        draft = fork_draft(project.workbench, session.draft).id
    if sessions.last(session) != len(records):  # it went on meanwhile, and so did its draft
        raise SessionForkBusy(session=short(session))
    made = sessions.make(
        session.project,
        draft,
        session.runner,
        title=session.title,
        options={**session.options, FORKED: session.id},
    )
    copied = _copied(made, (record for _, record in records))
    compose_book(Path(sessions.directory(made)), copied, name=made.id)
    if request.is_json:
        record = {"schema": 1, "type": "session", "id": made.id, "draft": draft, "of": session.id}
        return Outcome(answer=json_line(record))
    name = printable(short(made))
    return Outcome(answer=f"{made.id}\n", hint=f"Go on: holdfast --resume {name}")


def _require_rest(session: KeptSession, records: Iterable[tuple[int, AnyRecord]]) -> None:
    state = fold(Session(), (record for _, record in records))
    if state.is_running or state.waiting:
        raise SessionForkBusy(session=short(session))


def _copied(made: KeptSession, records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    yield Opened(made.id, made.project, made.draft, made.runner, made.at_ms)
    yield from (record for record in records if not isinstance(record, _OWN))
