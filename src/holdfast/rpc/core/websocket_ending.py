"""Decide what the end of a WebSocket means, and which answer it gets."""

from __future__ import annotations

from holdfast.failures import Failure
from holdfast.rpc.core.websocket_frames import PROTOCOL_BROKEN, TOO_LARGE, Violation
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, MessageTooLarge

NORMAL, GOING_AWAY = 1000, 1001

_CODES = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))


def of_close(payload: bytes) -> tuple[Failure, int]:
    """How the other side ended it with a close frame, and the code to answer with."""
    if not payload:
        return ConnectionClosed(reason="the other side closed it"), NORMAL
    code = int.from_bytes(payload[:2])
    if code not in _CODES:
        return of_violation(Violation(PROTOCOL_BROKEN, f"close code {code}")), PROTOCOL_BROKEN
    if code in (NORMAL, GOING_AWAY):
        return ConnectionClosed(reason="the other side closed it"), code
    said = f"the other side gave up with code {code} {payload[2:].decode(errors='replace')}"
    return ConnectionLost(reason=said.rstrip()), code


def of_violation(violation: Violation, *, bytes_max: int = 0) -> Failure:
    """How it ends when the other side broke a rule or the size limit."""
    if violation.code == TOO_LARGE:
        return MessageTooLarge(bytes_max=bytes_max)
    return ConnectionLost(reason=f"the other side broke the protocol: {violation.reason}")
