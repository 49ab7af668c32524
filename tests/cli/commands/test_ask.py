"""One turn at the command line: whatever comes of it, the last record is a result."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conversations import asking, begun, in_conversation, lines, scripted
from tests.cli.workbenches import Bench

SAY = '{say = "Hello"}'
WRITE = '{write = "b", content = "two"}, {say = "Done."}'
RESULT = {
    "schema",
    "type",
    "status",
    "text",
    "session",
    "draft",
    "turn",
    "revision",
    "checkpoint",
    "report",
    "usage",
    "refusals",
    "published",
    "undo",
    "error",
}


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("W1")
def test_a_turn_works_in_a_draft_and_goes_on_in_its_session(bench: Bench) -> None:
    script = scripted(bench, WRITE, SAY)
    done = bench.ran("ask", "--scenario", script, "Write b")

    assert (done.returncode, done.stdout) == (0, b"Done.\n"), done.stderr
    assert "▸ write b" in done.stderr.decode()
    assert b"Publish it:  holdfast publish" in done.stderr
    assert bench.files() == {"a": "one\n"}
    name = done.stderr.decode().split("--session ")[1].split()[0]

    again = bench.ran("ask", "--session", name, "--json", "-", stdin=b"And now?\n")
    result = lines(again.stdout)[-1]
    assert (result["status"], result["text"], result["turn"]) == ("completed", "Hello", 2)

    assert bench.ran("publish", "--yes").returncode == 0
    assert bench.files() == {"a": "one\n", "b": "two"}


def test_a_program_reads_records_and_then_the_result(bench: Bench) -> None:
    done = asking(bench, "--json", "Write b", steps=WRITE)
    *records, result = lines(done.stdout)

    assert done.returncode == 0
    assert records[0]["type"] in {"opened", "begun"}
    assert "prompted" in {each["type"] for each in records}
    assert [each["seq"] for each in records] == sorted(each["seq"] for each in records)
    assert result.keys() == RESULT
    assert (result["status"], result["text"], result["error"]) == ("completed", "Done.", None)
    assert result["revision"] is not None
    report = json.loads(Path(result["report"]).with_suffix(".json").read_text())
    assert (report["phase"], report["checkpoint"]) == ("completed", result["checkpoint"])
    assert report["files"] == [{"path": "b", "deed": "added"}]


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("ask", "--json"), 2, "CLI_USAGE_WRONG"),
        (("ask", "--json", "--no-such", "x"), 2, "CLI_USAGE_WRONG"),
        (("ask", "--json", "--runner", "nobody", "x"), 1, "RUNNER_UNKNOWN"),
        (("ask", "--json", "--session", "nobody", "x"), 1, "SESSION_MISSING"),
        (("ask", "--json", "--demo", "--draft", "nobody", "x"), 1, "NOT_FOUND_DRAFT"),
        (("ask", "--json", "--runner", "codex", "x"), 3, "EGRESS_CONSENT_REQUIRED"),
        (("ask", "--json", "--model", "openai/x", "x"), 3, "EGRESS_CONSENT_REQUIRED"),
        (("ask", "--json", "--model", "gpt-5.1", "x"), 2, "CLI_USAGE_WRONG"),
        (("ask", "--json", "x"), 4, "AGENT_NOT_CHOSEN"),
    ],
)
def test_what_never_begins_has_a_result_too(
    bench: Bench, words: tuple[str, ...], status: int, code: str
) -> None:
    done = bench.ran(*words)
    (result,) = lines(done.stdout)

    assert done.returncode == status
    assert result.keys() == RESULT
    assert (result["type"], result["status"]) == ("result", "failed")
    assert code in result["error"]["code"]


@pytest.mark.parametrize(
    ("steps", "status", "code"),
    [
        ('{fail = "no luck"}', 69, "REHEARSED_FAILURE"),
        ("{crash = 9}", 69, "RUNNER_ENDED"),
    ],
)
@pytest.mark.promise("R3")
def test_a_turn_that_fails_says_why_and_keeps_its_draft(
    bench: Bench, steps: str, status: int, code: str
) -> None:
    done = asking(bench, "--json", "Try", steps=f'{{write = "b", content = "two"}}, {steps}')
    result = lines(done.stdout)[-1]

    assert done.returncode == status, done.stdout
    assert (result["type"], result["status"], result["error"]["code"]) == ("result", "failed", code)
    assert "b" in bench.ran("draft", "diff", "--draft", result["draft"]).stdout.decode()


def test_a_turn_has_a_limit(bench: Bench) -> None:
    done = asking(bench, "--json", "--timeout", "3", "Wait", steps=f"{SAY}, {{wait = 600}}")
    result = lines(done.stdout)[-1]

    assert (result["type"], result["status"]) == ("result", "interrupted")
    assert result["error"]["code"] == "CLI_TURN_TOO_LONG"
    assert done.returncode == 1


@pytest.mark.promise("A11")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_the_turn_and_its_result_says_so(bench: Bench, number: int) -> None:
    script = scripted(bench, f"{SAY}, {{wait = 600}}")
    process = begun(bench, "ask", "--json", "--scenario", script, "Wait")
    assert process.stdout is not None
    seen: list[str] = []
    while not any('"Hello"' in line for line in seen):
        seen.append(process.stdout.readline().decode())
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    result = json.loads(out.splitlines()[-1])

    assert process.returncode == 128 + number
    assert (result["type"], result["status"], result["text"]) == ("result", "interrupted", "Hello")


def test_a_signal_before_anything_has_begun_has_a_result(bench: Bench) -> None:
    process = begun(bench, "ask", "--json", "--scenario", scripted(bench, SAY), "Hello")
    assert process.stdout is not None
    process.stdout.readline()  # the host is there
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    result = json.loads(out.splitlines()[-1])

    assert result["type"] == "result"
    assert process.returncode in (0, 130)


def test_what_the_agent_asks_is_refused_where_nobody_is(bench: Bench) -> None:
    steps = '{ask = "May I?", approval = true}, {write = "b", content = "two"}'
    done = asking(bench, "--json", "Ask me", steps=steps)
    result = lines(done.stdout)[-1]

    assert (result["status"], result["refusals"]) == ("completed", 1)
    assert b"Refused, because no terminal is attached: May I?" in done.stderr
    assert result["revision"] is None
    answered = [each["by"] for each in lines(done.stdout) if each["type"] == "answered"]
    assert answered == ["unattended"]


def test_in_place_the_project_has_it_when_the_turn_has_completed(bench: Bench) -> None:
    done = asking(bench, "--json", "--in-place", "Write b", steps=WRITE)
    result = lines(done.stdout)[-1]

    assert (result["status"], result["published"]) == ("completed", True)
    assert b"In place: " in done.stderr
    assert bench.files() == {"a": "one\n", "b": "two"}
    assert bench.ran("restore", result["undo"], "--yes").returncode == 0
    assert bench.files() == {"a": "one\n"}


@pytest.mark.promise("R8")
def test_in_place_it_is_published_though_whoever_asked_is_gone(bench: Bench) -> None:
    steps = f'{{say = "Hello"}}, {{wait = 1}}, {WRITE}'
    asked = begun(bench, "ask", "--json", "--in-place", "--scenario", scripted(bench, steps), "Go")
    assert asked.stdout is not None
    while b'"Hello"' not in asked.stdout.readline():
        assert asked.poll() is None
    asked.kill()
    asked.communicate()
    watched = bench.ran("sessions", "watch", "--json")

    assert "published" in {each["type"] for each in lines(watched.stdout)}
    assert bench.files() == {"a": "one\n", "b": "two"}


def test_in_place_what_the_person_changed_meanwhile_is_theirs(bench: Bench) -> None:
    steps = '{write = "a", content = "ours"}, {say = "Hello"}, {wait = 1}'
    script = scripted(bench, steps)
    asked = begun(bench, "ask", "--json", "--in-place", "--scenario", script, "Go")
    assert asked.stdout is not None
    while b'"Hello"' not in asked.stdout.readline():
        assert asked.poll() is None
    (bench.project / "a").write_text("theirs")
    out, _ = asked.communicate(timeout=60)
    result = json.loads(out.splitlines()[-1])

    assert (result["status"], result["published"]) == ("completed", False)
    assert result["error"]["code"] == "CONFLICT_PUBLISHED_CHANGED"
    assert asked.returncode != 0
    assert bench.files() == {"a": "theirs"}


def test_in_place_a_turn_that_fails_changes_nothing(bench: Bench) -> None:
    steps = '{write = "b", content = "two"}, {fail = "no luck"}'
    done = asking(bench, "--json", "--in-place", "Write b", steps=steps)

    assert lines(done.stdout)[-1]["published"] is False
    assert bench.files() == {"a": "one\n"}


def test_a_copy_is_a_draft_where_no_place_can_be_made(bench: Bench) -> None:
    opened = json.loads(bench.ran("draft", "open", "--mode", "copy", "--json").stdout)
    done = asking(bench, "--json", "--draft", opened["id"], "Write b", steps=WRITE)

    assert lines(done.stdout)[-1]["status"] == "completed", done.stderr
    assert bench.files() == {"a": "one\n"}
    assert "b" in bench.ran("draft", "diff").stdout.decode()
