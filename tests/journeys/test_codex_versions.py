"""All that the SDK does, with the oldest Codex that is supported and with the newest."""

from __future__ import annotations

import base64
import os
import signal
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from holdfast.codex import (
    AgentMessageDeltaNotification,
    Approval,
    ApprovalDecision,
    CommandApproval,
    CommandExecutionThreadItem,
    CompletedTurn,
    ImageUserInput,
    LocalImageUserInput,
    MentionUserInput,
    TextUserInput,
    Thread,
    ThreadListParams,
    ThreadStartParams,
    TurnCompletedNotification,
)
from holdfast.codex.failures import ThreadClosed, TurnInProgress
from holdfast.rpc.failures import ConnectionLost
from tests.codex.served import until
from tests.journeys.stage import linux_only, playing, staged
from tests.parts.codex_binary import OLDEST, VERSION
from tests.parts.model_acts import Hang, Reply, Say, add_file, run

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("version", [OLDEST, VERSION])]

PATIENCE = 60.0
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_threads_are_kept_listed_and_put_away(version: str, tmp_path: Path) -> None:
    script: list[Reply] = [[Say("One.")], [Say("Two.")], [Say("Three.")], [Say("Summary.")]]
    async with playing(tmp_path, script, version=version) as (_, server, thread):
        first = await thread.ask("one")
        await thread.set_name("a name")
        page = await server.list_threads(more=ThreadListParams(cwd=str(tmp_path)))
        fork = await server.fork_thread(thread.id)
        second = await fork.ask("two")
        models = await server.models()
        await thread.archive()
        with pytest.raises(ThreadClosed):
            await thread.ask("nobody hears it")
        left = await server.list_threads()
        await server.unarchive_thread(thread.id)
        again = await server.resume_thread(thread.id, model="gpt-5.5")
        third = await again.ask("three")
        compacted = await again.compact()
        known = server.version

    assert [answer.text for answer in (first, second, third)] == ["One.", "Two.", "Three."]
    assert [(it.id, it.name) for it in page.data] == [(thread.id, "a name")]
    assert thread.id not in {it.id for it in left.data}
    assert models
    assert compacted.status == "completed"
    assert known == version


