"""Conversations of other tools become sessions: once, read-only, and only where they belong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.app.failures import HistoryMissing, SessionAmbiguous, SessionReadOnly
from holdfast.app.sessions import Sessions
from holdfast.cli.failures import UsageWrong
from holdfast.host import SessionPhase, SessionState, fold
from tests.cli.commands.test_session_import_foreign_files import FIRST, SECOND, asked, rollout
from tests.cli.workbenches import Bench, at_bench

SAMPLE = Path(__file__).parents[1] / "claude_sample.jsonl"
CLAUDE = "ba1357d2-ee65-43f4-ae57-064f7f517a80"
SAID = {"type": "message", "role": "assistant", "content": [{"text": "Done \x1b[2J"}]}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with at_bench() as made:
        monkeypatch.setenv("CODEX_HOME", str(made.home / "codex"))
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.home / "claude"))
        yield made


def codex(bench: Bench, id_: str = FIRST, *lines: str) -> None:
    said = json.dumps({"type": "response_item", "payload": SAID})
    rollout(
        bench.home / "codex",
        id_,
        asked("Mend\x1b]0;x\x07 it"),
        said,
        *lines,
        cwd=str(bench.project),
    )


def claude(bench: Bench) -> Path:
    name = "".join(each if each.isalnum() else "-" for each in str(bench.project))
    path = bench.home / "claude/projects" / name / f"{CLAUDE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(SAMPLE.read_text().replace("{project}", str(bench.project)))
    return path


def test_a_conversation_of_codex_becomes_one_session(bench: Bench) -> None:
    codex(bench, FIRST, "torn")
    first = bench.asked("sessions", "import", "codex", FIRST[:12])
    again = bench.asked("sessions", "import", "codex", FIRST, "--json")

    sessions = Sessions(bench.settings)
    (made,) = sessions.all()
    assert "1 line(s) could not be read" in first.hint
    assert f"holdfast --resume {made.id[-8:]}" in first.hint
    assert json.loads(again.answer) == {
        "schema": 1,
        "type": "session",
        "id": made.id,
        "new": False,
        "unread": 0,
        "cut": False,
    }
    assert (made.runner, made.project) == ("codex", str(bench.project))
    assert json.loads(bench.asked("draft", "path", "--json").answer)["draft"] == made.draft
    state = fold(SessionState(), (record for _, record in sessions.records(made)))
    assert (state.runner_session, state.turn, state.phase) == (FIRST, 1, SessionPhase.IDLE)
    shown = bench.ran("sessions", "show").stdout.decode()
    assert shown == "\n> Mend\\x1b]0;x\\x07 it\nDone \\x1b[2J\n"


def test_those_that_there_are_are_listed_safely(bench: Bench) -> None:
    none = bench.asked("sessions", "import", "codex")
    codex(bench)
    page = bench.asked("sessions", "import", "codex")
    record = json.loads(bench.asked("sessions", "import", "codex", "--json").answer)

    assert none.hint == "codex keeps no conversation about this project."
    assert page.answer.startswith(FIRST)
    assert "\x1b" not in page.answer
    assert "\x07" not in page.answer
    assert (record["id"], record["cwd"]) == (FIRST, str(bench.project))


def test_one_of_claude_can_be_read_and_not_gone_on_with(bench: Bench) -> None:
    file = claude(bench)
    before = file.read_bytes()
    done = bench.asked("sessions", "import", "claude", CLAUDE)
    (made,) = Sessions(bench.settings).all()

    assert done.hint.endswith("It is read-only, because Holdfast has no runner for claude yet.")
    shown = bench.ran("sessions", "show").stdout.decode()
    assert shown.startswith("\n> What does a say?\n")
    assert shown.endswith("It says one.\n")
    with pytest.raises(SessionReadOnly):
        bench.asked("ask", "--session", made.id, "And now?")
    assert b"SESSION_READ_ONLY" in bench.ran("attach", made.id).stderr
    assert bench.ran("sessions", "export").returncode == 0
    assert file.read_bytes() == before


def test_what_is_not_there_is_not_taken_over(bench: Bench) -> None:
    codex(bench)
    codex(bench, SECOND)
    for wrong in ("import",), ("import", "cursor"), ("import", "codex", FIRST, "more"):
        with pytest.raises(UsageWrong):
            bench.asked("sessions", *wrong)
    with pytest.raises(HistoryMissing):
        bench.asked("sessions", "import", "codex", "ffff")
    with pytest.raises(SessionAmbiguous):
        bench.asked("sessions", "import", "codex", "01a1")
    assert Sessions(bench.settings).all() == []
