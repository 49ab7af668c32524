"""Tasks that accompany a block and end with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from holdfast.failures import ungrouped


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup]:
    """A group whose tasks are cancelled at the end of the block.

    What the block itself raises goes on as it is, in no group.
    """
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    is_over = False
    try:
        yield tasks
    except anyio.get_cancelled_exc_class() as error:
        is_over = True
        tasks.cancel_scope.cancel()
        with ungrouped():
            if not await tasks.__aexit__(type(error), error, error.__traceback__):
                raise
    finally:
        if not is_over:
            tasks.cancel_scope.cancel()
            with ungrouped():
                await tasks.__aexit__(None, None, None)


# Call blocking code of an embedding program in a worker thread.

Result = TypeVar("Result")


async def in_worker(work: Callable[[], Result]) -> Result:
    """Return what the work returns, or raise what it raises.

    Cancelling leaves it behind in its thread: what it returns later is dropped. Use `in_thread`
    for work that must not go on unseen.
    """
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
