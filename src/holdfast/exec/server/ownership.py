"""Decide who has a session: attach and detach are one owner's word, and old words are void.

    begin ──▶ Attached ──detach, by its owner only──▶ Detached ──its time is over──▶ forgotten
                 ▲  ╰── attach: takeover, the old owner is put out      │
                 ╰─────────────────────────── attach ───────────────────╯

An owner is the number of a connection; numbers are never used twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.exec.failures import SessionAttached


@dataclass(frozen=True, slots=True)
class Attached:
    """One connection has the session."""

    owner: int


@dataclass(frozen=True, slots=True)
class Unattached:
    """Nobody has it; it is kept until then."""

    until: float


Holding = Attached | Unattached


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """How long a session is kept without a client, and whether a resume takes it over."""

    detached_ttl: float = 30.0
    takeover: bool = True


def attach(
    session: str, holding: Holding, owner: int, policy: SessionPolicy
) -> tuple[Attached, int | None]:
    """Give a session to a connection; say who had it and must be put out."""
    match holding:
        case Unattached():
            return Attached(owner), None
        case Attached(owner=before) if policy.takeover:
            return Attached(owner), before
        case Attached():
            raise SessionAttached(session=session)


def detach(holding: Holding, owner: int, now: float, policy: SessionPolicy) -> Holding:
    """Take note that a connection is gone; whoever was put out before changes nothing."""
    return Unattached(now + policy.detached_ttl) if holding == Attached(owner) else holding


def prolong(holding: Holding, now: float, policy: SessionPolicy) -> Holding:
    """Keep a session as if its client had left just now: something in it is not to be ended."""
    return Unattached(now + policy.detached_ttl) if isinstance(holding, Unattached) else holding


def has_expired(holding: Holding, now: float) -> bool:
    """Whether nobody came back in time."""
    return isinstance(holding, Unattached) and holding.until <= now
