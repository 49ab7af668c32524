"""A process is followed to its end, which comes in time, and takes all that it started with it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from holdfast.agent.failures import ToolRefused
from holdfast.agent.ground import Freedom
from holdfast.agent.running import Running, shells_in
from tests.agent.grounds import ground_in, soon
from tests.journeys.stage import linux_only
from tests.world.test_process_marks import is_alive

pytestmark = [pytest.mark.anyio, linux_only]


async def over(running: Running) -> Running:
    with anyio.fail_after(60):
        while not running.is_over:
            await running.wait(1.0)
    return running


async def numbers(running: Running) -> list[int]:
    """The two numbers that it says first."""
    said = ""
    while said.count("\n") < 2:
        await running.wait(1.0)
        said += running.window.take()
    return [int(word) for word in said.split()]


async def test_what_it_says_is_heard_and_can_be_heard_again(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as ground, shells_in(ground) as shells:
        line = "seq 1 60000; echo end >&2; exit 3"
        running = await over(await shells.start(line, Freedom.OPEN, has_stdin=False))

        said = running.window.take()
        again = await running.recall(16_000)
        last = await running.recall(running.total - 8)
        none = await running.recall(running.total)

    whole = "".join(f"{number}\n" for number in range(1, 60_001)) + "end\n"
    assert (running.status, running.total) == (3, len(whole))
    assert said.startswith("1\n2\n") and said.endswith("\n60000\nend\n")
    assert again.startswith(whole[16_000:17_000])
    assert f"(go on from offset 66000 of {len(whole)})" in again
    assert last == whole[-8:]
    assert none == f"(nothing is kept any more from offset {len(whole)} of {len(whole)})"


@pytest.mark.promise("A11")
async def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as ground, shells_in(ground) as shells:
        line = "sleep 300 & echo $!; setsid sleep 300 >/dev/null 2>&1 & echo $!"
        running = await over(await shells.start(line, Freedom.OPEN, has_stdin=False))
        pids = [int(word) for word in running.window.take().split()]

        assert len(pids) == 2
        await soon(lambda: not any(map(is_alive, pids)))


@pytest.mark.promise("A11")
async def test_nothing_is_left_of_those_that_are_killed_or_left_behind(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as ground:
        async with shells_in(ground) as shells:
            line = "echo $$; setsid sleep 300 & echo $!; wait"
            left = await shells.start(line, Freedom.OPEN, has_stdin=False)
            killed = await shells.start(line, Freedom.OPEN, has_stdin=False)
            pids = {each: await numbers(each) for each in (left, killed)}
            await killed.end("enough")

            assert (killed.is_over, killed.note) == (True, "enough")
            await soon(lambda: not any(map(is_alive, pids[killed])))
            assert all(map(is_alive, pids[left]))
            assert shells.living == [left]
        await soon(lambda: not any(map(is_alive, pids[left])))


async def test_who_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as ground, shells_in(ground) as shells:
        with pytest.raises(ToolRefused, match="none is running"):
            shells.find("sh1")
        running = await shells.start("cat", Freedom.OPEN, has_stdin=True)
        await running.write(b"hello\n")
        while running.window.take() != "hello\n":
            await running.wait(1.0)

        assert shells.find("sh1") is running
