"""What a failed turn failed of: by the server's own names and statuses, never by its text."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.codex.failures import (
    ContextExhausted,
    ModelAuth,
    ModelLimited,
    ModelMissing,
    ModelQuotaSpent,
    ModelRefused,
    ModelUnavailable,
    PolicyRefused,
    SandboxFailed,
    TurnFailed,
)
from holdfast.codex.wire.error_info import cause_of
from holdfast.codex.wire.generated import CodexErrorKind, TurnError
from holdfast.failures import Failure

_REASON_MAX = 500
_BY_KIND: dict[CodexErrorKind, Callable[..., Failure]] = {
    CodexErrorKind.CONTEXT_WINDOW_EXCEEDED: ContextExhausted,
    CodexErrorKind.SESSION_BUDGET_EXCEEDED: ModelQuotaSpent,
    CodexErrorKind.USAGE_LIMIT_EXCEEDED: ModelQuotaSpent,
    CodexErrorKind.RATE_LIMIT_EXCEEDED: ModelLimited,
    CodexErrorKind.FLEX_UNAVAILABLE: ModelUnavailable,
    CodexErrorKind.SERVER_OVERLOADED: ModelUnavailable,
    CodexErrorKind.POLICY_CAPACITY_UNAVAILABLE: ModelUnavailable,
    CodexErrorKind.MODEL_NOT_FOUND: ModelMissing,
    CodexErrorKind.CYBER_POLICY: PolicyRefused,
    CodexErrorKind.MISALIGNMENT_POLICY_VIOLATION: PolicyRefused,
    CodexErrorKind.TOO_MANY_DENIALS: PolicyRefused,
    CodexErrorKind.INTERNAL_SERVER_ERROR: ModelUnavailable,
    CodexErrorKind.UNAUTHORIZED: ModelAuth,
    CodexErrorKind.BAD_REQUEST: ModelRefused,
    CodexErrorKind.THREAD_ROLLBACK_FAILED: TurnFailed,
    CodexErrorKind.SANDBOX_ERROR: SandboxFailed,
    CodexErrorKind.OTHER: TurnFailed,
    CodexErrorKind.HTTP_CONNECTION_FAILED: ModelUnavailable,
    CodexErrorKind.RESPONSE_STREAM_CONNECTION_FAILED: ModelUnavailable,
    CodexErrorKind.RESPONSE_STREAM_DISCONNECTED: ModelUnavailable,
    CodexErrorKind.RESPONSE_TOO_MANY_FAILED_ATTEMPTS: ModelUnavailable,
    CodexErrorKind.ACTIVE_TURN_NOT_STEERABLE: TurnFailed,
}
_BY_STATUS: dict[int, Callable[..., Failure]] = {
    401: ModelAuth,
    403: ModelAuth,
    404: ModelMissing,
    429: ModelLimited,
}
# These say only that a connection failed; the status behind it, where there is one, says why.
_WRAPPERS = {
    CodexErrorKind.HTTP_CONNECTION_FAILED,
    CodexErrorKind.RESPONSE_STREAM_CONNECTION_FAILED,
    CodexErrorKind.RESPONSE_STREAM_DISCONNECTED,
    CodexErrorKind.RESPONSE_TOO_MANY_FAILED_ATTEMPTS,
}
assert _BY_KIND.keys() == set(CodexErrorKind), "every kind has a failure"


def failure_of(error: TurnError) -> Failure:
    """Name what a turn failed of."""
    cause = cause_of(error.codex_error_info)
    made = _BY_KIND[cause.kind]
    if cause.kind in _WRAPPERS and cause.http_status is not None:
        made = _BY_STATUS.get(cause.http_status, made)
    reason = error.message if error.additional_details is None else error.additional_details
    return made(reason=reason[:_REASON_MAX], http_status=cause.http_status).during("codex.turn")
