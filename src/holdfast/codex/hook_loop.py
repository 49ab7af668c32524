"""Run approval hooks as asyncio tasks outside every task group.

A hook is code of the embedding program: it may be cancelled, refuse to be, or sit in a thread. A
task group would cancel the whole connection with a cancelled hook, and would wait for a hook that
cannot be cancelled. So each hook has a task of its own, whose result counts only while the
server's request is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from holdfast.codex.failures import ApprovalHookCancelled
from holdfast.failures import boundary

CLOSE_GRACE_SECONDS = 1.0


class HookTasks:
    """The hooks of one connection that have not returned yet."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    async def run(self, call: Callable[[], Awaitable[object]]) -> object:
        """Return what a hook returns; raise a failure when it raises or is cancelled.

        Cancelling this cancels the hook and does not wait for it: a later result is dropped.
        """
        task = asyncio.create_task(_call(call))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait((task,))
        finally:
            task.cancel()  # no effect on a task that is done
        if task.cancelled():
            raise ApprovalHookCancelled
        error = task.exception()
        if error is not None and not isinstance(error, Exception):
            # Left as it is, it would end the connection: a boundary lets it pass.
            with boundary("codex.approval"):
                raise RuntimeError(f"the hook raised {type(error).__name__}") from error
        return task.result()

    async def close(self) -> int:
        """Cancel all hooks, wait a moment for them to end, and return how many did not."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._tasks, timeout=CLOSE_GRACE_SECONDS)
        return len(self._tasks)

    def _forget(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: asyncio would complain on stderr otherwise


async def _call(call: Callable[[], Awaitable[object]]) -> object:
    with boundary("codex.approval"):
        return await call()
