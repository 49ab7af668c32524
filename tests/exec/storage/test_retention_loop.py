"""Output, exit and close are kept in one order, told after they are kept, and bounded."""

from __future__ import annotations

import errno
import os
import select
import sys
from pathlib import Path

import anyio
import pytest

from holdfast.exec.keeper.client_loop import TerminalSize
from holdfast.exec.model import AWAITS_READER, Closed, Exited, Output
from holdfast.exec.protocol import OutputStream
from holdfast.exec.storage import retention_loop
from holdfast.exec.storage import splice as source
from holdfast.exec.storage.retention_loop import Retention
from holdfast.exec.storage.splice import SpliceTarget
from holdfast.exec.storage.stream_file import EndRecord
from holdfast.world.failures import DiskFull
from tests.exec.planes import append, closed, ended, keeping_in, news, output, retained, said, shell
from tests.exec.server.talking import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here"),
]


async def test_one_sequence_holds_all_that_happened(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "echo out; sleep 0.1; echo err >&2; exit 3"))
        retention = await closed(retained(tmp_path, kept))

        events = [
            Output(1, OutputStream.STDOUT, b"out\n"),
            Output(2, OutputStream.STDERR, b"err\n"),
            Exited(3, 3),
            Closed(4),
        ]
        assert retention.events(0, None) == events
        assert retention.events(2, None) == events[2:]
        assert retention.events(0, 5) == events[:1]
        assert retention.events(0, None, count_max=1) == events[:1]
        assert (retention.exit_seq, retention.exit_status, retention.closed_seq) == (3, 3, 4)

        retention.close()
        again = Retention.open(tmp_path / "processes" / "k", None)
        assert again.events(0, None) == events
        assert (again.exit_seq, again.exit_status, again.closed_seq) == (3, 3, 4)
        again.remove()
        assert not (tmp_path / "processes" / "k").exists()


async def test_a_descendant_that_still_prints_delays_the_close_only(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("l", "{ sleep 0.3; echo late; } & exit 0"))
        retention = await closed(retained(tmp_path, kept))

        assert retention.events(0, None) == [
            Exited(1, 0),
            Output(2, OutputStream.STDOUT, b"late\n"),
            Closed(3),
        ]


@pytest.mark.parametrize("terminal", [None, TerminalSize()], ids=["pipes", "terminal"])
async def test_output_beyond_the_index_is_taken_up(
    tmp_path: Path, terminal: TerminalSize | None
) -> None:
    async with keeping_in(tmp_path) as keeper:
        script = "echo one; read word; echo two"
        kept = await keeper.start(shell("k", script, terminal=terminal, pipe_stdin=True))
        first = retained(tmp_path, kept)
        await said(first, b"one")
        before = first.events(0, None)
        first.close()
        # As if a server had died between moving this and writing its record, and one torn record.
        name = "pty" if terminal else "stdout"
        append(tmp_path / "processes" / "k" / name, b"moved\n")
        append(tmp_path / "processes" / "k" / "index", b"torn record")
        kept.release()
        await keeper.close()
        async with keeping_in(tmp_path) as again:
            (kept,) = await again.adopt()
            pipe = kept.copy("pipe_in")
            if pipe is not None:  # as if it had died between terminal and file
                os.write(pipe, b"between\n")
                os.close(pipe)
            second = retained(tmp_path, kept)

            expected = b"moved\n" + (b"between\n" if terminal else b"")
            assert second.events(0, None)[: len(before)] == before
            assert output(second, after=before[-1].seq) == expected


async def test_the_oldest_is_dropped_when_nobody_waits_for_it(tmp_path: Path) -> None:
    limit = 2**20
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "head -c 8000000 /dev/zero | tr '\\0' x"))
        retention = await closed(retained(tmp_path, kept, bytes_max=limit))

        kept_bytes = len(output(retention))
        assert limit * 0.8 <= kept_bytes <= limit * 1.2
        assert set(output(retention)) == set(b"x")
        assert retention.events(0, None)[0].seq == retention.first_retained > 1
        file = os.stat(tmp_path / "processes" / "k" / "stdout")
        assert file.st_size == 8_000_000
        assert file.st_blocks * 512 <= limit * 1.3

        retention.close()
        again = Retention.open(tmp_path / "processes" / "k", None, bytes_max=limit)
        assert again.first_retained == retention.first_retained
        assert len(output(again)) == kept_bytes
        again.close()


@pytest.mark.promise("X11")
async def test_a_process_waits_while_somebody_has_still_to_be_told(tmp_path: Path) -> None:
    limit = 2**20
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "head -c 8000000 /dev/zero"))
        retention = retained(tmp_path, kept, bytes_max=limit)
        retention.keep_from(1)
        told = size = 0
        while not retention.is_closed or told < retention.next_seq - 1:
            for event in retention.events(told, 2**18):
                assert event.seq == told + 1
                told = event.seq
                size += len(event.data) if isinstance(event, Output) else 0
            retention.keep_from(told + 1)
            assert retention.next_seq == told + 1 or len(output(retention)) < 3 * limit
            if not retention.is_closed and told == retention.next_seq - 1:
                await news(retention)
        assert size == 8_000_000

        kept = await keeper.start(shell("l", "head -c 8000000 /dev/zero"))
        retention = retained(tmp_path, kept, bytes_max=limit)
        retention.keep_from(1)
        await until(lambda: retention.waits_for == AWAITS_READER)
        with anyio.move_on_after(0.3):
            await closed(retention)
        assert not retention.is_closed
        assert (retention.first_retained, retention.waits_for) == (1, AWAITS_READER)
        retention.keep_from(None)
        assert (await closed(retention)).first_retained > 1
        assert retention.waits_for is None


