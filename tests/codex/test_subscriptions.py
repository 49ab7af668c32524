"""Each piece of news reaches the thread it is about, and all who read or wait there."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec import Raw

from holdfast.codex.events import ThreadEventFeed
from holdfast.codex.failures import EventsLost, ThreadClosed, TurnInProgress
from holdfast.codex.model import EventsDropped, UnknownEvent
from holdfast.codex.subscriptions import Router, SubscriptionReader, ThreadSubscription
from holdfast.codex.wire.generated import (
    AgentMessageDeltaNotification,
    ThreadClosedNotification,
    Turn,
    TurnCompletedNotification,
    TurnStartedNotification,
    WarningNotification,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, RequestTimedOut
from holdfast.rpc.model import Notification
from holdfast.world import background_tasks
from tests.codex.served import Watched
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio

LOST = ConnectionLost(reason="cut")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


@pytest.fixture
async def tasks() -> AsyncGenerator[TaskGroup]:
    """The tasks of a connection."""
    async with background_tasks() as tasks:
        yield tasks


def news(method: str, **params: object) -> Notification:
    return Notification(method, Raw(json.dumps(params).encode()))


def said(thread: str, delta: str) -> Notification:
    return news("item/agentMessage/delta", threadId=thread, turnId="u", itemId="i", delta=delta)


def delta(text: str, thread: str = "a") -> AgentMessageDeltaNotification:
    return AgentMessageDeltaNotification(thread, "u", "i", text)


def began(turn: str) -> TurnStartedNotification:
    return TurnStartedNotification(Turn(turn, (), "inProgress"), "a")


def ended(turn: str) -> TurnCompletedNotification:
    return TurnCompletedNotification(Turn(turn, (), "completed"), "a")


def reader(items_max: int = 100) -> SubscriptionReader:
    return SubscriptionReader(ThreadEventFeed("a", items_max=items_max, bytes_max=2**20))


@pytest.mark.promise("F20")
async def test_news_reaches_its_own_thread_only_and_in_order(tasks: TaskGroup) -> None:
    router = Router(Watched().telemetry, tasks)
    with router.followed("a").reading() as one, router.followed("b").reading() as other:
        router.put([said("a", "1"), said("b", "2"), said("a", "3"), said("c", "4")], 400)

        assert await one.receive() == [delta("1"), delta("3")]
        assert await other.receive() == [delta("2", "b")]


async def test_news_about_no_thread_or_an_unknown_one_is_passed_over(tasks: TaskGroup) -> None:
    router = Router(Watched().telemetry, tasks)
    with router.followed("a").reading() as one:
        router.put([news("warning", message="m"), said("stranger", "x"), said("a", "1")], 100)

        assert await one.receive() == [delta("1")]


@pytest.mark.promise("F11", "F27")
async def test_what_nobody_knows_is_counted_and_reaches_the_thread_as_it_came(
    tasks: TaskGroup,
) -> None:
    watched = Watched()
    router = Router(watched.telemetry, tasks)
    with router.followed("a").reading() as one:
        router.put([news("brand/new", threadId="a", x=1), news("warning", message="m")], 100)

        assert await one.receive() == [UnknownEvent("brand/new", {"threadId": "a", "x": 1})]
    assert watched.of("notification.unknown") == [{"method": "brand/new"}]


async def test_a_thread_is_known_by_one_record_however_often_it_is_asked_for(
    tasks: TaskGroup,
) -> None:
    router = Router(Watched().telemetry, tasks)

    assert router.followed("a") is router.followed("a")
    assert router.followed("a") is not router.followed("b")


async def test_everyone_who_reads_gets_everything_from_then_on(tasks: TaskGroup) -> None:
    followed = ThreadSubscription("a", tasks)
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
    tasks: TaskGroup,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.codex.subscriptions.ITEMS_MAX", 10)
    followed = ThreadSubscription("a", tasks)
    got: list[WireMessage] = []
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


def puts(one: SubscriptionReader) -> None:
    one.put([delta("x")], 1)


def ends(one: SubscriptionReader | ThreadSubscription) -> None:
    one.end(LOST)


def turn_ends(followed: ThreadSubscription) -> None:
    followed.take([ended("u")], 10)


@pytest.mark.parametrize(
    ("happens", "outcome"),
    [
        (puts, [delta("x")]),
        (ends, ConnectionLost),
    ],
)
async def test_whoever_waits_is_woken(
    happens: Callable[[SubscriptionReader], None], outcome: list[WireMessage] | type[Failure]
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


async def answered(turn: str) -> tuple[str, str]:
    return turn, f"answer of {turn}"


@pytest.mark.promise("F21")
async def test_one_turn_is_started_at_a_time_and_none_while_one_runs(tasks: TaskGroup) -> None:
    followed = ThreadSubscription("a", tasks)
    answers, asked = anyio.Event(), anyio.Event()
    got: list[str] = []

    async def slow() -> tuple[str, str]:
        asked.set()
        await answers.wait()
        return await answered("u")

    async def start() -> None:
        got.append(await followed.start(slow))

    async with anyio.create_task_group() as waiting:
        waiting.start_soon(start)
        await asked.wait()
        with pytest.raises(TurnInProgress):
            await followed.start(lambda: answered("v"))
        answers.set()
    with pytest.raises(TurnInProgress) as refused:
        await followed.start(lambda: answered("v"))
    followed.take([began("u"), ended("u")], 10)
    got.append(await followed.start(lambda: answered("v")))

    assert refused.value == TurnInProgress(thread="a", turn="u")
    assert got == ["answer of u", "answer of v"]


@pytest.mark.promise("F21")
async def test_a_start_whose_caller_leaves_keeps_the_thread_busy_until_it_is_answered(
    tasks: TaskGroup,
) -> None:
    followed = ThreadSubscription("a", tasks)
    answers = anyio.Event()

    async def slow() -> tuple[str, str]:
        await answers.wait()
        return await answered("u")

    with anyio.move_on_after(1):
        await followed.start(slow)
    with pytest.raises(TurnInProgress):
        await followed.start(lambda: answered("v"))
    answers.set()
    await followed.wait_until(lambda: not followed.is_starting)
    with pytest.raises(TurnInProgress) as refused:
        await followed.start(lambda: answered("v"))

    assert refused.value.turn == "u"


async def test_nothing_is_sent_for_a_caller_that_is_already_cancelled(tasks: TaskGroup) -> None:
    followed = ThreadSubscription("a", tasks)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await followed.start(lambda: answered("u"))
    await anyio.sleep(1)

    assert followed.turns.active is None


async def test_a_start_that_fails_makes_room_for_the_next(tasks: TaskGroup) -> None:
    followed = ThreadSubscription("a", tasks)

    async def fails() -> tuple[str, str]:
        raise LOST

    with pytest.raises(ConnectionLost):
        await followed.start(fails)

    assert await followed.start(lambda: answered("u")) == "answer of u"
    assert not followed.is_in_doubt


@pytest.mark.promise("F7", "F21")
async def test_a_start_that_times_out_leaves_a_doubt_until_a_turn_is_heard_of(
    tasks: TaskGroup,
) -> None:
    followed = ThreadSubscription("a", tasks)

    async def late() -> tuple[str, str]:
        raise RequestTimedOut(method="turn/start", limit=1.0)

    with pytest.raises(RequestTimedOut):
        await followed.start(late)
    doubts = [followed.is_in_doubt]
    followed.take([began("u")], 10)
    doubts.append(followed.is_in_doubt)

    assert doubts == [True, False]


async def test_a_start_at_the_end_of_the_connection_is_told_of_that() -> None:
    got: list[Failure] = []

    async def never() -> tuple[str, str]:
        await anyio.sleep_forever()
        raise AssertionError

    async def start(followed: ThreadSubscription) -> None:
        with pytest.raises(ConnectionClosed) as closed:
            await followed.start(never)
        got.append(closed.value)

    async with anyio.create_task_group() as callers:
        async with background_tasks() as tasks:
            callers.start_soon(start, ThreadSubscription("a", tasks))
            await anyio.sleep(1)

    assert len(got) == 1


@pytest.mark.promise("F12")
async def test_a_closed_thread_ends_its_readers_and_starts_nothing_until_it_is_opened(
    tasks: TaskGroup,
) -> None:
    router = Router(Watched().telemetry, tasks)
    followed = router.followed("a")
    with followed.reading() as one:
        router.put([said("a", "last"), news("thread/closed", threadId="a")], 10)
        assert await one.receive() == [delta("last"), ThreadClosedNotification("a")]
        with pytest.raises(ThreadClosed):
            await one.receive()
    with pytest.raises(ThreadClosed):
        await followed.start(lambda: answered("u"))
    followed.open(None, is_in_doubt=False)

    assert await followed.start(lambda: answered("u")) == "answer of u"


@pytest.mark.promise("F12")
async def test_the_end_of_a_turn_that_names_no_thread_reaches_the_thread_of_the_turn(
    tasks: TaskGroup,
) -> None:
    router = Router(Watched().telemetry, tasks)
    followed = router.followed("a")
    followed.turns.started("u")

    router.put([news("turn/completed", turn={"id": "u", "items": [], "status": "completed"})], 10)

    assert followed.turns.active is None


@pytest.mark.parametrize(
    "happens",
    [turn_ends, ends],
)
async def test_all_who_wait_for_the_end_of_a_turn_are_woken_by_it(
    tasks: TaskGroup,
    happens: Callable[[ThreadSubscription], None],
) -> None:
    followed = ThreadSubscription("a", tasks)
    followed.take([began("u")], 10)
    woken: list[int] = []

    async def wait(number: int) -> None:
        await followed.wait_until(lambda: followed.turns.active is None)
        woken.append(number)

    async with anyio.create_task_group() as waiting:
        for number in range(3):
            waiting.start_soon(wait, number)
        await anyio.sleep(1)
        followed.take([delta("x")], 10)
        await anyio.sleep(1)
        assert woken == []
        happens(followed)

    assert sorted(woken) == [0, 1, 2]


async def test_whoever_waits_for_a_start_learns_of_it_however_it_goes(tasks: TaskGroup) -> None:
    followed = ThreadSubscription("a", tasks)
    woken: list[str | None] = []

    async def wait() -> None:
        await followed.wait_until(lambda: not followed.is_starting)
        woken.append(followed.turns.active)

    async def slow() -> tuple[str, str]:
        waiting.start_soon(wait)
        await anyio.sleep(1)
        return await answered("u")

    async with anyio.create_task_group() as waiting:
        await followed.start(slow)
    assert woken == ["u"]


@pytest.mark.promise("F2")
async def test_the_end_reaches_every_reader_of_every_thread(tasks: TaskGroup) -> None:
    router = Router(Watched().telemetry, tasks)
    with router.followed("a").reading() as one, router.followed("b").reading() as other:
        router.put([news("turn/started", threadId="a", turn={"id": "u", "items": []})], 10)
        router.end(LOST)
        for each in (one, other):
            with pytest.raises(ConnectionLost):
                while True:
                    await each.receive()

    assert router.followed("a").turns.active is None
