"""Decide from what is known how a connection ended, or that it is too early to tell."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about a stream that stopped.

    `at_end` says that nothing more can be read, `error` why reading or writing failed. `status`
    is that of the process at the other end: negative for the signal that killed it, None while
    it lives or if there is none. `waited` says that more time will not tell more.
    """

    at_end: bool = False
    error: str = ""
    status: int | None = None
    waited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """What a connection leaves behind for whoever must explain its end."""

    stderr: str = ""
    partial: str = ""


def of_child(evidence: Evidence, remains: Remains) -> Failure | None:
    """How a process ended the connection; None while it may yet say more.

    The end of its output comes before its status, and its death may leave its output open: then
    a process of its own holds on to it, whose messages are not those of the one we spoke with.
    """
    if not evidence.waited and (evidence.status is None or not evidence.at_end):
        return None
    match evidence.status:
        case None if evidence.error:
            reason = evidence.error
        case None:
            reason = "it closed its output and lives on"
        case 0:
            return ConnectionClosed(
                reason="exit status 0", stderr=remains.stderr, partial=remains.partial
            )
        case status:
            reason = how(status)
    return ConnectionLost(
        reason=reason, status=evidence.status, stderr=remains.stderr, partial=remains.partial
    )


def of_socket(evidence: Evidence, remains: Remains) -> Failure | None:
    """How the other side of a socket ended the connection; None while it may yet say more."""
    if evidence.at_end and not evidence.error and not remains.partial:
        return ConnectionClosed(reason="the other side closed it")
    if evidence.at_end or evidence.waited:
        reason = evidence.error or "it broke off inside a message"
        return ConnectionLost(reason=reason, partial=remains.partial)
    return None


def how(status: int) -> str:
    """Say how a process ended, as people say it."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
