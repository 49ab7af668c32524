"""Worker threads for blocking calls, so that the event loop never waits for a disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from holdfast.world import WriterThread

Result = TypeVar("Result")

# One slow disk must not make everyone wait.
_HANDS = 4


class WorkerThreads:
    """A few threads; work goes to the one with the shortest queue.

    Work with a lane goes to the thread of that lane, in order.
    """

    def __init__(self) -> None:
        self._threads = [WriterThread() for _ in range(_HANDS)]
        self._busy = [0] * _HANDS
        self._stack = ExitStack()

    async def do(self, work: Callable[[], Result], *, lane: int | None = None) -> Result:
        """Run work in a thread; returns its result, or raises its failure."""
        found: list[Result] = []

        def done() -> int:
            found.append(work())
            return 0

        chosen = self._busy.index(min(self._busy)) if lane is None else lane % _HANDS
        self._busy[chosen] += 1
        try:
            await self._threads[chosen].run(done)
        finally:
            self._busy[chosen] -= 1
        return found[0]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for thread in self._threads:
                stack.enter_context(thread)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
