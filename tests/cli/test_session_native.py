"""Our own agent at the command line: a script for a model, and everything else real."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from tests.cli.conversations import in_conversation, lines
from tests.cli.workbenches import Bench

WORK: list[dict[str, object]] = [
    {"say": "I look.", "calls": [{"tool": "read", "arguments": {"path": "a"}}]},
    {"calls": [{"tool": "write", "arguments": {"path": "b", "content": "two\n"}}]},
    {"calls": [{"tool": "shell", "arguments": {"command": "cat a b; echo three >c"}}]},
    {"calls": [{"tool": "sub_agent", "arguments": {"task": "Say hello."}}]},
    {"say": "Done."},
    {"say": "It was a, b and c."},
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def script(bench: Bench, answers: list[dict[str, object]]) -> str:
    path = bench.home / "model.json"
    path.write_bytes(msgspec.json.encode({"answer": answers}))
    return str(path)


@pytest.mark.promise("W1", "A3", "A6")
def test_it_works_in_a_draft_and_another_process_goes_on(bench: Bench) -> None:
    written = script(bench, WORK)
    done = bench.ran("ask", "--runner", "native", "--scenario", written, "Write b and c.")

    assert (done.returncode, done.stdout) == (0, b"I look.\nDone.\n"), done.stderr
    assert bench.files() == {"a": "one\n"}
    name = done.stderr.decode().split("--session ")[1].split()[0]

    again = bench.ran("ask", "--session", name, "--json", "What was it?")
    *records, result = lines(again.stdout)
    assert (result["status"], result["text"]) == ("completed", "It was a, b and c.")
    assert not [each for each in records if "remembered" in str(each)]
    assert result["usage"]["model"] == "scripted/script"

    assert bench.ran("publish", "--yes").returncode == 0
    assert bench.files() == {"a": "one\n", "b": "two\n", "c": "three\n"}


def test_without_a_model_nothing_is_begun(bench: Bench) -> None:
    done = bench.ran("ask", "--runner", "native", "--json", "Go.")

    assert done.returncode == 2
    assert b"--model, as PROVIDER/MODEL" in done.stdout + done.stderr


@pytest.mark.promise("W12")
def test_without_consent_nothing_goes_to_a_provider(bench: Bench) -> None:
    done = bench.ran("ask", "--runner", "native", "--model", "openai/x", "--json", "Go.")

    assert done.returncode == 3
    assert lines(done.stdout)[-1]["error"]["code"] == "EGRESS_CONSENT_REQUIRED"


@pytest.mark.promise("A9")
def test_without_a_key_the_turn_fails_and_says_where_one_goes(bench: Bench) -> None:
    words = ("ask", "--runner", "native", "--model", "openai/x", "--consent", "--json", "Go.")
    done = bench.ran(*words)

    assert done.returncode == 4
    error = lines(done.stdout)[-1]["error"]
    assert error["code"] == "MODEL_KEY_MISSING"
    assert "OPENAI_API_KEY" in error["userMessage"]
