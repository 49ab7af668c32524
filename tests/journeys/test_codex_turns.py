"""Turns of the real Codex: streamed, typed, one at a time, and stopped when told to."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from holdfast.codex import CompletedTurn, Thread
from holdfast.codex.events import thread_of
from holdfast.codex.failures import TurnInProgress
from holdfast.codex.wire.generated import (
    AddPatchChangeKind,
    AgentMessageDeltaNotification,
    AgentMessageThreadItem,
    CommandExecutionOutputDeltaNotification,
    CommandExecutionThreadItem,
    FileChangeThreadItem,
    FileUpdateChange,
    ItemCompletedNotification,
    ItemStartedNotification,
    ThreadTokenUsageUpdatedNotification,
    TurnCompletedNotification,
    TurnStartedNotification,
    UserMessageThreadItem,
)
from tests.codex.served import Watched, until
from tests.journeys.stage import linux_only, playing
from tests.parts.model_acts import Complete, Gate, Hang, Reply, Say, add_file, run

pytestmark = pytest.mark.anyio
PATIENCE = 60.0


async def keep(thread: Thread, prompt: str, answers: list[CompletedTurn]) -> None:
    with anyio.fail_after(PATIENCE):
        answers.append(await thread.ask(prompt))


@pytest.mark.promise("F20")
async def test_a_plain_turn_streams_typed_events_to_its_end(tmp_path: Path) -> None:
    script: list[Reply] = [[Say("Hello from here", deltas=3), Complete(tokens_in=70, tokens_out=7)]]
    async with playing(tmp_path, script) as (stage, _, thread):
        events = [event async for event in thread.run("hi")]

    assert {thread_of(event) for event in events} == {thread.id}
    started = next(event for event in events if isinstance(event, TurnStartedNotification))
    deltas = [e.delta for e in events if isinstance(e, AgentMessageDeltaNotification)]
    done = [type(e.item) for e in events if isinstance(e, ItemCompletedNotification)]
    (usage,) = (e for e in events if isinstance(e, ThreadTokenUsageUpdatedNotification))
    last = events[-1]
    assert "".join(deltas) == "Hello from here"
    assert done == [UserMessageThreadItem, AgentMessageThreadItem]
    assert usage.token_usage.total.total_tokens == 77
    assert isinstance(last, TurnCompletedNotification)
    assert (last.turn.id, last.turn.status) == (started.turn.id, "completed")
    assert "hi" in stage.model.requests[0].texts


async def test_asking_returns_what_the_turn_left_and_the_next_turn_knows_it(tmp_path: Path) -> None:
    async with playing(tmp_path, [[Say("One.")], [Say("Two.")]]) as (stage, _, thread):
        first = await thread.ask("first")
        second = await thread.ask("second")

    assert (first.status, first.text, first.error) == ("completed", "One.", None)
    assert first.usage is not None and first.usage.total.total_tokens == 110
    assert (second.status, second.text) == ("completed", "Two.")
    assert [t for t in stage.model.requests[1].texts if t in {"first", "One.", "second"}] == [
        "first",
        "One.",
        "second",
    ]


async def test_a_command_is_run_and_told_with_its_output(tmp_path: Path) -> None:
    script: list[Reply] = [[run("echo out; sleep 0.3; echo err >&2; exit 3")], [Say("It failed.")]]
    async with playing(tmp_path, script) as (stage, _, thread):
        events = [event async for event in thread.run("go")]

    deltas = [e.delta for e in events if isinstance(e, CommandExecutionOutputDeltaNotification)]
    (done,) = (
        event.item
        for event in events
        if isinstance(event, ItemCompletedNotification)
        and isinstance(event.item, CommandExecutionThreadItem)
    )
    assert (done.id, done.status, done.exit_code) == ("call_1", "failed", 3)
    assert done.aggregated_output == "out\nerr\n"
    assert "".join(deltas) in "out\nerr\n"
    assert "exited with code 3" in str(stage.model.requests[1].tool_outputs["call_1"])


async def test_a_patch_is_an_item_and_a_file_on_disk(tmp_path: Path) -> None:
    script: list[Reply] = [[add_file("hello.txt", "hello\nworld")], [Say("Written.")]]
    async with playing(tmp_path, script) as (_, _, thread):
        answer = await thread.ask("write it")

    (change,) = (item for item in answer.items if isinstance(item, FileChangeThreadItem))
    path = str(tmp_path / "hello.txt")
    assert change.status == "completed"
    assert change.changes == (FileUpdateChange(AddPatchChangeKind(), "hello\nworld\n", path),)
    assert (tmp_path / "hello.txt").read_text() == "hello\nworld\n"


@pytest.mark.promise("F21")
async def test_a_second_turn_is_refused_here_and_not_mixed_into_the_first(tmp_path: Path) -> None:
    gate = anyio.Event()
    answers: list[CompletedTurn] = []
    script: list[Reply] = [[Gate(gate), Say("First.")], [Say("Third.")]]
    async with playing(tmp_path, script) as (stage, server, thread):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep, thread, "first", answers)
            await stage.model.requested(1)
            twin = await server.resume_thread(thread.id)
            for same in (thread, twin):
                with anyio.fail_after(30), pytest.raises(TurnInProgress) as refused:
                    await same.ask("second")
                assert refused.value.turn == thread.active_turn
            gate.set()
        answers.append(await thread.ask("third"))

    assert [answer.text for answer in answers] == ["First.", "Third."]
    assert "second" not in stage.model.requests[-1].texts


@pytest.mark.promise("F19", "F20")
async def test_two_threads_stream_side_by_side_on_one_connection(tmp_path: Path) -> None:
    order: list[str] = []
    texts: dict[str, str] = {"a": "", "b": ""}
    say = Say("x" * 30, deltas=30, pause=0.01)
    async with playing(tmp_path, [[say], [say]]) as (_, server, one):
        two = await server.start_thread(cwd=tmp_path)

        async def follow(name: str, thread: Thread) -> None:
            async for event in thread.run(name):
                if isinstance(event, AgentMessageDeltaNotification):
                    assert event.thread_id == thread.id
                    order.append(name)
                    texts[name] += event.delta

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, "a", one)
            tasks.start_soon(follow, "b", two)
            answered = 0
            while len(order) < 40:  # requests are answered while both stream
                await server.request("thread/list", {"limit": 1})
                answered += 1

    changes = sum(before != after for before, after in pairwise(order))
    assert texts == {"a": "x" * 30, "b": "x" * 30}
    assert changes > 10
    assert answered > 1


@linux_only
@pytest.mark.parametrize("options", [{}, {"yield_time_ms": 250}, {"tty": True}], ids=str)
async def test_an_interrupted_turn_ends_at_once_and_leaves_no_process(
    options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", PATIENCE)
    answers: list[CompletedTurn] = []
    is_background = "yield_time_ms" in options  # the model no longer waits for the command
    script: list[Reply] = [
        [Say("Wait."), run("exec sleep 600", **options)],
        *([[Hang()]] if is_background else []),
        [Say("After.")],
    ]
    async with playing(tmp_path, script) as (stage, _, thread):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep, thread, "go", answers)
            with anyio.fail_after(PATIENCE):
                await until(lambda: "sleep" in stage.living().values())
            await stage.model.requested(2 if is_background else 1)
            began = time.monotonic()
            await thread.interrupt()
        assert time.monotonic() - began < PATIENCE / 2
        with anyio.fail_after(PATIENCE):
            await until(lambda: "sleep" not in stage.living().values())
        await thread.interrupt()  # nothing runs, so nothing happens
        after = await thread.ask("and now?")

    assert [(answer.status, answer.text) for answer in answers] == [("interrupted", "Wait.")]
    assert (after.status, after.text) == ("completed", "After.")


async def test_all_who_interrupt_at_the_same_time_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.codex.thread.INTERRUPT_LIMIT", PATIENCE)
    answers: list[CompletedTurn] = []
    async with playing(tmp_path, [[Hang()]]) as (stage, _, thread):
        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep, thread, "go", answers)
            await stage.model.requested(1)
            for _ in range(3):
                tasks.start_soon(thread.interrupt)

    assert [answer.status for answer in answers] == ["interrupted"]
    assert time.monotonic() - began < PATIENCE / 2


async def test_an_interrupt_finds_a_turn_that_has_only_just_been_asked_for(tmp_path: Path) -> None:
    answers: list[CompletedTurn] = []
    async with playing(tmp_path, [[Hang()]] * 10) as (_, _, thread):
        for number in range(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep, thread, "go", answers)
                if number % 2:  # the turn has its id, and the server has not begun it
                    await until(lambda: thread.active_turn is not None)
                else:  # not even the answer has come
                    await anyio.lowlevel.checkpoint()
                await thread.interrupt()

    assert [answer.status for answer in answers] == ["interrupted"] * 10


async def test_an_interrupt_that_meets_the_end_of_the_turn_is_no_failure(tmp_path: Path) -> None:
    answers: list[CompletedTurn] = []
    async with playing(tmp_path, [[Say("Done.")]] * 20) as (_, _, thread):
        for number in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep, thread, "go", answers)
                await anyio.sleep(0.04 + number * 0.003)  # about as long as a turn takes
                await thread.interrupt()

    assert len(answers) == 20
    assert {answer.status for answer in answers} <= {"completed", "interrupted"}


@pytest.mark.promise("F27")
async def test_a_turn_is_told_to_telemetry_without_what_was_said(tmp_path: Path) -> None:
    watched = Watched()
    script: list[Reply] = [[Say("pinkelephant"), run("echo pinkelephant")], [Say("pinkelephant")]]
    async with playing(tmp_path, script, telemetry=watched.telemetry) as (_, server, thread):
        events = [event async for event in thread.run("pinkelephant")]
        await server.health()

    assert any(isinstance(event, ItemStartedNotification) for event in events)
    assert "pinkelephant" not in watched.sink.written()
    asked = ["initialize", "thread/start", "turn/start", "thread/list"]
    assert [fields["method"] for fields in watched.of("request.start")] == asked
    assert [(f["method"], f["result"]) for f in watched.of("request.stop")] == [
        (method, "ok") for method in asked
    ]
    told = {str(fields["method"]) for fields in watched.of("notification.received")}
    unknown = {str(fields["method"]) for fields in watched.of("notification.unknown")}
    assert told > {"turn/started", "item/started", "item/agentMessage/delta", "turn/completed"}
    assert {"remoteControl/status/changed", "thread/readState/changed"} <= unknown < told
    assert watched.of("connection.start") == [{"peer": "codex"}]
    assert [fields["reason"] for fields in watched.of("connection.stop")] == ["normal"]
