"""Tools that hang, crash or say far too much, and sessions that die: the others go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from tests.cli.conversations import Records, hosts_of, in_conversation, lines
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import Script, asked, new_session, serving, settle, told, use
from tests.journeys.stage import linux_only
from tests.parts.provider_server import ProviderServer, Reply, Silence

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), linux_only]

MIB = 1 << 20
FLOODS = [pytest.param(16 * MIB), pytest.param(1024 * MIB, marks=pytest.mark.long)]
RESIDENT_MOST = 200 * MIB
LONG_ENOUGH = 280  # seconds, on a machine with other things to do


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def peak(pid: int) -> int:
    """The most memory that a process ever held, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(found) * 1024


def misbehaving(bench: Bench, size: int, peaks: list[int]) -> Script:
    """Tools that hang, crash and flood, one after the other."""
    flood = f"head -c {size} /dev/zero | tr '\\0' x; echo; echo the end"

    def script(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        yield use("shell", command="echo hung; exec sleep 3600", seconds=1)
        assert "still running after" in told(server)
        yield use("shell", action="kill", id="sh1")
        yield use("shell", command="sh -c 'kill -SEGV $$'", seconds=LONG_ENOUGH)
        assert "exit status 139" in told(server)
        yield use("shell", command=flood, seconds=LONG_ENOUGH)
        peaks.extend(peak(pid) for pid in hosts_of(bench))
        assert "the end" in told(server)
        assert len(told(server)) < MIB
        yield use("nothing", of="this name")
        yield ScriptedAnswer(say="Still here.")

    return script


@pytest.mark.promise("A1")
@pytest.mark.parametrize("size", FLOODS)
async def test_a_turn_goes_on_whatever_its_tools_do(bench: Bench, size: int) -> None:
    peaks: list[int] = []
    async with serving(Format.CHAT, misbehaving(bench, size, peaks)) as server:
        settle(bench, Format.CHAT, there=server.url)
        done = await asked(bench, *new_session("Go."))
    result = lines(done.stdout)[-1]
    print(f"a flood of {size // MIB} MiB: the host held {max(peaks) / MIB:.0f} MiB at most")

    assert (result["status"], result["text"]) == ("completed", "Still here."), done
    assert len(peaks) == 1
    assert max(peaks) <= RESIDENT_MOST
    assert len(done.stdout) < 2 * MIB


async def ended(bench: Bench, *words: str) -> Records:
    """The end of a turn, and what it says."""
    return lines((await asked(bench, *words)).stdout)[-1:]


@pytest.mark.promise("A1", "A2")
async def test_the_crash_of_a_session_leaves_the_other_alone(bench: Bench) -> None:
    doomed: list[int] = []

    def lost(_: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        yield Silence()
        yield ScriptedAnswer(say="Here again.")

    def steady(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        yield use("shell", command="read -r word; echo $word >b", keeps_input=True, seconds=1)
        os.kill(doomed[0], signal.SIGKILL)
        yield use("shell", action="input", id="sh1", input="two\n", seconds=LONG_ENOUGH)
        assert "exit status 0" in told(server)
        yield ScriptedAnswer(say="Undisturbed.")

    crashed: Records = []
    async with serving(Format.CHAT, lost) as one, serving(Format.CHAT, steady) as two:
        settle(bench, Format.CHAT, one=one.url, two=two.url)

        async def lose() -> None:
            crashed.extend(await ended(bench, *new_session("Wait.", provider="one")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lose)
            await one.until_requested(1)
            doomed.extend(hosts_of(bench))
            (other,) = await ended(bench, *new_session("Write b.", provider="two"))
        (again,) = await ended(bench, "--session", crashed[0]["session"], "And now?")
    published = bench.ran("publish", "--yes", "--draft", other["draft"])

    assert len(doomed) == 1
    assert (crashed[0]["status"], crashed[0]["error"]["code"]) == ("failed", "HOST_CRASHED")
    assert (other["status"], other["text"]) == ("completed", "Undisturbed.")
    assert (again["status"], again["text"]) == ("completed", "Here again.")
    assert published.returncode == 0, published
    assert bench.files() == {"a": "one\n", "b": "two\n"}
