"""Pure rules of session ownership: attach, take over, detach, expire.

    begin ──▶ Attached ──detach, by its owner only──▶ Detached ──its time is over──▶ forgotten
                 ▲  ╰── attach: takeover, the old owner is put out      │
                 ╰─────────────────────────── attach ───────────────────╯

An owner is a connection number, which is never reused: a stale detach changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.exec.failures import SessionAttached


@dataclass(frozen=True, slots=True)
class Attached:
    """A connection owns the session."""

    owner: int


@dataclass(frozen=True, slots=True)
class Unattached:
    """No connection owns the session, which expires at `until`."""

    until: float


Holding = Attached | Unattached


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """Seconds that a session is kept without a client, and whether a resume takes it over."""

    detached_ttl: float = 30.0
    takeover: bool = True


def attach(
    session: str, holding: Holding, owner: int, policy: SessionPolicy
) -> tuple[Attached, int | None]:
    """Give a session to a connection; returns the previous owner, to be evicted."""
    match holding:
        case Unattached():
            return Attached(owner), None
        case Attached(owner=before) if policy.takeover:
            return Attached(owner), before
        case Attached():
            raise SessionAttached(session=session)


def detach(holding: Holding, owner: int, now: float, policy: SessionPolicy) -> Holding:
    """Detach a session; ignored if the connection is not its owner."""
    return Unattached(now + policy.detached_ttl) if holding == Attached(owner) else holding


def prolong(holding: Holding, now: float, policy: SessionPolicy) -> Holding:
    """Extend the timeout of a detached session, as if its client had left just now."""
    return Unattached(now + policy.detached_ttl) if isinstance(holding, Unattached) else holding


def has_expired(holding: Holding, now: float) -> bool:
    """Whether no client came back in time."""
    return isinstance(holding, Unattached) and holding.until <= now
