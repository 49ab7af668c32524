"""Conversations over memory, in virtual time: every request ends, everyone is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import msgspec
import pytest

from holdfast.failures import Failure, UnexpectedError, from_rpc_data
from holdfast.rpc.backlog import Overflow
from holdfast.rpc.connection import Connection, ConnectionConfig
from holdfast.rpc.dispatch import Handler, Service, foreign_error
from holdfast.rpc.failures import (
    AnswerInvalid,
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    HandshakeMissing,
    MethodUnknown,
    ParamsInvalid,
    RequestCancelled,
    RequestTimedOut,
    SubscriberDropped,
    TooManyRequests,
    Unencodable,
)
from holdfast.rpc.model import Dialect
from holdfast.rpc.peer import HandshakeGate, PeerLimits
from holdfast.rpc.transports.memory import MemoryTransport, pair
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


class Sum(msgspec.Struct):
    """What `add` is asked with."""

    a: int
    b: int = 0


class Desk:
    """Serves a few methods, and remembers what happened to them."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.cancelled: list[float] = []

    async def add(self, params: Sum) -> object:
        return params.a + params.b

    async def sleep(self, params: dict[str, float]) -> object:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await anyio.sleep(params["for"])
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(params["for"])
            raise
        finally:
            self.running -= 1
        return params["for"]

    async def crash(self, params: object) -> object:
        raise KeyError("no such thing")

    async def nan(self, params: object) -> object:
        return float("nan")

    def service(self, **limits: int) -> Service:
        handlers: dict[str, Handler[object]] = {
            "add": Handler(Sum, self.add),  # type: ignore[dict-item]  # each has its own params
            "sleep": Handler(dict[str, float], self.sleep),  # type: ignore[dict-item]
            "crash": Handler(object, self.crash),
            "nan": Handler(object, self.nan),
        }
        return Service(handlers, **limits)


@asynccontextmanager
async def conversation(
    ours: ConnectionConfig | None = None, theirs: ConnectionConfig | None = None
) -> AsyncIterator[tuple[Connection, Connection]]:
    one, two = pair()
    async with Connection(one, ours) as us, Connection(two, theirs) as them:
        yield us, them


@asynccontextmanager
async def raw(
    terms: ConnectionConfig | None = None,
) -> AsyncIterator[tuple[Connection, MemoryTransport]]:
    """A connection whose far end is in the test's hands."""
    one, two = pair()
    async with Connection(one, terms) as us:
        yield us, two


async def test_a_request_is_answered_with_the_type_asked_for() -> None:
    async with conversation(theirs=ConnectionConfig(service=Desk().service())) as (us, _):
        assert await us.request("add", Sum(1, 2), timeout=1, result=int) == 3
        assert bytes(await us.request("add", {"a": 5}, timeout=1)) == b"5"


@pytest.mark.parametrize(
    ("method", "params", "failure"),
    [
        ("nobody", {}, MethodUnknown(method="nobody")),
        ("add", {}, ParamsInvalid),
        ("add", [1], ParamsInvalid),
        ("crash", {}, UnexpectedError),
        ("nan", {}, Unencodable),
    ],
)
async def test_what_goes_wrong_over_there_arrives_as_the_same_failure(
    method: str, params: object, failure: Failure | type[Failure]
) -> None:
    async with conversation(theirs=ConnectionConfig(service=Desk().service())) as (us, _):
        with pytest.raises(Failure) as raised:
            await us.request(method, params, timeout=1)

        if isinstance(failure, type):
            assert type(raised.value) is failure
        else:
            assert raised.value == failure
        assert await us.request("add", {"a": 1}, timeout=1, result=int) == 1


async def test_on_a_foreign_wire_the_usual_codes_are_kept_and_ours_ride_in_data() -> None:
    service = Service(error_form=foreign_error)
    async with raw(ConnectionConfig(service=service)) as (_, far):
        await far.send([b'{"id":1,"method":"nobody"}'])
        error = msgspec.json.decode((await far.receive())[0])["error"]

        assert error["code"] == -32601
        assert error["data"]["code"] == "RPC_METHOD_UNKNOWN"


