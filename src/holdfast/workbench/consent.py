"""Decide whether something of a project may go to a provider: only what a person agreed to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import ConsentRequired


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a project is meant: these paths and all below them, or without any the whole."""

    paths: tuple[RelativePath, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths)) or "all"

    def covers(self, other: Scope) -> bool:
        """Whether everything in another one is in this one, too."""
        if not self.paths:
            return True
        return bool(other.paths) and all(
            any(path.within(mine) for mine in self.paths) for path in other.paths
        )


@dataclass(frozen=True, slots=True)
class Sending:
    """What is about to go where, and in which session."""

    project: str
    provider: str
    session: str
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class Consent:
    """That a person agreed, or no longer does; later records of one provider replace earlier."""

    project: str
    provider: str
    scope: Scope
    is_given: bool
    at_ms: int
    session: str | None = None  # without one, it holds until it is withdrawn

    def allows(self, sending: Sending) -> bool:
        """Whether it speaks of this project, provider and session, and of no less."""
        return (
            self.is_given
            and (self.project, self.provider) == (sending.project, sending.provider)
            and self.session in (None, sending.session)
            and self.scope.covers(sending.scope)
        )


def require_consent(sending: Sending, records: Iterable[Consent]) -> None:
    """Let pass what somebody agreed to; refuse all else before anything is sent."""
    if not any(consent.allows(sending) for consent in in_force(records)):
        raise ConsentRequired(
            project=sending.project, provider=sending.provider, scope=str(sending.scope)
        )


def require_no_more(first: Sending, instead: Sending, records: Iterable[Consent]) -> None:
    """Let a retry, a recovery or another provider take over: with consent, and no wider scope."""
    if not first.scope.covers(instead.scope) or first.project != instead.project:
        raise ConsentRequired(
            project=instead.project, provider=instead.provider, scope=str(instead.scope)
        )
    require_consent(instead, records)


def in_force(records: Iterable[Consent]) -> tuple[Consent, ...]:
    """What was agreed to and has not been withdrawn since, in the order in which it was said."""
    found: list[Consent] = []
    for record in records:
        if record.is_given:
            found.append(record)
        else:
            gone = (record.project, record.provider)
            found = [each for each in found if (each.project, each.provider) != gone]
    return tuple(found)
