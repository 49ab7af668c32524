"""What a person agreed to send where, written down as they said it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from holdfast.nouns import RelativePath
from holdfast.workbench.core.consent import Consent, Scope
from holdfast.workbench.logbook import Logbook
from holdfast.world import Disk

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
        self._lines = Logbook(disk, directory / CONSENTS, _Line)

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