@pytest.mark.promise("F8")
async def test_an_error_of_a_stranger_reaches_the_caller_whole() -> None:
    async with raw() as (us, far):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(far.send, [b'{"id":1,"error":{"code":7,"message":"no","data":[1]}}'])
            with pytest.raises(ErrorResponse) as raised:
                await us.request("m", timeout=1)

        assert raised.value == ErrorResponse(
            method="m", request=1, error_code=7, error_message="no", error_data=[1]
        )


@pytest.mark.promise("F7")
async def test_a_request_without_an_answer_ends_at_its_limit_and_the_rest_goes_on() -> None:
    async with conversation(theirs=ConnectionConfig(service=Desk().service())) as (us, _):
        began = anyio.current_time()
        with pytest.raises(RequestTimedOut) as raised:
            await us.request("sleep", {"for": 99}, timeout=7)

        assert raised.value == RequestTimedOut(method="sleep", limit=7)
        assert anyio.current_time() - began == pytest.approx(7)
        assert await us.request("add", {"a": 1}, timeout=1, result=int) == 1


async def test_a_shorter_limit_is_kept_while_a_longer_one_is_watched() -> None:
    async with conversation(theirs=ConnectionConfig(service=Desk().service())) as (us, _):
        ends: list[tuple[float, float]] = []

        async def ask(limit: float) -> None:
            with pytest.raises(RequestTimedOut):
                await us.request("sleep", {"for": 99}, timeout=limit)
            ends.append((limit, anyio.current_time()))

        async with anyio.create_task_group() as tasks:
            for limit in (9.0, 5.0, 2.0, 7.0):
                tasks.start_soon(ask, limit)
                await anyio.lowlevel.checkpoint()

        assert [limit for limit, _ in ends] == [2.0, 5.0, 7.0, 9.0]
        assert all(at == pytest.approx(limit) for limit, at in ends)


@pytest.mark.promise("F10")
async def test_a_late_answer_is_dropped() -> None:
    async with raw() as (us, far):
        with pytest.raises(RequestTimedOut):
            await us.request("slow", timeout=1)
        await far.send([b'{"id":1,"result":"late"}'])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(far.send, [b'{"id":2,"result":"mine"}'])
            assert await us.request("next", timeout=1, result=str) == "mine"


async def test_a_cancelled_request_is_cancelled_over_there_too() -> None:
    desk = Desk()
    async with conversation(theirs=ConnectionConfig(service=desk.service())) as (us, _):
        with anyio.move_on_after(1):
            await us.request("sleep", {"for": 99}, timeout=50)
        await us.request("ping", timeout=1)

        assert desk.cancelled == [99]


async def test_whoever_cancels_is_told_so_by_name() -> None:
    async with raw(ConnectionConfig(service=Desk().service())) as (_, far):
        await far.send([b'{"id":1,"method":"sleep","params":{"for":99}}'])
        await far.send([b'{"method":"$/cancel","params":{"id":1}}'])
        answer = msgspec.json.decode((await far.receive())[0])

        assert from_rpc_data(answer["error"]["data"]) == RequestCancelled(method="sleep")


async def test_a_request_that_waits_for_its_turn_can_be_cancelled() -> None:
    desk = Desk()
    async with conversation(theirs=ConnectionConfig(service=desk.service(running_max=1))) as (
        us,
        _,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: us.request("sleep", {"for": 10}, timeout=50))
            await anyio.sleep(1)
            with anyio.move_on_after(1):
                await us.request("sleep", {"for": 20}, timeout=50)

        assert await us.request("add", {"a": 1}, timeout=1, result=int) == 1
        assert (desk.most, anyio.current_time()) == (1, pytest.approx(10, abs=0.1))


@pytest.mark.promise("F22")
async def test_too_many_requests_are_refused_at_once() -> None:
    limits = PeerLimits(in_flight_max=2)
    async with raw(ConnectionConfig(limits=limits)) as (us, _), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: us.request("a", timeout=100))
        tasks.start_soon(lambda: us.request("b", timeout=100))
        await anyio.sleep(1)
        with pytest.raises(TooManyRequests):
            await us.request("c", timeout=100)
        assert anyio.current_time() == pytest.approx(1)
        tasks.cancel_scope.cancel()


