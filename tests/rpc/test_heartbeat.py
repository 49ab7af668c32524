"""A peer that no longer answers is noticed, even while the connection stands."""

from __future__ import annotations

import anyio
import pytest

from holdfast.rpc.connection import Connection, ConnectionConfig
from holdfast.rpc.failures import ConnectionLost
from holdfast.rpc.heartbeat import HeartbeatPolicy, HeartbeatResult, heartbeat
from holdfast.rpc.transports.memory import pair
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio
RHYTHM = HeartbeatPolicy(interval=5.0, patience=2.0, misses_max=3)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


async def test_three_misses_in_a_row_are_too_many_and_one_answer_heals() -> None:
    ours, theirs = pair()
    dead_until_third = iter([b"", b"", b""])
    beats: list[HeartbeatResult] = []
    async with Connection(ours) as us, Connection(theirs, ConnectionConfig(pulse=lambda: {"n": 1})):
        ours.outgoing.tamper = lambda message: (
            (message,) if b"ping" not in message or next(dead_until_third, None) is None else ()
        )
        async for beat in heartbeat(us, RHYTHM):
            beats.append(beat)
            if beat.misses == 0:
                break

    assert beats == [
        HeartbeatResult(1, responsive=True),
        HeartbeatResult(2, responsive=True),
        HeartbeatResult(3, responsive=False),
        HeartbeatResult(0, responsive=True, pulse={"n": 1}),
    ]


async def test_an_answer_for_a_loop_that_is_stuck_counts_as_a_miss() -> None:
    ours, theirs = pair()
    ages = iter([1.0, 30.0, 60.0])
    async with (
        Connection(ours) as us,
        Connection(theirs, ConnectionConfig(pulse=lambda: {"age": next(ages)})),
    ):
        beats = heartbeat(us, RHYTHM, counts=lambda pulse: pulse["age"] < 20)  # type: ignore[index]
        misses = [(await anext(beats)).misses for _ in range(3)]

    assert misses == [0, 1, 2]


async def test_whatever_comes_instead_of_a_pulse_is_a_miss_while_the_connection_stands() -> None:
    ours, theirs = pair()
    pulses: list[object] = [["no", "object"], float("nan"), {}]
    async with (
        Connection(ours) as us,
        Connection(theirs, ConnectionConfig(pulse=lambda: pulses.pop(0))),
    ):
        beats = heartbeat(us, RHYTHM)
        misses = [(await anext(beats)).misses for _ in range(3)]

    assert misses == [1, 2, 0]


async def test_the_end_of_the_connection_ends_the_watch() -> None:
    ours, theirs = pair()
    async with Connection(ours) as us, Connection(theirs):
        beats = heartbeat(us, RHYTHM)
        await anext(beats)
        theirs.cut("gone")
        with pytest.raises(ConnectionLost):
            await anext(beats)
        assert anyio.current_time() == pytest.approx(5.0, abs=0.1)
