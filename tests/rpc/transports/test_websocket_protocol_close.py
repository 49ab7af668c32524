"""Every end of a WebSocket has a name."""

from __future__ import annotations

import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, MessageTooLarge
from holdfast.rpc.transports.websocket_protocol import (
    NOT_UTF8,
    ProtocolViolation,
    close_failure,
    close_payload,
    violation_failure,
)

CLOSED = ConnectionClosed(reason="the other side closed it")


def lost(reason: str) -> ConnectionLost:
    return ConnectionLost(reason=reason)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", (CLOSED, 1000)),
        (close_payload(1000), (CLOSED, 1000)),
        (close_payload(1001, "restarting"), (CLOSED, 1001)),
        (close_payload(1011), (lost("the other side gave up with code 1011"), 1011)),
        (close_payload(1009, "big"), (lost("the other side gave up with code 1009 big"), 1009)),
        (close_payload(4999), (lost("the other side gave up with code 4999"), 4999)),
        *(
            (
                close_payload(code),
                (lost(f"the other side broke the protocol: close code {code}"), 1002),
            )
            for code in (0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535)
        ),
    ],
)
def test_close_frame(payload: bytes, expected: tuple[Failure, int]) -> None:
    assert close_failure(payload) == expected


def test_violation() -> None:
    reason = "the other side broke the protocol: a text is not UTF-8"
    assert violation_failure(NOT_UTF8) == lost(reason)
    assert violation_failure(ProtocolViolation(1009, "big"), bytes_max=7) == MessageTooLarge(
        bytes_max=7
    )
