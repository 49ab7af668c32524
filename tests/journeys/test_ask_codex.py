"""Asking the real Codex, with a scripted model, from the command line to the project and back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import anyio.to_thread
import pytest

from tests.cli.conversations import Records, in_conversation, lines
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Complete, Reply, Say, add_file, run
from tests.parts.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

KEY = "sk-canary-0123456789abcdef"
SCRIPT: list[Reply] = [
    [run("cat a"), Complete(tokens_in=10, tokens_out=5)],
    [add_file("b", "two"), Complete(tokens_in=20, tokens_out=5)],
    [Say("b is there."), Complete(tokens_in=30, tokens_out=5)],
    [Say(f"I remember {KEY}."), Complete(tokens_in=40, tokens_out=5)],
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def _ran(
    bench: Bench, words: Sequence[str], more: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words],
        env=environment(bench.home, **more),
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
        check=False,
    )


@pytest.mark.promise("W1", "S3", "T6")
async def test_codex_works_in_a_draft_goes_on_and_is_published(bench: Bench) -> None:
    async with ModelServer(SCRIPT) as model:
        found = codex_home(bench.home / "c", model.url)
        found["HOLDFAST_CODEX"] = str(codex_binary())
        found["MISTRAL_API_KEY"] = KEY

        async def ask(*words: str) -> Records:
            given = ("ask", "--json", *words)
            done = await anyio.to_thread.run_sync(partial(_ran, bench, given, found))
            assert done.returncode == 0, (done.stdout, done.stderr)
            return lines(done.stdout)

        first = await ask("--runner", "codex", "--consent", "Write b")
        result = first[-1]
        before = bench.files()
        again = (await ask("--session", result["session"], "--in-place", "And now?"))[-1]

    tools = [each["event"] for each in first if each.get("event", {}).get("type") == "tool_ended"]
    assert [each["is_ok"] for each in tools] == [True, True]
    assert (result["status"], result["text"]) == ("completed", "b is there.")
    assert result["usage"]["input_tokens"] == 60
    assert before == {"a": "one\n"}
    assert again["text"] == "I remember [redacted:known]."
    assert (again["turn"], again["published"]) == (2, True)
    assert bench.files() == {"a": "one\n", "b": "two\n"}
    assert "Write b" in model.requests[-1].texts  # it is the same thread


@pytest.mark.long
@pytest.mark.promise("A4")
async def test_codex_goes_on_twice_each_with_a_thread_of_its_own(bench: Bench) -> None:
    script: list[Reply] = [
        [add_file("b", "two"), Complete(tokens_in=20, tokens_out=5)],
        *([Say(f"Answer {number}."), Complete(tokens_in=30, tokens_out=5)] for number in (1, 2, 3)),
    ]
    async with ModelServer(script) as model:
        found = codex_home(bench.home / "c", model.url)
        found["HOLDFAST_CODEX"] = str(codex_binary())

        async def ran(*words: str) -> Records:
            done = await anyio.to_thread.run_sync(partial(_ran, bench, words, found))
            assert done.returncode == 0, (done.stdout, done.stderr)
            return lines(done.stdout)

        first = (await ran("ask", "--json", "--runner", "codex", "--consent", "Write b"))[-1]
        asked_before = len(model.requests)
        (made,) = await ran("fork", "--json")
        asked_by_fork = len(model.requests) - asked_before
        fork = (await ran("ask", "--json", "--session", made["id"], "In the fork"))[-1]
        origin = (await ran("ask", "--json", "--session", first["session"], "In the origin"))[-1]
        told = [request.texts for request in model.requests[-2:]]

    assert (asked_by_fork, made["of"], fork["turn"]) == (0, first["session"], 2)
    assert (fork["text"], origin["text"]) == ("Answer 2.", "Answer 3.")
    assert all("Write b" in texts and "Answer 1." in texts for texts in told)
    assert "In the fork" in told[0]
    assert "In the fork" not in told[1]
    for each in (first["draft"], made["draft"]):
        assert bench.asked("draft", "diff", "--draft", each, "--stat").answer.count("b") > 0
