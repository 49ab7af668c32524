"""Who has chosen no agent is told which there are; the scripted one never starts unasked."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.app.wiring.agent_choice import AgentChoices, ChosenAgent
from holdfast.cli.commands.agent_choice import with_agent
from holdfast.cli.declarations import Request
from holdfast.cli.failures import AgentNotChosen, UsageWrong
from holdfast.cli.options import configured
from holdfast.cli.parser import parse
from tests.cli.conversations import in_conversation, sessions
from tests.cli.running import COMMAND, environment, holdfast
from tests.cli.workbenches import Bench
from tests.parts.pty_screen import on_screen

KEY = "sk-secret-of-a-test"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def chosen(bench: Bench, *words: str) -> tuple[str | None, str | None]:
    """The runner and the model that a command line means."""
    request = parse([*words, "-C", str(bench.project)])
    assert isinstance(request, Request), request
    found = with_agent(configured(request, bench.settings), bench.settings, can_ask=False)
    return found.value("--runner"), found.value("--model")


@pytest.mark.promise("S1")
def test_flags_count_before_settings_and_settings_before_the_last_choice(bench: Bench) -> None:
    with pytest.raises(AgentNotChosen):
        chosen(bench, "ask", "x")
    with pytest.raises(UsageWrong):
        chosen(bench, "ask", "--model", "gpt-5.1", "x")
    assert chosen(bench, "ask", "--demo", "x") == ("rehearsal", None)
    assert chosen(bench, "ask", "--runner", "codex", "x") == ("codex", None)
    assert chosen(bench, "ask", "--model", "openai/x", "x") == ("native", "openai/x")
    assert chosen(bench, "--model", "openai/x") == ("native", "openai/x")

    AgentChoices(bench.settings.state).remember(ChosenAgent("native", "openai/last"))
    assert chosen(bench, "ask", "x") == ("native", "openai/last")
    assert chosen(bench, "chat") == ("native", "openai/last")
    assert chosen(bench, "ask", "--demo", "x") == ("rehearsal", None)
    assert chosen(bench, "ask", "--scenario", "s.toml", "x") == ("rehearsal", None)

    bench.settings.config.mkdir(parents=True)
    (bench.settings.config / "config.toml").write_text('model = "openai/settled"\n')
    assert chosen(bench, "ask", "x") == ("native", "openai/settled")
    (bench.settings.config / "config.toml").write_text('runner = "codex"\n')
    assert chosen(bench, "ask", "x") == ("codex", None)
    assert chosen(bench, "ask", "--model", "gpt-5.1", "x") == ("codex", "gpt-5.1")
    assert chosen(bench, "ask", "--model", "openai/x", "x") == ("native", "openai/x")


@pytest.mark.promise("S1", "T6")
@pytest.mark.parametrize("words", [("ask", "Hello"), ("chat", "Hello")])
def test_without_a_terminal_it_lists_what_was_found_and_ends_with_4(
    bench: Bench, words: tuple[str, ...]
) -> None:
    programs = bench.home / "bin"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\n")
    (programs / "codex").chmod(0o755)
    done = holdfast(
        *words,
        *("-C", str(bench.project)),
        home=bench.home,
        stdin=os.open(os.devnull, os.O_RDONLY),
        PATH=f"{programs}:/usr/bin:/bin",
        ANTHROPIC_API_KEY=KEY,
    )
    name = "holdfast ask" if words[0] == "ask" else "holdfast"

    assert (done.returncode, done.stdout) == (4, "")
    assert "No agent is chosen yet" in done.stderr
    assert f"{name} --model anthropic/" in done.stderr
    assert "a key of anthropic is there" in done.stderr
    assert f"{name} --runner codex" in done.stderr
    assert f"{name} --demo" in done.stderr
    assert "openai" not in done.stderr
    assert KEY not in done.stderr
    assert sessions(bench) == []


@pytest.mark.promise("S1")
def test_the_sample_project_has_the_scripted_agent(bench: Bench) -> None:
    sample = bench.home / "basket"
    assert holdfast("demo", "--sample", str(sample), home=bench.home).returncode == 0
    AgentChoices(bench.settings.state).remember(ChosenAgent("codex"))
    there = Bench(bench.home, sample)

    assert chosen(there, "ask", "x") == ("rehearsal", None)
    assert chosen(bench, "ask", "x") == ("codex", None)


@pytest.mark.promise("S1", "W1")
@pytest.mark.parametrize("is_known", [False, True])
def test_the_scripted_agent_works_on_the_sample_and_not_on_the_repository_around_it(
    bench: Bench, is_known: bool
) -> None:
    if is_known:
        bench.asked("checkpoint", "create")
    (bench.project / ".git").mkdir()
    sample = bench.project / "basket"
    assert holdfast("demo", "--sample", str(sample), home=bench.home).returncode == 0
    done = Bench(bench.home, sample).ran("ask", "Fix the failing test")

    assert (done.returncode, b"The tests pass." in done.stdout) == (0, True), done.stderr
    (made,) = sessions(bench)
    assert (made["project"], made["runner"]) == (str(sample), "rehearsal")


@pytest.mark.promise("S1", "T5")
@pytest.mark.parametrize(
    ("model", "status", "said"),
    [
        ("opnai/x", 1, b"MODEL_PROVIDER_UNKNOWN"),
        ("a/b/c", 1, b"MODEL_PROVIDER_UNKNOWN"),
        ("openai/", 2, b"write PROVIDER/MODEL"),
        ("/x", 2, b"write PROVIDER/MODEL"),
        ("openai/x y", 2, b"write PROVIDER/MODEL"),
        ("openai/ x", 2, b"write PROVIDER/MODEL"),
    ],
)
def test_a_model_that_cannot_be_asked_begins_nothing_and_is_not_remembered(
    bench: Bench, model: str, status: int, said: bytes
) -> None:
    done = bench.ran("ask", "--model", model, "--consent", "x")

    assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    assert sessions(bench) == []
    assert AgentChoices(bench.settings.state).last() is None


@pytest.mark.promise("S1")
def test_on_a_terminal_one_is_chosen_by_its_number_and_the_choice_is_kept(bench: Bench) -> None:
    env = environment(bench.home, OPENAI_API_KEY=KEY, PATH=os.path.dirname(sys.executable))
    with on_screen([*COMMAND], cwd=bench.project, env=env, size=(100, 30)) as screen:
        screen.sees("Which one?")
        assert "No agent is chosen yet" in screen.scrolled
        screen.type("9\n")
        screen.sees("Choose 1 to 2")
        screen.type("1\n")
        screen.shows("idle · native")
        assert KEY not in screen.scrolled
    assert AgentChoices(bench.settings.state).last() == ChosenAgent("native", "openai/gpt-5.1")
    (made,) = sessions(bench)
    assert made["runner"] == "native"


@pytest.mark.promise("S1")
def test_who_chooses_none_leaves_with_4(bench: Bench) -> None:
    env = environment(bench.home)
    with on_screen([*COMMAND], cwd=bench.project, env=env, size=(100, 30)) as screen:
        screen.sees("Which one?")
        screen.type("\n")
        assert screen.ended() == 4
    assert sessions(bench) == []


@pytest.mark.promise("S1")
def test_a_choice_on_the_command_line_is_remembered_and_the_demo_is_not(bench: Bench) -> None:
    script = bench.home / "s.toml"
    script.write_text('[[turn]]\nstep = [{say = "Hi."}]\n')
    bench.ran("ask", "--demo", "--scenario", str(script), "x")
    assert AgentChoices(bench.settings.state).last() is None

    done = bench.ran("ask", "--model", "openai/x", "--consent", "x")
    assert done.returncode == 4  # there is no key
    assert b"native with openai/x from now on" in done.stderr
    assert AgentChoices(bench.settings.state).last() == ChosenAgent("native", "openai/x")
    again = bench.ran("ask", "--json", "x")
    assert json.loads(again.stdout.splitlines()[-1])["error"]["code"] == "MODEL_KEY_MISSING"


def test_the_demo_command_needs_no_choice(tmp_path: Path) -> None:
    done = holdfast("demo", "--sample", str(tmp_path / "basket"), home=tmp_path)

    assert done.returncode == 0
