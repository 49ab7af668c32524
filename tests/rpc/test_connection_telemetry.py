"""What happens on a connection is told to telemetry, and nothing of what was said."""

from __future__ import annotations

import anyio
import pytest

from holdfast.rpc.connection import Connection, ConnectionConfig
from holdfast.rpc.dispatch import Handler, Service
from holdfast.rpc.failures import ConnectionLost, ErrorResponse, RequestTimedOut
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.telemetry import Telemetry
from holdfast.telemetry.testing import MemorySink
from holdfast.world.testing import ManualClock
from tests.simulation.clock import VirtualTimeLoop

pytestmark = [pytest.mark.anyio, pytest.mark.promise("F27")]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


class Watched:
    """A connection under observation, its far end, and what was told."""

    def __init__(self) -> None:
        self.sink = MemorySink()
        self.ours, self.far = pair()
        telemetry = Telemetry([self.sink], clock=ManualClock())
        self.terms = ConnectionConfig(telemetry=telemetry, peer="codex")

    def told(self) -> list[tuple[str, dict[str, object]]]:
        return [(record.name, dict(record.fields)) for record in self.sink.records]


def about(seconds: float) -> object:
    return pytest.approx(seconds, abs=0.01)


async def reply(far: MemoryTransport, message: bytes, after: float = 0.0) -> None:
    await anyio.sleep(after)
    await far.send([message])


async def test_a_request_is_told_with_its_duration_and_result() -> None:
    watched = Watched()
    async with Connection(watched.ours, watched.terms) as us:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reply, watched.far, b'{"id":1,"result":0}', 2.0)
            await us.request("m", {"secret": "pinkelephant"}, timeout=5)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reply, watched.far, b'{"id":2,"error":{"code":1,"message":"no"}}')
            with pytest.raises(ErrorResponse):
                await us.request("m", timeout=5)
        with pytest.raises(RequestTimedOut):
            await us.request("slow", timeout=3)
        with anyio.move_on_after(1):
            await us.request("given up", timeout=3)

    assert watched.told() == [
        ("connection.start", {"peer": "codex"}),
        ("request.start", {"method": "m", "size": 56}),
        ("request.stop", {"method": "m", "duration": about(2), "result": "ok"}),
        ("request.start", {"method": "m", "size": 21}),
        ("request.stop", {"method": "m", "duration": about(0), "result": "error"}),
        ("request.start", {"method": "slow", "size": 24}),
        ("request.timeout", {"method": "slow", "limit": 3}),
        ("request.stop", {"method": "slow", "duration": about(3), "result": "lost"}),
        ("request.start", {"method": "given up", "size": 28}),
        ("request.stop", {"method": "given up", "duration": about(1), "result": "cancelled"}),
        ("connection.stop", {"peer": "codex", "reason": "normal", "duration": about(6)}),
    ]  # fmt: skip
    assert "pinkelephant" not in watched.sink.written()


@pytest.mark.promise("F9", "F10", "F11")
async def test_news_is_counted_by_method_and_what_is_odd_is_told() -> None:
    watched = Watched()
    async with Connection(watched.ours, watched.terms):
        await watched.far.send([b'{"method":"a"}', b'{"method":"b"}', b'{"method":"a"}'])
        await anyio.sleep(1)
        await watched.far.send([b"noise", b'{"id":99,"result":1}'])
        await anyio.sleep(1)

    assert watched.told()[1:-1] == [
        ("notification.received", {"method": "a", "count": 2}),
        ("notification.received", {"method": "b", "count": 1}),
        ("connection.error", {"peer": "codex", "error_code": "malformed"}),
        ("connection.error", {"peer": "codex", "error_code": "unmatched"}),
    ]


@pytest.mark.promise("T7")
@pytest.mark.parametrize(("status", "reason"), [(None, "crashed"), (3, "crashed"), (-9, "killed")])
async def test_a_lost_connection_is_recorded_once(status: int | None, reason: str) -> None:
    watched = Watched()
    async with Connection(watched.ours, watched.terms) as us:
        watched.far.outgoing.end(ConnectionLost(reason="gone", status=status), 0.0)
        for _ in range(3):
            with pytest.raises(ConnectionLost):
                await us.request("m", timeout=5)

    names = [name for name, _ in watched.told()]
    assert names.count("failure") == 1
    assert ("connection.stop", {"peer": "codex", "reason": reason, "duration": 0.0}) in (
        watched.told()
    )


async def test_nobody_listening_costs_nothing_and_breaks_nothing() -> None:
    async def echo(params: object) -> object:
        return params

    ours, theirs = pair()
    service = Service({"echo": Handler(object, echo)})
    async with Connection(ours) as us, Connection(theirs, ConnectionConfig(service=service)):
        assert await us.request("echo", [1], timeout=1, result=list) == [1]
