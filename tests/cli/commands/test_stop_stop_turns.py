"""Whoever stops everything is told which turns run, and the turn says that it was stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.conversations import begun, hosts_of, in_conversation, lines, scripted, sessions
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("A7", "X14")
def test_a_running_turn_is_named_and_says_that_it_was_stopped(bench: Bench) -> None:
    script = scripted(bench, '{say = "Hello"}, {wait = 600}', '{say = "Again"}')
    asked = begun(bench, "ask", "--scenario", script, "Wait for\nthe end")
    assert asked.stdout is not None
    assert asked.stdout.readline() == b"Hello\n"
    (session,) = sessions(bench)

    shown = bench.ran("stop", "--all")
    assert shown.returncode == 3
    words = f"  {session['id']}  {bench.project}: Wait for the end\n"
    assert f"Turns that are running, and would be stopped:\n{words}" in shown.stderr.decode()
    told = json.loads(bench.ran("stop", "--all", "--json").stdout)
    assert told["turns"] == [
        {"session": session["id"], "project": str(bench.project), "prompt": "Wait for\nthe end"}
    ]
    assert hosts_of(bench)

    assert bench.ran("stop", "--all", "--yes").returncode == 0
    _, said = asked.communicate(timeout=100)
    assert asked.returncode == 130
    assert b"stop" in said
    eventually(lambda: not hosts_of(bench))
    (stopped,) = sessions(bench)
    assert stopped["phase"] in {"interrupted", "idle"}  # as the host was fast enough to say so

    again = bench.ran("ask", "--session", session["id"], "Go on")
    assert again.stdout == b"Again\n", again.stderr
    records = lines(bench.ran("sessions", "show", session["id"], "--json").stdout)
    first = next(each for each in records if each["type"] == "turn_closed")
    assert (first["ending"], first["failure"]["code"]) == ("interrupted", "HOST_STOPPED")
