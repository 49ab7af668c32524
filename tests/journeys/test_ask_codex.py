"""Asking the real Codex, with a scripted model, from the command line to the project and back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import anyio.to_thread
import pytest

from tests.cli.conversations import Records, in_conversation, lines
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Complete, Reply, Say, add_file, run
from tests.parts.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

SCRIPT: list[Reply] = [
    [run("cat a"), Complete(tokens_in=10, tokens_out=5)],
    [add_file("b", "two"), Complete(tokens_in=20, tokens_out=5)],
    [Say("b is there."), Complete(tokens_in=30, tokens_out=5)],
    [Say("I remember."), Complete(tokens_in=40, tokens_out=5)],
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("W1", "S3")
async def test_codex_works_in_a_draft_goes_on_and_is_published(bench: Bench) -> None:
    async with ModelServer(SCRIPT) as model:
        found = codex_home(bench.home / "c", model.url)
        found["HOLDFAST_CODEX"] = str(codex_binary())

        async def ask(*words: str) -> Records:
            def asked() -> subprocess.CompletedProcess[bytes]:
                return subprocess.run(
                    [*COMMAND, "ask", "--json", *words],
                    env=environment(bench.home, **found),
                    cwd=bench.project,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=200,
                    check=False,
                )

            done = await anyio.to_thread.run_sync(asked)
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
    assert (again["text"], again["turn"], again["published"]) == ("I remember.", 2, True)
    assert bench.files() == {"a": "one\n", "b": "two\n"}
    assert "Write b" in model.requests[-1].texts  # it is the same thread
