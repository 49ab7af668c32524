"""Processes are started, signalled, adopted and forgotten through their keeper."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from holdfast.exec.failures import KeeperLost, KeeperUnavailable, StartFailed, StateTaken
from holdfast.exec.keeper import client_loop as keeping_loop
from holdfast.exec.keeper.client_loop import KeeperClient, KeeperNotAsked, ProcessSpec, TerminalSize
from holdfast.exec.output_index import LOST_STATUS
from holdfast.failures import TooManyOpenFiles
from holdfast.world import system_process
from tests.exec.planes import (
    PATH,
    closed,
    ended,
    keeping_in,
    no_more_open_files,
    output,
    retained,
    said,
    shell,
    status_of,
    until,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no keeper here"),
]


def lives(pid: int) -> bool:
    process = system_process(pid)
    return process is not None and not process.is_dead


async def gone(pid: int) -> None:
    await until(lambda: not lives(pid))


async def test_a_directory_has_one_server(tmp_path: Path) -> None:
    async with keeping_in(tmp_path):
        with pytest.raises(StateTaken):
            await KeeperClient.open(tmp_path)


async def test_everyone_else_goes_on_while_a_keeper_is_slow_to_answer(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as first:
        await first.start(shell("k", "exec sleep 60"))
        await first.close()
        os.kill(first.pid, signal.SIGSTOP)

        async def wake() -> None:
            await anyio.sleep(0.1)
            os.kill(first.pid, signal.SIGCONT)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wake)  # which could not be, if the loop waited for the keeper
            async with keeping_in(tmp_path) as second:
                assert (second.pid, second.was_there) == (first.pid, True)


@pytest.mark.promise("X13")
@pytest.mark.parametrize("terminal", [None, TerminalSize()], ids=["pipes", "terminal"])
async def test_the_next_server_adopts_what_runs_and_what_has_ended(
    tmp_path: Path, terminal: TerminalSize | None
) -> None:
    async with keeping_in(tmp_path) as first:
        script = "echo before; read word; echo after $word; exit 5"
        runs = await first.start(shell("runs", script, terminal=terminal, pipe_stdin=True))
        over = await first.start(shell("over", "echo short; exit 6", terminal=terminal))
        await ended(over)
        runs.release()
        over.release()
        await first.close()
        async with keeping_in(tmp_path) as second:
            adopted = {kept.key: kept for kept in await second.adopt()}
            runs, over = adopted["runs"], adopted["over"]
            stdin = runs.copy("pty") if terminal else runs.copy("stdin")
            assert stdin is not None
            os.write(stdin, b"word\n")
            os.close(stdin)

            assert (second.pid, second.was_there) == (first.pid, True)
            assert over.exit_status == 6
            assert b"short" in output(await closed(retained(tmp_path, over)))
            said_by_it = output(await closed(retained(tmp_path, runs))).split()
            assert said_by_it[:1] + said_by_it[-2:] == [b"before", b"after", b"word"]
            assert runs.exit_status == 5


async def test_a_signal_reaches_the_group_or_the_one(tmp_path: Path) -> None:
    loop = "while :; do sleep 0.02; done"
    inner = f"trap 'echo inner' USR1; echo up; {loop}"
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", f'trap : USR1; sh -c "{inner}" & {loop}'))
        retention = retained(tmp_path, kept)
        await said(retention, b"up")
        assert await kept.signal(signal.SIGUSR1)
        await said(retention, b"inner")

        assert await kept.signal(signal.SIGKILL, group=False)
        assert await ended(kept) == 137
        assert not retention.is_closed  # the other still has the pipes open
        assert await kept.signal(signal.SIGKILL)
        await closed(retention)
        assert [await kept.signal(signal.SIGKILL, group=False), retention.exit_status] == [
            False,
            137,
        ]


async def test_input_ends_when_it_is_closed(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "cat; echo end", pipe_stdin=True))
        stdin = kept.take("stdin")
        assert stdin is not None
        os.write(stdin, b"text\n")
        os.close(stdin)
        await kept.close_stdin()

        assert output(await closed(retained(tmp_path, kept))) == b"text\nend\n"


async def test_what_is_forgotten_is_killed_and_its_key_is_free(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "exec sleep 60"))
        await kept.forget()
        await gone(kept.pid)

        assert await keeper.adopt() == []
        assert await ended(await keeper.start(shell("k", "exit 2"))) == 2


async def test_a_start_that_nobody_waits_for_is_undone(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keeper.start, shell("k", "exec sleep 60"))
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        # Answers come in the order of the questions: with the next, the start has its own.
        for kept in await keeper.adopt():
            kept.release()
            await gone(kept.pid)
        assert await keeper.adopt() == []


@pytest.mark.promise("X13")
async def test_when_the_keeper_dies_its_processes_end_and_everyone_is_told(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        script = "(setsid sleep 60 & echo $!; wait) & echo $$; wait"
        kept = await keeper.start(shell("k", f"trap '' HUP TERM; {script}"))
        retention = retained(tmp_path, kept)
        await until(lambda: len(output(retention).split()) == 2)
        pids = output(retention).split()
        os.kill(keeper.pid, signal.SIGKILL)

        assert await keeper.wait_lost() == KeeperLost(reason="it ended or was killed")
        for pid in pids:
            await gone(int(pid))
        assert (await closed(retention)).exit_status == LOST_STATUS
        with pytest.raises(KeeperNotAsked):
            await keeper.start(shell("next", "exit"))
        with pytest.raises(KeeperLost):
            await keeper.ask({"ask": "hello"})


async def test_a_start_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with keeping_in(tmp_path) as keeper:
        os.kill(keeper.pid, signal.SIGSTOP)
        monkeypatch.setattr(keeping_loop, "_ANSWER_LONGEST", 0.1)
        with pytest.raises(KeeperUnavailable, match="does not answer"):
            await keeper.start(shell("k", "exec sleep 60"))
        monkeypatch.undo()
        os.kill(keeper.pid, signal.SIGCONT)

        assert (await keeper.start(shell("next", "exec sleep 60"))).key == "next"
        assert [kept.key for kept in await keeper.adopt()] == ["next"]


@pytest.mark.promise("X13")
@pytest.mark.parametrize(
    ("free", "variable"),
    [(0, "x" * 100_000), (0, ""), (1, ""), (2, "")],
    ids=["long", "none", "one", "two"],
)
async def test_who_has_too_many_open_files_starts_nothing_and_loses_nothing(
    tmp_path: Path, free: int, variable: str
) -> None:
    async with keeping_in(tmp_path) as keeper:
        runs = await keeper.start(shell("runs", "exec sleep 60"))
        order = shell("more", "exec sleep 60", pipe_stdin=True, env={"PATH": PATH, "V": variable})
        with no_more_open_files(free=free), pytest.raises(StartFailed, match="too many open"):
            await keeper.start(order)

        assert [kept.key for kept in await keeper.adopt()] == ["runs"]
        assert (await keeper.start(order)).exit_status is None
        assert await runs.signal(signal.SIGCONT)


@pytest.mark.promise("X13")
async def test_what_cannot_be_handed_over_for_too_many_open_files_is_not_asked(
    tmp_path: Path,
) -> None:
    async with keeping_in(tmp_path) as keeper:
        runs = await keeper.start(shell("runs", "exec sleep 60"))
        with no_more_open_files(), pytest.raises(OSError, match="Too many open files"):
            await keeper.ask({"ask": "hold", "key": "runs", "name": "file"}, (0,))

        assert await runs.signal(signal.SIGCONT)


@pytest.mark.promise("X13")
async def test_what_cannot_be_adopted_for_too_many_open_files_goes_on(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        await keeper.start(shell("runs", "exec sleep 60"))
        with no_more_open_files(free=1), pytest.raises(TooManyOpenFiles):
            await keeper.adopt()

        (runs,) = await keeper.adopt()
        assert (runs.key, runs.exit_status) == ("runs", None)


async def test_the_end_of_a_keeper_is_told_even_if_nobody_can_look_for_what_it_held(
    tmp_path: Path,
) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "exec sleep 60"))
        with no_more_open_files():
            os.kill(keeper.pid, signal.SIGKILL)
            await keeper.wait_lost()
            assert await ended(kept) == LOST_STATUS
    async with keeping_in(tmp_path) as following:
        assert [each.process.pid for each in following.orphans] == [kept.pid]


async def test_five_hundred_run_at_once(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        async with anyio.create_task_group() as tasks:
            for number in range(500):
                order = ProcessSpec(
                    key=f"k{number}", argv=("sleep", "60"), cwd="/", env={"PATH": PATH}
                )
                tasks.start_soon(keeper.start, order)
        await keeper.close()
        async with keeping_in(tmp_path) as again:
            adopted = await again.adopt()
            resident = int(status_of(again.pid)["VmRSS"].split()[0])

            assert len({kept.pid for kept in adopted if lives(kept.pid)}) == 500
            assert resident < 20_000


async def test_an_order_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        words = ("x" * 100_000,) * 10
        order = ProcessSpec(key="k", argv=("sh", "-c", "echo $#", "sh", *words), cwd="/", env={})
        kept = await keeper.start(order)
        assert output(await closed(retained(tmp_path, kept))) == b"10\n"

        with pytest.raises(StartFailed, match="too long"):
            await keeper.start(ProcessSpec(key="l", argv=("true", "x" * 2**18), cwd="/", env={}))
