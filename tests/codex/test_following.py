"""Each piece of news reaches the thread it is about, and all who read or wait there."""

from __future__ import annotations

import json
from collections.abc import Callable

import anyio
import pytest
from msgspec import Raw

from holdfast.codex.core.feed import Feed
from holdfast.codex.failures import EventsLost, TurnInProgress
from holdfast.codex.following import Followed, Reader, Router
from holdfast.codex.model import EventsDropped, UnknownEvent
from holdfast.codex.wire.generated import (
    AgentMessageDeltaNotification,
    Turn,
    TurnCompletedNotification,
    TurnStartedNotification,
    WarningNotification,
)
from holdfast.codex.wire.message import Message
from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionLost
from holdfast.rpc.model import Notification
from tests.codex.served import Watched
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio

LOST = ConnectionLost(reason="cut")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


def news(method: str, **params: object) -> Notification:
    return Notification(method, Raw(json.dumps(params).encode()))


def said(thread: str, delta: str) -> Notification:
    return news("item/agentMessage/delta", threadId=thread, turnId="u", itemId="i", delta=delta)


def delta(text: str, thread: str = "a") -> AgentMessageDeltaNotification:
    return AgentMessageDeltaNotification(thread, "u", "i", text)


def began(turn: str) -> TurnStartedNotification:
    return TurnStartedNotification("a", Turn(turn, (), "inProgress"))


def ended(turn: str) -> TurnCompletedNotification:
    return TurnCompletedNotification("a", Turn(turn, (), "completed"))


def reader(items_max: int = 100) -> Reader:
    return Reader(Feed("a", items_max=items_max, bytes_max=2**20))


@pytest.mark.promise("F20")
async def test_news_reaches_its_own_thread_only_and_in_order() -> None:
    router = Router(Watched().telemetry)
    with router.followed("a").reading() as one, router.followed("b").reading() as other:
        router.put([said("a", "1"), said("b", "2"), said("a", "3"), said("c", "4")], 400)

        assert await one.receive() == [delta("1"), delta("3")]
        assert await other.receive() == [delta("2", "b")]


async def test_news_about_no_thread_or_an_unknown_one_is_passed_over() -> None:
    router = Router(Watched().telemetry)
    with router.followed("a").reading() as one:
        router.put([news("warning", message="m"), said("stranger", "x"), said("a", "1")], 100)

        assert await one.receive() == [delta("1")]


@pytest.mark.promise("F11", "F27")
async def test_what_nobody_knows_is_counted_and_reaches_the_thread_as_it_came() -> None:
    watched = Watched()
    router = Router(watched.telemetry)
    with router.followed("a").reading() as one:
        router.put([news("brand/new", threadId="a", x=1), news("warning", message="m")], 100)

        assert await one.receive() == [UnknownEvent("brand/new", {"threadId": "a", "x": 1})]
    assert watched.of("notification.unknown") == [{"method": "brand/new"}]


async def test_a_thread_is_known_by_one_record_however_often_it_is_asked_for() -> None:
    router = Router(Watched().telemetry)

    assert router.followed("a") is router.followed("a")
    assert router.followed("a") is not router.followed("b")


async def test_everyone_who_reads_gets_everything_from_then_on() -> None:
    followed = Followed("a")
    with followed.reading() as first:
        followed.take([delta("1")], 10)
        with followed.reading() as second:
            followed.take([delta("2")], 10)
            assert await second.receive() == [delta("2")]
        followed.take([delta("3")], 10)

        assert await first.receive() == [delta("1"), delta("2"), delta("3")]
    assert followed.readers == []


@pytest.mark.promise("F23")
async def test_a_slow_reader_is_bounded_and_others_never_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.codex.following.ITEMS_MAX", 10)
    followed = Followed("a")
    got: list[Message] = []
    with followed.reading() as slow, followed.reading() as quick:
        for number in range(100):
            followed.take([delta(str(number))], 10)
            got += await quick.receive()

        kept = await slow.receive()
    assert got == [delta(str(number)) for number in range(100)]
    assert isinstance(kept[0], EventsDropped)
    assert kept[0].count + len(kept) - 1 == 100
    assert len(kept) <= 11


