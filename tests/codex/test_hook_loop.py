"""Hooks run beside the connection: their results count while somebody waits, and not later."""

from __future__ import annotations

import asyncio
import traceback
from contextlib import suppress

import anyio
import pytest

from holdfast.codex.failures import ApprovalHookCancelled
from holdfast.codex.hook_loop import HookTasks
from holdfast.failures import UnexpectedError
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


async def test_what_a_hook_returns_is_returned() -> None:
    async def hook() -> object:
        await anyio.sleep(1)
        return "yes"

    hooks = HookTasks()

    assert await hooks.run(hook) == "yes"
    assert await hooks.close() == 0


async def test_what_a_hook_raises_is_a_failure_with_its_cause() -> None:
    async def hook() -> object:
        raise KeyError("a bug")

    with pytest.raises(UnexpectedError) as raised:
        await HookTasks().run(hook)

    assert isinstance(raised.value.__cause__, KeyError)


async def test_a_hook_that_is_cancelled_is_a_failure_and_not_a_cancellation() -> None:
    async def hook() -> object:
        raise asyncio.CancelledError

    with pytest.raises(ApprovalHookCancelled):
        await HookTasks().run(hook)


async def test_what_is_not_an_exception_is_a_failure_that_keeps_its_stack() -> None:
    class Outside(BaseException):
        pass

    async def hook() -> object:
        raise Outside

    with pytest.raises(UnexpectedError) as raised:
        await HookTasks().run(hook)

    assert "in hook" in "".join(traceback.format_exception(raised.value))


async def test_leaving_cancels_the_hook_and_does_not_wait_for_it() -> None:
    ended: list[float] = []

    async def hook() -> object:
        try:
            await anyio.sleep(100)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.5)
            ended.append(anyio.current_time())
        return "too late"

    hooks = HookTasks()
    began = anyio.current_time()
    with anyio.move_on_after(1):
        await hooks.run(hook)

    assert (anyio.current_time() - began, ended) == (1, [])
    assert await hooks.close() == 0
    assert ended == [began + 1.5]


async def test_closing_waits_a_moment_for_hooks_and_counts_those_that_go_on() -> None:
    released = anyio.Event()

    async def stubborn() -> object:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()
        return None

    hooks = HookTasks()
    with anyio.move_on_after(1):
        await hooks.run(stubborn)
    began = anyio.current_time()

    assert await hooks.close() == 1
    assert anyio.current_time() - began == 1
    released.set()
    assert await hooks.close() == 0
