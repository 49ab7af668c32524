"""The draft of a session: kept up to date before a turn, and kept as it is after one.

The workbench is loaded when it is first needed: a host answers before there is a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from holdfast import telemetry, workbench
from holdfast.host.journal import JOURNAL, read_book
from holdfast.host.model import TurnClosed
from holdfast.host.ports import Delivered, Revisited
from holdfast.host.report_page import Touched, report_page, report_record, turn_report
from holdfast.workbench.failures import DraftMissing
from holdfast.world import SystemDisk, WriterThread, disk_failure, make_private, replace_file

if TYPE_CHECKING:
    from holdfast.workbench import Workbench
    from holdfast.workbench.model import Revision


# Keep a report of every turn beside the journal: a page and a record, readable offline.

REPORTS: Final = "reports"


def write_report(
    directory: Path, journal: str, closed: TurnClosed, touched: Sequence[Touched] | None
) -> Path:
    """Write the report of a turn from the journal in a directory; return its page.

    Secrets are taken out on the way. Written again, it is there once.
    """
    records = (record for _, record in read_book(directory / journal))  # of every turn
    report = turn_report(records, closed, touched)
    try:
        make_private(directory / REPORTS)
    except OSError as error:
        raise disk_failure(error, path=str(directory / REPORTS)) from error
    redact = telemetry.Redactor().text
    record = telemetry.ValueRedactor(redact).mapping(report_record(report))
    data = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    page = directory / REPORTS / f"turn-{closed.turn}.html"
    html = redact(report_page(report)).encode("utf-8", "backslashreplace")
    replace_file(SystemDisk(), page.with_suffix(".json"), [data])
    replace_file(SystemDisk(), page, [html])
    return page


Result = TypeVar("Result")


class DraftedWorkshop:
    """A draft of a project, seen to in a thread of its own: looking at a project takes time."""

    def __init__(
        self,
        project: Path,
        state: Path,
        draft: str,
        thread: WriterThread,
        directory: Path,
        *,
        with_ignored: Callable[[], bool] = lambda: False,
    ) -> None:
        """See to this draft; reports go into the directory of the session, beside its journal.

        `with_ignored` is asked before each publication whether it takes what git ignores along.
        """
        self._project, self._state = project, state
        self._draft = draft
        self._thread = thread
        self._directory = directory
        self._with_ignored = with_ignored
        self._workbench: Workbench | None = None
        self._before = self._last = 0  # the last revision before the turn, and by now

    async def prepare(self) -> None:
        """Let the draft show what the person has changed meanwhile, and keep how it is."""
        await self._apart(self._entered)

    async def revise(self, cause: str) -> Revisited | None:
        """Keep how the draft is now; None if nothing has changed since it was prepared."""
        made = await self._apart(
            lambda: workbench.revise(self._bench(), self._draft, cause, since=self._last)
        )
        if made is None:
            return None
        self._before, self._last = self._last, made.number
        return Revisited(made.number, made.checkpoint)

    async def publish(self, key: str) -> Delivered:
        """Let the project have what the draft changes; done before under this key, it is so."""
        return await self._apart(lambda: self._published(key))

    async def report(self, closed: TurnClosed, made: Revisited | None) -> str:
        """Keep a report of a turn that is over, where a person finds it; return where."""
        return await self._apart(lambda: self._reported(closed, made))

    def _reported(self, closed: TurnClosed, made: Revisited | None) -> str:
        touched = None if made is None else self._touched(made)
        return str(write_report(self._directory, JOURNAL, closed, touched))

    def _published(self, key: str) -> Delivered:
        order = workbench.PublishOrder(
            draft=self._draft, key=key, with_ignored=self._with_ignored()
        )
        done = workbench.publish(self._bench(), order)
        return Delivered(done.count, done.checkpoint)

    def _touched(self, made: Revisited) -> list[Touched]:
        """What a turn changed since the revision before it, or since the project as it was."""
        with self._bench().kept_open() as bench:
            draft = next(each for each in workbench.list_drafts(bench) if each.id == self._draft)
            before = [each for each in draft.revisions if each.number <= self._before]
            since = before[-1].checkpoint if before else draft.base
            if since is None:
                return []
            changes = workbench.compare(bench, since, made.checkpoint)
        deed = workbench.change_kind
        return [Touched(str(each.path), deed(each.before, each.after)) for each in changes]

    def _entered(self) -> None:
        try:
            revisions = self._revisions()
        except DraftMissing:  # one without changes goes when its session is ended: it goes on
            workbench.reopen_draft(self._bench(), self._draft)
            revisions = self._revisions()
        self._before = self._last = revisions[-1].number if revisions else 0

    def _revisions(self) -> tuple[Revision, ...]:
        with workbench.enter_draft(self._bench(), self._draft) as entered:
            return entered.draft.revisions

    def _bench(self) -> Workbench:
        """Always the same: it remembers how far it has read its log."""
        if self._workbench is None:
            self._workbench = workbench.Workbench.at(self._project, self._state)
        return self._workbench

    async def _apart(self, work: Callable[[], Result]) -> Result:
        results: list[Result] = []

        def done() -> int:
            results.append(work())
            return 0

        await self._thread.run(done)
        return results[0]