async def test_a_turn_runs_with_its_own_options(version: str, tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    picture = tmp_path / "pixel.png"
    picture.write_bytes(PIXEL)
    inputs = [
        TextUserInput("look"),
        LocalImageUserInput(str(picture)),
        ImageUserInput(url=f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"),
        MentionUserInput("notes", str(tmp_path)),
    ]
    script: list[Reply] = [[Say('{"n":1}')], [run("touch made.txt")], [Say("Refused.")], [Say("x")]]
    async with playing(tmp_path, script, version=version) as (stage, _, thread):
        first = await thread.ask(
            inputs, model="gpt-5.4", effort="low", summary="detailed", output_schema=schema
        )
        second = await thread.ask("write", sandbox="read-only", approval_policy="never")

    assert first.text == '{"n":1}'
    asked = stage.model.requests[0].body
    assert (asked["model"], asked["reasoning"]["effort"]) == ("gpt-5.4", "low")
    assert asked["text"]["format"]["schema"] == schema
    parts = [part for item in asked["input"] for part in item.get("content", [])]
    assert sum(part.get("type") == "input_image" for part in parts) == 2
    assert "format" not in stage.model.requests[1].body.get("text", {})
    assert second.status == "completed"
    assert not (tmp_path / "made.txt").exists()


async def test_a_thread_starts_with_the_sandbox_that_more_says(
    version: str, tmp_path: Path
) -> None:
    script: list[Reply] = [[run("touch made.txt")], [Say("Refused.")]]
    async with staged(tmp_path, script, version=version) as stage, stage.connect() as server:
        more = ThreadStartParams(cwd=str(tmp_path), sandbox="read-only")
        thread = await server.start_thread(more=more)
        await thread.ask("write")

    assert not (tmp_path / "made.txt").exists()


@pytest.mark.parametrize("decision", [ApprovalDecision.ACCEPT, ApprovalDecision.DECLINE])
async def test_approvals_are_asked_and_meant(
    decision: ApprovalDecision, version: str, tmp_path: Path
) -> None:
    asked: list[Approval] = []

    async def decide(approval: Approval) -> ApprovalDecision:
        asked.append(approval)
        return decision

    script: list[Reply] = [[run("touch made.txt")], [add_file("added.txt", "x")], [Say("Done.")]]
    async with staged(tmp_path, script, version=version) as stage:
        async with stage.connect(approvals=decide) as server:
            thread = await server.start_thread(cwd=tmp_path, approval_policy="untrusted")
            answer = await thread.ask("make it")

    assert answer.status == "completed"
    assert isinstance(asked[0], CommandApproval)
    assert "touch made.txt" in asked[0].command
    made = [(tmp_path / name).exists() for name in ("made.txt", "added.txt")]
    assert made == [decision is ApprovalDecision.ACCEPT] * 2


async def test_a_raw_start_is_followed_from_its_beginning(version: str, tmp_path: Path) -> None:
    async with playing(tmp_path, [[Say("Raw.")]], version=version) as (_, server, thread):
        text: list[dict[str, object]] = [{"type": "text", "text": "go", "text_elements": []}]
        await server.request("turn/start", {"threadId": thread.id, "input": text})
        with anyio.fail_after(PATIENCE):
            events = [event async for event in thread.follow()]

    assert isinstance(events[-1], TurnCompletedNotification)


async def test_a_review_by_a_raw_request_is_followed_from_its_beginning(
    version: str, tmp_path: Path
) -> None:
    async with playing(tmp_path, [[Say("Looks good.")]], version=version) as (_, server, thread):
        target = {"type": "custom", "instructions": "look"}
        await server.request("review/start", {"threadId": thread.id, "target": target})
        with anyio.fail_after(PATIENCE):
            events = [event async for event in thread.follow()]

    assert isinstance(events[-1], TurnCompletedNotification)


@pytest.mark.promise("F21")
@pytest.mark.parametrize("resume", ["typed", "raw", "raw-without-turns"])
async def test_a_thread_that_is_resumed_starts_no_turn_beside_the_running_one(
    resume: str, version: str, tmp_path: Path
) -> None:
    script: list[Reply] = [[Say("One.")], [Say("half", finished=False), Hang()]]
    async with playing(tmp_path, script, version=version) as (stage, server, thread):
        await thread.ask("one")
        async with aclosing(thread.run("two")) as events:
            await anext(events)
            await stage.model.requested(2)
        await server.request("thread/unsubscribe", {"threadId": thread.id})
        with pytest.raises(ThreadClosed):
            await thread.interrupt()
        if resume == "typed":
            await server.resume_thread(thread.id)
        else:
            is_short = resume == "raw-without-turns"
            params = {"threadId": thread.id, "excludeTurns": is_short}
            await server.request("thread/resume", params)
        with pytest.raises(TurnInProgress):
            await thread.ask("three")

    assert not any("three" in request.texts for request in stage.model.requests)


@linux_only
async def test_an_interrupt_leaves_the_processes_of_earlier_turns(
    version: str, tmp_path: Path
) -> None:
    script: list[Reply] = [
        [run("exec sleep 1111", yield_time_ms=250, call_id="early")],
        [Say("It runs.")],
        [run("exec sleep 2222", call_id="late")],
    ]
    answers: list[CompletedTurn] = []
    has_ended = False
    async with playing(tmp_path, script, version=version) as (stage, _, thread):

        def sleeping() -> set[str]:
            pids = [pid for pid, program in stage.living().items() if program == "sleep"]
            return {Path(f"/proc/{pid}/cmdline").read_bytes().decode()[-5:-1] for pid in pids}

        async def ask() -> None:
            answers.append(await thread.ask("again"))

        await thread.ask("start it")
        assert sleeping() == {"1111"}
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await until(lambda: sleeping() == {"1111", "2222"})
                has_ended = await thread.interrupt()
            await until(lambda: "2222" not in sleeping())
        assert sleeping() == {"1111"}

    assert has_ended
    assert [answer.status for answer in answers] == ["interrupted"]


@pytest.mark.promise("F21")
async def test_a_start_that_was_given_up_is_not_mixed_with_the_next(
    version: str, tmp_path: Path
) -> None:
    async with playing(tmp_path, [[Hang()], [Say("Second.")]], version=version) as (
        stage,
        _,
        thread,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "first prompt")
            await anyio.lowlevel.checkpoint()  # it is sent, and cannot have been answered
            tasks.cancel_scope.cancel()
        with pytest.raises(TurnInProgress):
            await thread.ask("second prompt")
        await stage.model.requested(1)
        assert await thread.interrupt()
        answer = await thread.ask("second prompt")

    assert answer.text == "Second."
    assert "second prompt" not in stage.model.requests[0].texts


async def test_a_turn_ends_by_name_when_its_connection_unsubscribes(
    version: str, tmp_path: Path
) -> None:
    async with playing(tmp_path, [[Say("x", finished=False), Hang()]], version=version) as (
        stage,
        server,
        thread,
    ):
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_closed, thread)
                await stage.model.requested(1)
                await until(lambda: thread.active_turn is not None)
                await server.request("thread/unsubscribe", {"threadId": thread.id})


async def _closed(thread: Thread) -> None:
    with pytest.raises(ThreadClosed):
        await thread.ask("x")


@pytest.mark.promise("F26")
async def test_a_thread_goes_on_after_a_crash(version: str, tmp_path: Path) -> None:
    script: list[Reply] = [
        [run("echo hi")],
        [Say("One.")],
        [Say("half", finished=False), Hang()],
        [Say("Two.")],
    ]
    async with staged(tmp_path, script, version=version) as stage:
        async with stage.connect() as server:
            thread = await server.start_thread(cwd=tmp_path)
            first = await thread.ask("one")
            with anyio.fail_after(PATIENCE), pytest.raises(ConnectionLost):
                async for event in thread.run("crash"):
                    if isinstance(event, AgentMessageDeltaNotification):
                        os.kill(stage.pid_of("codex"), signal.SIGKILL)
        async with stage.connect() as server:
            again = await server.resume_thread(thread.id, cwd=tmp_path)
            second = await again.ask("two")

    assert (first.text, second.text) == ("One.", "Two.")
    assert any(isinstance(item, CommandExecutionThreadItem) for item in first.items)
    assert "one" in stage.model.requests[-1].texts
