"""A caller that nobody answers is told so; what it watches comes from where it wants."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host.dialling import Kept, calling
from holdfast.host.model import Begun, Opened
from holdfast.rpc.failures import SocketRefused
from holdfast.runners.model import Said
from tests.host.staging import hosted

pytestmark = pytest.mark.anyio


async def test_nobody_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SocketRefused):
        async with calling(tmp_path / "nowhere.sock"):
            pass


@pytest.mark.parametrize(("after", "sorts"), [(0, [Opened, Begun]), (1, [Begun])])
async def test_a_cursor_says_from_where(after: int, sorts: list[type[object]]) -> None:
    async with hosted([[Said("1", "One")]]) as host, host.call() as call:
        watched = call.watch(after=after)
        news = await anext(watched)
        await watched.aclose()

    assert [type(each.record) for each in news if isinstance(each, Kept)] == sorts
