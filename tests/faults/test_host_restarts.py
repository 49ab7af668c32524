"""Who asks never gives up because the host and the exec-server die together."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from holdfast.cli.commands.running_parts import belongings
from holdfast.cli.render.stop import Sort
from tests.cli.conversations import begun, hosts_of, in_conversation, lines, scripted
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench
from tests.journeys.stage import linux_only

pytestmark = [linux_only, pytest.mark.promise("A7", "X13")]
ROUNDS, ROUNDS_LONG = 4, 24
DELAYS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7)  # after which the next server is killed


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(ROUNDS_LONG, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_host_is_started_although_servers_die_meanwhile(bench: Bench, rounds: int) -> None:
    script = scripted(bench, *['{say = "Hello"}, {wait = 600}'] * (rounds + 1))
    chance, session = random.Random(7), ()
    for number in range(rounds):
        asked = begun(bench, "ask", "--json", "--scenario", script, *session, f"Wait {number}")
        assert asked.stdout is not None
        while b'"Hello"' not in (line := asked.stdout.readline()):
            assert line, asked.communicate()
        kill(hosts_of(bench) + servers_of(bench))
        for _ in range(2):  # the servers that the next host is started with
            with suppress(subprocess.TimeoutExpired):
                asked.wait(chance.choice(DELAYS))
            kill(servers_of(bench))
        output, complaint = asked.communicate(timeout=100)
        assert b"EXEC_OUTCOME_UNKNOWN" not in complaint
        last = lines(output)[-1]
        assert last["error"]["code"] == "HOST_CRASHED", (number, last, complaint)
        session = ("--session", last["session"])
        eventually(lambda: len(hosts_of(bench)) == 1)


def servers_of(bench: Bench) -> list[int]:
    found = belongings(bench.settings.state)
    return [each.pid for each in found if each.sort is Sort.SERVER]


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
