"""What happened to a project and its drafts, in files that a person can read offline.

Events, attempts and consents are only ever added to. Reading needs no lock; whoever writes holds
the workbench, so there is one writer at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from holdfast.workbench.consents import Consents
from holdfast.workbench.core.consent import Consent
from holdfast.workbench.logbook import Logbook
from holdfast.workbench.store import Means

EVENTS: Final = "workbench_events.jsonl"
ATTEMPTS: Final = "apply_attempts.jsonl"
_KIND: Final = re.compile(r"[a-z]+(_[a-z]+)*", re.ASCII)


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; of one with a `key` there is only ever one."""

    at: datetime
    kind: str
    facts: dict[str, object]
    key: str | None = None

    @property
    def at_ms(self) -> int:
        """When it was, as checkpoints and drafts have it."""
        return round(self.at.timestamp() * 1000)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
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


class Records:
    """The files of one project in which everything that matters is written down."""

    def __init__(self, directory: Path, means: Means) -> None:
        self.directory = directory
        self.disk = means.disk
        self._clock = means.clock
        self._events = Logbook(means.disk, directory / EVENTS, Event)
        self._attempts = Logbook(means.disk, directory / ATTEMPTS, Attempt)
        self._consents = Consents(means.disk, directory)
        self._keyed: dict[str, Event] | None = None
        self._noted: dict[str, Event] = {}

    @classmethod
    def open(cls, directory: Path, means: Means | None = None) -> Self:
        """The records in a directory, which is made when there is something to write."""
        return cls(directory, means or Means())

    def note(
        self,
        kind: str,
        facts: Mapping[str, object],
        *,
        key: str | None = None,
        is_new: bool = False,
    ) -> Event:
        """Write an event down; with a key that was noted before, only return what is there.

        Facts are JSON values, paths among them in their text form; never contents, never secrets.
        A key that `is_new` was made by whoever holds these records now: nobody else noted it.
        """
        assert _KIND.fullmatch(kind), f"{kind!r} is no kind of event"
        if key is not None:
            known = self._noted.get(key) if is_new else self.outcome(key)
            if known is not None:
                return known
        event = Event(at=self.now(), kind=kind, facts=dict(facts), key=key)
        self._events.add(event)
        if key is not None:
            self._noted[key] = event
        return event

    def events(self) -> tuple[Event, ...]:
        """All of them, oldest first."""
        return tuple(self._events.all())

    def outcome(self, key: str) -> Event | None:
        """What was noted with a key, if anything was."""
        return self._noted.get(key) or self._known().get(key)

    def attempt(self, attempt: Attempt) -> None:
        """Write down that a batch was tried."""
        self._attempts.add(attempt)

    def attempts(self) -> tuple[Attempt, ...]:
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

    def _known(self) -> dict[str, Event]:
        if self._keyed is None:
            self._keyed = {event.key: event for event in self.events() if event.key is not None}
        return self._keyed
