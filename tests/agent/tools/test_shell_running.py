"""A process is followed to its end, which comes in time, and takes all that it started with it."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from holdfast.agent.failures import ToolRefused
from holdfast.agent.sandbox import SandboxLevel
from holdfast.agent.text import receipt
from holdfast.agent.tools.shell import RunningCommand, open_shell_commands
from tests.agent.grounds import ground_in, soon
from tests.journeys.stage import linux_only
from tests.world.test_processes_process_marks import is_alive

pytestmark = [pytest.mark.anyio, linux_only]


def _lines(count: int) -> str:
    return "".join(f"{number:090d}\n" for number in range(1, count + 1))


async def over(running: RunningCommand) -> RunningCommand:
    with anyio.fail_after(60):
        while not running.is_over:
            await running.wait(1.0)
    return running


async def numbers(running: RunningCommand) -> list[int]:
    """The two numbers that it says first."""
    said = ""
    while said.count("\n") < 2:
        await running.wait(1.0)
        said += running.window.take()
    return [int(word) for word in said.split()]


async def test_what_it_says_is_heard_and_can_be_heard_again(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox, open_shell_commands(sandbox) as shells:
        line = "seq 1 60000; echo end >&2; exit 3"
        running = await over(await shells.start(line, SandboxLevel.OPEN, has_stdin=False))

        said = running.window.take()
        again = await running.recall(10_000)
        last = await running.recall(running.total - 8)
        none = await running.recall(running.total)

    whole = "".join(f"{number}\n" for number in range(1, 60_001)) + "end\n"
    assert (running.status, running.total) == (3, len(whole))
    assert said.startswith("1\n2\n") and said.endswith("\n60000\nend\n")
    assert again.startswith(whole[10_000:29_000])
    assert receipt("call", again) == again
    assert last == whole[-8:]
    assert none == f"(nothing is kept any more from offset {len(whole)} of {len(whole)})"


@pytest.mark.promise("A1")
@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("seq 1 20000", "".join(f"{number}\n" for number in range(1, 20_001))),
        ("yes | head -n 30000", "y\n" * 30_000),
        ("printf '%0200000d' 0", "0" * 200_000),
        ("printf 'a'; printf 'ü%.0s' $(seq 1 30000)", "a" + "ü" * 30_000),
        ("for n in $(seq 1 700); do printf '%090d\\n' $n; done", _lines(700)),
    ],
    ids=["numbers", "short lines", "one line", "two bytes each", "lines of 90"],
)
async def test_pages_of_output_hold_everything_and_are_shown_whole(
    tmp_path: Path, line: str, whole: str
) -> None:
    """A receipt that cut a page would leave a hole that the model is not told to read."""
    seen, offset = "", 0
    async with ground_in(tmp_path) as sandbox, open_shell_commands(sandbox) as shells:
        running = await over(await shells.start(line, SandboxLevel.OPEN, has_stdin=False))
        said = running.window.take()
        while offset < running.total:
            page = await running.recall(offset)
            assert receipt("call", page) == page
            found = re.search(r"\n… \(go on from offset (\d+) of \d+\)$", page)
            seen += page[: found.start()] if found else page
            offset = int(found[1]) if found else running.total

    assert seen == whole
    assert receipt("call", said) == said
    assert len(said) > 9_000


@pytest.mark.promise("A11")
async def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox, open_shell_commands(sandbox) as shells:
        line = "sleep 300 & echo $!; setsid sleep 300 >/dev/null 2>&1 & echo $!"
        running = await over(await shells.start(line, SandboxLevel.OPEN, has_stdin=False))
        pids = [int(word) for word in running.window.take().split()]

        assert len(pids) == 2
        await soon(lambda: not any(map(is_alive, pids)))


@pytest.mark.promise("A11")
async def test_nothing_is_left_of_those_that_are_killed_or_left_behind(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox:
        async with open_shell_commands(sandbox) as shells:
            line = "echo $$; setsid sleep 300 & echo $!; wait"
            left = await shells.start(line, SandboxLevel.OPEN, has_stdin=False)
            killed = await shells.start(line, SandboxLevel.OPEN, has_stdin=False)
            pids = {each: await numbers(each) for each in (left, killed)}
            await killed.end("enough")

            assert (killed.is_over, killed.note) == (True, "enough")
            await soon(lambda: not any(map(is_alive, pids[killed])))
            assert all(map(is_alive, pids[left]))
            assert shells.living == [left]
        await soon(lambda: not any(map(is_alive, pids[left])))


async def test_who_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox, open_shell_commands(sandbox) as shells:
        with pytest.raises(ToolRefused, match="none is running"):
            shells.find("sh1")
        running = await shells.start("cat", SandboxLevel.OPEN, has_stdin=True)
        await running.write(b"hello\n")
        while running.window.take() != "hello\n":
            await running.wait(1.0)

        assert shells.find("sh1") is running
