"""Records of a project: events, batch attempts and consents, as append-only JSON lines.

Reading needs no lock; writers hold the workbench lock, so there is one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

import msgspec

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.consent import Consent, Scope
from holdfast.workbench.store.store import Ports
from holdfast.world import (
    Bookmark,
    Disk,
    Journal,
    RecordSchema,
    Schema,
    disk_failure,
    encode_record,
    make_private,
    read_journal,
)
from holdfast.world.failures import DiskMissing

_VERSION = 1
Line = TypeVar("Line", bound=msgspec.Struct)


class RecordLog(Generic[Line]):
    """Append-only JSON lines, opened for writing on the first append.

    Readers do not repair damage; the next writer does.
    """

    def __init__(self, disk: Disk, path: Path, of: type[Line]) -> None:
        self._disk = disk
        self._path = path
        self._of = of
        self._schema: RecordSchema = Schema(path.stem, _VERSION)
        self._journal: Journal | None = None
        self._bookmark: Bookmark | None = None

    def add(self, line: Line) -> None:
        """Append a record; durable on return, absent when it raises."""
        batch = [encode_record(line)]
        if self._journal is not None:
            self._journal.append(batch)
            return
        self._make_room()
        self._journal = Journal.open(
            self._disk,
            self._path,
            schema=self._schema,
            log=self._path.stem,
            since=self._bookmark,
            batch=batch,
        )

    def all(self) -> Iterator[Line]:
        """Yield all records, oldest first; damaged ones are skipped."""
        try:
            for entry in read_journal(self._disk, self._path, schema=self._schema):
                yield msgspec.json.decode(entry.data, type=self._of)
        except DiskMissing:
            return

    def close(self) -> None:
        """Release the log.

        Its position is remembered, so that reopening does not read all of it.
        """
        if self._journal is not None:
            with suppress(Failure):
                # Then all of it is read.
                self._bookmark = self._journal.bookmark
            self._journal.close()
            self._journal = None

    def _make_room(self) -> None:
        directory = self._path.parent
        if directory.is_dir():
            return
        try:
            make_private(directory)
        except OSError as error:
            raise disk_failure(error, path=str(directory)) from error
        self._disk.sync_directory(directory.parent)


CONSENTS = "consent.jsonl"


class _Line(msgspec.Struct, frozen=True):
    """A consent as stored; without paths it covers the whole project."""

    at: datetime
    project: str
    provider: str
    given: bool
    paths: tuple[str, ...] = ()
    session: str | None = None


class Consents:
    """All consents and withdrawals, in order."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._lines = RecordLog(disk, directory / CONSENTS, _Line)

    def add(self, consent: Consent) -> None:
        """Record a consent or withdrawal; in force on return."""
        self._lines.add(
            _Line(
                at=datetime.fromtimestamp(consent.at_ms / 1000, UTC),
                project=consent.project,
                provider=consent.provider,
                given=consent.is_given,
                paths=tuple(map(str, consent.scope.paths)),
                session=consent.session,
            )
        )

    def all(self) -> tuple[Consent, ...]:
        """All of them, oldest first."""
        return tuple(map(_consent, self._lines.all()))

    def close(self) -> None:
        self._lines.close()


def _consent(line: _Line) -> Consent:
    return Consent(
        project=line.project,
        provider=line.provider,
        scope=Scope(tuple(map(RelativePath.from_text, line.paths))),
        is_given=line.given,
        at_ms=round(line.at.timestamp() * 1000),
        session=line.session,
    )


EVENTS: Final = "workbench_events.jsonl"
ATTEMPTS: Final = "apply_attempts.jsonl"
_KIND: Final = re.compile(r"[a-z]+(_[a-z]+)*", re.ASCII)


class WorkbenchEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event; a `key` occurs only once."""

    at: datetime
    kind: str
    facts: dict[str, object]
    key: str | None = None

    @property
    def at_ms(self) -> int:
        """Time in milliseconds since the epoch."""
        return round(self.at.timestamp() * 1000)


class BatchAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to apply a batch to a draft, and its result.

    `before` and `after` are checkpoints of the draft; `failure` is a failure code.
    """

    at: datetime
    batch: str
    draft: str | None
    outcome: str
    paths: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None
    failure: str | None = None


class WorkbenchRecords:
    """Records of one project."""

    def __init__(self, directory: Path, ports: Ports) -> None:
        self.directory = directory
        self.disk = ports.disk
        self._clock = ports.clock
        self._events = RecordLog(ports.disk, directory / EVENTS, WorkbenchEvent)
        self._attempts = RecordLog(ports.disk, directory / ATTEMPTS, BatchAttempt)
        self._consents = Consents(ports.disk, directory)
        self._keyed: dict[str, WorkbenchEvent] | None = None
        self._noted: dict[str, WorkbenchEvent] = {}

    @classmethod
    def open(cls, directory: Path, ports: Ports | None = None) -> Self:
        """Open the records in a directory, which is created on the first write."""
        return cls(directory, ports or Ports())

    def note(
        self,
        kind: str,
        facts: Mapping[str, object],
        *,
        key: str | None = None,
        is_new: bool = False,
    ) -> WorkbenchEvent:
        """Record an event; if its key exists, return the existing event instead.

        Facts are JSON values; never contents or secrets. `is_new` skips the search for a key that
        was just created.
        """
        assert _KIND.fullmatch(kind), f"{kind!r} is not a valid event kind"
        if key is not None:
            known = self._noted.get(key) if is_new else self.outcome(key)
            if known is not None:
                return known
        event = WorkbenchEvent(at=self.now(), kind=kind, facts=dict(facts), key=key)
        self._events.add(event)
        if key is not None:
            self._noted[key] = event
        return event

    def events(self) -> tuple[WorkbenchEvent, ...]:
        """All events, oldest first."""
        return tuple(self._events.all())

    def outcome(self, key: str) -> WorkbenchEvent | None:
        """Return the event with a key."""
        return self._noted.get(key) or self._known().get(key)

    def attempt(self, attempt: BatchAttempt) -> None:
        self._attempts.add(attempt)

    def attempts(self) -> tuple[BatchAttempt, ...]:
        """All attempts, oldest first."""
        return tuple(self._attempts.all())

    def consent(self, consent: Consent) -> None:
        """Record a consent or withdrawal."""
        self._consents.add(consent)

    def consents(self) -> tuple[Consent, ...]:
        """All consents, oldest first."""
        return self._consents.all()

    def now(self) -> datetime:
        """Current time, in whole milliseconds."""
        return datetime.fromtimestamp(int(self._clock.now() * 1000) / 1000, UTC)

    def close(self) -> None:
        """Release all logs; they reopen on the next write."""
        self._keyed = None
        self._noted.clear()
        self._events.close()
        self._attempts.close()
        self._consents.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _known(self) -> dict[str, WorkbenchEvent]:
        if self._keyed is None:
            self._keyed = {event.key: event for event in self.events() if event.key is not None}
        return self._keyed
