"""A real Codex that outlives its connections: the running turn and its question come back."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.codex import Answer, Approval, AppServer, Decision, Thread
from holdfast.codex.core.turns import Gathered
from holdfast.codex.failures import TurnInProgress
from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionLost
from tests.codex.served import until
from tests.journeys.stage import Stage, staged
from tests.journeys.websocket import WebSocket
from tests.parts.codex_binary import codex_binary
from tests.parts.model_acts import Gate, Say, run

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@asynccontextmanager
async def listening(stage: Stage) -> AsyncIterator[Path]:
    """A server on a Unix socket, which nobody's leaving ends."""
    path = stage.place / "socket"
    command = [codex_binary(), "app-server", "--listen", f"unix://{path}"]
    quiet = subprocess.DEVNULL
    server = await anyio.open_process(
        command, env=stage.env, stdin=quiet, stdout=quiet, stderr=quiet
    )
    try:
        with anyio.fail_after(20):
            await until(path.exists)
        yield path
    finally:
        server.kill()
        await server.wait()


async def losing(thread: Thread, ends: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        await thread.ask("go")
    ends.append(raised.value)


async def rest(thread: Thread) -> Answer | None:
    """What is left of the running turn."""
    gathered = Gathered()
    answer = None
    async for event in thread.follow():
        answer = gathered.take(event)
    return answer


@pytest.mark.promise("F2", "F26")
async def test_a_running_turn_goes_on_and_can_be_followed_again(tmp_path: Path) -> None:
    gate = anyio.Event()
    ends: list[Failure] = []
    async with (
        staged(tmp_path, [[Say("Before."), Gate(gate), Say("After.")]]) as stage,
        listening(stage) as path,
    ):
        wire = await WebSocket.dial(path)
        async with AppServer.connect(transport=wire) as server:
            thread = await server.start_thread(cwd=tmp_path)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(losing, thread, ends)
                await stage.model.requested(1)
                turn = thread.active_turn
                await wire.cut()
        async with AppServer.connect(transport=await WebSocket.dial(path)) as server:
            same = await server.resume_thread(thread.id)
            assert (same.id, same.active_turn) == (thread.id, turn)
            with pytest.raises(TurnInProgress):
                await same.ask("something else")
            gate.set()
            answer = await rest(same)
            assert same.active_turn is None

    assert [type(end) for end in ends] == [ConnectionLost]
    assert answer is not None
    assert (answer.status, answer.text) == ("completed", "After.")


@pytest.mark.promise("F15", "F26")
async def test_a_pending_approval_is_asked_again(tmp_path: Path) -> None:
    asked: list[Approval] = []
    hesitating = anyio.Event()
    ends: list[Failure] = []

    async def hesitate(approval: Approval) -> Decision:
        hesitating.set()
        await anyio.sleep(600)
        return Decision.DECLINE

    async def accept(approval: Approval) -> Decision:
        asked.append(approval)
        return Decision.ACCEPT

    async with (
        staged(tmp_path, [[run("touch made.txt")], [Say("Made.")]]) as stage,
        listening(stage) as path,
    ):
        wire = await WebSocket.dial(path)
        async with AppServer.connect(transport=wire, approvals=hesitate) as server:
            thread = await server.start_thread(cwd=tmp_path, approval_policy="untrusted")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(losing, thread, ends)
                await hesitating.wait()
                await wire.cut()
        wire = await WebSocket.dial(path)
        async with AppServer.connect(transport=wire, approvals=accept) as server:
            answer = await rest(await server.resume_thread(thread.id))

    assert [approval.item for approval in asked] == ["call_1"]
    assert answer is not None
    assert (answer.status, answer.text) == ("completed", "Made.")
    assert (tmp_path / "made.txt").exists()


async def test_a_turn_found_when_resuming_can_be_interrupted(tmp_path: Path) -> None:
    ends: list[Failure] = []
    async with (
        staged(tmp_path, [[Gate(anyio.Event())]]) as stage,
        listening(stage) as path,
    ):
        wire = await WebSocket.dial(path)
        async with AppServer.connect(transport=wire) as server:
            thread = await server.start_thread(cwd=tmp_path)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(losing, thread, ends)
                await stage.model.requested(1)
                await wire.cut()
        async with AppServer.connect(transport=await WebSocket.dial(path)) as server:
            same = await server.resume_thread(thread.id)
            with anyio.fail_after(4):
                await same.interrupt()
            assert same.active_turn is None
