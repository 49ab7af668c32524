"""The connection, promise by promise, against a server that misbehaves as told."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from holdfast.codex import (
    NEWEST_TESTED,
    OLDEST_SUPPORTED,
    Approval,
    ApprovalDecision,
    AppServer,
    ConnectionState,
    Event,
    EventsDropped,
    ServerHealth,
    ThreadForkParams,
    ThreadListParams,
    ThreadOptions,
    ThreadResumeParams,
    ThreadStartParams,
    TurnCompletedNotification,
    TurnStartedNotification,
    UnknownEvent,
)
from holdfast.codex.failures import (
    CodexIncompatible,
    CodexInitRejected,
    CodexInitTimeout,
    CodexNotFound,
    CodexOverloaded,
    CodexStartupFailed,
    TurnInProgress,
)
from holdfast.codex.versions import UNKNOWN
from holdfast.failures import Failure
from holdfast.rpc import Overflow
from holdfast.rpc.failures import (
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    HandshakeRepeated,
    MessageTooLarge,
    RequestTimedOut,
    SubscriberDropped,
    TooManyRequests,
    Unencodable,
)
from holdfast.rpc.transports.memory import MemoryTransport, pair
from tests.codex.served import ENV, Acts, Scenario, Watched, sent, serving, until
from tests.parts import fake_app_server
from tests.parts.conversation import Json
from tests.parts.recording import lacking, recorded

pytestmark = pytest.mark.anyio


@pytest.mark.promise("F1")
@pytest.mark.parametrize("name", ["/nowhere/codex", "no-such-codex"])
async def test_a_missing_program_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(CodexNotFound) as raised:
        async with AppServer.connect(command=[name], cwd=str(tmp_path), env=ENV):
            pass

    assert raised.value == CodexNotFound(path=name, reason="it does not exist")


@pytest.mark.promise("F1")
async def test_a_program_that_may_not_be_run_is_named(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(CodexNotFound) as raised:
        async with AppServer.connect(command=[str(program)], cwd=str(tmp_path), env=ENV):
            pass

    assert raised.value.reason == "it is not executable"


@pytest.mark.promise("F1", "F17")
@pytest.mark.parametrize(("status", "told"), [(3, 3), (0, 0)])
async def test_a_server_that_ends_before_the_handshake(
    status: int, told: int, tmp_path: Path
) -> None:
    scenario: Scenario = {"start": [{"stderr": "bad config\n"}, {"exit": status}]}
    with pytest.raises(CodexStartupFailed) as raised:
        async with serving(tmp_path, scenario):
            pass

    assert (raised.value.status, raised.value.stderr.strip()) == (told, "bad config")
    assert not raised.value.retryable


@pytest.mark.promise("F1")
async def test_a_server_that_ends_in_the_midst_of_the_handshake() -> None:
    near, far = pair()

    async def answer_and_end() -> None:
        await far.receive()
        await far.send([b'{"id":1,"result":{}}'])
        await far.aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer_and_end)
        with pytest.raises(CodexStartupFailed):
            async with AppServer.connect(transport=near):
                pass


@pytest.mark.promise("F4")
async def test_a_handshake_without_an_answer_kills_the_server(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"initialize": [[]]}, "ignore": ["EOF"]}
    with anyio.fail_after(60), pytest.raises(CodexInitTimeout) as raised:
        async with serving(tmp_path, scenario, init_timeout=0.3):
            pass

    assert raised.value.limit == 0.3


@pytest.mark.promise("F4")
@pytest.mark.parametrize("ignore", [["EOF", "SIGTERM"], []])
async def test_a_handshake_without_an_answer_takes_no_longer_than_its_limit(
    ignore: list[str], tmp_path: Path
) -> None:
    scenario: Scenario = {"on": {"initialize": [[]]}, "ignore": ignore}
    began = anyio.current_time()
    with pytest.raises(CodexInitTimeout):
        async with serving(tmp_path, scenario, init_timeout=1.0):
            pass

    assert anyio.current_time() - began < 4.0  # a kind end would take 5 s for each thing it ignores


@pytest.mark.promise("F5")
async def test_a_server_that_refuses_the_handshake_is_killed_at_once(tmp_path: Path) -> None:
    refusal = [{"refuse": -32600, "message": "too old"}]
    scenario: Scenario = {"on": {"initialize": [refusal]}, "ignore": ["EOF", "SIGTERM"]}
    began = anyio.current_time()
    with pytest.raises(CodexInitRejected):
        async with serving(tmp_path, scenario):
            pass

    assert anyio.current_time() - began < 4.0


@pytest.mark.promise("F1", "F18")
@pytest.mark.parametrize(
    ("act", "failure"), [({"close": None}, CodexStartupFailed), ({"giant": 2**21}, MessageTooLarge)]
)
async def test_a_server_that_fails_the_handshake_otherwise_is_killed_at_once(
    act: Json, failure: type[Failure], tmp_path: Path
) -> None:
    scenario: Scenario = {"on": {"initialize": [[act]]}, "ignore": ["EOF", "SIGTERM"]}
    began = anyio.current_time()
    with pytest.raises(failure):
        async with serving(tmp_path, scenario, message_bytes_max=2**20):
            pass

    assert anyio.current_time() - began < 4.0


@pytest.mark.promise("F1")
@pytest.mark.parametrize("command", [[], [""], (), "codex app-server", ""])
async def test_a_command_that_names_no_program_is_a_named_failure(command: Sequence[str]) -> None:
    with pytest.raises(CodexNotFound) as raised:
        async with AppServer.connect(command=command):
            pass

    assert "list of words" in raised.value.user_message


@pytest.mark.promise("F5")
async def test_a_refused_handshake_says_why(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"initialize": [[{"refuse": -32600, "message": "too old"}]]}}
    with pytest.raises(CodexInitRejected) as raised:
        async with serving(tmp_path, scenario):
            pass

    assert raised.value == CodexInitRejected(reason="too old")


@pytest.mark.promise("F6")
async def test_a_second_handshake_never_reaches_the_wire(tmp_path: Path) -> None:
    async with serving(tmp_path, {}) as server:
        with pytest.raises(HandshakeRepeated):
            await server.request("initialize", {})
        await server.health()

    assert len(sent(tmp_path, "initialize")) == 1


@pytest.mark.promise("F2", "F3", "F16")
@pytest.mark.parametrize(
    ("act", "end", "state"),
    [
        ({"kill": None}, ConnectionLost, ConnectionState.CRASHED),
        ({"exit": 3}, ConnectionLost, ConnectionState.CRASHED),
        ({"exit": 0}, ConnectionClosed, ConnectionState.CLOSED),
    ],
)
async def test_the_end_of_the_server_reaches_everyone_and_nobody_reconnects(
    act: object, end: type[Failure], state: ConnectionState, tmp_path: Path
) -> None:
    watched = Watched()
    scenario: Scenario = {"on": {"model/list": [[]], "config/read": [[{"partial": '{"half'}, act]]}}
    ends: list[Failure] = []
    async with serving(tmp_path, scenario, telemetry=watched.telemetry) as server:

        async def ask(method: str) -> None:
            with pytest.raises(Failure) as raised:
                await server.request(method)
            ends.append(raised.value)

        async def follow() -> None:
            with pytest.raises(Failure) if end is ConnectionLost else anyio.CancelScope():
                async for _ in server.notifications():
                    pass
            assert server.failure is not None
            ends.append(server.failure)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            tasks.start_soon(ask, "model/list")
            tasks.start_soon(ask, "config/read")

        assert [type(failure) for failure in ends] == [end] * 3
        assert server.state is state
        assert isinstance(server.failure, ConnectionLost | ConnectionClosed)
        assert server.failure.partial == '{"half'
        with pytest.raises(end):
            await server.start_thread()
        assert (await server.health()).healthy is False
    assert len(watched.of("connection.stop")) == 1


@pytest.mark.promise("F7")
async def test_a_timeout_names_method_and_limit_and_the_connection_goes_on(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"model/list": [[], [{"answer": {"data": []}}]]}}
    async with serving(tmp_path, scenario) as server:
        with pytest.raises(RequestTimedOut) as raised:
            await server.request("model/list", timeout=0.2)

        assert raised.value == RequestTimedOut(method="model/list", limit=0.2)
        assert await server.request("model/list") == {"data": []}
    assert sent(tmp_path, "turn/interrupt") == []


@pytest.mark.promise("F8")
async def test_an_error_reaches_the_caller_whole(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"model/list": [[{"refuse": -32602, "message": "bad"}]]}}
    async with serving(tmp_path, scenario) as server:
        with pytest.raises(ErrorResponse) as raised:
            await server.request("model/list")

        assert (raised.value.error_code, raised.value.error_message) == (-32602, "bad")
        assert raised.value.request == 2


@pytest.mark.promise("F9")
async def test_noise_is_skipped_until_it_is_too_much(tmp_path: Path) -> None:
    def noise(times: int) -> list[object]:
        return [{"raw": "not json", "times": times}, {"answer": {"data": []}}]

    scenario: Scenario = {
        "on": {
            "model/list": [
                noise(9),
                [{"answer": {"data": []}}, {"raw": '{"result":1}', "times": 10}],
            ],
            "config/read": [[{"answer": {}}]],
        }
    }
    async with serving(tmp_path, scenario) as server:
        await server.request("model/list")
        assert (await server.health()).healthy
        await server.request("model/list")
        with anyio.fail_after(60):
            await until(lambda: not server.is_intelligible)
        assert "sense" in (await server.health()).reason
        await server.request("config/read")
        assert (await server.health()).healthy


@pytest.mark.promise("F9")
async def test_how_much_noise_is_too_much_can_be_set(tmp_path: Path) -> None:
    noise: Acts = [{"raw": "not json", "times": 2}, {"answer": {}}]
    babble: Acts = [{"answer": {}}, {"raw": "not json", "times": 3}]
    scenario: Scenario = {"on": {"model/list": [noise, babble]}}
    async with serving(tmp_path, scenario, malformed_max=3) as server:
        await server.request("model/list")
        assert server.is_intelligible
        await server.request("model/list")
        with anyio.fail_after(60):
            await until(lambda: not server.is_intelligible)


@pytest.mark.promise("F10")
async def test_a_late_or_foreign_answer_is_discarded(tmp_path: Path) -> None:
    watched = Watched()
    late = [{"sleep": 0.4}, {"answer": "late"}]
    scenario: Scenario = {
        "on": {
            "model/list": [late, [{"answer": "x", "id": 777}, {"answer": "mine"}]],
            "config/read": [[{"sleep": 0.6}, {"answer": "after"}]],
        }
    }
    async with serving(tmp_path, scenario, telemetry=watched.telemetry) as server:
        with pytest.raises(RequestTimedOut):
            await server.request("model/list", timeout=0.1)
        assert await server.request("config/read") == "after"
        assert await server.request("model/list") == "mine"
    assert len(watched.of("connection.error")) == 2


@pytest.mark.promise("F11", "F12")
async def test_unknown_and_misshapen_news_is_observable_and_harmless(tmp_path: Path) -> None:
    watched = Watched()
    news: Acts = [
        {"notify": "brand/new", "params": {"a": 1}},
        {"notify": "turn/completed", "params": {"turn": 5}},
        {"answer": {}},
    ]
    async with serving(
        tmp_path, {"on": {"model/list": [news]}}, telemetry=watched.telemetry
    ) as server:
        seen: list[object] = []

        async def follow() -> None:
            async for event in server.notifications():
                seen.append(event)  # noqa: PERF401  # it never ends by itself

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.sleep(0.05)
            await server.request("model/list")
            await server.request("thread/list")
            tasks.cancel_scope.cancel()

        assert seen == [
            UnknownEvent("brand/new", {"a": 1}),
            UnknownEvent("turn/completed", {"turn": 5}),
        ]
    assert watched.of("notification.unknown") == [{"method": "brand/new"}]


@pytest.mark.promise("F17")
async def test_noise_on_stderr_is_never_read_as_messages(tmp_path: Path) -> None:
    flood = {"stderr": '{"id":2,"result":"forged"}\n', "times": 50_000}
    async with serving(tmp_path, {"on": {"model/list": [[flood, {"answer": 1}]]}}) as server:
        assert await server.request("model/list") == 1


@pytest.mark.promise("F18")
async def test_a_giant_message_ends_the_connection(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"model/list": [[{"giant": 3 * 2**20}]]}}
    async with serving(tmp_path, scenario, message_bytes_max=2**20) as server:
        with pytest.raises(MessageTooLarge):
            await server.request("model/list")
        assert server.state is ConnectionState.CRASHED


@pytest.mark.promise("F19", "F20")
async def test_answers_out_of_order_and_news_between(tmp_path: Path) -> None:
    scenario: Scenario = {
        "on": {
            "thread/list": [[{"hold": None}]],
            "config/read": [[{"notify": "x/y"}, {"answer": "config"}, {"release": None}]],
        }
    }
    async with serving(tmp_path, scenario) as server:
        got: list[object] = []

        async def ask(method: str) -> None:
            got.append(await server.request(method))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "thread/list")
            await anyio.sleep(0.1)
            tasks.start_soon(ask, "config/read")

        assert got == ["config", {"data": [], "nextCursor": None}]


@pytest.mark.promise("F22")
async def test_too_many_in_flight_are_refused_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, {"on": {"model/list": [[]]}}, max_in_flight=3) as server:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(server.request, "model/list")
            await anyio.sleep(0.1)
            with pytest.raises(TooManyRequests):
                await server.request("config/read")
            tasks.cancel_scope.cancel()


async def first(events: AsyncIterator[Event]) -> Event:
    return await anext(events)


@pytest.mark.promise("F23")
async def test_a_slow_follower_is_bounded_and_others_never_notice(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"model/list": [[{"flood": 5000}, {"answer": 1}]]}}
    async with serving(tmp_path, scenario) as server:
        slow = server.notifications(items_max=100)
        lossy = server.notifications(items_max=100, overflow=Overflow.DROP_OLDEST)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first, slow)
            tasks.start_soon(first, lossy)
            await anyio.sleep(0.05)
            assert await server.request("model/list") == 1
        with pytest.raises(SubscriberDropped):
            while True:
                await anext(slow)
        assert not isinstance(await anext(lossy), EventsDropped)


@pytest.mark.promise("F25")
async def test_health_says_why_not(tmp_path: Path) -> None:
    scenario: Scenario = {
        "on": {"thread/list": [None, [{"refuse": -32603, "message": "db is gone"}]]}
    }
    async with serving(tmp_path, scenario) as server:
        assert await server.health() == ServerHealth(True)
        assert await server.health() == ServerHealth(False, "thread/list was refused: db is gone")


@pytest.mark.promise("F25")
async def test_a_server_too_busy_to_look_is_not_healthy_and_is_not_pressed(tmp_path: Path) -> None:
    busy = [{"refuse": -32001, "message": "Server overloaded; retry later."}]
    async with serving(tmp_path, {"on": {"thread/list": [busy]}}) as server:
        assert not (await server.health()).healthy
    assert len(sent(tmp_path, "thread/list")) == 1


async def test_an_overloaded_server_is_asked_again(tmp_path: Path) -> None:
    busy = [{"refuse": -32001, "message": "Server overloaded; retry later."}]
    scenario: Scenario = {"on": {"model/list": [busy, [{"answer": "fine"}]]}}
    async with serving(tmp_path, scenario) as server:
        assert await server.request("model/list") == "fine"
    assert len(sent(tmp_path, "model/list")) == 2


@pytest.mark.long
async def test_a_server_that_stays_overloaded_is_given_up_by_name(tmp_path: Path) -> None:
    busy = [{"refuse": -32001, "message": "Server overloaded; retry later."}]
    async with serving(tmp_path, {"on": {"model/list": [busy]}}) as server:
        with pytest.raises(CodexOverloaded):
            await server.request("model/list")
    assert len(sent(tmp_path, "model/list")) == 4


@pytest.mark.parametrize("params", [{"a": float("nan")}, {"a": "\ud800"}], ids=repr)
async def test_what_would_never_be_answered_is_never_sent(params: object, tmp_path: Path) -> None:
    async with serving(tmp_path, {}) as server:
        with pytest.raises(Unencodable):
            await server.request("model/list", params)
    assert sent(tmp_path, "model/list") == []


@pytest.mark.promise("F27")
async def test_what_happens_is_told_without_parameters(tmp_path: Path) -> None:
    watched = Watched()
    scenario: Scenario = {
        "on": {
            "model/list": [[]],
            "config/read": [[{"notify": "warning", "params": {"message": "m"}}, {"answer": {}}]],
        }
    }
    async with serving(tmp_path, scenario, telemetry=watched.telemetry) as server:
        await server.request("config/read", {"canary": "pinkelephant"})
        with pytest.raises(RequestTimedOut):
            await server.request("model/list", {"canary": "pinkelephant"}, timeout=0.1)

    assert watched.names() >= {
        "connection.start",
        "connection.stop",
        "request.start",
        "request.stop",
        "request.timeout",
        "notification.received",
    }
    assert watched.of("connection.stop")[0]["reason"] == "normal"
    assert {fields["method"]: fields["result"] for fields in watched.of("request.stop")} == {
        "initialize": "ok",
        "config/read": "ok",
        "model/list": "lost",
    }
    assert watched.of("request.timeout") == [{"method": "model/list", "limit": 0.1}]
    assert "pinkelephant" not in watched.sink.written()


@pytest.mark.promise("F27")
async def test_a_killed_server_is_told_apart_from_a_crashed_one(tmp_path: Path) -> None:
    watched = Watched()
    scenario: Scenario = {"on": {"model/list": [[{"kill": None}]]}}
    async with serving(tmp_path, scenario, telemetry=watched.telemetry) as server:
        with pytest.raises(ConnectionLost) as raised:
            await server.request("model/list")

    assert raised.value.status == -signal.SIGKILL
    assert watched.of("connection.stop")[0]["reason"] == "killed"


async def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(10):
        place = tmp_path / str(number)
        place.mkdir()
        async with serving(place, {}) as server:
            await server.health()

    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert fake_app_server.received(tmp_path / "0")


OPTIONS: ThreadOptions = {
    "cwd": Path("/p"),
    "approval_policy": "on-request",
    "sandbox": "workspace-write",
    "model": "m",
}
WRITTEN = {
    "cwd": "/p",
    "approvalPolicy": "on-request",
    "sandbox": "workspace-write",
    "model": "m",
}


async def test_a_thread_is_started_with_what_was_given_and_nothing_else(tmp_path: Path) -> None:
    more = ThreadStartParams(sandbox="read-only", ephemeral=True)
    async with serving(tmp_path, {}) as server:
        await server.start_thread(more=more)
        await server.start_thread(more=more, model="m", sandbox=None)
        await server.start_thread(more=more, **OPTIONS)
        await server.start_thread()

    assert [message["params"] for message in sent(tmp_path, "thread/start")] == [
        {"sandbox": "read-only", "ephemeral": True},
        {"sandbox": "read-only", "ephemeral": True, "model": "m"},
        {**WRITTEN, "ephemeral": True},
        {},
    ]


async def test_resuming_and_forking_take_what_starting_takes(tmp_path: Path) -> None:
    forked = [{"answer": {"thread": {"id": "fork"}}}]
    async with serving(tmp_path, {"on": {"thread/fork": [forked]}}) as server:
        await server.resume_thread("t", more=ThreadResumeParams("?", personality="none"), **OPTIONS)
        fork = await server.fork_thread(
            "t", more=ThreadForkParams("?", last_turn_id="u"), **OPTIONS
        )

    assert fork.id == "fork"
    (resume,) = (message["params"] for message in sent(tmp_path, "thread/resume"))
    assert resume.items() >= {**WRITTEN, "threadId": "t", "personality": "none"}.items()
    (params,) = (message["params"] for message in sent(tmp_path, "thread/fork"))
    assert params.items() >= {**WRITTEN, "threadId": "t", "lastTurnId": "u"}.items()


async def test_threads_and_models_are_listed_with_types(tmp_path: Path) -> None:
    pages = [
        [{"answer": {"data": [{"id": "a"}], "nextCursor": "2"}}],
        [{"answer": {"data": [{"id": "b"}], "nextCursor": None}}],
    ]
    scenario: Scenario = {
        "on": {
            "thread/list": pages,
            "model/list": pages,
            "thread/archive": [[{"answer": {}}]],
            "thread/unarchive": [[{"answer": {"thread": {"id": "a"}}}]],
        }
    }
    async with serving(tmp_path, scenario) as server:
        first = await server.list_threads(limit=1, more=ThreadListParams(cwd="/p", limit=7))
        second = await server.list_threads(cursor=first.next_cursor)
        models = await server.models()
        await server.archive_thread("a")
        await server.unarchive_thread("a")

    assert [thread.id for thread in (*first.data, *second.data)] == ["a", "b"]
    assert second.next_cursor is None
    assert [model.id for model in models] == ["a", "b"]
    assert sent(tmp_path, "thread/list")[0]["params"] == {"limit": 1, "cwd": "/p"}
    assert sent(tmp_path, "thread/unarchive")[0]["params"] == {"threadId": "a"}


@pytest.mark.parametrize("method", ["turn/start", "review/start"])
@pytest.mark.parametrize("is_slow", [True, False])
async def test_a_turn_that_was_started_by_a_raw_request_can_be_followed_whole(
    is_slow: bool, method: str, tmp_path: Path
) -> None:
    acts = [{"begin": None}, {"say": "Hello"}, {"end": "completed"}]
    async with serving(tmp_path, {"on": {method: [acts]}}) as server:
        thread = await server.start_thread()
        for _ in range(2):
            await server.request(method, {"threadId": thread.id, "input": []})
            if is_slow:
                await server.health()  # the turn is over before anybody follows it
            with anyio.fail_after(30):
                events = [event async for event in thread.follow()]
            kinds = [type(event) for event in events]
            assert kinds[-1] is TurnCompletedNotification
            assert TurnStartedNotification in kinds
        assert [event async for event in thread.follow()] == []


@pytest.mark.promise("F21")
@pytest.mark.parametrize("method", ["turn/start", "review/start"])
async def test_a_raw_request_starts_no_second_turn(method: str, tmp_path: Path) -> None:
    acts = [{"begin": None}, {"sleep": 60}]
    async with serving(tmp_path, {"on": {method: [acts]}}) as server:
        thread = await server.start_thread()
        params: Json = {"threadId": thread.id, "input": []}
        await server.request(method, params)
        for again in ("turn/start", "review/start"):
            with pytest.raises(TurnInProgress):
                await server.request(again, params)
        with pytest.raises(TurnInProgress):
            await thread.ask("x")

    assert len(sent(tmp_path, "turn/start") + sent(tmp_path, "review/start")) == 1


async def test_a_review_in_a_thread_of_its_own_leaves_this_one_free(tmp_path: Path) -> None:
    detached: Acts = [{"answer": {"turn": {"id": "review"}, "reviewThreadId": "another"}}]
    async with serving(tmp_path, {"on": {"review/start": [detached]}}) as server:
        thread = await server.start_thread()
        await server.request("review/start", {"threadId": thread.id, "delivery": "detached"})

        assert (thread.active_turn, (await thread.ask("x")).status) == (None, "completed")


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ({"userAgent": "holdfast/0.140.0 (Debian 12; x86_64) xterm"}, "0.140.0"),
        ({"userAgent": "holdfast/0.170.0-alpha.3 (Mac)"}, "0.170.0-alpha.3"),
        ({"userAgent": 5}, UNKNOWN),
        (None, UNKNOWN),
        ("odd", UNKNOWN),
    ],
)
async def test_the_version_of_the_server_is_known_and_named_where_it_matters(
    answer: object, version: str, tmp_path: Path
) -> None:
    scenario: Scenario = {
        "on": {
            "initialize": [[{"answer": answer}]],
            "thread/start": [[{"answer": {"thread": {"name": "it lacks its id"}}}]],
        }
    }
    async with serving(tmp_path, scenario) as server:
        with pytest.raises(CodexIncompatible) as raised:
            await server.start_thread()
        assert server.version == version

    message = raised.value.user_message
    assert all(
        each in message for each in (version, OLDEST_SUPPORTED, NEWEST_TESTED, "thread/start")
    )


async def replayed(said: Sequence[tuple[str, Json]], far: MemoryTransport) -> None:
    """Say again what a server said, each time after the client said something."""
    heard: list[bytes] = []
    with suppress(ConnectionClosed):  # the client leaves when it cannot go on
        for speaker, message in said:
            if speaker == "server":
                await far.send([json.dumps(message).encode()])
            else:
                while not heard:
                    heard += await far.receive()
                del heard[0]


async def outcome(said: Sequence[tuple[str, Json]]) -> tuple[str, list[str]]:
    """Have one turn with a server that says this: its status or failure, and what was approved."""
    asked: list[str] = []

    async def hook(approval: Approval) -> ApprovalDecision:
        asked.append(type(approval).__name__)
        return ApprovalDecision.ACCEPT

    near, far = pair()
    ended = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(replayed, said, far)
        async with AppServer.connect(transport=near, approvals=hook) as server:
            try:
                with anyio.fail_after(20):
                    ended = (await (await server.start_thread()).ask("go")).status
            except (Failure, TimeoutError) as failure:
                ended = type(failure).__name__
        tasks.cancel_scope.cancel()
    return ended, asked


def approvals_conversation() -> list[tuple[str, Json]]:
    """What the real Codex said in a turn with a command and a patch that need an approval."""
    said = recorded()
    begins = [i for i, (_, message) in enumerate(said) if message.get("method") == "initialize"]
    return said[begins[2] : begins[3]]


@pytest.mark.promise("F12")
async def test_a_turn_goes_well_whatever_one_member_the_server_leaves_out() -> None:
    said = approvals_conversation()
    whole = ("completed", ["CommandApproval", "FileChangeApproval"])
    odd: dict[tuple[str, str], object] = {}
    seen: set[tuple[str, str, str]] = set()
    names = {1: "initialize", 2: "thread/start", 3: "turn/start"}  # by id
    for index, (speaker, message) in enumerate(said):
        part = "params" if "params" in message else "result"
        method = message.get("method") or names.get(message["id"], "")
        for way, less in lacking(message[part]) if speaker == "server" else ():
            kind = str(message[part].get("item", {}).get("type"))
            if (method, kind, way) not in seen:
                seen.add((method, kind, way))
                fewer = [*said[:index], (speaker, {**message, part: less}), *said[index + 1 :]]
                got = await outcome(fewer)
                if got != whole:
                    odd[method, way] = got

    approvals = whole[1]
    unnamed: tuple[str, list[str]] = ("CodexIncompatible", [])
    assert len(seen) > 200
    assert await outcome(said) == whole
    assert odd == {
        ("thread/start", "thread"): unnamed,
        ("thread/start", "thread.id"): unnamed,
        ("turn/start", "turn"): unnamed,
        ("turn/start", "turn.id"): unnamed,
        ("item/commandExecution/requestApproval", "itemId"): ("completed", approvals[1:]),
        ("item/fileChange/requestApproval", "itemId"): ("completed", approvals[:1]),
        ("turn/completed", "turn"): ("CodexIncompatible", approvals),
        ("turn/completed", "turn.id"): ("CodexIncompatible", approvals),
        ("turn/completed", "turn.status"): ("", approvals),
    }
