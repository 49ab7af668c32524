"""Whatever dies while an agent works: nothing acknowledged is lost, and the person is told."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import anyio
import pytest

from holdfast.app.sessions import short
from holdfast.failures import from_wire
from holdfast.host.client import DeltasReceived
from holdfast.host.failures import HostCrashed
from holdfast.host.model import CloseCommand, EventRecorded
from holdfast.runners.model import (
    Delta,
    DeltaKind,
    QuestionAsked,
    TextCompleted,
    ToolStarted,
    TurnEnding,
)
from tests.exec.server.talking import until
from tests.faults.host_casts import AGAIN, CASTS, GO, Piece
from tests.faults.host_harms import HARMS, kill_client
from tests.faults.host_stand import Stand, mounts_below, stand
from tests.faults.host_table import (
    BUSY,
    FAULTS,
    GOES_ON,
    RUNNERS,
    STATES,
    expected,
    is_applicable,
    page,
    said,
)
from tests.faults.mounts import missing_for_mounts
from tests.journeys.stage import linux_only
from tests.shape.source import ROOT

pytestmark = [pytest.mark.anyio, linux_only]

CRASHED = (
    "The agent crashed and lost its current turn. Your conversation history is saved. "
    "Press Enter to continue."
)
SLOW = {"unresponsive", "responsive"}  # what is said of a machine that has other things to do
NEEDS_DISK = {"disk full", "power"}
BRIEFLY, FOR_GOOD = 3.0, 25.0  # seconds in a state: what ends there is not to be over before
WATCHED = ("host", "in a tool")  # the cell of each runner that is watched when its turn is over
STAY_WATCHED, WATCH = 6.0, 10.0  # an agent that lived on would do something within this time


def is_reached(here: Stand, state: str) -> bool:
    """Whether the second turn is in the state in which harm is done."""
    if state in {"idle", "publishing"}:
        return here.closed(2) is not None
    records = [each.record for each in here.kept if isinstance(each.record, EventRecorded)]
    events = [each.event for each in records if each.turn == 2]
    match state:
        case "streaming":
            shown = [each for each in here.seen if isinstance(each, DeltasReceived)]
            pieces = [delta for each in shown for delta in each.deltas]
            is_streamed = any(isinstance(e, Delta) and e.sort is DeltaKind.TEXT for e in pieces)
            return any(isinstance(e, TextCompleted) for e in events) or (
                is_streamed and any(isinstance(e, ToolStarted) for e in events)
            )
        case "in a tool":
            return sum(isinstance(e, ToolStarted) for e in events) == 2
        case _:
            return any(isinstance(e, QuestionAsked) for e in events)


async def reach(here: Stand, state: str) -> None:
    """Wait until the second turn is in a state, and its processes run."""
    await here.until(lambda: is_reached(here, state))
    if state == "in a tool":
        await until(here.is_tool_running, within=60)


async def harmed(here: Stand, fault: str, state: str) -> str:
    """Bring a session into a state, do harm, go on, and say what became of its turn."""
    if fault == "client" and state != "publishing":
        marked, host = await lose_client(here, state)
    else:
        await here.prompt("c1", GO)
        await reach(here, state)
        marked, host = here.marked(), here.host_pid()
        await (publish(here, fault) if state == "publishing" else HARMS[fault](here))
    here.answers = True
    await here.until(lambda: here.closed(2) is not None)
    left = here.marked()  # at once: what is ended later was ended too late
    closed = here.closed(2)
    assert closed is not None
    assert marked or not has_processes(here.runner, state)
    if closed.failure is not None:
        assert left == set()  # the turn is over: nothing of the agent lives
    if (fault, state) == WATCHED:
        await watch(here)
    await here.prompt("c2", AGAIN)
    await here.until(lambda: here.closed(3) is not None)
    again = here.closed(3)
    assert again is not None
    assert again.ending is TurnEnding.COMPLETED, again
    if here.host_pid() != host:
        assert marked & here.marked() == set()  # nor any that an earlier host had started
    if closed.failure is None:
        return GOES_ON
    if closed.failure["code"] == HostCrashed.code:
        assert from_wire(closed.failure).user_message == CRASHED
    return str(closed.failure["code"])


async def watch(here: Stand) -> None:
    """Nothing of a turn that is over asks the model or writes into the draft."""
    asked, draft = len(here.model.requests), await here.draft()
    await anyio.sleep(WATCH)
    assert len(here.model.requests) == asked
    assert await here.draft() == draft


def has_processes(runner: str, state: str) -> bool:
    """Whether the agent has processes in a state; our own has none but those of its tools."""
    return CASTS[runner].process != "" or state == "in a tool"


async def lose_client(here: Stand, state: str) -> tuple[set[tuple[int, int]], int | None]:
    """Kill whoever has given the prompt, and sees what comes of it; return what ran before."""
    with here.command("attach", short(here.session)) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(f"{GO}\n".encode())
        await reach(here, state)
        await anyio.to_thread.run_sync(client.stdout.readline)
        before = here.marked(), here.host_pid()
        kill_client(client)
    return before


async def publish(here: Stand, fault: str) -> None:
    """Do harm while the draft is published; the client is whoever publishes."""
    with here.publisher() as publisher:
        await until(lambda: here.is_publishing(publisher), within=60)
        if fault == "client":
            kill_client(publisher)
        else:
            await HARMS[fault](here)
        await anyio.to_thread.run_sync(publisher.communicate)


def check(here: Stand, fault: str, state: str) -> None:
    """Nothing acknowledged is lost or doubled, and what was seen is what is kept."""
    records = here.records()
    counted = Counter(getattr(record, "command", "") for _, record in records)
    assert [seq for seq, _ in records] == list(range(1, len(records) + 1))
    seen = [(each.seq, each.record) for each in here.kept]
    assert seen == records[: len(seen)]
    assert {id_: counted[id_] for id_ in here.acknowledged} == dict.fromkeys(here.acknowledged, 1)
    assert counted["refused"] == 0
    files = {"hello.txt": "hello\n", "before.txt": "before\n", "after.txt": "after\n"}
    found = {name: read(here.project / name) for name in files}
    if fault == "power" and state in BUSY:  # nobody has kept what that turn had written
        found["before.txt"] = files["before.txt"]
    assert found == files


def read(path: Path) -> str:
    return path.read_text() if path.exists() else "missing"


IN_EVERY_RUN = {
    ("rehearsal", *WATCHED),
    ("codex", *WATCHED),
    ("codex", "exec-server", "approval pending"),
    ("native", *WATCHED),
}
CELLS = [
    pytest.param(*cell, marks=() if cell in IN_EVERY_RUN else pytest.mark.long)
    for cell in product(RUNNERS, FAULTS, STATES)
    if is_applicable(*cell[:2])
]


@pytest.mark.promise("A2", "A3", "A4", "A7", "A11", "A12")
@pytest.mark.parametrize(("runner", "fault", "state"), CELLS)
async def test_a_session_survives(
    runner: str, fault: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = missing_for_mounts() if fault in NEEDS_DISK else None
    if missing is not None:
        pytest.skip(f"there is no disk to harm: {missing}")
    stay = BRIEFLY if expected(fault, state) == GOES_ON else FOR_GOOD
    if (fault, state) == WATCHED:
        stay = STAY_WATCHED
    async with stand(
        runner,
        Piece(state, stay),
        monkeypatch,
        disk=fault in NEEDS_DISK,
        cables=fault == "network cut for 20 s",
    ) as here:
        outcome = await harmed(here, fault, state)
        print(f"{runner:10} {fault:22} {state:17} {outcome:13} {', '.join(here.said)}")
        await ended(here)
        check(here, fault, state)
    assert mounts_below(here.home) == set()
    assert outcome == expected(fault, state)
    assert said(fault) <= set(here.said) <= said(fault) | SLOW


async def ended(here: Stand) -> None:
    """Publish, close the session and end all that was started: nobody of it is left."""
    assert await run(here.publisher()) == 0
    await here.seat.command(CloseCommand("c3"))
    here.acknowledged.append("c3")
    await here.leave()
    await none_left(here.left_over)
    assert (
        await run(here.command("stop", "--all", "--state", str(here.settings.state), "--yes")) == 0
    )
    await none_left(here.remains)


async def none_left(found: Callable[[], list[str]]) -> None:
    """Wait until nobody is there any more; who stays is named."""
    with anyio.move_on_after(30):
        while found():  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.05)
    assert found() == []


async def run(command: subprocess.Popen[bytes]) -> int:
    with command:
        printed, _ = await anyio.to_thread.run_sync(command.communicate)
    print(printed.decode(errors="replace"))
    return command.returncode


def test_the_page_says_what_is_proved() -> None:
    assert (ROOT / "docs" / "what-survives-what.md").read_text() == page()
