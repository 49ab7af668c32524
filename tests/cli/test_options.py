"""A request means what is settled, where it does not say otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.failures import SettingInvalid
from holdfast.app.sessions import Sessions
from holdfast.app.wiring.native_agent import waits_of
from holdfast.cli.declarations import Request
from holdfast.cli.options import chosen_for, configured
from holdfast.failures import RetryPolicy
from tests.cli.workbenches import Bench, at_bench

OWN = 'runner = "native"\nmodel = "openai/x"\ncolor = "never"\nplain = true\n[budget]\nsteps = 9\n'


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        made.settings.config.mkdir(parents=True)
        (made.settings.config / "config.toml").write_text(OWN)
        yield made


def meant(bench: Bench, command: str = "ask", **flags: str) -> dict[str, str]:
    given = (("--project", str(bench.project)), *((f"--{k}", v) for k, v in flags.items()))
    found = configured(Request(command, given=given), bench.settings)
    assert found.colour == "never"
    return {key: value for key, value in found.given if key != "--project"}


def test_what_is_settled_fills_in(bench: Bench) -> None:
    all_of_it = {"--runner": "native", "--model": "openai/x", "budget.steps": "9"}

    assert meant(bench) == all_of_it
    assert meant(bench, "chat") == {**all_of_it, "--plain": "True", "notify": "bell,osc9"}
    assert meant(bench, model="openai/y") == {**all_of_it, "--model": "openai/y"}
    # A model that is settled is one for the runner that is settled.
    assert meant(bench, runner="codex") == {"--runner": "codex", "budget.steps": "9"}
    assert meant(bench, session="s") == {"--session": "s"}


def test_an_effort_is_for_our_own_agent(bench: Bench) -> None:
    with open(bench.settings.config / "config.toml", "w") as own:
        own.write('runner = "native"\ncolor = "never"\neffort = "low"\n')

    assert meant(bench) == {"--runner": "native", "--effort": "low"}
    assert meant(bench, effort="high")["--effort"] == "high"
    assert meant(bench, runner="codex") == {"--runner": "codex"}
    assert meant(bench, session="s", effort="max") == {"--session": "s", "--effort": "max"}
    with pytest.raises(SettingInvalid):
        meant(bench, effort="enormous")


def test_who_goes_on_says_how_for_this_turn() -> None:
    given = (("--model", "a/b"), ("--effort", "low"), ("--timeout", "5"))
    going_on = Request("ask", given=(*given, ("--session", "s")))

    assert chosen_for(going_on) == {"model": "a/b", "effort": "low"}
    assert chosen_for(Request("chat", given=(("--continue", "True"),))) == {}
    assert chosen_for(Request("ask", given=given)) == {}  # a session begins with them


def test_a_command_that_calls_is_said_in_ones_own_file(bench: Bench) -> None:
    with pytest.raises(SettingInvalid):
        meant(bench, "chat", notify="command")
    with pytest.raises(SettingInvalid):
        meant(bench, "chat", notify="smoke")
    with open(bench.settings.config / "config.toml", "w") as own:
        own.write('color = "never"\nnotify = "bell"\nnotify_command = "say it"\n')

    found = meant(bench, "chat", notify="osc9 command")
    assert (found["notify"], found["notify_command"]) == ("osc9,command", "say it")


def test_who_has_settled_nothing_means_the_same(bench: Bench) -> None:
    (bench.settings.config / "config.toml").unlink()
    request = Request("ask", given=(("--project", str(bench.project)),))

    assert configured(request, bench.settings) == request


@pytest.mark.promise("A9")
def test_how_long_a_model_is_waited_for_can_be_settled(bench: Bench) -> None:
    own = "[wait]\nfirst_byte = 30\nbetween_chunks = 900.5\nattempts = 6\n"
    (bench.settings.config / "config.toml").write_text('color = "never"\n' + own)
    deadlines, policy = waits_of(meant(bench))

    assert (deadlines.first_byte, deadlines.between_chunks) == (30.0, 900.5)
    assert policy.waits == (*RetryPolicy().waits, (4.0, 8.0), (4.0, 8.0))


def test_a_budget_is_kept_with_the_session_and_ends_its_turn(bench: Bench) -> None:
    script = bench.home / "model.json"
    call = '{"calls": [{"tool": "read", "arguments": {"path": "a"}}]}'
    script.write_text(f'{{"answer": [{call}, {call}, {{"say": "Done."}}]}}')
    own = 'runner = "native"\n[budget]\nsteps = 2\n'
    (bench.settings.config / "config.toml").write_text(own)
    try:
        done = bench.ran("ask", "--scenario", str(script), "Go")
    finally:
        bench.ran("stop", "--all", "--state", str(bench.settings.state), "--yes")

    (session,) = Sessions(bench.settings).all()
    assert session.options["budget.steps"] == "2"
    assert done.returncode == 5, done.stderr
