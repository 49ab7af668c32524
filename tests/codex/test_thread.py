"""Threads and turns: one at a time, every one ends, whatever happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from holdfast.codex import (
    AppServer,
    Event,
    EventsDropped,
    LocalImageUserInput,
    MentionUserInput,
    TextUserInput,
    Thread,
    TurnStartParams,
)
from holdfast.codex.failures import (
    CodexIncompatible,
    ModelQuotaSpent,
    ThreadClosed,
    TurnInProgress,
    TurnMismatch,
)
from holdfast.codex.wire.generated import (
    AgentMessageDeltaNotification,
    ErrorNotification,
    TurnCompletedNotification,
)
from holdfast.failures import Failure
from holdfast.rpc.failures import (
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    RequestTimedOut,
)
from tests.codex.served import Acts, Scenario, sent, serving, talking, until

pytestmark = pytest.mark.anyio
BEGIN, SAY, END = {"begin": None}, {"say": "Hello", "deltas": 2}, {"end": "completed"}
SLEEP = {"sleep": 60}


async def test_a_turn_is_streamed_to_its_end(tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, SAY, END) as (_, thread):
        events = [event async for event in thread.run("hi")]

    deltas = [e.delta for e in events if isinstance(e, AgentMessageDeltaNotification)]
    assert "".join(deltas) == "Hello"
    assert isinstance(events[-1], TurnCompletedNotification)


async def test_asking_gives_what_the_turn_left(tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, {"run": "ls"}, SAY, END) as (_, thread):
        first = await thread.ask("one")
        second = await thread.ask("two")

    assert (first.status, first.text, first.error) == ("completed", "Hello", None)
    assert len(first.items) == 3
    assert second.text == "Hello"


async def test_a_failed_turn_says_of_what(tmp_path: Path) -> None:
    failed = {"end": "failed", "message": "no more", "info": "usageLimitExceeded"}
    async with talking(tmp_path, BEGIN, failed) as (_, thread):
        answer = await thread.ask("x")

    assert answer.status == "failed"
    assert isinstance(answer.error, ModelQuotaSpent)


async def test_a_retry_of_the_server_is_an_event_and_not_an_end(tmp_path: Path) -> None:
    again = {"error": "Reconnecting... 1/2", "willRetry": True}
    async with talking(tmp_path, BEGIN, again, SAY, END) as (_, thread):
        events = [event async for event in thread.run("x")]

    assert [e.will_retry for e in events if isinstance(e, ErrorNotification)] == [True]
    assert isinstance(events[-1], TurnCompletedNotification)


@pytest.mark.promise("F21")
async def test_a_second_turn_is_refused_here_and_never_sent(tmp_path: Path) -> None:
    slow = [BEGIN, {"until": "model/list"}, SAY, END]
    async with talking(tmp_path, *slow) as (server, thread):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "first")
            await anyio.sleep(0.1)
            same = await server.resume_thread(thread.id)
            for twin in (thread, same):
                with pytest.raises(TurnInProgress):
                    await twin.ask("second")
            with pytest.raises(ErrorResponse):
                await server.request("model/list")
        assert (await thread.ask("third")).text == "Hello"

    assert len(sent(tmp_path, "turn/start")) == 2


@pytest.mark.promise("F21")
async def test_two_at_the_same_moment_are_one_too_many(tmp_path: Path) -> None:
    outcomes: list[str] = []
    async with talking(tmp_path, BEGIN, SAY, END) as (_, thread):

        async def ask() -> None:
            try:
                outcomes.append((await thread.ask("x")).status)
            except TurnInProgress:
                outcomes.append("refused")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)

    assert sorted(outcomes) == ["completed", "refused"]


@pytest.mark.promise("F2", "F3")
@pytest.mark.parametrize(
    ("act", "end"),
    [
        ({"kill": None}, ConnectionLost),
        ({"exit": 3}, ConnectionLost),
        ({"exit": 0}, ConnectionClosed),
    ],
)
async def test_a_turn_ends_with_its_server(act: object, end: type[Failure], tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, SAY, act) as (_, thread):  # type: ignore[arg-type]
        seen: list[Event] = []
        with anyio.fail_after(60), pytest.raises(end):
            async for event in thread.run("x"):
                seen.append(event)  # noqa: PERF401  # what came before the end counts
        assert any(isinstance(event, AgentMessageDeltaNotification) for event in seen)
        with pytest.raises(end):
            await thread.ask("again")
        assert thread.active_turn is None


@pytest.mark.promise("F7")
async def test_a_turn_that_is_slow_to_start_is_not_interrupted(tmp_path: Path) -> None:
    async with talking(tmp_path, {"sleep": 0.3}, BEGIN, SAY, END) as (server, thread):
        with pytest.raises(RequestTimedOut):
            await server.request("turn/start", {"threadId": thread.id, "input": []}, timeout=0.1)
    assert sent(tmp_path, "turn/interrupt") == []


async def interrupted(thread: Thread) -> tuple[str, bool]:
    """Interrupt a turn once it runs: how it ended, and whether the interruption says so."""
    statuses: list[str] = []
    has_ended = False

    async def ask() -> None:
        statuses.append((await thread.ask("x")).status)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until(lambda: thread.active_turn is not None)
            has_ended = await thread.interrupt()
    return statuses[0], has_ended


async def test_interrupting_ends_the_turn_and_only_the_processes_of_that_turn(
    tmp_path: Path,
) -> None:
    listed = [{"itemId": f"item-{number}", "processId": f"p{number}"} for number in range(6)]
    scenario: Scenario = {
        "on": {
            "turn/start": [[BEGIN, {"run": "first"}, END], [BEGIN, {"run": "second"}, SLEEP]],
            "thread/backgroundTerminals/list": [[{"answer": {"data": listed}}]],
        }
    }
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        first = await thread.ask("x")
        outcome = await interrupted(thread)
        is_idle = await thread.interrupt()

    assert outcome == ("interrupted", True)
    assert is_idle
    assert len(sent(tmp_path, "turn/interrupt")) == 1
    assert [item.id for item in first.items] == ["item-1", "item-2"]
    ended = [
        m["params"]["processId"] for m in sent(tmp_path, "thread/backgroundTerminals/terminate")
    ]
    assert ended == ["p4"]


async def test_interrupting_a_turn_without_commands_touches_no_process(tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, SAY, SLEEP) as (_, thread):
        assert await interrupted(thread) == ("interrupted", True)

    assert sent(tmp_path, "thread/backgroundTerminals/list") == []


async def test_an_interrupt_says_that_the_turn_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", 0.2)
    agrees: Acts = [{"answer": {}}]
    scenario: Scenario = {"on": {"turn/start": [[BEGIN, SLEEP]], "turn/interrupt": [agrees]}}
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "x")
            await until(lambda: thread.active_turn is not None)
            with anyio.fail_after(60):
                assert not await thread.interrupt()
            assert thread.active_turn is not None
            tasks.cancel_scope.cancel()


async def test_a_turn_that_the_server_does_not_run_is_not_waited_for_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", 0.2)
    ghost = [{"answer": {"turn": {"id": "ghost"}}}]
    scenario: Scenario = {"on": {"turn/start": [ghost, [BEGIN, SAY, END]]}}
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(thread.ask, "x")
                await until(lambda: thread.active_turn == "ghost")
                tasks.cancel_scope.cancel()
            with pytest.raises(ErrorResponse):
                await thread.interrupt()
            assert (await thread.ask("y")).text == "Hello"


async def test_the_end_of_the_turn_is_answer_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", 100.0)
    silent = [{"end": "interrupted"}]
    scenario: Scenario = {
        "on": {"turn/start": [[BEGIN, {"sleep": 60}]], "turn/interrupt": [silent]}
    }
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "x")
            await until(lambda: thread.active_turn is not None)
            with anyio.fail_after(30):
                await thread.interrupt()


async def test_an_interrupt_that_is_never_answered_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", 0.2)
    scenario: Scenario = {"on": {"turn/start": [[BEGIN, {"sleep": 60}]], "turn/interrupt": [[]]}}
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "x")
            await until(lambda: thread.active_turn is not None)
            with anyio.fail_after(30), pytest.raises(RequestTimedOut):
                await thread.interrupt()
            tasks.cancel_scope.cancel()


@pytest.mark.promise("F24")
async def test_a_huge_turn_that_nobody_reads_costs_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.subscriptions.ITEMS_MAX", 1000)
    async with talking(tmp_path, BEGIN, {"flood": 20_000}, SAY, END) as (server, thread):
        run = thread.run("x")
        first = await anext(run)
        with anyio.fail_after(60):
            while thread.active_turn is not None:
                await server.health()
        rest = [event async for event in run]

    events = [first, *rest]
    dropped = sum(event.count for event in events if isinstance(event, EventsDropped))
    deltas = sum(isinstance(event, AgentMessageDeltaNotification) for event in events)
    assert dropped + deltas == 20_002
    assert len(rest) < 2500
    assert isinstance(rest[-1], TurnCompletedNotification)


async def test_leaving_a_turn_early_leaves_it_running(tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, SAY, {"until": "model/list"}, END) as (server, thread):
        async for _ in thread.run("x"):
            break
        with pytest.raises(TurnInProgress):
            await thread.ask("y")
        with pytest.raises(Failure):
            await server.request("model/list")
        with anyio.fail_after(60):
            await until(lambda: thread.active_turn is None)
        assert (await thread.ask("z")).status == "completed"


async def left(server: AppServer, thread: Thread) -> tuple[Event, AsyncGenerator[Event]]:
    """Leave a turn and follow it: the first event that is left, and the rest to come."""
    async with aclosing(thread.run("x")) as events:
        await anext(events)
    rest = thread.follow()
    first: list[Event] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.health)
        first.append(await anext(rest))
    return first[0], rest


async def test_a_turn_that_was_left_can_be_followed_to_its_end(tmp_path: Path) -> None:
    acts = [BEGIN, {"until": "thread/list"}, SAY, {"until": "model/list"}, SAY, END]
    async with talking(tmp_path, *acts) as (server, thread):
        first, rest = await left(server, thread)
        with pytest.raises(ErrorResponse):
            await server.request("model/list")
        with anyio.fail_after(60):
            await until(lambda: thread.active_turn is None)
        events = [first, *[event async for event in rest]]

        assert sum(isinstance(event, AgentMessageDeltaNotification) for event in events) == 4
        assert isinstance(events[-1], TurnCompletedNotification)
        assert [event async for event in thread.follow()] == []


@pytest.mark.promise("F2")
async def test_whoever_follows_a_turn_is_told_when_its_server_dies(tmp_path: Path) -> None:
    acts = [BEGIN, {"until": "thread/list"}, SAY, {"until": "model/list"}, SAY, {"kill": None}]
    async with talking(tmp_path, *acts) as (server, thread):
        _, rest = await left(server, thread)
        with pytest.raises(Failure):
            await server.request("model/list")
        with anyio.fail_after(60):
            await until(lambda: server.failure is not None)

        with pytest.raises(ConnectionLost):
            async for _ in rest:
                pass


@pytest.mark.promise("F21")
async def test_a_start_that_was_given_up_is_not_mixed_with_the_next(tmp_path: Path) -> None:
    old, new = (
        [{"until": "thread/list"}, BEGIN, {"say": text}, {"until": "model/list"}, END]
        for text in ("the old", "the new")
    )
    async with serving(tmp_path, {"on": {"turn/start": [old, new]}}) as server:
        thread = await server.start_thread()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "old")
            await until(lambda: len(sent(tmp_path, "turn/start")) == 1)
            tasks.cancel_scope.cancel()
        with pytest.raises(TurnInProgress):  # it is not answered yet
            await thread.ask("new")
        await server.health()
        with anyio.fail_after(60):
            await until(lambda: thread.active_turn is not None)
        with pytest.raises(TurnInProgress):  # it runs
            await thread.ask("new")
        with pytest.raises(ErrorResponse):
            await server.request("model/list")
        with anyio.fail_after(60):
            await until(lambda: thread.active_turn is None)
            answer = await thread.ask("new")

    assert (answer.text, len(answer.items)) == ("the new", 2)
    assert len(sent(tmp_path, "turn/start")) == 2


@pytest.mark.promise("F7", "F21")
@pytest.mark.parametrize("has_begun", [True, False])
async def test_a_start_that_timed_out_is_asked_about_before_the_next(
    has_begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit_of(method: str, params: object) -> float:
        return 0.2 if method == "turn/start" else 30.0

    monkeypatch.setattr("holdfast.codex.calls.limit_of", limit_of)
    status = {"type": "active" if has_begun else "idle"}
    read: Acts = [{"answer": {"thread": {"id": "$thread", "status": status}}}]
    scenario: Scenario = {"on": {"turn/start": [[], [BEGIN, SAY, END]], "thread/read": [read]}}
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        with pytest.raises(RequestTimedOut):
            await thread.ask("old")
        if has_begun:
            with pytest.raises(TurnInProgress):
                await thread.ask("new")
        else:
            monkeypatch.undo()
            assert (await thread.ask("new")).text == "Hello"

    assert len(sent(tmp_path, "turn/start")) == (1 if has_begun else 2)


@pytest.mark.promise("F12")
@pytest.mark.parametrize("news", ["thread/closed", "thread/archived", "thread/deleted"])
async def test_a_turn_of_a_thread_that_is_closed_ends_by_name(news: str, tmp_path: Path) -> None:
    closed = {"notify": news, "params": {"threadId": "$thread"}}
    idle: Acts = [{"answer": {"thread": {"id": "$thread", "status": {"type": "idle"}}}}]
    scenario: Scenario = {
        "on": {"turn/start": [[BEGIN, SAY, closed], [BEGIN, SAY, END]], "thread/resume": [idle]}
    }
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        with anyio.fail_after(60), pytest.raises(ThreadClosed):
            await thread.ask("x")
        with pytest.raises(ThreadClosed):
            await thread.ask("y")
        assert thread.active_turn is None
        again = await server.resume_thread(thread.id)
        assert (await again.ask("z")).text == "Hello"


@pytest.mark.promise("F21")
@pytest.mark.parametrize("resume", ["typed", "raw"])
async def test_a_turn_ends_by_name_when_its_connection_unsubscribes(
    resume: str, tmp_path: Path
) -> None:
    ends: list[Failure] = []
    acts = [BEGIN, SAY, {"until": "thread/unsubscribe"}, {"until": "thread/resume"}, END]
    async with talking(tmp_path, *acts) as (server, thread):

        async def run() -> None:
            with pytest.raises(Failure) as raised:
                await thread.ask("x")
            ends.append(raised.value)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await until(lambda: thread.active_turn is not None)
                await server.request("thread/unsubscribe", {"threadId": thread.id})
            with pytest.raises(ThreadClosed):  # the server would mix it into the running turn
                await thread.ask("y")
            if resume == "typed":
                await server.resume_thread(thread.id)
            else:
                await server.request("thread/resume", {"threadId": thread.id})
            assert (await thread.ask("z")).text == "Hello"

    assert [type(end) for end in ends] == [ThreadClosed]
    assert len(sent(tmp_path, "turn/start")) == 2


@pytest.mark.promise("F21")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"thread": {"id": "$thread", "turns": [{"id": "turn-1", "status": "inProgress"}]}},
        {"thread": {"id": "$thread", "status": {"type": "active"}}},
        {"thread": {"id": "$thread"}},
        {"new": "in a form that this version does not know"},
    ],
)
async def test_a_thread_that_a_raw_request_resumes_starts_no_turn_beside_the_running_one(
    answer: object, tmp_path: Path
) -> None:
    resume = None if answer is None else [{"answer": answer}]
    scenario: Scenario = {
        "on": {"turn/start": [[BEGIN, SAY, SLEEP]], "thread/resume": [resume]},
    }
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        async with aclosing(thread.run("x")) as events:
            await anext(events)
        await server.request("thread/unsubscribe", {"threadId": thread.id})
        await server.request("thread/resume", {"threadId": thread.id})
        with anyio.fail_after(60), pytest.raises(TurnInProgress):
            await thread.ask("y")

    assert len(sent(tmp_path, "turn/start")) == 1


@pytest.mark.promise("F12")
@pytest.mark.parametrize("has_started", [True, False])
async def test_a_turn_that_runs_under_another_id_ends_by_name(
    has_started: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.MISMATCH_LIMIT", 0.2)
    other = {"threadId": "$thread", "turn": {"id": "another", "status": "completed"}}
    acts = [
        {"answer": {"turn": {"id": "promised"}}},
        *([{"notify": "turn/started", "params": other}] if has_started else []),
        {"notify": "turn/completed", "params": other},
    ]
    async with serving(tmp_path, {"on": {"turn/start": [acts, [BEGIN, SAY, END]]}}) as server:
        thread = await server.start_thread()
        with anyio.fail_after(60), pytest.raises(TurnMismatch) as raised:
            await thread.ask("x")
        assert (await thread.ask("y")).text == "Hello"

    assert (raised.value.turn, raised.value.other) == ("promised", "another")


ANOTHER_ENDS = {
    "notify": "turn/completed",
    "params": {"threadId": "$thread", "turn": {"id": "another", "status": "completed"}},
}


@pytest.mark.promise("F12")
async def test_a_turn_that_ends_under_another_id_ends_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.MISMATCH_LIMIT", 0.2)
    idle: Acts = [{"answer": {"thread": {"id": "$thread", "status": {"type": "idle"}}}}]
    turns = [[BEGIN, SAY, ANOTHER_ENDS], [BEGIN, SAY, END]]
    scenario: Scenario = {"on": {"turn/start": turns, "thread/read": [idle]}}
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        with anyio.fail_after(60), pytest.raises(TurnMismatch) as raised:
            await thread.ask("x")
        assert (await thread.ask("y")).text == "Hello"

    assert raised.value == TurnMismatch(thread=thread.id, turn="turn-1", other="another")


@pytest.mark.promise("F12")
async def test_a_turn_is_waited_for_as_long_as_its_thread_is_busy_after_the_end_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.MISMATCH_LIMIT", 0.1)
    busy: Acts = [{"answer": {"thread": {"id": "$thread", "status": {"type": "active"}}}}]
    scenario: Scenario = {
        "on": {
            "turn/start": [[BEGIN, ANOTHER_ENDS, {"until": "model/list"}, SAY, END]],
            "thread/read": [busy, busy, busy, [*busy, {"notify": "x/y"}]],
        }
    }
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        answers: list[str] = []

        async def ask() -> None:
            answers.append((await thread.ask("x")).text)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await until(lambda: len(sent(tmp_path, "thread/read")) == 3)
                with pytest.raises(ErrorResponse):
                    await server.request("model/list")

    assert answers == ["Hello"]


@pytest.mark.promise("F21")
async def test_a_turn_whose_end_was_never_told_is_given_up_by_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", 0.2)
    idle: Acts = [{"answer": {"thread": {"id": "$thread", "status": {"type": "idle"}}}}]
    refusal: Acts = [{"refuse": -32600, "message": "no active turn to interrupt"}]
    scenario: Scenario = {
        "on": {
            "turn/start": [[BEGIN, SAY], [BEGIN, SAY, END]],
            "turn/interrupt": [refusal],
            "thread/read": [idle],
        }
    }
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        async with aclosing(thread.run("x")) as events:
            await anext(events)
        with anyio.fail_after(60), pytest.raises(ErrorResponse):
            await thread.interrupt()
        assert (await thread.ask("y")).text == "Hello"


@pytest.mark.promise("F21")
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_an_interrupt_does_not_claim_the_end_of_a_turn_that_it_cannot_see(
    when: str, tmp_path: Path
) -> None:
    unanswered: Acts = []
    scenario: Scenario = {
        "on": {"turn/start": [[BEGIN, SAY, SLEEP]], "turn/interrupt": [unanswered]}
    }
    ends: list[object] = []
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        assert await thread.interrupt()  # none runs

        async def interrupt() -> None:
            with pytest.raises(ThreadClosed) as raised:
                await thread.interrupt()
            ends.append(raised.value.reason)

        async with aclosing(thread.run("x")) as events:
            await anext(events)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                if when == "meanwhile":
                    tasks.start_soon(interrupt)
                    await until(lambda: len(sent(tmp_path, "turn/interrupt")) == 1)
                await server.request("thread/unsubscribe", {"threadId": thread.id})
                if when == "before":
                    await interrupt()

    assert ends == ["this connection unsubscribed from it"]


@pytest.mark.promise("F2")
async def test_an_interrupt_after_the_loss_of_the_connection_is_told_of_it(tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, SAY, {"kill": None}) as (_, thread):
        with pytest.raises(ConnectionLost):
            await thread.ask("x")
        with pytest.raises(ConnectionLost):
            await thread.interrupt()


async def test_what_is_left_of_an_earlier_turn_is_not_taken_for_this_one(tmp_path: Path) -> None:
    left = {"threadId": "$thread", "turn": {"id": "earlier", "status": "completed"}}
    acts = [{"notify": "turn/completed", "params": left}, BEGIN, SAY, END]
    async with talking(tmp_path, *acts) as (_, thread):
        events = [event async for event in thread.run("x")]

    assert isinstance(events[-1], TurnCompletedNotification)
    assert events[-1].turn.id != "earlier"


@pytest.mark.promise("F12", "F21")
async def test_news_of_a_start_that_comes_after_the_end_leaves_the_thread_free(
    tmp_path: Path,
) -> None:
    late = {"threadId": "$thread", "turn": {"id": "$turn", "status": "inProgress"}}
    acts = [BEGIN, SAY, END, {"notify": "turn/started", "params": late}]
    async with talking(tmp_path, *acts) as (server, thread):
        await thread.ask("x")
        await server.health()  # all that was sent before its answer has been read

        assert thread.active_turn is None
        assert (await thread.ask("y")).text == "Hello"


async def test_options_of_a_turn_reach_the_server(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    picture = LocalImageUserInput("/p.png")
    async with talking(tmp_path, BEGIN, SAY, END) as (_, thread):
        await thread.ask(
            [TextUserInput("look"), picture, MentionUserInput("a", "app://a")],
            model="m",
            effort="high",
            output_schema=schema,
            sandbox="read-only",
            approval_policy="never",
            cwd=tmp_path,
            more=TurnStartParams("replaced", (), model="replaced", personality="friendly"),
        )
        await thread.ask("plain")

    first, second = (message["params"] for message in sent(tmp_path, "turn/start"))
    assert first == {
        "threadId": thread.id,
        "input": [
            {"type": "text", "text": "look"},
            {"type": "localImage", "path": "/p.png"},
            {"type": "mention", "name": "a", "path": "app://a"},
        ],
        "model": "m",
        "effort": "high",
        "outputSchema": schema,
        "sandboxPolicy": {"type": "readOnly"},
        "approvalPolicy": "never",
        "cwd": str(tmp_path),
        "personality": "friendly",
    }
    assert second == {"threadId": thread.id, "input": [{"type": "text", "text": "plain"}]}


async def test_a_thread_is_named_and_archived(tmp_path: Path) -> None:
    scenario: Scenario = {"on": {"thread/name/set": [[{"answer": {}}]]}}
    async with serving(tmp_path, scenario) as server:
        thread = await server.start_thread()
        await thread.set_name("a name")
        await thread.archive()

    assert sent(tmp_path, "thread/name/set")[0]["params"] == {
        "threadId": thread.id,
        "name": "a name",
    }
    assert sent(tmp_path, "thread/archive")[0]["params"] == {"threadId": thread.id}


@pytest.mark.promise("F21")
async def test_compacting_is_a_turn_of_its_own(tmp_path: Path) -> None:
    turn: dict[str, object] = {"id": "compaction", "items": [], "status": "completed"}
    acts: Acts = [
        {"answer": {}},
        {"until": "model/list"},
        {"notify": "turn/started", "params": {"threadId": "$thread", "turn": turn}},
        {"notify": "turn/completed", "params": {"threadId": "$thread", "turn": turn}},
    ]
    statuses: list[str] = []
    async with serving(tmp_path, {"on": {"thread/compact/start": [acts]}}) as server:
        thread = await server.start_thread()

        async def compact() -> None:
            statuses.append((await thread.compact()).status)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(compact)
                await until(lambda: len(sent(tmp_path, "thread/compact/start")) == 1)
                with pytest.raises(TurnInProgress):
                    await thread.ask("x")
                with pytest.raises(ErrorResponse):
                    await server.request("model/list")

    assert statuses == ["completed"]


@pytest.mark.promise("F12")
async def test_a_turn_whose_end_cannot_be_read_ends_by_name(tmp_path: Path) -> None:
    end = {"notify": "turn/completed", "params": {"threadId": "$thread", "turn": {"new": 1}}}
    async with talking(tmp_path, BEGIN, SAY, end) as (server, thread):
        with anyio.fail_after(60), pytest.raises(CodexIncompatible):
            await thread.ask("x")

        assert thread.active_turn is None
        assert (await server.health()).healthy
