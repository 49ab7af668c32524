"""Every client with every server through every fault: ours come out whole, theirs as measured."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import anyio
import pytest

from holdfast.codex.wire.generated import CommandExecutionThreadItem
from holdfast.exec.failures import RecoveryTimedOut
from holdfast.exec.model import ClientState
from holdfast.failures import ungrouped
from tests.exec.server.talking import until
from tests.faults.test_exec_chaos import behind, client_of, heard, shell
from tests.journeys.stage import linux_only
from tests.journeys.test_exec_server import Asked, asking, lines, numbered, on
from tests.parts.chaos_proxy import ChaosProxy
from tests.parts.model_acts import Say, run

pytestmark = [pytest.mark.anyio, linux_only]

BEFORE, AFTER = 5, 30  # lines
WHOLE = f"{lines(BEFORE)}{lines(AFTER)}exit 5"
TOLD = 15.0  # the longest that a client without signs of life is left in a black hole


@dataclass
class Cell:
    """A client with a server, and a command that runs there and says when it has begun."""

    place: Path
    proxy: ChaosProxy
    has_noticed: Callable[[], bool]  # whether the client has

    @property
    def command(self) -> str:
        before = numbered(BEFORE, 0.02).removesuffix("exit 5")
        return f"{before}touch {self.place / 'begun'}; {numbered(AFTER, 0.05)}"

    async def begun(self) -> None:
        await until((self.place / "begun").exists, within=60)


async def cut(cell: Cell) -> None:
    await cell.begun()
    for _ in range(3):
        await cell.proxy.cut()
        await anyio.sleep(0.3)


async def refuse(cell: Cell) -> None:
    await cell.begun()
    cell.proxy.refuses = True
    await cell.proxy.cut()
    await anyio.sleep(1.0)
    cell.proxy.refuses = False


async def half_open(cell: Cell) -> None:
    await cell.begun()
    await cell.proxy.half_open()


async def black_hole(cell: Cell) -> None:
    """Carry nothing; the client is told only when the server hung up, as a network that heals does.

    Who gives signs of life notices before.
    """
    await cell.begun()
    links = list(cell.proxy.links)
    cell.proxy.swallow()
    with anyio.move_on_after(TOLD):
        await until(lambda: cell.has_noticed() or links[-1].is_hung_up, within=TOLD + 1)
    for link in links:
        await link.reset_near()


async def drop_news(cell: Cell) -> None:
    await cell.begun()
    cell.proxy.withholds = lambda frame: b'"process/output"' in frame


async def drop_answer(cell: Cell) -> None:
    """The one that says that the command was started."""
    cell.proxy.withholds = lambda frame: b'"sandboxType"' in frame


async def reorder(cell: Cell) -> None:
    cell.proxy.overtakes = lambda frame: b'"process/output"' in frame or b'"sandboxType"' in frame
    await cell.begun()
    await until(lambda: cell.proxy.overtaken > 1, within=60)  # a busy server says much at once


Fault = Callable[[Cell], Awaitable[None]]


@asynccontextmanager
async def ours(cell: Cell, url: str) -> AsyncGenerator[list[str]]:
    """What our client hears, while the block does harm."""
    outcomes: list[str] = []

    async def hear() -> None:
        try:
            process = await client.start(shell(cell.command), continue_if_started=True)
            said, status = await heard(process)
            outcomes.append(f"{said}exit {status}")
        except RecoveryTimedOut as failure:
            outcomes.append(failure.code)

    with ungrouped():
        async with client_of(url) as client, anyio.create_task_group() as tasks:
            cell.has_noticed = lambda: client.state is not ClientState.CONNECTED
            tasks.start_soon(hear)
            yield outcomes


@asynccontextmanager
async def codex(cell: Cell, url: str) -> AsyncGenerator[list[str]]:
    """What a turn of the real Codex makes of its command, while the block does harm."""
    outcomes: list[str] = []
    script = [[run(cell.command, yield_time_ms=28_000)], [Say("Done.")]]
    async with on(url, cell.place, script) as (_, thread), asking(thread) as asked:
        yield outcomes
        await until(lambda: asked.is_done, within=120)
        outcomes.append(ran(asked))


def ran(asked: Asked) -> str:
    items = asked.answers[0].items
    commands = [item for item in items if isinstance(item, CommandExecutionThreadItem)]
    return "".join(f"{item.aggregated_output}exit {item.exit_code}" for item in commands)


CLIENTS = {"ours": ours, "codex": codex}
GONE = "EXEC_RECOVERY_TIMED_OUT"
UNSTARTED = "Failed to create unified exec process: exec-server transport disconnectedexit -1"
# What the programs of Codex were seen to do; everything else comes out whole.
MEASURED: dict[tuple[str, str, Fault], str] = {
    ("ours", "codex", half_open): GONE,  # the server gives the session to nobody else
    ("ours", "codex", black_hole): GONE,
    ("codex", "ours", drop_answer): UNSTARTED,  # the client kills what it cannot be sure of
    ("codex", "codex", drop_answer): UNSTARTED,
    ("codex", "codex", half_open): "recovery timed out after 25s",
    ("codex", "codex", black_hole): "",  # nobody notices; not a word of it in the whole turn
}
FAULTS: list[Fault] = [cut, refuse, half_open, black_hole, drop_news, drop_answer, reorder]
# The others of ours are in `test_exec_chaos`, and those of Codex on ours in `test_exec_server`.
IN_EVERY_RUN = {
    ("codex", "ours", drop_answer),
    ("codex", "ours", reorder),
    ("ours", "ours", reorder),
    ("ours", "codex", reorder),
}


@pytest.mark.promise("X3", "X4", "X6", "X9")
@pytest.mark.parametrize(
    ("client", "server", "fault"),
    [
        pytest.param(*cell, marks=() if cell in IN_EVERY_RUN else pytest.mark.long)
        for cell in product(["ours", "codex"], ["ours", "codex"], FAULTS)
    ],
)
async def test_every_pair_comes_through_every_fault_or_fails_as_measured(
    tmp_path: Path, client: str, server: str, fault: Fault
) -> None:
    async with behind(server, tmp_path) as (proxy, url):
        cell = Cell(tmp_path, proxy, lambda: False)
        async with CLIENTS[client](cell, url) as outcomes:
            await fault(cell)
            await until(lambda: bool(outcomes) or client == "codex", within=120)

    (outcome,) = outcomes
    if (measured := MEASURED.get((client, server, fault))) is None:
        assert outcome == WHOLE
    else:
        assert outcome != WHOLE
        assert measured in outcome
