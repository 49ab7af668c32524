"""Sessions are kept, found by the ends of their names, and read while nobody hosts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.failures import SessionAmbiguous, SessionMissing
from holdfast.app.sessions import KeptSession, Sessions, short
from holdfast.app.settings import parse
from holdfast.host.journal import SessionJournal
from holdfast.host.model import AttemptStarted, LeaseTaken
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskMissing
from holdfast.world.testing import run_inline


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(parse({"HOLDFAST_HOME": str(tmp_path)}, person=tmp_path))


def made(sessions: Sessions, title: str = "") -> KeptSession:
    return sessions.make("/project", "draft_1", "rehearsal", title=title, options={"a": "b"})


def test_what_is_made_is_found_by_every_name_of_it(sessions: Sessions) -> None:
    first, second = made(sessions, "first"), made(sessions, "second")

    assert sessions.all() == [second, first]
    assert sessions.find(None) == second
    for session in (first, second):
        assert sessions.find(session.id) == session
        assert sessions.find(short(session)) == session
        assert sessions.find(session.id.removeprefix("session_")) == session
        assert sessions.is_named(short(session))
        assert sessions.is_named(session.id)
    assert not sessions.is_named("session")


def test_a_name_of_none_or_of_two_is_refused(sessions: Sessions) -> None:
    with pytest.raises(SessionMissing):
        sessions.find(None)
    made(sessions)
    made(sessions)

    with pytest.raises(SessionMissing):
        sessions.find("nobody")
    with pytest.raises(SessionAmbiguous) as caught:
        sessions.find("session_")
    assert caught.value.count == 2


@pytest.mark.parametrize("damaged", [b"{", b'{"id":"\xff"}'])
def test_one_that_cannot_be_read_hides_no_other(sessions: Sessions, damaged: bytes) -> None:
    good, bad = made(sessions), made(sessions)
    (sessions.directory(bad) / "session.json").write_bytes(damaged)

    assert sessions.all() == [good]


async def test_what_is_written_down_can_be_read(sessions: Sessions) -> None:
    session = made(sessions)
    assert (sessions.records(session), sessions.last(session)) == ([], 0)

    path = sessions.directory(session) / "journal.jsonl"
    book = SessionJournal.open(SystemDisk(), path, name="s", run=run_inline)
    await book.write(AttemptStarted(1, 1000), LeaseTaken(7))

    assert sessions.records(session) == [(1, AttemptStarted(1, 1000)), (2, LeaseTaken(7))]
    assert sessions.records(session, after=1) == [(2, LeaseTaken(7))]
    assert sessions.last(session) == 2
    book.close()


def test_its_socket_has_a_short_name_in_a_private_place(sessions: Sessions) -> None:
    socket = sessions.socket(made(sessions))

    assert len(socket.name) < 20
    assert socket.parent.stat().st_mode & 0o777 == 0o700


pytestmark = pytest.mark.anyio


def test_a_file_in_the_place_of_all_sessions_is_a_failure_with_a_name(
    sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("")

    with pytest.raises(DiskMissing) as caught:
        sessions.all()
    assert caught.value.path == str(tmp_path / "state" / "sessions")
