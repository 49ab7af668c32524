"""What somebody needs is held for as long as they may come for it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from holdfast.exec.server.process import OutputHold
from tests.exec.planes import closed, keeping_in, retained, shell

pytestmark = pytest.mark.anyio

LIMIT = 2**18
SIZE = 8 * LIMIT


async def test_a_process_waits_while_it_is_held_and_goes_on_when_it_is_let_go(
    tmp_path: Path,
) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell("a", f"head -c {SIZE} /dev/zero"))
        retention = retained(tmp_path, kept, bytes_max=LIMIT)
        hold = OutputHold(retention)
        hold.keep_from(1)
        with anyio.move_on_after(0.5):
            await closed(retention)
        assert (retention.is_closed, retention.first_retained) == (False, 1)
        assert (hold.is_wanted, hold.is_ending) == (True, False)

        hold.let_go(after=30.0)
        assert hold.is_ending
        hold.tick(anyio.current_time() + 29.0)
        assert (retention.first_retained, hold.is_wanted) == (1, True)
        hold.tick(anyio.current_time() + 31.0)
        await closed(retention)

        assert (retention.first_retained > 1, hold.is_wanted) == (True, False)
        assert not hold.is_ending
        hold.end()
        retention.close()
        hold.keep_from(1)  # nothing happens any more
