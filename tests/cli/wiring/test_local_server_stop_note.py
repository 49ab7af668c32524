"""Word that all was ended is left where it is looked for, and each is another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.cli.failures import LocalServerStopped
from holdfast.cli.wiring.local_server import Server, StopNote, last_note, leave_note
from tests.cli.planes import plane_home, started_for


def test_a_word_is_found_again_and_the_next_is_another(tmp_path: Path) -> None:
    assert last_note(tmp_path) is None
    leave_note([tmp_path, tmp_path / "gone"])
    first = last_note(tmp_path)
    assert isinstance(first, StopNote)
    assert first.pid == os.getpid()
    assert not (tmp_path / "gone").exists()

    for damaged in (b'{"at_ms": 1', b'{"at_ms":1,"user":"\xff","pid":1}'):
        (tmp_path / "stopped.json").write_bytes(damaged)
        assert last_note(tmp_path) is None


@pytest.mark.anyio
async def test_only_who_came_before_the_word_is_kept_from_starting_again() -> None:
    with plane_home() as home:
        state = home / "exec"
        state.mkdir()
        url = f"unix://{home}/x.sock"
        leave_note([state])
        now = last_note(state)
        with pytest.raises(LocalServerStopped):
            await Server(url, state=state).dial_or_start()
        assert started_for(home, word="exec-server") == []

        await (await Server(url, state=state, note=now).dial_or_start()).aclose()
        await (await Server(url, state=state).dial_or_start()).aclose()  # it runs again

        assert len(started_for(home, word="exec-server")) == 1
