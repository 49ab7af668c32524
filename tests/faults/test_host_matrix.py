"""Whatever dies while an agent works: nothing acknowledged is lost, and the person is told."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import product

import anyio
import pytest

from holdfast.cli.core.stop_page import Sort
from holdfast.failures import from_wire
from holdfast.host.dialling import Shown
from holdfast.host.failures import HostCrashed
from holdfast.host.model import Close, Happened
from holdfast.host.sitting import Responsive
from holdfast.runners.model import Asked, Delta, Ending, Said, ToolStarted
from holdfast.runners.model import Sort as Piece
from holdfast.world import system_process
from tests.exec.server.talking import until
from tests.faults.host_stand import Stand, mounts_below, stand
from tests.faults.host_table import BUSY, FAULTS, GOES_ON, RUNNERS, STATES, expected, page, said
from tests.faults.mounts import missing_for_mounts, mounted
from tests.journeys.stage import linux_only
from tests.shape.source import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), linux_only]


async def kill_client(here: Stand) -> None:
    with here.visitor("") as visitor:
        assert visitor.stdout is not None
        await anyio.to_thread.run_sync(visitor.stdout.readline)
        visitor.kill()


async def kill_host(here: Stand) -> None:
    os.kill(here.pid_of_host(), signal.SIGKILL)


async def kill_server(here: Stand) -> None:
    os.kill(here.pid_of(Sort.SERVER), signal.SIGKILL)


async def kill_runner(here: Stand) -> None:
    os.kill(here.pid_of_runner(), signal.SIGKILL)


async def kill_keeper(here: Stand) -> None:
    """Whatever it held ends with it, the host too, a moment later."""
    host = here.pid_of_host()
    os.kill(here.pid_of(Sort.KEEPER), signal.SIGKILL)
    await until(lambda: is_gone(host), within=30)


def is_gone(pid: int) -> bool:
    process = system_process(pid)
    return process is None or process.is_dead


async def stop_host(here: Stand) -> None:
    host = here.pid_of_host()
    os.kill(host, signal.SIGSTOP)
    with anyio.move_on_after(35.0):
        await here.until(lambda: False)
    os.kill(host, signal.SIGCONT)
    await here.until(lambda: Responsive() in here.seen)


async def fill_disk(here: Stand) -> None:
    filler = here.journal.parent / "filler"
    with suppress(OSError):  # that there is no more room
        filler.write_bytes(bytes(SMALL))
    with anyio.move_on_after(8.0):
        await here.until(lambda: False)
    filler.unlink()


Fault = Callable[[Stand], Awaitable[None]]
HARM: dict[str, Fault] = {
    "client": kill_client,
    "host": kill_host,
    "exec-server": kill_server,
    "agent": kill_runner,
    "keeper": kill_keeper,
    "host stopped for 35 s": stop_host,
    "disk full for 8 s": fill_disk,
}
CRASHED = (
    "The agent crashed and lost its current turn. Your conversation history is saved. "
    "Press Enter to continue."
)
SMALL = 512 * 1024  # bytes, of a file system


def is_reached(here: Stand, state: str) -> bool:
    """Whether the turn is in the state in which harm is done."""
    events = [each.record.event for each in here.kept if isinstance(each.record, Happened)]
    match state:
        case "streaming":
            shown = [each for each in here.seen if isinstance(each, Shown)]
            pieces = [delta for each in shown for delta in each.deltas]
            is_streamed = any(isinstance(e, Delta) and e.sort is Piece.TEXT for e in pieces)
            return is_streamed or any(isinstance(e, Said) for e in events)
        case "in a tool":
            return sum(isinstance(e, ToolStarted) for e in events) == 2
        case "approval pending":
            return any(isinstance(e, Asked) for e in events)
        case _:
            return here.closed(1) is not None


async def harmed(here: Stand, fault: str, state: str) -> str:
    """Bring a session into a state, do harm, go on, and say what became of its turn."""
    await here.prompt("c1", "go")
    await here.until(lambda: is_reached(here, state))
    if state == "publishing":
        await publish(here, fault)
    else:
        await HARM[fault](here)
    here.answers = True
    await here.until(lambda: here.closed(1) is not None)
    closed = here.closed(1)
    assert closed is not None
    await here.prompt("c2", "again")
    await here.until(lambda: here.closed(2) is not None)
    again = here.closed(2)
    assert again is not None
    assert again.ending is Ending.COMPLETED, again
    if closed.failure is None:
        return GOES_ON
    if closed.failure["code"] == HostCrashed.code:
        assert from_wire(closed.failure).user_message == CRASHED
    return str(closed.failure["code"])


async def publish(here: Stand, fault: str) -> None:
    """Do harm while the draft is published; the client is whoever publishes."""
    with here.publisher() as publisher:
        assert publisher.stdout is not None
        await anyio.to_thread.run_sync(publisher.stdout.readline)
        if fault == "client":
            publisher.kill()
        else:
            await HARM[fault](here)
        await anyio.to_thread.run_sync(publisher.wait)


def check(here: Stand, state: str) -> None:
    """Nothing acknowledged is lost or doubled, and what was seen is what is kept."""
    records = here.records()
    counted = Counter(getattr(record, "command", "") for _, record in records)
    assert [seq for seq, _ in records] == list(range(1, len(records) + 1))
    seen = [(each.seq, each.record) for each in here.kept]
    assert seen == records[: len(seen)]
    assert {id_: counted[id_] for id_ in here.acknowledged} == dict.fromkeys(here.acknowledged, 1)
    if state != "approval pending" or here.runner == "rehearsal":
        assert (here.project / "before.txt").read_text() == "before\n"
    assert (here.project / "after.txt").read_text() == "after\n"


IN_EVERY_RUN = {
    ("rehearsal", "host", "in a tool"),
    ("rehearsal", "agent", "in a tool"),
    ("rehearsal", "exec-server", "streaming"),
    ("codex", "host", "approval pending"),
    ("native", "host", "in a tool"),
}
CELLS = [
    pytest.param(*cell, marks=() if cell in IN_EVERY_RUN else pytest.mark.long)
    for cell in product(RUNNERS, FAULTS, STATES)
    if cell[:2] != ("native", "agent")  # which is the host
]


@pytest.mark.promise("A2", "A3", "A4", "A7", "A11")
@pytest.mark.parametrize(("runner", "fault", "state"), CELLS)
async def test_a_session_survives(
    runner: str, fault: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = missing_for_mounts() if fault == "disk full for 8 s" else None
    if missing is not None:
        pytest.skip(f"no disk can be filled: {missing}")
    async with stand(runner, state, monkeypatch) as here:
        if fault == "disk full for 8 s":
            with mounted(here.journal.parent, "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs"):
                await survived(here, fault, state)
        else:
            await survived(here, fault, state)
    assert list(mounts_below(here.home)) == []


async def survived(here: Stand, fault: str, state: str) -> None:
    outcome = await harmed(here, fault, state)
    print(f"{here.runner:10} {fault:22} {state:17} {outcome:13} {', '.join(here.said)}")
    with here.publisher() as publisher:
        assert await anyio.to_thread.run_sync(publisher.wait) == 0
    await here.seat.command(Close("c3"))
    here.acknowledged.append("c3")
    check(here, state)
    with anyio.move_on_after(10):
        await until(lambda: here.left_over() == [], within=9)
    assert here.left_over() == []
    assert outcome == expected(fault, state)
    word = said(fault)
    if word != "DISK_FULL" or state in BUSY[:2]:  # else nothing is to be written meanwhile
        assert (word is None and here.said == []) or word in here.said


def test_the_page_says_what_is_proved() -> None:
    assert (ROOT / "docs" / "what-survives-what.md").read_text() == page()
