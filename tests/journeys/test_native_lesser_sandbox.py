"""Where commands can be shut in only less well, our agent and the person are told so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import anyio.to_thread
import pytest

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from holdfast.confine.restrict import landlock_version
from holdfast.confine.sandbox.landlock import LACKS
from tests.cli.conversations import in_conversation, lines
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import new_session, serving, settle, told, use
from tests.journeys.stage import linux_only
from tests.journeys.test_exec_lesser_sandbox import WITHOUT_NAMESPACES
from tests.parts.provider_server import ProviderServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), linux_only]


@pytest.fixture
def bench() -> Iterator[Bench]:
    if landlock_version() < 4:
        pytest.skip("this kernel has no Landlock that knows networks")
    with in_conversation() as made:
        yield made


def script(server: ProviderServer) -> Iterator[ScriptedAnswer]:
    assert all(lack in told(server) for lack in ("# The sandbox here", *LACKS))
    yield use("shell", command="echo two >c; cat c")
    assert "c: Permission denied" in told(server)
    yield use("write", path="c", content="three\n")
    yield use("shell", command="echo four >>c; cat a c")
    assert "exit status 0\\none\\nthree\\nfour" in told(server)
    yield ScriptedAnswer(say="Done.")


async def test_the_model_and_the_person_know_of_it(bench: Bench) -> None:
    def run() -> subprocess.CompletedProcess[bytes]:
        words = (*COMMAND, "ask", "--json", *new_session("Write c."))
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_NAMESPACES, *words],
            env=environment(bench.home),
            cwd=bench.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=250,
            check=False,
        )

    async with serving(Format.CHAT, script) as server:
        settle(bench, Format.CHAT, there=server.url)
        done = await anyio.to_thread.run_sync(run)
    *records, result = lines(done.stdout)

    assert (result["status"], result["text"]) == ("completed", "Done."), (done, records)
    events = [each["event"] for each in records if "event" in each]
    noted = [each["text"] for each in events if each["type"] == "noticed"]
    assert [LACKS[0] in each and "holdfast doctor" in each for each in noted] == [True]
