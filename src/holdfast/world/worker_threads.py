"""Call blocking code of an embedding program in a worker thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

Result = TypeVar("Result")


async def in_worker(work: Callable[[], Result]) -> Result:
    """Return what the work returns, or raise what it raises.

    Cancelling leaves it behind in its thread: what it returns later is dropped. Use `in_thread`
    for work that must not go on unseen.
    """
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
