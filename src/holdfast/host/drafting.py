"""The draft of a session: kept up to date before a turn, and kept as it is after one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.host.book import JOURNAL
from holdfast.host.core.report import Touched
from holdfast.host.model import TurnClosed
from holdfast.host.ports import Revisited
from holdfast.host.reports import write_report
from holdfast.workbench import Workbench, compare, entering, list_drafts, revise
from holdfast.workbench.model import deed_of
from holdfast.world import WriterThread

Result = TypeVar("Result")


class DraftedWorkshop:
    """A draft of a project, seen to in a thread of its own: looking at a project takes time."""

    def __init__(
        self, workbench: Workbench, draft: str, thread: WriterThread, directory: Path
    ) -> None:
        """See to this draft; reports go into the directory of the session, beside its journal."""
        self._workbench = workbench
        self._draft = draft
        self._thread = thread
        self._directory = directory

    async def prepare(self) -> None:
        """Let the draft show what the person has changed meanwhile, and keep how it is."""
        await self._apart(self._entered)

    async def revise(self, cause: str) -> Revisited | None:
        """Keep how the draft is now; None if nothing has changed."""
        made = await self._apart(lambda: revise(self._workbench, self._draft, cause))
        return None if made is None else Revisited(made.number, made.checkpoint)

    async def report(self, closed: TurnClosed, made: Revisited | None) -> str:
        """Keep a report of a turn that is over, where a person finds it; return where."""
        return await self._apart(lambda: self._reported(closed, made))

    def _reported(self, closed: TurnClosed, made: Revisited | None) -> str:
        touched = None if made is None else self._touched(made)
        return str(write_report(self._directory, JOURNAL, closed, touched))

    def _touched(self, made: Revisited) -> list[Touched]:
        """What a revision changed since the one before, or since the project as it was."""
        draft = next(each for each in list_drafts(self._workbench) if each.id == self._draft)
        before = [each for each in draft.revisions if each.number < made.revision]
        since = before[-1].checkpoint if before else draft.base
        if since is None:
            return []
        changes = compare(self._workbench, since, made.checkpoint)
        return [Touched(str(each.path), deed_of(each.before, each.after)) for each in changes]

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
