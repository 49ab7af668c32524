"""Ending a process, a session or a server ends all that was started there, also after setsid."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from holdfast.exec import Client, operating
from holdfast.exec.model import Command
from holdfast.exec.server.ownership import SessionPolicy
from holdfast.failures import Failure
from tests.exec.server.housing import Housed, housed
from tests.exec.server.talking import PATH, until
from tests.journeys.stage import linux_only
from tests.world.test_processes_process_marks import ESCAPES, is_alive

pytestmark = [pytest.mark.anyio, linux_only, pytest.mark.promise("X14")]

STAYS, ENDS = "sleep 300", "exit 0"
LINES = {
    **ESCAPES,
    "all at once": "(env -i setsid sh -c 'echo $$ > {}; exec sleep 300' &) &",
}
TTL = 0.3


def shell(line: str, file: Path, then: str) -> Command:
    """A command that starts something in the background, which gives nobody its output."""
    script = f"{line.replace('{}', str(file))}\n{then}"
    return Command(("sh", "-c", f"exec >/dev/null 2>&1; {script}"), cwd="/", env=PATH)


async def pid_in(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text().endswith("\n"), within=60)
    return int(file.read_text())  # noqa: ASYNC240  # a few bytes


async def gone(pid: int) -> None:
    await until(lambda: not is_alive(pid), within=60)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("then", [STAYS, ENDS], ids=["it runs", "it has ended"])
async def test_terminate_ends_what_was_started(line: str, then: str, tmp_path: Path) -> None:
    async with housed(tmp_path / "state") as server, Client(server.dial) as client:
        process = await client.start(shell(line, tmp_path / "pid", then))
        pid = await pid_in(tmp_path / "pid")
        if then == ENDS:
            await process.wait()
            assert is_alive(pid)  # a process that ends by itself may leave something behind
        assert await process.terminate() is (then == STAYS)
        assert not is_alive(pid)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_the_end_of_a_session_ends_what_was_started(line: str, tmp_path: Path) -> None:
    async with housed(tmp_path / "state", SessionPolicy(detached_ttl=TTL)) as server:
        async with Client(server.dial) as client:
            process = await client.start(shell(line, tmp_path / "pid", ENDS))
            pid = await pid_in(tmp_path / "pid")
            await process.wait()
            await process.forget()
            assert is_alive(pid)
        await gone(pid)


@pytest.mark.parametrize("then", [STAYS, ENDS], ids=["it runs", "it has ended"])
async def test_the_end_of_a_server_ends_what_was_started(then: str, tmp_path: Path) -> None:
    async with housed(tmp_path / "state") as server, Client(server.dial) as client:
        process = await client.start(shell(LINES["all at once"], tmp_path / "pid", then))
        pid = await pid_in(tmp_path / "pid")
        if then == ENDS:
            await process.wait()
    await gone(pid)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_the_end_of_a_keeper_ends_what_was_started(line: str, tmp_path: Path) -> None:
    """Also what a process left that is finished, and known to the keeper no more."""
    state = tmp_path / "state"
    async with housed(state) as server, Client(server.dial) as client:
        process = await client.start(shell(line, tmp_path / "pid", ENDS))
        pid = await pid_in(tmp_path / "pid")
        await process.wait()
        keeper = int((state / "keeper.lock").read_text().split(".")[0])
        await until(lambda: not Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split())
        os.kill(keeper, signal.SIGKILL)
        await gone(pid)


async def test_another_process_of_the_same_server_is_left_alone(tmp_path: Path) -> None:
    async with housed(tmp_path / "state") as server, Client(server.dial) as client:
        one = await client.start(shell(LINES["all at once"], tmp_path / "one", STAYS))
        await client.start(shell(LINES["all at once"], tmp_path / "two", STAYS))
        pids = await pid_in(tmp_path / "one"), await pid_in(tmp_path / "two")
        await one.terminate()
        assert [is_alive(pid) for pid in pids] == [False, True]


@pytest.mark.parametrize("line", [LINES["setsid"], LINES["all at once"]])
async def test_what_was_left_running_is_listed(line: str, tmp_path: Path) -> None:
    async with housed(tmp_path / "state") as server, Client(server.dial) as client:
        foreground = "env -i sh -c 'echo $$ > {}; sleep 300; true'"  # part of what runs
        await client.start(shell(foreground, tmp_path / "one", STAYS), process_id="stays")
        ends = await client.start(shell(line, tmp_path / "two", ENDS), process_id="e")
        await pid_in(tmp_path / "one")
        pid = await pid_in(tmp_path / "two")
        await ends.wait()
        async with operating(server.dial) as operator:
            _, (found,) = await operator.listing()
            assert (found.pid, found.command) == (pid, "sleep 300")
            assert (found.session, found.process) == (client.session_id, "e")
            await ends.terminate()
            assert (await operator.listing())[1] == ()


@pytest.mark.promise("X9")
async def test_a_process_to_keep_outlives_the_time_of_its_session(tmp_path: Path) -> None:
    async with housed(tmp_path / "state", SessionPolicy(detached_ttl=TTL)) as server:
        kept, other = tmp_path / "kept", tmp_path / "other"
        async with Client(server.dial) as client:
            line = "sh -c 'echo $$ > {}; sleep 2' & wait"
            command = shell(line, kept, "exit 7")
            process = await client.start(command_kept(command))
            session, pid = client.session_id, await pid_in(kept)
        async with Client(server.dial) as second:
            await second.start(shell("sh -c 'echo $$ > {}; sleep 300' & wait", other, ENDS))
            without = await pid_in(other)
        await gone(without)
        assert is_alive(pid)
        assert session is not None
        async with Client(server.dial).resume(session) as again:
            (listed,) = await again.processes()
            assert listed.process_id == process.id
            assert await (await again.follow(listed)).wait() == 7
        await until(lambda: not server.shared.sessions.has_sessions, within=60)


def command_kept(command: Command) -> Command:
    return Command(command.argv, command.cwd, command.env, keep=True)


@pytest.mark.promise("A12")
async def test_a_label_ends_its_sessions_and_the_starts_on_their_way(tmp_path: Path) -> None:
    async with housed(tmp_path / "state") as server, operating(server.dial) as operator:
        async with Client(server.dial, label="ours") as ours, Client(server.dial) as other:
            await ours.start(shell(LINES["setsid"], tmp_path / "one", STAYS))
            await other.start(shell(LINES["setsid"], tmp_path / "two", STAYS))
            pids = await pid_in(tmp_path / "one"), await pid_in(tmp_path / "two")
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(started, ours, tmp_path / f"late-{number}")
                await anyio.lowlevel.checkpoint()
                assert await operator.end("ours") == 1
                found = marked_with(server, str(tmp_path))
                assert [is_alive(pid) for pid in pids] == [False, True]
                assert found == []
                tasks.cancel_scope.cancel()
            assert await operator.end("ours") == 0
            assert await operator.end("") == 0


async def started(client: Client, file: Path) -> None:
    with suppress(Failure):  # its session ends meanwhile
        await client.start(shell("sh -c 'echo $$ > {}; sleep 300' &", file, STAYS))


def marked_with(server: Housed, word: str) -> list[str]:
    """What the keeper holds that was started late."""
    keeper = int((server.state / "keeper.lock").read_text().split(".")[0])
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children]
    return [line.decode() for line in lines if os.fsencode(f"{word}/late") in line]
