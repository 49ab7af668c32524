"""`sessions end` ends every process of a session, with a host, without one, or with a stuck one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from holdfast.world import agents, sweep
from tests.cli.conversations import begun, hosts_of, in_conversation, scripted, sessions
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench
from tests.journeys.stage import linux_only

pytestmark = [linux_only, pytest.mark.promise("A12")]
LEFT = "setsid sleep 300 >/dev/null 2>&1 & setsid env -i /bin/sleep 300 >/dev/null 2>&1 & sleep 300"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.parametrize("harm", [None, signal.SIGKILL, signal.SIGSTOP])
def test_nothing_of_a_session_outlives_its_end(bench: Bench, harm: int | None) -> None:
    script = scripted(bench, f'{{say = "Hello"}}, {{run = "{LEFT}"}}')
    asked = begun(bench, "ask", "--scenario", script, "Wait")
    assert asked.stdout is not None
    assert asked.stdout.readline() == b"Hello\n"
    (session,) = sessions(bench)
    try:
        eventually(lambda: len(agents(session["id"])) >= 4)  # the agent, its shell and what it left
        asked.kill()  # else it would start another host
        asked.communicate()
        (host,) = hosts_of(bench)
        if harm is not None:
            os.kill(host, harm)
        if harm == signal.SIGKILL:
            eventually(lambda: not hosts_of(bench))
            assert sessions(bench)[0]["phase"] == "interrupted"
            assert b"  interrupted  " in bench.ran("sessions", "list").stdout
            shown = bench.ran("sessions", "show")
            assert b"was interrupted: its host is gone" in shown.stderr

        ended = bench.ran("sessions", "end", session["id"])
        assert ended.returncode == 0, ended.stderr
        assert agents(session["id"]) == []
        assert hosts_of(bench) == []
    finally:
        sweep(session["id"])
