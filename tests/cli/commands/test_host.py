"""The process that hosts a session: started by others, and of no use without a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.sessions import RUNNERS, Sessions
from holdfast.workbench import Workbench, open_draft
from tests.cli.conversations import asking, begun, hosts_of, in_conversation, lines
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_it_is_asked_for_a_session_that_is_there(bench: Bench) -> None:
    assert bench.ran("host").returncode == 2
    assert b"SESSION_MISSING" in bench.ran("host", "nobody").stderr


@pytest.mark.parametrize("runner", RUNNERS)
def test_it_listens_and_ends_when_it_is_told(bench: Bench, runner: str) -> None:
    draft = open_draft(Workbench.at(bench.project, bench.settings.state)).id
    sessions = Sessions(bench.settings)
    session = sessions.make(str(bench.project), draft, runner, title="", options={})
    host = begun(bench, "host", session.id)
    eventually(sessions.socket(session).exists)
    assert hosts_of(bench) == [host.pid]

    bench.ran("sessions", "end", session.id)

    host.communicate(timeout=60)
    assert host.returncode == 0
    assert [type(record).__name__ for _, record in sessions.records(session)] == [
        "SessionOpened",
        "AttemptStarted",
        "SessionEnded",
    ]


@pytest.mark.promise("A3")
def test_it_does_not_stay_for_long_after_a_single_turn(bench: Bench) -> None:
    """It holds 45 MiB; whoever goes on with the session has a new one."""
    asked = asking(bench, "--json", "Go.", steps='{ say = "One" }')
    session = lines(asked.stdout)[-1]["session"]
    (first,) = hosts_of(bench)

    eventually(lambda: not hosts_of(bench), within=50.0)
    again = bench.ran("ask", "--session", session, "--json", "Again.")

    assert first not in hosts_of(bench)
    assert (asked.returncode, again.returncode) == (0, 0), again
    assert b"HOST_CRASHED" not in again.stdout
