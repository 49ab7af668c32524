"""Our own agent at the command line: a script for a model, and everything else real."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from holdfast.agent import BudgetLimits, CrashHistory, Deadlines
from holdfast.app.sessions import KeptSession
from holdfast.app.wiring.native_agent import budget_of, native_runner, waits_of
from holdfast.app.wiring.runner import RunnerFactory
from holdfast.app.wiring.session import begin_session
from holdfast.failures import RetryPolicy
from holdfast.runners import RunnerEnvironment
from holdfast.runners.testing import RunnerJournal
from holdfast.workbench import Workbench
from tests.agent.grounds import needs_sandbox
from tests.cli.conversations import in_conversation, lines
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench, at_bench, needs_place
from tests.workbench.repositories import begin, git

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
    assert b"--model: write it as PROVIDER/MODEL" in done.stdout + done.stderr


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


def test_the_proxy_of_the_environment_is_the_one_that_is_used(bench: Bench) -> None:
    """Seen by what is said of one that cannot be; nothing is sent past it."""
    words = ("ask", "--runner", "native", "--model", "openai/x", "--consent", "--json", "Go.")
    told = {"OPENAI_API_KEY": "sk-0123456789", "HTTPS_PROXY": "socks5://127.0.0.1:1"}
    done = subprocess.run(
        [*COMMAND, *words],
        env=environment(bench.home, **told),
        cwd=bench.project,
        capture_output=True,
        timeout=100,
        check=False,
    )

    error = lines(done.stdout)[-1]["error"]
    assert error["code"] == "MODEL_SETTINGS_INVALID"
    assert "HTTPS_PROXY" in error["userMessage"]


def session_with(bench: Bench, **options: str) -> KeptSession:
    """A session with the native agent and no turns."""
    workbench = Workbench.at(bench.project, bench.settings.state)
    return begin_session(workbench, bench.settings, runner="native", options=options)


def tracing(bench: Bench) -> Path:
    """Where an MCP server of the person leaves a trace as soon as it is started."""
    trace, config = bench.home / "trace", bench.settings.config
    config.mkdir(parents=True)
    server = {"command": sys.executable, "args": ["-c", f"open({str(trace)!r}, 'a').write('x')"]}
    (config / "mcp.json").write_bytes(msgspec.json.encode({"mcpServers": {"tracing": server}}))
    return trace


@pytest.mark.anyio
async def test_who_asks_how_it_is_starts_nothing(bench: Bench) -> None:
    trace = tracing(bench)
    session = session_with(bench, scenario=script(bench, WORK))
    async with RunnerFactory(session, bench.settings).create() as runner:
        health = await runner.health()
        assert (health.is_healthy, trace.exists()) == (True, False), health
        async with runner.converse(None, RunnerJournal()):
            assert trace.exists()  # whoever talks has what was settled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        ("nobody/x", "There is no provider nobody"),
        ("openai/x", "set OPENAI_API_KEY"),
        ("ollama/x", "there is no consent"),
    ],
)
async def test_what_a_conversation_would_lack_is_said_before(
    model: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    nowhere = cast("RunnerEnvironment", None)  # nothing is started there
    with at_bench() as bench:
        session, where = session_with(bench, model=model), bench.settings
        workbench = Workbench.at(bench.project, where.state)
        health = await native_runner(session, nowhere, workbench, where, CrashHistory()).health()

    assert (health.is_healthy, wrong in health.reason) == (False, True), health


@needs_sandbox()
@pytest.mark.promise("W14")
def test_in_a_worktree_its_shell_has_git_and_its_commits_can_be_taken() -> None:
    with in_conversation() as bench:
        needs_place(bench)
        main = bench.home / "main"
        main.mkdir()
        (main / "a").write_text("one\n")
        begin(main)
        for each in bench.project.iterdir():
            each.unlink()
        git(main, "worktree", "add", "-q", "-f", "-b", "side", str(bench.project))
        commands = (
            "git log --format=%s; echo two >a; git add a;"
            " git -c user.name=Agent -c user.email=a@x commit -qm agent; git log --format=%s -1;"
            " touch $(git rev-parse --git-common-dir)/hooks/x;"
            " echo /tmp >$(git rev-parse --git-dir)/commondir"
        )
        steps: list[dict[str, object]] = [
            {"calls": [{"tool": "shell", "arguments": {"command": commands}}]},
            {"say": "Done."},
        ]
        done = bench.ran("ask", "--runner", "native", "--scenario", script(bench, steps), "Commit.")
        assert done.returncode == 0, done.stderr
        assert git(main, "log", "--format=%s", "--all").split() == ["first"]

        taken = bench.ran("publish", "--branch", "work", "--yes")

        assert taken.returncode == 0, (done, taken.stderr)
        assert git(main, "log", "--format=%an %s", "-1", "work").strip() == "Agent agent"
        inside = bench.ran("draft", "run", "--", "git", "rev-parse", "--git-common-dir")
        assert inside.stdout.decode().strip() == str(main / ".git")
        hooks = bench.ran("draft", "run", "--", "ls", str(main / ".git" / "hooks")).stdout
        assert b"x" not in hooks.split()


def test_options_of_a_session_set_its_budget() -> None:
    given = {"budget.steps": "3", "budget.cost_usd": "0.5", "model": "a/b"}

    assert budget_of(given) == BudgetLimits(steps=3, cost_usd=0.5)
    assert budget_of({}) == BudgetLimits()


@pytest.mark.promise("A9")
def test_options_of_a_session_set_its_deadlines_and_retries() -> None:
    assert waits_of({"wait.attempts": "1"})[1].waits == ()
    assert waits_of({"model": "a/b"}) == (Deadlines(), RetryPolicy())
