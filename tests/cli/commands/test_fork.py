"""A conversation that is gone on with twice, each time in a draft of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.app.failures import SessionForkBusy
from holdfast.app.sessions import KeptSession, Sessions
from holdfast.cli.commands.fork import fork
from holdfast.cli.declarations import Request
from holdfast.host import compose_journal
from holdfast.host.model import (
    AnyRecord,
    EventRecorded,
    PromptQueued,
    SessionOpened,
    TurnBegun,
    TurnClosed,
)
from holdfast.runners.model import SessionKnown, TurnEnding
from holdfast.workbench.failures import ConsentRequired
from tests.cli.conversations import in_conversation, lines, scripted, sessions
from tests.cli.workbenches import Bench

SCRIPT = [
    {"calls": [{"tool": "write", "arguments": {"path": "b", "content": "two\n"}}]},
    {"say": "b is there."},
    {"say": "I remember."},
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def forked(bench: Bench) -> dict[str, str]:
    done = bench.ran("fork", "--json")
    assert done.returncode == 0, done.stderr
    (made,) = lines(done.stdout)
    return made


@pytest.mark.promise("A4")
def test_our_own_agent_goes_on_in_both(bench: Bench) -> None:
    script = bench.home / "model.json"
    script.write_text(json.dumps({"answer": SCRIPT}))
    first = bench.ran("ask", "--runner", "native", "--scenario", str(script), "--json", "Write b")
    origin = lines(first.stdout)[-1]
    made = forked(bench)
    again = bench.ran("ask", "--session", made["id"], "--json", "And now?")
    result = lines(again.stdout)[-1]

    assert (made["of"], made["draft"] != origin["draft"]) == (origin["session"], True)
    assert (result["status"], result["text"], result["turn"]) == ("completed", "I remember.", 2)
    assert [each["turns"] for each in sessions(bench)] == [2, 1]
    assert bench.ran("publish", "--draft", made["draft"], "--yes").returncode == 0
    assert bench.files() == {"a": "one\n", "b": "two\n"}


def test_a_rehearsal_goes_on_where_it_was(bench: Bench) -> None:
    script = scripted(bench, '{say = "One"}', '{say = "Two"}')
    bench.ran("ask", "--scenario", script, "Go")
    made = forked(bench)
    result = lines(bench.ran("ask", "--session", made["id"], "--json", "On").stdout)[-1]
    shown = bench.ran("sessions", "show", made["id"]).stdout

    assert (result["status"], result["text"]) == ("completed", "Two")
    assert shown.startswith(b"\n> Go\nOne\n")


def kept(bench: Bench, runner: str, *records: AnyRecord, draft: str = "d") -> KeptSession:
    all_of_them = Sessions(bench.settings)
    made = all_of_them.make(str(bench.project), draft, runner, title="", options={})
    opened = SessionOpened(made.id, made.project, draft, runner, 1)
    assert compose_journal(all_of_them.directory(made), (opened, *records), name=made.id)
    return made


def test_what_cannot_be_forked_is_not(bench: Bench) -> None:
    busy = kept(bench, "native", PromptQueued("c", 1, "Go", 1), TurnBegun(1, 1))
    waiting = kept(bench, "native", PromptQueued("c", 1, "Go", 1))

    for each in (busy, waiting):
        with pytest.raises(SessionForkBusy):
            fork(Request("fork", argument=each.id), bench.settings)
    assert len(Sessions(bench.settings).all()) == 2


def test_a_session_whose_journal_was_damaged_goes_on_twice(bench: Bench) -> None:
    draft = json.loads(bench.asked("draft", "open", "--json").answer)["id"]
    turn = (PromptQueued("c", 1, "Go", 1), TurnBegun(1, 1), TurnClosed(1, TurnEnding.COMPLETED, 1))
    session = kept(bench, "native", *turn, draft=draft)
    journal = Sessions(bench.settings).directory(session) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"Go"', b'"No"'))

    fork(Request("fork", argument=session.id), bench.settings)

    made = Sessions(bench.settings).find(None)
    said = [record for _, record in Sessions(bench.settings).records(made)]
    assert made.options == {"forked": session.id}
    assert said[1:] == list(turn[1:])


@pytest.mark.promise("W12")
def test_codex_is_not_started_before_somebody_agreed_to_it(bench: Bench) -> None:
    draft = json.loads(bench.asked("draft", "open", "--json").answer)["id"]
    known = EventRecorded(1, SessionKnown("thread"))
    over = TurnClosed(1, TurnEnding.COMPLETED, 1)
    said = (PromptQueued("c", 1, "Go", 1), TurnBegun(1, 1), known, over)
    kept(bench, "codex", *said, draft=draft)
    done = bench.ran("fork", "--json")

    assert done.returncode == 3, done.stderr
    assert lines(done.stdout)[-1]["code"] == ConsentRequired.code
    assert len(Sessions(bench.settings).all()) == 1
