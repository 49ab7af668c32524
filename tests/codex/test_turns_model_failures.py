"""A failed turn gets its name from what the server calls it and from statuses, never from text."""

from __future__ import annotations

import pytest

from holdfast.codex.failures import (
    CodexContextExhausted,
    CodexSandboxFailed,
    ModelAuth,
    ModelLimited,
    ModelMissing,
    ModelQuotaSpent,
    ModelRefused,
    ModelUnavailable,
    PolicyRefused,
    TurnFailed,
)
from holdfast.codex.turns import failure_of
from holdfast.codex.wire.generated import CodexErrorInfo, CodexErrorKind, TurnError
from holdfast.failures import Failure


@pytest.mark.parametrize(
    ("info", "expected", "retryable"),
    [
        ("contextWindowExceeded", CodexContextExhausted, False),
        ("usageLimitExceeded", ModelQuotaSpent, False),
        ("sessionBudgetExceeded", ModelQuotaSpent, False),
        ("rateLimitExceeded", ModelLimited, True),
        ("serverOverloaded", ModelUnavailable, True),
        ("internalServerError", ModelUnavailable, True),
        ("modelNotFound", ModelMissing, False),
        ("unauthorized", ModelAuth, False),
        ("badRequest", ModelRefused, False),
        ("cyberPolicy", PolicyRefused, False),
        ("sandboxError", CodexSandboxFailed, False),
        ("other", TurnFailed, True),
        ("aNameOfTomorrow", TurnFailed, True),
        (None, TurnFailed, True),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, ModelAuth, False),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, ModelUnavailable, True),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, ModelLimited, True),
        ({"responseStreamDisconnected": {"httpStatusCode": 502}}, ModelUnavailable, True),
    ],
    ids=str,
)
def test_what_the_server_calls_it_decides(
    info: CodexErrorInfo | None, expected: type[Failure], retryable: bool
) -> None:
    failure = failure_of(TurnError("429 unauthorized context", codex_error_info=info))

    assert type(failure) is expected
    assert failure.retryable is retryable
    assert failure.phase == "codex.turn"


@pytest.mark.parametrize("kind", CodexErrorKind)
def test_every_name_of_the_wire_has_a_failure(kind: CodexErrorKind) -> None:
    assert failure_of(TurnError("x", codex_error_info=kind.value)).details["reason"] == "x"


def test_the_cause_behind_a_wrapper_is_told_and_bounded() -> None:
    error = TurnError("outer", additional_details="inner" * 1000)

    assert failure_of(error).details["reason"] == ("inner" * 1000)[:500]
