"""Consent: decide whether parts of a project may be sent to a provider. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import ConsentRequired


@dataclass(frozen=True, slots=True)
class Scope:
    """Part of a project: paths with all below them; without paths, all of it."""

    paths: tuple[RelativePath, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths)) or "all"

    def covers(self, other: Scope) -> bool:
        """Whether another scope lies within this one."""
        if not self.paths:
            return True
        return bool(other.paths) and all(
            any(path.within(mine) for mine in self.paths) for path in other.paths
        )


@dataclass(frozen=True, slots=True)
class Sending:
    """A request to send a scope to a provider in a session."""

    project: str
    provider: str
    session: str
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class Consent:
    """A consent, or its withdrawal; a withdrawal ends all earlier consents for the provider."""

    project: str
    provider: str
    scope: Scope
    is_given: bool
    at_ms: int
    session: str | None = None  # without one, it holds until it is withdrawn

    def allows(self, sending: Sending) -> bool:
        """Whether it permits a request."""
        return (
            self.is_given
            and (self.project, self.provider) == (sending.project, sending.provider)
            and self.session in (None, sending.session)
            and self.scope.covers(sending.scope)
        )


def require_consent(sending: Sending, records: Iterable[Consent]) -> None:
    """Raise ConsentRequired unless a consent in force permits the request."""
    if not any(consent.allows(sending) for consent in in_force(records)):
        raise ConsentRequired(
            project=sending.project, provider=sending.provider, scope=str(sending.scope)
        )


def require_no_more(first: Sending, instead: Sending, records: Iterable[Consent]) -> None:
    """Require consent for a retry or another provider, within the scope of the first request."""
    if not first.scope.covers(instead.scope) or first.project != instead.project:
        raise ConsentRequired(
            project=instead.project, provider=instead.provider, scope=str(instead.scope)
        )
    require_consent(instead, records)


def in_force(records: Iterable[Consent]) -> tuple[Consent, ...]:
    """Return the consents that were not withdrawn, in order."""
    found: list[Consent] = []
    for record in records:
        if record.is_given:
            found.append(record)
        else:
            gone = (record.project, record.provider)
            found = [each for each in found if (each.project, each.provider) != gone]
    return tuple(found)
