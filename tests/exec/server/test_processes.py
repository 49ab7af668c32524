"""What keeps a process waiting is told to whoever looks, and to the log."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import anyio
import pytest

from holdfast.exec.storage import retention_loop
from holdfast.exec.storage import splice as source
from holdfast.exec.storage.splice import SpliceTarget
from holdfast.telemetry import Telemetry
from holdfast.telemetry.testing import MemorySink
from holdfast.world import SystemClock
from tests.exec.planes import no_more_open_files
from tests.exec.server.housing import housed
from tests.exec.server.talking import Refused, until

pytestmark = pytest.mark.anyio
if sys.platform != "linux":
    pytest.skip("the keeper needs splice", allow_module_level=True)


async def test_a_full_disk_is_told_and_so_is_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = anyio.Event()

    def move(pipe: int, place: SpliceTarget) -> int | None:
        if not room.is_set():
            raise OSError(errno.ENOSPC, "full")
        return working(pipe, place)

    working = source.move
    monkeypatch.setattr(source, "move", move)
    monkeypatch.setattr(retention_loop, "_TRY_AGAIN", 0.05)
    sink = MemorySink()
    async with housed(tmp_path) as server, server.talk() as talk:
        server.services.telemetry = Telemetry([sink], clock=SystemClock())
        await talk.start("p", "sh", "-c", "echo word; exec sleep 60")
        await until(lambda: len(sink.records) == 1)
        (stalled,) = (await talk.call("process/list"))["processes"]
        room.set()
        await talk.until(lambda: talk.output("p") == b"word\n")
        (going,) = (await talk.call("process/list"))["processes"]
        await until(lambda: len(sink.records) == 2)

    assert (stalled["stalled"], stalled["exited"], going["stalled"]) == ("DISK_FULL", False, None)
    assert [record.name for record in sink.records] == ["failure", "note"]
    assert "There is no space left" in sink.written()


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_start_that_has_no_room_for_descriptors_keeps_none(
    tmp_path: Path, tty: bool
) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.run("first", "true")
        before = os.listdir("/proc/self/fd")
        refused = 0
        for free in range(20):
            with no_more_open_files(free=free):
                try:
                    await talk.start("p", "sleep", "60", pipeStdin=True, tty=tty)
                    break
                except Refused:
                    refused += 1
            assert sorted(os.listdir("/proc/self/fd")) == sorted(before)

        listed = (await talk.call("process/list"))["processes"]
        assert refused >= 4
        assert [each["processId"] for each in listed if not each["exited"]] == ["p"]


async def test_what_a_sandbox_leaves_behind_is_reported_and_ends_nobody(tmp_path: Path) -> None:
    def refuse() -> None:
        raise OSError(errno.EBUSY, "busy")

    sink = MemorySink()
    async with housed(tmp_path) as server, server.talk() as talk:
        server.services.telemetry = Telemetry([sink], clock=SystemClock())
        await talk.start("p", "sh", "-c", "read x", pipeStdin=True)
        (session,) = server.shared.sessions
        session.processes.get("p").undo = refuse
        await talk.call("process/closeStdin", processId="p")
        await until(lambda: bool(sink.records))

        assert await talk.run("next", "true") == (0, b"")
    assert [record.name for record in sink.records] == ["failure"]