@pytest.mark.promise("X11")
async def test_a_process_is_slowed_down_and_not_stopped_by_one_who_is_far_behind(
    tmp_path: Path,
) -> None:
    size, ahead, step, wait = 12 * 2**20, 2 * 2**20, 2**20, 0.05
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", f"head -c {size} /dev/zero; exit 3"))
        retention = retained(tmp_path, kept)
        retention.keep_from(1)
        begin = anyio.current_time()
        await closed(retention)

        # In the way there are the pipe, too, and what is drawn before and after the waiting.
        assert anyio.current_time() - begin >= ((size - ahead) // step - 3) * wait
        *pieces, exited, end = retention.events(0, None)
        assert sum(len(each.data) for each in pieces if isinstance(each, Output)) == size
        assert (exited, end) == (Exited(len(pieces) + 1, 3), Closed(len(pieces) + 2))


async def test_one_who_is_not_far_behind_slows_nobody_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_loop, "_AHEAD_WAIT", 3600.0)
    size = 24 * 2**20
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", f"head -c {size} /dev/zero"))
        retention = retained(tmp_path, kept)
        retention.keep_from(1)
        while not retention.is_closed:
            await news(retention)
            retention.keep_from(retention.next_seq)
        assert len(output(retention)) == size


async def test_who_has_come_near_is_told_at_once_of_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_loop, "_AHEAD_WAIT", 3600.0)
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", f"head -c {12 * 2**20} /dev/zero"))
        left = kept.copy("stdout")
        assert left is not None
        retention = retained(tmp_path, kept)
        retention.keep_from(1)
        await until(lambda: len(output(retention)) > 2 * 2**20 and is_readable(left))
        os.close(left)
        reached = retention.next_seq

        retention.keep_from(reached - 1)  # the event loop has no part in what follows

        assert retention.next_seq > reached


def is_readable(pipe: int) -> bool:
    look = select.poll()
    look.register(pipe, select.POLLIN)
    return bool(look.poll(0))


async def test_one_who_is_gone_slows_nobody_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_loop, "_AHEAD_WAIT", 3600.0)
    size = 24 * 2**20
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", f"head -c {size} /dev/zero"))
        retention = retained(tmp_path, kept)
        retention.keep_from(1, is_followed=False)
        assert len(output(await closed(retention))) == size


async def test_the_end_of_one_that_said_nothing_is_noted_once(tmp_path: Path) -> None:
    noted: list[tuple[int, bool]] = []
    end = EndRecord(lambda *how: noted.append(how))
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "exit 3"))
        retention = await closed(Retention.open(tmp_path / "k", kept, end=end))

        assert retention.events(0, None) == [Exited(1, 3), Closed(2)]
        assert (noted, (tmp_path / "k").exists()) == ([(3, True)], False)


async def test_a_stream_that_says_nothing_gets_no_file(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        for key, script in (("none", "exit 3"), ("some", "echo word >&2")):
            retention = await closed(retained(tmp_path, await keeper.start(shell(key, script))))
            retention.close()

        files = {path.name for path in (tmp_path / "processes").glob("*/std*")}
        found = Retention.open(tmp_path / "processes" / "some", None)
        assert files == {"stderr"}
        assert found.events(0, None)[0] == Output(1, OutputStream.STDERR, b"word\n")
        found.close()


async def test_a_full_disk_makes_the_process_wait_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [OSError(errno.ENOSPC, "full")] * 2

    def full(pipe: int, place: SpliceTarget) -> int | None:
        if refusals:
            raise refusals.pop()
        return working(pipe, place)

    working = source.move
    monkeypatch.setattr(source, "move", full)
    monkeypatch.setattr(retention_loop, "_TRY_AGAIN", 0.05)
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("k", "echo word; exit 1"))
        await ended(kept)
        retention = retained(tmp_path, kept)

        assert retention.stalled == DiskFull(path=str(tmp_path / "processes" / "k"))
        assert retention.waits_for == DiskFull.code
        assert output(await closed(retention)) == b"word\n"
        assert (retention.stalled, retention.waits_for) == (None, None)


async def test_what_a_lost_keeper_held_is_closed(tmp_path: Path) -> None:
    directory = tmp_path / "k"
    directory.mkdir()
    (directory / "stdout").write_bytes(b"left")
    retention = Retention.open(directory, None)
    retention.mark_lost(137)

    assert retention.events(0, None) == [
        Output(1, OutputStream.STDOUT, b"left"),
        Exited(2, 137),
        Closed(3),
    ]
    retention.close()
