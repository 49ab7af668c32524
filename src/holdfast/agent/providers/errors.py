"""Classification of provider errors by status and error code, never by prose.

A word is a code that the provider's API defines: `error.type`, `error.code` or
`error.details.error_code`. The most specific word decides; without one, the status does.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from holdfast.agent.failures import (
    ContentRefused,
    ContextTooLong,
    KeyRefused,
    ModelOverloaded,
    ModelUnknown,
    ProviderMoved,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
)
from holdfast.agent.model import ModelChoice
from holdfast.failures import Failure

_Meaning = type[
    KeyRefused | ModelUnknown | RateLimited | ModelOverloaded | ContentRefused | ContextTooLong
    | QuotaExhausted
]  # fmt: skip

# Most specific first: the first match decides.
WORDS: tuple[tuple[_Meaning, frozenset[str]], ...] = (
    (
        ContextTooLong,
        frozenset(
            {
                "context_length_exceeded",
                "context_window_exceeded",
                "exceed_context_size_error",
                "model_context_window_exceeded",
                "prompt_too_long",
                "request_too_large",
                "string_above_max_length",
            }
        ),
    ),
    (
        QuotaExhausted,
        frozenset(
            {
                "insufficient_quota",
                "insufficient_balance",
                "billing_error",
                "billing_hard_limit_reached",
                "billing_not_active",
                "credits_exhausted",
                "enforced_spend_limit_reached",
                "payment_required",
                "quota_exceeded",
            }
        ),
    ),
    (
        ContentRefused,
        frozenset(
            {
                "bio_policy",
                "content_filter",
                "content_policy_violation",
                "cyber_policy",
                "invalid_prompt",
                "misalignment_policy_violation",
            }
        ),
    ),
    (ModelUnknown, frozenset({"model_not_found", "model_not_available", "not_found_error"})),
    (
        KeyRefused,
        frozenset(
            {
                "account_deactivated",
                "authentication_error",
                "invalid_api_key",
                "invalid_authentication",
                "invalid_organization",
                "organization_on_hold",
                "permission_denied",
                "permission_error",
                "unsupported_country_region_territory",
            }
        ),
    ),
    (
        RateLimited,
        frozenset(
            {
                "ramp_limit_exceeded",
                "rate_limit_error",
                "rate_limit_exceeded",
                "requests",
                "tokens",
                "too_many_requests",
            }
        ),
    ),
    (
        ModelOverloaded,
        frozenset(
            {
                "api_error",
                "engine_overloaded",
                "internal_server_error",
                "overloaded",
                "overloaded_error",
                "server_error",
                "server_overloaded",
                "service_unavailable",
                "slow_down",
                "timeout",
                "timeout_error",
            }
        ),
    ),
)
STATUSES: dict[int, _Meaning] = {
    401: KeyRefused,
    402: QuotaExhausted,
    403: KeyRefused,
    404: ModelUnknown,
    408: ModelOverloaded,
    409: ModelOverloaded,
    413: ContextTooLong,
    425: ModelOverloaded,
    429: RateLimited,
}
_SAID_MAX = 300
_WORD_MAX = 80
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_HIDDEN = "***"
_INPUT = "input_tokens"
_NEARLY = 0.9  # of the window
_WINDOW_LEAST = 1_024  # smaller numbers are not window sizes
_READ_MAX = 2_000
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.]\d)|(?<![\w.])\d{4,9}(?!\w)")


class _Details(msgspec.Struct):
    error_code: object = None


class PromptSize(NamedTuple):
    """Estimated tokens of a request, and the window of the model, if known."""

    tokens: int = 0
    window: int | None = None


UNKNOWN_SIZE = PromptSize()


class _Error(msgspec.Struct):
    type: object = None
    code: object = None
    message: object = None
    param: object = None
    details: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def words(self) -> tuple[str, ...]:
        """The error codes, the most specific first."""
        try:
            detail = msgspec.json.decode(self.details, type=_Details).error_code
        except _UNREADABLE:
            detail = None
        found = (detail, self.code, self.type)
        return tuple(word for word in found if isinstance(word, str) and word)

    @property
    def status(self) -> int | None:
        """The HTTP status that the body claims."""
        return self.code if isinstance(self.code, int) else None


class _Body(msgspec.Struct):
    error: _Error | str


def refused(
    choice: ModelChoice,
    status: int,
    body: bytes,
    *,
    size: PromptSize = UNKNOWN_SIZE,
    secret: str = "",
) -> Failure:
    """Return the failure for an error response.

    Some providers have no code for a conversation that is too long: then the size of the request
    and the numbers in the message decide. The message is quoted only if nothing else helps, and
    never contains `secret`.
    """
    error = _read(body)
    if 300 <= status < 400:
        return ProviderMoved(provider=choice.provider, model=choice.model, status=status)
    meaning = _by_word(error) or _by_status(status, error)
    word = _hidden(_told(error), secret)
    if meaning is None and status in {400, 422} and _is_overflow(error, size):
        meaning = ContextTooLong
    if meaning is not None:
        return meaning(
            provider=choice.provider, model=choice.model, status=status, word=word or str(status)
        )
    said = _hidden(error.message if isinstance(error.message, str) else "", secret)
    return RequestRefused(
        provider=choice.provider,
        model=choice.model,
        status=status,
        word=word or str(status),
        said=said[:_SAID_MAX],
        param=error.param[:_WORD_MAX] if isinstance(error.param, str) else "",
    )


def failed(
    choice: ModelChoice, error: bytes | msgspec.Raw, size: PromptSize = UNKNOWN_SIZE
) -> Failure:
    """Return the failure for an error event in a stream."""
    found = _read(bytes(error))
    meaning = _by_word(found) or STATUSES.get(found.status or 0)
    if meaning is None:
        meaning = ContextTooLong if _is_overflow(found, size) else ModelOverloaded
    word = _told(found) or str(found.status or "error")
    return meaning(provider=choice.provider, model=choice.model, status=200, word=word)


def is_error(body: bytes) -> bool:
    """Whether a body describes an error, whatever its status."""
    return _wrapped(body) is not None


def _read(body: bytes) -> _Error:
    """Parse the error of a body; empty if there is none."""
    if (error := _wrapped(body)) is not None:
        return error
    try:
        return msgspec.json.decode(body, type=_Error)
    except _UNREADABLE:
        return _Error()


def _wrapped(body: bytes) -> _Error | None:
    """Parse an error object or text, also inside a list, as Google sends it."""
    listed = body if body.lstrip().startswith(b"[") else b"[%b]" % body
    try:
        found = next(iter(msgspec.json.decode(listed, type=list[_Body])), None)
    except _UNREADABLE:
        return None
    if found is None:
        return None
    return found.error if isinstance(found.error, _Error) else _Error(message=found.error)


def _is_overflow(error: _Error, size: PromptSize) -> bool:
    """Whether a request without a specific code probably exceeded the window.

    Only numbers are compared, not words: servers name the tokens of the request and the limit.
    """
    if error.param == _INPUT:  # vLLM
        return True
    window = size.window
    if window is not None and size.tokens >= _NEARLY * window:
        return True
    said = error.message[:_READ_MAX] if isinstance(error.message, str) else ""
    named = {int(word.replace(",", "")) for word in _NUMBER.findall(said)}
    numbers = sorted(each for each in named if each >= _WINDOW_LEAST)
    if len(numbers) < 2:
        return False
    most = numbers[-1]  # the request, if it is close to our own count
    return window in numbers or size.tokens / 4 <= most <= size.tokens * 2


def _by_word(error: _Error) -> _Meaning | None:
    words = {word.lower() for word in error.words}
    return next((meaning for meaning, known in WORDS if words & known), None)


def _by_status(status: int, error: _Error) -> _Meaning | None:
    """Classify by status; a body may contain the status that the response should have had."""
    if status < 400 and error.status is not None:
        status = error.status
    return STATUSES.get(status, ModelOverloaded if status >= 500 else None)


def _told(error: _Error) -> str:
    return next(iter(error.words), "")[:_WORD_MAX]


def _hidden(text: str, secret: str) -> str:
    return text.replace(secret, _HIDDEN) if secret else text
