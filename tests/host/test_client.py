"""A caller that nobody answers is told so; what it watches comes from where it wants."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.host.client import HostClient, HostNews, RecordReceived, connect_host
from holdfast.host.model import AttemptStarted, SessionOpened
from holdfast.host.protocol import RECORDS, WATCH, Acknowledgement, SessionStatus, WatchParams
from holdfast.host.session import SessionPhase
from holdfast.rpc import Connection, ConnectionConfig, Handler, Service
from holdfast.rpc.failures import SocketRefused
from holdfast.rpc.transports.memory import pair
from holdfast.runners.model import TextCompleted
from tests.host.staging import hosted

pytestmark = pytest.mark.anyio
STANDING = SessionStatus(
    session="s",
    project="/p",
    draft="d",
    runner="r",
    phase=SessionPhase.IDLE,
    attempt=1,
    turn=0,
    waiting=0,
    seq=0,
)


async def test_nobody_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SocketRefused):
        async with connect_host(tmp_path / "nowhere.sock"):
            pass


@pytest.mark.parametrize(
    ("after", "sorts"), [(0, [SessionOpened, AttemptStarted]), (1, [AttemptStarted])]
)
async def test_a_cursor_says_from_where(after: int, sorts: list[type[object]]) -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host, host.call() as call:
        watched = call.watch(after=after)
        news = await anext(watched)
        await watched.aclose()

    assert [type(each.record) for each in news if isinstance(each, RecordReceived)] == sorts


async def test_what_an_earlier_watch_is_still_sent_is_not_taken_for_the_next_one() -> None:
    ours, theirs = pair()
    numbers: list[int] = []

    async def watch(params: WatchParams) -> Acknowledgement:
        numbers.append(params.number)
        for number in numbers:  # the host has not stopped the earlier one yet
            record = msgspec.json.encode(AttemptStarted(number, 1))
            told = b'{"watch":%d,"records":[[%d,%b]]}' % (number, number, record)
            await host.notify(RECORDS, msgspec.Raw(told))
        return Acknowledgement(0)

    terms = ConnectionConfig(service=Service({WATCH: Handler(WatchParams, watch)}))
    async with Connection(theirs, terms) as host, Connection(ours) as connection:
        call = HostClient(connection, STANDING)
        heard: list[HostNews] = []
        for _ in range(2):
            watched = call.watch()
            heard += await anext(watched)
            await watched.aclose()

    assert heard == [
        RecordReceived(1, AttemptStarted(1, 1)),
        RecordReceived(2, AttemptStarted(2, 1)),
    ]
