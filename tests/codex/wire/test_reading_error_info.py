"""What a turn failed of, in every form that the server gives it."""

from __future__ import annotations

import pytest

from holdfast.codex.wire.generated import CodexErrorInfo, CodexErrorKind
from holdfast.codex.wire.reading import Cause, cause_of


@pytest.mark.parametrize(
    ("info", "cause"),
    [
        (None, Cause(CodexErrorKind.OTHER, "")),
        ("other", Cause(CodexErrorKind.OTHER, "other")),
        ("usageLimitExceeded", Cause(CodexErrorKind.USAGE_LIMIT_EXCEEDED, "usageLimitExceeded")),
        (
            {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
            Cause(
                CodexErrorKind.RESPONSE_TOO_MANY_FAILED_ATTEMPTS,
                "responseTooManyFailedAttempts",
                429,
            ),
        ),
        (
            {"httpConnectionFailed": {"httpStatusCode": None}},
            Cause(CodexErrorKind.HTTP_CONNECTION_FAILED, "httpConnectionFailed"),
        ),
        (
            {"activeTurnNotSteerable": {"turnKind": "review"}},
            Cause(CodexErrorKind.ACTIVE_TURN_NOT_STEERABLE, "activeTurnNotSteerable"),
        ),
        ("newlyInvented", Cause(CodexErrorKind.OTHER, "newlyInvented")),
        (
            {"newlyInvented": {"httpStatusCode": 418}},
            Cause(CodexErrorKind.OTHER, "newlyInvented", 418),
        ),
        ({}, Cause(CodexErrorKind.OTHER, "")),
        (
            {"httpConnectionFailed": "odd"},
            Cause(CodexErrorKind.HTTP_CONNECTION_FAILED, "httpConnectionFailed"),
        ),
    ],
)
def test_cause(info: CodexErrorInfo | None, cause: Cause) -> None:
    assert cause_of(info) == cause