async def test_handlers_are_bounded_and_the_rest_waits_or_is_refused() -> None:
    desk = Desk()
    service = desk.service(running_max=2, waiting_max=3)
    outcomes: list[object] = []

    async def ask(us: Connection) -> None:
        try:
            outcomes.append(await us.request("sleep", {"for": 1}, timeout=50, result=float))
        except TooManyRequests as failure:
            outcomes.append(failure)

    async with (
        conversation(theirs=ConnectionConfig(service=service)) as (us, _),
        anyio.create_task_group() as tasks,
    ):
        for _ in range(7):
            tasks.start_soon(ask, us)

    assert outcomes == [TooManyRequests(in_flight_max=3)] * 2 + [1.0] * 5
    assert desk.most == 2


async def test_what_is_asked_at_once_is_bounded_in_bytes_and_one_may_be_larger() -> None:
    desk = Desk()
    async with (
        conversation(theirs=ConnectionConfig(service=desk.service(bytes_max=1000))) as (us, _),
        anyio.create_task_group() as tasks,
    ):
        large = {"for": 1} | {str(number): 0 for number in range(300)}
        tasks.start_soon(lambda: us.request("sleep", large, timeout=50))
        await anyio.sleep(0.5)
        with pytest.raises(TooManyRequests) as refused:
            await us.request("sleep", {"for": 1}, timeout=50)
        await anyio.sleep(1)
        assert await us.request("sleep", large, timeout=50, result=float) == 1.0

    assert refused.value == TooManyRequests(in_flight_max=1)


async def test_ping_is_answered_while_every_handler_is_busy() -> None:
    terms = ConnectionConfig(service=Desk().service(running_max=1), pulse=lambda: {"idle": 3})
    async with conversation(theirs=terms) as (us, _), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: us.request("sleep", {"for": 9}, timeout=50))
        tasks.start_soon(lambda: us.request("sleep", {"for": 9}, timeout=50))
        await anyio.sleep(1)
        assert await us.request("ping", timeout=1, result=dict) == {"idle": 3}
        assert anyio.current_time() == pytest.approx(1)


@pytest.mark.promise("F20")
async def test_news_is_delivered_in_order_while_a_request_waits() -> None:
    async with raw() as (us, far):
        with us.subscribe() as news:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: us.request("slow", timeout=100))
                await anyio.sleep(1)
                await far.send([b'{"method":"n1"}', b'{"method":"n2"}', b'{"id":1,"result":0}'])
                batch = await news.receive()

            assert [note.method for note in batch] == ["n1", "n2"]


@pytest.mark.promise("F23")
async def test_a_slow_subscriber_is_bounded_and_others_never_notice() -> None:
    async with raw() as (us, far):
        strict = us.subscribe(overflow=Overflow.END, items_max=2)
        loose = us.subscribe(overflow=Overflow.DROP_OLDEST, items_max=2)
        dead = us.subscribe()
        quick = us.subscribe()
        dead.close()
        seen: list[str] = []
        for number in range(6):
            await far.send([b'{"method":"n%d"}' % number])
            seen += [note.method for note in await quick.receive()]

        assert seen == [f"n{number}" for number in range(6)]
        assert [note.method for note in await loose.receive()] == ["n4", "n5"]
        assert loose.dropped == 4
        with pytest.raises(SubscriberDropped):
            await strict.receive()
        with pytest.raises(ConnectionClosed):
            await dead.receive()


@pytest.mark.promise("F2", "F15")
async def test_a_lost_connection_ends_everything_by_the_same_name() -> None:
    ends: list[Failure] = []
    desk = Desk()

    async def ask(us: Connection) -> None:
        try:
            await us.request("m", timeout=100)
        except Failure as failure:
            ends.append(failure)

    async with raw(ConnectionConfig(service=desk.service())) as (us, far):
        news = us.subscribe()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, us)
            tasks.start_soon(ask, us)
            await far.send([b'{"id":9,"method":"sleep","params":{"for":99}}', b'{"method":"last"}'])
            await anyio.sleep(1)
            far.cut("reset")
        lost = await us.wait_ended()
        assert isinstance(lost, ConnectionLost)
        assert ends == [lost, lost]
        assert [note.method for note in await news.receive()] == ["last"]
        with pytest.raises(ConnectionLost):
            await news.receive()
        with pytest.raises(ConnectionLost):
            await us.request("again", timeout=1)
        with pytest.raises(ConnectionLost):
            await us.notify("again")
        await anyio.lowlevel.checkpoint()
        assert (us.healthy, desk.cancelled) == (False, [99])


