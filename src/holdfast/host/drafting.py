"""The draft of a session: kept up to date before a turn, and kept as it is after one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.host.ports import Revisited
from holdfast.workbench import Workbench, entering, revise
from holdfast.world import WriterThread

Result = TypeVar("Result")


class DraftedWorkshop:
    """A draft of a project, seen to in a thread of its own: looking at a project takes time."""

    def __init__(self, workbench: Workbench, draft: str, thread: WriterThread) -> None:
        self._workbench = workbench
        self._draft = draft
        self._thread = thread

    async def prepare(self) -> None:
        """Let the draft show what the person has changed meanwhile, and keep how it is."""
        await self._apart(self._entered)

    async def revise(self, cause: str) -> Revisited | None:
        """Keep how the draft is now; None if nothing has changed."""
        made = await self._apart(lambda: revise(self._workbench, self._draft, cause))
        return None if made is None else Revisited(made.number, made.checkpoint)

    def _entered(self) -> None:
        with entering(self._workbench, self._draft):
            pass

    async def _apart(self, work: Callable[[], Result]) -> Result:
        results: list[Result] = []

        def done() -> int:
            results.append(work())
            return 0

        await self._thread.run(done)
        return results[0]
