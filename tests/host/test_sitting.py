"""Whoever sits at a session hears everything once, however often its host dies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from holdfast.host.dialling import Kept
from holdfast.host.failures import HostGone
from holdfast.host.hosting import HostOrder, run_host
from holdfast.host.model import Begun, Happened, Prompt, TurnClosed
from holdfast.host.sitting import Reconnected, Reconnecting, Seen, seated
from holdfast.runners.model import Ending, Said, ToolStarted
from holdfast.runners.twins import Puppet, Script
from tests.host.staging import Bench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class House:
    """Starts hosts of one session, each in a task of its own, and kills them."""

    def __init__(self, tmp_path: Path, script: Script, tasks: TaskGroup) -> None:
        self.puppet = Puppet(script)
        self.socket = tmp_path / "host.sock"
        self.starts = 0
        self._tasks = tasks
        self._living = anyio.CancelScope()
        self._order = HostOrder(
            session="s1",
            directory=tmp_path,
            socket=self.socket,
            project="/p",
            draft="d1",
            runner="puppet",
        )

    async def start(self) -> None:
        self.starts += 1
        self._living = anyio.CancelScope()
        self._tasks.start_soon(self._live, self._living)

    def kill(self) -> None:
        self._living.cancel()

    async def _live(self, scope: anyio.CancelScope) -> None:
        with scope:
            await run_host(self._order, self._runner(), Bench())

    @asynccontextmanager
    async def _runner(self) -> AsyncGenerator[Puppet]:
        yield self.puppet


SCRIPT: Script = [[ToolStarted("t1", "run", "make"), 1e6], [Said("2", "Two")]]


async def test_a_host_that_dies_in_a_turn_is_started_again(tmp_path: Path) -> None:
    seen: list[Seen] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    async with tasks:
        async with seated(house.socket, house.start) as seat:
            await seat.command(Prompt("c1", "one"))
            while not any(isinstance(each, Kept) and _is_end(each, 2) for each in seen):
                news = await seat.receive()
                seen += news
                if any(isinstance(each, Kept) and _is_tool(each) for each in news):
                    house.kill()
                    await seat.command(Prompt("c2", "two"))
        tasks.cancel_scope.cancel()

    kept = [each for each in seen if isinstance(each, Kept)]
    assert [each.seq for each in kept] == list(range(1, len(kept) + 1))
    assert [each.attempt for each in seen if isinstance(each, Reconnected)] == [1, 2]
    assert [each.delay for each in seen if isinstance(each, Reconnecting)] == [1.0]
    assert [each.record.reason for each in kept if isinstance(each.record, Begun)] == [
        "",
        "its host died",
    ]
    assert (house.starts, house.puppet.heard) == (2, ["one", "two"])


@pytest.mark.promise("A7")
async def test_a_host_that_keeps_dying_is_given_up(tmp_path: Path) -> None:
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    async with tasks:
        with pytest.raises(HostGone):
            async with seated(house.socket, house.start) as seat:
                while True:
                    if any(isinstance(each, Reconnected) for each in await seat.receive()):
                        house.kill()
        tasks.cancel_scope.cancel()

    assert house.starts == 3


def _is_tool(kept: Kept) -> bool:
    return isinstance(kept.record, Happened) and isinstance(kept.record.event, ToolStarted)


def _is_end(kept: Kept, turn: int) -> bool:
    record = kept.record
    return (
        isinstance(record, TurnClosed) and record.turn == turn and record.ending is Ending.COMPLETED
    )
