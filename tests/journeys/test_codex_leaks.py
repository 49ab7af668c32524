"""Twenty lives of the real Codex, in good and in bad: nothing of them is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from holdfast.codex import AppServer, Thread
from holdfast.codex.wire.generated import AgentMessageDeltaNotification
from holdfast.failures import Failure
from tests.codex.served import until
from tests.journeys.stage import Stage, linux_only, staged
from tests.parts.model_acts import Hang, Reply, Say, run
from tests.parts.model_server import ModelRequest

pytestmark = [pytest.mark.anyio, linux_only]

Life = Callable[[Stage, AppServer, Thread], Awaitable[None]]


def reply(request: ModelRequest) -> Reply:
    """Run a command when told to, and speak for ever when told to."""
    said = request.texts[-1]
    if said == "run" and not request.tool_outputs:
        return [run("exec sleep 600")]
    if said == "stay":
        return [Say("I stay.", finished=False), Hang()]
    return [Say("Done.")]


async def a_good_turn(stage: Stage, server: AppServer, thread: Thread) -> None:
    assert (await thread.ask("go")).status == "completed"


async def a_turn_that_is_interrupted(stage: Stage, server: AppServer, thread: Thread) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(thread.ask, "run")
        await until(lambda: "sleep" in stage.living().values())
        await thread.interrupt()


async def a_turn_that_is_left(stage: Stage, server: AppServer, thread: Thread) -> None:
    async for event in thread.run("stay"):
        if isinstance(event, AgentMessageDeltaNotification):
            break


async def a_turn_that_is_cancelled(stage: Stage, server: AppServer, thread: Thread) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(thread.ask, "run")
        await until(lambda: "sleep" in stage.living().values())
        tasks.cancel_scope.cancel()


async def a_server_that_is_killed(stage: Stage, server: AppServer, thread: Thread) -> None:
    await _ends_by(signal.SIGKILL, stage, thread)


async def a_server_that_is_ended(stage: Stage, server: AppServer, thread: Thread) -> None:
    await _ends_by(signal.SIGTERM, stage, thread)


async def _ends_by(number: signal.Signals, stage: Stage, thread: Thread) -> None:
    with suppress(Failure):
        async for event in thread.run("stay"):
            if isinstance(event, AgentMessageDeltaNotification):
                os.kill(stage.pid_of("codex"), number)
        raise AssertionError("a turn does not end well when its server does not")


async def a_user_who_fails(stage: Stage, server: AppServer, thread: Thread) -> None:
    with suppress(KeyError):
        async for _ in thread.run("stay"):
            raise KeyError("a bug of somebody's own")


LIVES: list[Life] = [
    a_good_turn,
    a_turn_that_is_interrupted,
    a_turn_that_is_left,
    a_turn_that_is_cancelled,
    a_server_that_is_killed,
    a_server_that_is_ended,
    a_user_who_fails,
]


def descriptors() -> list[str]:
    """What this process holds open."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that listed them
            found.append(str(Path("/proc/self/fd", name).readlink()))
    return sorted(found)


def children() -> set[str]:
    """The children of this process, dead ones that nobody waited for included."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for each in lists for pid in each.read_text().split()}


async def test_nothing_is_left_of_twenty_lives(tmp_path: Path) -> None:
    async with staged(tmp_path, reply) as stage:
        async with stage.connect():
            pass  # what is loaded once, and kept, is loaded now
        before = descriptors(), children(), len(anyio.get_running_tasks())
        for number in range(20):
            life = LIVES[number % len(LIVES)]
            with anyio.fail_after(30):
                async with stage.connect() as server:
                    thread = await server.start_thread(cwd=tmp_path)
                    await life(stage, server, thread)
            assert stage.living() == {}, life.__name__
        with anyio.fail_after(30):  # the scripted model closes its ends in its own time
            await until(
                lambda: (descriptors(), children(), len(anyio.get_running_tasks())) == before
            )
