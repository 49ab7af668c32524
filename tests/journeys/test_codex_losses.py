"""The real Codex dies, ends, stops or is abandoned: who learns what, and what survives."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.codex import Approval, ApprovalDecision, ConnectionState, Thread
from holdfast.codex.wire.generated import AgentMessageDeltaNotification
from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, ErrorResponse, RequestTimedOut
from tests.codex.served import Watched, until
from tests.journeys.stage import linux_only, playing, staged
from tests.parts.model_acts import Hang, Reply, Say, run

pytestmark = [pytest.mark.anyio, linux_only]

HALF: Reply = [Say("half a word", finished=False), Hang()]


@asynccontextmanager
async def streaming(thread: Thread) -> AsyncIterator[list[Failure]]:
    """A turn in the middle of a message; at the end of the block, what its reader got."""
    ends: list[Failure] = []
    spoke = anyio.Event()

    async def follow() -> None:
        with pytest.raises(Failure) as raised:
            async for event in thread.run("go"):
                if isinstance(event, AgentMessageDeltaNotification) and "half" in event.delta:
                    spoke.set()
        ends.append(raised.value)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await spoke.wait()
            yield ends


async def ending(call: Callable[[], Awaitable[object]], ends: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        await call()
    ends.append(raised.value)


@pytest.mark.promise("F2")
async def test_everyone_learns_that_the_server_was_killed(tmp_path: Path) -> None:
    watched = Watched()
    async with playing(tmp_path, [HALF, HALF], telemetry=watched.telemetry) as (stage, server, one):
        two = await server.start_thread(cwd=tmp_path)

        async def request() -> None:
            await server.request("command/exec", {"command": ["sleep", "600"]})

        async def follow_all() -> None:
            async for _ in server.notifications():
                pass

        async with streaming(one) as ends, streaming(two) as more:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ending, request, ends)
                tasks.start_soon(ending, follow_all, ends)
                await until(lambda: "sleep" in stage.living().values())
                os.kill(stage.pid_of("codex"), signal.SIGKILL)

        lost = [(type(end), getattr(end, "status", None)) for end in (*ends, *more)]
        assert lost == [(ConnectionLost, -signal.SIGKILL)] * 4
        assert server.state is ConnectionState.CRASHED
        assert server.failure == ends[0]
        assert not (await server.health()).healthy
        assert (one.active_turn, two.active_turn) == (None, None)
        for refused in (one.ask("again"), server.start_thread(), server.resume_thread(one.id)):
            with pytest.raises(ConnectionLost):
                await refused
    assert stage.living() == {}
    assert [fields["reason"] for fields in watched.of("connection.stop")] == ["killed"]


@pytest.mark.promise("F26")
async def test_history_and_id_survive_a_kill_and_the_running_turn_does_not(tmp_path: Path) -> None:
    script: list[Reply] = [
        [Say("First answer.")],
        [Say("Found it."), run("echo finding")],
        HALF,
        [Say("Second answer.")],
    ]
    async with staged(tmp_path, script) as stage:
        async with stage.connect() as server:
            thread = await server.start_thread(cwd=tmp_path)
            await thread.ask("first question")
            async with streaming(thread):
                os.kill(stage.pid_of("codex"), signal.SIGKILL)
        async with stage.connect() as server:
            same = await server.resume_thread(thread.id)
            assert (same.id, same.active_turn) == (thread.id, None)
            answer = await same.ask("second question")

    told = stage.model.requests[-1]
    assert (answer.status, answer.text) == ("completed", "Second answer.")
    assert {"first question", "First answer.", "Found it.", "second question"} <= set(told.texts)
    assert "finding" in str(told.tool_outputs["call_1"])
    assert not any("half a word" in text for text in told.texts)


@pytest.mark.promise("F26")
async def test_a_fork_is_kept_knows_what_was_said_and_leaves_the_first_alone(
    tmp_path: Path,
) -> None:
    script: list[Reply] = [[Say(f"Answer {number}.")] for number in (1, 2, 3)]
    async with staged(tmp_path, script) as stage:
        async with stage.connect() as server:
            thread = await server.start_thread(cwd=tmp_path)
            await thread.ask("first question")
        async with stage.connect() as server:
            fork = await server.fork_thread(thread.id)
            os.kill(stage.pid_of("codex"), signal.SIGKILL)
        for each, question in ((fork.id, "of the fork"), (thread.id, "of the first")):
            async with stage.connect() as server:
                await (await server.resume_thread(each)).ask(question)

    of_fork, of_first = (set(request.texts) for request in stage.model.requests[-2:])
    assert fork.id != thread.id
    assert {"first question", "Answer 1.", "of the fork"} <= of_fork
    assert {"first question", "Answer 1.", "of the first"} <= of_first
    assert {"of the fork", "Answer 2."}.isdisjoint(of_first)


@pytest.mark.promise("F26")
async def test_an_approval_that_was_pending_is_not_asked_again(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def hesitate(approval: Approval) -> ApprovalDecision:
        asked.set()
        await anyio.sleep(600)
        return ApprovalDecision.ACCEPT

    async def forbid(approval: Approval) -> ApprovalDecision:
        raise AssertionError("nothing may be asked")

    async with staged(tmp_path, [[run("touch made.txt")], [Say("Then not.")]]) as stage:
        ends: list[Failure] = []
        async with stage.connect(approvals=hesitate) as server:
            thread = await server.start_thread(cwd=tmp_path, approval_policy="untrusted")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ending, lambda: thread.ask("make it"), ends)
                await asked.wait()
                os.kill(stage.pid_of("codex"), signal.SIGKILL)
        watched = Watched()
        async with stage.connect(approvals=forbid, telemetry=watched.telemetry) as server:
            same = await server.resume_thread(thread.id)
            answer = await same.ask("go on")

    assert [type(end) for end in ends] == [ConnectionLost]
    assert (answer.status, answer.text) == ("completed", "Then not.")
    assert watched.of("approval.requested") == []
    assert stage.model.requests[-1].tool_outputs["call_1"] == "aborted"
    assert not (tmp_path / "made.txt").exists()


@pytest.mark.promise("F26", "F8")
async def test_a_thread_that_never_had_a_turn_cannot_be_resumed(tmp_path: Path) -> None:
    async with staged(tmp_path, []) as stage:
        async with stage.connect() as server:
            thread = await server.start_thread(cwd=tmp_path)
            os.kill(stage.pid_of("codex"), signal.SIGKILL)
        async with stage.connect() as server:
            with pytest.raises(ErrorResponse) as refused:
                await server.resume_thread(thread.id)
            assert (await server.health()).healthy

    assert refused.value.method == "thread/resume"
    assert thread.id in refused.value.error_message


@pytest.mark.promise("F26")
async def test_a_thread_has_one_writer_until_that_one_is_gone(tmp_path: Path) -> None:
    async with staged(tmp_path, [[Say("One.")], [Say("Two.")]]) as stage:
        async with stage.connect() as server:
            thread = await server.start_thread(cwd=tmp_path)
            await thread.ask("first")
            async with stage.connect() as other:
                with pytest.raises(ErrorResponse):
                    await other.resume_thread(thread.id)
        async with stage.connect() as server:
            same = await server.resume_thread(thread.id)
            assert (await same.ask("second")).text == "Two."


@pytest.mark.promise("F3")
async def test_a_server_that_ends_with_status_0_in_the_middle_ends_the_turn(tmp_path: Path) -> None:
    async with playing(tmp_path, [HALF]) as (stage, server, thread):
        async with streaming(thread) as ends:
            os.kill(stage.pid_of("codex"), signal.SIGTERM)

        assert [type(end) for end in ends] == [ConnectionClosed]
        assert server.state is ConnectionState.CLOSED
        with pytest.raises(ConnectionClosed):
            await thread.ask("again")
    assert stage.living() == {}


@pytest.mark.promise("F7", "F10")
async def test_a_stopped_server_times_out_and_is_usable_when_it_goes_on(tmp_path: Path) -> None:
    watched = Watched()
    async with playing(tmp_path, [[Say("Here.")]], telemetry=watched.telemetry) as (
        stage,
        server,
        thread,
    ):
        pid = stage.pid_of("codex")
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(RequestTimedOut) as late:
            await server.request("thread/list", {"limit": 1}, timeout=0.3)
        assert server.state is ConnectionState.CONNECTED
        os.kill(pid, signal.SIGCONT)
        with anyio.fail_after(60):
            await until(lambda: bool(watched.of("connection.error")))
        assert await server.request("thread/list", {"limit": 1}) is not None
        answer = await thread.ask("still there?")

    assert late.value == RequestTimedOut(method="thread/list", limit=0.3)
    assert watched.of("connection.error") == [{"peer": "codex", "error_code": "unmatched"}]
    assert (answer.status, answer.text) == ("completed", "Here.")


@pytest.mark.promise("F7")
async def test_a_turn_whose_start_is_slow_is_not_stopped(tmp_path: Path) -> None:
    async with playing(tmp_path, [[Say("Started late.")]]) as (stage, server, thread):
        pid = stage.pid_of("codex")
        os.kill(pid, signal.SIGSTOP)
        content = [{"type": "text", "text": "go", "text_elements": []}]
        with pytest.raises(RequestTimedOut):
            params = {"threadId": thread.id, "input": content}
            await server.request("turn/start", params, timeout=0.2)
        os.kill(pid, signal.SIGCONT)
        await stage.model.requested(1)
        with anyio.fail_after(60):
            await until(lambda: thread.active_turn is None)
        turns = await server.request("thread/turns/list", {"threadId": thread.id})

    assert isinstance(turns, dict)
    assert [turn["status"] for turn in turns["data"]] == ["completed"]


@pytest.mark.long
async def test_a_server_that_is_stopped_for_good_is_ended_with_the_block(tmp_path: Path) -> None:
    async with staged(tmp_path, []) as stage:
        with anyio.fail_after(30):
            async with stage.connect():
                os.kill(stage.pid_of("codex"), signal.SIGSTOP)
        assert stage.living() == {}
