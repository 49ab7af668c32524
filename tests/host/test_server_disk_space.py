"""A full disk is said, whoever it is that finds no room on it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from holdfast.host.protocol import JournalTrouble
from holdfast.host.server import has_disk_space, watch_disk_space
from tests.faults.host_disk import disk_at
from tests.faults.mounts import missing_for_mounts
from tests.host.staging import hosted

pytestmark = pytest.mark.anyio

MISSING = missing_for_mounts()


@pytest.mark.promise("A11")
@pytest.mark.skipif(MISSING is not None, reason=f"no disk can be filled: {MISSING}")
async def test_whoever_watches_is_told_while_there_is_no_room(tmp_path: Path) -> None:
    told: list[str | None] = []
    (tmp_path / "disk").mkdir()
    with disk_at(tmp_path / "disk", size_bytes=16 << 20) as disk:
        disk.fill()
        async with hosted([]) as host, host.call() as call, anyio.create_task_group() as tasks:
            tasks.start_soon(watch_disk_space, tmp_path / "disk", host.service)
            with anyio.fail_after(60):
                async for news in call.watch():
                    for each in news:
                        if isinstance(each, JournalTrouble):
                            told.append(None if each.failure is None else str(each.failure["code"]))
                            if each.failure is not None:
                                disk.make_room()
                    if None in told:
                        break
            tasks.cancel_scope.cancel()

    assert told == ["DISK_FULL", None]


@pytest.mark.parametrize("where", ["", "nowhere"])
def test_a_disk_that_is_not_known_to_be_full_has_room(tmp_path: Path, where: str) -> None:
    assert has_disk_space(tmp_path / where)
