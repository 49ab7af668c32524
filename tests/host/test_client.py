"""A caller that nobody answers is told so; what it watches comes from where it wants."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.host.client import Call, Kept, News, calling
from holdfast.host.model import Begun, Opened
from holdfast.host.protocol import RECORDS, WATCH, Done, Standing, WatchParams
from holdfast.host.session import Phase
from holdfast.rpc import Connection, ConnectionConfig, Handler, Service
from holdfast.rpc.failures import SocketRefused
from holdfast.rpc.transports.memory import pair
from holdfast.runners.model import Said
from tests.host.staging import hosted

pytestmark = pytest.mark.anyio
STANDING = Standing(
    session="s",
    project="/p",
    draft="d",
    runner="r",
    phase=Phase.IDLE,
    attempt=1,
    turn=0,
    waiting=0,
    seq=0,
)


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


async def test_what_an_earlier_watch_is_still_sent_is_not_taken_for_the_next_one() -> None:
    ours, theirs = pair()
    numbers: list[int] = []

    async def watch(params: WatchParams) -> Done:
        numbers.append(params.number)
        for number in numbers:  # the host has not stopped the earlier one yet
            record = msgspec.json.encode(Begun(number, 1))
            told = b'{"watch":%d,"records":[[%d,%b]]}' % (number, number, record)
            await host.notify(RECORDS, msgspec.Raw(told))
        return Done(0)

    terms = ConnectionConfig(service=Service({WATCH: Handler(WatchParams, watch)}))
    async with Connection(theirs, terms) as host, Connection(ours) as connection:
        call = Call(connection, STANDING)
        heard: list[News] = []
        for _ in range(2):
            watched = call.watch()
            heard += await anext(watched)
            await watched.aclose()

    assert heard == [Kept(1, Begun(1, 1)), Kept(2, Begun(2, 1))]
