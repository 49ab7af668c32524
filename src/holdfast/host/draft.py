"""The draft of a session: refreshed before each turn, recorded after it.

The workbench is imported on first use, so that a host can answer before there is a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from holdfast import telemetry, workbench
from holdfast.host.journal import JOURNAL, read_session_journal
from holdfast.host.model import TurnClosed
from holdfast.host.ports import DraftRevision, PublishResult
from holdfast.host.report_page import TouchedFile, report_page, report_record, turn_report
from holdfast.workbench.failures import DraftMissing
from holdfast.world import SystemDisk, WriterThread, disk_failure, make_private, replace_file

if TYPE_CHECKING:
    from holdfast.workbench import Workbench
    from holdfast.workbench.model import Revision


# Report of a turn: an HTML page and a JSON record beside the journal, readable offline.

REPORTS: Final = "reports"


def write_report(
    directory: Path, journal: str, closed: TurnClosed, touched: Sequence[TouchedFile] | None
) -> Path:
    """Write the report of a turn, and return the path of its page.

    Secrets are redacted. Writing the same report again replaces it.
    """
    records = (record for _, record in read_session_journal(directory / journal))  # of all turns
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


class WorkbenchDraft:
    """A workbench draft; blocking work runs in a writer thread."""

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
        """Use this draft; reports are written to the directory of the session.

        `with_ignored` is called before each publication: whether to include files that git ignores.
        """
        self._project, self._state = project, state
        self._draft = draft
        self._thread = thread
        self._directory = directory
        self._with_ignored = with_ignored
        self._workbench: Workbench | None = None
        self._before = self._last = 0  # newest revision before the turn, and now

    async def prepare(self) -> None:
        """Bring changes of the project into the draft, and record a revision."""
        await self._apart(self._entered)

    async def revise(self, cause: str) -> DraftRevision | None:
        """Record a revision of the draft; None if nothing changed since `prepare`."""
        made = await self._apart(
            lambda: workbench.revise(self._bench(), self._draft, cause, since=self._last)
        )
        if made is None:
            return None
        self._before, self._last = self._last, made.number
        return DraftRevision(made.number, made.checkpoint)

    async def publish(self, key: str) -> PublishResult:
        """Publish the draft; a repeated call with the same key returns the first result."""
        return await self._apart(lambda: self._published(key))

    async def report(self, closed: TurnClosed, made: DraftRevision | None) -> str:
        """Write the report of a turn, and return its path."""
        return await self._apart(lambda: self._reported(closed, made))

    def _reported(self, closed: TurnClosed, made: DraftRevision | None) -> str:
        touched = None if made is None else self._touched(made)
        return str(write_report(self._directory, JOURNAL, closed, touched))

    def _published(self, key: str) -> PublishResult:
        order = workbench.PublishOrder(
            draft=self._draft, key=key, with_ignored=self._with_ignored()
        )
        done = workbench.publish(self._bench(), order)
        return PublishResult(done.count, done.checkpoint)

    def _touched(self, made: DraftRevision) -> list[TouchedFile]:
        """Return what the turn changed, since the revision before it or since the project."""
        with self._bench().kept_open() as bench:
            draft = next(each for each in workbench.list_drafts(bench) if each.id == self._draft)
            before = [each for each in draft.revisions if each.number <= self._before]
            since = before[-1].checkpoint if before else draft.base
            if since is None:
                return []
            changes = workbench.compare(bench, since, made.checkpoint)
        deed = workbench.change_kind
        return [TouchedFile(str(each.path), deed(each.before, each.after)) for each in changes]

    def _entered(self) -> None:
        try:
            revisions = self._revisions()
        # An unchanged draft is removed when its session ends. The session may be resumed.
        except DraftMissing:
            workbench.reopen_draft(self._bench(), self._draft)
            revisions = self._revisions()
        self._before = self._last = revisions[-1].number if revisions else 0

    def _revisions(self) -> tuple[Revision, ...]:
        with workbench.enter_draft(self._bench(), self._draft) as entered:
            return entered.draft.revisions

    def _bench(self) -> Workbench:
        """Return the workbench, always the same object: it caches how far its log is read."""
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
