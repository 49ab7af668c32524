"""A stop marker keeps earlier clients from starting a server again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.app.failures import LocalServerStopped
from holdfast.app.wiring.local_server import (
    ExecEndpoint,
    StopMarker,
    read_stop_marker,
    write_stop_markers,
)
from tests.cli.planes import plane_home, started_for


def test_a_marker_is_read_back_and_a_damaged_one_is_ignored(tmp_path: Path) -> None:
    assert read_stop_marker(tmp_path) is None
    write_stop_markers([tmp_path, tmp_path / "gone"])
    first = read_stop_marker(tmp_path)
    assert isinstance(first, StopMarker)
    assert first.pid == os.getpid()
    assert not (tmp_path / "gone").exists()

    for damaged in (b'{"at_ms": 1', b'{"at_ms":1,"user":"\xff","pid":1}'):
        (tmp_path / "stopped.json").write_bytes(damaged)
        assert read_stop_marker(tmp_path) is None


@pytest.mark.anyio
async def test_only_endpoints_from_before_the_marker_may_not_start_the_server() -> None:
    with plane_home() as home:
        state = home / "exec"
        state.mkdir()
        url = f"unix://{home}/x.sock"
        write_stop_markers([state])
        now = read_stop_marker(state)
        with pytest.raises(LocalServerStopped):
            await ExecEndpoint(url, state=state).dial_or_start()
        assert started_for(home, word="exec-server") == []

        await (await ExecEndpoint(url, state=state, stop_marker=now).dial_or_start()).aclose()
        await (await ExecEndpoint(url, state=state).dial_or_start()).aclose()  # it runs again

        assert len(started_for(home, word="exec-server")) == 1
