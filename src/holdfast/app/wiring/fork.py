"""Fork a session: a new one with the same conversation and a copy of its draft.

    read the journal ──▶ fork the runner's own thread ──▶ fork the draft ──▶ journal unchanged?
                                                             discard the draft ◀─ no │ yes ─▶ store

The journal is read before the draft is copied. If it has grown in between, journal and draft no
longer belong together, and the fork fails instead of mixing two states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.app.failures import SessionForkBusy
from holdfast.app.sessions import KeptSession, Sessions, runnable, short
from holdfast.app.settings import Settings
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
from holdfast.runners.model import SessionKnown
from holdfast.workbench import Workbench, discard, fork_draft, reopen_draft

FORKED: Final = "forked"  # the option of a forked session that names its origin


class ForkSource(NamedTuple):
    """The records of a journal by number, and the forked thread if the runner has its own."""

    records: Sequence[tuple[int, AnyRecord]]
    thread: str | None


async def fork_source(session: KeptSession, settings: Settings) -> ForkSource:
    """Read what a fork needs; raises SessionForkBusy while a turn runs or waits."""
    records = Sessions(settings).records(runnable(session))
    state = fold(SessionState(), (record for _, record in records))
    if state.is_running or state.waiting:
        raise SessionForkBusy(session=short(session))
    known, thread = state.runner_session, None
    # Codex stores the conversation itself; both sessions writing to one thread would mix them.
    if known is not None and session.runner == "codex":
        from holdfast.app.wiring.runner import RunnerFactory

        thread = await RunnerFactory(session, settings).fork_codex_thread(known)
    return ForkSource(records, thread)


def fork_session(
    session: KeptSession, source: ForkSource, workbench: Workbench, settings: Settings
) -> KeptSession:
    """Copy the draft and store the new session; may take long if the draft is a copy.

    Raises SessionForkBusy if the session has gone on since `source` was read.
    """
    sessions = Sessions(settings)
    # The highest number, not the count: damaged records are skipped.
    last = max((number for number, _ in source.records), default=0)
    reopen_draft(workbench, session.draft)
    draft = fork_draft(workbench, session.draft).id
    if sessions.last(session) != last:
        discard(workbench, draft)
        raise SessionForkBusy(session=short(session))
    made = sessions.make(
        session.project,
        draft,
        session.runner,
        title=session.title,
        options={**session.options, FORKED: session.id},
    )
    copied = _copied(made, (record for _, record in source.records), source.thread)
    compose_journal(Path(sessions.directory(made)), copied, name=made.id)
    return made


def _copied(
    made: KeptSession, records: Iterable[AnyRecord], thread: str | None
) -> Iterator[AnyRecord]:
    """The conversation for the new journal, with the runner's thread replaced by its fork."""
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
                pass  # these describe the original session and its draft, not the conversation
            case _:
                yield record
