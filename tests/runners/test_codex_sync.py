"""What an agent keeps is on the disk when its turn is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runners.codex import settled
from tests.faults.host_disk import disk_at
from tests.faults.mounts import missing_for_mounts

pytestmark = pytest.mark.anyio

MISSING = missing_for_mounts()


@pytest.mark.skipif(MISSING is not None, reason=f"no power can be cut: {MISSING}")
@pytest.mark.parametrize(("does_settle", "left"), [(True, "one\n"), (False, "")])
async def test_a_power_cut_costs_only_what_was_not_settled(
    tmp_path: Path, does_settle: bool, left: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    kept = home / "sessions" / "2026" / "11" / "15" / "thread.jsonl"
    with disk_at(home, size_bytes=16 << 20) as disk:
        kept.parent.mkdir(parents=True)
        kept.write_text("one\n")
        if does_settle:
            await settled(str(kept))
        disk.lose_power()
        disk.start_again()

        assert (kept.read_text() if kept.exists() else "") == left


@pytest.mark.parametrize("path", [None, "/nowhere/at/all/thread.jsonl"])
async def test_what_cannot_be_settled_is_no_trouble(path: str | None) -> None:
    await settled(path)
