"""Finished processes cost their record and nothing else, however many there are."""

from __future__ import annotations

import os
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.exec import Client, Process
from holdfast.exec.model import Closed, Command, Exited, Output
from tests.exec.server.talking import Served, introduced, served, until
from tests.faults.test_exec_chaos import client_of
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only, pytest.mark.promise("X14")]

NOFILE = 160  # hard: neither keeper nor server can raise it
AT_ONCE = 8
DESCRIPTORS_MAX = 120  # those of what runs, of connections and of the program itself
# What becomes the server has fewer descriptors, and so has its keeper.
LIMITED = ("sh", "-c", f'ulimit -n {NOFILE} && exec "$@"', "-")
KEPT = ("--detached-ttl", "86400")


def command(number: int) -> Command:
    """Every third says nothing, every third has a terminal, every other one an input."""
    script = ("exit 3", "echo out; echo err >&2; exit 3", "echo on a terminal; exit 3")[number % 3]
    env = {"PATH": os.environ["PATH"]}
    is_tty, has_stdin = number % 3 == 2, number % 2 == 0
    return Command(("sh", "-c", script), cwd="/", env=env, tty=is_tty, has_stdin=has_stdin)


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def keeper_of(state: Path) -> int:
    return int((state / "keeper.lock").read_text().split(".")[0])


@asynccontextmanager
async def small(state: Path, *, listen: str = "ws://127.0.0.1:0") -> AsyncIterator[Served]:
    async with served(state, *KEPT, listen=listen, through=LIMITED) as server:
        limits = resource.prlimit(keeper_of(state), resource.RLIMIT_NOFILE)
        assert limits == (NOFILE, NOFILE)
        yield server


async def ran(client: Client, name: str, number: int) -> Process:
    process = await client.start(command(number), process_id=name)
    async for _ in process.events():
        pass
    assert process.status == 3
    return process


async def run_many(client: Client, count: int, prefix: str = "p") -> None:
    left = iter(range(count))

    async def work() -> None:
        for number in left:
            await ran(client, f"{prefix}{number}", number)

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(work)


@pytest.mark.parametrize(
    "count", [400, pytest.param(2000, marks=pytest.mark.long)], ids=["400", "2000"]
)
async def test_many_short_commands_leave_neither_zombies_nor_descriptors(
    tmp_path: Path, count: int
) -> None:
    state = tmp_path / "state"
    async with small(state) as server, client_of(server.url) as client:
        await run_many(client, count)
        keeper = keeper_of(state)
        await until(lambda: not children(keeper))

        assert len(await client.processes()) == count
        assert descriptors(keeper) < 20
        assert descriptors(server.process.pid) < DESCRIPTORS_MAX // 2
        # What they said is still there, of the first as of the last.
        listed = {each.process_id: each for each in await client.processes()}
        for name in ("p1", f"p{count - 1 - (count - 2) % 3}"):
            process = await client.follow(listed[name])
            said = {each.data async for each in process.events() if isinstance(each, Output)}
            assert said == {b"out\n", b"err\n"}


async def test_a_new_server_keeps_records_of_the_finished_and_no_descriptors(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    async with small(state) as first:
        async with client_of(first.url) as client:
            await run_many(client, 150)
            await first.kill()
            async with small(state, listen=first.url) as second:
                keeper = keeper_of(state)
                await run_many(client, 60, prefix="q")
                await until(lambda: not children(keeper))
                listed = await client.processes()

                assert [each.exit_code for each in listed] == [3] * 210
                assert [each.pid for each in listed] == [0] * 210
                assert descriptors(keeper) < 20
                assert descriptors(second.process.pid) < DESCRIPTORS_MAX // 2


@pytest.mark.promise("X13")
async def test_ends_that_no_server_saw_are_recorded_by_the_next_and_then_reaped(
    tmp_path: Path,
) -> None:
    """The keeper holds status and output until a server has both in its files."""
    state, go = tmp_path / "state", tmp_path / "go"
    script = f"echo ready; until [ -e {go} ]; do sleep 0.01; done; echo bye; exit 5"
    waits = Command(("sh", "-c", script), cwd="/", env={"PATH": os.environ["PATH"]})
    async with served(state, *KEPT, leave=True) as first:
        async with client_of(first.url) as client:
            processes = [await client.start(waits, process_id=f"w{each}") for each in range(20)]
            for process in processes:
                assert await process.receive() == [Output(1, "stdout", b"ready\n")]
            keeper = keeper_of(state)
            await first.kill()
            go.touch()
            # All are zombies now: with no server there, nothing may be let go of.
            await until(lambda: states(keeper) == ["Z"] * 20)
            async with served(state, *KEPT, listen=first.url) as second:
                for process in processes:
                    events = [each async for each in process.events()]
                    assert events == [Output(2, "stdout", b"bye\n"), Exited(3, 5), Closed(4)]
                await until(lambda: not children(keeper))
                await second.kill()
                async with served(state, *KEPT, listen=first.url):
                    listed = await client.processes()
                    assert [(each.exit_code, each.closed) for each in listed] == [(5, True)] * 20


def states(keeper: int) -> list[str]:
    return [
        Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] for pid in children(keeper)
    ]


async def test_a_write_that_was_done_is_known_to_be_after_the_process_was_reaped(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    again = {"processId": "cat", "writeId": "w1", "chunk": "aGkK"}
    async with served(state, *KEPT, leave=True) as first:
        async with introduced(first.url) as talk:
            await talk.start("cat", "head", "-n", "1", pipeStdin=True)
            assert await talk.call("process/write", **again) == {"status": "accepted"}
            await talk.closed("cat")
            await until(lambda: not children(keeper_of(state)))
            session = talk.session
            assert await talk.call("process/write", **again) == {"status": "accepted"}
        await first.kill()
        async with served(state, *KEPT, listen=first.url) as second:
            async with introduced(second.url, session) as talk:
                assert await talk.call("process/write", **again) == {"status": "accepted"}
                later = {**again, "writeId": "w2"}
                assert await talk.call("process/write", **later) == {"status": "stdinClosed"}
