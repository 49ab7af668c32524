"""Tasks that accompany a block and end with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from holdfast.failures import ungrouped


@asynccontextmanager
async def companions() -> AsyncGenerator[TaskGroup]:
    """A group whose tasks are cancelled at the end of the block.

    What the block itself raises goes on as it is, in no group.
    """
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    try:
        yield tasks
    except anyio.get_cancelled_exc_class() as error:
        tasks.cancel_scope.cancel()
        with ungrouped():
            if not await tasks.__aexit__(type(error), error, error.__traceback__):
                raise
    except BaseException:
        await _end(tasks)
        raise
    else:
        await _end(tasks)


async def _end(tasks: TaskGroup) -> None:
    tasks.cancel_scope.cancel()
    with ungrouped():
        await tasks.__aexit__(None, None, None)
