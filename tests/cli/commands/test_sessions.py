"""Sessions at the command line: listed, read, watched and ended, hosted or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conversations import (
    asking,
    begun,
    hosts_of,
    in_conversation,
    lines,
    scripted,
    sessions,
)
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_without_any_it_is_said_how_to_begin(bench: Bench) -> None:
    none = bench.ran("sessions", "list")
    assert (none.stdout, none.stderr[:12]) == (b"", b"No sessions.")
    assert b"SESSION_MISSING" in bench.ran("sessions", "show").stderr


def test_a_session_is_listed_read_ended_and_read_again(bench: Bench) -> None:
    asking(bench, "Say hello", steps='{say = "Hello"}')
    (listed,) = sessions(bench)
    page = bench.ran("sessions", "list").stdout.decode()

    assert (listed["title"], listed["phase"], listed["hosted"]) == ("Say hello", "idle", True)
    assert page.startswith(listed["id"][-8:])
    assert page.endswith("Say hello\n")

    ended = bench.ran("sessions", "end")
    assert b"has ended. The conversation is kept; its draft had no changes" in ended.stderr
    eventually(lambda: not hosts_of(bench))
    assert b"was not running." in bench.ran("sessions", "end", listed["id"][-8:]).stderr
    assert sessions(bench)[0]["hosted"] is False
    assert b" stopped " in bench.ran("sessions", "list").stdout

    shown = bench.ran("sessions", "show").stdout.decode()
    assert shown == "\n> Say hello\nHello\n"
    records = lines(bench.ran("sessions", "show", listed["id"], "--json").stdout)
    assert [each["seq"] for each in records] == list(range(1, len(records) + 1))
    assert lines(bench.ran("sessions", "watch", "--json").stdout) == records


@pytest.mark.promise("A4")
def test_who_watches_sees_all_and_changes_nothing(bench: Bench) -> None:
    script = scripted(bench, '{say = "Hello"}, {wait = 600}')
    asked = begun(bench, "ask", "--scenario", script, "Wait")
    assert asked.stdout is not None
    assert asked.stdout.readline() == b"Hello\n"
    watching = begun(bench, "sessions", "watch")
    assert watching.stdout is not None
    seen = [watching.stdout.readline() for _ in range(3)]

    bench.ran("sessions", "end")
    rest, _ = watching.communicate(timeout=60)
    asked.communicate(timeout=60)

    assert seen == [b"\n", b"> Wait\n", b"Hello\n"]
    assert rest == b"(The turn was interrupted.)\n"
    assert watching.returncode == 0
    assert asked.returncode == 130


@pytest.mark.promise("W13")
def test_a_session_goes_on_in_a_draft_of_the_same_name_when_its_own_has_gone(bench: Bench) -> None:
    asking(bench, "Say hello", steps='{say = "Hello"}')
    (session,) = sessions(bench)
    bench.ran("sessions", "end")
    eventually(lambda: not hosts_of(bench))

    again = asking(
        bench,
        "--session",
        session["id"],
        "Write",
        steps='{write = "made", content = "made\\n"}, {say = "Done"}',
    )

    assert again.returncode == 0, again.stderr
    assert b"made" in bench.ran("draft", "diff", "--draft", session["draft"]).stdout
    ended = bench.ran("sessions", "end")
    assert b"The conversation and the draft are kept." in ended.stderr
