"""A link in memory fails exactly as it is told to, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest

from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.testing import end_of, numbered, take
from holdfast.rpc.transports.memory import pair
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


async def test_a_cut_loses_what_is_under_way_and_tells_both_sides() -> None:
    ours, far = pair()
    await far.send(numbered(range(2)))
    far.outgoing.delay = 1.0
    await far.send(numbered(range(2, 4)))

    far.cut("the cable")

    assert await take(ours, 2) == numbered(range(2))
    assert await end_of(ours) == ConnectionLost(reason="the cable")
    assert await end_of(far) == ConnectionLost(reason="the cable")


@pytest.mark.parametrize(
    ("after", "arrives", "partial"),
    [(0, 0, ""), (3, 0, '{"n'), (7, 1, ""), (8, 1, ""), (9, 1, "{")],
)
async def test_a_cut_may_fall_inside_a_message(after: int, arrives: int, partial: str) -> None:
    ours, far = pair()
    far.outgoing.cut_after = after

    await far.send(numbered(range(3)))

    assert await take(ours, arrives) == numbered(range(arrives))
    assert await end_of(ours) == ConnectionLost(reason="cut", partial=partial)


async def test_what_is_delayed_arrives_later_and_in_order() -> None:
    ours, far = pair()
    far.outgoing.delay = 5.0
    await far.send([b"{}"])
    far.outgoing.delay = 1.0
    await far.send([b"[]"])
    await far.aclose()

    start = anyio.current_time()
    assert await take(ours, 2) == [b"{}", b"[]"]
    assert await end_of(ours) == ConnectionClosed(reason="the other side closed it")
    assert anyio.current_time() - start == pytest.approx(5.0)


async def test_an_end_that_is_under_way_has_not_arrived_yet() -> None:
    ours, far = pair()
    far.outgoing.delay = 5.0
    await far.aclose()
    await ours.send([b"{}"])

    await anyio.sleep(5.0)

    assert await end_of(ours) == ConnectionClosed(reason="the other side closed it")


@pytest.mark.parametrize(
    ("tamper", "arrives"),
    [
        (lambda m: () if m == b'{"n":1}' else (m,), [b'{"n":0}', b'{"n":2}']),
        (lambda m: (m, m), [m for m in numbered(range(3)) for _ in range(2)]),
        (lambda m: (m[:-1],), [b'{"n":0', b'{"n":1', b'{"n":2']),
    ],
    ids=["dropped", "doubled", "damaged"],
)
async def test_messages_may_be_tampered_with(
    tamper: Callable[[bytes], Sequence[bytes]], arrives: list[bytes]
) -> None:
    ours, far = pair()
    far.outgoing.tamper = tamper

    await far.send(numbered(range(3)))

    assert await take(ours, len(arrives)) == arrives


async def test_a_full_link_makes_the_sender_wait_for_the_receiver() -> None:
    ours, far = pair(buffer_bytes_max=10)
    await far.send([b"0123456789"])

    with anyio.move_on_after(60.0) as patience:
        await far.send([b"{}"])
    assert patience.cancelled_caught

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(far.send, [b"{}"])
        assert await take(ours, 2) == [b"0123456789", b"{}"]


async def test_what_was_already_lost_stays_lost_after_closing() -> None:
    ours, far = pair()
    far.cut()
    await ours.aclose()
    await far.aclose()

    assert await end_of(ours) == ConnectionLost(reason="cut")
