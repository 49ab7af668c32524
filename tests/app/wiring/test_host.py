"""A host is started through the plane, so that it outlives whoever wanted it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.cli.conversations import begun, hosts_of, in_conversation, lines, scripted
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("A3", "X14")
def test_a_turn_goes_on_when_whoever_asked_is_gone(bench: Bench) -> None:
    script = scripted(bench, '{say = "Hello"}, {wait = 2}, {say = "Goodbye"}')
    asked = begun(bench, "ask", "--scenario", script, "Wait")
    assert asked.stdout is not None
    assert asked.stdout.readline() == b"Hello\n"
    (host,) = hosts_of(bench)
    assert os.getsid(host) != os.getsid(asked.pid)
    roll = (bench.settings.state / "exec" / "processes.jsonl").read_bytes()
    started = lines(b"\n".join(each for each in roll.splitlines() if each))
    kept = {each["is_kept"] for each in started if "host" in each.get("argv", ())}
    assert kept == {True}  # until it ends, whoever is away for how long
    asked.send_signal(signal.SIGKILL)
    asked.communicate()

    def is_over() -> bool:
        records = lines(bench.ran("sessions", "show", "--json").stdout)
        return records[-1]["type"] == "turn_closed"

    eventually(is_over)
    assert bench.ran("sessions", "show").stdout == b"\n> Wait\nHello\nGoodbye\n"
