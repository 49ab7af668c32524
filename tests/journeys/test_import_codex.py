"""A conversation that somebody had with Codex goes on here, as the same thread."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import anyio.to_thread
import pytest

from tests.cli.conversations import in_conversation, lines
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Complete, Reply, Say, add_file, run
from tests.parts.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

SCRIPT: list[Reply] = [
    [run("cat a"), Complete(tokens_in=10, tokens_out=5)],
    [Say("It says one."), Complete(tokens_in=20, tokens_out=5)],
    [add_file("b", "two"), Complete(tokens_in=30, tokens_out=5)],
    [Say("b is there."), Complete(tokens_in=40, tokens_out=5)],
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("W1")
async def test_what_began_with_codex_goes_on_in_a_draft(bench: Bench) -> None:
    async with ModelServer(SCRIPT) as model:
        codex = codex_home(bench.home / "c", model.url)
        ours = environment(bench.home, **codex, HOLDFAST_CODEX=str(codex_binary()))

        async def ran(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
            def run_there() -> subprocess.CompletedProcess[bytes]:
                return subprocess.run(
                    words,
                    env=env,
                    cwd=bench.project,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=200,
                    check=False,
                )

            done = await anyio.to_thread.run_sync(run_there)
            assert done.returncode == 0, (done.stdout, done.stderr)
            return done

        theirs = [str(codex_binary()), "exec", "--skip-git-repo-check", "What does a say?"]
        await ran(theirs, codex)
        importing = [*COMMAND, "sessions", "import", "codex", "--json"]
        (kept,) = lines((await ran(importing, ours)).stdout)
        (made,) = lines((await ran([*importing, kept["id"]], ours)).stdout)
        shown = (await ran([*COMMAND, "sessions", "show", made["id"]], ours)).stdout.decode()
        asking = ["ask", "--session", made["id"], "--consent", "--json", "Write b"]
        result = lines((await ran([*COMMAND, *asking], ours)).stdout)[-1]

    assert (kept["preview"], made["new"], made["unread"]) == ("What does a say?", True, 0)
    assert shown.startswith("\n> What does a say?\n")
    assert shown.endswith("It says one.\n")
    assert (result["status"], result["text"], result["turn"]) == ("completed", "b is there.", 2)
    assert "What does a say?" in model.requests[-1].texts  # it is the same thread
    assert bench.files() == {"a": "one\n"}  # and it writes in a draft
