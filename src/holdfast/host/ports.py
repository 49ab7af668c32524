"""Port of the host to the draft of its session."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.host.model import TurnClosed


class DraftRevision(NamedTuple):
    """A revision of the draft."""

    revision: int
    checkpoint: str


class PublishResult(NamedTuple):
    """Number of published paths, and the checkpoint of the project before, if any."""

    paths: int
    checkpoint: str | None


class SessionDraft(Protocol):
    """The draft of a session, before and after a turn."""

    async def prepare(self) -> None:
        """Bring changes of the project into the draft, and record a revision."""
        ...

    async def revise(self, cause: str) -> DraftRevision | None:
        """Record a revision; None if nothing changed."""
        ...

    async def publish(self, key: str) -> PublishResult:
        """Publish the draft; a repeated call with the same key returns the first result."""
        ...

    async def report(self, closed: TurnClosed, made: DraftRevision | None) -> str:
        """Write the report of a turn, and return its path."""
        ...
