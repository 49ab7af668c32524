"""Input is written in order and once, whoever dies in between."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from holdfast.exec.failures import InputFull, OutcomeUnknown
from holdfast.exec.keeper import stdin_loop as keeping_input_loop
from holdfast.exec.keeper.client_loop import KeptProcess, TerminalSize
from holdfast.exec.keeper.stdin_loop import StdinWriter, WriteOutcome
from holdfast.exec.keeper.write_ids import WriteLog
from tests.exec.planes import append, closed, keeping_in, output, retained, said, shell

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no keeper here"),
]


def opened(directory: Path, kept: KeptProcess) -> StdinWriter:
    stdin = StdinWriter.open(directory, kept)
    assert stdin is not None
    return stdin


async def test_a_process_without_input_needs_no_notes_of_it(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "exit"))

        assert StdinWriter.open(tmp_path, kept) is None
        assert not (tmp_path / "writes").exists()


@pytest.mark.promise("X7")
async def test_what_was_written_is_known_when_nothing_can_be_any_more(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "cat >/dev/null; exec sleep 60", pipe_stdin=True))
        stdin = opened(tmp_path, kept)
        assert await stdin.write("w", b"x") is WriteOutcome.ACCEPTED
        await stdin.close()
        stdin.release()
        (again,) = await keeper.adopt()
        assert not again.takes_input
        stdin = opened(tmp_path, again)

        assert await stdin.write("w", b"x") is WriteOutcome.ACCEPTED
        assert await stdin.write("v", b"x") is WriteOutcome.STDIN_CLOSED
        stdin.release()


async def test_writes_keep_their_order_and_each_happens_once(tmp_path: Path) -> None:
    pieces = [bytes([97 + number]) * 50_000 for number in range(20)]
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "sleep 0.1; cat", pipe_stdin=True))
        retention = retained(tmp_path, kept)
        stdin = opened(tmp_path, kept)
        outcomes: list[WriteOutcome] = []

        async def write(number: int) -> None:
            outcomes.append(await stdin.write(f"w{number}", pieces[number]))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(write, number)
                tasks.start_soon(write, number)  # and again, while it is under way
        assert await stdin.write("w3", pieces[3]) is WriteOutcome.ACCEPTED
        await stdin.close()

        assert outcomes == [WriteOutcome.ACCEPTED] * 40
        assert output(await closed(retention)) == b"".join(pieces)
        assert await stdin.write("late", b"x") is WriteOutcome.STDIN_CLOSED
        stdin.release()


@pytest.mark.promise("X7")
async def test_the_next_server_knows_what_was_written(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as first:
        kept = await first.start(shell("k", "cat", pipe_stdin=True))
        stdin = opened(tmp_path, kept)
        assert await stdin.write("done", b"once\n") is WriteOutcome.ACCEPTED
        stdin.release()
        begun = WriteLog((tmp_path / "writes").read_bytes()).begin("begun")
        append(tmp_path / "writes", begun.pack())
        await first.close()
        async with keeping_in(tmp_path) as second:
            (kept,) = await second.adopt()
            stdin = opened(tmp_path, kept)
            retention = retained(tmp_path, kept)

            assert await stdin.write("done", b"once\n") is WriteOutcome.ACCEPTED
            with pytest.raises(OutcomeUnknown):
                await stdin.write("begun", b"perhaps\n")
            assert await stdin.write("new", b"new\n") is WriteOutcome.ACCEPTED
            await stdin.close()
            assert output(await closed(retention)) == b"once\nnew\n"
            stdin.release()


async def test_a_terminal_is_typed_at_and_told_the_end(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(
            shell("k", "stty -echo; echo up; cat; echo end", terminal=TerminalSize())
        )
        retention = retained(tmp_path, kept)
        stdin = opened(tmp_path, kept)
        await said(retention, b"up")
        await stdin.write("w", b"typed\n")
        await said(retention, b"typed")
        await stdin.close()

        assert output(await closed(retention)) == b"up\r\ntyped\r\nend\r\n"
        stdin.release()


async def test_a_process_that_reads_no_more_closes_its_input(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "exec <&-; echo shut; sleep 60", pipe_stdin=True))
        stdin = opened(tmp_path, kept)
        await said(retained(tmp_path, kept), b"shut")

        assert await stdin.write("w", b"x") is WriteOutcome.STDIN_CLOSED
        stdin.release()


async def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping_input_loop, "PENDING_MAX", 2)
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "exec sleep 60", pipe_stdin=True))
        stdin = opened(tmp_path, kept)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stdin.write, "fills the pipe", bytes(100_000))
            tasks.start_soon(stdin.write, "waits", b"x")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(InputFull):
                await stdin.write("too much", b"x")
            stdin.release()
