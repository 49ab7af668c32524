"""What happened to a project and its drafts, in files that a person can read offline.

Events, attempts and consents are only ever added to. Reading needs no lock; whoever writes holds
the workbench, so there is one writer at a time.
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

# A log of one kind of record, opened for writing when there is something to write.

_VERSION = 1
Line = TypeVar("Line", bound=msgspec.Struct)


class RecordLog(Generic[Line]):
    """Lines of JSON that are only ever added to, and that a person can read.

    Whoever only reads changes nothing, not even what is damaged; that waits for the next writer.
    """

    def __init__(self, disk: Disk, path: Path, of: type[Line]) -> None:
        self._disk = disk
        self._path = path
        self._of = of
        self._schema: RecordSchema = Schema(path.stem, _VERSION)
        self._journal: Journal | None = None
        self._bookmark: Bookmark | None = None

    def add(self, line: Line) -> None:
        """Keep a line; it is durable when this returns, and not there when it raises."""
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
        """Every line, oldest first; what is damaged is passed over."""
        try:
            for entry in read_journal(self._disk, self._path, schema=self._schema):
                yield msgspec.json.decode(entry.data, type=self._of)
        except DiskMissing:
            return

    def close(self) -> None:
        """Let another writer have it; this one need not read all of it when it writes again."""
        if self._journal is not None:
            with suppress(Failure):  # then all of it is read
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


# What a person agreed to send where, written down as they said it.

CONSENTS = "consent.jsonl"


class _Line(msgspec.Struct, frozen=True):
    """A consent as a person reads it; without paths it is about the whole project."""

    at: datetime
    project: str
    provider: str
    given: bool
    paths: tuple[str, ...] = ()
    session: str | None = None


class Consents:
    """Everything that was ever agreed to or withdrawn, in order."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._lines = RecordLog(disk, directory / CONSENTS, _Line)

    def add(self, consent: Consent) -> None:
        """Write a consent, or its withdrawal, down; it holds once this returns."""
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
        """All of them, oldest first, as `require_consent` takes them."""
        return tuple(map(_consent, self._lines.all()))

    def close(self) -> None:
        """Let another writer have it."""
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
    """Something that happened; of one with a `key` there is only ever one."""

    at: datetime
    kind: str
    facts: dict[str, object]
    key: str | None = None

    @property
    def at_ms(self) -> int:
        """When it was, as checkpoints and drafts have it."""
        return round(self.at.timestamp() * 1000)


class BatchAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try to bring a batch of changes into a draft, and what became of it.

    `before` and `after` are checkpoints of the draft; `failure` is the code of what went wrong.
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
    """The files of one project in which everything that matters is written down."""

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
        """The records in a directory, which is made when there is something to write."""
        return cls(directory, ports or Ports())

    def note(
        self,
        kind: str,
        facts: Mapping[str, object],
        *,
        key: str | None = None,
        is_new: bool = False,
    ) -> WorkbenchEvent:
        """Write an event down; with a key that was noted before, only return what is there.

        Facts are JSON values, paths among them in their text form; never contents, never secrets.
        A key that `is_new` was made by whoever holds these records now: nobody else noted it.
        """
        assert _KIND.fullmatch(kind), f"{kind!r} is no kind of event"
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
        """All of them, oldest first."""
        return tuple(self._events.all())

    def outcome(self, key: str) -> WorkbenchEvent | None:
        """What was noted with a key, if anything was."""
        return self._noted.get(key) or self._known().get(key)

    def attempt(self, attempt: BatchAttempt) -> None:
        """Write down that a batch was tried."""
        self._attempts.add(attempt)

    def attempts(self) -> tuple[BatchAttempt, ...]:
        """All of them, oldest first."""
        return tuple(self._attempts.all())

    def consent(self, consent: Consent) -> None:
        """Write down that a person agreed, or no longer does."""
        self._consents.add(consent)

    def consents(self) -> tuple[Consent, ...]:
        """All of them, oldest first, as `require_consent` takes them."""
        return self._consents.all()

    def now(self) -> datetime:
        """The time, as it is written down: to the millisecond."""
        return datetime.fromtimestamp(int(self._clock.now() * 1000) / 1000, UTC)

    def close(self) -> None:
        """Let another writer have them; they can be used again after that."""
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
