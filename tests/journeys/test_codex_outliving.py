"""A real Codex that outlives its connections: what still runs there can be stopped from here."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.codex import AppServer, Thread
from holdfast.codex.failures import TurnInProgress
from holdfast.failures import Failure
from holdfast.rpc import connect_websocket
from tests.codex.served import until
from tests.journeys.stage import Stage, staged
from tests.parts.codex_binary import codex_binary
from tests.parts.model_acts import Gate

pytestmark = pytest.mark.anyio


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
        with anyio.fail_after(60):
            await until(path.exists)
        yield path
    finally:
        server.kill()
        await server.wait()


async def losing(thread: Thread, ends: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        await thread.ask("go")
    ends.append(raised.value)


@pytest.mark.promise("F21", "F26")
async def test_a_turn_found_when_resuming_can_be_interrupted(tmp_path: Path) -> None:
    ends: list[Failure] = []
    async with (
        staged(tmp_path, [[Gate(anyio.Event())]]) as stage,
        listening(stage) as path,
    ):
        wire = await connect_websocket(f"unix://{path}")
        async with AppServer.connect(transport=wire) as server:
            thread = await server.start_thread(cwd=tmp_path)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(losing, thread, ends)
                await stage.model.requested(1)
                await wire.aclose()
        wire = await connect_websocket(f"unix://{path}")
        async with AppServer.connect(transport=wire) as server:
            same = await server.resume_thread(thread.id)
            with pytest.raises(TurnInProgress):
                await same.ask("something else")
            with anyio.fail_after(30):
                await same.interrupt()
            assert same.active_turn is None