@pytest.mark.promise("F24")
async def test_a_reader_that_cannot_be_served_whole_is_told_and_stays_told() -> None:
    slow = reader(items_max=4)
    for number in range(20):
        slow.put([WarningNotification(str(number))], 10)

    for _ in range(2):
        with pytest.raises(EventsLost) as raised:
            await slow.receive()
        assert raised.value == EventsLost(thread="a")
    slow.end(LOST)
    with pytest.raises(EventsLost):
        await slow.receive()


@pytest.mark.promise("F2")
async def test_what_came_before_the_end_is_read_before_the_end_is() -> None:
    one = reader()
    one.put([delta("last words")], 10)
    one.end(LOST)

    assert await one.receive() == [delta("last words")]
    for _ in range(2):
        with pytest.raises(ConnectionLost):
            await one.receive()


@pytest.mark.parametrize(
    ("happens", "outcome"),
    [
        (lambda one: one.put([delta("x")], 1), [delta("x")]),
        (lambda one: one.end(LOST), ConnectionLost),
    ],
)
async def test_whoever_waits_is_woken(
    happens: Callable[[Reader], None], outcome: list[Message] | type[Failure]
) -> None:
    one = reader()
    got: list[object] = []

    async def wait() -> None:
        try:
            got.append(await one.receive())
        except Failure as failure:
            got.append(type(failure))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.sleep(1)
        assert got == []
        happens(one)

    assert got == [outcome]


@pytest.mark.promise("F21")
async def test_one_turn_is_started_at_a_time_and_none_while_one_runs() -> None:
    followed = Followed("a")
    with followed.starting(), pytest.raises(TurnInProgress):
        with followed.starting():
            pass
    followed.take([began("u")], 10)
    with pytest.raises(TurnInProgress) as refused:
        with followed.starting():
            pass
    followed.take([ended("u")], 10)
    with followed.starting():
        pass

    assert refused.value == TurnInProgress(thread="a", turn="u")


async def test_a_start_that_fails_makes_room_for_the_next() -> None:
    followed = Followed("a")
    with pytest.raises(ConnectionLost), followed.starting():
        raise LOST
    with followed.starting():
        pass


@pytest.mark.parametrize(
    "happens",
    [lambda followed: followed.take([ended("u")], 10), lambda followed: followed.end(LOST)],
)
async def test_all_who_wait_for_the_end_of_a_turn_are_woken_by_it(
    happens: Callable[[Followed], None],
) -> None:
    followed = Followed("a")
    followed.take([began("u")], 10)
    woken: list[int] = []

    async def wait(number: int) -> None:
        await followed.wait_until(lambda: followed.turns.active is None)
        woken.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(wait, number)
        await anyio.sleep(1)
        followed.take([delta("x")], 10)
        await anyio.sleep(1)
        assert woken == []
        happens(followed)

    assert sorted(woken) == [0, 1, 2]


async def test_whoever_waits_for_a_start_learns_of_it_however_it_goes() -> None:
    followed = Followed("a")
    woken: list[str | None] = []

    async def wait() -> None:
        await followed.wait_until(lambda: not followed.is_starting)
        woken.append(followed.turns.active)

    async with anyio.create_task_group() as tasks:
        with followed.starting():
            tasks.start_soon(wait)
            await anyio.sleep(1)
            followed.turns.started("u")
    assert woken == ["u"]


@pytest.mark.promise("F2")
async def test_the_end_reaches_every_reader_of_every_thread() -> None:
    router = Router(Watched().telemetry)
    with router.followed("a").reading() as one, router.followed("b").reading() as other:
        router.put([news("turn/started", threadId="a", turn={"id": "u", "items": []})], 10)
        router.end(LOST)
        for each in (one, other):
            with pytest.raises(ConnectionLost):
                while True:
                    await each.receive()

    assert router.followed("a").turns.active is None