@pytest.mark.promise("F15")
async def test_nothing_begins_for_a_side_that_is_gone() -> None:
    desk = Desk()
    async with raw(ConnectionConfig(service=desk.service())) as (us, far):
        await far.send([b'{"id":9,"method":"sleep","params":{"for":99}}'])
        far.cut("reset")
        await us.wait_ended()
        await anyio.sleep(1)
        assert desk.most == 0


@pytest.mark.promise("F3")
async def test_an_end_in_good_order_has_a_name_of_its_own() -> None:
    async with raw() as (us, far):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(far.aclose)
            with pytest.raises(ConnectionClosed):
                await us.request("m", timeout=100)
        assert [note async for note in us.subscribe()] == []


@pytest.mark.promise("F9")
async def test_noise_is_skipped_and_too_much_of_it_is_unhealthy() -> None:
    async with raw() as (us, far):
        await far.send([b"noise"] * 9)
        await anyio.sleep(0.1)
        assert us.healthy
        await far.send([b'{"result":"no id"}'])
        await anyio.sleep(0.1)
        assert not us.healthy
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(far.send, [b'{"id":1,"result":1}'])
            assert await us.request("m", timeout=1, result=int) == 1
        assert us.healthy


async def test_an_answer_of_another_type_is_named() -> None:
    async with raw() as (us, far), anyio.create_task_group() as tasks:
        tasks.start_soon(far.send, [b'{"id":1,"result":"text"}'])
        with pytest.raises(AnswerInvalid):
            await us.request("m", timeout=1, result=int)


async def test_nothing_is_served_or_called_before_the_introduction() -> None:
    calls, serves = HandshakeGate(method="hello"), HandshakeGate(method="hello")
    desk = Desk()

    async def hello(params: object) -> object:
        serves.open = True
        return {}

    handlers = {**desk.service().handlers, "hello": Handler(object, hello)}
    theirs = ConnectionConfig(service=Service(handlers), serves=serves)
    async with conversation(theirs=theirs) as (us, _):
        with pytest.raises(HandshakeMissing):
            await us.request("add", {"a": 1}, timeout=1)
        await us.request("hello", timeout=1)
        assert await us.request("add", {"a": 1}, timeout=1, result=int) == 1
    async with conversation(ours=ConnectionConfig(calls=calls)) as (us, _):
        with pytest.raises(HandshakeMissing):
            await us.request("add", {"a": 1}, timeout=1)


async def test_two_peers_that_flood_each_other_with_requests_do_not_stop_each_other() -> None:
    desk = Desk()
    terms = ConnectionConfig(service=desk.service(), limits=PeerLimits(in_flight_max=500))
    one, two = pair(buffer_bytes_max=200)
    done: list[int] = []

    async def ask(us: Connection) -> None:
        done.append(await us.request("add", {"a": 1}, timeout=60, result=int))

    async with (
        Connection(one, terms) as us,
        Connection(two, terms) as them,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(300):
            tasks.start_soon(ask, us)
            tasks.start_soon(ask, them)

    assert done == [1] * 600


async def test_a_peer_that_asks_without_reading_is_not_read_for_ever() -> None:
    one, two = pair(buffer_bytes_max=1000)
    async with Connection(one, ConnectionConfig(dialect=Dialect(ping_method="ping"))):
        with anyio.move_on_after(60) as patience:
            for number in range(20_000):
                await two.send([b'{"id":%d,"method":"ping"}' % number])

        assert patience.cancelled_caught


async def test_the_body_may_fail_with_an_error_of_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        async with raw():
            raise ZeroDivisionError


async def test_cancelling_whoever_holds_the_connection_closes_it() -> None:
    one, two = pair()
    with anyio.move_on_after(1):
        async with Connection(one):
            await anyio.sleep(100)

    with pytest.raises(ConnectionClosed):
        await two.receive()


async def test_who_is_shielded_is_told_when_all_else_is_cancelled() -> None:
    ours, _ = pair()
    with anyio.CancelScope() as scope:
        async with Connection(ours) as connection:
            scope.cancel()
            with anyio.CancelScope(shield=True), anyio.fail_after(30):
                with pytest.raises(ConnectionClosed):
                    await connection.request("never", timeout=60.0)
